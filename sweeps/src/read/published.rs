//! The `published` block: numbers from print. A table that the program knows is named; of others the cells are short lists
//! under a row of column names, so that they stay readable in the file.

use super::fields::{Fields, Result, below, entries, list, named, number, refuse, text, whole, word};
use super::values::{self, Names};
use crate::condition::Condition;
use crate::keys::{self, CELL};
use crate::spec::{Metric, Published, PublishedCell};
use crate::yaml::{Node, NodeKind};

pub(super) fn published(node: &Node, path: &str, names: Names<'_>) -> Result<Published> {
    let fields = Fields::read(node, path, keys::PUBLISHED)?;
    let table = text(fields.need("table", "say which table it is")?, &fields.below("table"))?;
    let repeated = fields.get("columns").or(fields.get("cells")).is_some();
    let known: Vec<PublishedCell> = crate::published::cells_of(&table).cloned().collect();
    Ok(Published {
        cells: if repeated || known.is_empty() { cells(&fields, &table)? } else { known },
        table,
        metric: fields
            .optional("metric", |node, path| word(node, path, Metric::WORDS, Metric::from_word))?
            .unwrap_or(Metric::TestAccuracy),
        methods: fields.optional("methods", |node, path| methods(node, path, names))?.unwrap_or_default(),
        datasets: fields.optional("datasets", datasets)?.unwrap_or_default(),
    })
}

fn cells(fields: &Fields<'_>, table: &str) -> Result<Vec<PublishedCell>> {
    let columns = fields.need("columns", "name them, such as `[method, dataset, mean, std]`")?;
    let columns = columns_of(columns, &fields.below("columns"))?;
    let cells = fields.need("cells", "give a list of cells")?;
    let at = fields.below("cells");
    let cells = list(cells, &at)?.iter().enumerate();
    cells.map(|(n, node)| cell(node, &format!("{at}[{n}]"), table, &columns)).collect()
}

fn columns_of(node: &Node, path: &str) -> Result<Vec<&'static str>> {
    let read = |node: &Node| {
        let name = text(node, path)?;
        let known = CELL.iter().copied().find(|known| *known == name);
        named(known, node.at, path, "no column", &name, CELL.iter().copied())
    };
    let columns: Vec<&str> = list(node, path)?.iter().map(read).collect::<Result<_>>()?;
    match ["method", "dataset", "mean"].into_iter().find(|needed| !columns.contains(needed)) {
        Some(needed) => refuse(node.at, path, format!("lacks `{needed}`")),
        None => Ok(columns),
    }
}

fn methods(node: &Node, path: &str, names: Names<'_>) -> Result<Vec<(String, Condition)>> {
    let read = |(key, node): &(crate::yaml::Key, Node)| {
        Ok((key.text.clone(), values::condition(node, &below(path, &key.text), names)?))
    };
    entries(node, path)?.iter().map(read).collect()
}

fn datasets(node: &Node, path: &str) -> Result<Vec<(String, String)>> {
    let read = |(key, node): &(crate::yaml::Key, Node)| {
        let ours = text(node, &below(path, &key.text))?;
        Ok((key.text.clone(), crate::datasets::spelled(&ours).to_owned()))
    };
    entries(node, path)?.iter().map(read).collect()
}

fn cell(node: &Node, path: &str, table: &str, columns: &[&'static str]) -> Result<PublishedCell> {
    let entries = list(node, path)?;
    if entries.len() != columns.len() {
        let message = format!("has {} entries for {} columns", entries.len(), columns.len());
        return refuse(node.at, path, message);
    }
    let get = |name: &str| {
        let at = columns.iter().position(|column| *column == name)?;
        entries.get(at).filter(|node| !matches!(node.kind, NodeKind::Null))
    };
    let small = |name: &str| get(name).map(|node| whole(node, path, 0, 1000)).transpose();
    let real = |name: &str| get(name).map(|node| number(node, path)).transpose();
    let label = |name: &str| get(name).map(|node| text(node, path)).transpose();
    let Some(mean) = real("mean")? else { return refuse(node.at, path, "has no mean") };
    Ok(PublishedCell {
        table: table.to_owned(),
        method: label("method")?.unwrap_or_default(),
        dataset: label("dataset")?.unwrap_or_default(),
        depth: small("depth")?.map(|depth| depth as u32),
        position: small("position")?.map(|position| position as u32),
        mean,
        std: real("std")?,
        bold: false,
        italic: false,
        cited: matches!(get("cited").map(|node| &node.kind), Some(NodeKind::Flag(true))),
    })
}
