//! What can be seen of a coordinator: metrics, histories, replicates, drained workers, a gentle end.

use togl_coordinator::tokens::Role;
use togl_proto::wire::fact::Kind;
use togl_proto::wire::{self, coordinator_message, worker_message};
use togl_sweeps::result;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;

use crate::played::{self, World, status, submit};

pub async fn page(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn prometheus_finds_folds_leases_workers_and_commit_times() {
    let world = World::with(|settings| settings.metrics = Some(([127, 0, 0, 1], 0).into())).await;
    let metrics = world.metrics.unwrap();
    submit(&world).await;
    let mut worker = world.worker("w1", Vec::new()).await;
    let leases = worker.lease(2).await;
    assert!(worker.report(&leases[0], result::example(0.5).into()).await.accepted);
    let text = page(metrics, "/metrics").await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    for line in [
        "togl_folds{state=\"pending\"} 2",
        "togl_folds{state=\"running\"} 1",
        "togl_folds{state=\"finished\"} 1",
        "togl_leases 1",
        "togl_workers{state=\"connected\"} 1",
        "togl_leases_given_total 2",
        "togl_leases_expired_total 0",
        "togl_results_accepted_total 1",
        "# TYPE togl_commit_seconds histogram",
        "togl_queue_age_seconds ",
        "# EOF",
    ] {
        assert!(text.contains(line), "no `{line}` in\n{text}");
    }
    let commits = text.lines().find_map(|line| line.strip_prefix("togl_commit_seconds_count ")).unwrap();
    assert!(commits.parse::<u64>().unwrap() >= 3);
    assert!(page(metrics, "/").await.starts_with("HTTP/1.1 404"));
}

/// A second attempt of a fold: its first worker is silent while another one takes over.
async fn second_attempt(world: &World, lost: &wire::Lease) -> (played::PlayedWorker, wire::Lease) {
    let failure = wire::Failure { class: "crashed".to_owned(), message: "on purpose".to_owned() };
    let report =
        wire::FailureReport { fold: lost.fold.clone(), attempt: lost.attempt, failure: Some(failure) };
    let mut first = world.worker("w1", Vec::new()).await;
    let reports = wire::Reports { results: Vec::new(), failures: vec![report] };
    first.say(worker_message::Kind::Reports(reports)).await;
    assert!(matches!(first.hear().await, coordinator_message::Kind::Acknowledgements(_)));
    let mut second = world.worker("w2", Vec::new()).await;
    loop {
        for lease in second.lease(2).await {
            if lease.fold == lost.fold {
                return (second, lease);
            }
            assert!(second.report(&lease, result::example(0.25).into()).await.accepted);
        }
    }
}

/// A fold that failed once, was finished by `w2`, and got a late result of `w1`. Gives the lease of `w1`.
async fn twice_trained(world: &World) -> wire::Lease {
    submit(world).await;
    let running = world.worker("w1", Vec::new()).await.lease(1).await.remove(0);
    let (mut second, lease) = second_attempt(world, &running).await;
    assert!(second.report(&lease, result::example(0.75).into()).await.accepted);
    // The first worker was only slow: what it found is kept beside the result and compared.
    let mut late = world.worker("w1", Vec::new()).await;
    let mut other = result::example(0.5);
    other.test.loss = 0.625;
    assert!(late.report(&running, other.into()).await.accepted);
    running
}

#[tokio::test]
async fn replicates_are_listed_with_their_differences() {
    let world = World::new().await;
    let running = twice_trained(&world).await;
    let mut viewer = world.viewer().await;
    for sweep in ["played", ""] {
        let request = wire::ReadRequest { sweep: sweep.to_owned(), replicates: true, ..Default::default() };
        let facts = played::read(&mut viewer, request).await;
        let [Kind::Sweep(text), Kind::Replicate(row), Kind::Done(_)] = &facts[..] else {
            panic!("{facts:?}")
        };
        assert_eq!(text.name, "played");
        assert_eq!((row.attempt, row.worker.as_str(), row.kind.as_str()), (1, "w1", "replicate"));
        assert_eq!((&row.fold, row.accepted_attempt), (&running.fold, 2));
        let fields: Vec<(&str, f64)> =
            row.differences.iter().map(|d| (d.field.as_str(), d.distance)).collect();
        assert!(
            fields.contains(&("test.loss", 0.125)) && fields.contains(&("test.accuracy", 0.25)),
            "{fields:?}"
        );
    }
    let unknown = wire::ReadRequest { sweep: "plaid".to_owned(), ..Default::default() };
    assert_eq!(viewer.read(unknown).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn the_results_of_named_folds_come_alone_and_with_their_curves_if_wanted() {
    let world = World::new().await;
    let fold = twice_trained(&world).await.fold.unwrap();
    let mut viewer = world.viewer().await;
    let missing = wire::Fold { split: 4_000, ..fold.clone() };
    let named = |curves| wire::ReadRequest {
        sweep: "played".to_owned(),
        results: true,
        curves,
        results_of: vec![missing.clone(), fold.clone()],
        ..Default::default()
    };
    for curves in [false, true] {
        let facts = played::read(&mut viewer, named(curves)).await;
        let [Kind::Sweep(_), Kind::Result(row), Kind::Done(_)] = &facts[..] else { panic!("{facts:?}") };
        assert_eq!((row.fold.as_ref(), row.attempt), (Some(&fold), 2), "who has no result is left out");
        let length = row.result.as_ref().unwrap().history.len();
        assert_eq!(length > 0, curves, "{length} epochs");
    }
    let many = wire::ReadRequest { results_of: vec![fold.clone(); 1_001], ..named(false) };
    assert_eq!(viewer.read(many).await.unwrap_err().code(), Code::InvalidArgument);
    let wrong = wire::Fold { trial: "no id".to_owned(), ..missing.clone() };
    let wrong = wire::ReadRequest { results_of: vec![wrong], ..named(false) };
    assert_eq!(viewer.read(wrong).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn a_fold_tells_its_history() {
    let world = World::new().await;
    let fold = twice_trained(&world).await.fold.unwrap();
    let fold = format!("{}/{}/{}", &fold.trial[..12], fold.split, fold.seed);
    let told = world.viewer().await.history(wire::HistoryRequest { fold }).await.unwrap().into_inner();
    let words: Vec<(&str, u32, &str)> = told
        .entries
        .iter()
        .map(|entry| (entry.event.as_str(), entry.attempt, entry.worker.as_str()))
        .collect();
    let expected = [
        ("submitted", 0, ""),
        ("leased", 1, "w1"),
        ("ended", 1, "w1"),
        ("leased", 2, "w2"),
        ("accepted", 2, "w2"),
        ("replicate", 1, "w1"),
    ];
    assert_eq!(words, expected);
    assert!(
        told.entries[2].detail.contains("preempted: the worker came back without it"),
        "{:?}",
        told.entries[2]
    );
}

#[tokio::test]
async fn a_drained_worker_finishes_and_is_told_to_leave() {
    let world = World::new().await;
    submit(&world).await;
    let mut worker = world.worker("w1", Vec::new()).await;
    let lease = worker.lease(1).await.remove(0);
    let mut operator = world.operator().await;
    let drain = |worker: &str, undo| wire::DrainRequest { worker: worker.to_owned(), undo };
    let refused = operator.drain(drain("w2", false)).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    assert!(refused.message().contains("`w2`"), "{refused}");
    assert_eq!(operator.drain(drain("", false)).await.unwrap().into_inner().workers, ["w1"]);
    assert!(worker.report(&lease, result::example(0.5).into()).await.accepted, "what runs is finished");
    worker.say(worker_message::Kind::Ask(wire::LeaseRequest { count: 1 })).await;
    assert!(matches!(worker.hear().await, coordinator_message::Kind::Leave(_)));
    assert_eq!(operator.drain(drain("w1", true)).await.unwrap().into_inner().workers, ["w1"]);
    assert_eq!(worker.lease(1).await.len(), 1, "it may stay after all");
}

#[tokio::test]
async fn a_drained_worker_is_listed_as_draining_after_a_restart_of_the_coordinator() {
    let world = World::new().await;
    submit(&world).await;
    let worker = world.worker("w1", Vec::new()).await;
    let drain = |undo| wire::DrainRequest { worker: "w1".to_owned(), undo };
    world.operator().await.drain(drain(false)).await.unwrap();
    drop(worker);
    let world = world.restart().await;
    let mut operator = world.operator().await;
    let worker = world.worker("w1", Vec::new()).await;
    let listed = operator.list_workers(wire::ListWorkersRequest {}).await.unwrap().into_inner().workers;
    assert_eq!((listed[0].worker.as_str(), listed[0].state.as_str()), ("w1", "draining"));
    drop(worker);
    let world = world.restart().await;
    let mut operator = world.operator().await;
    let undone = operator.drain(drain(true)).await.unwrap().into_inner().workers;
    assert_eq!(undone, ["w1"], "also while it is away");
    let mut worker = world.worker("w1", Vec::new()).await;
    assert_eq!(worker.lease(1).await.len(), 1);
}

#[tokio::test]
async fn an_archived_sweep_is_out_of_sight_and_its_results_are_kept() {
    let world = World::new().await;
    submit(&world).await;
    let mut operator = world.operator().await;
    let sweep = || "played".to_owned();
    let priority = wire::PrioritiseRequest { sweep: sweep(), priority: 7 };
    operator.prioritise(priority).await.unwrap();
    assert_eq!(status(&world).await.priority, 7);
    operator.archive(wire::ArchiveRequest { sweep: sweep() }).await.unwrap();
    let mut listed = async |archived| {
        let request = wire::ListSweepsRequest { archived };
        operator.list_sweeps(request).await.unwrap().into_inner().sweeps.len()
    };
    assert_eq!((listed(false).await, listed(true).await), (0, 1));
    submit(&world).await;
    assert_eq!(status(&world).await.state, "active", "submitting it again brings it back");
}

#[tokio::test]
async fn a_stop_ends_streams_well_and_keeps_what_was_acknowledged() {
    let world = World::new().await;
    submit(&world).await;
    let mut worker = world.worker("w1", Vec::new()).await;
    let lease = worker.lease(1).await.remove(0);
    assert!(worker.report(&lease, result::example(0.5).into()).await.accepted);
    let mut viewer = world.viewer().await;
    let mut states =
        viewer.watch(wire::StatusRequest { sweep: "played".to_owned() }).await.unwrap().into_inner();
    states.message().await.unwrap();
    // Asserts that the coordinator ends without an error although two streams are open.
    let world = world.restart().await;
    while let Ok(Some(_)) = states.message().await {}
    while let Ok(Some(_)) = worker.incoming.message().await {}
    assert_eq!(status(&world).await.finished, 1);
}

#[tokio::test]
async fn a_viewer_sees_and_cannot_touch() {
    let world = World::new().await;
    submit(&world).await;
    let mut viewer = world.viewer().await;
    let listed = viewer.list_sweeps(wire::ListSweepsRequest::default()).await.unwrap().into_inner();
    assert_eq!(listed.sweeps.len(), 1);
    let refused = viewer.cancel(wire::CancelRequest { sweep: "played".to_owned() }).await.unwrap_err();
    assert_eq!(refused.message(), "this call needs an operator token, and this is a viewer token");
    assert_eq!(world.token(Role::Viewer, None).1.role, Role::Viewer);
}
