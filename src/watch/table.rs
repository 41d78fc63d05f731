//! The view of the table of a sweep: the very lines of `togl table`, as far as the folds are.

use super::model::Observation;
use super::sheet::{Sheet, SheetCell, SheetRow};

pub fn sheet(picture: &Observation) -> Sheet {
    let row =
        |(at, line): (usize, &String)| SheetRow { id: format!("{at:06}"), cells: vec![SheetCell::new(line)] };
    Sheet {
        heads: Vec::new(),
        rows: picture.table.iter().enumerate().map(row).collect(),
        empty: "the table is made with the first finished fold".to_owned(),
    }
}
