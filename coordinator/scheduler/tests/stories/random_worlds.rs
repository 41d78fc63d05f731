//! Random worlds: any sequence of events, sensible or not, keeps all promises: at most one accepted result a
//! fold, no lease beyond the slots, nothing acknowledged lost in a restart, nothing stored that a restart
//! does not need (all checked by the world after every event), and an end once the faults stop.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use togl_scheduler::{Event, Lease};
use togl_sweeps::result::example;
use togl_sweeps::{Attempt, FailureClass, FoldKey};

use crate::world::{World, fold, info, submission, sweep, worker};

const SWEEPS: [&str; 3] = ["a", "b", "c"];
const WORKERS: [&str; 3] = ["w", "x", "y"];
const FOLDS: u32 = 6;

/// Something that may happen.
#[derive(Debug, Clone)]
enum Step {
    Submit {
        sweep: &'static str,
        folds: Vec<u32>,
        priority: i32,
        attempts: u32,
    },
    Cancel(&'static str),
    Pause(&'static str),
    Resume(&'static str),
    Retry(&'static str),
    /// The worker is back and says that it has some of what it was ever given.
    Join {
        worker: &'static str,
        slots: u32,
        listed: Vec<Index>,
    },
    Disconnect {
        worker: &'static str,
        stale: bool,
    },
    Leave {
        worker: &'static str,
        stale: bool,
    },
    Drain(&'static str),
    Ask {
        worker: &'static str,
        count: u32,
    },
    Renew {
        worker: &'static str,
        listed: Vec<Index>,
    },
    Report {
        lease: Index,
        accuracy: f64,
    },
    ReportNonsense {
        worker: &'static str,
        fold: u32,
        attempt: u32,
    },
    Fail {
        lease: Index,
        class: FailureClass,
    },
    Pass(u64),
    Restart,
}

fn a_step() -> impl Strategy<Value = Step> {
    let sweep = || select(&SWEEPS[..]);
    let worker = || select(&WORKERS[..]);
    let listed = || prop::collection::vec(any::<Index>(), 0..5);
    let folds = prop::collection::vec(0..FOLDS, 1..6);
    prop_oneof![
        3 => (sweep(), folds, -1..2, 1u32..12)
            .prop_map(|(sweep, folds, priority, attempts)| Step::Submit { sweep, folds, priority, attempts }),
        1 => sweep().prop_map(Step::Cancel),
        1 => sweep().prop_map(Step::Pause),
        1 => sweep().prop_map(Step::Resume),
        1 => sweep().prop_map(Step::Retry),
        4 => (worker(), 0u32..4, listed())
            .prop_map(|(worker, slots, listed)| Step::Join { worker, slots, listed }),
        2 => (worker(), any::<bool>()).prop_map(|(worker, stale)| Step::Disconnect { worker, stale }),
        1 => (worker(), any::<bool>()).prop_map(|(worker, stale)| Step::Leave { worker, stale }),
        1 => worker().prop_map(Step::Drain),
        6 => (worker(), 0u32..4).prop_map(|(worker, count)| Step::Ask { worker, count }),
        4 => (worker(), listed()).prop_map(|(worker, listed)| Step::Renew { worker, listed }),
        5 => (any::<Index>(), select(&[0.25, 0.5][..]))
            .prop_map(|(lease, accuracy)| Step::Report { lease, accuracy }),
        1 => (worker(), 0..FOLDS + 2, 0u32..9)
            .prop_map(|(worker, fold, attempt)| Step::ReportNonsense { worker, fold, attempt }),
        4 => (any::<Index>(), select(&FailureClass::ALL[..]))
            .prop_map(|(lease, class)| Step::Fail { lease, class }),
        4 => select(&[1, 1_000, 2_000, 7_500, 15_000, 60_000][..]).prop_map(Step::Pass),
        1 => Just(Step::Restart),
    ]
}

/// A world and every lease that was ever given in it.
#[derive(Default)]
struct Player {
    world: World,
    given: Vec<(&'static str, Lease)>,
}

impl Player {
    fn play(&mut self, step: Step) {
        match step {
            Step::Submit { sweep, folds, priority, attempts } => {
                let mut submission = submission(sweep, folds);
                submission.priority = priority;
                submission.limits.attempts = attempts;
                self.world.submit(submission);
            }
            Step::Cancel(name) => self.attempt(Event::Cancel { sweep: sweep(name) }),
            Step::Pause(name) => self.attempt(Event::Pause { sweep: sweep(name) }),
            Step::Resume(name) => self.attempt(Event::Resume { sweep: sweep(name) }),
            Step::Retry(name) => self.attempt(Event::Retry { sweep: sweep(name) }),
            Step::Join { worker: name, slots, listed } => {
                let (info, running) = (info(host(name), slots), self.listed(name, &listed));
                self.attempt(Event::WorkerJoined { worker: worker(name), info, running });
            }
            Step::Disconnect { worker: name, stale } => {
                let session = self.session(name, stale);
                self.attempt(Event::WorkerDisconnected { worker: worker(name), session });
            }
            Step::Leave { worker: name, stale } => {
                let session = self.session(name, stale);
                self.attempt(Event::WorkerLeft { worker: worker(name), session });
            }
            Step::Drain(name) => self.attempt(Event::Drain { worker: worker(name) }),
            Step::Ask { worker, count } => self.ask(worker, count),
            Step::Renew { worker: name, listed } => {
                let running = self.listed(name, &listed);
                self.attempt(Event::Renewed { worker: worker(name), running });
            }
            other => self.report(other),
        }
    }

    fn report(&mut self, step: Step) {
        match step {
            Step::Report { lease, accuracy } => {
                if let Some((name, lease)) = self.pick(&lease) {
                    self.world.report(name, &lease, accuracy);
                }
            }
            Step::ReportNonsense { worker, fold: n, attempt } => {
                self.world.report_result(worker, fold(n), Attempt(attempt), example(0.5));
            }
            Step::Fail { lease, class } => {
                if let Some((name, lease)) = self.pick(&lease) {
                    self.world.fail(name, &lease, class);
                }
            }
            Step::Pass(milliseconds) => self.world.pass(milliseconds),
            _ => self.world.restart(),
        }
    }

    /// The latest session of a worker, or one before it.
    fn session(&self, name: &str, stale: bool) -> u64 {
        self.world.session(name).saturating_sub(stale.into())
    }

    /// Tells the world something that may be rejected.
    fn attempt(&mut self, event: Event) {
        _ = self.world.try_tell(event);
    }

    fn ask(&mut self, name: &'static str, count: u32) {
        if self.world.scheduler.workers().iter().any(|view| view.worker == worker(name)) {
            let leases = self.world.leases(name, count);
            self.given.extend(leases.into_iter().map(|lease| (name, lease)));
        }
    }

    /// One of the leases that were given lately: old enough to be stale, young enough to matter.
    fn pick(&self, index: &Index) -> Option<(&'static str, Lease)> {
        let lately = &self.given[self.given.len().saturating_sub(8)..];
        (!lately.is_empty()).then(|| index.get(lately).clone())
    }

    /// What a worker says that it has: some of what it was ever given, and sometimes what others were given.
    fn listed(&self, name: &str, indices: &[Index]) -> Vec<(FoldKey, Attempt)> {
        let own: Vec<_> = self.given.iter().filter(|(holder, _)| *holder == name).collect();
        let picked = indices.iter().enumerate().filter_map(|(place, index)| match place {
            3 => self.pick(index).map(|(_, lease)| lease),
            _ => (!own.is_empty()).then(|| index.get(&own).1.clone()),
        });
        picked.map(|lease| (lease.fold, lease.attempt)).collect()
    }

    /// No more faults: whatever is left must end, with two healthy workers and a little time.
    fn end_well(&mut self) {
        for name in SWEEPS {
            self.attempt(Event::Resume { sweep: sweep(name) });
        }
        for round in 0..200 {
            if self.world.scheduler.sweeps().iter().all(|sweep| sweep.has_ended()) {
                return;
            }
            for name in ["h1", "h2"] {
                let mut info = info(host(name), 2);
                info.code_version = "the newest".to_owned(); // which reads every trial
                self.world.tell(Event::WorkerJoined { worker: worker(name), info, running: vec![] });
                for lease in self.world.leases(name, 2) {
                    self.world.report(name, &lease, 0.5);
                }
            }
            self.world.pass(1_000);
            assert!(round < 199, "sweeps that do not end: {:?}", self.world.scheduler.sweeps());
        }
    }
}

/// Two workers share a host.
fn host(name: &str) -> &str {
    if name == "x" { "w" } else { name }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn promises_hold_in_any_world_and_every_sweep_ends(steps in prop::collection::vec(a_step(), 1..120)) {
        let mut player = Player::default();
        for step in steps {
            player.play(step);
        }
        player.end_well();
    }
}
