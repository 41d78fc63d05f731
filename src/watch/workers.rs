//! The view of workers.

use super::model::Picture;
use super::sheet::{Cell, Row, Sheet, Tint};
use super::sweeps::tint;
use crate::remote::ListedWorker;

pub fn sheet(picture: &Picture) -> Sheet {
    Sheet {
        heads: vec!["WORKER", "STATE", "BUSY", "DEVICES", "HOST", "VERSION", "NOTE"],
        rows: picture.workers.iter().map(row).collect(),
        empty: "no workers yet; add one with the line that `togl serve` printed, or `togl hosts up`"
            .to_owned(),
    }
}

fn row(worker: &ListedWorker) -> Row {
    let mut devices = worker.devices.clone();
    devices.dedup();
    let cells = vec![
        Cell::tinted(&worker.worker, Tint::Strong),
        Cell::tinted(&worker.state, tint(&worker.state)),
        Cell::new(format!("{}/{}", worker.running.len(), worker.slots)),
        Cell::new(devices.join(" ")),
        Cell::tinted(&worker.host, Tint::Faint),
        Cell::tinted(&worker.code_version, Tint::Faint),
        Cell::tinted(&worker.note, Tint::Bad),
    ];
    Row { id: worker.worker.clone(), cells }
}
