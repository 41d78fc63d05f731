//! The extended table of structure-only runs: data sets and depths as rows, plain networks and every TOGL variant
//! as columns, and "General", which chooses the embedding per fold. Owns its columns and what the publication
//! prints above them, which for two of them is not what was trained.

use polars::prelude::*;

use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::layout::named::{chosen_embedding, find, part, remarks};
use crate::table::{Row, Table, TableColumn, Winners};

const NAME: &str = "structural-extended";
const ROWS: [&str; 2] = ["dataset", "depth"];
const GENERAL: &str = "GCN-TOGL (General)";
const GENERAL_STATIC: &str = "GCN-TOGL (General - Static)";
const COORDINATES: &str = "GCN-TOGL (No Interaction)";
const DEEPSET: &str = "GCN-TOGL (Interaction)";
const STATIC_COORDINATES: &str = "GCN-TOGL (Static - No Interaction)";
const STATIC_DEEPSET: &str = "GCN-TOGL (Static - Interaction)";

/// What was trained, and what the publication prints above it: it has the two static columns swapped.
const STRUCTURAL_COLUMNS: [(&str, &str); 9] = [
    ("GCN", "GCN"),
    ("GIN", "GIN"),
    ("GAT", "GAT"),
    (GENERAL, GENERAL),
    (GENERAL_STATIC, GENERAL_STATIC),
    (COORDINATES, COORDINATES),
    (DEEPSET, DEEPSET),
    (STATIC_COORDINATES, STATIC_DEEPSET),
    (STATIC_DEEPSET, STATIC_COORDINATES),
];

/// The table from all structure-only rows; other rows are ignored.
pub fn structural_extended(frame: &FoldFrame) -> Result<Table> {
    let named = with_names(frame, structural_method())?;
    if named.is_empty() {
        return Err(Error::Empty {
            origin: "the layout structural-extended (structure-only runs)".to_owned(),
        });
    }
    let single = part(&named, NAME, &ROWS, "method", &[])?;
    let with_topology = with_names(&named, when(col("togl")).then(col("method")).otherwise(lit(NULL)))?;
    if with_topology.is_empty() {
        return Ok(assemble(&single.into_iter().collect::<Vec<_>>()));
    }
    // A set without folds has one split, so it is one group and its "General" is one run, as published.
    let chosen = chosen_embedding(&with_topology, &["dataset", "depth", "static", "split"])?;
    let general = when(col("static")).then(lit(GENERAL_STATIC)).otherwise(lit(GENERAL));
    let named = with_names(&chosen.frame, general)?;
    let general = chosen.with_frame(named).part(NAME, &ROWS, "method")?;
    Ok(assemble(&single.into_iter().chain(general).collect::<Vec<_>>()))
}

/// The rows to which `method` gives a name, under that name; data sets as the publication calls them.
fn with_names(frame: &FoldFrame, method: Expr) -> Result<FoldFrame> {
    let dataset =
        when(col("dataset").eq(lit("PROTEINS_full"))).then(lit("PROTEINS")).otherwise(col("dataset"));
    let named = frame
        .data()
        .clone()
        .lazy()
        .with_columns([method.alias("method"), dataset.alias("dataset")])
        .filter(col("method").is_not_null());
    FoldFrame::from_data(&named.collect()?, "the layout")
}

fn structural_method() -> Expr {
    let is = |model: &str| col("model").eq(lit(model));
    let topology = when(col("static").and(col("deepset")))
        .then(lit(STATIC_DEEPSET))
        .when(col("static"))
        .then(lit(STATIC_COORDINATES))
        .when(col("deepset"))
        .then(lit(DEEPSET))
        .otherwise(lit(COORDINATES));
    when(col("features").eq(lit("original")))
        .then(lit(NULL))
        .when(col("togl").and(is("gcn")))
        .then(topology)
        .when(col("togl"))
        .then(lit(NULL))
        .when(is("gcn"))
        .then(lit("GCN"))
        .when(is("gin"))
        .then(lit("GIN"))
        .when(is("gat"))
        .then(lit("GAT"))
        .otherwise(lit(NULL))
}

/// The columns of the layout from tables that have some of them.
fn assemble(parts: &[Table]) -> Table {
    let mut table = parts[0].clone();
    let mut labels: Vec<Vec<String>> = Vec::new();
    for row in parts.iter().flat_map(|part| &part.rows) {
        if !labels.contains(&row.labels) {
            labels.push(row.labels.clone());
        }
    }
    labels.sort_by_key(|labels| (labels[0].clone(), labels[1].parse::<u64>().unwrap_or(u64::MAX)));
    let cells = |labels: &[String]| STRUCTURAL_COLUMNS.map(|(label, _)| find(parts, labels, label)).to_vec();
    table.rows =
        labels.into_iter().map(|labels| Row { cells: cells(&labels), labels, printed_as: None }).collect();
    table.columns = STRUCTURAL_COLUMNS
        .map(|(label, printed)| TableColumn {
            label: label.to_owned(),
            group: Some(if label.contains("TOGL") { "GCN with TOGL" } else { "Without TOGL" }.to_owned()),
            printed_as: Some(printed.to_owned()),
        })
        .to_vec();
    table.mark_best(Winners::PerRow);
    table.remarks = remarks(parts);
    table.remarks.extend([
        "General: per fold the embedding with the highest validation accuracy of the last epoch, of equal ones \
         the last run"
            .to_owned(),
        format!("the publication prints `{STATIC_COORDINATES}` and `{STATIC_DEEPSET}` swapped"),
    ]);
    table.reword();
    table
}

#[cfg(test)]
#[path = "structural_tests.rs"]
mod tests;
