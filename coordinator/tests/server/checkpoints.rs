//! Checkpoints over a real connection: a fold that moves, and workers that lie, never end, never read or bring what they were
//! never given. Whoever does is refused, and nothing of it stays.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use togl_coordinator::tokens::Role;
use togl_proto::checkpoint::{CHUNK, Held, LARGEST};
use togl_proto::client::{AuthorisedChannel, ClientAccess};
use togl_proto::wire;
use togl_proto::wire::checkpoint_chunk::Kind;
use togl_proto::wire::checkpoints_client::CheckpointsClient;
use togl_sweeps::result;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use crate::hostile::Log;
use crate::played::{World, status, submit};

/// Somebody with a worker token, and a lease in the name of `one`.
struct Moving {
    world: World,
    client: CheckpointsClient<AuthorisedChannel>,
    lease: wire::Lease,
}

impl Moving {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(edit: impl FnOnce(&mut togl_coordinator::service::ServiceSettings)) -> Self {
        let world = World::with(edit).await;
        submit(&world).await;
        let mut one = world.worker("one", Vec::new()).await;
        let lease = one.lease(1).await.remove(0);
        let client = client(&world, &world.tokens.worker).await;
        Self { world, client, lease }
    }

    fn head(&self, held: impl Into<wire::HeldCheckpoint>) -> wire::CheckpointHead {
        let (fold, attempt, worker) = (self.lease.fold.clone(), self.lease.attempt, "one".to_owned());
        wire::CheckpointHead { fold, attempt, worker, held: Some(held.into()), url: String::new() }
    }

    async fn put(&mut self, chunks: Vec<Kind>) -> Result<wire::PutCheckpointReply, Status> {
        let chunks = chunks.into_iter().map(|kind| wire::CheckpointChunk { kind: Some(kind) });
        let chunks: Vec<_> = chunks.collect();
        Ok(self.client.put(tokio_stream::iter(chunks)).await?.into_inner())
    }

    async fn bring(&mut self, epochs: u32, bytes: &[u8]) -> Result<wire::PutCheckpointReply, Status> {
        let head = self.head(Held::of(epochs, bytes));
        let mut chunks = vec![Kind::Head(head)];
        chunks.extend(bytes.chunks(CHUNK).map(|piece| Kind::Bytes(piece.to_vec())));
        self.put(chunks).await
    }

    async fn fetch(&mut self) -> Result<(wire::CheckpointHead, Vec<u8>), Status> {
        let (fold, attempt, worker) = (self.lease.fold.clone(), self.lease.attempt, "one".to_owned());
        let request = wire::GetCheckpointRequest { fold, attempt, worker, follows_urls: false };
        let mut chunks = self.client.get(request).await?.into_inner();
        let Some(Kind::Head(head)) = chunks.message().await?.unwrap().kind else { panic!("no head") };
        let mut bytes = Vec::new();
        while let Some(chunk) = chunks.message().await? {
            let Some(Kind::Bytes(more)) = chunk.kind else { panic!("a second head") };
            bytes.extend(more);
        }
        Ok((head, bytes))
    }

    /// Files in the folder of checkpoints, finished or not.
    fn files(&self) -> usize {
        std::fs::read_dir(self.world.folder.path().join("held-checkpoints")).unwrap().count()
    }
}

async fn client(world: &World, token: &str) -> CheckpointsClient<AuthorisedChannel> {
    let client = ClientAccess::new(token, None).unwrap().checkpoints(&world.address).await.unwrap();
    client.max_encoding_message_size(usize::MAX)
}

fn some_bytes(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 % 251) as u8).collect()
}

#[tokio::test]
async fn what_one_worker_brought_comes_with_the_next_lease_and_is_gone_once_the_result_is_there() {
    let mut moving = Moving::new().await;
    assert_eq!(moving.lease.held, None);
    assert_eq!(moving.fetch().await.unwrap_err().code(), Code::NotFound);
    let bytes = some_bytes(700_000); // several chunks
    assert!(moving.bring(3, &bytes).await.unwrap().kept);
    let again = moving.bring(3, &some_bytes(5)).await.unwrap();
    assert_eq!((again.kept, again.reason.as_str()), (false, "one of epoch 3 is held already"));
    let (head, came) = moving.fetch().await.unwrap();
    assert_eq!((head.held, came == bytes), (Some(Held::of(3, &bytes).into()), true));

    // The worker gives the fold back; another one gets it, and the coordinator was started anew meanwhile.
    let fold = moving.lease.fold.clone();
    moving.world = moving.world.restart().await;
    let mut two = moving.world.worker("two", Vec::new()).await;
    let failure = wire::FailureReport {
        fold: fold.clone(),
        attempt: 1,
        failure: Some(wire::Failure { class: "preempted".to_owned(), message: String::new() }),
    };
    let mut one = moving.world.worker("one", Vec::new()).await;
    let reports = wire::Reports { results: vec![], failures: vec![failure] };
    one.say(wire::worker_message::Kind::Reports(reports)).await;
    assert!(matches!(one.hear().await, wire::coordinator_message::Kind::Acknowledgements(_)));
    let lease = two.lease(1).await.remove(0);
    assert_eq!((&lease.fold, lease.attempt), (&fold, 2));
    assert_eq!(lease.held, Some(Held::of(3, &bytes).into()));
    assert_eq!(two.lease(1).await.remove(0).held, None, "another fold");
    moving.client = client(&moving.world, &moving.world.tokens.worker).await;
    assert!(two.report(&lease, result::example(0.5).into()).await.accepted);
    while moving.files() > 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(moving.fetch().await.unwrap_err().code(), Code::NotFound);
    let late = moving.bring(9, &bytes).await.unwrap();
    assert_eq!((late.kept, late.reason.as_str()), (false, "the fold has its result"));
    assert_eq!(moving.files(), 0);
}

#[tokio::test]
async fn lies_about_size_and_digest_are_refused_and_what_was_held_stays() {
    let log = Log::start("warn");
    let mut moving = Moving::new().await;
    let bytes = some_bytes(1_000);
    assert!(moving.bring(1, &bytes).await.unwrap().kept);
    let held = Held::of(2, &bytes);
    let wire_held = wire::HeldCheckpoint::from(held);
    let mut other = bytes.clone();
    other[999] ^= 1;
    let head = |held: wire::HeldCheckpoint| Kind::Head(moving.head(held));
    let good = || head(wire_held.clone());
    let longer = wire::HeldCheckpoint { size: LARGEST + 1, ..wire_held.clone() };
    let short_digest = wire::HeldCheckpoint { digest: vec![0; 8], ..wire_held.clone() };
    let cases = [
        (vec![good(), Kind::Bytes(bytes[..999].to_vec())], "999 of 1000 bytes came"),
        (vec![good()], "0 of 1000 bytes came"),
        (vec![good(), Kind::Bytes(bytes.clone()), Kind::Bytes(vec![0])], "more than the 1000 bytes"),
        (vec![good(), Kind::Bytes(other)], "do not have the digest"),
        (vec![good(), good()], "has one head"),
        (vec![Kind::Bytes(bytes.clone())], "begins with its head"),
        (vec![], "begins with its head"),
        (vec![head(longer)], "at most 64 MiB move"),
        (vec![head(short_digest)], "8 bytes, not 32"),
        (vec![good(), Kind::Bytes(vec![0; 2 << 20])], "message length too large"),
    ];
    for (chunks, words) in cases {
        let refused = moving.put(chunks).await.unwrap_err();
        assert!(matches!(refused.code(), Code::InvalidArgument | Code::OutOfRange), "{refused}");
        assert!(refused.message().contains(words), "{words}: {refused}");
    }
    assert_eq!(moving.fetch().await.unwrap().1, bytes);
    assert_eq!(moving.files(), 1, "nothing of them stays");
    assert!(
        log.text().contains("do not have the digest") || log.text().contains("of 1000 bytes came"),
        "{}",
        log.text()
    );
}

#[tokio::test]
async fn only_who_was_given_a_fold_brings_or_fetches_its_checkpoint() {
    let mut moving = Moving::new().await;
    let bytes = some_bytes(10);
    assert!(moving.bring(1, &bytes).await.unwrap().kept);
    let good = moving.lease.clone();
    let head = moving.head(Held::of(5, &bytes));
    let heads = [
        wire::CheckpointHead { attempt: 2, ..head.clone() },
        wire::CheckpointHead { worker: "thief".to_owned(), ..head.clone() },
        wire::CheckpointHead {
            fold: Some(wire::Fold { split: 99, ..good.fold.clone().unwrap() }),
            ..head.clone()
        },
    ];
    for head in heads {
        let (fold, attempt, worker) = (head.fold.clone(), head.attempt, head.worker.clone());
        let refused = moving.put(vec![Kind::Head(head), Kind::Bytes(bytes.clone())]).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
        assert!(refused.message().contains("never gave"), "{refused}");
        let request = wire::GetCheckpointRequest { fold, attempt, worker, follows_urls: false };
        assert_eq!(moving.client.get(request).await.unwrap_err().code(), Code::PermissionDenied);
    }
    let nonsense = wire::CheckpointHead { worker: "../etc".to_owned(), attempt: 0, ..head };
    assert_eq!(moving.put(vec![Kind::Head(nonsense)]).await.unwrap_err().code(), Code::InvalidArgument);
    for role in [Role::Viewer, Role::Operator] {
        let token = moving.world.token(role, None).0;
        let mut person = client(&moving.world, &token).await;
        let request = wire::GetCheckpointRequest {
            fold: good.fold.clone(),
            attempt: 1,
            worker: "one".to_owned(),
            follows_urls: false,
        };
        assert_eq!(person.get(request).await.unwrap_err().code(), Code::PermissionDenied);
    }
    assert_eq!((moving.files(), moving.fetch().await.unwrap().1), (1, bytes));
}

#[tokio::test]
async fn streams_that_never_end_take_the_seats_of_their_token_and_of_nobody_else() {
    let mut moving = Moving::new().await;
    let (token, _) = moving.world.token(Role::Worker, None);
    let mut hostile = client(&moving.world, &token).await;
    let (mut open, mut calls) = (Vec::new(), FuturesUnordered::new());
    for _ in 0..25 {
        let (sender, chunks) = mpsc::channel(1);
        let head = moving.head(Held::of(1, &some_bytes(9)));
        sender.send(wire::CheckpointChunk { kind: Some(Kind::Head(head)) }).await.unwrap();
        open.push(sender);
        let mut client = hostile.clone();
        calls.push(async move { client.put(ReceiverStream::new(chunks)).await });
    }
    let refused = calls.next().await.unwrap().unwrap_err(); // the others never end
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.message().contains("24 checkpoints under way"), "{refused}");
    assert!(moving.bring(4, &some_bytes(100_000)).await.unwrap().kept, "another token is heard");
    assert_eq!(status(&moving.world).await.pending, 3, "and so is everybody else");
    drop((open, calls));
    while moving.files() > 1 {
        tokio::task::yield_now().await; // the drafts go with their streams
    }
    let mut tries = 0;
    let request = wire::GetCheckpointRequest {
        fold: moving.lease.fold.clone(),
        attempt: 1,
        worker: "one".to_owned(),
        follows_urls: false,
    };
    while hostile.get(request.clone()).await.is_err() {
        tries += 1;
        assert!(tries < 1_000, "the seats are free again");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_reads_slowly_keeps_nobody_waiting() {
    let mut moving = Moving::new().await;
    let bytes = some_bytes(8 << 20);
    assert!(moving.bring(1, &bytes).await.unwrap().kept);
    let request = wire::GetCheckpointRequest {
        fold: moving.lease.fold.clone(),
        attempt: 1,
        worker: "one".to_owned(),
        follows_urls: false,
    };
    let mut unread = Vec::new();
    for _ in 0..10 {
        unread.push(moving.client.get(request.clone()).await.unwrap());
    }
    let mut other = client(&moving.world, &moving.world.tokens.worker).await;
    std::mem::swap(&mut moving.client, &mut other);
    assert_eq!(moving.fetch().await.unwrap().1, bytes);
    assert!(moving.bring(2, &some_bytes(10)).await.unwrap().kept, "the file that they read is replaced");
    let mut first = unread.swap_remove(0).into_inner();
    drop(unread); // they share a window with it
    let mut came = 0;
    while let Some(chunk) = first.message().await.unwrap() {
        came += if let Some(Kind::Bytes(more)) = chunk.kind { more.len() } else { 0 };
    }
    assert_eq!(came, bytes.len(), "and they get what they were promised");
}

#[tokio::test]
async fn a_coordinator_without_room_says_so_and_gives_leases_as_ever() {
    let mut moving = Moving::with(|settings| settings.checkpoint_room = 0).await;
    assert_eq!(moving.bring(1, b"x").await.unwrap_err().code(), Code::Unimplemented);
    assert_eq!(moving.fetch().await.unwrap_err().code(), Code::Unimplemented);
    let mut little = Moving::with(|settings| settings.checkpoint_room = 100).await;
    let declined = little.bring(1, &some_bytes(101)).await.unwrap();
    assert_eq!(declined.reason, "it is larger than all the room that there is, 100 bytes");
    assert!(little.bring(1, &some_bytes(100)).await.unwrap().kept);
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_costs_no_more_than_the_checkpoints() {
    let mut moving = Moving::new().await;
    let folder = moving.world.folder.path().join("held-checkpoints");
    std::fs::remove_dir_all(&folder).unwrap();
    let refused = moving.bring(1, b"x").await.unwrap_err();
    assert!(refused.message().contains("cannot keep the checkpoint"), "{refused}");
    std::fs::write(&folder, "a file in the way").unwrap();
    moving.world = moving.world.restart().await;
    moving.client = client(&moving.world, &moving.world.tokens.worker).await;
    assert_eq!(moving.bring(1, b"x").await.unwrap_err().code(), Code::Unimplemented);
    assert_eq!(status(&moving.world).await.pending + status(&moving.world).await.running, 4);
}
