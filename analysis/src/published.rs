//! The numbers of the published tables, as data: every printed mean and deviation, with what is set in bold or
//! italics and what was cited from elsewhere. Owns their lookup and which of our data sets is which of theirs.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::Serialize;

/// One published number.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PublishedCell {
    /// The table it stands in; layouts have the same names.
    pub table: String,
    /// The method as printed.
    pub method: String,
    /// The data set as printed.
    pub dataset: String,
    /// The depth, in tables that have one.
    pub depth: Option<u64>,
    /// The position of TOGL, in tables that have one.
    pub position: Option<u64>,
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
    for line in include_str!("published.txt").lines() {
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

/// The names of the published tables, in order.
pub fn tables() -> impl Iterator<Item = &'static str> + Clone {
    distinct(cells().iter().map(|cell| cell.table.as_str()))
}

/// The methods of a table as printed, in order.
pub fn methods(table: &str) -> impl Iterator<Item = &'static str> {
    distinct(cells_of(table).map(|cell| cell.method.as_str()))
}

/// The data sets of a table as printed, in order.
pub fn datasets(table: &str) -> impl Iterator<Item = &'static str> {
    distinct(cells_of(table).map(|cell| cell.dataset.as_str()))
}

/// The positions of TOGL in a table, in order.
pub fn positions(table: &str) -> impl Iterator<Item = u64> {
    cells_of(table).filter_map(|cell| cell.position).collect::<BTreeSet<u64>>().into_iter()
}

/// The cells of one table.
pub fn cells_of(table: &str) -> impl Iterator<Item = &'static PublishedCell> {
    cells().iter().filter(move |cell| cell.table == table)
}

/// The cell of a table by what it is about; depth and position count where the table has them.
pub fn find(
    table: &str,
    method: &str,
    dataset: &str,
    depth: Option<u64>,
    position: Option<u64>,
) -> Option<&'static PublishedCell> {
    cells_of(table).find(|cell| {
        cell.method == method
            && same_dataset(&cell.dataset, dataset)
            && (cell.depth.is_none() || cell.depth == depth)
            && (cell.position.is_none() || cell.position == position)
    })
}

/// Whether two names mean the same data set: spelling, the prefix of the OGB sets and the suffix of the full
/// protein set do not count.
pub fn same_dataset(first: &str, second: &str) -> bool {
    plain(first) == plain(second)
}

fn plain(name: &str) -> String {
    let letters: String =
        name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect();
    let name = letters.strip_prefix("ogbg").unwrap_or(&letters);
    name.strip_suffix("full").unwrap_or(name).to_owned()
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> std::vec::IntoIter<&'a str> {
    let mut seen = BTreeSet::new();
    names.filter(|name| seen.insert(*name)).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_cell_and_no_cell_is_there_twice() {
        assert_eq!(cells().len(), 677);
        let keys: BTreeSet<_> = cells()
            .iter()
            .map(|cell| (&cell.table, &cell.method, &cell.dataset, cell.depth, cell.position))
            .collect();
        assert_eq!(keys.len(), 677);
    }

    #[test]
    fn every_published_table_has_a_layout_of_its_name() {
        let layouts: BTreeSet<&str> = crate::Layout::names().collect();
        assert_eq!(layouts, tables().collect());
    }

    #[test]
    fn a_cell_is_found_by_what_it_is_about() {
        let cell = find("structural-extended", "GCN", "DD", Some(4), None).unwrap();
        assert_eq!((cell.mean, cell.std), (68.0, Some(3.6)));
        assert_eq!(find("structural-extended", "GCN", "DD", None, None), None, "the depth is needed");
        assert_eq!(find("table1", "GCN-4", "ogbg-molhiv", Some(4), None).unwrap().dataset, "MOLHIV");
        assert!(
            find("table3", "PersLay", "NCI1", None, None)
                .is_some_and(|cell| cell.cited && cell.std.is_none())
        );
    }

    #[test]
    fn spelling_does_not_make_another_data_set() {
        assert!(same_dataset("PROTEINS", "PROTEINS_full") && same_dataset("CIFAR-10", "cifar10"));
        assert!(!same_dataset("IMDB-BINARY", "IMDB-MULTI"));
    }
}
