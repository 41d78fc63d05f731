//! The view of all sweeps.

use super::model::Observation;
use super::sheet::{Sheet, SheetCell, SheetRow, Tint, grouped, percent};
use crate::remote::ListedSweep;

pub fn sheet(picture: &Observation) -> Sheet {
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

fn row(sweep: &ListedSweep) -> SheetRow {
    let failed = if sweep.failed > 0 { Tint::Bad } else { Tint::Faint };
    let cells = vec![
        SheetCell::tinted(&sweep.name, Tint::Strong),
        SheetCell::tinted(&sweep.state, tint(&sweep.state)),
        SheetCell::new(format!("{} %", percent(sweep.finished, sweep.folds))),
        SheetCell::new(format!("{}/{}", grouped(sweep.finished), grouped(sweep.folds))),
        SheetCell::new(grouped(sweep.running)),
        SheetCell::tinted(grouped(sweep.failed), failed),
        SheetCell::tinted(sweep.priority, Tint::Faint),
        SheetCell::tinted(&sweep.note, Tint::Warn),
    ];
    SheetRow { id: sweep.name.clone(), cells }
}
