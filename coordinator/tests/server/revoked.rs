//! Tokens that end while they are in use: nothing that their holders say afterwards counts, whatever it is, and nothing
//! more is said to them.

use std::time::Duration;

use togl_coordinator::tokens::Role;
use togl_proto::client::{self, Bearer};
use togl_proto::wire::{self, worker_message};
use togl_sweeps::result;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use tonic::client::Grpc;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

use crate::observed::page;
use crate::played::{PlayedWorker, SWEEP, World, status, submit};

/// How long a session may go on that must not; it ends within a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for the end of a session and makes sure that its token was the reason.
async fn cut_off(worker: &mut PlayedWorker) {
    let heard = tokio::time::timeout(PATIENCE, worker.incoming.message()).await;
    let ended = heard.expect("the session goes on").unwrap_err();
    assert_eq!(ended.code(), Code::Unauthenticated, "{ended}");
    assert!(ended.message().contains("revoked or has expired"), "{ended}");
}

/// Everything that a worker can say about a lease once it is in a session.
fn sayings(lease: &wire::Lease) -> Vec<worker_message::Kind> {
    let (fold, attempt) = (lease.fold.clone(), lease.attempt);
    let failure = wire::Failure { class: "crashed".to_owned(), message: "on purpose".to_owned() };
    let failure = wire::FailureReport { fold: fold.clone(), attempt, failure: Some(failure) };
    let result = Some(result::example(0.5).into());
    let result = wire::ResultReport { fold: fold.clone(), attempt, result };
    let text = "a line that nobody may keep".to_owned();
    vec![
        worker_message::Kind::Ask(wire::LeaseRequest { count: 1 }),
        worker_message::Kind::Reports(wire::Reports { results: vec![result], failures: vec![] }),
        worker_message::Kind::Reports(wire::Reports { results: vec![], failures: vec![failure] }),
        worker_message::Kind::Heartbeat(wire::Heartbeat::default()),
        worker_message::Kind::Log(wire::LogLines { fold, attempt, text }),
        worker_message::Kind::Goodbye(wire::Goodbye {}),
    ]
}

#[tokio::test]
async fn whatever_a_revoked_worker_says_is_refused_also_without_heartbeats() {
    let world = World::new().await;
    submit(&world).await;
    let mut honest = world.worker("honest", Vec::new()).await;
    let mut last = None;
    for number in 0..6 {
        let (token, entry) = world.token(Role::Worker, None);
        let mut worker = world.worker_with(&token, "w", last.iter().map(running).collect()).await;
        let lease = match last.take() {
            Some(lease) => lease,
            None => worker.lease(1).await.remove(0),
        };
        world.revoke(&entry);
        worker.say(sayings(&lease).swap_remove(number)).await;
        cut_off(&mut worker).await;
        last = Some(lease);
    }
    assert_eq!(status(&world).await.finished, 0);
    let wire::Fold { trial, split, seed } = last.unwrap().fold.unwrap();
    let (fold, mut operator) = (format!("{trial}/{split}/{seed}"), world.operator().await);
    let log = operator.log(wire::LogRequest { fold: fold.clone() }).await.unwrap().into_inner();
    let history = operator.history(wire::HistoryRequest { fold }).await.unwrap().into_inner();
    let kept = format!("{log:?} {history:?}");
    assert!(!kept.contains("nobody may keep") && !kept.contains("on purpose"), "{kept}");
    assert_eq!(honest.lease(2).await.len(), 2, "other tokens are not concerned");
}

fn running(lease: &wire::Lease) -> wire::Running {
    wire::Running { fold: lease.fold.clone(), attempt: lease.attempt, progress: None, slot: 0 }
}

#[tokio::test]
async fn a_token_that_expires_during_a_session_ends_it() {
    let world = World::new().await;
    submit(&world).await;
    let (token, entry) = world.token(Role::Worker, Some(u64::MAX));
    let mut worker = world.worker_with(&token, "w", Vec::new()).await;
    let lease = worker.lease(1).await.remove(0);
    let list = world.folder.path().join("tokens.json");
    let text = std::fs::read_to_string(&list).unwrap();
    assert!(text.contains(&entry.id.to_string()));
    std::fs::write(&list, text.replace(&u64::MAX.to_string(), "1")).unwrap();
    worker.say(sayings(&lease).swap_remove(1)).await;
    cut_off(&mut worker).await;
    assert_eq!(status(&world).await.finished, 0);
}

#[tokio::test]
async fn work_that_arrives_later_is_not_given_to_a_revoked_worker_that_asked_before() {
    let world = World::new().await;
    let (token, entry) = world.token(Role::Worker, None);
    let mut worker = world.worker_with(&token, "w", Vec::new()).await;
    worker.say(worker_message::Kind::Ask(wire::LeaseRequest { count: 1 })).await;
    // What is asked next is answered, so the request has been heard.
    let fold = wire::Fold { trial: "0".repeat(32), split: 0, seed: 0 };
    let claimed = wire::Running { fold: Some(fold), attempt: 1, progress: None, slot: 0 };
    worker.say(worker_message::Kind::Heartbeat(wire::Heartbeat { running: vec![claimed] })).await;
    worker.hear().await;
    world.revoke(&entry);
    submit(&world).await;
    cut_off(&mut worker).await;
    assert_eq!(status(&world).await.running, 0);
}

#[tokio::test]
async fn a_session_in_which_nothing_is_said_ends_with_its_token_too() {
    let world = World::new().await;
    let (token, entry) = world.token(Role::Worker, None);
    let mut worker = world.worker_with(&token, "w", Vec::new()).await;
    world.revoke(&entry);
    cut_off(&mut worker).await;
}

#[tokio::test]
async fn a_call_whose_message_comes_after_its_token_was_revoked_is_refused() {
    let world = World::with(|settings| settings.metrics = Some(([127, 0, 0, 1], 0).into())).await;
    let (token, entry) = world.token(Role::Operator, None);
    let (later, messages) = mpsc::channel(1);
    let bearer = Bearer::new(&token).unwrap();
    let endpoint = Endpoint::from_shared(format!("http://{}", world.address)).unwrap();
    let mut grpc = Grpc::new(InterceptedService::new(endpoint.connect().await.unwrap(), bearer));
    grpc.ready().await.unwrap();
    let path = http::uri::PathAndQuery::from_static("/togl.v1.Sweeps/Submit");
    let codec = ProstCodec::<wire::SubmitRequest, wire::SubmitReply>::default();
    let request = tonic::Request::new(ReceiverStream::new(messages));
    let answer = grpc.client_streaming(request, path, codec);
    let slow = async {
        // The only stranger left is the one who reads the page: the call itself has been let in.
        while !page(world.metrics.unwrap(), "/metrics").await.contains("togl_strangers 1\n") {}
        world.revoke(&entry);
        later.send(wire::SubmitRequest { yaml: SWEEP.to_owned(), ..Default::default() }).await.unwrap();
    };
    let (answer, ()) = tokio::join!(answer, slow);
    assert_eq!(answer.unwrap_err().code(), Code::Unauthenticated);
    let listed = world.operator().await.list_sweeps(wire::ListSweepsRequest::default()).await;
    assert!(listed.unwrap().into_inner().sweeps.is_empty(), "it was not submitted");
}

#[tokio::test]
async fn a_watch_ends_with_its_token() {
    let world = World::new().await;
    submit(&world).await;
    let (token, entry) = world.token(Role::Viewer, None);
    let mut viewer = client::sweeps(&world.address, &token).await.unwrap();
    let request = wire::StatusRequest { sweep: "played".to_owned() };
    let mut states = viewer.watch(request).await.unwrap().into_inner();
    states.message().await.unwrap().unwrap();
    world.revoke(&entry);
    let ended = loop {
        match states.message().await {
            Ok(state) => assert!(state.is_some(), "the sweep has not ended"),
            Err(status) => break status,
        }
    };
    assert_eq!(ended.code(), Code::Unauthenticated);
}
