//! Holders of a worker token who say what cannot be: leases that they never had, numbers that no training gives, names that are
//! paths. Each is refused, and the attempt that it concerns ends with the reason.

use togl_proto::wire::{self, coordinator_message, worker_message};
use togl_sweeps::{FoldKey, result};
use tonic::Code;

use crate::hostile::Log;
use crate::played::{PlayedWorker, World, status, submit};

#[tokio::test]
async fn a_lease_cannot_be_replayed_and_what_was_never_leased_is_refused() {
    let log = Log::start("warn");
    let world = World::new().await;
    submit(&world).await;
    let mut honest = world.worker("honest", Vec::new()).await;
    let lease = honest.lease(1).await.remove(0);
    let mut thief = world.worker("thief", Vec::new()).await;
    for _ in 0..10 {
        let answer = thief.report(&lease, result::example(0.99).into()).await;
        assert!(!answer.accepted && answer.reason.contains("never gave"), "{answer:?}");
        let never = wire::Lease { attempt: 7, ..lease.clone() };
        assert!(!thief.report(&never, result::example(0.99).into()).await.accepted);
    }
    assert_eq!(log.count("refused a report"), 1, "{}", log.text());
    assert!(honest.report(&lease, result::example(0.5).into()).await.accepted);
    let replayed = honest.report(&lease, result::example(0.99).into()).await;
    assert!(replayed.accepted, "acknowledged, so that it stops");
    let rows = world.results("played").await;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].result.as_ref().unwrap().test.unwrap().accuracy, 0.5, "the first one stays");
}

#[tokio::test]
async fn impossible_numbers_are_refused_and_the_session_goes_on() {
    let world = World::new().await;
    submit(&world).await;
    let mut worker = world.worker("w1", Vec::new()).await;
    let lease = worker.lease(1).await.remove(0);
    for (loss, accuracy) in [
        (f64::NAN, 0.5),
        (f64::INFINITY, 0.5),
        (0.5, f64::NAN),
        (0.5, 1e300),
        (0.5, -0.1),
        (0.5, f64::NEG_INFINITY),
    ] {
        let mut wrong: wire::FoldResult = result::example(0.5).into();
        wrong.test = Some(wire::Metrics { loss, accuracy });
        let answer = worker.report(&lease, wrong).await;
        assert!(
            !answer.accepted && answer.reason.contains("not a possible value"),
            "{loss} {accuracy}: {answer:?}"
        );
    }
    assert!(worker.report(&lease, result::example(0.5).into()).await.accepted);
    assert_eq!(status(&world).await.finished, 1);
}

/// How the first attempt of a leased fold ended, as its history tells.
async fn ending(world: &World, lease: &wire::Lease) -> String {
    let fold = FoldKey::try_from(lease.fold.clone().unwrap()).unwrap().to_string();
    let history = world.operator().await.history(wire::HistoryRequest { fold }).await.unwrap().into_inner();
    history.entries.into_iter().find(|line| line.event == "ended").unwrap().detail
}

/// What no scheduler ever heard of used to leave the lease to run out: the worker was lost, and after three of them the fold
/// had killed its workers.
#[tokio::test]
async fn a_result_that_cannot_be_read_ends_its_attempt_with_the_reason_and_blames_nobody() {
    let world = World::new().await;
    submit(&world).await;
    let mut worker = world.worker("w1", Vec::new()).await;
    let leases = worker.lease(2).await;
    let mut beyond: wire::FoldResult = result::example(0.5).into();
    beyond.best_epoch = beyond.epochs;
    let answer = worker.report(&leases[0], beyond).await;
    assert!(!answer.accepted && !answer.keep && answer.reason.contains("best_epoch = 5"), "{answer:?}");
    assert!(ending(&world, &leases[0]).await.starts_with("report-refused"));

    let mut newer: wire::FoldResult = result::example(0.5).into();
    newer.version = result::RESULT_VERSION + 1;
    newer.validation = None; // nobody knows what a newer form may leave out
    let answer = worker.report(&leases[1], newer).await;
    assert!(!answer.accepted && answer.keep, "kept for a newer coordinator: {answer:?}");
    assert!(answer.reason.starts_with("upgrade the coordinator: result has version 3"), "{answer:?}");
    assert!(ending(&world, &leases[1]).await.starts_with("needs-upgrade"));
    let summary = status(&world).await;
    assert_eq!((summary.running, summary.failed), (0, 1), "no lease is left to run out");

    let world = world.restart().await;
    let mut worker = world.worker("w1", Vec::new()).await;
    assert!(worker.report(&leases[1], result::example(0.5).into()).await.accepted, "as if it were newer now");
    assert_eq!(status(&world).await.failed, 0);
}

#[tokio::test]
async fn a_failure_that_the_coordinator_does_not_know_ends_its_attempt_too() {
    let world = World::new().await;
    submit(&world).await;
    let mut worker = world.worker("w1", Vec::new()).await;
    let lease = worker.lease(1).await.remove(0);
    let failure = Some(wire::Failure { class: "struck-by-lightning".to_owned(), message: String::new() });
    let failure = wire::FailureReport { fold: lease.fold.clone(), attempt: lease.attempt, failure };
    let reports = wire::Reports { results: Vec::new(), failures: vec![failure] };
    worker.say(worker_message::Kind::Reports(reports)).await;
    let coordinator_message::Kind::Acknowledgements(acks) = worker.hear().await else { panic!("no answer") };
    let answer = &acks.acknowledgements[0];
    assert!(!answer.accepted && answer.keep && answer.reason.contains("`struck-by-lightning`"), "{answer:?}");
    assert!(ending(&world, &lease).await.starts_with("report-refused: upgrade the coordinator"));
}

#[tokio::test]
async fn names_that_could_be_paths_are_refused() {
    let world = World::new().await;
    for name in ["../../etc/passwd", "/root/x", "", "a b", "x\u{0}"] {
        let mut rude = PlayedWorker::connect(&world.address, &world.tokens.worker).await;
        let hello = wire::Hello { worker: name.to_owned(), slots: 1, ..wire::Hello::default() };
        rude.say(worker_message::Kind::Hello(hello)).await;
        assert_eq!(rude.incoming.message().await.unwrap_err().code(), Code::InvalidArgument, "{name:?}");
    }
}

#[tokio::test]
async fn a_worker_that_claims_to_run_everything_is_refused() {
    let world = World::new().await;
    let mut worker = world.worker("greedy", Vec::new()).await;
    let fold = wire::Fold { trial: "0".repeat(32), split: 0, seed: 0 };
    let running = |n| wire::Running { fold: Some(fold.clone()), attempt: 1, progress: None, slot: n };
    let running = (0..5_000).map(running).collect();
    worker.say(worker_message::Kind::Heartbeat(wire::Heartbeat { running })).await;
    assert_eq!(worker.incoming.message().await.unwrap_err().code(), Code::InvalidArgument);
}
