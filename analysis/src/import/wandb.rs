//! Runs exported from Weights & Biases as CSV, one run a line, as frames. Owns what several exports are
//! together: no run twice, rows by file and line, and what a reader must be told. One export is in `source.rs`, which of
//! its columns is which of ours in `mapping.rs`. Chooses and averages nothing.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use togl_sweeps::{FoldKey, TrialId};

use super::export::ExportFile;
pub use super::mapping::Mapping;
use super::network;
use super::source::{ImportedRun, RunReader};
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::impossible::refuse_impossible;

/// Columns that are read without being ours, or that tell runs apart by nature.
const EXPECTED_TO_VARY: [&str; 8] = ["Name", "ID", "State", "Created", "seed", "Notes", "Sweep", "trial"];

/// The column by which a file says that `togl export` wrote it; its values mean nothing.
pub(crate) const OURS: &str = "togl_export";

/// The column in which such a file has the canonical JSON of trials of programs, whose settings say too little.
pub(crate) const TRIAL: &str = "togl_trial";

/// Parts of names of columns that hold what came out of a run.
const MEASURED: [&str; 6] = ["acc", "loss", "epoch", "step", "time", "lr-"];

/// What an import gives.
#[derive(Debug, Clone, PartialEq)]
pub struct Imported {
    /// The finished runs.
    pub frame: FoldFrame,
    /// Runs that were left out, each with its file, line and reason.
    pub skipped: Vec<String>,
    /// Columns that nothing is read from and in which runs of one trial differ; in a table they count as its folds.
    pub varying: Vec<String>,
}

/// Reads exports, in the order given. A run that did not finish or has no test value is left out and named.
pub fn read(files: &[PathBuf], mapping: &Mapping) -> Result<Imported> {
    let own = mapping.of_our_own();
    let source = |path| {
        let export = ExportFile::open(path, mapping.needed())?;
        let mapping = if export.has(OURS) { &own } else { mapping };
        Ok(RunReader { export, mapping })
    };
    let sources: Vec<RunReader<'_>> = files.iter().map(|path| source(path)).collect::<Result<_>>()?;
    mapping.check_conditions(sources.iter().flat_map(|source| source.export.columns()))?;
    let (mut exports, mut skipped) = (Vec::new(), Vec::new());
    for source in sources {
        let (runs, left_out) = source.runs()?;
        skipped.extend(left_out);
        exports.push((source, runs));
    }
    refuse_repeated(&exports)?;
    let frames: Result<Vec<FoldFrame>> = exports
        .iter()
        .map(|(source, runs)| {
            let frame = FoldFrame::from_data(&source.frame(runs)?, &source.export.name())?;
            if source.export.has(OURS) {
                refuse_impossible(frame.data(), &source.export.name())?;
            }
            Ok(frame)
        })
        .collect();
    let frame = FoldFrame::concat(frames?)?;
    match (frame.is_empty(), skipped.is_empty()) {
        (false, _) => Ok(Imported { varying: varying(&exports), frame, skipped }),
        (true, false) => Err(Error::AllLeftOut { skipped }),
        (true, true) => Err(Error::Empty { origin: "the import".to_owned() }),
    }
}

/// The columns that nothing is read from, have few values (so they are no measurements), and have several of them in
/// one trial.
fn varying(exports: &[(RunReader<'_>, Vec<ImportedRun>)]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (source, _) in exports {
        let unread = source.export.columns().filter(|name| {
            let known = network::READ.contains(name) || EXPECTED_TO_VARY.contains(name);
            !source.mapping.is_read(name) && !known && !MEASURED.iter().any(|part| name.contains(part))
        });
        for name in unread {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }
    names.retain(|name| varies(exports, name));
    names
}

fn varies(exports: &[(RunReader<'_>, Vec<ImportedRun>)], name: &str) -> bool {
    let mut first: HashMap<TrialId, &str> = HashMap::new();
    let mut values: HashSet<&str> = HashSet::new();
    let (mut filled, mut differs) = (0, false);
    for (source, run) in exports.iter().flat_map(|(source, runs)| runs.iter().map(move |run| (source, run))) {
        let Some(text) = source.export.text(run.row, name) else { continue };
        filled += 1;
        values.insert(text);
        differs |= *first.entry(run.fold.trial).or_insert(text) != text;
    }
    differs && values.len() * 2 <= filled
}

/// The same network on the same split with the same seed twice: which run counts is not ours to say.
fn refuse_repeated(exports: &[(RunReader<'_>, Vec<ImportedRun>)]) -> Result<()> {
    let mut seen: HashMap<FoldKey, Vec<String>> = HashMap::new();
    let mut names: Vec<(FoldKey, String)> = Vec::new();
    for (source, run) in exports.iter().flat_map(|(source, runs)| runs.iter().map(move |run| (source, run))) {
        let places = seen.entry(run.fold).or_default();
        places.push(source.export.origin(run.row));
        if places.len() == 2 {
            let (method, dataset) = (run.config.method(), &run.config.dataset);
            let what = format!("{method} on {dataset}, split {}, seed {}", run.fold.split, run.fold.seed);
            names.push((run.fold, what));
        }
    }
    let named = names.iter().map(|(fold, what)| format!("{what} ({})", seen[fold].join(" and ")));
    let folds: Vec<String> = named.collect();
    if folds.is_empty() { Ok(()) } else { Err(Error::DuplicateFolds { folds }) }
}

#[cfg(test)]
#[path = "wandb_tests.rs"]
mod tests;
