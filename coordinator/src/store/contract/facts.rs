//! What every back end must tell people who look: one state a read, folds by what they are like, who trained what.

use togl_scheduler::{Change, Counts, Event, FoldState, Submission, SweepChange};
use togl_sweeps::result::example;
use togl_sweeps::{Attempt, FailureClass, FoldKey, TrialId};

use super::Make;
use super::script::{Script, fold, join, report, submission, sweep, worker};
use crate::store::reading::{Fact, FoldsWanted, Reading, Wanted};
use crate::store::{
    FoldFilter, FoldLookupError, FoldQuery, FoldWord, Reader, ResultQuery, Store, StoreError, SweepCounts,
    find_fold, trials_beginning,
};

pub(super) fn a_reader_sees_one_state_and_the_next_one_what_was_committed_since(make: Make<'_>) {
    let backend = make();
    let store = backend.open();
    let before = store.reader().unwrap();
    let script = Script::with_results(store, 2);
    assert_eq!(before.sweeps().unwrap(), []);
    let after = script.store.reader().unwrap();
    assert_eq!(after.sweeps().unwrap().len(), 1);
    assert_eq!(after.results(&ResultQuery::accepted(sweep("s"))).unwrap().rows.len(), 1);
}

/// Everything that is left of a read.
fn rest(reading: &mut Reading) -> Vec<Fact> {
    let mut facts = Vec::new();
    while let Some(page) = reading.page().unwrap() {
        facts.extend(page);
    }
    facts
}

/// Which folds the results and the listing of a read are about.
fn told(facts: &[Fact]) -> (Vec<u32>, Vec<u32>) {
    let results = facts.iter().filter_map(|fact| match fact {
        Fact::Result(row) => Some(row.fold.split),
        Fact::Sweep(_) | Fact::Folds { .. } | Fact::Fold(_) | Fact::Replicate(_) => None,
    });
    let folds = facts.iter().filter_map(|fact| match fact {
        Fact::Fold(fold) => Some(fold.fold.split),
        Fact::Sweep(_) | Fact::Folds { .. } | Fact::Result(_) | Fact::Replicate(_) => None,
    });
    (results.collect(), folds.collect())
}

pub(super) fn a_read_that_an_edit_overtakes_shows_the_sweep_as_it_was(make: Make<'_>) {
    let backend = make();
    let mut script = Script::with_results(backend.open(), 6);
    let wanted = Wanted {
        sweep: Some(sweep("s")),
        results: true,
        folds: Some(FoldsWanted::default()),
        ..Wanted::default()
    };
    let mut reading = Reading::new(script.store.reader().unwrap(), wanted.clone()).unwrap();
    let first = reading.page().unwrap().unwrap();
    let [Fact::Sweep(before)] = &first[..] else { panic!("{first:?}") };

    script.tell(submission("s", [5, 4, 2]));
    script.tell(result_of(5, 0.5));

    let facts = rest(&mut reading);
    assert_eq!(told(&facts), (vec![0, 2, 4], (0..6).collect()), "what the first page belongs to");
    assert!(facts.contains(&Fact::Folds { total: 6, digits: 8 }));
    let mut again = Reading::new(script.store.reader().unwrap(), wanted).unwrap();
    let facts = rest(&mut again);
    let Fact::Sweep(after) = &facts[0] else { panic!("{facts:?}") };
    assert_ne!(before.yaml, after.yaml);
    assert_eq!(told(&facts), (vec![5, 4, 2], vec![5, 4, 2]));
}

/// A result of the attempt that `Script::with_results` issued.
fn result_of(n: u32, accuracy: f64) -> Event {
    let result = Box::new(example(accuracy).check().unwrap());
    Event::ResultReported { worker: worker("w"), fold: fold(n), attempt: Attempt(1), result }
}

pub(super) fn every_sweep_with_its_facts_comes_in_one_read_and_what_they_share_once(make: Make<'_>) {
    let backend = make();
    let mut script = Script::with_results(backend.open(), 4);
    script.tell(submission("t", [2, 3]));
    script.tell(result_of(2, 0.75)); // another word on a fold that both have
    let wanted = Wanted { results: true, replicates: true, ..Wanted::default() };
    let mut reading = Reading::new(script.store.reader().unwrap(), wanted).unwrap();
    let facts = rest(&mut reading);
    let words: Vec<String> = facts
        .iter()
        .map(|fact| match fact {
            Fact::Sweep(sweep) => sweep.name.to_string(),
            Fact::Result(row) => {
                assert!(row.result.history.is_empty(), "nobody asked for learning curves");
                format!("result {}", row.fold.split)
            }
            Fact::Replicate(row) => format!("{} {}", row.kind.as_str(), row.fold.split),
            Fact::Folds { .. } | Fact::Fold(_) => panic!("nobody asked for folds"),
        })
        .collect();
    assert_eq!(words, ["s", "result 0", "result 2", "conflict 2", "t", "result 2"]);
    let counted = facts
        .iter()
        .find_map(|fact| if let Fact::Replicate(row) = fact { row.counted.clone() } else { None });
    let counted = counted.unwrap();
    assert_eq!((counted.attempt, counted.test_accuracy), (Attempt(1), 0.02));
    assert_eq!(counted.differences[0].field, "test.accuracy");

    let unknown = Wanted { sweep: Some(sweep("ss")), ..Wanted::default() };
    let error = Reading::new(script.store.reader().unwrap(), unknown).map(drop).unwrap_err();
    assert_eq!(error.to_string(), "there is no sweep `ss`; did you mean `s`?");
}

/// A sweep of two trials on two data sets: folds 0, 1 and 2 finished, failed and running on `w`, fold 3 pending.
fn varied(store: Box<dyn Store>) -> Script {
    let mut script = Script::on(store);
    let trial = |n: u8| TrialId::from_bytes([n; 16]);
    let folds = (0..4).map(|n| FoldKey { trial: trial(1 + n / 2), split: u32::from(n), seed: 0 });
    let Event::Submit(template) = submission("s", [0]) else { panic!("a submission") };
    let settings = |n: u8, data: &str| (trial(n), format!("{{\"dataset\":\"{data}\"}}"));
    script.tell(Event::Submit(Box::new(Submission {
        trials: vec![settings(1, "DD"), settings(2, "cycles")],
        folds: folds.collect(),
        ..*template
    })));
    script.tell(join("w", 3));
    let leases = script.lease("w", 3);
    script.tell(report("w", &leases[0], example(0.25)));
    script.fail("w", &leases[1], FailureClass::Config);
    script
}

fn splits(reader: &dyn Reader, filter: FoldFilter) -> Vec<u32> {
    let mut query = FoldQuery { sweep: sweep("s"), filter, from: 0, skip: 0, limit: 2 };
    let total = reader.count_folds(&query).unwrap();
    let mut splits = Vec::new();
    loop {
        let page = reader.folds(&query).unwrap();
        assert!(page.folds.len() <= 2);
        splits.extend(page.folds.iter().map(|fold| fold.fold.split));
        match page.next {
            Some(next) => query.from = next,
            None => break,
        }
    }
    assert_eq!(total, splits.len() as u64);
    splits
}

pub(super) fn folds_are_listed_in_order_in_pages_and_only_those_that_fit(make: Make<'_>) {
    let backend = make();
    let script = varied(backend.open());
    let reader = script.store.reader().unwrap();
    let with = |filter| splits(reader.as_ref(), filter);
    let any = FoldFilter::default;
    assert_eq!(with(any()), [0, 1, 2, 3]);
    assert_eq!(with(FoldFilter { states: vec![FoldWord::Failed, FoldWord::Pending], ..any() }), [1, 3]);
    assert_eq!(with(FoldFilter { states: vec![FoldWord::Running], ..any() }), [2]);
    assert_eq!(with(FoldFilter { worker: Some(worker("w")), ..any() }), [0, 1, 2]);
    assert_eq!(with(FoldFilter { worker: Some(worker("v")), ..any() }), [] as [u32; 0]);
    assert_eq!(with(FoldFilter { class: Some(FailureClass::Config), ..any() }), [1]);
    assert_eq!(with(FoldFilter { class: Some(FailureClass::Data), ..any() }), [] as [u32; 0]);
    assert_eq!(with(FoldFilter { dataset: Some("dd".to_owned()), ..any() }), [0, 1]);
    assert_eq!(with(FoldFilter { trials: trials_beginning("02"), ..any() }), [2, 3]);
    let states = vec![FoldWord::Finished, FoldWord::Running];
    assert_eq!(with(FoldFilter { states, dataset: Some("CYCLES".to_owned()), ..any() }), [2]);
    let query = FoldQuery { sweep: sweep("s"), filter: any(), from: 0, skip: 3, limit: 9 };
    assert_eq!(reader.folds(&query).unwrap().folds[0].fold.split, 3);
    let unknown = reader.count_folds(&FoldQuery { sweep: sweep("nowhere"), ..query });
    assert!(matches!(unknown, Err(StoreError::UnknownSweep { .. })));
}

pub(super) fn folds_say_where_they_stand_and_sweeps_count_them(make: Make<'_>) {
    let backend = make();
    let mut script = varied(backend.open());
    let reader = script.store.reader().unwrap();
    let query = FoldQuery { sweep: sweep("s"), filter: FoldFilter::default(), from: 0, skip: 0, limit: 9 };
    let folds = reader.folds(&query).unwrap().folds;
    let (attempt, by) = (Attempt(1), worker("w"));
    assert_eq!(folds[0].state, FoldState::Finished { attempt, worker: by.clone() });
    assert_eq!(folds[0].outcome.map(|outcome| (outcome.value, outcome.seconds)), Some((0.25, 1.5)));
    let FoldState::Failed(failure) = &folds[1].state else { panic!("{:?}", folds[1]) };
    assert_eq!((failure.class, folds[1].worker.as_ref()), (FailureClass::Config, Some(&by)));
    assert_eq!(folds[2].state, FoldState::Running { attempt, worker: by });
    assert_eq!((&folds[3].state, folds[3].attempts, &folds[3].worker), (&FoldState::Pending, 0, &None));
    assert_eq!(folds[3].trial, "{\"dataset\":\"cycles\"}");
    for listed in &folds {
        let detail = reader.fold(&listed.fold).unwrap().unwrap();
        assert_eq!((&detail.fold, detail.attempts.len()), (listed, listed.attempts as usize));
        assert_eq!(detail.sweeps, [(sweep("s"), togl_scheduler::SweepState::Active)]);
    }
    let ending = reader.fold(&folds[1].fold).unwrap().unwrap().attempts[0].ending;
    assert_eq!(ending, Some(togl_scheduler::Ending::Failed(FailureClass::Config)));
    assert_eq!(reader.fold(&fold(99)).unwrap(), None);

    let folds = Counts { pending: 1, running: 1, finished: 1, failed: 1 };
    let counts = SweepCounts { trials: 2, trials_finished: 0, folds, note: String::new() };
    assert_eq!(reader.counts(&sweep("s")).unwrap(), counts);
    let note: std::sync::Arc<str> = "seen enough".into();
    let state = togl_scheduler::SweepState::Paused;
    script
        .store
        .commit(&[Change::Sweep(SweepChange::StateSet { sweep: sweep("s"), state, note: Some(note) })])
        .unwrap();
    assert_eq!(script.store.reader().unwrap().counts(&sweep("s")).unwrap().note, "seen enough");
}

pub(super) fn a_fold_is_found_by_the_beginning_of_its_trial_also_after_an_edit(make: Make<'_>) {
    let backend = make();
    let mut script = varied(backend.open());
    let fold = |trial: u8, split| FoldKey { trial: TrialId::from_bytes([trial; 16]), split, seed: 0 };
    let Event::Submit(template) = submission("s", [0]) else { panic!("a submission") };
    let (trials, folds) = (vec![(TrialId::from_bytes([1; 16]), "{}".to_owned())], vec![fold(1, 3)]);
    script.tell(Event::Submit(Box::new(Submission { trials, folds, ..*template })));
    let reader = script.store.reader().unwrap();
    let find = |text: &str| find_fold(reader.as_ref(), text);
    assert_eq!(find("0101/0/0").unwrap(), fold(1, 0), "no sweep has it any more");
    assert_eq!(find(&fold(2, 3).to_string()).unwrap(), fold(2, 3));
    let refused = |text: &str| match find(text).unwrap_err() {
        StoreError::Fold(error) => error,
        other => panic!("{text}: {other}"),
    };
    assert!(matches!(refused("0/3/0"), FoldLookupError::Ambiguous { .. }));
    assert!(matches!(refused("ff/0/0"), FoldLookupError::Unknown(_)));
    for text in ["", "0", "0/0", "0/x/0", "0/0/0/0", "0/0/-1", "/0/0", "xy/0/0", "ABCD/0/0"] {
        assert!(matches!(refused(text), FoldLookupError::Malformed(_)), "{text}");
    }
    assert_eq!(reader.digits().unwrap(), 8);
}

pub(super) fn who_had_folds_is_remembered(make: Make<'_>) {
    let backend = make();
    let script = varied(backend.open());
    let workers = script.store.reader().unwrap().workers().unwrap();
    assert_eq!(workers.len(), 1);
    let past = &workers[0];
    assert_eq!(
        (&past.worker, past.host.as_str(), past.attempts, past.finished),
        (&worker("w"), "host", 3, 1)
    );
    assert!(past.last_at > 0);
}
