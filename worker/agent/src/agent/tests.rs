//! Stories of the agent without network and without trainers: what it says and what it orders when it is told to stop,
//! when results are acknowledged, when a trainer leaves by itself. The test plays coordinator and slot.

use std::sync::Mutex;

use togl_proto::wire::coordinator_message;
use togl_sweeps::{Failure, FailureClass, FoldResult, TrialConfig, result};

use super::*;
use crate::slots::SlotReport;

/// An agent with two slots, of which the first trains, and everything around it.
struct World {
    folder: tempfile::TempDir,
    link: mpsc::Sender<LinkEvent>,
    said: mpsc::Receiver<WorkerMessage>,
    orders: mpsc::Receiver<SlotOrder>,
    second_orders: mpsc::Receiver<SlotOrder>,
    /// Folds whose checkpoints were removed.
    tidied: Arc<Mutex<Vec<FoldKey>>>,
    slot: mpsc::Sender<SlotEvent>,
    progress: watch::Sender<Latest>,
    stop: mpsc::Sender<()>,
    agent: tokio::task::JoinHandle<()>,
    stopped: mpsc::Receiver<AgentEnd>,
}

fn trial() -> TrialConfig {
    TrialConfig { dataset: "cycles".to_owned(), ..TrialConfig::default() }
}

fn fold() -> FoldKey {
    FoldKey { trial: trial().id(), split: 0, seed: 1 }
}

fn from_coordinator(kind: coordinator_message::Kind) -> LinkEvent {
    LinkEvent::Message(Box::new(wire::CoordinatorMessage { kind: Some(kind) }))
}

impl World {
    /// Joined, and training attempt 1.
    async fn training(grace: Duration) -> Self {
        Self::living(grace, None).await
    }

    /// The same, with a time to live.
    async fn living(grace: Duration, life: Option<Life>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let spool = Spool::open(&folder.path().join("spool")).unwrap();
        let tidied = Arc::new(Mutex::new(vec![]));
        let (tidying, slots) = (tidied.clone(), 2);
        let tidy = Arc::new(move |fold| {
            tidying.lock().unwrap().push(fold);
            Ok(())
        });
        let identity = WorkerIdentity {
            worker: "w1".parse().unwrap(),
            host: "host".to_owned(),
            code_version: "1".to_owned(),
            devices: vec!["cpu".to_owned(); slots],
            memories: vec![0; slots],
            allocation: "slurm:7".to_owned(),
            moves_checkpoints: true,
            offers: vec![togl_sweeps::Capability::Programs],
        };
        let (order, orders) = mpsc::channel(8);
        let (second_order, second_orders) = mpsc::channel(8);
        let (progress, latest) = watch::channel(None);
        let channels = vec![(order, latest), (second_order, watch::channel(None).1)];
        let agent = Agent::new(identity, Habits { grace, idle_exit: None, life, tidy }, spool, channels);
        let (link, link_inbox) = mpsc::channel(64);
        let (slot, slot_inbox) = mpsc::channel(64);
        let (stop, stop_inbox) = mpsc::channel(1);
        let (ended, stopped) = mpsc::channel(1);
        let run = async move { drop(ended.send(agent.run(link_inbox, slot_inbox, stop_inbox).await).await) };
        let agent = crate::tasks::spawn("agent", run);
        let (outgoing, said) = mpsc::channel(64);
        link.send(LinkEvent::Open(outgoing)).await.unwrap();
        let mut world =
            Self { folder, link, said, orders, second_orders, tidied, slot, progress, stop, agent, stopped };
        world.lease().await;
        world
    }

    async fn lease(&mut self) {
        let welcome =
            wire::Welcome { incarnation: "store".to_owned(), heartbeat_ms: 60_000, ..Default::default() };
        self.link.send(from_coordinator(coordinator_message::Kind::Welcome(welcome))).await.unwrap();
        self.give(fold(), 0).await;
        assert!(matches!(self.orders.recv().await, Some(SlotOrder::Train(_))));
    }

    /// A lease on a fold, meant for a slot.
    async fn give(&self, fold: FoldKey, slot: u32) {
        let config = trial().canonical();
        let lease = wire::Lease { fold: Some(fold.into()), attempt: 1, config, slot, ..Default::default() };
        let leases = wire::Leases { leases: vec![lease] };
        self.link.send(from_coordinator(coordinator_message::Kind::Leases(leases))).await.unwrap();
    }

    async fn slot_says(&self, report: SlotReport) {
        let event = SlotEvent { slot: 0, fold: fold(), attempt: Attempt(1), report };
        self.slot.send(event).await.unwrap();
    }

    /// The next message that is no heartbeat and no request for leases, or nothing once the session is over.
    async fn hears(&mut self) -> Option<worker_message::Kind> {
        loop {
            match self.said.recv().await?.kind? {
                worker_message::Kind::Heartbeat(_)
                | worker_message::Kind::Hello(_)
                | worker_message::Kind::Ask(_) => {}
                other => return Some(other),
            }
        }
    }

    /// How many leases it asks for next.
    async fn asked(&mut self) -> u32 {
        loop {
            if let Some(worker_message::Kind::Ask(ask)) = self.said.recv().await.unwrap().kind {
                return ask.count;
            }
        }
    }

    /// The epoch in the next message about what is in training: joining again makes one due at once.
    async fn progress_heard(&mut self) -> Option<u32> {
        while self.said.try_recv().is_ok() {}
        let (outgoing, said) = mpsc::channel(64);
        self.said = said;
        self.link.send(LinkEvent::Open(outgoing)).await.unwrap();
        loop {
            if let Some(worker_message::Kind::Hello(hello)) = self.said.recv().await.unwrap().kind {
                return hello.running[0].progress.map(|progress| progress.epoch);
            }
        }
    }

    async fn ends(mut self) -> (AgentEnd, tempfile::TempDir) {
        self.link.send(LinkEvent::Lost("closed".to_owned())).await.unwrap();
        let stopped = self.stopped.recv().await.unwrap();
        self.agent.await.unwrap();
        (stopped, self.folder)
    }
}

fn preempted() -> Failure {
    Failure::new(FailureClass::Preempted, "stopped after epoch 4")
}

#[tokio::test]
async fn told_to_stop_it_lets_the_fold_save_gives_it_back_and_leaves() {
    let mut world = World::training(Duration::from_secs(3600)).await;
    world.stop.send(()).await.unwrap();
    assert!(matches!(world.orders.recv().await, Some(SlotOrder::Stop)));
    world.slot_says(SlotReport::Failed(preempted())).await;
    let Some(worker_message::Kind::Reports(reports)) = world.hears().await else { panic!("no report") };
    assert_eq!(reports.failures[0].failure.as_ref().unwrap().class, "preempted");
    assert!(matches!(world.hears().await, Some(worker_message::Kind::Goodbye(_))));
    let (stopped, folder) = world.ends().await;
    assert_eq!(stopped, AgentEnd::Asked);
    let spool = Spool::open(&folder.path().join("spool")).unwrap();
    assert_eq!(spool.all().count(), 0, "a preempted fold is nothing to report again later");
}

#[tokio::test]
async fn a_fold_that_takes_too_long_to_save_does_not_keep_the_worker() {
    let mut world = World::training(Duration::ZERO).await;
    world.stop.send(()).await.unwrap();
    assert!(matches!(world.orders.recv().await, Some(SlotOrder::Stop)));
    assert!(matches!(world.hears().await, Some(worker_message::Kind::Goodbye(_))));
    assert_eq!(world.ends().await.0, AgentEnd::Asked);
}

#[tokio::test(start_paused = true)]
async fn before_its_time_is_over_it_takes_nothing_new_then_saves_and_leaves() {
    let (lasts, margin) = (Duration::from_secs(3600), Duration::from_secs(600));
    let mut world = World::living(Duration::from_secs(60), Some(Life { lasts, margin })).await;
    let start = later(Duration::ZERO);
    let Some(worker_message::Kind::Hello(hello)) = world.said.recv().await.and_then(|said| said.kind) else {
        panic!()
    };
    assert_eq!((hello.seconds_left, hello.allocation.as_str()), (Some(3_600), "slurm:7"));
    assert!(hello.moves_checkpoints);
    assert_eq!(hello.offers, ["programs"]);
    while world.asked().await != 0 {}
    assert_eq!(start.elapsed().as_secs(), 3_000, "its request is taken back when only the margin is left");
    assert!(matches!(world.orders.recv().await, Some(SlotOrder::Stop)));
    assert_eq!(start.elapsed().as_secs(), 3_540, "what is in training goes on until saving must begin");
    world.slot_says(SlotReport::Failed(preempted())).await;
    assert!(matches!(world.hears().await, Some(worker_message::Kind::Reports(_))));
    assert!(matches!(world.hears().await, Some(worker_message::Kind::Goodbye(_))));
    assert_eq!(world.ends().await.0, AgentEnd::Asked);
}

#[tokio::test]
async fn another_start_of_a_coordinator_has_checkpoints_brought_again_and_the_same_one_has_not() {
    let mut world = World::training(Duration::from_secs(3600)).await;
    world.asked().await; // as it joined
    for (start, brings) in [(0, false), (7, false), (7, false), (8, true), (8, false), (0, false), (7, true)]
    {
        let incarnation = "store".to_owned();
        let welcome = wire::Welcome { incarnation, heartbeat_ms: 60_000, start, ..Default::default() };
        world.link.send(from_coordinator(coordinator_message::Kind::Welcome(welcome))).await.unwrap();
        world.asked().await; // the welcome has been heard
        let order = world.orders.try_recv();
        assert_eq!(matches!(order, Ok(SlotOrder::Bring)), brings, "start {start}: {order:?}");
        assert!(world.second_orders.try_recv().is_err(), "it trains nothing");
    }
}

#[tokio::test]
async fn told_twice_it_leaves_at_once() {
    let mut world = World::training(Duration::from_secs(3600)).await;
    world.stop.send(()).await.unwrap();
    world.stop.send(()).await.unwrap();
    assert!(matches!(world.hears().await, Some(worker_message::Kind::Goodbye(_))));
    assert_eq!(world.ends().await.0, AgentEnd::Asked);
}

#[tokio::test]
async fn cut_off_it_ends_and_keeps_what_nobody_acknowledged() {
    let mut world = World::training(Duration::from_secs(3600)).await;
    world.slot_says(SlotReport::Done(Box::new(result::example(0.5)))).await;
    assert!(matches!(world.hears().await, Some(worker_message::Kind::Reports(_))));
    let why = LinkRefusal::Token("the token was revoked".to_owned());
    world.link.send(LinkEvent::Refused(why.clone())).await.unwrap();
    assert_eq!(world.stopped.recv().await, Some(AgentEnd::Refused { why, kept: 1 }));
    world.agent.await.unwrap();
    let spool = Spool::open(&world.folder.path().join("spool")).unwrap();
    assert!(spool.has_result("store", fold(), Attempt(1)));
}

#[tokio::test]
async fn checkpoints_go_when_the_result_is_acknowledged_and_not_before() {
    let mut world = World::training(Duration::from_secs(3600)).await;
    world.slot_says(SlotReport::Done(Box::new(result::example(0.5)))).await;
    assert!(matches!(world.hears().await, Some(worker_message::Kind::Reports(_))));
    assert!(world.tidied.lock().unwrap().is_empty(), "reported is not acknowledged");
    let ack =
        wire::Acknowledgement { fold: Some(fold().into()), attempt: 1, accepted: true, ..Default::default() };
    let acks = wire::Acknowledgements { acknowledgements: vec![ack] };
    world.asked().await;
    world.link.send(from_coordinator(coordinator_message::Kind::Acknowledgements(acks))).await.unwrap();
    let welcome =
        wire::Welcome { incarnation: "store".to_owned(), heartbeat_ms: 60_000, ..Default::default() };
    world.link.send(from_coordinator(coordinator_message::Kind::Welcome(welcome))).await.unwrap();
    world.asked().await; // it has heard what was said before the welcome, whatever it looks at first
    world.stop.send(()).await.unwrap();
    assert!(matches!(world.hears().await, Some(worker_message::Kind::Goodbye(_))));
    let tidied = world.tidied.clone();
    world.ends().await;
    assert_eq!(*tidied.lock().unwrap(), [fold()]);
}

#[tokio::test]
async fn the_coordinator_hears_the_latest_epoch_of_the_attempt_in_training() {
    let mut world = World::training(Duration::from_secs(3600)).await;
    let metrics = result::Metrics { loss: 0.5, accuracy: 0.5 };
    let (train, validation) = (metrics, metrics);
    let report =
        |epoch| EpochReport { epoch, max_epochs: 9, lr: 0.1, train, validation, graphs_per_second: 1.0 };
    for (attempt, epoch) in [(1, 1), (1, 2), (1, 3)] {
        world.progress.send_replace(Some((fold(), Attempt(attempt), report(epoch))));
    }
    assert_eq!(world.progress_heard().await, Some(3), "what nobody looked at is replaced");
    world.progress.send_replace(Some((fold(), Attempt(7), report(8))));
    assert_eq!(world.progress_heard().await, None, "another attempt is not this one");
}

/// Somebody sent SIGTERM to the trainer alone: its fold goes back, and the worker asks for more.
#[tokio::test]
async fn a_trainer_that_leaves_by_itself_gives_its_fold_back_and_the_worker_stays() {
    let mut world = World::training(Duration::from_secs(3600)).await;
    world.slot_says(SlotReport::Failed(preempted())).await;
    assert!(matches!(world.hears().await, Some(worker_message::Kind::Reports(_))));
    world.lease().await;
    world.stop.send(()).await.unwrap();
    assert!(matches!(world.orders.recv().await, Some(SlotOrder::Stop)), "it was training again");
    world.slot_says(SlotReport::Abandoned).await;
    assert!(matches!(world.hears().await, Some(worker_message::Kind::Goodbye(_))));
    assert_eq!(world.ends().await.0, AgentEnd::Asked);
}

/// The coordinator knows which slot has the memory; the first free one may not.
#[tokio::test]
async fn a_lease_goes_to_the_slot_it_is_meant_for_or_to_a_free_one_or_back() {
    let mut world = World::training(Duration::from_secs(3600)).await;
    let [second, third, fourth] = [2, 3, 4].map(|seed| FoldKey { seed, ..fold() });
    world.give(second, 0).await;
    let Some(SlotOrder::Train(given)) = world.second_orders.recv().await else { panic!("the first is busy") };
    assert_eq!(given.fold, second);
    world.give(third, 1).await;
    let Some(worker_message::Kind::Reports(reports)) = world.hears().await else { panic!("no report") };
    assert_eq!(reports.failures[0].failure.as_ref().unwrap().class, "preempted", "no slot is free");
    for (slot, fold) in [(0, fold()), (1, second)] {
        let event = SlotEvent { slot, fold, attempt: Attempt(1), report: SlotReport::Abandoned };
        world.slot.send(event).await.unwrap();
    }
    while world.asked().await != 2 {}
    world.give(fourth, 1).await;
    let Some(SlotOrder::Train(given)) = world.second_orders.recv().await else {
        panic!("it was meant for it")
    };
    assert_eq!(given.fold, fourth);
}

#[tokio::test]
async fn a_worker_that_cannot_read_a_trial_says_so_and_asks_for_another() {
    let mut world = World::training(Duration::from_secs(3600)).await;
    let lease =
        wire::Lease { fold: Some(fold().into()), attempt: 2, config: "{}".to_owned(), ..Default::default() };
    let leases = wire::Leases { leases: vec![lease] };
    world.link.send(from_coordinator(coordinator_message::Kind::Leases(leases))).await.unwrap();
    let Some(worker_message::Kind::Reports(reports)) = world.hears().await else { panic!("no report") };
    assert_eq!(reports.failures[0].failure.as_ref().unwrap().class, "unreadable");
    assert_eq!(world.asked().await, 1, "its second slot is still free");
}

/// The address may lead to another coordinator one day, and back again.
#[tokio::test]
async fn a_result_waits_for_the_store_that_it_belongs_to() {
    let mut world = World::training(Duration::from_secs(3600)).await;
    let meet = |incarnation: &str| {
        let (outgoing, said) = mpsc::channel(64);
        let welcome =
            wire::Welcome { incarnation: incarnation.to_owned(), heartbeat_ms: 60_000, ..Default::default() };
        let welcome = from_coordinator(coordinator_message::Kind::Welcome(welcome));
        ([LinkEvent::Open(outgoing), welcome], said)
    };
    let (events, mut said) = meet("another store");
    for event in events {
        world.link.send(event).await.unwrap();
    }
    while !matches!(said.recv().await.unwrap().kind, Some(worker_message::Kind::Ask(_))) {}
    world.slot_says(SlotReport::Done(Box::new(result::example(0.5)))).await;
    loop {
        match said.recv().await.unwrap().kind {
            Some(worker_message::Kind::Ask(ask)) if ask.count == 2 => break, // the slot is free again
            Some(worker_message::Kind::Reports(_)) => panic!("it would be refused for good"),
            _ => {}
        }
    }
    let (events, said) = meet("store");
    world.said = said;
    for event in events {
        world.link.send(event).await.unwrap();
    }
    let Some(worker_message::Kind::Reports(reports)) = world.hears().await else { panic!("no report") };
    assert_eq!((reports.results.len(), reports.results[0].attempt), (1, 1));
}

/// A lease that no heartbeat names runs out, and somebody else trains the fold again.
#[tokio::test]
async fn a_heartbeat_names_what_is_in_training_and_in_which_slot() {
    let mut world = World::training(Duration::from_secs(3600)).await;
    let welcome = wire::Welcome { incarnation: "store".to_owned(), heartbeat_ms: 50, ..Default::default() };
    world.link.send(from_coordinator(coordinator_message::Kind::Welcome(welcome))).await.unwrap();
    loop {
        if let Some(worker_message::Kind::Heartbeat(heartbeat)) = world.said.recv().await.unwrap().kind {
            let named: Vec<_> = heartbeat.running.into_iter().map(|r| (r.fold, r.attempt, r.slot)).collect();
            return assert_eq!(named, [(Some(fold().into()), 1, 0)]);
        }
    }
}

fn answer(accepted: bool, keep: bool) -> LinkEvent {
    let reason = "upgrade the coordinator".to_owned();
    let ack = wire::Acknowledgement { fold: Some(fold().into()), attempt: 1, accepted, reason, keep };
    let acknowledgements = wire::Acknowledgements { acknowledgements: vec![ack] };
    from_coordinator(coordinator_message::Kind::Acknowledgements(acknowledgements))
}

#[tokio::test]
async fn a_result_that_the_coordinator_is_too_old_for_is_kept_and_told_again_in_the_next_session() {
    let mut world = World::training(Duration::from_secs(3600)).await;
    world.slot_says(SlotReport::Done(Box::new(result::example(0.5)))).await;
    assert!(matches!(world.hears().await, Some(worker_message::Kind::Reports(_))));
    world.link.send(answer(false, true)).await.unwrap();
    let (outgoing, said) = mpsc::channel(64);
    world.said = said;
    world.link.send(LinkEvent::Open(outgoing)).await.unwrap();
    let welcome =
        wire::Welcome { incarnation: "store".to_owned(), heartbeat_ms: 60_000, ..Default::default() };
    world.link.send(from_coordinator(coordinator_message::Kind::Welcome(welcome))).await.unwrap();
    let Some(worker_message::Kind::Reports(again)) = world.hears().await else { panic!("no report") };
    assert_eq!(again.results.len(), 1);
    assert_eq!(world.tidied.lock().unwrap().len(), 0, "its checkpoints stay too");
    world.stop.send(()).await.unwrap();
    assert!(matches!(world.hears().await, Some(worker_message::Kind::Goodbye(_))));
    let (_, folder) = world.ends().await;
    assert_eq!(
        Spool::open(&folder.path().join("spool")).unwrap().all().count(),
        1,
        "whoever comes next has it"
    );
}

#[tokio::test]
async fn a_result_that_contradicts_itself_is_never_sent() {
    let mut world = World::training(Duration::from_secs(3600)).await;
    let result = FoldResult { best_epoch: 99, ..result::example(0.5) };
    world.slot_says(SlotReport::Done(Box::new(result))).await;
    let Some(worker_message::Kind::Reports(reports)) = world.hears().await else { panic!("no report") };
    let failure = reports.failures[0].failure.as_ref().unwrap();
    assert_eq!(failure.class, "report-refused");
    assert!(failure.message.contains("best_epoch = 99"), "{failure:?}");
}
