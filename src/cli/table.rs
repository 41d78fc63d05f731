//! `togl table`: the mean ± std table of a sweep, printed and written.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use togl_analysis::plan::Plan;
use togl_analysis::render;
use togl_analysis::table::Table as Made;

use super::Outcome;
use crate::output;
use crate::problem::{self, Problem};
use crate::remote::Target;
use crate::rows::{self, Collected};

/// Make the table of a sweep
#[derive(Debug, clap::Args)]
pub struct Table {
    /// Name of the sweep
    sweep: String,
    #[command(flatten)]
    target: Target,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: TableFormat,
    /// Also write the table as Markdown, LaTeX and CSV and the folds as Parquet into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// How a table is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TableFormat {
    /// Aligned, for the terminal.
    Human,
    /// Markdown.
    Markdown,
    /// LaTeX with booktabs.
    Latex,
    /// Comma-separated values.
    Csv,
    /// A list of cells with the folds behind each.
    Json,
    /// HTML.
    Html,
}

impl Table {
    pub(super) async fn run(self) -> Outcome {
        let collected = self.collect().await?;
        let table = make(&collected)?;
        let text = match self.format {
            TableFormat::Human => render::terminal(&table, output::colour()),
            TableFormat::Markdown => render::markdown(&table),
            TableFormat::Latex => render::latex(&table),
            TableFormat::Csv => render::csv(&table),
            TableFormat::Json => render::json(&table),
            TableFormat::Html => render::html(&table),
        };
        output::print(&text)?;
        if let Some(folder) = &self.out {
            write(folder, &collected, &table)?;
        }
        let nothing = collected.frame.is_empty();
        Ok(ExitCode::from(if nothing { problem::NEGATIVE } else { problem::DONE }))
    }

    /// From the coordinator that was named or serves the state directory; from the store if none does.
    async fn collect(&self) -> Result<Collected, Problem> {
        let state = self.target.state()?;
        if self.target.coordinator.is_some() {
            return rows::from_coordinator(&mut self.target.connect().await?, &self.sweep).await;
        }
        rows::from_store(&state, &self.sweep)
    }
}

/// Makes the table that the sweep file asks for.
pub fn make(collected: &Collected) -> Result<Made, Problem> {
    let plan = Plan::of_sweep(&collected.spec).map_err(Problem::ours)?;
    let layout = Made::separated(&collected.spec.table, &plan).map_err(Problem::usage)?;
    Made::make(&collected.frame, &layout, &plan).map_err(Problem::usage)
}

/// Writes all files of a table and says where they are.
pub fn write(folder: &Path, collected: &Collected, table: &Made) -> Result<(), Problem> {
    let stem = collected.spec.name.as_str();
    let paths = render::write_all(folder, stem, table, &collected.frame)
        .map_err(|error| Problem::usage(error).hint("choose a writable folder with --out"))?;
    for path in paths {
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}
