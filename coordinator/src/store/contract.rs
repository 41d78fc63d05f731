//! What every back end must do, as tests that run on each. A back end says how it is made and opened again;
//! the facts come from a real scheduler, so that stores are measured with what they will be given.

mod acts;
mod backends;
mod delete;
mod facts;
mod fleet;
mod life;
mod racing;
mod results;
mod script;

use togl_scheduler::{
    Change, Event, FoldChange, Lease, Limits, Reply, Scheduler, Snapshot, SweepChange, SweepState, Timestamp,
    WorkerInfo,
};
use togl_sweeps::result::example;
use togl_sweeps::trial::NUMERICS;
use togl_sweeps::{Attempt, Failure, FailureClass, FoldKey, FoldResult};

use super::address::StoreAddress;
use super::history::Happened;
use super::postgres_server::Server;
use super::{LOG_LIMIT, LogPiece, ResultKind, ResultQuery, Store};

use self::acts::{acts_of_a_deleted_sweep_go_with_it, who_steered_is_told_in_order_with_the_reason};
use self::backends::{Backend, Make, Place, memory, sqlite};
use self::delete::a_deleted_sweep_takes_along_what_only_it_has_and_nothing_else;
use self::facts::{
    a_fold_is_found_by_the_beginning_of_its_trial_also_after_an_edit,
    a_read_that_an_edit_overtakes_shows_the_sweep_as_it_was,
    a_reader_sees_one_state_and_the_next_one_what_was_committed_since,
    every_sweep_with_its_facts_comes_in_one_read_and_what_they_share_once,
    folds_are_listed_in_order_in_pages_and_only_those_that_fit,
    folds_say_where_they_stand_and_sweeps_count_them, who_had_folds_is_remembered,
};
use self::fleet::drained_workers_and_quarantined_hosts_are_loaded_again;
pub(crate) use self::life::History;
use self::racing::{
    a_halving_goes_on_after_a_restart_where_it_was, a_race_goes_on_after_a_restart_where_it_was,
};
use self::results::{
    replicates_and_conflicts_are_kept_apart, results_come_in_the_order_of_the_sweep_and_in_pages,
    results_from_elsewhere_are_kept_with_who_made_them_and_say_so_in_the_history,
    results_of_a_sweep_that_is_not_there_are_an_error,
};
pub(crate) use self::script::{
    Script, fill, filled_sqlite, fold, impossible_fact, join, report, submission, sweep, worker,
};

/// Runs each contract on each back end; those on PostgreSQL share one server, which takes a second to make.
macro_rules! contracts {
    ($($name:ident),+ $(,)?) => {
        mod on_memory { $(#[test] fn $name() { super::$name(&super::memory); })+ }
        mod on_sqlite { $(#[test] fn $name() { super::$name(&super::sqlite); })+ }

        #[test]
        fn all_hold_on_postgres() {
            let Some(server) = Server::quick() else { return };
            let make = || -> Box<dyn Backend> {
                Box::new(Place::at(StoreAddress::Postgres(Box::new(server.database()))))
            };
            let contracts: &[(&str, fn(Make<'_>))] = &[$((stringify!($name), $name)),+];
            for (name, contract) in contracts {
                eprintln!("{name}");
                contract(&make);
            }
        }
    };
}

contracts!(
    a_new_store_is_empty,
    what_was_committed_is_loaded_again,
    facts_of_any_history_in_batches_of_any_size_are_loaded_again,
    big_batches_are_one_transaction,
    any_text_comes_back_as_it_was,
    the_store_keeps_its_incarnation_and_no_two_are_alike,
    a_second_coordinator_is_refused_and_told_of_the_first,
    results_come_in_the_order_of_the_sweep_and_in_pages,
    replicates_and_conflicts_are_kept_apart,
    results_from_elsewhere_are_kept_with_who_made_them_and_say_so_in_the_history,
    results_of_a_sweep_that_is_not_there_are_an_error,
    edited_sweeps_lose_folds_but_no_results,
    gathered_folds_are_seen_when_their_sweep_is_saved,
    steered_sweeps_memory_floors_and_disputes_are_loaded_again,
    drained_workers_and_quarantined_hosts_are_loaded_again,
    logs_are_kept_up_to_a_bound_and_only_for_issued_attempts,
    a_reader_sees_one_state_and_the_next_one_what_was_committed_since,
    a_read_that_an_edit_overtakes_shows_the_sweep_as_it_was,
    every_sweep_with_its_facts_comes_in_one_read_and_what_they_share_once,
    folds_are_listed_in_order_in_pages_and_only_those_that_fit,
    folds_say_where_they_stand_and_sweeps_count_them,
    a_fold_is_found_by_the_beginning_of_its_trial_also_after_an_edit,
    who_had_folds_is_remembered,
    a_deleted_sweep_takes_along_what_only_it_has_and_nothing_else,
    readers_see_whole_transactions_while_others_are_written,
    a_fold_has_a_history_that_only_grows,
    who_steered_is_told_in_order_with_the_reason,
    acts_of_a_deleted_sweep_go_with_it,
    a_race_goes_on_after_a_restart_where_it_was,
    a_halving_goes_on_after_a_restart_where_it_was,
);

fn a_new_store_is_empty(make: Make<'_>) {
    assert_eq!(make().open().load().unwrap(), Snapshot::default());
}

fn what_was_committed_is_loaded_again(make: Make<'_>) {
    let backend = make();
    let mut script = Script::on(backend.open());
    script.tell(submission("s", 0..6));
    script.tell(submission("shared", 4..8));
    script.tell(join("w", 4));
    let Reply::Joined(joined) = script.tell(join("v", 2)) else { panic!("a join") };
    let leases = script.lease("w", 4);
    script.tell(report("w", &leases[0], example(0.1)));
    script.fail("w", &leases[1], FailureClass::Config);
    script.fail("w", &leases[2], FailureClass::NotFinite);
    script.tell(Event::Cancel { sweep: sweep("shared") });
    script.tell(Event::Retry { sweep: sweep("s") });
    script.lease("v", 2);
    script.tell(Event::WorkerLeft { worker: worker("v"), session: joined.session });
    script.now = script.now.plus(20_000);
    script.tell(Event::Tick);
    let running = leases.iter().map(|lease| (lease.fold, lease.attempt)).collect();
    let Event::WorkerJoined { worker, info, .. } = join("w", 4) else { panic!("a join") };
    script.tell(Event::WorkerJoined { worker, info, running });
    script.tell(Event::Pause { sweep: sweep("s") });
    let expected = script.scheduler.snapshot();
    script.store.close().unwrap();
    assert_eq!(backend.open().load().unwrap(), expected);
}

fn facts_of_any_history_in_batches_of_any_size_are_loaded_again(make: Make<'_>) {
    for seed in 1..=4 {
        eprintln!("seed {seed}");
        let backend = make();
        let mut store = backend.open();
        let mut history = History::new(seed);
        for _ in 0..40 {
            let changes = history.some_facts();
            store.commit(&changes).unwrap();
            assert_eq!(store.load().unwrap(), history.scheduler.snapshot(), "seed {seed}");
        }
        store.close().unwrap();
        assert_eq!(backend.open().load().unwrap(), history.scheduler.snapshot(), "seed {seed}");
    }
}

fn big_batches_are_one_transaction(make: Make<'_>) {
    let backend = make();
    let mut store = backend.open();
    let mut scheduler = Scheduler::restore(Limits::default(), store.load().unwrap(), Timestamp(0));
    let mut tell = |event| scheduler.handle(Timestamp(0), event).unwrap();
    let folds = 6_000;
    let mut changes = tell(submission("s", 0..folds)).changes;
    store.commit(&changes).unwrap();
    changes.clear();
    for n in 0..folds / 1_000 {
        let name = format!("w{n}");
        changes.extend(tell(join(&name, 1_000)).changes);
        let asked = tell(Event::LeasesAsked { worker: worker(&name), count: 1_000 });
        changes.extend(asked.changes);
        let Reply::Leases(leases) = asked.reply else { panic!("leases") };
        for lease in leases {
            changes.extend(tell(report(&name, &lease, example(0.5))).changes);
        }
    }
    store.commit(&changes).unwrap();
    let snapshot = scheduler.snapshot();
    assert_eq!(store.load().unwrap(), snapshot);
    let reader = store.reader().unwrap();
    let query = ResultQuery { limit: u64::MAX, ..ResultQuery::accepted(sweep("s")) };
    assert_eq!(reader.results(&query).unwrap().rows.len(), folds as usize);
}

fn any_text_comes_back_as_it_was(make: Make<'_>) {
    let texts =
        ["", "plain", "日本語 ünï", "a\0b", "\u{10ffff}", "'; DROP TABLE fold; --", "\\x00 {\"a\"} \r\n\t"];
    let backend = make();
    let mut script = Script::on(backend.open());
    script.tell(submission("s", 0..8));
    for (n, text) in texts.iter().enumerate() {
        let name = format!("w{n}");
        let info =
            WorkerInfo { host: text.to_string(), slots: 1, numerics: NUMERICS, ..WorkerInfo::default() };
        script.tell(Event::WorkerJoined { worker: worker(&name), info, running: vec![] });
        let lease = script.lease(&name, 1).remove(0);
        let (fold, attempt) = (lease.fold, lease.attempt);
        let failure = Failure::new(FailureClass::Config, *text);
        script.tell(Event::FailureReported { worker: worker(&name), fold, attempt, failure });
        script.store.append_log(&[LogPiece { fold, attempt, text: text.to_string() }]).unwrap();
        let log = script.store.reader().unwrap().log(&fold).unwrap();
        assert_eq!(log, [LogPiece { fold, attempt, text: text.to_string() }]);
    }
    assert_eq!(script.store.load().unwrap(), script.scheduler.snapshot());
}

fn a_second_coordinator_is_refused_and_told_of_the_first(make: Make<'_>) {
    let backend = make();
    let first = backend.open();
    if let Some(error) = backend.second() {
        let message = error.to_string();
        assert!(message.contains("another coordinator ("), "{message}");
        assert!(message.contains(&std::process::id().to_string()), "{message}");
    }
    first.reader().expect("reading is possible meanwhile");
    first.close().unwrap();
    backend.open();
}

fn readers_see_whole_transactions_while_others_are_written(make: Make<'_>) {
    let backend = make();
    let mut script = Script::on(backend.open());
    script.tell(submission("s", 0..40));
    script.tell(join("w", 40));
    let leases = script.lease("w", 40);
    let readers = script.store.readers();
    let ready = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        let read = std::thread::Builder::new().spawn_scoped(scope, {
            let ready = &ready;
            move || {
                ready.wait();
                let mut seen = 0;
                while seen < 40 {
                    let reader = readers.open_reader().unwrap();
                    let rows = reader.results(&ResultQuery::accepted(sweep("s"))).unwrap().rows.len();
                    assert!(
                        rows >= seen && rows.is_multiple_of(2),
                        "{rows} after {seen}: half a transaction"
                    );
                    seen = rows;
                }
            }
        });
        ready.wait();
        for pair in leases.chunks(2) {
            let tell = |lease: &Lease| report("w", lease, example(0.5));
            let changes = pair
                .iter()
                .flat_map(|lease| script.scheduler.handle(script.now, tell(lease)).unwrap().changes);
            let changes: Vec<Change> = changes.collect();
            script.store.commit(&changes).unwrap();
        }
        read.unwrap().join().unwrap();
    });
}

fn the_store_keeps_its_incarnation_and_no_two_are_alike(make: Make<'_>) {
    let (one, two) = (make(), make());
    let incarnation = one.open().incarnation();
    assert_eq!(one.open().incarnation(), incarnation);
    assert_ne!(two.open().incarnation(), incarnation);
}

fn edited_sweeps_lose_folds_but_no_results(make: Make<'_>) {
    let backend = make();
    let mut script = Script::with_results(backend.open(), 4);
    script.tell(submission("s", [1, 2]));
    let readers = script.store.readers();
    let of = |name| {
        let reader = readers.open_reader().unwrap();
        reader.results(&ResultQuery::accepted(sweep(name))).unwrap().rows.len()
    };
    assert_eq!(of("s"), 1);
    script.tell(submission("t", [0, 2]));
    assert_eq!(of("t"), 2);
    let reader = readers.open_reader().unwrap();
    let names: Vec<_> = reader.sweeps().unwrap().into_iter().map(|sweep| sweep.name.to_string()).collect();
    assert_eq!(names, ["s", "t"]);
}

/// A large sweep comes in parts, is forgotten half way by a restart, and comes again; then it is edited in the same way.
fn gathered_folds_are_seen_when_their_sweep_is_saved(make: Make<'_>) {
    let backend = make();
    let mut script = Script::on(backend.open());
    script.tell(submission("t", [9, 3]));
    script.gather("s", 0, [5, 1, 2]);
    script.store.close().unwrap();
    let mut script = Script::on(backend.open());
    for folds in [[4, 0, 7], [2, 8, 4]] {
        script.gather("s", 0, folds);
        script.gather("s", 3, [6]);
        assert_eq!(
            script.store.reader().unwrap().sweeps().unwrap().len(),
            script.store.load().unwrap().sweeps.len()
        );
        let Event::Submit(mut whole) = submission("s", [1]) else { panic!("a submission") };
        whole.gathered = 4;
        script.tell(Event::Submit(whole));
    }
    let names: Vec<String> =
        script.store.reader().unwrap().sweeps().unwrap().iter().map(|sweep| sweep.name.to_string()).collect();
    assert_eq!(names, ["t", "s"]);
    let expected: Vec<FoldKey> = [2, 8, 4, 6, 1].map(fold).to_vec();
    assert_eq!(script.store.load().unwrap().sweeps[&sweep("s")].folds, expected);
    script.store.close().unwrap();
    assert_eq!(backend.open().load().unwrap().sweeps[&sweep("s")].folds, expected);
}

/// Everything an operator says and a device teaches survives, and results set aside are replicates.
fn steered_sweeps_memory_floors_and_disputes_are_loaded_again(make: Make<'_>) {
    let backend = make();
    let mut script = Script::on(backend.open());
    script.tell(submission("s", 0..3));
    script.tell(submission("t", 0..1));
    script.tell(Event::Prioritise { sweep: sweep("t"), priority: 9 });
    script.tell(Event::Archive { sweep: sweep("t") });
    for (name, memory) in [("small", 1 << 33), ("large", 1 << 40)] {
        let mut info =
            WorkerInfo { host: name.to_owned(), slots: 3, numerics: NUMERICS, ..WorkerInfo::default() };
        info.memories = vec![memory; 3];
        script.tell(Event::WorkerJoined { worker: worker(name), info, running: vec![] });
    }
    let [lease, ..] = &script.lease("small", 1)[..] else { panic!("nothing to lease") };
    let failure = Failure::new(FailureClass::OutOfMemory, "too small");
    let (fold, attempt) = (lease.fold, lease.attempt);
    script.tell(Event::FailureReported { worker: worker("small"), fold, attempt, failure });
    let leases = script.lease("large", 3);
    script.tell(report("large", &leases[0], example(0.5)));
    let other = FoldResult { data_digest: "other".to_owned(), ..example(0.5) };
    script.tell(report("large", &leases[1], other));
    assert_eq!(script.scheduler.disputes().len(), 1);
    script.tell(Event::SettleData { data: "cycles".to_owned(), digest: "other".to_owned() });
    script.tell(report("large", &leases[2], FoldResult { data_digest: "other".to_owned(), ..example(0.25) }));
    let kinds = [(ResultKind::Accepted, 2), (ResultKind::Replicate, 1)];
    for (kind, rows) in kinds {
        let query = ResultQuery { kind, ..ResultQuery::accepted(sweep("s")) };
        assert_eq!(script.store.reader().unwrap().results(&query).unwrap().rows.len(), rows);
    }
}

fn logs_are_kept_up_to_a_bound_and_only_for_issued_attempts(make: Make<'_>) {
    let backend = make();
    let mut script = Script::with_results(backend.open(), 2);
    let piece =
        |n, attempt, text: &str| LogPiece { fold: fold(n), attempt: Attempt(attempt), text: text.to_owned() };
    let pieces = [piece(0, 1, "one\n"), piece(0, 2, "never issued\n"), piece(9, 1, "no such fold\n")];
    script.store.append_log(&pieces).unwrap();
    script.store.append_log(&[piece(0, 1, "two\n")]).unwrap();
    let reader = script.store.reader().unwrap();
    assert_eq!(reader.log(&fold(0)).unwrap(), [piece(0, 1, "one\ntwo\n")]);
    assert_eq!(reader.log(&fold(9)).unwrap(), []);

    let more = [piece(1, 1, "with\n"), piece(1, 1, "facts\n"), piece(9, 1, "no such fold\n")];
    let note = Some("noted".into());
    let fact = Change::Sweep(SweepChange::StateSet { sweep: sweep("s"), state: SweepState::Paused, note });
    script.store.commit_with_log(&[fact], &more).unwrap();
    assert_eq!(script.store.reader().unwrap().log(&fold(1)).unwrap(), [piece(1, 1, "with\nfacts\n")]);
    assert_eq!(script.store.reader().unwrap().sweeps().unwrap()[0].state, SweepState::Paused);

    let line = "ü".repeat(99) + "\n";
    for _ in 0..LOG_LIMIT / line.len() + 7 {
        script.store.append_log(&[piece(0, 1, &line)]).unwrap();
    }
    let text = script.store.reader().unwrap().log(&fold(0)).unwrap().remove(0).text;
    assert!(text.len() <= LOG_LIMIT && text.len() > LOG_LIMIT - line.len(), "{}", text.len());
    assert!(text.starts_with(&line), "whole lines are dropped, oldest first");
}

fn a_fold_has_a_history_that_only_grows(make: Make<'_>) {
    let backend = make();
    let mut script = Script::with_results(backend.open(), 2);
    let words = |store: &dyn Store, n| -> Vec<(String, Option<u32>, Option<String>)> {
        let happened = store.reader().unwrap().history(&fold(n)).unwrap();
        assert!(happened.is_sorted_by_key(|happened| happened.at) && happened.iter().all(|h| h.at > 0));
        let worker = |h: &Happened| h.worker.as_ref().map(ToString::to_string);
        happened.iter().map(|h| (h.event.clone(), h.attempt.map(|a| a.0), worker(h))).collect()
    };
    let seen = words(script.store.as_ref(), 0);
    let events: Vec<&str> = seen.iter().map(|(event, ..)| event.as_str()).collect();
    assert_eq!(events, ["submitted", "leased", "accepted"]);
    assert_eq!((seen[0].1, &seen[0].2), (None, &None));
    assert!(seen[1].1 == Some(1) && seen[1].2.is_some(), "{seen:?}");
    assert_eq!(words(script.store.as_ref(), 9), [], "no such fold");
    script
        .store
        .commit(&[Change::Fold(
            fold(0),
            FoldChange::Conflict {
                attempt: Attempt(1),
                worker: seen[1].2.as_ref().unwrap().parse().unwrap(),
                digest: togl_scheduler::Digest(1),
                result: Box::new(example(0.125).check().unwrap()),
            },
        )])
        .unwrap();
    let grown = words(script.store.as_ref(), 0);
    assert_eq!((&grown[..3], grown[3].0.as_str()), (&seen[..], "conflict"));
    script.store.close().unwrap();
    assert_eq!(words(backend.open().as_ref(), 0), grown, "also after it was opened again");
}
