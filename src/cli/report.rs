//! `togl report`: one HTML file about a sweep. The page is made by `togl-analysis`; this collects what goes into it.

use std::path::PathBuf;

use togl_analysis::report::{self, ReportInput};

use super::table::explained;
use crate::clock;
use crate::facts::{self, Depth};
use crate::problem::Problem;
use crate::remote::CoordinatorTarget;

/// Write one HTML file about a sweep
#[derive(Debug, clap::Args)]
pub struct Report {
    /// Name of the sweep
    sweep: String,
    #[command(flatten)]
    target: CoordinatorTarget,
    /// The file [default: SWEEP.html]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Report {
    pub(super) async fn run(self) -> Result<(), Problem> {
        let mut source = self.target.facts().await?;
        let collected = facts::collected(source.as_mut(), &self.sweep, Depth::Outcomes).await?;
        let commands = vec![
            format!("togl run {}.yaml", self.sweep),
            format!("togl table {}", self.sweep),
            format!("togl report {}", self.sweep),
        ];
        let input = ReportInput {
            sweep: &collected.spec,
            sweep_text: &collected.yaml,
            rows: &collected.rows,
            failures: &collected.failures,
            replicates: &collected.replicates,
            commands: &commands,
            made_at: &clock::now_in_words(),
        };
        let out = self.out.unwrap_or_else(|| PathBuf::from(format!("{}.html", self.sweep)));
        let path = report::write(&out, &input).map_err(explained)?;
        eprintln!("wrote {}", path.display());
        Ok(())
    }
}
