//! What every back end must do with results: their order, their pages, and which of them count.

use togl_scheduler::{Adoption, Event, FromElsewhere, Reply};
use togl_sweeps::Attempt;
use togl_sweeps::result::example;

use super::Make;
use super::script::{Script, fold, join, report, submission, sweep, worker};
use crate::store::{ResultKind, ResultQuery, StoreError};

pub(super) fn results_come_in_the_order_of_the_sweep_and_in_pages(make: Make<'_>) {
    let backend = make();
    let mut script = Script::with_results(backend.open(), 10);
    script.tell(submission("reversed", (0..10).rev()));
    let reader = script.store.reader().unwrap();
    let mut query = ResultQuery { limit: 3, ..ResultQuery::accepted(sweep("reversed")) };
    let (mut rows, mut sizes) = (Vec::new(), Vec::new());
    loop {
        let page = reader.results(&query).unwrap();
        sizes.push(page.rows.len());
        rows.extend(page.rows);
        match page.next {
            Some(next) => query.from = next,
            None => break,
        }
    }
    assert_eq!(sizes, [1, 2, 1, 1]);
    let folds: Vec<u32> = rows.iter().map(|row| row.fold.split).collect();
    assert_eq!(folds, [8, 6, 4, 2, 0]);
    assert_eq!(rows[0].result, example(0.08));
    assert_eq!((rows[0].attempt, &rows[0].worker), (Attempt(1), &worker("w")));
    assert_eq!((rows[0].fold, rows[0].trial.as_str()), (fold(8), "{\"canonical\":1,\"dataset\":\"cycles\"}"));
    for row in &rows {
        assert_eq!(reader.result(&row.fold).unwrap().as_ref(), Some(row), "the same, asked for alone");
    }
    assert_eq!(reader.result(&fold(1)).unwrap(), None, "not finished");
    assert_eq!(reader.result(&fold(77)).unwrap(), None, "not there");
    query.from = u64::MAX;
    assert_eq!(reader.results(&query).unwrap().rows, []);
}

pub(super) fn replicates_and_conflicts_are_kept_apart(make: Make<'_>) {
    let backend = make();
    let mut script = Script::on(backend.open());
    script.tell(submission("s", 0..1));
    let Reply::Joined(joined) = script.tell(join("w", 1)) else { panic!("a join") };
    let first = script.lease("w", 1).remove(0);
    script.tell(Event::WorkerLeft { worker: worker("w"), session: joined.session });
    script.tell(join("v", 1));
    let second = script.lease("v", 1).remove(0);
    for (name, lease, accuracy) in [
        ("v", &second, 0.5),
        ("w", &first, 0.25),
        ("w", &first, 0.75),
        ("w", &first, 0.875),
        ("v", &second, 0.125),
    ] {
        script.tell(report(name, lease, example(accuracy)));
    }
    let reader = script.store.reader().unwrap();
    let found = |kind| {
        let query = ResultQuery { kind, ..ResultQuery::accepted(sweep("s")) };
        let rows = reader.results(&query).unwrap().rows.into_iter();
        rows.map(|row| (row.attempt.0, row.result.test.accuracy)).collect::<Vec<_>>()
    };
    assert_eq!(found(ResultKind::Accepted), [(2, 0.5)]);
    assert_eq!(reader.result(&first.fold).unwrap().unwrap().result.test.accuracy, 0.5, "the one that counts");
    assert_eq!(found(ResultKind::Replicate), [(1, 0.25)]);
    assert_eq!(found(ResultKind::Conflict), [(1, 0.75), (2, 0.125)], "the first conflict of each attempt");
}

pub(super) fn results_from_elsewhere_are_kept_with_who_made_them_and_say_so_in_the_history(make: Make<'_>) {
    let backend = make();
    let mut script = Script::with_results(backend.open(), 3);
    let before = script.store.reader().unwrap().transactions().unwrap();
    let results = [0, 1].map(|n| {
        let mut result = example(0.75);
        result.provenance.host = "far".to_owned();
        FromElsewhere { fold: fold(n), worker: worker("x"), result: Box::new(result.check().unwrap()) }
    });
    script.tell(Event::Adopt(Box::new(Adoption { sweep: sweep("s"), results: results.into() })));
    let reader = script.store.reader().unwrap();
    assert_eq!(reader.transactions().unwrap(), before + 1);
    let row = reader.result(&fold(1)).unwrap().unwrap();
    assert_eq!((row.attempt, row.worker, row.result.test.accuracy), (Attempt(2), worker("x"), 0.75));
    let query = ResultQuery { kind: ResultKind::Replicate, ..ResultQuery::accepted(sweep("s")) };
    let beside = reader.results(&query).unwrap().rows;
    assert_eq!((beside.len(), beside[0].fold, &beside[0].worker), (1, fold(0), &worker("x")));
    let events = |n| {
        let told = reader.history(&fold(n)).unwrap().into_iter();
        told.map(|line| (line.event, line.worker.map(|worker| worker.to_string()))).collect::<Vec<_>>()
    };
    let line = |event: &str, by: Option<&str>| (event.to_owned(), by.map(str::to_owned));
    let [w, x] = ["w", "x"].map(Some);
    assert_eq!(
        events(1),
        [line("submitted", None), line("leased", w), line("imported", x), line("accepted", x)]
    );
    assert_eq!(events(0)[3..], [line("imported", x), line("replicate", x)]);
    let far = reader.workers().unwrap().into_iter().find(|past| past.worker == worker("x")).unwrap();
    assert_eq!((far.host.as_str(), far.attempts, far.finished), ("far", 2, 1));
}

pub(super) fn results_of_a_sweep_that_is_not_there_are_an_error(make: Make<'_>) {
    let backend = make();
    let reader = backend.open().reader().unwrap();
    let error = reader.results(&ResultQuery::accepted(sweep("nowhere"))).unwrap_err();
    assert!(matches!(error, StoreError::UnknownSweep { .. }), "{error}");
}
