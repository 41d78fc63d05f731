//! Which column of an export is which of ours. Owns the names in the logs of the published TOGL experiments, which are
//! the default, and what may be mapped otherwise. Reads no file.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::{Error, Result};
use crate::schema::{METRICS, PROVENANCE, SETTINGS};

/// Columns without which a file is not an export of runs.
pub(super) const NEEDED: [&str; 4] = ["dataset", "model", "depth", "test_accuracy"];

/// Our names of what the published logs call differently; all other settings have the same name in both.
/// The logged `val_acc` is the last epoch's, and `test_acc` is that of the best checkpoint.
const RENAMED: [(&str, &str); 11] = [
    ("lr_min", "min_lr"),
    ("static", "fake"),
    ("num_heads", "num_heads_gnn"),
    ("split", "fold"),
    ("seed", "training_seed"),
    ("test_accuracy", "test_acc"),
    ("test_loss", "test_loss"),
    ("validation_accuracy", "best_val_acc"),
    ("validation_loss", "best_val_loss"),
    ("last_validation_accuracy", "val_acc"),
    ("last_validation_loss", "val_loss"),
];

/// Settings that follow from other columns unless a mapping says where they stand. A column of the same name may mean
/// anything, so it is not read unasked.
const DERIVED: [&str; 3] = ["togl", "features", "last_epoch"];

/// Which column of the export holds which of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapping {
    theirs: BTreeMap<String, String>,
    /// Those that were asked for by name: an export without them is refused.
    asked: BTreeSet<String>,
    /// Columns of the export, and the values that a run may have there.
    only: Vec<(String, Vec<String>)>,
}

impl Default for Mapping {
    fn default() -> Self {
        let same = SETTINGS.iter().map(|spec| (spec.name, spec.name)).chain([("seconds", "Runtime")]);
        let theirs = same.chain(RENAMED).map(|(ours, theirs)| (ours.to_owned(), theirs.to_owned()));
        Self { theirs: theirs.collect(), asked: BTreeSet::new(), only: Vec::new() }
    }
}

impl Mapping {
    /// The same mapping, except that our column `ours` is read from `theirs`. Refuses a column that we do not have.
    pub fn with(mut self, ours: &str, theirs: &str) -> Result<Self> {
        let Some(known) = self.theirs.get_mut(ours) else {
            let known = self.theirs.keys().map(String::as_str);
            return Err(Error::unknown_choice("our column of a mapping", ours, known));
        };
        theirs.clone_into(known);
        self.asked.insert(ours.to_owned());
        Ok(self)
    }

    /// The mapping of a file that `togl export` wrote: everything that a frame holds is there, also what exports of others say in
    /// other ways.
    pub(crate) fn of_our_own(&self) -> Self {
        let mut own = self.clone();
        for name in METRICS.iter().chain(&PROVENANCE).map(|spec| spec.name) {
            own.theirs.entry(name.to_owned()).or_insert_with(|| name.to_owned());
        }
        own.asked.extend(DERIVED.map(str::to_owned));
        own
    }

    /// The same mapping for runs that have one of these values in a column of the export, or say nothing there.
    pub fn only(mut self, theirs: &str, values: &[&str]) -> Self {
        self.only.push((theirs.to_owned(), values.iter().map(|value| (*value).to_owned()).collect()));
        self
    }

    /// Refuses a condition on a column that none of the exports has.
    pub(super) fn check_conditions<'a>(&self, columns: impl Iterator<Item = &'a str> + Clone) -> Result<()> {
        match self.only.iter().find(|(theirs, _)| !columns.clone().any(|name| name == theirs)) {
            None => Ok(()),
            Some((theirs, _)) => Err(Error::unknown_choice("a column of the export", theirs, columns)),
        }
    }

    /// The conditions: a column of the export, and the values that a run may have there.
    pub(super) fn conditions(&self) -> &[(String, Vec<String>)] {
        &self.only
    }

    /// Whether one of our columns is read from the export at all.
    pub(super) fn has(&self, ours: &str) -> bool {
        self.theirs.contains_key(ours) && self.reads(ours)
    }

    /// Whether a column of the export is one of ours.
    pub(super) fn is_read(&self, theirs: &str) -> bool {
        self.theirs.iter().any(|(ours, name)| name == theirs && self.reads(ours))
    }

    fn reads(&self, ours: &str) -> bool {
        !DERIVED.contains(&ours) || self.asked.contains(ours)
    }

    /// What the export calls one of our columns.
    pub(crate) fn of<'a>(&'a self, ours: &'a str) -> &'a str {
        self.theirs.get(ours).map_or(ours, String::as_str)
    }

    /// The columns of an export that must be there.
    pub(super) fn needed(&self) -> impl Iterator<Item = &str> {
        NEEDED.iter().copied().chain(self.asked.iter().map(String::as_str)).map(|ours| self.of(ours))
    }
}
