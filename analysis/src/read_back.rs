//! Results out of saved folds: the way back from a frame to what workers reported, for whoever takes them into a store. A row
//! is believed only if its trial is one of the given ones, its settings are those of that trial, and its numbers can be; else
//! nothing is given and every such fold is named. Confusion matrices and learning curves are not in a frame, so they are
//! empty. Chooses nothing.

use std::collections::HashMap;

use polars::prelude::Column;
use togl_sweeps::result::{Metrics, Provenance, RESULT_VERSION};
use togl_sweeps::spec::PlannedTrial;
use togl_sweeps::{FoldKey, FoldResult, TrialId};

use crate::columns::{self, FoldIdentity, declared_columns, identity_columns, label};
use crate::error::{Error, Result};
use crate::frame::{FoldFrame, FoldRow};

/// Folds that are named in a message.
const NAMED: usize = 20;

/// The columns of keys, which say nothing of settings.
const KEYS: usize = 4;

impl FoldFrame {
    /// The rows as they were before they became columns, for these trials.
    pub fn read_back(&self, trials: &[PlannedTrial]) -> Result<Vec<FoldRow>> {
        let trials: HashMap<TrialId, &PlannedTrial> = trials.iter().map(|trial| (trial.id, trial)).collect();
        let (mut rows, mut refused) = (Vec::with_capacity(self.len()), Vec::new());
        let positions = columns::positions(self.data())?;
        for (row, fold) in self.keys()?.into_iter().enumerate() {
            match (Row { frame: self, row }).read(fold, positions[row], &trials) {
                Ok(read) => rows.push(read),
                Err(reason) => refused.push(format!("fold {fold}: {reason}")),
            }
        }
        if refused.is_empty() {
            refused = self.other_settings(&rows)?;
        }
        if refused.is_empty() { Ok(rows) } else { Err(Error::Unfit(named(&refused))) }
    }

    /// Rows that say other settings than their trial has.
    fn other_settings(&self, rows: &[FoldRow]) -> Result<Vec<String>> {
        let identities: Vec<FoldIdentity<'_>> = rows.iter().map(FoldRow::identity).collect();
        let expected = identity_columns(&identities).into_iter().skip(KEYS);
        let mut refused: Vec<Option<String>> = vec![None; rows.len()];
        for expected in expected.chain(declared_columns(&identities)) {
            let Ok(found) = self.data().column(expected.name()) else { continue };
            if found.as_materialized_series().equals_missing(expected.as_materialized_series()) {
                continue;
            }
            for (at, row) in rows.iter().enumerate().filter(|(at, _)| differ(found, &expected, *at)) {
                let (name, here, there) =
                    (expected.name(), label(&found.get(at)?), label(&expected.get(at)?));
                refused[at].get_or_insert_with(|| {
                    format!("fold {}: its `{name}` is `{here}`, that of its trial is `{there}`", row.fold)
                });
            }
        }
        Ok(refused.into_iter().flatten().collect())
    }
}

fn differ(found: &Column, expected: &Column, at: usize) -> bool {
    let text = |column: &Column| column.get(at).map(|value| label(&value)).unwrap_or_default();
    let (found, expected) = (text(found), text(expected));
    !columns::is_among(&found, &[expected])
}

fn named(refused: &[String]) -> String {
    let more = match refused.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    };
    format!("nothing was taken in:\n  {}{more}", refused[..refused.len().min(NAMED)].join("\n  "))
}

/// One row of a frame. Its answers are for the sentence that says what is wrong with it.
struct Row<'a> {
    frame: &'a FoldFrame,
    row: usize,
}

type Said<T> = std::result::Result<T, String>;

impl Row<'_> {
    fn read(&self, fold: FoldKey, position: u64, trials: &HashMap<TrialId, &PlannedTrial>) -> Said<FoldRow> {
        let trial = trials.get(&fold.trial).ok_or("the sweep does not have its trial")?;
        let worker = self.text("worker")?;
        let result = self.result(worker.clone())?.check().map_err(|error| error.to_string())?;
        let attempt = self.small("attempt").unwrap_or(1);
        Ok(FoldRow { position, fold, config: trial.config.clone(), attempt, worker, result: result.into() })
    }

    fn result(&self, worker: String) -> Said<FoldResult> {
        let size = |name| self.count(name).unwrap_or_default();
        Ok(FoldResult {
            version: RESULT_VERSION,
            numerics: self.small("numerics")?,
            test: self.metrics("test")?,
            validation: self.metrics("validation")?,
            train: self.metrics("train")?,
            last_validation: self.metrics("last_validation")?,
            best_epoch: self.small("best_epoch")?,
            epochs: self.small("epochs")?,
            seconds: self.number("seconds")?,
            finished_at: self.count("finished_at").ok(),
            energy_joules: self.number("energy_joules").ok(),
            peak_memory: size("peak_memory"),
            parameters: size("parameters"),
            confusion: Vec::new(),
            part_sizes: ["train_size", "validation_size", "test_size"].map(size),
            data_digest: self.text("data_digest")?,
            split_digest: self.text("split_digest")?,
            provenance: self.provenance(worker)?,
            history: Vec::new(),
        })
    }

    fn provenance(&self, worker: String) -> Said<Provenance> {
        let dirty = self.column("dirty")?.bool().map_err(|error| error.to_string())?.get(self.row);
        Ok(Provenance {
            code_version: self.text("code_version")?,
            commit: self.text("commit")?,
            dirty: dirty.unwrap_or_default(),
            libtorch: self.text("libtorch")?,
            device: self.text("device")?,
            processor: self.text("processor")?,
            host: self.text("host")?,
            worker,
        })
    }

    fn metrics(&self, part: &str) -> Said<Metrics> {
        let number = |what: &str| self.number(&format!("{part}_{what}"));
        Ok(Metrics { loss: number("loss")?, accuracy: number("accuracy")? })
    }

    fn column(&self, name: &str) -> Said<&Column> {
        self.frame.data().column(name).map_err(|error| error.to_string())
    }

    fn text(&self, name: &str) -> Said<String> {
        let texts = self.column(name)?.str().map_err(|error| error.to_string())?;
        Ok(texts.get(self.row).unwrap_or_default().to_owned())
    }

    fn number(&self, name: &str) -> Said<f64> {
        let numbers = self.column(name)?.f64().map_err(|error| error.to_string())?;
        numbers.get(self.row).ok_or_else(|| without(name))
    }

    fn count(&self, name: &str) -> Said<u64> {
        let counts = self.column(name)?.u64().map_err(|error| error.to_string())?;
        counts.get(self.row).ok_or_else(|| without(name))
    }

    fn small(&self, name: &str) -> Said<u32> {
        let count = self.count(name)?;
        u32::try_from(count).map_err(|_| format!("its `{name}` is {count}, which cannot be"))
    }
}

fn without(name: &str) -> String {
    format!("it has no value of `{name}`")
}

#[cfg(test)]
mod tests {
    use togl_sweeps::SweepSpec;

    use super::*;
    use crate::test_folds::{fold, frame};

    fn sweep() -> SweepSpec {
        let text = "version: 1\nname: s\nbase: {dataset: DD}\ngrid: {depth: [2, 3]}\nsplits: [0, 1]\n";
        SweepSpec::parse(text).unwrap()
    }

    fn rows(sweep: &SweepSpec) -> Vec<FoldRow> {
        let of = |trial: &PlannedTrial| {
            [0, 1].map(|split| fold(trial.position, &trial.config, split, 0.1 + 0.2 * f64::from(split)))
        };
        let mut rows: Vec<FoldRow> = sweep.trials.iter().flat_map(of).collect();
        for row in &mut rows {
            row.result.provenance.worker.clone_from(&row.worker);
            row.result.provenance.processor = "avx2".to_owned();
            (row.result.finished_at, row.result.energy_joules) = (Some(1_700_000_000_123), Some(1.0 / 3.0));
        }
        rows
    }

    #[test]
    fn rows_come_back_from_every_format_but_for_confusion_and_curves() {
        let (sweep, folder) = (sweep(), tempfile::tempdir().unwrap());
        let mut expected = rows(&sweep);
        for name in ["x.parquet", "x.arrow", "x.csv", "x.ndjson"] {
            let file = folder.path().join(name);
            frame(rows(&sweep)).write(&file).unwrap();
            let read = FoldFrame::read(&file).unwrap().read_back(&sweep.trials).unwrap();
            for row in &mut expected {
                (row.result.confusion, row.result.history) = (Vec::new(), Vec::new());
            }
            assert_eq!(read, expected, "{name}");
        }
    }

    #[test]
    fn what_is_not_as_its_trial_says_or_cannot_be_is_refused_by_name() {
        let sweep = sweep();
        let refusal = |edit: fn(&mut Vec<FoldRow>)| {
            let mut rows = rows(&sweep);
            edit(&mut rows);
            frame(rows).read_back(&sweep.trials).unwrap_err().to_string()
        };
        let said = refusal(|rows| rows[1].config.lr = 0.5);
        assert!(said.contains("/1/0: its `lr` is `0.5`, that of its trial is `0.001`"), "{said}");
        assert_eq!(said.lines().count(), 2, "{said}");
        let said = refusal(|rows| rows[0].fold.trial = TrialId::from_bytes([7; 16]));
        assert!(said.contains("0707/0/0: the sweep does not have its trial"), "{said}");
        let said = refusal(|rows| {
            for row in &mut rows[..2] {
                row.result.best_epoch = row.result.epochs;
            }
        });
        assert!(said.lines().count() == 3 && said.contains("best_epoch = 5"), "{said}");
    }
}
