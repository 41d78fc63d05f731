//! Arbitrary bytes through everything that reads a store: for fuzz targets and for the test that replays their corpus.
//! Must never panic; says whether something came through. Nothing else calls it.

use std::path::Path;

use togl_proto::wire;
use togl_scheduler::{Digest, Limits, Scheduler, Timestamp};
use togl_sweeps::FoldResult;

use crate::store::sqlite::{self, SqliteReader};
use crate::store::{Reader, ResultKind, ResultQuery, StoreError, encode};

/// Folds of a sweep that are looked at; a damaged store may claim any number.
const LOOKED_AT: u64 = 64;

/// A store file, put at `place` with checksums that fit: otherwise nothing behind them would ever be reached.
pub fn store(bytes: &[u8], place: &Path) -> bool {
    let mut bytes = bytes.to_vec();
    sqlite::seal(&mut bytes);
    if std::fs::write(place, &bytes).is_err() {
        return false;
    }
    let loaded = sqlite::open_read_only(place).and_then(|reader| {
        look(&reader)?;
        reader.load()
    });
    let Ok(snapshot) = loaded else { return false };
    let scheduler = Scheduler::restore(Limits::default(), snapshot, Timestamp(0));
    _ = scheduler.check_invariants(); // may well be broken, but says so
    true
}

fn look(reader: &SqliteReader) -> Result<(), StoreError> {
    for sweep in reader.sweeps()?.into_iter().take(4) {
        for kind in [ResultKind::Accepted, ResultKind::Replicate, ResultKind::Conflict] {
            let query = ResultQuery { kind, limit: LOOKED_AT, ..ResultQuery::accepted(sweep.name.clone()) };
            for row in reader.results(&query)?.rows {
                reader.log(&row.fold)?;
                reader.history(&row.fold)?;
            }
        }
    }
    Ok(())
}

/// The text of a stored result: what can be read can be stored again, and crosses the wire unchanged.
pub fn stored_result(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Ok(result) = serde_json::from_str::<FoldResult>(text) else { return false };
    let Ok(checked) = result.clone().check() else { return false };
    let Ok(again) = encode(&checked) else { return false };
    let read: Option<FoldResult> = serde_json::from_str(&again).ok();
    assert_eq!(read.as_ref().map(Digest::of), Some(Digest::of(&result)), "stored and read: {text}");
    match FoldResult::try_from(wire::FoldResult::from(result.clone())) {
        Ok(crossed) => assert_eq!(Digest::of(&crossed), Digest::of(&result), "over the wire: {text}"),
        Err(_) => return false, // a store may hold what no worker could send
    }
    true
}
