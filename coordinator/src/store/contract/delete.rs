//! What every back end must do with a sweep that is deleted: its own results go with it, shared ones stay, and a start
//! afterwards finds a store in order.

use togl_scheduler::{Limits, Scheduler, Timestamp};
use togl_sweeps::result::example;

use super::Make;
use super::script::{Script, fold, join, report, submission, sweep};
use crate::store::delete::Deletion;
use crate::store::{LogPiece, ResultQuery, StoreError};

pub(super) fn a_deleted_sweep_takes_along_what_only_it_has_and_nothing_else(make: Make<'_>) {
    let backend = make();
    let Some(address) = backend.address() else { return }; // what is in memory goes by itself
    let mut script = Script::with_results(backend.open(), 60);
    script.tell(submission("t", 0..4));
    let text = "epoch\n".repeat(10_000);
    for n in 0..60 {
        let piece = LogPiece { fold: fold(n), attempt: togl_sweeps::Attempt(1), text: text.clone() };
        script.store.append_log(&[piece]).unwrap();
    }
    assert!(Deletion::prepare(&address, &sweep("s")).is_err(), "a coordinator has it");
    script.store.close().unwrap();

    let unknown = Deletion::prepare(&address, &sweep("nowhere")).map(drop).unwrap_err();
    assert!(matches!(unknown, StoreError::UnknownSweep { .. }), "{unknown}");
    let deletion = Deletion::prepare(&address, &sweep("s")).unwrap();
    assert_eq!((deletion.folds, deletion.results, deletion.shared), (56, 28, 4));
    let freed = deletion.carry_out().unwrap();
    assert!(freed.after < freed.before, "{freed:?}");

    let store = backend.open();
    let (snapshot, reader) = (store.load().unwrap(), store.reader().unwrap());
    assert_eq!((snapshot.sweeps.len(), snapshot.folds.len()), (1, 4));
    let rows = reader.results(&ResultQuery::accepted(sweep("t"))).unwrap().rows;
    assert_eq!(rows.iter().map(|row| row.fold.split).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(reader.log(&fold(1)).unwrap()[0].text, text);
    assert!(reader.log(&fold(5)).unwrap().is_empty() && reader.history(&fold(5)).unwrap().is_empty());
    Scheduler::restore(Limits::default(), snapshot, Timestamp(0)).check_invariants().unwrap();

    // What went can be submitted and trained again.
    let mut script = Script::on(store);
    script.tell(submission("s", 0..6));
    script.tell(join("w", 6));
    let leases = script.lease("w", 6);
    let again = leases.iter().find(|lease| lease.fold == fold(5)).unwrap();
    script.tell(report("w", again, example(0.5)));
    assert_eq!(
        script.store.reader().unwrap().results(&ResultQuery::accepted(sweep("s"))).unwrap().rows.len(),
        3
    );
}
