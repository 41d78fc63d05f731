//! Who steered, and why: what people did, as a fact beside the facts that it led to. Decides nothing; the driver makes one of
//! each event that somebody asked for and that changed something.

use togl_sweeps::{SweepName, WorkerId};

use crate::event::Event;
use crate::reply::Reply;

/// Who asks for something, and why.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct By {
    /// What the token is called.
    pub name: String,
    /// In his own words; may be empty.
    pub reason: String,
}

/// What somebody did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Steered {
    /// Who, and why.
    pub by: By,
    /// What was done.
    pub act: Act,
    /// To what.
    pub about: About,
    /// What it led to, for people; may be empty.
    pub detail: String,
}

/// What can be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// A sweep was submitted or edited.
    Submit,
    /// A sweep was given up.
    Cancel,
    /// A sweep was put away.
    Archive,
    /// A sweep got another place in the queue.
    Prioritise,
    /// A sweep rests.
    Pause,
    /// A sweep goes on.
    Resume,
    /// Failed folds of a sweep are tried again.
    Retry,
    /// Results from elsewhere were taken into a sweep.
    Import,
    /// A worker shall leave.
    Drain,
    /// A worker shall stay.
    Undrain,
    /// It was said which data a data set is made of.
    Settle,
}

impl Act {
    /// In one word, that of the command.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Cancel => "cancel",
            Self::Archive => "archive",
            Self::Prioritise => "prioritise",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Retry => "retry",
            Self::Import => "import",
            Self::Drain => "drain",
            Self::Undrain => "undrain",
            Self::Settle => "settle",
        }
    }
}

/// To what something was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    /// A sweep.
    Sweep(SweepName),
    /// A worker.
    Worker(WorkerId),
    /// A data set.
    Data(String),
}

impl About {
    /// Its name.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Sweep(sweep) => sweep.as_str(),
            Self::Worker(worker) => worker.as_str(),
            Self::Data(data) => data,
        }
    }
}

impl Steered {
    /// What somebody does who asks for this; none if it is nothing that people do.
    pub fn of(event: &Event, by: &By) -> Option<Self> {
        let sweep = |sweep: &SweepName| About::Sweep(sweep.clone());
        let worker = |worker: &WorkerId| About::Worker(worker.clone());
        let (act, about) = match event {
            Event::Submit(submission) => (Act::Submit, sweep(&submission.name)),
            Event::Cancel { sweep: name } => (Act::Cancel, sweep(name)),
            Event::Archive { sweep: name } => (Act::Archive, sweep(name)),
            Event::Prioritise { sweep: name, .. } => (Act::Prioritise, sweep(name)),
            Event::Pause { sweep: name } => (Act::Pause, sweep(name)),
            Event::Resume { sweep: name } => (Act::Resume, sweep(name)),
            Event::Retry { sweep: name } => (Act::Retry, sweep(name)),
            Event::Adopt(adoption) => (Act::Import, sweep(&adoption.sweep)),
            Event::Drain { worker: name } => (Act::Drain, worker(name)),
            Event::Undrain { worker: name } => (Act::Undrain, worker(name)),
            Event::SettleData { data, .. } => (Act::Settle, About::Data(data.clone())),
            Event::Gather(_)
            | Event::WorkerJoined { .. }
            | Event::WorkerDisconnected { .. }
            | Event::WorkerLeft { .. }
            | Event::LeasesAsked { .. }
            | Event::Renewed { .. }
            | Event::ResultReported { .. }
            | Event::FailureReported { .. }
            | Event::Tick => return None,
        };
        let detail = match event {
            Event::Prioritise { priority, .. } => format!("priority {priority}"),
            Event::SettleData { digest, .. } => digest.clone(),
            _ => String::new(),
        };
        Some(Self { by: by.clone(), act, about, detail })
    }

    /// The same with what it led to.
    pub fn led_to(mut self, reply: &Reply) -> Self {
        let words = match reply {
            Reply::Submitted(done) => {
                format!("{} folds, {} new, {} no longer in it", done.folds, done.added, done.removed)
            }
            Reply::Cancelled { abandoned, .. } => format!("{abandoned} running folds stopped"),
            Reply::Retried { folds } => format!("{folds} folds"),
            Reply::Adopted(done) => {
                format!("{} results from elsewhere, {} kept as replicates", done.taken, done.replicates)
            }
            Reply::Settled { reopened } => format!("{}; {reopened} folds are trained again", self.detail),
            _ => return self,
        };
        self.detail = words;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_do_is_told_with_what_it_led_to_and_what_workers_do_is_not() {
        let by = By { name: "Ada".to_owned(), reason: "too slow".to_owned() };
        let sweep: SweepName = "depth".parse().unwrap();
        let steered = Steered::of(&Event::Cancel { sweep: sweep.clone() }, &by).unwrap();
        let steered = steered.led_to(&Reply::Cancelled { abandoned: 3, finished: 1 });
        assert_eq!((steered.act.as_str(), steered.about.as_str()), ("cancel", "depth"));
        assert_eq!(
            (steered.by.reason.as_str(), steered.detail.as_str()),
            ("too slow", "3 running folds stopped")
        );
        let moved = Steered::of(&Event::Prioritise { sweep, priority: -5 }, &by).unwrap();
        assert_eq!(moved.led_to(&Reply::Done).detail, "priority -5");
        let worker: WorkerId = "w".parse().unwrap();
        assert_eq!(Steered::of(&Event::LeasesAsked { worker, count: 1 }, &by), None);
        assert_eq!(Steered::of(&Event::Tick, &by), None);
    }
}
