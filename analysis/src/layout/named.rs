//! Rows of a frame under the names that a publication prints: what a network is called there follows from its
//! settings. Owns that naming, and the making of tables from renamed rows.

use std::collections::{BTreeMap, HashMap, HashSet};

use polars::prelude::{BooleanChunked, Column, DataFrame, NewChunkedArray, StringChunked, UInt64Chunked};
use togl_sweeps::spec::{Metric, TableSpec};
use togl_sweeps::{FoldKey, TrialId};

use crate::columns::labels;
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::plan::Plan;
use crate::select::best_by_last_validation;
use crate::table::{Cell, Mark, Table};

/// What names depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings<'a> {
    pub dataset: &'a str,
    pub model: &'a str,
    pub depth: u64,
    pub structure_only: bool,
    pub togl: bool,
    pub replaces: bool,
    pub position: &'a str,
    pub deepset: bool,
    pub fixed: bool,
}

impl Settings<'_> {
    fn backbone(&self) -> &'static str {
        match self.model {
            "gin" => "GIN",
            "gat" => "GAT",
            "gatedgcn" => "GATED-GCN",
            _ => "GCN",
        }
    }

    /// What methods without a number of layers in their printed name are called.
    fn baseline(&self) -> Option<&'static str> {
        match self.model {
            "wl" => Some("WL"),
            "wl-oa" => Some("WL-OA"),
            "ph" => Some("PH"),
            "gfl" => Some("GFL"),
            "perslay" => Some("PersLay"),
            _ => None,
        }
    }

    /// The network as built.
    pub fn built(&self) -> String {
        if let Some(name) = self.baseline() {
            return name.to_owned();
        }
        let layers = self.depth.saturating_sub(u64::from(self.togl && self.replaces));
        let plain = format!("{}-{layers}", self.backbone());
        if self.togl { format!("{plain}-TOGL-1") } else { plain }
    }

    /// The network as printed: TOGL always counts as one of `depth` layers there, whether it was or not.
    pub fn printed(&self) -> String {
        if let Some(name) = self.baseline() {
            return name.to_owned();
        }
        let layers = self.depth.saturating_sub(u64::from(self.togl));
        let plain = format!("{}-{layers}", self.backbone());
        if self.togl { format!("{plain}-TOGL-1") } else { plain }
    }

    /// Graph layers before TOGL.
    pub fn layers_before(&self) -> u64 {
        let layers = self.depth.saturating_sub(u64::from(self.replaces));
        self.position.parse().unwrap_or(layers).min(layers)
    }
}

/// Names for a row; none leaves it out.
pub struct Names {
    pub method: String,
    pub dataset: String,
    /// The position as a number, where rows are about it.
    pub position: Option<String>,
}

/// The rows without those of TOGL without cycles, and how many of these there were: published tables are about TOGL as
/// it is meant, and its ablation has no name in them.
pub fn with_cycles(frame: &FoldFrame) -> Result<(FoldFrame, usize)> {
    let flag = |name: &str| Ok::<_, Error>(frame.data().column(name)?.bool()?);
    let (togl, dim1) = (flag("togl")?, flag("dim1")?);
    let kept: Vec<bool> =
        togl.iter().zip(dim1.iter()).map(|(togl, dim1)| togl != Some(true) || dim1 != Some(false)).collect();
    let left_out = kept.iter().filter(|kept| !**kept).count();
    if left_out == 0 {
        return Ok((frame.clone(), 0));
    }
    let data = frame.data().filter(&BooleanChunked::from_slice("kept".into(), &kept))?;
    Ok((FoldFrame::from_data(&data, "the layout")?, left_out))
}

/// The rows to which `name` gives names, under them.
pub fn renamed(frame: &FoldFrame, mut name: impl FnMut(&Settings<'_>) -> Option<Names>) -> Result<FoldFrame> {
    let source = Source::of(frame.data())?;
    let names: Vec<Option<Names>> =
        (0..frame.len()).map(|row| source.settings(row).and_then(|settings| name(&settings))).collect();
    let kept: Vec<bool> = names.iter().map(Option::is_some).collect();
    let mut data = frame.data().filter(&BooleanChunked::from_slice("kept".into(), &kept))?;
    let names: Vec<Names> = names.into_iter().flatten().collect();
    let texts = |column: &str, of: fn(&Names) -> Option<&str>| -> Option<Column> {
        let values: Option<Vec<&str>> = names.iter().map(of).collect();
        values.map(|values| Column::new(column.into(), values))
    };
    let columns = [
        texts("method", |names| Some(&names.method)),
        texts("dataset", |names| Some(&names.dataset)),
        texts("togl_position", |names| names.position.as_deref()),
    ];
    for column in columns.into_iter().flatten() {
        data.with_column(column)?;
    }
    FoldFrame::from_data(&data, "the layout")
}

/// The columns that names depend on, typed once.
struct Source<'a> {
    dataset: &'a StringChunked,
    model: &'a StringChunked,
    features: &'a StringChunked,
    placement: &'a StringChunked,
    position: &'a StringChunked,
    depth: &'a UInt64Chunked,
    togl: &'a BooleanChunked,
    deepset: &'a BooleanChunked,
    fixed: &'a BooleanChunked,
}

impl<'a> Source<'a> {
    fn of(data: &'a DataFrame) -> Result<Self> {
        let text = |name: &str| Ok::<_, Error>(data.column(name)?.str()?);
        let flag = |name: &str| Ok::<_, Error>(data.column(name)?.bool()?);
        Ok(Self {
            dataset: text("dataset")?,
            model: text("model")?,
            features: text("features")?,
            placement: text("placement")?,
            position: text("togl_position")?,
            depth: data.column("depth")?.u64()?,
            togl: flag("togl")?,
            deepset: flag("deepset")?,
            fixed: flag("static")?,
        })
    }

    fn settings(&self, row: usize) -> Option<Settings<'a>> {
        let togl = self.togl.get(row)?;
        Some(Settings {
            dataset: self.dataset.get(row)?,
            model: self.model.get(row)?,
            depth: self.depth.get(row)?,
            structure_only: self.features.get(row)? != "original",
            togl,
            replaces: self.placement.get(row)? == "replace",
            position: self.position.get(row)?,
            deepset: togl && self.deepset.get(row)?,
            fixed: togl && self.fixed.get(row)?,
        })
    }
}

/// Runs chosen by a layout.
pub struct ChosenRuns {
    pub frame: FoldFrame,
    /// Those whose split has fewer runs of one embedding than of another. The publication chose there all the same.
    among_fewer: HashSet<FoldKey>,
}

impl ChosenRuns {
    /// The same choice under other names of rows.
    pub fn with_frame(self, frame: FoldFrame) -> Self {
        Self { frame, ..self }
    }

    /// A table of them, in which cells that were chosen among fewer candidates say so.
    pub fn part(&self, title: &str, rows: &[&str], columns: &str) -> Result<Option<Table>> {
        let mut made = part(&self.frame, title, rows, columns, &["deepset"])?;
        let cells = made.iter_mut().flat_map(|table| &mut table.rows).flat_map(|row| &mut row.cells);
        for cell in cells.filter(|cell| cell.folds.iter().any(|fold| self.among_fewer.contains(fold))) {
            cell.marks.insert(Mark::FewerCandidates);
        }
        Ok(made)
    }
}

/// The rows with TOGL, of which each fold keeps the embedding that was best on the last epoch's validation part.
pub fn chosen_embedding(frame: &FoldFrame, groups: &[&str]) -> Result<ChosenRuns> {
    if frame.is_empty() {
        return Ok(ChosenRuns { frame: frame.clone(), among_fewer: HashSet::new() });
    }
    let chosen = best_by_last_validation(&frame.validation()?, groups)?;
    let fewer = among_fewer(frame, groups)?;
    let keys = frame.keys()?;
    let places = chosen.rows().iter().map(|row| *row as usize);
    let among_fewer = places.filter(|row| fewer[*row]).map(|row| keys[row]).collect();
    Ok(ChosenRuns { frame: chosen.frame()?, among_fewer })
}

/// For each row whether its group has not all the candidates that the same group has in other splits: a trial is
/// missing, or has fewer runs than another.
fn among_fewer(frame: &FoldFrame, groups: &[&str]) -> Result<Vec<bool>> {
    let family: Vec<String> =
        groups.iter().filter(|name| **name != "split").map(|name| (*name).to_owned()).collect();
    let mut trials: HashMap<Vec<String>, BTreeMap<TrialId, HashMap<u32, usize>>> = HashMap::new();
    let keys = frame.keys()?;
    let labels: Vec<Vec<String>> =
        (0..keys.len()).map(|row| labels(frame.data(), &family, row)).collect::<Result<_>>()?;
    for (labels, key) in labels.iter().zip(&keys) {
        let runs = trials.entry(labels.clone()).or_default().entry(key.trial).or_default();
        *runs.entry(key.split).or_default() += 1;
    }
    let fewer = |labels: &Vec<String>, split: u32| {
        let counts = trials[labels].values().map(|runs| runs.get(&split).copied().unwrap_or_default());
        let (least, most) = counts.fold((usize::MAX, 0), |(low, high), n| (low.min(n), high.max(n)));
        least < most
    };
    Ok(labels.iter().zip(&keys).map(|(labels, key)| fewer(labels, key.split)).collect())
}

/// A table of renamed rows; none if there are no rows.
pub fn part(
    frame: &FoldFrame,
    title: &str,
    rows: &[&str],
    columns: &str,
    among: &[&str],
) -> Result<Option<Table>> {
    if frame.is_empty() {
        return Ok(None);
    }
    let spec = TableSpec {
        rows: rows.iter().map(|name| (*name).to_owned()).collect(),
        columns: columns.to_owned(),
        metric: Metric::TestAccuracy,
        ..TableSpec::default()
    };
    let plan = Plan::of_frame(title, frame)?;
    Table::make_after_choice(frame, &spec, &plan, among).map(Some)
}

/// The cell with these labels and this column in whichever part has it.
pub fn find(parts: &[Table], labels: &[String], column: &str) -> Cell {
    let found = parts.iter().find_map(|part| {
        let at = part.columns.iter().position(|known| known.label == column)?;
        let row = part.rows.iter().find(|row| row.labels == labels)?;
        Some(row.cells[at].clone())
    });
    found.unwrap_or_default()
}

/// What the parts of a layout have to say, each thing once.
pub fn remarks(parts: &[Table]) -> Vec<String> {
    let mut seen = HashSet::new();
    parts.iter().flat_map(|part| part.remarks.clone()).filter(|remark| seen.insert(remark.clone())).collect()
}

/// Says in a layout how "General" numbers are chosen.
pub const HOW_CHOSEN: &str = "TOGL without a named embedding: per fold the embedding with the highest validation \
     accuracy of the last epoch, of equal ones the last run";
