//! Which cells of a table are set off: the best mean alone, or all that are not significantly worse than it. Owns
//! the choice of test (paired t by fold with Nadeau and Bengio's correction, Holm over each comparison) and the
//! honest way out: where the test is refused, only the best stands out and a note says why.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use togl_sweeps::FoldKey;

use crate::columns::label;
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::statistics::{FoldValue, PartSizes, TestRefusal, corrected_paired_t, holm};
use crate::table::{Cell, Table, Winners};

/// Adjusted p-values below this are significant.
pub const ALPHA: f64 = 0.05;

/// The key of machine-readable output for cells that are as good as the best.
pub(crate) const NOT_WORSE: &str = "not_significantly_worse";

togl_sweeps::words!(
    /// Which cells are set off.
    #[derive(Default)]
    Emphasis {
        /// The best mean.
        #[default]
        Best = "best",
        /// The best mean and every one that a test cannot tell from it.
        NotSignificantlyWorse = "not-significantly-worse",
    }
);

impl FromStr for Emphasis {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::from_word(name)
            .ok_or_else(|| Error::unknown_choice("what is bold", name, Self::WORDS.iter().copied()))
    }
}

impl Emphasis {
    /// What the line under a table says beyond "best mean".
    pub(crate) fn also(self) -> &'static str {
        match self {
            Self::Best => "",
            Self::NotSignificantlyWorse => {
                ", and all that are not significantly worse (paired t test by fold with Nadeau and Bengio's \
                 correction, Holm-adjusted p of at least 0.05)"
            }
        }
    }
}

impl Table {
    /// The same table with other cells set off. `frame` is the one the table was made from: the test needs the
    /// sizes of the parts. Only complete cells are compared.
    pub fn with_emphasis(mut self, emphasis: Emphasis, frame: &FoldFrame) -> Result<Self> {
        self.emphasis = emphasis;
        self.rows.iter_mut().flat_map(|row| &mut row.cells).for_each(|cell| cell.not_worse = false);
        if emphasis == Emphasis::NotSignificantlyWorse {
            let facts = Facts::of(&self, frame)?;
            let mut untested: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for (name, places) in comparisons(&self) {
                if let Err(refusal) = mark_comparison(&mut self, &places, &facts) {
                    untested.entry(refusal.to_string()).or_default().push(name);
                }
            }
            let remarks = untested.into_iter();
            self.remarks
                .extend(remarks.map(|(why, names)| format!("not tested: {}: {why}", names.join(", "))));
        }
        self.reword();
        Ok(self)
    }
}

/// A row and a column.
type CellPlace = (usize, usize);

/// The cells that are compared with each other, under the label they share.
fn comparisons(table: &Table) -> Vec<(String, Vec<CellPlace>)> {
    let (rows, columns) = (table.rows.len(), table.columns.len());
    match table.winners {
        Winners::PerColumn => {
            let places = |column: usize| (0..rows).map(|row| (row, column)).collect();
            (0..columns).map(|column| (table.columns[column].label.clone(), places(column))).collect()
        }
        Winners::PerRow => {
            let places = |row: usize| (0..columns).map(|column| (row, column)).collect();
            (0..rows).map(|row| (table.rows[row].labels.join(" "), places(row))).collect()
        }
    }
}

fn mark_comparison(table: &mut Table, places: &[CellPlace], facts: &Facts) -> Result<(), TestRefusal> {
    let cell = |place: &CellPlace| &table.rows[place.0].cells[place.1];
    let Some(best) = places.iter().find(|place| cell(place).best) else { return Ok(()) };
    let others: Vec<CellPlace> =
        places.iter().copied().filter(|place| cell(place).is_complete() && !cell(place).best).collect();
    let p_values: Result<Vec<f64>, TestRefusal> =
        others.iter().map(|other| facts.compare(cell(best), cell(other))).collect();
    for (place, p) in others.iter().zip(holm(&p_values?)) {
        table.rows[place.0].cells[place.1].not_worse = p >= ALPHA;
    }
    Ok(())
}

/// What the frame knows about each fold of the table and the test needs.
struct Facts {
    folds: HashMap<FoldKey, FoldFacts>,
}

struct FoldFacts {
    train: u64,
    test: u64,
    split_digest: String,
}

impl Facts {
    fn of(table: &Table, frame: &FoldFrame) -> Result<Self> {
        let folds: Vec<FoldKey> = table.cells().flat_map(|(_, _, cell)| cell.folds.iter().copied()).collect();
        let frame = frame.only(&folds)?;
        let column = |name: &str| Ok::<_, Error>(frame.data().column(name)?.u64()?);
        let (train, test) = (column("train_size")?, column("test_size")?);
        let digests = frame.data().column("split_digest")?;
        let keys = frame.keys()?.into_iter().enumerate();
        let facts = keys.map(|(row, key)| {
            let size = |sizes: &polars::prelude::UInt64Chunked| sizes.get(row).unwrap_or_default();
            let split_digest = label(&digests.get(row)?);
            Ok((key, FoldFacts { train: size(train), test: size(test), split_digest }))
        });
        Ok(Self { folds: facts.collect::<Result<_>>()? })
    }

    fn compare(&self, best: &Cell, other: &Cell) -> Result<f64, TestRefusal> {
        self.check_splits(best, other)?;
        let test = corrected_paired_t(&measured(best), &measured(other), self.sizes(best))?;
        Ok(test.p)
    }

    /// Folds of the same number must be of the same split; unknown digests cannot tell.
    fn check_splits(&self, best: &Cell, other: &Cell) -> Result<(), TestRefusal> {
        let digest = |key: &FoldKey| self.folds.get(key).map_or("", |facts| facts.split_digest.as_str());
        let known: HashMap<u32, &str> = best.folds.iter().map(|key| (key.split, digest(key))).collect();
        for key in &other.folds {
            let ours = known.get(&key.split).copied().unwrap_or_default();
            let theirs = digest(key);
            if !ours.is_empty() && !theirs.is_empty() && ours != theirs {
                return Err(TestRefusal::DifferentSplits { split: key.split });
            }
        }
        Ok(())
    }

    /// Mean sizes over a cell's folds; none if any is unknown.
    fn sizes(&self, cell: &Cell) -> Option<PartSizes> {
        let facts: Option<Vec<&FoldFacts>> = cell.folds.iter().map(|key| self.folds.get(key)).collect();
        let facts = facts?;
        let mean = |size: fn(&FoldFacts) -> u64| {
            let sizes: Option<Vec<u64>> =
                facts.iter().map(|facts| Some(size(facts)).filter(|size| *size > 0)).collect();
            sizes.map(|sizes| sizes.iter().sum::<u64>() as f64 / sizes.len() as f64)
        };
        Some(PartSizes { train: mean(|facts| facts.train)?, test: mean(|facts| facts.test)? })
    }
}

fn measured(cell: &Cell) -> Vec<FoldValue> {
    let folds = cell.folds.iter().zip(&cell.values);
    folds.map(|(key, value)| FoldValue { split: key.split, seed: key.seed, value: *value }).collect()
}

#[cfg(test)]
#[path = "emphasis_tests.rs"]
mod tests;
