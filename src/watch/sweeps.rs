//! The view of all sweeps.

use super::model::Picture;
use super::sheet::{Cell, Row, Sheet, Tint, grouped, percent};
use crate::remote::ListedSweep;

pub fn sheet(picture: &Picture) -> Sheet {
    Sheet {
        heads: vec!["SWEEP", "STATE", "DONE", "FOLDS", "RUNNING", "FAILED", "PRIORITY", "NOTE"],
        rows: picture.sweeps.iter().map(row).collect(),
        empty: "no sweeps yet; send one with `togl submit FILE`".to_owned(),
    }
}

/// How a state is meant.
pub fn tint(state: &str) -> Tint {
    match state {
        "active" | "connected" => Tint::Good,
        "paused" | "draining" | "disconnected" => Tint::Warn,
        "failed" | "quarantined" => Tint::Bad,
        _ => Tint::Faint,
    }
}

fn row(sweep: &ListedSweep) -> Row {
    let failed = if sweep.failed > 0 { Tint::Bad } else { Tint::Faint };
    let cells = vec![
        Cell::tinted(&sweep.name, Tint::Strong),
        Cell::tinted(&sweep.state, tint(&sweep.state)),
        Cell::new(format!("{} %", percent(sweep.finished, sweep.folds))),
        Cell::new(format!("{}/{}", grouped(sweep.finished), grouped(sweep.folds))),
        Cell::new(grouped(sweep.running)),
        Cell::tinted(grouped(sweep.failed), failed),
        Cell::tinted(sweep.priority, Tint::Faint),
        Cell::tinted(&sweep.note, Tint::Warn),
    ];
    Row { id: sweep.name.clone(), cells }
}
