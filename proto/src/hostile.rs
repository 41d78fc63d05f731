//! Arbitrary bytes through everything that stands between the network and domain words: for fuzz targets and for the
//! test that runs them with seeded mutations. Must never panic; says whether something came through.

use prost::Message;
use togl_sweeps::{CheckedResult, Failure};

use crate::checkpoint::Held;
use crate::{convert, wire};

/// A message of a worker.
pub fn worker_message(bytes: &[u8]) -> bool {
    use wire::worker_message::Kind;
    let Ok(message) = wire::WorkerMessage::decode(bytes) else { return false };
    let attempted = |fold, attempt| convert::fold(fold).is_ok() && convert::attempt(attempt).is_ok();
    match message.kind {
        Some(Kind::Hello(hello)) => hello.running.into_iter().all(|r| attempted(r.fold, r.attempt)),
        Some(Kind::Heartbeat(beat)) => beat.running.into_iter().all(|r| attempted(r.fold, r.attempt)),
        Some(Kind::Log(lines)) => attempted(lines.fold, lines.attempt),
        Some(Kind::Reports(reports)) => {
            let results = reports.results.into_iter().map(|report| {
                let result = report.result.map(CheckedResult::try_from);
                attempted(report.fold, report.attempt) && result.is_some_and(|result| result.is_ok())
            });
            let failures = reports.failures.into_iter().map(|report| {
                let failure = report.failure.map(Failure::try_from);
                attempted(report.fold, report.attempt) && failure.is_some_and(|failure| failure.is_ok())
            });
            results.chain(failures).filter(|came_through| !came_through).count() == 0
        }
        Some(Kind::Ask(_) | Kind::Goodbye(_)) | None => true,
    }
}

/// A lease, as a worker reads it.
pub fn lease(bytes: &[u8]) -> bool {
    let Ok(lease) = wire::Lease::decode(bytes) else { return false };
    let Ok(fold) = convert::fold(lease.fold) else { return false };
    let held = lease.held.map(Held::try_from).transpose();
    convert::attempt(lease.attempt).is_ok() && convert::trial(&lease.config, fold).is_ok() && held.is_ok()
}
