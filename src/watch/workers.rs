//! The view of workers.

use super::model::Observation;
use super::sheet::{Sheet, SheetCell, SheetRow, Tint};
use super::sweeps::tint;
use crate::remote::ListedWorker;

pub fn sheet(picture: &Observation) -> Sheet {
    Sheet {
        heads: vec!["WORKER", "STATE", "BUSY", "DEVICES", "HOST", "VERSION", "NOTE"],
        rows: picture.workers.iter().map(row).collect(),
        empty: "no workers yet; add one with the line that `togl serve` printed, or `togl hosts up`"
            .to_owned(),
    }
}

fn row(worker: &ListedWorker) -> SheetRow {
    let mut devices = worker.devices.clone();
    devices.dedup();
    let cells = vec![
        SheetCell::tinted(&worker.worker, Tint::Strong),
        SheetCell::tinted(&worker.state, tint(&worker.state)),
        SheetCell::new(format!("{}/{}", worker.running.len(), worker.slots)),
        SheetCell::new(devices.join(" ")),
        SheetCell::tinted(&worker.host, Tint::Faint),
        SheetCell::tinted(&worker.code_version, Tint::Faint),
        SheetCell::tinted(&worker.note, Tint::Bad),
    ];
    SheetRow { id: worker.worker.clone(), cells }
}
