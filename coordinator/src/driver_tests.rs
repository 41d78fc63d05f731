//! The driver keeps its promises: stored before heard, one transaction for what comes together, time without
//! a real clock, and an end when the store fails.

use futures::future::join_all;
use togl_scheduler::{By, FoldState, Lease, Rejection, Reply, ResultAnswer};
use togl_sweeps::result::example;

use super::*;
use crate::clock::ManualClock;
use crate::store::contract::{fold, join, report, submission, sweep, worker};
use crate::store::memory::MemoryStore;
use crate::store::sqlite::SqliteStore;
use crate::store::{ResultQuery, ResultRow, find_fold};

struct Setup {
    store: MemoryStore,
    clock: ManualClock,
    handle: Handle,
    running: Running,
}

impl Setup {
    fn new() -> Self {
        Self::on(MemoryStore::default())
    }

    fn on(store: MemoryStore) -> Self {
        let clock = ManualClock::default();
        let (handle, running) =
            start(Box::new(store.clone()), Arc::new(clock.clone()), Limits::default()).unwrap();
        Self { store, clock, handle, running }
    }
}

async fn leases(handle: &Handle, name: &str, count: u32) -> Vec<Lease> {
    match handle.call(Event::LeasesAsked { worker: worker(name), count }).await.unwrap() {
        Reply::Leases(leases) => leases,
        other => panic!("{other:?}"),
    }
}

async fn results(handle: &Handle) -> Vec<ResultRow> {
    let query = ResultQuery::accepted(sweep("s"));
    handle.reads().once(move |reader| reader.results(&query)).await.unwrap().rows
}

#[tokio::test]
async fn what_was_heard_is_stored() {
    let Setup { store, handle, .. } = Setup::new();
    handle.call(submission("s", 0..3)).await.unwrap();
    assert_eq!(store.load().unwrap().folds.len(), 3);
    handle.call(join("w", 1)).await.unwrap();
    let lease = leases(&handle, "w", 1).await.remove(0);
    let reply = handle.call(report("w", &lease, example(0.5))).await.unwrap();
    assert_eq!(reply, Reply::Result(ResultAnswer::Accepted));
    let rows = results(&handle).await;
    assert_eq!((rows.len(), rows[0].fold), (1, lease.fold));
}

#[tokio::test]
async fn mail_that_arrives_together_shares_one_transaction() {
    let store = MemoryStore::default();
    let clock = Arc::new(ManualClock::default());
    let (handle, driver) = Driver::new(Box::new(store.clone()), clock, Limits::default()).unwrap();
    let names: Vec<String> = (0..100).map(|n| format!("s{n}")).collect();
    let calls = join_all(names.iter().map(|name| handle.call(submission(name, 0..3))));
    let talk = async {
        let replies = calls.await;
        handle.stop().await;
        replies
    };
    let (replies, ended) = tokio::join!(talk, driver.run());
    ended.unwrap();
    assert!(replies.iter().all(Result::is_ok));
    assert_eq!(store.commits(), 1);
}

/// A driver whose last round was about so much mail, with one piece of mail before it, and how to send more.
async fn after_a_round_of(last: usize) -> (Handle, Driver, Vec<Mail>) {
    let store = Box::new(MemoryStore::default());
    let (handle, mut driver) =
        Driver::new(store, Arc::new(ManualClock::default()), Limits::default()).unwrap();
    driver.last.1 = last;
    let (reply, _) = oneshot::channel();
    (handle, driver, vec![Mail::Call { events: Vec::new(), by: None, reply }])
}

#[tokio::test]
async fn a_lone_mail_is_not_held_up() {
    use futures::FutureExt as _;
    for last in [0, 1] {
        let (_handle, mut driver, mut mail) = after_a_round_of(last).await;
        assert!(driver.gather(&mut mail).now_or_never().is_some(), "it looks at nothing else");
        assert_eq!(mail.len(), 1);
    }
}

#[tokio::test]
async fn mail_that_the_last_round_lets_expect_shares_the_transaction_and_is_not_waited_for_long() {
    let (handle, mut driver, mut mail) = after_a_round_of(3).await;
    let call = handle.call_all(Vec::new());
    let gathered = async {
        driver.gather(&mut mail).await;
        let found = mail.len();
        drop((driver, mail)); // nobody answers
        found
    };
    assert_eq!(tokio::join!(gathered, call).0, 2, "the third does not come");
    let (handle, mut driver, mut mail) = after_a_round_of(3).await;
    driver.last.0 = Timestamp(0);
    driver.clock = {
        let later = ManualClock::default();
        later.advance(FRESH + 1);
        Arc::new(later)
    };
    let call = handle.call_all(Vec::new());
    let gathered = async {
        driver.gather(&mut mail).await;
        let found = mail.len();
        drop((driver, mail));
        found
    };
    assert_eq!(tokio::join!(gathered, call).0, 1, "that round was long ago");
}

#[tokio::test]
async fn several_events_of_one_message_share_a_transaction_and_answer_one_by_one() {
    let Setup { store, handle, .. } = Setup::new();
    let unknown = Event::Cancel { sweep: sweep("nowhere") };
    let answers = handle.call_all(vec![submission("s", 0..3), unknown, join("w", 2)]).await.unwrap();
    assert!(matches!(answers[0], Ok(Reply::Submitted(_))));
    assert!(matches!(answers[1], Err(Rejection::UnknownSweep { .. })));
    assert!(matches!(answers[2], Ok(Reply::Joined(_))));
    assert_eq!(store.commits(), 1);
}

#[tokio::test]
async fn renewals_and_looks_write_nothing() {
    let Setup { store, handle, .. } = Setup::new();
    handle.call_all(vec![submission("s", 0..3), join("w", 2)]).await.unwrap();
    let lease = leases(&handle, "w", 1).await.remove(0);
    let commits = store.commits();
    for _ in 0..5 {
        let running = vec![(lease.fold, lease.attempt)];
        handle.call(Event::Renewed { worker: worker("w"), running }).await.unwrap();
        handle.sweeps().await.unwrap();
    }
    assert_eq!(store.commits(), commits);
}

#[tokio::test]
async fn leases_end_in_time_without_any_event_and_watchers_wake() {
    let Setup { clock, handle, .. } = Setup::new();
    handle.call_all(vec![submission("s", 0..1), join("w", 1)]).await.unwrap();
    leases(&handle, "w", 1).await;
    let (mut changes, mut supply) = (handle.watch(), handle.supply());
    changes.mark_unchanged();
    supply.mark_unchanged();
    for _ in 0..15 {
        clock.advance(1_000);
        handle.call_all(Vec::new()).await.unwrap(); // a round of decisions: it is awake all the time
    }
    changes.changed().await.unwrap();
    supply.changed().await.unwrap();
    let stored = handle.reads().once(|reader| reader.fold(&fold(0))).await.unwrap().unwrap();
    assert_eq!(stored.fold.state, FoldState::Pending);
    assert!(handle.workers().await.unwrap().is_empty());
}

/// As after SIGSTOP, on a frozen machine, or when a commit took so long: the clock jumps from one round to the next.
#[tokio::test]
async fn a_driver_that_stood_still_judges_nobody_before_they_could_be_heard() {
    let Setup { clock, handle, .. } = Setup::new();
    handle.call_all(vec![submission("s", 0..1), join("w", 1)]).await.unwrap();
    let lease = leases(&handle, "w", 1).await.remove(0);
    for _ in 0..12 {
        clock.advance(16_500);
        let seen = handle.sweep(sweep("s")).await.unwrap().unwrap();
        assert_eq!(seen.counts.running, 1);
        let running = vec![(lease.fold, lease.attempt)];
        let reply = handle.call(Event::Renewed { worker: worker("w"), running }).await.unwrap();
        assert!(matches!(reply, Reply::Orders(orders) if orders[0].verdict.is_ok()));
    }
}

#[tokio::test]
async fn a_rejected_event_is_told_and_changes_nothing() {
    let Setup { store, handle, .. } = Setup::new();
    let error = handle.call(Event::Pause { sweep: sweep("nowhere") }).await.unwrap_err();
    assert!(matches!(error, CallError::Rejected(Rejection::UnknownSweep { .. })), "{error}");
    assert_eq!(store.commits(), 0);
}

#[tokio::test]
async fn if_the_store_fails_callers_hear_it_and_the_driver_ends_with_an_error() {
    let Setup { store, handle, running, .. } = Setup::new();
    handle.call(submission("s", 0..1)).await.unwrap();
    store.set_failing(true);
    let error = handle.call(submission("t", 0..2)).await.unwrap_err();
    assert!(matches!(error, CallError::Store(_)), "{error}");
    assert!(matches!(running.ended().await, Err(DriverError::Store(_))));
    assert!(matches!(handle.call(submission("t", 0..2)).await, Err(CallError::Stopped)));

    store.set_failing(false);
    let again = Setup::on(store);
    let sweeps = again.handle.sweeps().await.unwrap();
    assert_eq!(sweeps.len(), 1, "what was not acknowledged is not there, what was is");
}

#[tokio::test]
async fn a_restarted_driver_goes_on_where_the_last_one_was() {
    let Setup { store, handle, running, .. } = Setup::new();
    handle.call_all(vec![submission("s", 0..2), join("w", 2)]).await.unwrap();
    let given = leases(&handle, "w", 2).await;
    handle.call(report("w", &given[0], example(0.5))).await.unwrap();
    handle.stop().await;
    running.ended().await.unwrap();

    let Setup { handle: next, .. } = Setup::on(store);
    assert_eq!(next.incarnation(), handle.incarnation());
    let view = next.sweep(sweep("s")).await.unwrap().unwrap();
    assert_eq!((view.counts.finished, view.counts.running), (1, 1));
    let same = next.call(report("w", &given[0], example(0.5))).await.unwrap();
    assert_eq!(same, Reply::Result(ResultAnswer::Same));
    let late = next.call(report("w", &given[1], example(0.5))).await.unwrap();
    assert_eq!(late, Reply::Result(ResultAnswer::Accepted));
}

#[tokio::test]
async fn stopping_ends_the_driver_and_later_calls_hear_it() {
    let Setup { handle, running, .. } = Setup::new();
    handle.stop().await;
    running.ended().await.unwrap();
    assert!(matches!(handle.sweeps().await, Err(CallError::Stopped)));
    handle.stop().await;
}

#[tokio::test]
async fn a_driver_without_handles_ends() {
    let Setup { handle, running, .. } = Setup::new();
    drop(handle);
    running.ended().await.unwrap();
}

#[tokio::test]
async fn output_of_trainers_is_kept_for_attempts_that_the_worker_had() {
    let Setup { handle, .. } = Setup::new();
    handle.call_all(vec![submission("s", 0..2), join("w", 1)]).await.unwrap();
    let lease = leases(&handle, "w", 1).await.remove(0);
    let say =
        |name: &str, text: &str| handle.append_log(worker(name), lease.fold, lease.attempt, text.to_owned());
    say("w", "epoch 1\n").await.unwrap();
    say("stranger", "hello\n").await.unwrap();
    say("w", "epoch 2\n").await.unwrap();
    handle.call_all(Vec::new()).await.unwrap(); // whatever was sent before has been dealt with
    handle.call_all(Vec::new()).await.unwrap(); // and, one round later, written
    let pieces = handle.reads().once(move |reader| reader.log(&lease.fold)).await.unwrap();
    assert_eq!((pieces.len(), pieces[0].text.as_str()), (1, "epoch 1\nepoch 2\n"));
}

#[tokio::test]
async fn output_of_trainers_shares_the_transaction_of_decisions_and_what_is_too_much_comes_after() {
    for (pieces, apart) in [(64, 0), (65, 1)] {
        let Setup { store, handle, running, .. } = Setup::new();
        handle.call_all(vec![submission("s", 0..2), join("w", 1)]).await.unwrap();
        let lease = leases(&handle, "w", 1).await.remove(0);
        handle.stop().await;
        running.ended().await.unwrap();
        let clock = Arc::new(ManualClock::default());
        let (handle, driver) = Driver::new(Box::new(store.clone()), clock, Limits::default()).unwrap();
        for _ in 0..pieces {
            let text = "epoch\n".to_owned();
            handle.append_log(worker("w"), lease.fold, lease.attempt, text).await.unwrap();
        }
        let before = (store.commits(), store.log_writes());
        let talk = async {
            handle.call(submission("t", 0..3)).await.unwrap();
            handle.stop().await;
        };
        let ((), ended) = tokio::join!(talk, driver.run());
        ended.unwrap();
        assert_eq!((store.commits() - before.0, store.log_writes() - before.1), (1, apart));
        let kept = store.reader().unwrap().log(&lease.fold).unwrap().remove(0).text;
        assert_eq!(kept.lines().count(), pieces);
    }
}

#[tokio::test]
async fn a_sweep_runs_to_its_end_on_sqlite_and_is_there_after_a_restart() {
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("store.sqlite");
    let start = || {
        let store = Box::new(SqliteStore::open(&path).unwrap());
        start(store, Arc::new(ManualClock::default()), Limits::default()).unwrap()
    };
    let (handle, running) = start();
    handle.call_all(vec![submission("s", 0..20), join("w", 4)]).await.unwrap();
    loop {
        let given = leases(&handle, "w", 4).await;
        if given.is_empty() {
            break;
        }
        let reports = given.iter().map(|lease| report("w", lease, example(0.5))).collect();
        assert!(handle.call_all(reports).await.unwrap().iter().all(Result::is_ok));
    }
    handle.stop().await;
    running.ended().await.unwrap();
    drop(handle);

    let (handle, _running) = start();
    let detail = handle.sweep_detail(sweep("s")).await.unwrap().unwrap();
    assert!(detail.summary.has_ended());
    assert_eq!(results(&handle).await.len(), 20);
    let found = handle.reads().once(|reader| find_fold(reader, &fold(3).to_string())).await.unwrap();
    assert!(handle.explain(found).await.unwrap().unwrap().reason.to_string().starts_with("it is finished"));
}

/// A store that does not answer until it is told to.
struct Hanging {
    inner: MemoryStore,
    asked: std::sync::mpsc::Sender<()>,
    answer: std::sync::mpsc::Receiver<()>,
}

impl Store for Hanging {
    fn load(&self) -> Result<togl_scheduler::Snapshot, StoreError> {
        self.inner.load()
    }

    fn commit_with_log(
        &mut self,
        changes: &[togl_scheduler::Change],
        log: &[crate::store::LogPiece],
    ) -> Result<(), StoreError> {
        self.asked.send(()).unwrap();
        self.answer.recv().unwrap();
        self.inner.commit_with_log(changes, log)
    }

    fn append_log(&mut self, pieces: &[crate::store::LogPiece]) -> Result<(), StoreError> {
        self.inner.append_log(pieces)
    }

    fn incarnation(&self) -> u64 {
        self.inner.incarnation()
    }

    fn readers(&self) -> Arc<dyn crate::store::Readers> {
        self.inner.readers()
    }

    fn close(self: Box<Self>) -> Result<(), StoreError> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_driver_whose_store_hangs_is_known_to_be_stuck() {
    let ((asked, was_asked), (answer, hears)) = (std::sync::mpsc::channel(), std::sync::mpsc::channel());
    let (clock, store) =
        (ManualClock::default(), Hanging { inner: MemoryStore::default(), asked, answer: hears });
    let (handle, _running) = start(Box::new(store), Arc::new(clock.clone()), Limits::default()).unwrap();
    assert!(handle.liveness().is_well());
    let submitted = handle.call(submission("s", 0..3));
    let story = async {
        tokio::task::block_in_place(|| was_asked.recv().unwrap());
        assert!(handle.liveness().is_well(), "a commit may take a moment");
        clock.advance(6_000);
        assert!(!handle.liveness().is_well());
        answer.send(()).unwrap();
    };
    tokio::join!(submitted, story).0.unwrap();
    handle.totals().await.unwrap();
    clock.advance(60_000);
    assert!(handle.liveness().is_well(), "it has nothing to do");
}

#[tokio::test]
async fn looks_get_a_share_of_the_time_and_decisions_all_they_need() {
    let Setup { clock, handle, .. } = Setup::new();
    handle.call_all(vec![submission("s", 0..3), join("w", 2)]).await.unwrap();
    let slow = clock.clone();
    handle.look(move |_, _| slow.advance(100)).await.unwrap(); // a look that takes 100 ms
    let mut next = std::pin::pin!(handle.look(|scheduler, _| scheduler.totals()));
    for _ in 0..100 {
        assert!(futures::poll!(&mut next).is_pending(), "whoever looks waits until it is made up for");
        let running = Vec::new();
        handle.call(Event::Renewed { worker: worker("w"), running }).await.unwrap();
    }
    clock.advance(1_000);
    assert_eq!(next.await.unwrap().total(), 3);
}

fn folds_of(event: Event) -> togl_scheduler::Submission {
    let Event::Submit(submission) = event else { panic!("a submission") };
    *submission
}

#[tokio::test]
async fn a_preview_says_what_a_submission_would_change_and_changes_nothing() {
    let Setup { store, handle, .. } = Setup::new();
    handle.call_all(vec![submission("s", 0..6), join("w", 1)]).await.unwrap();
    let lease = leases(&handle, "w", 1).await.remove(0);
    handle.call(report("w", &lease, example(0.5))).await.unwrap();
    let before = store.load().unwrap();
    let edited = folds_of(submission("s", 2..9));
    let change = handle.preview(edited.clone()).await.unwrap().unwrap();
    assert_eq!((change.folds, change.added, change.removed, change.already_done), (7, 3, 2, 0));
    assert_eq!(handle.preview(folds_of(submission("s", 0..6))).await.unwrap().unwrap().already_done, 1);
    assert_eq!(handle.preview(folds_of(submission("other", 0..3))).await.unwrap(), None);
    let nothing = handle.preview(folds_of(submission("s", 0..0))).await.unwrap().unwrap();
    assert_eq!((nothing.folds, nothing.added, nothing.removed), (0, 0, 6));
    assert_eq!(store.load().unwrap(), before);
    let Reply::Submitted(done) = handle.submit(edited, By::default()).await.unwrap() else {
        panic!("submitted")
    };
    assert_eq!((done.folds, done.added, done.removed), (change.folds, change.added, change.removed));
}

/// Previews a large sweep that is edited meanwhile; says how often somebody else looked in between.
async fn preview_of_an_edited_sweep() -> u32 {
    let Setup { clock, handle, .. } = Setup::new();
    handle.call(submission("s", 0..11_000)).await.unwrap();
    let asked = folds_of(submission("s", 0..11_000));
    let mut preview = std::pin::pin!(handle.preview(asked));
    let mut seen = 0;
    let change = loop {
        // Nobody looks for a second after this, so one part at the most is taken in each round.
        let slow = clock.clone();
        let look = handle.look(move |_, _| slow.advance(100));
        tokio::select! {
            biased;
            change = &mut preview => break change.unwrap().unwrap(),
            looked = look => looked.unwrap(),
        }
        clock.advance(1_000);
        seen += 1;
        if seen < 8 {
            let first = if seen % 2 == 0 { 0 } else { 11_000 }; // all of them, or none
            handle.call(submission("s", first..first + 11_000)).await.unwrap();
        }
        assert!(seen < 100, "it ends");
    };
    let (all, none) = ((0, 0), (11_000, 11_000));
    assert!([all, none].contains(&(change.added, change.removed)), "{change:?} is neither before nor after");
    seen
}

#[tokio::test]
async fn a_large_preview_is_taken_in_parts_that_all_see_the_same_sweep() {
    // The driver is a thread of its own, and now and then faster than whoever looks.
    for _ in 0..20 {
        if preview_of_an_edited_sweep().await >= 2 {
            return;
        }
    }
    panic!("it has three parts, and never was anybody in between");
}

#[tokio::test]
async fn heartbeats_are_heard_while_a_large_sweep_is_submitted() {
    let Setup { store, handle, .. } = Setup::new();
    handle.call(join("w", 2)).await.unwrap();
    let Event::Submit(large) = submission("s", 0..40_000) else { panic!("a submission") };
    let before = store.commits();
    let mut submitting = std::pin::pin!(handle.submit(*large, By::default()));
    let mut heard = 0;
    let submitted = loop {
        let heartbeat = handle.call(Event::Renewed { worker: worker("w"), running: Vec::new() });
        tokio::select! {
            biased;
            submitted = &mut submitting => break submitted.unwrap(),
            renewed = heartbeat => heard += u32::from(renewed.is_ok()),
        }
    };
    let Reply::Submitted(submitted) = submitted else { panic!("{submitted:?}") };
    assert_eq!((submitted.folds, submitted.added), (40_000, 40_000));
    assert_eq!(store.commits() - before, 9, "eight parts and the sweep itself");
    assert!(heard >= 4, "heard {heard} times, and at least at every other part");
}
