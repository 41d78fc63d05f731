//! The numbers of the published tables, as data: every printed mean and deviation, with what is set in bold or italics and
//! what was cited from elsewhere. Sweep files name such a table instead of repeating it. Owns the cells; who is compared
//! with whom is the tables' to say.

use std::sync::LazyLock;

use serde::Serialize;

/// One printed number, in percent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedCell {
    /// The table it stands in.
    pub table: String,
    /// The method as printed.
    pub method: String,
    /// The data set as printed.
    pub dataset: String,
    /// The depth, in tables that have one.
    pub depth: Option<u32>,
    /// The place of the topological layer, in tables that have one.
    pub position: Option<u32>,
    /// Mean in percent.
    pub mean: f64,
    /// Standard deviation in percent, if printed.
    pub std: Option<f64>,
    /// Whether it is printed in bold.
    pub bold: bool,
    /// Whether it is printed in italics.
    pub italic: bool,
    /// Whether it was cited from another publication.
    pub cited: bool,
}

static CELLS: LazyLock<Vec<PublishedCell>> = LazyLock::new(|| {
    let mut table = "";
    let mut cells = Vec::new();
    for line in include_str!("../paper/published.txt").lines() {
        match line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(name) => table = name,
            None => cells.extend(parse(table, line)),
        }
    }
    cells
});

/// A line of the file; none if it is a comment or empty.
fn parse(table: &str, line: &str) -> Option<PublishedCell> {
    let fields: Vec<&str> = line.split(" | ").collect();
    let [method, dataset, depth, position, numbers, marks] = fields[..] else { return None };
    let mut numbers = numbers.split(' ');
    Some(PublishedCell {
        table: table.to_owned(),
        method: method.to_owned(),
        dataset: dataset.to_owned(),
        depth: depth.parse().ok(),
        position: position.parse().ok(),
        mean: numbers.next()?.parse().ok()?,
        std: numbers.next().and_then(|number| number.parse().ok()),
        bold: marks.contains('b'),
        italic: marks.contains('i'),
        cited: marks.contains('c'),
    })
}

/// All published cells, table by table.
pub fn cells() -> &'static [PublishedCell] {
    &CELLS
}

/// The cells of one table; none if no published table has this name.
pub fn cells_of(table: &str) -> impl Iterator<Item = &'static PublishedCell> {
    cells().iter().filter(move |cell| cell.table == table)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_line_is_a_cell_and_no_cell_is_there_twice() {
        assert_eq!(cells().len(), 677);
        let key = |cell: &'static PublishedCell| {
            (&cell.table, &cell.method, &cell.dataset, cell.depth, cell.position)
        };
        assert_eq!(cells().iter().map(key).collect::<BTreeSet<_>>().len(), 677);
    }
}
