//! What people ask of sweeps and what may happen, as the tiny model that `model.rs` holds the scheduler against: the part
//! that needs no answers.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest_state_machine::ReferenceStateMachine;
use togl_scheduler::SweepState;
use togl_sweeps::{FailureClass, FoldKey};

use crate::world::fold;

pub const SWEEPS: [&str; 3] = ["a", "b", "c"];
pub const WORKERS: [&str; 3] = ["w", "x", "y"];
pub const FOLDS: u32 = 6;

/// All but one: what nobody of one version can read is left behind rightly, which this model cannot tell.
fn classes() -> Vec<FailureClass> {
    FailureClass::ALL.into_iter().filter(|class| *class != FailureClass::Unreadable).collect()
}

/// What people asked of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    pub state: SweepState,
    pub priority: i32,
    /// What the file said last.
    pub priority_of_file: i32,
    pub folds: BTreeSet<u32>,
}

/// The part of the model that needs no answers.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub sweeps: BTreeMap<&'static str, Asked>,
}

/// Something that happens.
#[derive(Debug, Clone)]
pub enum Step {
    Submit { sweep: &'static str, folds: BTreeSet<u32>, priority: i32 },
    Cancel(&'static str),
    Archive(&'static str),
    Pause(&'static str),
    Resume(&'static str),
    Retry(&'static str),
    Prioritise(&'static str, i32),
    Join { worker: &'static str, slots: u32, keeps: bool },
    Disconnect(&'static str),
    Leave(&'static str),
    Drain(&'static str),
    Undrain(&'static str),
    Ask { worker: &'static str, count: u32 },
    Renew { worker: &'static str },
    Report { lease: Index, accuracy: f64, times: u8 },
    Foreign { worker: &'static str, lease: Index },
    Fail { lease: Index, class: FailureClass },
    Pass(u64),
    Restart,
}

impl ReferenceStateMachine for Model {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self::default()).boxed()
    }

    fn transitions(_: &Self) -> BoxedStrategy<Step> {
        let sweep = || select(&SWEEPS[..]);
        let worker = || select(&WORKERS[..]);
        let folds = prop::collection::btree_set(0..FOLDS, 1..5);
        prop_oneof![
            3 => (sweep(), folds, -1..2).prop_map(|(sweep, folds, priority)| Step::Submit { sweep, folds, priority }),
            1 => sweep().prop_map(Step::Cancel),
            1 => sweep().prop_map(Step::Archive),
            1 => sweep().prop_map(Step::Pause),
            1 => sweep().prop_map(Step::Resume),
            1 => sweep().prop_map(Step::Retry),
            1 => (sweep(), -1..2).prop_map(|(sweep, priority)| Step::Prioritise(sweep, priority)),
            4 => (worker(), 1u32..4, any::<bool>())
                .prop_map(|(worker, slots, keeps)| Step::Join { worker, slots, keeps }),
            1 => worker().prop_map(Step::Disconnect),
            1 => worker().prop_map(Step::Leave),
            1 => worker().prop_map(Step::Drain),
            1 => worker().prop_map(Step::Undrain),
            6 => (worker(), 1u32..4).prop_map(|(worker, count)| Step::Ask { worker, count }),
            4 => worker().prop_map(|worker| Step::Renew { worker }),
            6 => (any::<Index>(), select(&[0.25, 0.5][..]), 1u8..3)
                .prop_map(|(lease, accuracy, times)| Step::Report { lease, accuracy, times }),
            1 => (worker(), any::<Index>()).prop_map(|(worker, lease)| Step::Foreign { worker, lease }),
            3 => (any::<Index>(), select(classes()))
                .prop_map(|(lease, class)| Step::Fail { lease, class }),
            3 => select(&[1, 1_000, 2_000, 7_500, 15_000, 60_000][..]).prop_map(Step::Pass),
            1 => Just(Step::Restart),
        ]
        .boxed()
    }

    fn apply(mut model: Self, step: &Step) -> Self {
        match step {
            Step::Submit { sweep, folds, priority } => {
                let asked = model.sweeps.entry(sweep).or_insert_with(|| Asked {
                    state: SweepState::Active,
                    priority: *priority,
                    priority_of_file: *priority,
                    folds: folds.clone(),
                });
                let wanted = matches!(asked.state, SweepState::Active | SweepState::Paused);
                let state = if wanted { asked.state } else { SweepState::Active };
                let kept = asked.priority_of_file == *priority;
                let now = if kept { asked.priority } else { *priority };
                *asked = Asked { state, priority: now, priority_of_file: *priority, folds: folds.clone() };
            }
            Step::Cancel(name) => model.change(name, |asked| {
                if asked.state != SweepState::Archived {
                    asked.state = SweepState::Cancelled;
                }
            }),
            Step::Archive(name) => model.change(name, |asked| asked.state = SweepState::Archived),
            Step::Pause(name) => model.change_wanted(name, |asked| asked.state = SweepState::Paused),
            Step::Resume(name) => model.change_wanted(name, |asked| asked.state = SweepState::Active),
            Step::Prioritise(name, priority) => model.change_wanted(name, |asked| asked.priority = *priority),
            _ => {}
        }
        model
    }
}

impl Model {
    fn change(&mut self, name: &str, edit: impl FnOnce(&mut Asked)) {
        if let Some(asked) = self.sweeps.get_mut(name) {
            edit(asked);
        }
    }

    fn change_wanted(&mut self, name: &str, edit: impl FnOnce(&mut Asked)) {
        self.change(name, |asked| {
            if matches!(asked.state, SweepState::Active | SweepState::Paused) {
                edit(asked);
            }
        });
    }

    /// The highest priority of the active sweeps that have a fold; none if none has.
    pub fn priority(&self, key: FoldKey) -> Option<i32> {
        let active = self.sweeps.values().filter(|asked| asked.state == SweepState::Active);
        let having = active.filter(|asked| asked.folds.iter().any(|n| fold(*n) == key));
        having.map(|asked| asked.priority).max()
    }
}
