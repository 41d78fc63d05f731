//! The view of one fold: why it is where it is, its attempts, and the end of what its trainers wrote.

use super::model::Picture;
use super::sheet::{Cell, Row, Sheet};

pub fn sheet(picture: &Picture) -> Sheet {
    let row = |(at, line): (usize, &String)| Row { id: format!("{at:06}"), cells: vec![Cell::new(line)] };
    Sheet {
        heads: Vec::new(),
        rows: picture.fold.iter().enumerate().map(row).collect(),
        empty: "asking the coordinator ...".to_owned(),
    }
}
