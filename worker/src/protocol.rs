//! What the agent and its trainer child say to each other: one JSON object a line, commands on the child's
//! standard input, events on its standard output. Both ends are this same program, so there is no version.

use serde::{Deserialize, Serialize};
use togl_agent::slots::EpochReport;
use togl_sweeps::{Attempt, Failure, FoldKey, FoldResult};

use crate::data::Data;
use crate::fold::Keeping;
use crate::program::Setup;

/// What the agent asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Train this fold next.
    Train(Box<Request>),
    /// Write a checkpoint after this epoch.
    Save,
    /// Write a checkpoint after this epoch, end the fold as preempted, and leave.
    Stop,
}

/// One fold to train.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Which fold.
    pub fold: FoldKey,
    /// Which attempt.
    pub attempt: Attempt,
    /// Canonical JSON of its trial.
    pub config: String,
    /// `cpu`, `cuda:N` or `mps`.
    pub device: String,
    /// Where its data set comes from.
    pub data: Data,
    /// What it leaves on disk.
    pub keeping: Keeping,
    /// How programs of users are run; none where they are not.
    #[serde(default)]
    pub programs: Option<Setup>,
}

/// What the trainer answers: `Started` once it has the data, any number of `Epoch` and `Saved`, then one `Done` or `Failed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrainerEvent {
    /// The data is there and training begins.
    Started,
    /// A program runs, as this group of processes, until the fold is over.
    Runs(i32),
    /// An epoch was finished.
    Epoch(EpochReport),
    /// A checkpoint was written.
    Saved,
    /// The fold is finished.
    Done(Box<FoldResult>),
    /// The fold cannot be finished.
    Failed(Failure),
}

/// One line for the other side.
pub fn line<T: Serialize>(message: &T) -> serde_json::Result<String> {
    let mut text = serde_json::to_string(message)?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use togl_sweeps::FailureClass;

    use super::*;

    #[test]
    fn messages_are_one_line_and_read_back() {
        let events = [
            TrainerEvent::Done(Box::new(togl_sweeps::result::example(0.5))),
            TrainerEvent::Failed(Failure::new(FailureClass::NotFinite, "two\nlines")),
        ];
        for event in events {
            let text = line(&event).unwrap();
            assert_eq!(text.matches('\n').count(), 1);
            assert_eq!(serde_json::from_str::<TrainerEvent>(&text).unwrap(), event);
        }
    }
}
