//! The view of one fold: why it is where it is, its attempts, and the end of what its trainers wrote.

use super::model::Observation;
use super::sheet::{Sheet, SheetCell, SheetRow};

pub fn sheet(picture: &Observation) -> Sheet {
    let row =
        |(at, line): (usize, &String)| SheetRow { id: format!("{at:06}"), cells: vec![SheetCell::new(line)] };
    Sheet {
        heads: Vec::new(),
        rows: picture.fold.iter().enumerate().map(row).collect(),
        empty: "asking the coordinator ...".to_owned(),
    }
}
