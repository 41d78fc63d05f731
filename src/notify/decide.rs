//! What is to be told: a function of what the coordinator shows, of what was told already and of the time. Every matter is told
//! once for as long as it lasts; when it is over it is forgotten, so that it is told again should it come back. Reads, waits and
//! sends nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::remote::{ListedSweep, ListedWorker};

togl_sweeps::words!(
    /// What is told.
    Occasion {
        /// Nothing of a sweep is left to do.
        SweepDone = "sweep-done",
        /// A sweep whose first folds all failed has paused itself.
        SweepPaused = "sweep-paused",
        /// So many folds of a sweep have been given up.
        Failures = "failures",
        /// A host gets no folds for a while.
        HostQuarantined = "host-quarantined",
        /// Results disagree about which data a data set is made of.
        DataDisputed = "data-disputed",
        /// Folds wait and nobody takes any.
        NoWorker = "no-worker",
    }
);

/// When something is worth telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Folds of one sweep that have been given up.
    pub failures: u64,
    /// Time without anybody who takes folds.
    pub no_worker: Duration,
}

impl Default for Rules {
    fn default() -> Self {
        Self { failures: 10, no_worker: Duration::from_secs(3600) }
    }
}

/// What can be told once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Matter {
    /// What happened.
    pub occasion: Occasion,
    /// To which sweep, host or data set; empty if to none of them.
    pub about: String,
}

/// Something to be told now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// What happened, and to whom.
    pub matter: Matter,
    /// It in one sentence.
    pub text: String,
    /// How far the sweep is, if it is about one.
    pub sweep: Option<FoldCounts>,
}

/// How far a sweep is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoldCounts {
    pub folds: u64,
    pub finished: u64,
    pub failed: u64,
    pub running: u64,
    pub pending: u64,
}

impl From<&ListedSweep> for FoldCounts {
    fn from(sweep: &ListedSweep) -> Self {
        let ListedSweep { folds, finished, failed, running, pending, .. } = *sweep;
        Self { folds, finished, failed, running, pending }
    }
}

/// A data set about which results disagree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disputed {
    /// Its name.
    pub data: String,
    /// Results from other data than the rest.
    pub dissenting: usize,
}

/// What the coordinator shows.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// All sweeps but the archived ones.
    pub sweeps: Vec<ListedSweep>,
    /// Everybody who is here.
    pub workers: Vec<ListedWorker>,
    /// Data sets in dispute.
    pub disputes: Vec<Disputed>,
}

/// What was told and still lasts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// Whether there was a first look: what was done before it is old.
    begun: bool,
    matters: BTreeSet<Matter>,
    /// Since when folds have waited with nobody to take them, on a clock that begins with the process.
    #[serde(skip)]
    idle_since: Option<Duration>,
}

impl Told {
    /// What is to be told now, after which it has been told.
    pub fn decide(&mut self, rules: &Rules, picture: &Observed, now: Duration) -> Vec<Notice> {
        self.idle_since = picture.is_idle().then(|| self.idle_since.unwrap_or(now));
        let idle = self.idle_since.map_or(Duration::ZERO, |since| now.saturating_sub(since));
        self.matters.retain(|matter| picture.may_last(rules, matter));
        let mut notices = picture.notices(rules, idle);
        notices.retain(|notice| self.matters.insert(notice.matter.clone()));
        if !std::mem::replace(&mut self.begun, true) {
            notices.retain(|notice| notice.matter.occasion != Occasion::SweepDone);
        }
        notices
    }
}

impl Observed {
    /// Folds that could be handed out if there were somebody to take them.
    fn waiting(&self) -> u64 {
        self.sweeps.iter().filter(|sweep| sweep.state == "active").map(|sweep| sweep.pending).sum()
    }

    fn is_idle(&self) -> bool {
        self.waiting() > 0 && !self.workers.iter().any(|worker| worker.state == "connected")
    }

    /// Everything that could be told.
    fn notices(&self, rules: &Rules, idle: Duration) -> Vec<Notice> {
        let of_sweeps = self.sweeps.iter().flat_map(|sweep| {
            let occasions = [Occasion::SweepDone, Occasion::SweepPaused, Occasion::Failures];
            occasions.into_iter().filter_map(|occasion| {
                let text = said_of(occasion, sweep, rules)?;
                let matter = Matter { occasion, about: sweep.name.clone() };
                Some(Notice { matter, text, sweep: Some(sweep.into()) })
            })
        });
        let others = self.quarantines().into_iter().chain(self.disputes.iter().map(disputed));
        let idle = (self.is_idle() && idle >= rules.no_worker).then(|| self.idle_for(idle));
        of_sweeps
            .chain(others.chain(idle).map(|(matter, text)| Notice { matter, text, sweep: None }))
            .collect()
    }

    /// One a host, however many workers it has.
    fn quarantines(&self) -> Vec<(Matter, String)> {
        let mut found: Vec<(Matter, String)> = Vec::new();
        for worker in self.workers.iter().filter(|worker| worker.state == "quarantined") {
            let matter = Matter { occasion: Occasion::HostQuarantined, about: worker.host.clone() };
            if !found.iter().any(|(known, _)| *known == matter) {
                let text = format!("host {} gets no folds for a while: {}", worker.host, worker.note);
                found.push((matter, text));
            }
        }
        found
    }

    fn idle_for(&self, idle: Duration) -> (Matter, String) {
        let minutes = idle.as_secs() / 60;
        let (waiting, plural) = (self.waiting(), if minutes == 1 { "" } else { "s" });
        let fold = if waiting == 1 { "fold waits" } else { "folds wait" };
        let text = format!("{waiting} {fold} and no worker has taken folds for {minutes} minute{plural}");
        (Matter { occasion: Occasion::NoWorker, about: String::new() }, text)
    }

    /// Whether something that was told may still last. What cannot be known now counts as lasting: after a restart of the
    /// coordinator the workers of a host come back one by one, and nobody has waited for long.
    fn may_last(&self, rules: &Rules, matter: &Matter) -> bool {
        let Matter { occasion, about } = matter;
        match occasion {
            Occasion::SweepDone | Occasion::SweepPaused | Occasion::Failures => self
                .sweeps
                .iter()
                .any(|sweep| sweep.name == *about && said_of(*occasion, sweep, rules).is_some()),
            Occasion::HostQuarantined => {
                let mut there = self.workers.iter().filter(|worker| worker.host == *about).peekable();
                there.peek().is_none() || there.any(|worker| worker.state == "quarantined")
            }
            Occasion::DataDisputed => self.disputes.iter().any(|dispute| dispute.data == *about),
            Occasion::NoWorker => self.is_idle(),
        }
    }
}

/// What there is to say about a sweep on an occasion of its own, if there is.
fn said_of(occasion: Occasion, sweep: &ListedSweep, rules: &Rules) -> Option<String> {
    let ListedSweep { name, state, folds, finished, failed, note, .. } = sweep;
    match occasion {
        Occasion::SweepDone if state == "failed" => {
            Some(format!("sweep {name} has ended without a result: all {folds} folds failed"))
        }
        Occasion::SweepDone if state == "done" && *failed > 0 => {
            Some(format!("sweep {name} is done: {finished} of {folds} folds, {failed} failed"))
        }
        Occasion::SweepDone if state == "done" => Some(format!("sweep {name} is done: {folds} folds")),
        Occasion::SweepPaused if state == "paused" && !note.is_empty() => {
            Some(format!("sweep {name} has paused itself: {note}"))
        }
        Occasion::Failures if *failed >= rules.failures => {
            Some(format!("{failed} of {folds} folds of sweep {name} have failed"))
        }
        Occasion::SweepDone
        | Occasion::SweepPaused
        | Occasion::Failures
        | Occasion::HostQuarantined
        | Occasion::DataDisputed
        | Occasion::NoWorker => None,
    }
}

fn disputed(dispute: &Disputed) -> (Matter, String) {
    let Disputed { data, dissenting } = dispute;
    let results =
        if *dissenting == 1 { "1 result comes".to_owned() } else { format!("{dissenting} results come") };
    let text = format!(
        "{results} from other data of {data} than the rest; no more of its folds are handed out until `togl settle`"
    );
    (Matter { occasion: Occasion::DataDisputed, about: data.clone() }, text)
}
