//! Stories of a slot and its trainer. The trainers are small shell scripts that do what real ones do on bad days.

use std::os::unix::fs::PermissionsExt;

use togl_sweeps::{TrialId, result::Metrics};

use super::*;

/// Nothing here awaits: were a trainer's output read only as fast as the agent listens, this would not end.
#[test]
fn an_agent_that_does_not_listen_never_slows_training_and_then_sees_the_latest_epoch() {
    let (events, mut inbox) = mpsc::channel(4);
    let (latest, seen) = watch::channel(None);
    let fold = FoldKey { trial: TrialId::from_bytes([1; 16]), split: 0, seed: 7 };
    let reporter = Reporter { slot: 0, fold, attempt: Attempt(2), events, latest };
    for epoch in 1..=1000 {
        let metrics = Metrics { loss: 1.0, accuracy: 0.5 };
        let report = EpochReport {
            epoch,
            max_epochs: 1000,
            lr: 0.1,
            train: metrics,
            validation: metrics,
            graphs_per_second: 9.0,
        };
        let line = protocol::line(&TrainerEvent::Epoch(report)).unwrap();
        assert!(matches!(understand(&line, &reporter), Step::Told));
        assert!(matches!(understand("a library says hello", &reporter), Step::Told));
    }
    let (of, attempt, report) = seen.borrow().unwrap();
    assert_eq!((of, attempt, report.epoch), (fold, Attempt(2), 1000));
    let mut lines = 0;
    while inbox.try_recv().is_ok() {
        lines += 1;
    }
    assert_eq!(lines, 4, "the log is bounded");
}

#[test]
fn a_trainer_that_died_for_want_of_memory_is_told_from_one_that_crashed() {
    let class = |words: &str| ending(None, words).class;
    assert_eq!(class("memory allocation of 8589934592 bytes failed"), FailureClass::OutOfMemory);
    assert_eq!(class("  what():  std::bad_alloc"), FailureClass::OutOfMemory);
    assert_eq!(class("Segmentation fault"), FailureClass::Crashed);
    assert_eq!(over_time(Duration::from_secs(5)).class, FailureClass::TimeLimit);
    assert!(ending(None, "epoch 3 of 9").message.contains("its last words: epoch 3 of 9"));
}

/// A slot whose trainer is this script; the request for the fold has been read when it begins.
struct World {
    folder: tempfile::TempDir,
    orders: mpsc::Sender<SlotOrder>,
    events: mpsc::Receiver<SlotEvent>,
    pause: watch::Sender<bool>,
}

impl World {
    fn new(script: &str, save_every: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("trainer");
        std::fs::write(&program, format!("#!/bin/sh\nread request\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
        let (orders, inbox) = mpsc::channel(8);
        let (sender, events) = mpsc::channel(64);
        let (data, keeping) = (Data::default(), Keeping::default());
        let (pause, pauses) = watch::channel(false);
        let pauses = Some(Pauses::new(pauses));
        let program = TrainerProgram {
            path: program,
            threads: THREADS,
            data,
            keeping,
            save_every,
            moving: None,
            pauses,
            programs: None,
        };
        togl_agent::tasks::spawn("slot", run(0, program, inbox, sender, watch::channel(None).0));
        Self { folder, orders, events, pause }
    }

    /// Waits until the trainer, which has written its number down, is in this state of the kernel's letters.
    async fn until_trainer_is(&self, state: char) {
        let is = |number: String| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", number.trim())).unwrap_or_default();
            stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(state))
        };
        while !std::fs::read_to_string(self.folder.path().join("number")).is_ok_and(is) {
            tokio::task::yield_now().await;
        }
    }

    async fn train(&self, time_limit: Option<Duration>) {
        let fold = FoldKey { trial: TrialId::from_bytes([1; 16]), split: 0, seed: 7 };
        let (trial, device, attempt) = (togl_sweeps::TrialConfig::default(), "cpu".to_owned(), Attempt(1));
        let assignment = Assignment { fold, attempt, trial, device, time_limit, held: None };
        self.orders.send(SlotOrder::Train(Box::new(assignment))).await.unwrap();
    }

    async fn failure(&mut self) -> Failure {
        loop {
            match self.events.recv().await.unwrap().report {
                SlotReport::Log(_) => {}
                SlotReport::Failed(failure) => return failure,
                other => panic!("{other:?}"),
            }
        }
    }
}

const LONG: Duration = Duration::from_secs(3600);
const THREADS: u32 = 3;

#[tokio::test]
async fn a_trainer_is_told_how_many_threads_its_slot_has() {
    let words = r#"echo "{\"failed\":{\"class\":\"error\",\"message\":\"$* $OMP_NUM_THREADS\"}}"; read more"#;
    let mut world = World::new(words, LONG);
    world.train(None).await;
    assert_eq!(world.failure().await.message, "trainer --background --threads 3 3");
}

#[tokio::test]
async fn every_way_to_die_has_its_class_and_the_slot_goes_on_with_a_new_trainer() {
    let ways = [
        ("exit 3", FailureClass::Crashed, "exit status: 3"),
        ("kill -SEGV $$", FailureClass::Crashed, "signal: 11"),
        ("kill -9 $$", FailureClass::Crashed, "ran out of memory"),
        (
            "echo 'memory allocation of 99 bytes failed' >&2; kill -ABRT $$",
            FailureClass::OutOfMemory,
            "99 bytes",
        ),
        (
            "echo '{\"failed\":{\"class\":\"not-finite\",\"message\":\"loss\"}}'; read more",
            FailureClass::NotFinite,
            "loss",
        ),
    ];
    for (script, class, word) in ways {
        let mut world = World::new(script, LONG);
        for _ in 0..2 {
            world.train(None).await;
            let failure = world.failure().await;
            assert_eq!(failure.class, class, "{script}: {failure}");
            assert!(failure.message.contains(word), "{script}: {failure}");
            if class == FailureClass::NotFinite {
                break; // this trainer lives on, and its script ends
            }
        }
        assert!(world.folder.path().exists());
    }
}

#[tokio::test]
async fn a_fold_over_its_time_is_killed_and_the_time_begins_when_the_data_is_there() {
    let mut world = World::new("exec sleep 1000", LONG);
    world.train(Some(Duration::from_millis(1))).await;
    assert_eq!(world.failure().await.class, FailureClass::TimeLimit);
    let mut world = World::new("echo '\"started\"'; exec sleep 1000", LONG);
    world.train(Some(Duration::from_millis(1))).await;
    assert_eq!(world.failure().await.class, FailureClass::TimeLimit);
}

/// The script answers a wish by failing in its name.
const OBEYS: &str = r#"while read wish; do
case $wish in
'"save"') echo '{"failed":{"class":"error","message":"asked to save"}}' ;;
'"stop"') echo '{"failed":{"class":"preempted","message":"asked to stop"}}' ;;
esac
done"#;

#[tokio::test]
async fn a_trainer_is_asked_to_save_from_time_to_time_and_to_stop_when_the_worker_leaves() {
    let mut world = World::new(OBEYS, Duration::ZERO);
    world.train(None).await;
    assert_eq!(world.failure().await.message, "asked to save");
    let mut world = World::new(OBEYS, LONG);
    world.train(None).await;
    world.orders.send(SlotOrder::Stop).await.unwrap();
    assert_eq!(world.failure().await, Failure::new(FailureClass::Preempted, "asked to stop"));
    world.train(None).await; // a trainer that was told to stop is replaced
    world.orders.send(SlotOrder::Stop).await.unwrap();
    assert_eq!(world.failure().await.class, FailureClass::Preempted);
}

/// As [`OBEYS`], and it writes down which process it is.
fn obeys_by_number() -> String {
    format!(
        "echo $$ > \"$(dirname \"$0\")/number.new\"; mv \"$(dirname \"$0\")\"/number.new \"$(dirname \"$0\")\"/number\n{OBEYS}"
    )
}

#[tokio::test]
async fn a_paused_trainer_stands_still_and_goes_on_and_can_be_told_to_leave() {
    let mut world = World::new(&obeys_by_number(), LONG);
    world.train(None).await;
    world.until_trainer_is('S').await;
    world.pause.send(true).unwrap();
    world.until_trainer_is('T').await;
    world.pause.send(false).unwrap();
    world.until_trainer_is('S').await;
    world.pause.send(true).unwrap();
    world.until_trainer_is('T').await;
    world.orders.send(SlotOrder::Stop).await.unwrap();
    assert_eq!(world.failure().await, Failure::new(FailureClass::Preempted, "asked to stop"));
}

#[tokio::test]
async fn the_time_of_a_fold_does_not_run_and_nobody_asks_it_to_save_while_it_is_paused() {
    let mut world = World::new(&obeys_by_number(), Duration::ZERO);
    let limit = Duration::from_millis(300);
    world.train(Some(limit)).await;
    world.pause.send(true).unwrap();
    let waited = AgentClock::start();
    while waited.seconds() < 2.0 * limit.as_secs_f64() {
        assert!(world.events.try_recv().is_err(), "it neither saved nor ran out of time");
        tokio::task::yield_now().await;
    }
    world.pause.send(false).unwrap();
    assert_eq!(world.failure().await.message, "asked to save");
}
