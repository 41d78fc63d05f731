//! Looking up the published numbers: the tables, methods and data sets that there are, which cell is about what, and which
//! of our data sets is which of theirs. The cells themselves come with the sweep files.

use std::collections::BTreeSet;

pub use togl_sweeps::published::{PublishedCell, cells, cells_of};

use crate::distinct::Distinct;

/// The names of the published tables, in order.
pub fn tables() -> Vec<&'static str> {
    Distinct::of(cells().iter().map(|cell| cell.table.as_str()))
}

/// The methods of a table as printed, in order.
pub fn methods(table: &str) -> Vec<&'static str> {
    Distinct::of(cells_of(table).map(|cell| cell.method.as_str()))
}

/// The data sets of a table as printed, in order.
pub fn datasets(table: &str) -> Vec<&'static str> {
    Distinct::of(cells_of(table).map(|cell| cell.dataset.as_str()))
}

/// The positions of TOGL in a table.
pub fn positions(table: &str) -> BTreeSet<u32> {
    cells_of(table).filter_map(|cell| cell.position).collect()
}

/// Whether a cell is about this; depth counts where its table has it. Where TOGL stands is not asked.
pub fn is_about(cell: &PublishedCell, method: &str, dataset: &str, depth: Option<u32>) -> bool {
    cell.method == method
        && same_dataset(&cell.dataset, dataset)
        && (cell.depth.is_none() || cell.depth == depth)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_published_table_has_a_layout_of_its_name() {
        let layouts: BTreeSet<&str> = crate::Layout::WORDS.iter().copied().collect();
        assert_eq!(layouts, tables().into_iter().collect());
    }

    #[test]
    fn a_cell_is_found_by_what_it_is_about() {
        let find = |table, method, dataset, depth| {
            cells_of(table).find(|cell| is_about(cell, method, dataset, depth))
        };
        let cell = find("structural-extended", "GCN", "DD", Some(4)).unwrap();
        assert_eq!((cell.mean, cell.std), (68.0, Some(3.6)));
        assert_eq!(find("structural-extended", "GCN", "DD", None), None, "the depth is needed");
        assert_eq!(find("table1", "GCN-4", "ogbg-molhiv", Some(4)).unwrap().dataset, "MOLHIV");
        assert!(find("table3", "PersLay", "NCI1", None).is_some_and(|cell| cell.cited && cell.std.is_none()));
    }

    #[test]
    fn spelling_does_not_make_another_data_set() {
        assert!(same_dataset("PROTEINS", "PROTEINS_full") && same_dataset("CIFAR-10", "cifar10"));
        assert!(!same_dataset("IMDB-BINARY", "IMDB-MULTI"));
    }
}
