//! The scheduler against a tiny model, as a state machine that proptest drives and shrinks. The model knows what
//! people asked of sweeps and who was given which attempt; it predicts every answer to a report, which folds are
//! finished, and what may be leased at all. The world around the scheduler checks its invariants, and that a
//! store with every committed change holds what a restart needs, after each step.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::Index;
use proptest_state_machine::{StateMachineTest, prop_state_machine};
use togl_scheduler::{Connection, Event, FailureAnswer, FoldState, Lease, Limits, Reply, ResultAnswer};
use togl_sweeps::result::example;
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey};

use crate::asked::{FOLDS, Model, Step};
use crate::world::{World, fold, info, submission, sweep, worker};

/// What the model learns from answers about one fold.
#[derive(Default)]
struct Known {
    /// To whom each attempt was given, the first one first.
    attempts: Vec<&'static str>,
    accepted: Option<(Attempt, u64)>,
    /// What each attempt reported first.
    reported: BTreeMap<Attempt, u64>,
}

/// The scheduler in its world, and what the model learnt from its answers.
struct Tested {
    world: World,
    given: Vec<(&'static str, Lease)>,
    known: BTreeMap<FoldKey, Known>,
    /// Who was told to drain and neither left nor was told otherwise since, restarts or not.
    draining: BTreeSet<&'static str>,
}

impl Tested {
    /// Tells the scheduler something that may be rejected.
    fn attempt(&mut self, event: Event) -> bool {
        self.world.try_tell(event).is_ok()
    }

    fn is_here(&self, name: &str) -> bool {
        self.world.scheduler.workers().iter().any(|view| view.worker == worker(name))
    }

    /// What a worker would say it has: its current leases.
    fn in_hand(&self, name: &str) -> Vec<(FoldKey, Attempt)> {
        let running = |lease: &Lease| {
            let state = self.world.state(lease.fold);
            matches!(state, FoldState::Running { attempt, worker: holder } if attempt == lease.attempt && holder == worker(name))
        };
        let own = self.given.iter().filter(|(holder, lease)| *holder == name && running(lease));
        own.map(|(_, lease)| (lease.fold, lease.attempt)).collect()
    }

    fn pick(&self, index: &Index) -> Option<(&'static str, Lease)> {
        let lately = &self.given[self.given.len().saturating_sub(8)..];
        (!lately.is_empty()).then(|| index.get(lately).clone())
    }

    fn ask(&mut self, model: &Model, name: &'static str, count: u32) {
        if !self.is_here(name) {
            return;
        }
        let untouched: Vec<FoldKey> = (0..FOLDS).map(fold).filter(|key| self.is_untouched(*key)).collect();
        let reply = self.world.tell(Event::LeasesAsked { worker: worker(name), count });
        let draining = self.draining.contains(name);
        let Reply::Leases(leases) = reply else { return assert_eq!((reply, draining), (Reply::Leave, true)) };
        assert!(leases.is_empty() || !draining, "a draining worker gets nothing new");
        assert!(leases.len() <= count as usize);
        let mut last = i32::MAX;
        for lease in leases {
            let known = self.known.entry(lease.fold).or_default();
            let priority = model.priority(lease.fold);
            let priority = priority.unwrap_or_else(|| panic!("no active sweep wants {}", lease.fold.short()));
            assert_eq!(known.accepted, None, "it has a result");
            known.attempts.push(name);
            assert_eq!(lease.attempt.0 as usize, known.attempts.len(), "attempts count up");
            assert!(priority <= last, "a higher priority goes first");
            let better = untouched
                .iter()
                .filter(|key| self.known.get(key).is_none_or(|known| known.attempts.is_empty()));
            let better = better.filter_map(|key| model.priority(*key)).max();
            assert!(better.is_none_or(|better| better <= priority), "something more urgent was left behind");
            last = priority;
            self.given.push((name, lease));
        }
    }

    /// Never tried, so that nothing can keep it from anybody.
    fn is_untouched(&self, key: FoldKey) -> bool {
        self.world
            .scheduler
            .fold(&key)
            .is_some_and(|view| view.state == FoldState::Pending && view.attempts == 0)
    }

    fn report(&mut self, name: &'static str, lease: &Lease, accuracy: f64) {
        let (known, bits) = (self.known.entry(lease.fold).or_default(), accuracy.to_bits());
        let before = known.reported.get(&lease.attempt).copied();
        let expected = match (before, known.accepted) {
            (Some(before), _) if before == bits => ResultAnswer::Same,
            (Some(_), _) => ResultAnswer::Conflict,
            (None, None) => ResultAnswer::Accepted,
            (None, Some((_, accepted))) => ResultAnswer::Replicate { agrees: accepted == bits },
        };
        known.reported.entry(lease.attempt).or_insert(bits);
        if expected == ResultAnswer::Accepted {
            known.accepted = Some((lease.attempt, bits));
        }
        assert_eq!(self.world.report(name, lease, accuracy), expected);
    }

    fn fail(&mut self, name: &'static str, lease: &Lease, class: FailureClass) {
        let state = self.world.state(lease.fold);
        let current = matches!(state, FoldState::Running { attempt, .. } if attempt == lease.attempt);
        let (answer, after) = (self.world.fail(name, lease, class), self.world.state(lease.fold));
        match answer {
            FailureAnswer::Superseded => assert!(!current && after == state, "nothing changes"),
            FailureAnswer::Retried => assert!(current && after == FoldState::Pending),
            FailureAnswer::Failed => assert!(current && matches!(after, FoldState::Failed(_))),
            FailureAnswer::Refused(refusal) => panic!("{refusal}"),
        }
    }

    /// Somebody reports what somebody else was given.
    fn foreign(&mut self, name: &'static str, holder: &'static str, lease: &Lease) {
        if name != holder {
            let (fold, attempt) = (lease.fold, lease.attempt);
            let answer = self.world.report_result(name, fold, attempt, example(0.75));
            assert!(matches!(answer, ResultAnswer::Refused(_)), "{answer:?}");
            let failure = Failure::new(FailureClass::Error, "not mine");
            let answer =
                self.world.tell(Event::FailureReported { worker: worker(name), fold, attempt, failure });
            assert!(matches!(answer, Reply::Failure(FailureAnswer::Refused(_))), "{answer:?}");
        }
    }

    fn step(&mut self, model: &Model, step: Step) {
        match step {
            Step::Submit { sweep, folds, priority } => {
                let mut submission = submission(sweep, folds);
                submission.priority = priority;
                submission.yaml = format!("# {}\npriority: {priority}\n", submission.yaml);
                self.world.submit(submission);
            }
            Step::Cancel(name) => _ = self.attempt(Event::Cancel { sweep: sweep(name) }),
            Step::Archive(name) => _ = self.attempt(Event::Archive { sweep: sweep(name) }),
            Step::Pause(name) => _ = self.attempt(Event::Pause { sweep: sweep(name) }),
            Step::Resume(name) => _ = self.attempt(Event::Resume { sweep: sweep(name) }),
            Step::Retry(name) => _ = self.attempt(Event::Retry { sweep: sweep(name) }),
            Step::Prioritise(name, priority) => {
                self.attempt(Event::Prioritise { sweep: sweep(name), priority });
            }
            Step::Ask { worker, count } => self.ask(model, worker, count),
            Step::Pass(milliseconds) => self.world.pass(milliseconds),
            Step::Restart => self.world.restart(),
            other => self.worker_step(other),
        }
    }

    fn worker_step(&mut self, step: Step) {
        match step {
            Step::Join { worker: name, slots, keeps } => {
                let running = if keeps { self.in_hand(name) } else { vec![] };
                let event = Event::WorkerJoined { worker: worker(name), info: info(name, slots), running };
                self.attempt(event);
            }
            Step::Disconnect(name) => {
                let session = self.world.session(name);
                self.attempt(Event::WorkerDisconnected { worker: worker(name), session });
            }
            Step::Leave(name) => {
                let session = self.world.session(name);
                self.attempt(Event::WorkerLeft { worker: worker(name), session });
                self.draining.remove(name);
            }
            Step::Drain(name) => {
                let told = self.attempt(Event::Drain { worker: worker(name) });
                assert_eq!(told, self.is_here(name), "one can drain exactly who is here");
                self.draining.extend(told.then_some(name));
            }
            Step::Undrain(name) => {
                let known = self.is_here(name) || self.draining.contains(name);
                assert_eq!(self.attempt(Event::Undrain { worker: worker(name) }), known);
                self.draining.remove(name);
            }
            Step::Renew { worker: name } => {
                let running = self.in_hand(name);
                self.attempt(Event::Renewed { worker: worker(name), running });
            }
            other => self.report_step(other),
        }
    }

    fn report_step(&mut self, step: Step) {
        match step {
            Step::Report { lease, accuracy, times } => {
                if let Some((name, lease)) = self.pick(&lease) {
                    (0..times).for_each(|_| self.report(name, &lease, accuracy));
                }
            }
            Step::Foreign { worker, lease } => {
                if let Some((holder, lease)) = self.pick(&lease) {
                    self.foreign(worker, holder, &lease);
                }
            }
            Step::Fail { lease, class } => {
                if let Some((name, lease)) = self.pick(&lease) {
                    self.fail(name, &lease, class);
                }
            }
            other => panic!("{other:?} is no worker's step"),
        }
    }
}

impl StateMachineTest for Tested {
    type SystemUnderTest = Self;
    type Reference = Model;

    fn init_test(_: &Model) -> Self {
        // A sweep that pauses itself would surprise this model; steering.rs tells that story.
        // So would a drain that is forgotten after a while; restarts.rs tells that one.
        let limits = Limits { same_failures: u32::MAX, drain_memory: u64::MAX, ..Limits::default() };
        let (given, known) = (vec![], BTreeMap::new());
        Self { world: World::with_limits(limits), given, known, draining: BTreeSet::new() }
    }

    fn apply(mut tested: Self, model: &Model, step: Step) -> Self {
        tested.step(model, step);
        tested
    }

    fn check_invariants(tested: &Self, model: &Model) {
        let scheduler = &tested.world.scheduler;
        for (name, asked) in &model.sweeps {
            let view = scheduler.sweep(&sweep(name)).unwrap();
            assert_eq!((view.state, view.priority), (asked.state, asked.priority), "{name}");
            assert_eq!(view.counts.total(), asked.folds.len() as u64, "{name}");
        }
        for view in scheduler.workers().iter().filter(|view| view.connection != Connection::Grace) {
            let drains = tested.draining.contains(view.worker.as_str());
            assert_eq!(view.connection == Connection::Draining, drains, "{}", view.worker);
        }
        for (key, known) in &tested.known {
            let kept = match tested.world.state(*key) {
                FoldState::Finished { attempt, .. } => Some(attempt),
                _ => None,
            };
            assert_eq!(kept, known.accepted.map(|(attempt, _)| attempt), "{}", key.short());
        }
    }
}

prop_state_machine! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_scheduler_does_what_the_model_says(sequential 1..80 => Tested);
}
