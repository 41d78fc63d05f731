//! One self-contained HTML page about a sweep: what was planned, what came out, what failed, where it was trained
//! and how to do it again. No script, no font, no picture from elsewhere, so it can be mailed, archived and read
//! without a network. Owns the order of sections; numbers and pictures come from the rest of this crate.

mod account;
mod page;
mod pictures;

use std::path::{Path, PathBuf};

use togl_sweeps::SweepSpec;

use crate::atomic;
use crate::error::Result;
use crate::frame::{FoldFrame, FoldRow};
use crate::plan::Plan;
use crate::render;
use crate::table::Table;

/// A fold that failed for good, in plain words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedFailure {
    /// As `TRIAL/split/seed`.
    pub fold: String,
    /// How often it was tried.
    pub attempts: u32,
    /// The worker that tried last; empty if not known.
    pub worker: String,
    /// What kind of failure, in a word.
    pub class: String,
    /// What was reported.
    pub message: String,
}

/// A second result of a fold that already had one; it never counts in a table.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportedReplicate {
    /// As `TRIAL/split/seed`.
    pub fold: String,
    /// Which attempt it comes from.
    pub attempt: u32,
    /// The worker that trained it.
    pub worker: String,
    /// Why it is kept: `replicate` (another attempt) or `conflict` (the same attempt, other numbers).
    pub kind: String,
    /// Whether all its numbers are those of the result that counts; none if that one is not known.
    pub same: Option<bool>,
    /// Its test value, if known.
    pub test_accuracy: Option<f64>,
    /// That of the result that counts.
    pub counted: Option<f64>,
}

/// Everything a report is made from.
#[derive(Debug, Clone, Copy)]
pub struct ReportInput<'a> {
    /// The sweep that it is about.
    pub sweep: &'a SweepSpec,
    /// The sweep's file, word for word.
    pub sweep_text: &'a str,
    /// Its finished folds, with their learning curves.
    pub rows: &'a [FoldRow],
    /// Its folds that failed for good.
    pub failures: &'a [ReportedFailure],
    /// Second results of its folds.
    pub replicates: &'a [ReportedReplicate],
    /// The commands that would train it again, one a line.
    pub commands: &'a [String],
    /// When the report is made, as it is to be printed.
    pub made_at: &'a str,
}

/// The report as one HTML page.
pub fn html(input: &ReportInput<'_>) -> Result<String> {
    let frame = FoldFrame::from_rows(input.rows.iter().cloned())?;
    let plan = Plan::of_sweep(input.sweep);
    let table = Table::of_block(&frame, &plan, &input.sweep.table, input.sweep.selection.as_ref())?;
    let mut sections = vec![("Plan", account::plan(input, &plan)?), ("Results", render::fragment(&table))];
    if !input.sweep.published.is_empty() && !frame.is_empty() {
        sections.push(("Comparison with print", account::comparison(&frame, &plan, input.sweep)?));
    }
    sections.extend([
        ("Figures", pictures::figures(&frame, &plan, &table, input.sweep)?),
        ("Learning curves", pictures::curves(input.rows)?),
        ("Failures", account::failures(input.failures)),
        ("Replicates", account::replicates(input.replicates, input.sweep.scale())),
        ("Cost", account::cost(&frame)? + &pictures::work(&frame, input.sweep)?),
        ("Environment", account::environment(&frame)?),
        ("How to reproduce", account::reproduce(input)?),
    ]);
    Ok(page::finished(input.sweep.name.as_str(), input.made_at, &sections))
}

/// Writes the report to a file; a reader never sees half of it.
pub fn write(path: &Path, input: &ReportInput<'_>) -> Result<PathBuf> {
    atomic::publish(atomic::draft_of(path, html(input)?)?)
}

#[cfg(test)]
mod tests;
