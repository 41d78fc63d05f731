//! Rows of a frame under the names that a publication prints: what a network is called there follows from its
//! settings. Owns that naming, and the making of tables from renamed rows.

use polars::prelude::{BooleanChunked, Column, DataFrame, NewChunkedArray, StringChunked, UInt64Chunked};
use togl_sweeps::spec::{Metric, TableSpec};

use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::plan::Plan;
use crate::select::best_by_last_validation;
use crate::table::{Cell, Table};

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

/// The rows with TOGL, of which each fold keeps the embedding that was best on the last epoch's validation part.
pub fn chosen_embedding(frame: &FoldFrame, groups: &[&str]) -> Result<FoldFrame> {
    if frame.is_empty() {
        return Ok(frame.clone());
    }
    best_by_last_validation(&frame.validation()?, groups)?.frame()
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

/// Says in a layout how "General" numbers are chosen.
pub const HOW_CHOSEN: &str = "TOGL without a named embedding: per fold the embedding with the highest validation \
     accuracy of the last epoch, of equal ones the last run";
