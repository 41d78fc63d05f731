//! Whoever looks gets bounded answers, hears of changes from where he stopped, and holds up nobody.

use std::collections::BTreeMap;

use prost::Message;
use togl_proto::client::AuthorisedChannel;
use togl_proto::wire::sweeps_client::SweepsClient;
use togl_proto::wire::{self, coordinator_message, worker_message};
use togl_sweeps::result;
use tonic::Streaming;

use crate::observed::page;
use crate::played::{PlayedWorker, World, submit};

type Viewer = SweepsClient<AuthorisedChannel>;

async fn watch(viewer: &mut Viewer, sweep: &str) -> Result<Streaming<wire::SweepStatus>, tonic::Status> {
    Ok(viewer.watch(wire::StatusRequest { sweep: sweep.to_owned() }).await?.into_inner())
}

async fn follow(viewer: &mut Viewer, cursor: Option<wire::Cursor>) -> Streaming<wire::Following> {
    let request = wire::FollowRequest { sweep: "played".to_owned(), cursor };
    viewer.follow(request).await.unwrap().into_inner()
}

/// Reads until so many folds are finished: the folds that changed as they are now, and the last cursor.
async fn until_finished(
    changes: &mut Streaming<wire::Following>,
    finished: u64,
) -> (BTreeMap<String, String>, Option<wire::Cursor>) {
    let mut known = BTreeMap::new();
    loop {
        let next = changes.message().await.unwrap().unwrap();
        assert!(!next.start_over, "nothing was missed");
        known.extend(next.folds.into_iter().map(|fold| (format!("{:?}", fold.fold), fold.state)));
        if next.summary.unwrap().finished == finished {
            return (known, next.cursor);
        }
    }
}

/// Fails everything of a sweep, each fold with another long message.
async fn fail_all(worker: &mut PlayedWorker, folds: usize) {
    let letters = |number: usize| char::from(b'a' + (number % 26) as u8).to_string();
    let mut failed = 0;
    while failed < folds {
        let leases = worker.lease(2).await;
        let failures = leases.iter().map(|lease| {
            failed += 1;
            let message = letters(failed).repeat(40_000);
            let failure = Some(wire::Failure { class: "config".to_owned(), message });
            wire::FailureReport { fold: lease.fold.clone(), attempt: lease.attempt, failure }
        });
        let reports = wire::Reports { results: Vec::new(), failures: failures.collect() };
        worker.say(worker_message::Kind::Reports(reports)).await;
        assert!(matches!(worker.hear().await, coordinator_message::Kind::Acknowledgements(_)));
    }
}

#[tokio::test]
async fn more_failures_than_fit_into_a_message_are_counted_and_shown_in_part() {
    let world = World::new().await;
    let yaml = "version: 1\nname: doomed\nbase: {dataset: necklaces}\nsplits: {from: 0, to: 499}\n";
    let request = wire::SubmitRequest { yaml: yaml.to_owned(), ..Default::default() };
    world.operator().await.submit(request).await.unwrap();
    fail_all(&mut world.worker("w1", Vec::new()).await, 500).await; // 20 MB of messages
    let mut viewer = world.viewer().await;
    let request = wire::StatusRequest { sweep: "doomed".to_owned() };
    let status = viewer.status(request).await.unwrap().into_inner();
    assert_eq!((status.summary.as_ref().unwrap().failed, status.failures.len()), (500, 100));
    assert_eq!(status.failed_by_class, [wire::ClassCount { class: "config".to_owned(), folds: 500 }]);
    assert!(status.encoded_len() < 1 << 20, "{} bytes", status.encoded_len());
    let seen = watch(&mut viewer, "doomed").await.unwrap().message().await.unwrap().unwrap();
    assert_eq!((seen.yaml.as_str(), seen.failures), ("", status.failures));
}

#[tokio::test]
async fn who_follows_goes_on_where_he_stopped_and_starts_over_after_a_restart() {
    let world = World::new().await;
    submit(&world).await;
    let mut worker = world.worker("w1", Vec::new()).await;
    let mut changes = follow(&mut world.viewer().await, None).await;
    let first = changes.message().await.unwrap().unwrap();
    assert!(first.start_over && first.folds.is_empty());
    drop(changes);
    let leases = worker.lease(2).await;
    assert!(worker.report(&leases[0], result::example(0.5).into()).await.accepted);
    let mut changes = follow(&mut world.viewer().await, first.cursor.clone()).await;
    let (known, _) = until_finished(&mut changes, 1).await;
    let mut states: Vec<&str> = known.values().map(String::as_str).collect();
    states.sort_unstable();
    assert_eq!(states, ["finished", "running"]);
    assert!(worker.report(&leases[1], result::example(0.5).into()).await.accepted);
    let (known, last) = until_finished(&mut changes, 2).await;
    assert!(known.values().eq(["finished"]), "{known:?}");
    drop((changes, worker));
    let world = world.restart().await;
    let again = follow(&mut world.viewer().await, last).await.message().await.unwrap().unwrap();
    assert!(again.start_over, "numbers of an earlier start mean nothing");
}

#[tokio::test]
async fn viewers_that_never_read_hold_up_nobody() {
    let world = World::new().await;
    submit(&world).await;
    let mut lazy = world.viewer().await;
    let mut unread = Vec::new();
    for _ in 0..50 {
        unread.push((watch(&mut lazy, "played").await.unwrap(), follow(&mut lazy, None).await));
    }
    let mut reader = world.viewer().await;
    let (mut states, mut changes) =
        (watch(&mut reader, "played").await.unwrap(), follow(&mut reader, None).await);
    let mut worker = world.worker("w1", Vec::new()).await;
    for _ in 0..2 {
        for lease in worker.lease(2).await {
            assert!(worker.report(&lease, result::example(0.5).into()).await.accepted);
        }
    }
    let mut last = None;
    while let Some(state) = states.message().await.unwrap() {
        last = state.summary;
    }
    assert_eq!(last.unwrap().finished, 4, "the last state is the final one");
    let mut finished = 0;
    while let Some(change) = changes.message().await.unwrap() {
        finished = change.summary.unwrap().finished;
    }
    assert_eq!((finished, unread.len()), (4, 50));
}

#[tokio::test]
async fn a_crowd_that_watches_costs_a_look_each_to_come_in_and_no_more() {
    let world = World::with(|settings| settings.metrics = Some(([127, 0, 0, 1], 0).into())).await;
    submit(&world).await;
    let mut crowd = Vec::new();
    let mut viewer = world.viewer().await;
    for _ in 0..100 {
        crowd.push(watch(&mut viewer, "played").await.unwrap());
    }
    for states in &mut crowd {
        states.message().await.unwrap().unwrap();
    }
    let page = page(world.metrics.unwrap(), "/metrics").await;
    let looks = page.lines().find_map(|line| line.strip_prefix("togl_looks ")).unwrap();
    let looks: u32 = looks.parse().unwrap();
    assert!((100..160).contains(&looks), "{looks} looks for 100 streams");
}

#[tokio::test]
async fn a_status_says_why_nothing_happens() {
    let world = World::new().await;
    submit(&world).await;
    let mut operator = world.operator().await;
    let request = wire::StatusRequest { sweep: "played".to_owned() };
    let status = operator.status(request.clone()).await.unwrap().into_inner();
    assert_eq!(status.standstill, "no worker is connected; start one with `togl-worker join`");
    operator.pause(wire::PauseRequest { sweep: "played".to_owned() }).await.unwrap();
    let status = operator.status(request).await.unwrap().into_inner();
    assert_eq!((status.standstill.as_str(), status.eta_seconds), ("it is paused; `togl resume` goes on", 0));
}
