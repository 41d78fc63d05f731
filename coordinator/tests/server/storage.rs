//! Checkpoints in storage that is played here: it keeps objects in memory, asks for signed URLs and for the length that was signed,
//! and can be full, refuse, lie, forget and be away. Real storage is asked by `deploy/test-storage`.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use togl_agent::courier::{Brought, Courier};
use togl_coordinator::checkpoints::Storage;
use togl_proto::checkpoint::Held;
use togl_proto::client::ClientAccess;
use togl_proto::wire;
use togl_sweeps::{Attempt, FoldKey, result};

use crate::hostile::Log;
use crate::played::{PlayedWorker, World, submit};

/// What is wrong with the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    Well,
    Full,
    Refusing,
    /// Gives other bytes than it was given.
    Lying,
    /// Takes nothing but looks as if it did.
    Forgetting,
}

type Objects = BTreeMap<String, Vec<u8>>;

#[derive(Clone)]
struct PlayedStorage {
    address: String,
    objects: Arc<Mutex<Objects>>,
    mood: Arc<Mutex<Mood>>,
}

impl PlayedStorage {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let storage = Self { address, objects: Arc::default(), mood: Arc::new(Mutex::new(Mood::Well)) };
        let serving = storage.clone();
        let named = || std::thread::Builder::new().name("storage".to_owned());
        let listen = move || {
            for stream in listener.incoming() {
                let serving = serving.clone();
                drop(named().spawn(move || serving.serve(stream.unwrap())).unwrap());
            }
        };
        drop(named().spawn(listen).unwrap());
        storage
    }

    fn storage(&self) -> Storage {
        let address = format!("http://{}/bucket/lab/togl", self.address);
        Storage::new(&address, "us-east-1", |name| {
            Some(format!("a-{name}")).filter(|_| !name.contains("SESSION"))
        })
        .unwrap()
    }

    fn become_(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    /// Names of objects.
    fn names(&self) -> Vec<String> {
        self.objects.lock().unwrap().keys().cloned().collect()
    }

    /// Requests over one connection, one after the other.
    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some((method, target, length)) = head(&mut reader) {
            let mut body = vec![0; length.unwrap_or(0)];
            if reader.read_exact(&mut body).is_err() {
                return;
            }
            let (status, answer) = self.answer(&method, &target, length, body);
            let size = answer.len();
            let head = format!("HTTP/1.1 {status}\r\nContent-Length: {size}\r\n\r\n");
            let answer = if method == "HEAD" { Vec::new() } else { answer };
            if reader.get_mut().write_all(&[head.into_bytes(), answer].concat()).is_err() {
                return;
            }
        }
    }

    fn answer(
        &self,
        method: &str,
        target: &str,
        length: Option<usize>,
        body: Vec<u8>,
    ) -> (&'static str, Vec<u8>) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let name = path.trim_start_matches("/bucket").trim_start_matches('/').to_owned();
        let says =
            |code: &str| format!("<Error><Code>{code}</Code><Message>No.</Message></Error>").into_bytes();
        let mood = *self.mood.lock().unwrap();
        let mut objects = self.objects.lock().unwrap();
        if !query.contains("X-Amz-Signature=") || mood == Mood::Refusing {
            return ("403 Forbidden", says("AccessDenied"));
        }
        match (method, objects.get(&name)) {
            ("PUT", _) if mood == Mood::Full => ("507 Insufficient Storage", says("InsufficientStorage")),
            ("PUT", _) if !query.contains("content-length") || length.is_none() => {
                ("403 Forbidden", says("SignatureDoesNotMatch"))
            }
            ("PUT", _) => {
                if mood != Mood::Forgetting {
                    objects.insert(name, body);
                }
                ("200 OK", Vec::new())
            }
            ("DELETE", _) => {
                objects.remove(&name);
                ("204 No Content", Vec::new())
            }
            ("GET", _) if query.contains("list-type=2") => ("200 OK", list(&objects)),
            ("GET" | "HEAD", Some(bytes)) => {
                let lying = method == "GET" && mood == Mood::Lying;
                ("200 OK", if lying { vec![0; bytes.len()] } else { bytes.clone() })
            }
            _ => ("404 Not Found", says("NoSuchKey")),
        }
    }
}

/// Method, target and length of a request.
fn head(reader: &mut impl BufRead) -> Option<(String, String, Option<usize>)> {
    let (mut first, mut length) = (String::new(), None);
    if reader.read_line(&mut first).ok()? == 0 {
        return None;
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok();
        }
    }
    let mut words = first.split(' ').map(str::to_owned);
    Some((words.next()?, words.next()?, length))
}

fn list(objects: &Objects) -> Vec<u8> {
    let object = |(name, bytes): (&String, &Vec<u8>)| {
        format!(
            "<Contents><Key>{name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>x</ETag><Size>{}</Size></Contents>",
            bytes.len()
        )
    };
    let contents: String = objects.iter().map(object).collect();
    format!("<ListBucketResult><MaxKeys>1000</MaxKeys>{contents}</ListBucketResult>").into_bytes()
}

/// A coordinator with storage, and `one`, who has a fold.
struct Story {
    world: World,
    storage: PlayedStorage,
    worker: PlayedWorker,
    lease: wire::Lease,
}

impl Story {
    async fn new() -> Self {
        Self::on(PlayedStorage::start()).await
    }

    async fn on(storage: PlayedStorage) -> Self {
        let ours = storage.storage();
        let world = World::with(move |settings| settings.checkpoint_storage = Some(ours)).await;
        submit(&world).await;
        let mut worker = world.worker("one", Vec::new()).await;
        let lease = worker.lease(1).await.remove(0);
        Self { world, storage, worker, lease }
    }

    fn fold(&self) -> (FoldKey, Attempt) {
        let fold = togl_proto::convert::fold(self.lease.fold.clone()).unwrap();
        (fold, Attempt(self.lease.attempt))
    }

    fn courier(&self) -> Courier {
        let access = ClientAccess::new(&self.world.tokens.worker, None).unwrap();
        let address = self.world.address.clone();
        Courier::new("one".parse().unwrap(), move || {
            let (access, address) = (access.clone(), address.clone());
            async move { access.checkpoints(&address).await }
        })
    }

    async fn bring(&self, epochs: u32, bytes: &[u8]) -> Result<Brought, String> {
        let (fold, attempt) = self.fold();
        let brought = self.courier().bring(fold, attempt, epochs, bytes.to_vec()).await;
        brought.map_err(|error| error.to_string())
    }

    async fn fetch(&self) -> Result<Option<(Held, Vec<u8>)>, String> {
        let (fold, attempt) = self.fold();
        self.courier().fetch(fold, attempt).await.map_err(|error| error.to_string())
    }

    async fn until_names(&self, count: usize) -> Vec<String> {
        while self.storage.names().len() != count {
            tokio::task::yield_now().await;
        }
        self.storage.names()
    }
}

const SOME: &[u8] = b"some tensors";

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_goes_into_storage_past_the_coordinator_and_is_gone_once_the_result_is_there() {
    let mut story = Story::new().await;
    assert_eq!(story.fetch().await, Ok(None));
    assert_eq!(story.bring(3, SOME).await, Ok(Brought::Kept));
    assert_eq!(
        story.bring(3, b"other").await,
        Ok(Brought::Declined("one of epoch 3 is held already".to_owned()))
    );
    assert_eq!(story.fetch().await, Ok(Some((Held::of(3, SOME), SOME.to_vec()))));
    assert_eq!(story.bring(4, b"further").await, Ok(Brought::Kept));
    let names = story.until_names(1).await;
    assert!(names[0].starts_with("lab/togl/") && names[0].ends_with(".checkpoint"), "{names:?}");
    assert!(!story.world.folder.path().join("held-checkpoints").exists(), "nothing is held here");
    assert!(story.worker.report(&story.lease, result::example(0.5).into()).await.accepted);
    story.until_names(0).await;
    let late = story.bring(9, SOME).await;
    assert_eq!(late, Ok(Brought::Declined("the fold has its result".to_owned())));
    assert_eq!(story.courier().try_out().await.unwrap(), "storage");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_coordinator_finds_what_is_in_the_bucket_and_removes_what_leaks_and_nothing_of_others() {
    let story = Story::new().await;
    assert_eq!(story.bring(3, SOME).await, Ok(Brought::Kept));
    let held = story.storage.names().remove(0);
    let older = held.replace("-3-", "-2-");
    for (name, bytes) in [
        (older.as_str(), SOME),                    // put, and never spoken of
        (&held.replace("-3-", "-5-"), &SOME[1..]), // not the size that its name says
        ("lab/togl/try-0123", b"x".as_slice()),
        ("lab/togl/README", b"of somebody else"),
    ] {
        story.storage.objects.lock().unwrap().insert(name.to_owned(), bytes.to_vec());
    }
    let second = Story::on(story.storage.clone()).await;
    let mut left = second.until_names(2).await;
    left.sort_by_key(|name| !name.ends_with("README"));
    assert_eq!(left, ["lab/togl/README".to_owned(), held]);
    assert_eq!(second.fold().0, story.fold().0);
    assert_eq!(
        second.lease.held,
        Some(Held::of(3, SOME).into()),
        "known before the first fold is handed out"
    );
    assert_eq!(second.fetch().await, Ok(Some((Held::of(3, SOME), SOME.to_vec()))));
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_that_is_full_refuses_lies_or_is_away_costs_time_only_and_is_one_line() {
    let log = Log::start("warn");
    let story = Story::new().await;
    let host = story.storage.address.clone();
    assert_eq!(story.bring(1, SOME).await, Ok(Brought::Kept));
    story.storage.become_(Mood::Full);
    let full = story.bring(2, SOME).await.unwrap_err();
    assert_eq!(
        full,
        format!("the storage at {host} refuses: 507 Insufficient Storage, InsufficientStorage: No")
    );
    story.storage.become_(Mood::Refusing);
    let refused = story.bring(2, SOME).await.unwrap_err();
    assert_eq!(refused, format!("the storage at {host} refuses: 403 Forbidden, AccessDenied: No"));
    assert!(story.courier().try_out().await.unwrap_err().to_string().contains("403 Forbidden"));
    story.storage.become_(Mood::Forgetting);
    let gone = story.bring(2, SOME).await.unwrap_err();
    assert_eq!(gone, format!("the storage at {host} does not have it"));
    story.storage.become_(Mood::Lying);
    let torn = story.fetch().await.unwrap_err();
    assert_eq!(torn, "it came torn: the bytes do not have the digest that was promised");
    story.storage.become_(Mood::Well);
    assert_eq!(story.fetch().await, Ok(Some((Held::of(1, SOME), SOME.to_vec()))), "what was held is held");
    story.storage.objects.lock().unwrap().clear();
    assert_eq!(story.fetch().await.unwrap_err(), format!("the storage at {host} does not have it"));

    let away = PlayedStorage { address: "127.0.0.1:1".to_owned(), ..PlayedStorage::start() };
    let mut story = Story::on(away).await;
    let lost = story.bring(1, SOME).await.unwrap_err();
    assert!(lost.starts_with("no answer from the storage at 127.0.0.1:1: "), "{lost}");
    assert!(story.worker.report(&story.lease, result::example(0.5).into()).await.accepted);
    let said = log.text();
    let line = said.lines().find(|line| line.contains("no answer from the storage at 127.0.0.1:1"));
    assert!(line.is_some_and(|line| line.contains("hint: check the address")), "{said}");
    assert!(!said.contains("Signature") && !said.contains("a-AWS"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_not_given_a_fold_gets_no_url_and_who_knows_none_is_declined() {
    let story = Story::new().await;
    assert_eq!(story.bring(1, SOME).await, Ok(Brought::Kept));
    let access = ClientAccess::new(&story.world.tokens.worker, None).unwrap();
    let mut client = access.checkpoints(&story.world.address).await.unwrap();
    let (fold, worker) = (story.lease.fold.clone(), "one".to_owned());
    let held = Some(Held::of(2, SOME).into());
    let head = wire::CheckpointHead {
        fold: fold.clone(),
        attempt: 1,
        worker: worker.clone(),
        held,
        url: String::new(),
    };
    let thief = wire::CheckpointHead { worker: "thief".to_owned(), ..head.clone() };
    for refused in [client.place(thief.clone()).await.err(), client.placed(thief).await.err()] {
        assert_eq!(refused.unwrap().code(), tonic::Code::PermissionDenied);
    }
    let never_put = client.placed(head.clone()).await.unwrap_err();
    assert!(never_put.message().contains("does not have it"), "{never_put}");
    // A worker of an older version.
    let chunk = wire::CheckpointChunk { kind: Some(wire::checkpoint_chunk::Kind::Head(head)) };
    let reply = client.put(tokio_stream::iter([chunk])).await.unwrap().into_inner();
    assert!(!reply.kept && reply.reason.contains("in storage"), "{reply:?}");
    let request = wire::GetCheckpointRequest { fold, attempt: 1, worker, follows_urls: false };
    assert_eq!(client.get(request).await.unwrap_err().code(), tonic::Code::NotFound);
    assert_eq!(story.until_names(1).await.len(), 1);
}
