//! What a coordinator is for, as its callers meet it.

use std::collections::BTreeSet;

use togl_proto::client;
use togl_proto::wire::{self, coordinator_message, worker_message};
use togl_sweeps::result;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

use crate::played::{PlayedWorker, SWEEP, World, status, submit};

#[tokio::test]
async fn a_sweep_is_leased_reported_once_and_read_back() {
    let world = World::new().await;
    let submitted = submit(&world).await;
    assert_eq!((submitted.trials, submitted.folds, submitted.done), (2, 4, 0));
    assert_eq!(submit(&world).await.added, 0, "the same file again changes nothing");

    let mut worker = world.worker("w1", Vec::new()).await;
    let mut accuracies = BTreeSet::new();
    for round in 0..2u32 {
        for (index, lease) in worker.lease(2).await.iter().enumerate() {
            let accuracy = 0.5 + f64::from(round) / 10.0 + index as f64 / 100.0;
            accuracies.insert(accuracy.to_bits());
            let result: wire::FoldResult = result::example(accuracy).into();
            assert!(worker.report(lease, result.clone()).await.accepted);
            assert!(
                worker.report(lease, result).await.accepted,
                "a lost acknowledgement is not a second result"
            );
        }
    }
    let summary = status(&world).await;
    assert_eq!((summary.finished, summary.pending, summary.running), (4, 0, 0));

    let rows = world.results("played").await.into_iter();
    let read: BTreeSet<u64> = rows.map(|row| row.result.unwrap().test.unwrap().accuracy.to_bits()).collect();
    assert_eq!(read, accuracies);
}

#[tokio::test]
async fn work_that_arrives_later_reaches_a_worker_that_asked_before() {
    let world = World::new().await;
    let mut worker = world.worker("w1", Vec::new()).await;
    worker.say(worker_message::Kind::Ask(wire::LeaseRequest { count: 1 })).await;
    submit(&world).await;
    let coordinator_message::Kind::Leases(leases) = worker.hear().await else { panic!("no leases") };
    assert_eq!(leases.leases.len(), 1);
}

#[tokio::test]
async fn a_worker_that_reports_and_asks_in_one_breath_gets_both_and_keeps_its_place_for_the_rest() {
    let world = World::new().await;
    submit(&world).await;
    let mut worker = world.worker("w1", Vec::new()).await;
    let leases = worker.lease(2).await;
    let report = |lease: &wire::Lease| wire::ResultReport {
        fold: lease.fold.clone(),
        attempt: lease.attempt,
        result: Some(result::example(0.5).into()),
    };
    let results: Vec<_> = leases.iter().map(report).collect();
    // Before anything is awaited that lets them go: all of it reaches the coordinator together.
    for kind in [
        worker_message::Kind::Reports(wire::Reports { results: results.clone(), failures: Vec::new() }),
        worker_message::Kind::Ask(wire::LeaseRequest { count: 2 }),
        worker_message::Kind::Reports(wire::Reports { results, failures: Vec::new() }),
        worker_message::Kind::Heartbeat(wire::Heartbeat { running: Vec::new() }),
        worker_message::Kind::Ask(wire::LeaseRequest { count: 1 }),
    ] {
        worker.outgoing.try_send(wire::WorkerMessage { kind: Some(kind) }).unwrap();
    }
    let coordinator_message::Kind::Acknowledgements(acks) = worker.hear().await else { panic!("no answer") };
    assert_eq!(acks.acknowledgements.iter().filter(|ack| ack.accepted).count(), 2);
    let coordinator_message::Kind::Leases(next) = worker.hear().await else { panic!("no leases") };
    assert_eq!(next.leases.len(), 2);
    assert!(next.leases.iter().all(|lease| !leases.iter().any(|before| before.fold == lease.fold)));
    let coordinator_message::Kind::Acknowledgements(again) = worker.hear().await else { panic!("no answer") };
    assert_eq!(again.acknowledgements.len(), 2, "the second report waited for its turn");
    let summary = status(&world).await;
    assert_eq!((summary.finished, summary.running, summary.pending), (2, 2, 0));
}

#[tokio::test]
async fn results_and_leases_survive_a_restart_of_the_coordinator() {
    let world = World::new().await;
    submit(&world).await;
    let mut worker = world.worker("w1", Vec::new()).await;
    let leases = worker.lease(2).await;
    assert!(worker.report(&leases[0], result::example(0.7).into()).await.accepted);
    drop(worker);

    let world = world.restart().await;
    assert_eq!(status(&world).await.finished, 1, "what was acknowledged is never lost");
    let running =
        wire::Running { fold: leases[1].fold.clone(), attempt: leases[1].attempt, progress: None, slot: 0 };
    let mut worker = world.worker("w1", vec![running]).await;
    assert!(
        worker.report(&leases[1], result::example(0.8).into()).await.accepted,
        "work is never thrown away"
    );
    assert_eq!(status(&world).await.finished, 2);
}

#[tokio::test]
async fn a_stranger_gets_nothing() {
    let world = World::new().await;
    let mut wrong = client::sweeps(&world.address, "togl-op-wrong").await.unwrap();
    let refused = wrong.list_sweeps(wire::ListSweepsRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unauthenticated);
    let mut as_worker = client::sweeps(&world.address, &world.tokens.worker).await.unwrap();
    let refused = as_worker
        .submit(wire::SubmitRequest { yaml: SWEEP.to_owned(), ..Default::default() })
        .await
        .unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "a worker token cannot submit");
    let mut as_operator = client::workers(&world.address, &world.tokens.operator).await.unwrap();
    let (_sender, messages) = mpsc::channel(1);
    let refused = as_operator.session(ReceiverStream::new(messages)).await.unwrap_err();
    assert_eq!(refused.code(), Code::PermissionDenied, "an operator token cannot train");
}

#[tokio::test]
async fn what_a_broken_or_hostile_worker_sends_is_refused_and_harms_nobody() {
    let world = World::new().await;
    submit(&world).await;

    let mut rude = PlayedWorker::connect(&world.address, &world.tokens.worker).await;
    rude.say(worker_message::Kind::Ask(wire::LeaseRequest { count: 1 })).await;
    assert_eq!(rude.incoming.message().await.unwrap_err().code(), Code::InvalidArgument, "no hello");

    let mut worker = world.worker("w1", Vec::new()).await;
    let lease = worker.lease(1).await.remove(0);
    let mut nan = result::example(0.5);
    nan.test.loss = f64::NAN;
    let answer = worker.report(&lease, nan.into()).await;
    assert!(!answer.accepted && answer.reason.contains("NaN"), "{answer:?}");
    let never = wire::Lease { attempt: 99, ..lease.clone() };
    let answer = worker.report(&never, result::example(0.5).into()).await;
    assert!(!answer.accepted && answer.reason.contains("never gave"), "{answer:?}");
    assert!(worker.report(&lease, result::example(0.5).into()).await.accepted, "the session goes on");
    assert_eq!(status(&world).await.finished, 1);
}

#[tokio::test]
async fn bad_requests_name_what_is_wrong() {
    let world = World::new().await;
    let mut operator = world.operator().await;
    let bad =
        wire::SubmitRequest { yaml: "version: 1\nname: x\ngird: {}\n".to_owned(), ..Default::default() };
    let refused = operator.submit(bad).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(refused.message(), "3:1: unknown key `gird`; did you mean `grid`?");
    let unknown = wire::StatusRequest { sweep: "nosuch".to_owned() };
    assert_eq!(operator.status(unknown).await.unwrap_err().code(), Code::NotFound);
    let hostile = wire::CancelRequest { sweep: "../../etc".to_owned() };
    assert_eq!(operator.cancel(hostile).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn cancelling_tells_the_worker_to_stop() {
    let world = World::new().await;
    submit(&world).await;
    let mut worker = world.worker("w1", Vec::new()).await;
    let lease = worker.lease(1).await.remove(0);
    let cancelled = world.operator().await.cancel(wire::CancelRequest { sweep: "played".to_owned() }).await;
    assert_eq!(cancelled.unwrap().into_inner().abandoned, 1);
    let running = wire::Running { fold: lease.fold.clone(), attempt: lease.attempt, progress: None, slot: 0 };
    worker.say(worker_message::Kind::Heartbeat(wire::Heartbeat { running: vec![running] })).await;
    let coordinator_message::Kind::Verdicts(verdicts) = worker.hear().await else { panic!("no verdict") };
    assert!(!verdicts.verdicts[0].go_on);
    assert!(
        worker.report(&lease, result::example(0.9).into()).await.accepted,
        "its result, if it comes, is kept"
    );
}
