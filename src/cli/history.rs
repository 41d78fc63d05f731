//! `togl history`: what happened to a fold, line by line; who did what to a sweep, or at all, and why.

use serde::Serialize;
use togl_coordinator::store::history::{Acted, Happened};
use togl_sweeps::WorkerId;

use crate::facts::Facts;
use crate::output::{self, ListFormat, ListRow, Listing};
use crate::problem::Problem;
use crate::remote::CoordinatorTarget;

/// Show what happened to a fold, or who steered a sweep and why
#[derive(Debug, clap::Args)]
pub struct History {
    /// A fold, as TRIAL/split/seed, whose trial may be shortened; or the name of a sweep; everything that was done if left out
    #[arg(value_name = "FOLD|SWEEP")]
    fold_or_sweep: Option<String>,
    #[command(flatten)]
    target: CoordinatorTarget,
    #[command(flatten)]
    listing: Listing,
}

#[derive(Serialize)]
struct Line {
    /// UTC, as in RFC 3339.
    at: String,
    event: String,
    attempt: Option<u32>,
    worker: String,
    detail: String,
}

impl From<Happened> for Line {
    fn from(happened: Happened) -> Self {
        Self {
            at: rfc3339(happened.at),
            event: happened.event,
            attempt: happened.attempt.map(|attempt| attempt.0),
            worker: happened.worker.as_ref().map(WorkerId::to_string).unwrap_or_default(),
            detail: happened.detail,
        }
    }
}

impl ListRow for Line {
    const COLUMNS: &'static [&'static str] = &["TIME (UTC)", "EVENT", "ATTEMPT", "WORKER", "DETAIL"];
    const ALSO: &'static [&'static str] = &["at"];

    fn cells(&self) -> Vec<String> {
        let attempt = self.attempt.map_or_else(String::new, |attempt| attempt.to_string());
        vec![self.at.clone(), self.event.clone(), attempt, self.worker.clone(), self.detail.clone()]
    }
}

/// Milliseconds since 1970 as people read them; empty if the time is not known.
pub fn rfc3339(milliseconds: i64) -> String {
    match u64::try_from(milliseconds) {
        Ok(0) | Err(_) => String::new(),
        Ok(since) => {
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(since);
            humantime::format_rfc3339_millis(time).to_string()
        }
    }
}

/// Something that somebody did.
#[derive(Serialize)]
struct Deed {
    /// UTC, as in RFC 3339.
    at: String,
    by: String,
    act: String,
    about: String,
    detail: String,
    reason: String,
}

impl From<Acted> for Deed {
    fn from(Acted { at, by, act, about, detail, reason }: Acted) -> Self {
        Self { at: rfc3339(at), by, act, about, detail, reason }
    }
}

impl ListRow for Deed {
    const COLUMNS: &'static [&'static str] = &["TIME (UTC)", "BY", "ACT", "ABOUT", "DETAIL", "REASON"];
    const ALSO: &'static [&'static str] = &["at"];

    fn cells(&self) -> Vec<String> {
        let Self { at, by, act, about, detail, reason } = self;
        [at, by, act, about, detail, reason].map(String::clone).to_vec()
    }
}

impl History {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let mut facts = self.target.facts().await?;
        match self.fold_or_sweep.as_deref() {
            Some(fold) if fold.contains('/') => self.of_fold(facts.as_mut(), fold).await,
            sweep => {
                let acts = facts.acts(sweep).await?;
                let none = "nothing was done, or it is older than this is remembered";
                output::list_unless_empty(
                    &acts.into_iter().map(Deed::from).collect::<Vec<_>>(),
                    &self.listing,
                    none,
                )
            }
        }
    }

    async fn of_fold(&self, facts: &mut dyn Facts, fold: &str) -> Result<(), Problem> {
        let (fold, entries) = facts.history(fold).await?;
        if entries.is_empty() {
            return Err(Problem::negative(format!(
                "nothing is known of {fold}: it is older than histories are"
            )));
        }
        if self.listing.format == ListFormat::Human {
            eprintln!("{fold}");
        }
        output::list(&entries.into_iter().map(Line::from).collect::<Vec<_>>(), &self.listing)
    }
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn times_are_written_as_people_read_them() {
        assert_eq!(rfc3339(0), "");
        assert_eq!(rfc3339(1_794_812_999_999), "2026-11-16T07:09:59.999Z");
    }
}
