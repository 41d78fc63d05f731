//! `togl table`: the mean ± std table of a sweep or of saved folds, printed and written; what stands behind a cell;
//! whether a saved table still holds; the published values beside it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use togl_analysis::table::Table as Made;
use togl_analysis::{
    CellExplanation, Comparison, Emphasis, Error, FoldFrame, Layout, Plan, SavedTable, Spread, curves, render,
};

use togl_sweeps::spec::{Selection, TableSpec};
use togl_sweeps::{SweepSpec, bounded};

use super::VerbOutcome;
use super::plot;
use super::table_block::TableBlock;
use crate::facts::{self, Collected, Depth};
use crate::output;
use crate::problem::{self, Problem};
use crate::remote::CoordinatorTarget;

/// Make the table of a sweep
#[derive(Debug, clap::Args)]
pub struct Table {
    /// Name of the sweep
    #[arg(required_unless_present = "from")]
    sweep: Option<String>,
    /// Use saved folds (Parquet, Arrow, CSV or NDJSON) instead of a sweep, or beside it
    #[arg(long, value_name = "FILE", num_args = 1..)]
    from: Vec<PathBuf>,
    #[command(flatten)]
    target: CoordinatorTarget,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: TableFormat,
    /// Also write the table as Markdown, LaTeX and CSV and the folds as Parquet into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Also write the learning curves, one row an epoch, into this file: .parquet, .arrow, .csv or .ndjson
    #[arg(long, value_name = "FILE", requires = "sweep")]
    curves: Option<PathBuf>,
    #[command(flatten)]
    block: TableBlock,
    /// Lay it out as a published table, such as `structural-extended`
    #[arg(long, value_name = "NAME", conflicts_with_all = ["rows", "columns", "metric", "group", "select"])]
    layout: Option<String>,
    /// What stands after ±: std, population-std, standard-error, ci90, ci95, ci99, repeat-std, or iqr (after the median)
    #[arg(long, value_name = "WORD")]
    plus_minus: Option<String>,
    /// What is set off: `best`, or `not-significantly-worse`
    #[arg(long, value_name = "WORD")]
    bold: Option<String>,
    /// List the exact folds behind one cell
    #[arg(long, num_args = 2, value_names = ["ROW", "COLUMN"])]
    explain: Option<Vec<String>>,
    /// Make a table again that was saved with --format json, and say what changed
    #[arg(long, value_name = "FILE")]
    verify: Option<PathBuf>,
    /// Put published values beside the cells
    #[arg(long, value_enum, value_name = "WHAT")]
    compare: Option<Published>,
}

/// What to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Published {
    /// The published tables.
    Paper,
    /// The numbers in the `published` block of the sweep file.
    Sweep,
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

/// The folds of a table and how it is to be made of them.
struct Source {
    title: String,
    frame: FoldFrame,
    plan: Plan,
    spec: TableSpec,
    selection: Option<Selection>,
    /// The sweep file, where one is known.
    sweep: Option<SweepSpec>,
}

impl Table {
    pub(super) async fn run(self) -> VerbOutcome {
        let source = self.source().await?;
        if let Some(file) = &self.verify {
            return self.check_again(file, &source);
        }
        let table = self.make(&source)?;
        if let Some(cell) = &self.explain {
            return self.explain_cell(cell, &table, &source.frame);
        }
        let text = match self.compare {
            Some(Published::Paper) => self.compared_with_paper(&table, &source)?,
            Some(Published::Sweep) => self.compared_with_sweep(&source)?,
            None => self.rendered(&table),
        };
        match (self.format, self.compare) {
            (TableFormat::Human, None) => output::styled(&text)?,
            (TableFormat::Human, Some(_)) => output::print(&text)?,
            _ => output::data(&text)?,
        }
        if let Some(folder) = &self.out {
            write(folder, &source.title, &source.frame, &table)?;
        }
        let has_numbers = table.cells().any(|(_, _, cell)| cell.n > 0);
        if !has_numbers && !source.frame.is_empty() {
            eprintln!("none of {} folds has a value of this metric", source.frame.len());
        }
        Ok(ExitCode::from(if has_numbers { problem::DONE } else { problem::NEGATIVE }))
    }

    async fn source(&self) -> Result<Source, Problem> {
        let files = FoldFrame::read_all(&self.from).map_err(explained)?;
        let Some(sweep) = &self.sweep else { return self.saved_folds(files) };
        let mut source = self.target.facts().await?;
        let depth = if self.curves.is_some() { Depth::Curves } else { Depth::Frame };
        let collected = facts::collected(source.as_mut(), sweep, depth).await?;
        if let Some(file) = &self.curves {
            let path = curves::write(&collected.rows, file).map_err(explained)?;
            eprintln!("wrote {}", path.display());
        }
        let spec = collected.spec;
        let mut plan = Plan::of_sweep(&spec);
        let mut frame = collected.frame;
        if !self.from.is_empty() {
            plan = plan.with_frame(&files).map_err(explained)?;
            frame = FoldFrame::concat([frame, files]).map_err(explained)?;
        }
        let (table, selection) = self.block.over(&spec.table, spec.selection.as_ref())?;
        Ok(Source { title: sweep.clone(), frame, plan, spec: table, selection, sweep: Some(spec) })
    }

    fn saved_folds(&self, frame: FoldFrame) -> Result<Source, Problem> {
        let title = self.from.first().and_then(|file| file.file_stem()).unwrap_or_default();
        let title = title.to_string_lossy().into_owned();
        let plan = Plan::of_frame(&title, &frame).map_err(explained)?;
        let (spec, selection) = self.block.over(&TableSpec::default(), None)?;
        Ok(Source { title, frame, plan, spec, selection, sweep: None })
    }

    fn make(&self, source: &Source) -> Result<Made, Problem> {
        let mut table = match &self.layout {
            Some(name) => name.parse::<Layout>().and_then(|layout| {
                let frame = source.frame.filtered(&source.spec.filter)?;
                let mut table = layout.make(&frame)?;
                let TableSpec { caption, label, decimals, .. } = &source.spec;
                table.title = caption.clone().unwrap_or(table.title);
                table.reference.clone_from(label);
                table.decimals = decimals.unwrap_or(table.decimals);
                Ok(table)
            }),
            None => source.table(&source.spec),
        }
        .map_err(explained)?;
        if let Some(word) = &self.plus_minus {
            table = table.with_spread(word.parse::<Spread>().map_err(explained)?);
        }
        if let Some(word) = &self.bold {
            let emphasis = word.parse::<Emphasis>().map_err(explained)?;
            table = table.with_emphasis(emphasis, &source.frame).map_err(explained)?;
        }
        Ok(table)
    }

    fn rendered(&self, table: &Made) -> String {
        match self.format {
            TableFormat::Human => render::terminal(table, output::colour()),
            TableFormat::Markdown => render::markdown(table),
            TableFormat::Latex => render::latex(table),
            TableFormat::Csv => render::csv(table),
            TableFormat::Json => render::json(table),
            TableFormat::Html => render::html(table),
        }
    }

    fn compared_with_paper(&self, table: &Made, source: &Source) -> Result<String, Problem> {
        let comparison = match &self.layout {
            Some(name) => Comparison::with(table, &source.frame, name),
            None => Comparison::find(table, &source.frame),
        }
        .map_err(explained)?;
        self.side_by_side(&comparison, source.spec.caption.as_deref(), source.spec.label.as_deref())
    }

    /// One comparison for each published table of the sweep file.
    fn compared_with_sweep(&self, source: &Source) -> Result<String, Problem> {
        let sweep = source.sweep.as_ref().ok_or_else(|| {
            Problem::usage("saved folds have no `published` block")
                .hint("name the sweep, or use --compare paper")
        })?;
        let comparisons = Comparison::of_sweep(&source.frame, &source.plan, sweep).map_err(explained)?;
        if self.format == TableFormat::Json {
            return output::json(&comparisons);
        }
        let TableSpec { caption, label, .. } = &source.spec;
        let text = |(at, comparison): (usize, &Comparison)| {
            let label = label
                .as_ref()
                .map(|label| if at == 0 { label.clone() } else { format!("{label}-{}", at + 1) });
            self.side_by_side(comparison, caption.as_deref(), label.as_deref())
        };
        let texts: Result<Vec<String>, Problem> = comparisons.iter().enumerate().map(text).collect();
        Ok(texts?.join("\n"))
    }

    fn side_by_side(
        &self,
        comparison: &Comparison,
        caption: Option<&str>,
        label: Option<&str>,
    ) -> Result<String, Problem> {
        match self.format {
            TableFormat::Human => Ok(comparison.text()),
            TableFormat::Markdown => Ok(comparison.markdown()),
            TableFormat::Csv => Ok(comparison.csv()),
            TableFormat::Json => Ok(comparison.json()),
            TableFormat::Latex => Ok(comparison.latex(caption, label)),
            TableFormat::Html => {
                Err(Problem::usage("a comparison is printed as human, markdown, latex, csv or json"))
            }
        }
    }

    fn explain_cell(&self, cell: &[String], table: &Made, frame: &FoldFrame) -> VerbOutcome {
        let [row, column] = cell else { return Err(Problem::usage("--explain takes a row and a column")) };
        let explanation = CellExplanation::of(table, frame, row, column).map_err(explained)?;
        let text = if self.format == TableFormat::Json { explanation.json() } else { explanation.text() };
        output::print(&text)?;
        Ok(ExitCode::SUCCESS)
    }

    fn check_again(&self, file: &Path, source: &Source) -> VerbOutcome {
        let name = format!("`{}`", file.display());
        let text = std::fs::File::open(file)
            .and_then(|file| bounded::text(file, bounded::DOCUMENT))
            .map_err(|e| Problem::usage(format!("cannot read {name}: {e}")))?;
        let saved = SavedTable::parse(&text, &name).map_err(explained)?;
        let table = match &self.layout {
            Some(_) => self.make(source)?,
            None => {
                let spec = TableSpec { filter: source.spec.filter.clone(), ..saved.spec() };
                source.table(&spec).map_err(explained)?
            }
        };
        let verification = saved.verify(&table);
        let text =
            if self.format == TableFormat::Json { verification.json() } else { verification.to_string() };
        output::print(&text)?;
        Ok(ExitCode::from(if verification.holds() { problem::DONE } else { problem::NEGATIVE }))
    }
}

impl Source {
    fn table(&self, spec: &TableSpec) -> Result<Made, Error> {
        Made::of_block(&self.frame, &self.plan, spec, self.selection.as_ref())
    }
}

/// What an error of the analysis means for the user.
pub fn explained(error: Error) -> Problem {
    match error {
        Error::Drawing { .. } | Error::Polars(_) => Problem::ours(error),
        Error::Empty { .. }
        | Error::AllLeftOut { .. }
        | Error::NoValues { .. }
        | Error::NothingPublished { .. } => Problem::negative(error),
        Error::Io { what, ref source, .. } => {
            let hint = match what {
                _ if is_full(source) => {
                    "the disk is full; make room, or choose another disk with --out; nothing was replaced"
                }
                "cannot read" => "check the name; it must be a file that can be read, not a folder",
                _ => "name a file in a folder that is there and can be written",
            };
            Problem::usage_of(&error).hint(hint)
        }
        other => Problem::usage_of(&other),
    }
}

fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

/// Makes the table that the sweep file asks for.
pub fn make(collected: &Collected) -> Result<Made, Problem> {
    let spec = &collected.spec;
    let plan = Plan::of_sweep(spec);
    Made::of_block(&collected.frame, &plan, &spec.table, spec.selection.as_ref()).map_err(explained)
}

/// Draws the figures that the sweep file asks for and says where they are.
pub fn write_figures(folder: &Path, stem: &str, collected: &Collected) -> Result<(), Problem> {
    if collected.spec.figures.is_empty() || collected.frame.is_empty() {
        return Ok(());
    }
    let plan = Plan::of_sweep(&collected.spec);
    let figures = plot::of_blocks(collected, &plan)?;
    for path in plot::write_numbered(&figures, &folder.join(format!("{stem}.svg")))? {
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}

/// Writes all files of a table and says where they are.
pub fn write(folder: &Path, stem: &str, frame: &FoldFrame, table: &Made) -> Result<(), Problem> {
    let paths = render::write_all(folder, stem, table, frame).map_err(|error| match &error {
        Error::Io { source, .. } if is_full(source) => explained(error),
        _ => Problem::usage_of(&error).hint("choose a writable folder with --out"),
    })?;
    for path in paths {
        eprintln!("wrote {}", path.display());
    }
    Ok(())
}
