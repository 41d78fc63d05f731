//! Layouts with methods as rows and data sets as columns. Which methods and data sets they have, and their order,
//! is read from the published cells; a TOGL row chooses its embedding per fold. Owns who is compared with whom:
//! networks of one backbone and size, whose winner is set in italics as published.

use std::collections::BTreeMap;

use crate::error::Result;
use crate::frame::FoldFrame;
use crate::layout::named::{HOW_CHOSEN, NamedSettings, Names, find, parts, remarks, renamed};
use crate::published::{self, is_about, same_dataset};
use crate::table::{Cell, Table, TableColumn, TableRow, Winners, mark_winners};

/// What the nodes of a layout's networks know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nodes {
    /// Random features: structure only.
    Structure,
    /// The data set's own features.
    OwnFeatures,
}

/// The name that a published table gives to a network, if it has it. The table of small networks and the static
/// tables differ from the others in suffixes only.
fn printed_name(table: &str, settings: &NamedSettings<'_>) -> Option<String> {
    let fixed = if settings.fixed { " (static)" } else { "" };
    let plain = format!("{}{fixed}", settings.printed());
    let known = published::methods(table);
    [plain.clone(), format!("{plain} (baseline)")].into_iter().find(|name| known.contains(&name.as_str()))
}

/// Makes the layout of the published table called `name`.
pub fn by_dataset(frame: &FoldFrame, name: &str, nodes: Nodes) -> Result<Table> {
    let mut printed: BTreeMap<String, String> = BTreeMap::new();
    let datasets = published::datasets(name);
    let mut named = |togl: bool| {
        renamed(frame, |settings| {
            let wanted = settings.structure_only == (nodes == Nodes::Structure) && settings.togl == togl;
            let dataset = datasets.iter().find(|known| same_dataset(known, settings.dataset))?;
            let printed_as = printed_name(name, settings).filter(|_| wanted)?;
            let method = if togl { general(settings) } else { settings.built() };
            printed.insert(method.clone(), printed_as);
            Some(Names { method, dataset: (*dataset).to_owned(), position: None })
        })
    };
    let (plain, with_topology) = (named(false)?, named(true)?);
    let about = "networks that it compares";
    let parts = parts(name, about, (&["method"], "dataset"), &plain, &with_topology, &["dataset", "method"])?;
    Ok(assemble(name, &parts, &printed))
}

fn general(settings: &NamedSettings<'_>) -> String {
    format!("{} (General{})", settings.built(), if settings.fixed { ", static" } else { "" })
}

fn assemble(name: &str, parts: &[Table], printed: &BTreeMap<String, String>) -> Table {
    let mut table = parts[0].clone();
    let has = |label: &str| parts.iter().any(|part| part.columns.iter().any(|column| column.label == label));
    let mut datasets = published::datasets(name);
    datasets.retain(|label| has(label));
    datasets.sort_by_key(|label| classifies_nodes(label));
    let mut rows: Vec<TableRow> = Vec::new();
    for row in parts.iter().flat_map(|part| &part.rows) {
        let cells = datasets.iter().map(|dataset| find(parts, &row.labels, dataset)).collect();
        let printed_as = printed.get(&row.labels[0]).cloned();
        rows.push(TableRow { labels: row.labels.clone(), cells, printed_as });
    }
    rows.extend(cited_rows(name, &datasets, &rows));
    let methods = published::methods(name);
    rows.sort_by_key(|row| methods.iter().position(|method| Some(*method) == row.printed_as.as_deref()));
    table.rows = rows;
    table.columns = grouped_columns(&datasets);
    table.mark_best(Winners::PerColumn);
    mark_comparisons(&mut table);
    table.remarks = remarks(parts);
    table.remarks.push(HOW_CHOSEN.to_owned());
    table.reword();
    table
}

/// Rows that the publication cites from elsewhere and that were not trained here.
fn cited_rows(name: &str, datasets: &[&str], trained: &[TableRow]) -> Vec<TableRow> {
    let is_trained = |method: &str| trained.iter().any(|row| row.printed_as.as_deref() == Some(method));
    let cited = |method: &str, dataset: &str| {
        let mut cells = published::cells_of(name).filter(|cell| cell.cited);
        let found = cells.find(|cell| is_about(cell, method, dataset, None));
        found.map_or_else(Cell::default, |cell| Cell::cited(cell.mean, cell.std))
    };
    let row = |method: &str| TableRow {
        labels: vec![method.to_owned()],
        cells: datasets.iter().map(|dataset| cited(method, dataset)).collect(),
        printed_as: Some(method.to_owned()),
    };
    let rows = published::methods(name).into_iter().filter(|method| !is_trained(method)).map(row);
    rows.filter(TableRow::is_cited).collect()
}

/// The columns, under what is classified where a table has both graphs and vertices.
fn grouped_columns(datasets: &[&str]) -> Vec<TableColumn> {
    let nodes = datasets.iter().filter(|label| classifies_nodes(label)).count();
    let both = nodes > 0 && nodes < datasets.len();
    let column = |label: &&str| {
        let group = if classifies_nodes(label) { "Node classification" } else { "Graph classification" };
        TableColumn { group: both.then(|| group.to_owned()), ..TableColumn::plain(label) }
    };
    datasets.iter().map(column).collect()
}

fn classifies_nodes(dataset: &str) -> bool {
    ["CLUSTER", "PATTERN"].iter().any(|known| same_dataset(known, dataset))
}

/// Marks in each column the winner among networks of one backbone and size.
fn mark_comparisons(table: &mut Table) {
    let scale = table.scale.clone();
    let families: Vec<String> = table.rows.iter().map(|row| family(row.printed_as.as_deref())).collect();
    for column in 0..table.columns.len() {
        let mut names = families.clone();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let rows = table.rows.iter_mut().zip(&families).filter(|(_, family)| **family == name);
            mark_winners(rows.map(|(row, _)| &mut row.cells[column]).collect(), &scale, |cell, wins| {
                cell.wins_comparison = wins;
            });
        }
    }
}

/// Backbone and number of layers with TOGL counted: `GCN-4` and `GCN-3-TOGL-1` are one family.
fn family(printed: Option<&str>) -> String {
    let name = printed.unwrap_or_default().split(' ').next().unwrap_or_default();
    let (network, topology) = name.split_once("-TOGL").map_or((name, 0), |(network, _)| (network, 1));
    let (backbone, layers) = network.rsplit_once('-').unwrap_or((network, ""));
    match layers.parse::<u64>() {
        Ok(layers) => format!("{backbone}-{}", layers + topology),
        Err(_) => name.to_owned(), // a method without layers is a family of its own
    }
}
