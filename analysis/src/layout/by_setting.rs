//! Layouts with data sets and values of a setting as rows and methods as columns: structure-only runs by depth, and runs
//! by where TOGL stands. A method without a named embedding ("General") chooses it per fold. Owns their columns and what
//! the publication prints above them, which for two of them is not what was trained.

use crate::distinct::Distinct;
use crate::error::Result;
use crate::frame::FoldFrame;
use crate::layout::named::{HOW_CHOSEN, NamedSettings, Names, find, parts, remarks, renamed};
use crate::published::{self, same_dataset};
use crate::table::{Table, TableColumn, TableRow, Winners};

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

/// The table of all structure-only rows by depth; other rows are ignored.
pub fn by_depth(frame: &FoldFrame, name: &str) -> Result<Table> {
    let printed = published::datasets(name);
    let named = |method: fn(&NamedSettings<'_>) -> Option<&'static str>| {
        renamed(frame, |settings| {
            let printed = printed.iter().find(|known| same_dataset(known, settings.dataset));
            let dataset = printed.map_or(settings.dataset, |known| *known);
            let method = method(settings).filter(|_| settings.structure_only)?.to_owned();
            Some(Names { method, dataset: dataset.to_owned(), position: None })
        })
    };
    // A set without folds has one split, so it is one group and its "General" is one run, as published.
    let groups = ["dataset", "depth", "static"];
    let about = "structure-only runs";
    let parts =
        parts(name, about, (&["dataset", "depth"], "method"), &named(trained)?, &named(general)?, &groups)?;
    let column = |(label, printed): (&str, &str)| TableColumn {
        label: label.to_owned(),
        group: Some(if label.contains("TOGL") { "GCN with TOGL" } else { "Without TOGL" }.to_owned()),
        printed_as: Some(printed.to_owned()),
    };
    let mut table = assembled(&parts, STRUCTURAL_COLUMNS.map(column).to_vec(), str::to_owned);
    table.remarks.extend([
        "General: per fold the embedding with the highest validation accuracy of the last epoch, of equal ones \
         the last run"
            .to_owned(),
        format!("the publication prints `{STATIC_COORDINATES}` and `{STATIC_DEEPSET}` swapped"),
    ]);
    table.reword();
    Ok(table)
}

/// What was trained, as a column of the table by depth.
fn trained(settings: &NamedSettings<'_>) -> Option<&'static str> {
    match (settings.model, settings.togl, settings.fixed, settings.deepset) {
        ("gcn", true, true, true) => Some(STATIC_DEEPSET),
        ("gcn", true, true, false) => Some(STATIC_COORDINATES),
        ("gcn", true, false, true) => Some(DEEPSET),
        ("gcn", true, false, false) => Some(COORDINATES),
        ("gcn", false, ..) => Some("GCN"),
        ("gin", false, ..) => Some("GIN"),
        ("gat", false, ..) => Some("GAT"),
        _ => None,
    }
}

fn general(settings: &NamedSettings<'_>) -> Option<&'static str> {
    let named = if settings.fixed { GENERAL_STATIC } else { GENERAL };
    (settings.togl && settings.model == "gcn").then_some(named)
}

/// The layout of a published table about where TOGL stands.
pub fn by_position(frame: &FoldFrame, name: &str) -> Result<Table> {
    let (datasets, methods) = (published::datasets(name), published::methods(name));
    let positions = published::positions(name);
    let named = |method: fn(&NamedSettings<'_>) -> String| {
        renamed(frame, |settings| {
            let dataset = datasets.iter().find(|known| same_dataset(known, settings.dataset))?;
            let (method, position) = (method(settings), settings.layers_before());
            let known = settings.togl && methods.contains(&method.as_str()) && positions.contains(&position);
            let position = Some(position.to_string());
            known.then(|| Names { method, dataset: (*dataset).to_owned(), position })
        })
    };
    let variant = |settings: &NamedSettings<'_>| {
        let fixed = if settings.fixed { "static - " } else { "" };
        let embedding = if settings.deepset { "interaction" } else { "no interaction" };
        format!("{} ({fixed}{embedding})", settings.printed())
    };
    let general = |settings: &NamedSettings<'_>| {
        format!("{}{}", settings.printed(), if settings.fixed { " (static)" } else { "" })
    };
    let groups = ["dataset", "method", "togl_position"];
    let about = "networks with TOGL at its positions";
    let shape: (&[&str], &str) = (&["dataset", "togl_position"], "method");
    let parts = parts(name, about, shape, &named(variant)?, &named(general)?, &groups)?;
    let column =
        |label: &&str| TableColumn { printed_as: Some((*label).to_owned()), ..TableColumn::plain(label) };
    let place = |dataset: &str| datasets.iter().position(|known| *known == dataset);
    let mut table = assembled(&parts, methods.iter().map(column).collect(), place);
    table.remarks.push(HOW_CHOSEN.to_owned());
    table.reword();
    Ok(table)
}

/// These columns from tables that have some of them, rows in the order of data sets and numbers.
fn assembled<K: Ord>(parts: &[Table], columns: Vec<TableColumn>, place: impl Fn(&str) -> K) -> Table {
    let mut labels = Distinct::of(parts.iter().flat_map(|part| &part.rows).map(|row| row.labels.clone()));
    labels.sort_by_key(|labels| (place(&labels[0]), labels[1].parse::<u64>().unwrap_or(u64::MAX)));
    let row = |labels: Vec<String>| {
        let cells = columns.iter().map(|column| find(parts, &labels, &column.label)).collect();
        TableRow { cells, labels, printed_as: None }
    };
    let rows = labels.into_iter().map(row).collect();
    let mut table = Table { rows, columns, remarks: remarks(parts), ..parts[0].clone() };
    table.mark_best(Winners::PerRow);
    table
}

#[cfg(test)]
#[path = "by_setting_tests.rs"]
mod tests;
