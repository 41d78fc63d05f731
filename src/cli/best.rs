//! `togl best`: the trials of a sweep or of saved folds from best to worst, by validation. The order is made by
//! `togl-analysis`; this collects and prints.

use std::path::PathBuf;

use serde::Serialize;
use togl_analysis::best::RankedTrial;
use togl_analysis::{FoldFrame, Plan};
use togl_sweeps::spec::Metric;

use super::table::explained;
use super::table_block::{condition, metric};
use crate::facts::{self, Depth};
use crate::output::{self, ListFormat, ListRow, Listing};
use crate::problem::Problem;
use crate::remote::CoordinatorTarget;

/// List the trials of a sweep from best to worst, by validation
#[derive(Debug, clap::Args)]
pub struct Best {
    /// Name of the sweep
    #[arg(required_unless_present = "from")]
    sweep: Option<String>,
    /// Use saved folds instead of a sweep
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "sweep")]
    from: Vec<PathBuf>,
    #[command(flatten)]
    target: CoordinatorTarget,
    /// What decides: validation_accuracy or last_validation_accuracy
    #[arg(long, value_name = "METRIC", default_value = "validation_accuracy")]
    by: String,
    /// What is shown of the test part [default: as the sweep's table, else test_accuracy]
    #[arg(long, value_name = "METRIC")]
    metric: Option<String>,
    /// Only trials with one of these values; may be given several times
    #[arg(long, value_name = "SETTING=VALUES")]
    filter: Vec<String>,
    /// Only so many of the best
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    #[command(flatten)]
    listing: Listing,
}

/// A trial as a line of which fields can be chosen.
#[derive(Serialize)]
#[serde(transparent)]
struct Ranked(RankedTrial);

impl ListRow for Ranked {
    const COLUMNS: &'static [&'static str] =
        &["RANK", "TRIAL", "METHOD", "VALIDATION MEAN", "TEST MEAN", "N", "PLANNED"];
    const ALSO: &'static [&'static str] = &["settings", "validation_std", "test_std"];

    fn cells(&self) -> Vec<String> {
        let Self(RankedTrial { rank, trial, method, validation_mean, test_mean, n, planned, .. }) = self;
        let mean = |mean: &Option<f64>| mean.map(|mean| format!("{mean:.2}")).unwrap_or_default();
        let rank = rank.map(|rank| rank.to_string()).unwrap_or_default();
        let means = [validation_mean, test_mean].map(mean);
        let counts = [n, planned].map(usize::to_string);
        [rank, trial.clone(), method.clone()].into_iter().chain(means).chain(counts).collect()
    }
}

impl Best {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let filter: Vec<(String, Vec<String>)> =
            self.filter.iter().map(|text| condition(text)).collect::<Result<_, Problem>>()?;
        let (frame, plan, usual) = match &self.sweep {
            Some(sweep) => {
                let mut source = self.target.facts().await?;
                let collected = facts::collected(source.as_mut(), sweep, Depth::Frame).await?;
                let plan = Plan::of_sweep(&collected.spec);
                (collected.frame, plan, collected.spec.table.metric)
            }
            None => {
                let frame = FoldFrame::read_all(&self.from).map_err(explained)?;
                let plan = Plan::of_frame("saved folds", &frame).map_err(explained)?;
                (frame, plan, Metric::TestAccuracy)
            }
        };
        let usual = if usual.is_of_test() { usual } else { Metric::TestAccuracy };
        let shown = self.metric.as_deref().map_or(Ok(usual), metric)?;
        let (frame, plan) = (frame.filtered(&filter), plan.filtered(&filter));
        let (frame, plan) = (frame.map_err(explained)?, plan.map_err(explained)?);
        let mut best = togl_analysis::Best::of(&frame, &plan, metric(&self.by)?, shown).map_err(explained)?;
        best.trials.truncate(self.top.unwrap_or(usize::MAX));
        self.print(best)
    }

    fn print(self, best: togl_analysis::Best) -> Result<(), Problem> {
        if !self.listing.fields.is_empty() {
            let rows: Vec<Ranked> = best.trials.into_iter().map(Ranked).collect();
            return output::list(&rows, &self.listing);
        }
        let format = self.listing.format;
        let text = match format {
            ListFormat::Human => best.text(),
            ListFormat::Json => output::json(&best.trials)?,
            ListFormat::Ndjson => output::ndjson(&best.trials)?,
            ListFormat::Csv => best.csv(),
        };
        match format {
            ListFormat::Csv => output::data(&text)?,
            ListFormat::Human | ListFormat::Json | ListFormat::Ndjson => output::print(&text)?,
        }
        if format == ListFormat::Human {
            eprintln!("{}", best.caption());
        }
        Ok(())
    }
}
