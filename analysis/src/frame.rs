//! One row per finished fold: the frame that every table starts from. Owns the order of rows (trial's position,
//! split, seed: never the order of arrival) and the refusal of a fold that is there twice. What the columns are
//! is in [`crate::schema`]; files are in [`crate::files`]. Chooses nothing and averages nothing.

use std::collections::{HashMap, HashSet};

use polars::prelude::*;
use togl_sweeps::spec::Metric;
use togl_sweeps::{FoldKey, FoldResult, Scale, TrialConfig};

use crate::columns::{self, FoldIdentity, identity_columns};
use crate::compact;
use crate::error::{Error, Result};
use crate::scales;
use crate::schema;
use crate::validation::ValidationView;

/// A finished fold as the outside world hands it in.
#[derive(Debug, Clone, PartialEq)]
pub struct FoldRow {
    /// The trial's place in the sweep.
    pub position: u64,
    /// The trial, split and seed that were trained.
    pub fold: FoldKey,
    /// The trial's settings as the sweep wrote them.
    pub config: TrialConfig,
    /// Which attempt this result comes from.
    pub attempt: u32,
    /// The worker that reported it.
    pub worker: String,
    /// What it reported.
    pub result: FoldResult,
}

impl FoldRow {
    /// Which fold it is and what was trained.
    pub(crate) fn identity(&self) -> FoldIdentity<'_> {
        FoldIdentity { position: self.position, fold: self.fold, config: &self.config }
    }
}

/// Finished folds in their defined order, each at most once, in the columns of [`crate::schema`].
#[derive(Debug, Clone, PartialEq)]
pub struct FoldFrame {
    data: DataFrame,
    /// Files it was read from that could carry a digest and do not: damage to them would not be noticed.
    without_digest: Vec<String>,
}

impl FoldFrame {
    /// A frame of results, in whatever order they come. No rows make an empty frame.
    pub fn from_rows(rows: impl IntoIterator<Item = FoldRow>) -> Result<Self> {
        let mut rows: Vec<FoldRow> = rows.into_iter().collect();
        for row in &rows {
            row.result
                .check_readable()
                .map_err(|source| Error::Unfit(format!("fold {}: {source}", row.fold)))?;
        }
        rows.sort_by_key(|row| (row.position, row.fold.split, row.fold.seed, row.fold.trial));
        let identities: Vec<FoldIdentity<'_>> = rows.iter().map(FoldRow::identity).collect();
        let mut columns = identity_columns(&identities);
        columns.extend(schema::METRICS.iter().chain(&schema::PROVENANCE).map(|spec| spec.of(&rows)));
        columns.extend(columns::declared_columns(&identities));
        Self::from_data(&DataFrame::new(rows.len(), columns)?, "the results")
    }

    /// A frame from data that may come from anywhere; `origin` names it in errors.
    pub fn from_data(data: &DataFrame, origin: &str) -> Result<Self> {
        let data = schema::conform(data, origin)?;
        let in_order = is_in_order(&data)?;
        if in_order && has_one_run_per_trial(&data)? {
            return Ok(Self::unmarked(data));
        }
        refuse_duplicates(&data)?;
        if in_order {
            return Ok(Self::unmarked(data));
        }
        // The trial is the last key only so that the order is total even if two trials claim one position.
        let keys = ["position", "split", "seed", "trial"];
        let data = data.sort(keys, SortMultipleOptions::default().with_maintain_order(true))?;
        Ok(Self::unmarked(data))
    }

    /// Several frames as one. Positions of later frames follow those of earlier ones, so that rows stay in the
    /// order of the frames; a column that only some have is null in the others.
    pub fn concat(frames: impl IntoIterator<Item = Self>) -> Result<Self> {
        let (mut parts, mut without_digest) = (Vec::new(), Vec::new());
        let mut next_position: u64 = 0;
        for frame in frames {
            without_digest.extend(frame.without_digest);
            let last = frame.data.column("position")?.u64()?.max();
            parts.push(frame.data.lazy().with_column(col("position") + lit(next_position)));
            next_position = last.map_or(next_position, |last| next_position + last + 1);
        }
        if parts.is_empty() {
            return Self::from_rows([]);
        }
        let data = concat_lf_diagonal(parts, UnionArgs::default())?.collect()?;
        Ok(Self { without_digest, ..Self::from_data(&data, "the combined frames")? })
    }

    fn unmarked(data: DataFrame) -> Self {
        Self { data, without_digest: Vec::new() }
    }

    /// Other rows from where these come from.
    fn with(&self, data: DataFrame) -> Self {
        Self { data, without_digest: self.without_digest.clone() }
    }

    /// The same rows, marked as read from a file that carries no digest.
    pub(crate) fn without_digest(mut self, file: String) -> Self {
        self.without_digest.push(file);
        self
    }

    /// What a reader should know about where the rows come from.
    pub fn remark(&self) -> Option<String> {
        let files = self.without_digest.join(", ");
        (!files.is_empty())
            .then(|| format!("from {files}, which another program wrote: no digest tells of damage"))
    }

    /// Number of folds.
    pub fn len(&self) -> usize {
        self.data.height()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The Polars frame, for reading.
    pub fn data(&self) -> &DataFrame {
        &self.data
    }

    /// The folds, in order.
    pub fn keys(&self) -> Result<Vec<FoldKey>> {
        columns::keys(&self.data)
    }

    /// Seconds and epochs of training of each fold, in order; zeros where it is not known.
    pub fn costs(&self) -> Result<Vec<(f64, u32)>> {
        let seconds = self.data.column("seconds")?.f64()?;
        let epochs = columns::counts(self.data.column("epochs")?.u64()?);
        let whole = |epochs: u64| u32::try_from(epochs).unwrap_or(u32::MAX);
        Ok(seconds.iter().zip(epochs).map(|(s, e)| (s.unwrap_or_default(), whole(e))).collect())
    }

    /// Only these folds, such as those behind one cell of a table; what the frame does not have is not added.
    pub fn only(&self, folds: &[FoldKey]) -> Result<Self> {
        let wanted: HashSet<&FoldKey> = folds.iter().collect();
        let mask: Vec<bool> = self.keys()?.iter().map(|key| wanted.contains(key)).collect();
        Ok(self.with(self.data.filter(&BooleanChunked::from_slice("wanted".into(), &mask))?))
    }

    /// Only the folds whose trials have one of the given values in each of the given settings.
    pub fn filtered(&self, filter: &[(String, Vec<String>)]) -> Result<Self> {
        if filter.is_empty() {
            return Ok(self.clone());
        }
        Ok(self.with(self.data.filter(&columns::matching(&self.data, filter)?)?))
    }

    /// What the values of a metric are. Several scores in one frame have no mean and are refused.
    pub fn scale(&self, metric: Metric) -> Result<Scale> {
        scales::of_frame(self, metric)
    }

    /// What a choice may look at: settings and validation columns, and nothing else.
    pub fn validation(&self) -> Result<ValidationView> {
        ValidationView::of(self)
    }

    /// The frame after some folds got another result, or have none any more; it takes as little room as it can.
    pub(crate) fn changed(&self, news: &HashMap<FoldKey, Option<FoldRow>>) -> Result<Self> {
        let stays: Vec<bool> = self.keys()?.iter().map(|key| !news.contains_key(key)).collect();
        let stays = self.data.filter(&BooleanChunked::from_slice("stays".into(), &stays))?;
        let new = Self::from_rows(news.values().flatten().cloned())?;
        let data = compact::stacked(&stays, &new.data)?;
        Ok(self.with(Self::from_data(&data, "the results")?.data))
    }

    /// The rows at these places, in the frame's order, whatever order the places come in.
    pub(crate) fn rows(&self, places: &[IdxSize]) -> Result<Self> {
        let mut places = places.to_vec();
        places.sort_unstable();
        places.dedup();
        Ok(self.with(self.data.take(&IdxCa::from_vec("row".into(), places))?))
    }
}

/// Whether each row comes strictly after the one before, so that sorting would change nothing.
fn is_in_order(data: &DataFrame) -> Result<bool> {
    let key = |name: &str| Ok::<_, Error>(data.column(name)?.u64()?.iter().flatten());
    let keys = key("position")?.zip(key("split")?).zip(key("seed")?);
    Ok(keys.is_sorted_by(|before, after| before < after))
}

/// Whether the rows of each trial stand together at one position. In strict order, that leaves no room for the same
/// fold twice, which is far cheaper to see than by comparing all folds.
fn has_one_run_per_trial(data: &DataFrame) -> Result<bool> {
    let (trials, positions) = (data.column("trial")?.str()?, data.column("position")?.u64()?);
    let mut seen = HashSet::new();
    let mut last = None;
    for here in trials.iter().zip(positions.iter()) {
        if last != Some(here) && !seen.insert(here.0) {
            return Ok(false);
        }
        last = Some(here);
    }
    Ok(true)
}

fn refuse_duplicates(data: &DataFrame) -> Result<()> {
    let keys = [col("trial"), col("split"), col("seed")];
    let repeated = data
        .clone()
        .lazy()
        .select(keys.clone())
        .group_by(keys)
        .agg([len().alias("times")])
        .filter(col("times").gt(lit(1)))
        .sort(["trial", "split", "seed"], SortMultipleOptions::default())
        .collect()?;
    if repeated.height() == 0 {
        return Ok(());
    }
    let names = ["trial", "split", "seed"].map(str::to_owned);
    let folds: Result<Vec<String>> =
        (0..repeated.height()).map(|row| Ok(columns::labels(&repeated, &names, row)?.join("/"))).collect();
    Err(Error::DuplicateFolds { folds: folds? })
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
