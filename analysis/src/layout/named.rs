//! Rows of a frame under the names that a publication prints: what a network is called there follows from its
//! settings. Owns that naming, and the making of tables from renamed rows.

use std::collections::{HashMap, HashSet};

use polars::prelude::{BooleanChunked, Column, DataFrame, IdxSize, NewChunkedArray};
use togl_sweeps::spec::{Metric, TableSpec};
use togl_sweeps::{FoldKey, TrialId};

use crate::choice::Contest;
use crate::columns::labels;
use crate::distinct::Distinct;
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::plan::Plan;
use crate::table::{Cell, Mark, Table};

/// What names depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamedSettings<'a> {
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

impl NamedSettings<'_> {
    /// What the network is called, or a method whose printed name has no number of layers.
    fn network(&self) -> Result<&'static str, &'static str> {
        match self.model {
            "gin" => Ok("GIN"),
            "gat" => Ok("GAT"),
            "gatedgcn" => Ok("GATED-GCN"),
            "wl" => Err("WL"),
            "wl-oa" => Err("WL-OA"),
            "ph" => Err("PH"),
            "gfl" => Err("GFL"),
            "perslay" => Err("PersLay"),
            _ => Ok("GCN"),
        }
    }

    /// The network as built.
    pub fn built(&self) -> String {
        self.called(self.replaces)
    }

    /// The network as printed: TOGL always counts as one of `depth` layers there, whether it was or not.
    pub fn printed(&self) -> String {
        self.called(true)
    }

    fn called(&self, togl_counts: bool) -> String {
        let layers = || self.depth.saturating_sub(u64::from(self.togl && togl_counts));
        match (self.network(), self.togl) {
            (Err(method), _) => method.to_owned(),
            (Ok(backbone), false) => format!("{backbone}-{}", layers()),
            (Ok(backbone), true) => format!("{backbone}-{}-TOGL-1", layers()),
        }
    }

    /// Graph layers before TOGL.
    pub fn layers_before(&self) -> u32 {
        let layers = self.depth.saturating_sub(u64::from(self.replaces)) as u32;
        self.position.parse().unwrap_or(layers).min(layers)
    }
}

/// How many graph layers stand before TOGL, by trial, where that is known.
pub fn places(frame: &FoldFrame) -> Result<HashMap<TrialId, u32>> {
    let settings = settings(frame.data())?;
    let keys = frame.keys()?.into_iter().enumerate();
    Ok(keys.filter_map(|(row, key)| Some((key.trial, settings(row)?.layers_before()))).collect())
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
pub fn renamed(
    frame: &FoldFrame,
    mut name: impl FnMut(&NamedSettings<'_>) -> Option<Names>,
) -> Result<FoldFrame> {
    let settings = settings(frame.data())?;
    let names: Vec<Option<Names>> =
        (0..frame.len()).map(|row| settings(row).and_then(|settings| name(&settings))).collect();
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

/// What names depend on, for each row; none where it is not all known.
fn settings<'a>(data: &'a DataFrame) -> Result<impl Fn(usize) -> Option<NamedSettings<'a>> + 'a> {
    let text = |name: &str| Ok::<_, Error>(data.column(name)?.str()?);
    let flag = |name: &str| Ok::<_, Error>(data.column(name)?.bool()?);
    let (datasets, models, features) = (text("dataset")?, text("model")?, text("features")?);
    let (placements, positions) = (text("placement")?, text("togl_position")?);
    let (with_togl, deepset, fixed) = (flag("togl")?, flag("deepset")?, flag("static")?);
    let depths = data.column("depth")?.u64()?;
    Ok(move |row| {
        let togl = with_togl.get(row)?;
        Some(NamedSettings {
            dataset: datasets.get(row)?,
            model: models.get(row)?,
            depth: depths.get(row)?,
            structure_only: features.get(row)? != "original",
            togl,
            replaces: placements.get(row)? == "replace",
            position: positions.get(row)?,
            deepset: togl && deepset.get(row)?,
            fixed: togl && fixed.get(row)?,
        })
    })
}

/// Runs chosen by a layout.
struct ChosenRuns {
    frame: FoldFrame,
    /// Those whose split has fewer runs of one embedding than of another.
    among_fewer: HashSet<FoldKey>,
}

impl ChosenRuns {
    /// A table of them, in which cells that were chosen among fewer candidates say so.
    fn part(&self, title: &str, shape: (&[&str], &str)) -> Result<Option<Table>> {
        let mut made = part(&self.frame, title, shape, &["deepset".to_owned()])?;
        let cells = made.iter_mut().flat_map(|table| &mut table.rows).flat_map(|row| &mut row.cells);
        for cell in cells.filter(|cell| cell.folds.iter().any(|fold| self.among_fewer.contains(fold))) {
            cell.marks.insert(Mark::FewerCandidates);
        }
        Ok(made)
    }
}

/// The rows with TOGL, of which each fold keeps the embedding that was best on the last epoch's validation part. `groups`
/// are the settings that all candidates share; the choice is made anew in each split of a group.
fn chosen_embedding(frame: &FoldFrame, groups: &[&str]) -> Result<ChosenRuns> {
    let by = Metric::LastValidationAccuracy;
    let (keys, judged) = (frame.keys()?, frame.validation()?.values(by)?);
    let names: Vec<String> = groups.iter().map(|name| (*name).to_owned()).collect();
    let (mut families, mut contests) = (Distinct::default(), Distinct::default());
    let (mut trials, mut runs) = (Vec::<Distinct<TrialId>>::new(), Vec::<Contest>::new());
    for (row, key) in keys.iter().enumerate() {
        let family = families.place(labels(frame.data(), &names, row)?);
        let at = contests.place((family, key.split));
        trials.resize_with(families.in_order.len(), Distinct::default);
        runs.resize_with(contests.in_order.len(), Contest::default);
        runs[at].enter(row, trials[family].place(key.trial), judged[row].map(|value| (value, row)));
    }
    let (mut rows, mut among_fewer) = (Vec::new(), HashSet::new());
    for ((family, split), contest) in contests.in_order.iter().zip(runs) {
        let Some(row) = contest.best() else {
            let values = names.iter().zip(&families.in_order[*family]);
            let group = values.map(|(name, value)| format!("{name}={value}"));
            let group: Vec<String> = group.chain([format!("split={split}")]).collect();
            return Err(Error::nothing_to_choose(&group, by.as_str()));
        };
        rows.extend(IdxSize::try_from(row));
        // The publication chose all the same where a trial is missing, or has fewer runs than another.
        if !contest.is_full(trials[*family].in_order.len()) {
            among_fewer.insert(keys[row]);
        }
    }
    Ok(ChosenRuns { frame: frame.rows(&rows)?, among_fewer })
}

/// A table of renamed rows; none if there are no rows.
fn part(
    frame: &FoldFrame,
    title: &str,
    (rows, columns): (&[&str], &str),
    among: &[String],
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

/// The tables that a layout called `name` is made of: one of rows as they were trained and one of rows in which each fold
/// chooses its embedding, within `groups`. `shape` is what makes rows and what makes columns. Refuses a layout without
/// rows; `about` says which ones it would have.
pub fn parts(
    name: &str,
    about: &str,
    shape: (&[&str], &str),
    trained: &FoldFrame,
    general: &FoldFrame,
    groups: &[&str],
) -> Result<Vec<Table>> {
    let chosen = chosen_embedding(general, groups)?;
    let parts = [part(trained, name, shape, &[])?, chosen.part(name, shape)?];
    let parts: Vec<Table> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => Err(Error::Empty { origin: format!("the layout {name} ({about})") }),
        false => Ok(parts),
    }
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
    Distinct::of(parts.iter().flat_map(|part| part.remarks.clone()))
}

/// Says in a layout how "General" numbers are chosen.
pub const HOW_CHOSEN: &str = "TOGL without a named embedding: per fold the embedding with the highest validation \
     accuracy of the last epoch, of equal ones the last run";
