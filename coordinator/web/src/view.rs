//! What the page shows, as it goes over the wire to the browser. Plain values with the words and digits that people read;
//! whoever fills them in knows where they come from. Times are milliseconds since 1970, shares are 0..=1.

use std::collections::BTreeMap;

use serde::Serialize;

pub use crate::view_acts::*;
pub use crate::view_figures::*;

/// What the page is connected to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AboutPage {
    /// Version of this program.
    pub version: String,
    /// Address of the coordinator.
    pub coordinator: String,
    /// Since when it cannot be reached, as a time of day; empty while it answers.
    pub away_since: String,
}

/// All sweeps and workers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// The last ones, in the order of their submission, without archived ones.
    pub sweeps: Vec<SweepOnPage>,
    /// All of them, shown or not.
    pub sweeps_total: u64,
    /// Those that are connected or were a moment ago, the first of them.
    pub workers: Vec<WorkerOnPage>,
    /// All of them by state.
    pub worker_states: BTreeMap<String, u64>,
    /// Slots of all of them.
    pub slots: u64,
    /// Slots that train.
    pub busy: u64,
    /// Data sets about which results disagree.
    pub disputes: Vec<String>,
}

/// A sweep and how far it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepOnPage {
    /// Its name.
    pub name: String,
    /// `active`, `paused`, `cancelled`, `archived`, `done` or `failed`.
    pub state: String,
    /// Distinct trials.
    pub trials: u64,
    /// All folds; the next four add up to it.
    pub folds: u64,
    /// Waiting.
    pub pending: u64,
    /// In training.
    pub running: u64,
    /// With a result.
    pub finished: u64,
    /// Given up.
    pub failed: u64,
    /// Higher runs first.
    pub priority: i32,
    /// Why it paused itself; empty otherwise.
    pub note: String,
    /// Folds an hour since the page looks, at most over the last ten minutes; none before a minute is over.
    pub folds_an_hour: Option<u64>,
}

/// A worker.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerOnPage {
    /// Its id.
    pub worker: String,
    /// Host name.
    pub host: String,
    /// `connected`, `disconnected`, `draining` or `quarantined`.
    pub state: String,
    /// Folds at once.
    pub slots: u32,
    /// Device of each slot.
    pub devices: Vec<String>,
    /// Folds that it trains.
    pub busy: u64,
    /// The first of them.
    pub running: Vec<String>,
    /// Version of its program.
    pub version: String,
    /// Why its host is quarantined; empty otherwise.
    pub note: String,
}

/// A worker with what it did lately.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkerNow {
    /// What the list says of it, too.
    pub worker: WorkerOnPage,
    /// What it trains.
    pub in_training: Vec<InTraining>,
    /// Folds that it finished or lost and that were looked at.
    pub looked_at: u64,
    /// Of these, how many it finished.
    pub finished: u64,
    /// Folds that it finished in the last hour.
    pub last_hour: u64,
    /// Mean seconds of the folds that it finished.
    pub seconds_a_fold: Option<f64>,
    /// Folds that failed and were its last, by class.
    pub failed_by_class: BTreeMap<String, u64>,
    /// What it finished in the last hour, the last 300, in order.
    pub lately: Vec<Stretch>,
    /// When that was looked at, in milliseconds since 1970.
    pub at: u64,
}

/// A fold that was trained, and when.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Stretch {
    /// `TRIAL/split/seed`.
    pub fold: String,
    /// What was trained on what.
    pub title: String,
    /// When it began, in milliseconds since 1970.
    pub from: u64,
    /// When it ended.
    pub until: u64,
}

/// One sweep as it is now.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SweepNow {
    /// Counts.
    pub sweep: SweepOnPage,
    /// Trials all of whose folds are finished.
    pub trials_finished: u64,
    /// Estimate of the coordinator, from the mean fold; 0 if there is none.
    pub eta_seconds: u64,
    /// Seconds that it takes still at the least and at the most, by kind of fold once a table was made; zeros if nobody
    /// can say.
    pub left: [u64; 2],
    /// Why nothing runs although something should; empty otherwise.
    pub standstill: String,
    /// Failed folds by class.
    pub failed_by_class: BTreeMap<String, u64>,
    /// In training, at most 200; `sweep.running` says how many there are.
    pub in_training: Vec<InTraining>,
    /// Settings that differ between its trials.
    pub varying: Vec<String>,
    /// How values are written.
    pub score: ShownScore,
}

/// A fold in training.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InTraining {
    /// `TRIAL/split/seed`.
    pub fold: String,
    /// What is trained on what.
    pub title: String,
    /// Which attempt.
    pub attempt: u32,
    /// By whom.
    pub worker: String,
    /// Epochs done.
    pub epoch: u32,
    /// Epochs at the most; 0 until the first is done.
    pub max_epochs: u32,
    /// How its values are written.
    pub score: ShownScore,
    /// Validation accuracy of the last epoch.
    pub validation_accuracy: Option<f64>,
}

/// What values are and how they are written: times the factor, with so many digits, before the unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownScore {
    /// Such as `accuracy`.
    pub name: String,
    /// What a value is multiplied with.
    pub factor: f64,
    /// Such as `%`; empty if there is none.
    pub unit: String,
    /// Digits behind the point.
    pub decimals: u32,
}

/// The table of a sweep as far as it is.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableOnPage {
    /// Changes whenever the table may have changed.
    pub version: u64,
    /// Finished folds that it is made of.
    pub folds: u64,
    /// Whether more are being read.
    pub reading: bool,
    /// Why there is none; empty otherwise.
    pub problem: String,
    /// What stands over the labels of rows.
    pub label_headers: Vec<String>,
    /// Headers that several columns share, line by line.
    pub above: Vec<Vec<Span>>,
    /// What stands over each column.
    pub headers: Vec<String>,
    /// The rows, the first of them where there are very many.
    pub rows: Vec<RowOnPage>,
    /// All of them.
    pub total: u64,
    /// Caption and notes.
    pub below: Vec<String>,
}

/// A header over several columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Span {
    /// What it says.
    pub text: String,
    /// How many columns.
    pub columns: u64,
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowOnPage {
    /// One for each of the label headers.
    pub labels: Vec<String>,
    /// A cell for each column.
    pub cells: Vec<CellOnPage>,
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CellOnPage {
    /// Such as `61.2 ± 2.1`.
    pub number: String,
    /// `n=7/10` where folds are missing.
    pub count: String,
    /// Signs that the notes explain.
    pub marks: String,
    /// Whether it is the best of its column, or as good.
    pub best: bool,
    /// Folds with a value.
    pub n: u64,
    /// Planned folds.
    pub planned: u64,
    /// The trials behind it.
    pub trials: Vec<String>,
}

/// Some folds of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoldsOnPage {
    /// All that fit, shown or not.
    pub total: u64,
    /// So many were left out before the first.
    pub from: u64,
    /// Where the next page begins, if there is one.
    pub next: Option<u64>,
    /// The folds.
    pub folds: Vec<FoldLine>,
}

/// A fold in one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoldLine {
    /// `TRIAL/split/seed`.
    pub fold: String,
    /// Name of the network.
    pub method: String,
    /// Data set.
    pub dataset: String,
    /// Settings that vary in the sweep.
    pub settings: BTreeMap<String, String>,
    /// `pending`, `running`, `finished` or `failed`.
    pub state: String,
    /// Attempts so far.
    pub attempts: u32,
    /// Who has it, or had it last; empty if nobody had.
    pub worker: String,
    /// The metric on the test part.
    pub value: Option<f64>,
    /// Seconds of training.
    pub seconds: Option<f64>,
    /// Failure class; empty unless it failed.
    pub class: String,
    /// What happened; empty unless it failed.
    pub message: String,
}

/// Who did what, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Acts {
    /// At most a few hundred.
    pub acts: Vec<ActLine>,
}

/// Something that somebody did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActLine {
    /// Milliseconds since 1970.
    pub at: i64,
    /// What his token was called then.
    pub by: String,
    /// In one word, that of the command.
    pub act: String,
    /// To which sweep, worker or data set.
    pub about: String,
    /// What it led to.
    pub detail: String,
    /// Why, as it was given.
    pub reason: String,
}

/// Why folds of a sweep failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failures {
    /// All of them.
    pub total: u64,
    /// How many of them were looked at for the groups.
    pub looked_at: u64,
    /// Those that failed alike, the most frequent first.
    pub groups: Vec<FailureGroup>,
}

/// Folds that failed alike.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailureGroup {
    /// Failure class.
    pub class: String,
    /// What was said, with `#` for numbers.
    pub words: String,
    /// How many folds.
    pub folds: u64,
    /// One of them.
    pub example: String,
    /// What it said.
    pub message: String,
    /// Who had them last, with how many each.
    pub workers: BTreeMap<String, u64>,
    /// On which hosts, with how many each; workers that are not here any more go by their name.
    pub hosts: BTreeMap<String, u64>,
    /// What the rules did before they gave the fold up, and what can be done now.
    pub rule: String,
}

/// One fold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FoldOnPage {
    /// `TRIAL/split/seed`.
    pub fold: String,
    /// What is trained on what.
    pub title: String,
    /// One sentence: why it is not running, or what became of it.
    pub reason: String,
    /// How its values are written.
    pub score: ShownScore,
    /// The sweeps that have it.
    pub sweeps: Vec<String>,
    /// Attempts so far.
    pub attempts: Vec<AttemptOnPage>,
    /// What happened, in order.
    pub history: Vec<EventOnPage>,
    /// What its trainers wrote last.
    pub log: Vec<LogOnPage>,
    /// Settings of the trial that are not the default, as JSON spells them.
    pub settings: BTreeMap<String, String>,
    /// Its result, if it has one.
    pub result: Option<OutcomeOnPage>,
    /// How it came along so far, while it is in training; as much as was heard since the coordinator started.
    pub growing: Vec<Along>,
    /// Further results of it, which do not count.
    pub replicates: Vec<Again>,
}

/// A further result of a fold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Again {
    /// Which attempt.
    pub attempt: u32,
    /// By whom.
    pub worker: String,
    /// `replicate` or `conflict`.
    pub kind: String,
    /// Its metric on the test part.
    pub test: Option<f64>,
    /// What it says differently from the result that counts; empty if nothing.
    pub differs: Vec<String>,
}

/// An attempt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AttemptOnPage {
    /// Its number, from 1.
    pub attempt: u32,
    /// Who had it.
    pub worker: String,
    /// How it ended if it brought no result; empty otherwise.
    pub ending: String,
}

/// Something that happened to a fold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventOnPage {
    /// When; 0 if unknown.
    pub at: i64,
    /// What.
    pub event: String,
    /// Which attempt; 0 if none is concerned.
    pub attempt: u32,
    /// Who had it; empty if nobody is concerned.
    pub worker: String,
    /// For people.
    pub detail: String,
}

/// The end of what a trainer wrote.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogOnPage {
    /// Of which attempt.
    pub attempt: u32,
    /// Lines.
    pub text: String,
}

/// The result of a fold.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutcomeOnPage {
    /// How values are written.
    pub score: ShownScore,
    /// The metric on the test part.
    pub test: f64,
    /// On the validation part.
    pub validation: f64,
    /// On the training part.
    pub train: f64,
    /// Epoch of the best checkpoint.
    pub best_epoch: u32,
    /// Epochs trained.
    pub epochs: u32,
    /// Seconds of training.
    pub seconds: f64,
    /// Trainable parameters.
    pub parameters: u64,
    /// Rows are true classes, columns predicted ones.
    pub confusion: Vec<Vec<u64>>,
    /// Where it comes from: name and value.
    pub provenance: Vec<[String; 2]>,
    /// The learning curve, at most 128 points.
    pub curve: Vec<CurvePoint>,
}

/// A point of a learning curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurvePoint {
    /// Epoch, from 0.
    pub epoch: u32,
    /// Loss on the training part.
    pub train_loss: f64,
    /// Loss on the validation part.
    pub validation_loss: f64,
    /// Accuracy on the training part.
    pub train: f64,
    /// Accuracy on the validation part.
    pub validation: f64,
}
