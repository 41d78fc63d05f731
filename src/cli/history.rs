//! `togl history FOLD`: what happened to a fold, line by line.

use serde::Serialize;
use togl_coordinator::store::history::Happened;
use togl_sweeps::WorkerId;

use crate::output::{self, ListFormat, ListRow};
use crate::problem::Problem;
use crate::remote::Target;

/// Show what happened to a fold
#[derive(Debug, clap::Args)]
pub struct History {
    /// The fold, as TRIAL/split/seed; the trial may be shortened
    fold: String,
    #[command(flatten)]
    target: Target,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: ListFormat,
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

impl History {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let (fold, entries) = self.target.facts().await?.history(&self.fold).await?;
        if entries.is_empty() {
            return Err(Problem::negative(format!(
                "nothing is known of {fold}: it is older than histories are"
            )));
        }
        if self.format == ListFormat::Human {
            eprintln!("{fold}");
        }
        output::list(&entries.into_iter().map(Line::from).collect::<Vec<_>>(), self.format)
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
