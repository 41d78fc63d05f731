//! What a page may ask to be done, and what came of it. Part of [`crate::view`]; does nothing itself.

use serde::{Deserialize, Serialize};

/// What can be done with a sweep. A reason may be given, which is stored with it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", tag = "act", deny_unknown_fields)]
pub enum SweepAct {
    /// Hand out no more folds.
    Pause {
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// Go on.
    Resume {
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// Try failed folds again.
    Retry {
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// Stop it.
    Cancel {
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// Stop it and take it out of the lists.
    Archive {
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// Say when it is its turn.
    Prioritise {
        /// Higher runs first.
        priority: i32,
        /// Why.
        #[serde(default)]
        reason: String,
    },
}

/// What can be done with a worker. A reason may be given, which is stored with it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase", tag = "act", deny_unknown_fields)]
pub enum WorkerAct {
    /// Finish what it runs and leave.
    Drain {
        /// Why.
        #[serde(default)]
        reason: String,
    },
    /// Go on as before.
    Undrain {
        /// Why.
        #[serde(default)]
        reason: String,
    },
}

impl SweepAct {
    /// Why; empty if nothing was said.
    pub fn reason(&self) -> &str {
        match self {
            Self::Pause { reason }
            | Self::Resume { reason }
            | Self::Retry { reason }
            | Self::Cancel { reason }
            | Self::Archive { reason }
            | Self::Prioritise { reason, .. } => reason,
        }
    }
}

impl WorkerAct {
    /// Why; empty if nothing was said.
    pub fn reason(&self) -> &str {
        match self {
            Self::Drain { reason } | Self::Undrain { reason } => reason,
        }
    }
}

/// What came of something that was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Done {
    /// One sentence.
    pub said: String,
}
