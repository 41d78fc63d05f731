//! Why a fold did not finish. The class decides what happens next (the scheduler's business); the message is
//! for people.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::words::words;

words!(
    /// What kind of failure it was. The words are those of logs, of the wire and of the store.
    FailureClass {
        /// The worker went silent or its connection was lost.
        WorkerLost = "worker-lost",
        /// The worker was told to stop (SIGTERM, drain) before the fold was done.
        Preempted = "preempted",
        /// The trainer process died (signal, abort, unexpected exit).
        Crashed = "crashed",
        /// The device or the machine ran out of memory.
        OutOfMemory = "out-of-memory",
        /// A loss or a metric was not a finite number.
        NotFinite = "not-finite",
        /// The fold took longer than its limit.
        TimeLimit = "time-limit",
        /// The data could not be loaded or has another digest than expected.
        Data = "data",
        /// The trial's settings cannot be trained (refused by the trainer).
        Config = "config",
        /// The trainer ran into a mistake of this program and lives on.
        Panicked = "panicked",
        /// The worker is too old, or too new, to read the trial's settings. Never held against the fold.
        Unreadable = "unreadable",
        /// The report was refused: a value that cannot be, or a failure that the coordinator does not know. Never held
        /// against the host.
        ReportRefused = "report-refused",
        /// The result has a newer form than the coordinator can read; its worker keeps it until that is upgraded.
        NeedsUpgrade = "needs-upgrade",
        /// Any other error that would happen again.
        Error = "error",
        /// Several hosts were lost under the same fold.
        KillsItsWorker = "kills-its-worker",
    }
);

/// A class that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a failure class")]
pub struct UnknownClass(String);

impl FromStr for FailureClass {
    type Err = UnknownClass;

    fn from_str(text: &str) -> Result<Self, UnknownClass> {
        Self::from_word(text).ok_or_else(|| UnknownClass(text.to_owned()))
    }
}

/// One failed attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind.
    pub class: FailureClass,
    /// What happened, for people; one line.
    pub message: String,
}

impl Failure {
    /// A failure of `class` that says `message`.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_one_spelling_that_reads_back() {
        for class in FailureClass::ALL {
            assert_eq!(class.as_str().parse(), Ok(class));
            let json = serde_json::to_string(&class).unwrap();
            assert_eq!(json, format!("\"{class}\""), "serde and Display must agree");
        }
        assert!("exploded".parse::<FailureClass>().is_err());
    }
}
