//! The view of what people did, the last thing first.

use super::model::Observation;
use super::sheet::{Sheet, SheetCell, SheetRow, Tint};

pub fn sheet(picture: &Observation) -> Sheet {
    let row = |(at, act): (usize, &Vec<String>)| {
        let tints = [Tint::Faint, Tint::Strong, Tint::Plain, Tint::Plain, Tint::Faint, Tint::Warn];
        let cells = act.iter().zip(tints).map(|(text, tint)| SheetCell::tinted(text, tint)).collect();
        SheetRow { id: format!("{at:06}"), cells }
    };
    Sheet {
        heads: vec!["TIME (UTC)", "BY", "ACT", "ABOUT", "DETAIL", "REASON"],
        rows: picture.acts.iter().enumerate().rev().map(row).collect(),
        empty: "nobody has done anything yet".to_owned(),
    }
}
