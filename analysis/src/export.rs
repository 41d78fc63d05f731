//! Folds as a file that other systems read: runs under the names of exports of Weights & Biases, as `import` reads them back
//! without loss, and their learning curves beside them. Owns which columns such a file has; the names are those of
//! [`crate::import::mapping`].

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use togl_sweeps::settings::names_of;
use togl_sweeps::{TrialConfig, TrialId};

use crate::atomic;
use crate::columns::label;
use crate::error::Result;
use crate::frame::{FoldFrame, FoldRow};
use crate::import::mapping::Mapping;
use crate::import::wandb::{OURS, TRIAL};
use crate::schema::{METRICS, PROVENANCE, SETTINGS};
use crate::spreadsheet;

/// Columns of a frame that say where a row of a file came from, which is another file now.
const LEFT_BEHIND: [&str; 2] = ["origin", "schema_version"];

/// Writes the folds of a frame, one run a line, and the curves of the same folds into a second file, one line an epoch. Gives
/// the two files.
pub fn wandb(frame: &FoldFrame, rows: &[FoldRow], path: &Path) -> Result<[PathBuf; 2]> {
    let runs = atomic::draft_of(path, runs(frame, rows)?)?;
    let curves = atomic::draft_of(&beside(path), curves(rows))?;
    Ok([atomic::publish(runs)?, atomic::publish(curves)?])
}

/// `runs.csv` has its curves in `runs-curves.csv`.
fn beside(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-curves.csv"))
}

fn runs(frame: &FoldFrame, rows: &[FoldRow]) -> Result<String> {
    let mapping = Mapping::default();
    let programs: HashMap<TrialId, &TrialConfig> = rows
        .iter()
        .filter(|row| row.config.program.is_some())
        .map(|row| (row.fold.trial, &row.config))
        .collect();
    let declared: Vec<String> =
        names_of(programs.values().copied()).into_iter().skip(SETTINGS.len()).collect();
    let said = SETTINGS.iter().chain(&METRICS).chain(&PROVENANCE).map(|spec| spec.name);
    let said = ["split", "seed", "trial", "method"].into_iter().chain(said);
    let said: Vec<&str> = said.filter(|name| !LEFT_BEHIND.contains(name)).collect();
    let head = ["Name", "ID", "State", OURS].into_iter().chain(said.iter().map(|name| mapping.of(name)));
    let of_programs = if programs.is_empty() { None } else { Some(TRIAL) };
    let mut text = spreadsheet::line(head.chain(declared.iter().map(String::as_str)).chain(of_programs));
    let is_setting = |name: &str| SETTINGS.iter().any(|spec| spec.name == name);
    for (row, fold) in frame.keys()?.iter().enumerate() {
        let name = fold.to_string();
        let mut line = vec![name.clone(), name.replace('/', "-"), "finished".to_owned(), "1".to_owned()];
        let program = programs.get(&fold.trial);
        for column in &said {
            line.push(match program.filter(|_| is_setting(column)) {
                Some(config) => config.show(column).unwrap_or_default(),
                None => label(&frame.data().column(column)?.get(row)?),
            });
        }
        let show = |name: &String| program.and_then(|config| config.show(name)).unwrap_or_default();
        line.extend(declared.iter().map(show));
        line.extend(of_programs.map(|_| program.map(|config| config.canonical()).unwrap_or_default()));
        text += &spreadsheet::line(line);
    }
    Ok(text)
}

fn curves(rows: &[FoldRow]) -> String {
    let mut ordered: Vec<&FoldRow> = rows.iter().collect();
    ordered.sort_by_key(|row| (row.position, row.fold.split, row.fold.seed, row.fold.trial));
    let head = ["Name", "epoch", "learning_rate", "train_loss", "train_acc", "val_loss", "val_acc"];
    let lines = ordered.iter().flat_map(|row| {
        row.result.history.iter().map(|at| {
            let numbers =
                [at.lr, at.train.loss, at.train.accuracy, at.validation.loss, at.validation.accuracy];
            let start = [row.fold.to_string(), at.epoch.to_string()];
            spreadsheet::line(start.into_iter().chain(numbers.map(|number| number.to_string())))
        })
    });
    std::iter::once(spreadsheet::line(head)).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use togl_sweeps::trial::{Backbone, Features, LastEpoch, Position};
    use togl_sweeps::{FoldKey, SweepSpec};

    use super::*;
    use crate::import::wandb::{Mapping, read};
    use crate::test_folds::{fold, folds, frame, trial};

    /// Folds of trials that exports of others could not tell apart, with values that are not round.
    fn odd() -> Vec<FoldRow> {
        let plain = trial("DD", Backbone::Gat, 3);
        let random =
            TrialConfig { features: Features::Random, num_heads: 3, ..trial("mnist", Backbone::Gat, 2) };
        let togl =
            TrialConfig { togl: true, togl_position: Position::Last, ..trial("ENZYMES", Backbone::Gin, 4) };
        let last = TrialConfig { last_epoch: LastEpoch::OneBatch, lr: 1.0 / 3.0, ..plain.clone() };
        let mut rows = Vec::new();
        for (position, config) in (0..).zip([plain, random, togl, last]) {
            rows.extend(folds(position, &config, &[0.1 + 0.2, 0.5]));
        }
        let mut other = fold(4, &trial("cycles", Backbone::Gcn, 1), 7, 1.0);
        other.fold = FoldKey { seed: u64::from(u32::MAX), ..other.fold };
        "=worker, \"1\"".clone_into(&mut other.worker);
        other.result.provenance.dirty = true;
        other.result.energy_joules = Some(12.5);
        other.result.finished_at = Some(1_700_000_000_123);
        rows.push(other);
        rows
    }

    #[test]
    fn runs_of_programs_come_back_with_their_settings_their_score_and_their_identity() {
        let text = "version: 1\nname: x\nprogram:\n  run: [./train]\n  version: 1\n  settings: {lr: number, width: whole}\n  \
                    score: {name: MAE, goal: min}\nbase: {dataset: mine, width: 8}\ngrid: {lr: [0.1, 0.5]}\n";
        let spec = SweepSpec::parse(text).expect("a sweep");
        let mut rows = folds(0, &trial("DD", Backbone::Gcn, 4), &[0.5]);
        for planned in &spec.trials {
            let mut row = fold(planned.position + 1, &planned.config, 3, -2.5);
            row.result.score = Some(spec.scale().clone());
            row.result.version = 2;
            row.result.confusion.clear();
            rows.push(row);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let before = frame(rows.clone());
        let [path, _] = wandb(&before, &rows, &folder.path().join("runs.csv")).expect("written");
        let imported = read(&[path], &Mapping::default()).expect("read back");
        assert!(imported.skipped.is_empty() && imported.varying.is_empty(), "{imported:?}");
        assert_eq!(imported.frame.keys().expect("keys"), before.keys().expect("keys"));
        for name in ["method", "dataset", "lr", "width", "test_accuracy", "score", "score_goal", "score_low"]
        {
            let [was, is] =
                [&before, &imported.frame].map(|frame| frame.data().column(name).expect(name).clone());
            assert!(was.equals_missing(&is), "{name}: {was:?} came back as {is:?}");
        }
        for name in ["wandb_lr", "wandb_width", "wandb_togl_trial"] {
            assert!(imported.frame.data().column(name).is_err(), "{name}: kept under its own name only");
        }
    }

    #[test]
    fn an_import_of_what_was_exported_gives_the_same_folds_with_all_that_is_known_of_them() {
        let folder = tempfile::tempdir().expect("a folder");
        let before = frame(odd());
        let [path, curves] = wandb(&before, &odd(), &folder.path().join("runs.csv")).expect("written");
        let imported = read(&[path], &Mapping::default()).expect("read back");
        assert!(imported.skipped.is_empty() && imported.varying.is_empty(), "{imported:?}");
        assert_eq!(imported.frame.keys().expect("keys"), before.keys().expect("keys"));
        let same = ["split", "seed", "trial", "method"].into_iter();
        let same = same.chain(SETTINGS.iter().chain(&METRICS).chain(&PROVENANCE).map(|spec| spec.name));
        for name in same.filter(|name| *name != "origin") {
            let [was, is] =
                [&before, &imported.frame].map(|frame| frame.data().column(name).expect(name).clone());
            assert!(was.equals_missing(&is), "{name}: {was:?} came back as {is:?}");
        }
        let text = std::fs::read_to_string(curves).expect("curves");
        assert_eq!(text.lines().count(), 1 + odd().len(), "the example has one epoch: {text}");
        assert!(text.contains("/7/4294967295,0,0.001,0.5,1,0.5,1"), "{text}");
    }
}
