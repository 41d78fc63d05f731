//! Failed folds that are alike: how many, where, one of them, and what the rules did. Gathers what it is given; reads nothing.

use std::collections::BTreeMap;

use togl_coordinator::store::{FoldState, StoredFold};
use togl_sweeps::{FailureClass, WorkerId};
use togl_web::view;

use super::views::within;
use crate::alike::alike;

/// Kinds of failures that are kept, and hosts of one that are named.
const MOST_GROUPS: usize = 100;
const MOST_HOSTS: usize = 12;

/// Failures that are alike, gathered one by one: however many folds failed, few kinds are kept.
#[derive(Default)]
pub struct Failed {
    looked_at: u64,
    groups: BTreeMap<(String, String), view::FailureGroup>,
}

impl Failed {
    /// Another fold; `hosts` knows where workers are.
    pub fn add(&mut self, fold: StoredFold, hosts: &BTreeMap<String, String>) {
        let FoldState::Failed(failure) = fold.state else { return };
        self.looked_at += 1;
        let (class, words) = (failure.class.to_string(), alike(&failure.message));
        // Beyond so many kinds, what is said is different each time: the class says as much.
        let full =
            self.groups.len() >= MOST_GROUPS && !self.groups.contains_key(&(class.clone(), words.clone()));
        let words = if full { "…".to_owned() } else { words };
        let rule = rule(failure.class);
        let group = self.groups.entry((class.clone(), words.clone())).or_insert_with(|| view::FailureGroup {
            class,
            words,
            folds: 0,
            example: fold.fold.to_string(),
            message: failure.message.chars().take(600).collect(),
            workers: BTreeMap::new(),
            hosts: BTreeMap::new(),
            rule: rule.to_owned(),
        });
        group.folds += 1;
        if let Some(worker) = fold.worker.as_ref().map(WorkerId::to_string) {
            *group.hosts.entry(hosts.get(&worker).unwrap_or(&worker).clone()).or_default() += 1;
            *group.workers.entry(worker).or_default() += 1;
        }
    }

    /// What a page shows of them.
    pub fn view(self, total: u64) -> view::Failures {
        let mut groups: Vec<_> = self.groups.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.folds));
        for group in &mut groups {
            for names in [&mut group.workers, &mut group.hosts] {
                let mut most: Vec<_> = std::mem::take(names).into_iter().collect();
                most.sort_by_key(|(_, folds)| std::cmp::Reverse(*folds));
                *names = most.into_iter().take(MOST_HOSTS).collect();
            }
        }
        view::Failures { total, looked_at: self.looked_at, groups: within(groups) }
    }
}

/// What the rules did before they gave a fold up, and what can be done now.
fn rule(class: FailureClass) -> &'static str {
    match class {
        FailureClass::WorkerLost => {
            "tried again up to ten times; after three hosts it is taken to kill its worker"
        }
        FailureClass::Preempted => "tried again up to a hundred times, from its checkpoint",
        FailureClass::OutOfMemory => "tried on larger devices only, once more where sizes are not known",
        FailureClass::Data => "tried once more on another host",
        FailureClass::Config => "given up at once: it would fail everywhere; mend the sweep file",
        FailureClass::KillsItsWorker => "given up: several hosts were lost under it",
        FailureClass::NeedsUpgrade => "its worker keeps the result until the coordinator is upgraded",
        FailureClass::Unreadable => "not held against the fold; workers of another version may try",
        FailureClass::Crashed
        | FailureClass::NotFinite
        | FailureClass::TimeLimit
        | FailureClass::Panicked
        | FailureClass::ReportRefused
        | FailureClass::Error => "tried once more, on another worker or after a minute",
    }
}
