//! The view of the table of a sweep: the very lines of `togl table`, as far as the folds are.

use super::model::Picture;
use super::sheet::{Cell, Row, Sheet};

pub fn sheet(picture: &Picture) -> Sheet {
    let row = |(at, line): (usize, &String)| Row { id: format!("{at:06}"), cells: vec![Cell::new(line)] };
    Sheet {
        heads: Vec::new(),
        rows: picture.table.iter().enumerate().map(row).collect(),
        empty: "the table is made with the first finished fold".to_owned(),
    }
}
