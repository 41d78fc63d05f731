//! One sweep that somebody looks at: its status is followed over one connection for all who look here, its finished folds as
//! soon as somebody wants what is made of them, and its table is made when it is wanted. Tables are made by the code of
//! `togl table`, away from the async threads, and never so often that it costs more than a quarter of a core.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use togl_analysis::frame::FoldFrame;
use togl_analysis::{LiveFolds, Plan, Table};
use togl_coordinator::store::reading::{Fact, Wanted};
use togl_proto::{convert, wire};
use togl_sweeps::spec::PlannedTrial;
use togl_sweeps::{FoldKey, SweepName, SweepSpec, TrialId};
use togl_web::Trouble;
use tokio::sync::{Mutex as Turns, watch};
use tokio::task::JoinSet;

use super::connection::{CoordinatorLink, trouble};
use super::left::Left;
use crate::cli;
use crate::clock;
use crate::facts::{Facts as _, Remote, at};
use crate::problem::Problem;
use crate::remote::{self, SweepStatus};

/// A table is made at most so often, and after a pause of three times as long as the last one took.
const LEAST_PAUSE: Duration = Duration::from_millis(500);

/// Folds of one message from which on the next message is taken at once.
const MANY: usize = 500;

/// How often it is reckoned how long the rest takes.
const RECKONED: Duration = Duration::from_secs(10);

/// Before a stream that ended is begun again.
const AGAIN: Duration = Duration::from_secs(1);

/// How long somebody waits for the first fold of a sweep that nobody looked at before.
const BEGINNING: Duration = Duration::from_secs(10);

/// What is known of the sweep's file.
pub struct Planned {
    pub spec: SweepSpec,
    pub plan: Plan,
    places: HashMap<TrialId, PlannedTrial>,
}

/// A table, and what it was made of.
pub struct Made {
    pub version: u64,
    pub frame: FoldFrame,
    pub planned: Arc<Planned>,
    pub table: Result<Table, String>,
    /// Whether more are being read.
    pub reading: bool,
    at: Instant,
    took: Duration,
}

impl Made {
    fn may_be_made_again(&self, now: Instant) -> bool {
        now.duration_since(self.at) >= LEAST_PAUSE.max(self.took * 3)
    }
}

/// What the tasks write and the page reads.
struct Shared {
    connection: Arc<CoordinatorLink>,
    name: SweepName,
    status: watch::Sender<Option<Result<SweepStatus, Trouble>>>,
    folds: Mutex<Option<(Arc<Planned>, LiveFolds)>>,
    /// Raised with every change of the folds.
    version: watch::Sender<u64>,
    reading: AtomicBool,
}

/// One sweep that somebody looks at.
pub struct LiveSweep {
    shared: Arc<Shared>,
    made: Turns<Option<Arc<Made>>>,
    tasks: Mutex<JoinSet<()>>,
    /// Whether somebody wanted what is made of the folds.
    follows: AtomicBool,
    left: Mutex<Option<(Instant, Option<Left>)>>,
}

impl LiveSweep {
    /// Begins to follow.
    pub fn follow(connection: Arc<CoordinatorLink>, name: SweepName) -> Arc<Self> {
        let shared = Arc::new(Shared {
            connection,
            name,
            status: watch::channel(None).0,
            folds: Mutex::default(),
            version: watch::channel(0).0,
            reading: AtomicBool::new(true),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(shared.clone().keep_watching());
        let (tasks, follows) = (Mutex::new(tasks), AtomicBool::new(false));
        Arc::new(Self { shared, made: Turns::default(), tasks, follows, left: Mutex::default() })
    }

    /// Begins to read the folds: whoever looks at counts only costs the coordinator no results.
    fn want_folds(&self) {
        if !self.follows.swap(true, Ordering::AcqRel) {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            tasks.spawn(self.shared.clone().keep_following());
        }
    }

    /// The status as it comes; nothing before the first.
    pub fn states(&self) -> watch::Receiver<Option<Result<SweepStatus, Trouble>>> {
        self.shared.status.subscribe()
    }

    /// The sweep as it is now.
    pub async fn now(&self) -> Result<SweepStatus, Trouble> {
        let mut status = self.shared.status.subscribe();
        let known = status.wait_for(Option::is_some).await.ok().and_then(|known| known.clone());
        known.unwrap_or_else(|| Err(Trouble::Ours("nothing is known of the sweep".to_owned())))
    }

    /// How long it takes still, in seconds at the least and at the most, by kind of fold where a table was made and as the
    /// coordinator reckons otherwise; zeros if nobody can say.
    pub fn time_left(&self, status: &SweepStatus) -> [u64; 2] {
        let sweep = &status.sweep;
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        match &*left {
            Some((_, Some(left))) => left.seconds(sweep.pending + sweep.running, sweep.running),
            _ => [status.eta_seconds; 2],
        }
    }

    /// Reckons again what is left, now and then.
    async fn reckon(&self, made: &Arc<Made>) {
        let now = clock::now();
        let known = self.left.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(at, _)| *at);
        if known.is_some_and(|at| now.duration_since(at) < RECKONED) {
            return;
        }
        let made = made.clone();
        let left = tokio::task::spawn_blocking(move || Left::of(&made.planned.spec, &made.frame)).await;
        let left = left.ok().and_then(Result::ok).flatten();
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, left));
    }

    /// What its file says, as far as it was read.
    pub fn planned(&self) -> Option<Arc<Planned>> {
        self.want_folds();
        self.shared.lock().as_ref().map(|(planned, _)| planned.clone())
    }

    /// The version of the table that [`LiveSweep::made`] would give now.
    pub async fn version(&self) -> u64 {
        self.want_folds();
        let version = *self.shared.version.borrow();
        match &*self.made.lock().await {
            Some(made) if !made.may_be_made_again(clock::now()) => made.version,
            _ => version,
        }
    }

    /// The table as it is, or as it was a moment ago.
    pub async fn made(&self) -> Result<Arc<Made>, Trouble> {
        self.want_folds();
        let mut made = self.made.lock().await;
        let version = *self.shared.version.borrow();
        if let Some(known) = made.as_ref()
            && (known.version == version || !known.may_be_made_again(clock::now()))
        {
            return Ok(known.clone());
        }
        let mut status = self.shared.status.subscribe();
        let known = status.wait_for(Option::is_some).await.ok().and_then(|known| known.clone());
        if let Some(Err(trouble)) = known {
            return Err(trouble);
        }
        let mut begun = self.shared.version.subscribe();
        let begun = tokio::time::timeout(BEGINNING, begun.wait_for(|version| *version > 0)).await.is_ok();
        if !begun {
            return Err(Trouble::Away("the folds of the sweep are still being read; ask again".to_owned()));
        }
        let version = *self.shared.version.borrow();
        let shared = self.shared.clone();
        let new = tokio::task::spawn_blocking(move || shared.make(version)).await;
        let new = new.map_err(|_| Trouble::Ours("making the table failed".to_owned()))??;
        let new = Arc::new(new);
        *made = Some(new.clone());
        self.reckon(&new).await;
        Ok(new)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<(Arc<Planned>, LiveFolds)>> {
        // Every change is one step, so a panic elsewhere leaves nothing half done.
        self.folds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn make(&self, version: u64) -> Result<Made, Trouble> {
        let at = clock::now();
        let (planned, frame) = {
            let mut folds = self.lock();
            let Some((planned, live)) = folds.as_mut() else {
                return Err(Trouble::Away("the folds of the sweep are being read".to_owned()));
            };
            (planned.clone(), live.frame().map_err(|error| Trouble::Ours(error.to_string()))?.clone())
        };
        let spec = &planned.spec;
        let table = Table::of_block(&frame, &planned.plan, &spec.table, spec.selection.as_ref());
        let table = table.map_err(|error| cli::explained(error).in_one_line());
        let now = clock::now();
        let reading = self.reading.load(Ordering::Acquire);
        Ok(Made { version, frame, table, planned, reading, at: now, took: now.duration_since(at) })
    }

    /// The status, for as long as somebody looks.
    async fn keep_watching(self: Arc<Self>) {
        loop {
            if let Err(problem) = self.watch().await {
                let told = trouble(&problem);
                self.connection.heard(&problem);
                // While nobody answers, the last picture stays.
                let nothing_known = self.status.borrow().is_none();
                if nothing_known || !problem.is_unreachable() {
                    self.status.send_replace(Some(Err(told)));
                }
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn watch(&self) -> Result<(), Problem> {
        let mut client = self.connection.client().await?;
        let request = wire::StatusRequest { sweep: self.name.to_string() };
        let mut states = client.watch(request).await.map_err(remote::refused)?.into_inner();
        while let Some(status) = states.message().await.map_err(remote::refused)? {
            self.status.send_replace(Some(Ok(status.into())));
        }
        Ok(()) // it ended, for now
    }

    /// The finished folds, for as long as somebody looks.
    async fn keep_following(self: Arc<Self>) {
        let mut cursor = None;
        loop {
            if let Err(problem) = self.follow(&mut cursor).await {
                self.connection.heard(&problem);
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn follow(&self, cursor: &mut Option<wire::Cursor>) -> Result<(), Problem> {
        let client = self.connection.client().await?;
        let request = wire::FollowRequest { sweep: self.name.to_string(), cursor: cursor.clone() };
        let mut changes = client.clone().follow(request).await.map_err(remote::refused)?.into_inner();
        let mut remote = Remote::new(client);
        while let Some(change) = changes.message().await.map_err(remote::refused)? {
            if change.start_over {
                *cursor = None; // if reading is cut short, it begins again
                self.read_all(&mut remote).await?;
            }
            let few = (1..MANY).contains(&change.folds.len());
            self.take_in(&mut remote, change.folds).await?;
            *cursor = change.cursor;
            if few {
                // Meanwhile more finish, which then are read at once: the table is not made more often anyway.
                tokio::time::sleep(LEAST_PAUSE).await;
            }
        }
        Ok(())
    }

    /// Everything that has finished, page by page: the table grows meanwhile.
    async fn read_all(&self, remote: &mut Remote) -> Result<(), Problem> {
        self.reading.store(true, Ordering::Release);
        let wanted = Wanted { sweep: Some(self.name.clone()), results: true, ..Wanted::default() };
        let mut read = 0_u64;
        let done = remote
            .read(wanted, &mut |fact| {
                match fact {
                    Fact::Sweep(stored) => self.begin(&stored.yaml)?,
                    Fact::Result(row) => self.put(*row)?,
                    Fact::Folds { .. } | Fact::Fold(_) | Fact::Replicate(_) => {}
                }
                read += 1;
                if read.is_multiple_of(5_000) {
                    self.changed();
                }
                Ok(())
            })
            .await;
        self.reading.store(false, Ordering::Release);
        self.changed();
        done
    }

    fn begin(&self, yaml: &str) -> Result<(), Problem> {
        let spec = SweepSpec::parse(yaml).map_err(|error| {
            Problem::ours(format!("the stored sweep file cannot be read any more: {error}"))
        })?;
        let places = spec.trials.iter().map(|trial| (trial.id, trial.clone())).collect();
        let planned = Arc::new(Planned { plan: Plan::of_sweep(&spec), spec, places });
        *self.lock() = Some((planned, LiveFolds::new().map_err(Problem::ours)?));
        self.changed();
        Ok(())
    }

    fn put(&self, row: togl_coordinator::store::ResultRow) -> Result<(), Problem> {
        let mut folds = self.lock();
        let Some((planned, live)) = folds.as_mut() else { return Ok(()) };
        let Some(trial) = planned.places.get(&row.fold.trial) else { return Ok(()) };
        live.put(at(trial, row)).map_err(Problem::ours)
    }

    /// Folds that changed: those that have finished are read, the others have no result now.
    async fn take_in(&self, remote: &mut Remote, folds: Vec<wire::FoldSummary>) -> Result<(), Problem> {
        if folds.is_empty() {
            return Ok(());
        }
        let mut finished = Vec::new();
        for fold in folds {
            let key = convert::fold(fold.fold).map_err(Problem::ours)?;
            match fold.state.as_str() {
                "finished" => finished.push(key),
                _ => self.take_away(key),
            }
        }
        for row in results_of(remote, &self.name, finished, false).await? {
            self.put(row)?;
        }
        self.changed();
        Ok(())
    }

    fn take_away(&self, fold: FoldKey) {
        if let Some((_, live)) = self.lock().as_mut() {
            live.take_away(fold);
        }
    }

    fn changed(&self) {
        self.version.send_modify(|version| *version += 1);
    }
}

impl Planned {
    /// The place of a trial.
    pub fn place(&self, trial: TrialId) -> Option<&PlannedTrial> {
        self.places.get(&trial)
    }
}

/// The results of these folds, at most a thousand.
pub async fn results_of(
    remote: &mut Remote,
    sweep: &SweepName,
    folds: Vec<FoldKey>,
    curves: bool,
) -> Result<Vec<togl_coordinator::store::ResultRow>, Problem> {
    let mut rows = Vec::new();
    if folds.is_empty() {
        return Ok(rows);
    }
    let sweep = Some(sweep.clone());
    let wanted = Wanted { sweep, results: true, results_of: folds, curves, ..Wanted::default() };
    let mut take = |fact| {
        if let Fact::Result(row) = fact {
            rows.push(*row);
        }
        Ok(())
    };
    remote.read(wanted, &mut take).await?;
    Ok(rows)
}
