//! What a program has reported so far, and the result that follows from it: every value is looked at where it comes in, so that
//! a mistake of the program is said in its own words. Makes no process and writes no file.

use togl_agent::clock;
use togl_sweeps::result::{EpochRecord, Metrics, version_of};
use togl_sweeps::{Failure, FailureClass, FoldResult, Scale};

use super::ProgramJob;
use super::checkpoint::Resumed;
use super::events::{EpochLine, ResultLine};
use crate::{host, version};

/// Lines of a learning curve that are kept.
const MOST_EPOCHS: usize = 100_000;

/// The longest text of a program in a result, in bytes.
const LONGEST: usize = 1_000;

/// What is known of the data set that a program is given.
#[derive(Debug, Clone, Default)]
pub struct KnownData {
    /// Digest of the data; empty where only the program knows what it reads.
    pub data_digest: String,
    /// Digest of the split.
    pub split_digest: String,
    /// Sizes of its parts; nothing where they are not known.
    pub part_sizes: [u64; 3],
    /// The parts themselves, as JSON.
    pub indices: Option<String>,
}

/// What was reported.
#[derive(Debug, Clone, Default)]
pub struct Account {
    pub history: Vec<EpochRecord>,
    /// What its values are.
    scale: Scale,
    /// Seconds of the attempts before.
    seconds: f64,
    finished: Option<ResultLine>,
}

impl Account {
    /// Begins where an earlier attempt saved.
    pub fn going_on(resumed: &Option<Resumed>, scale: &Scale) -> Self {
        let (history, seconds) = resumed
            .as_ref()
            .map_or_else(Default::default, |resumed| (resumed.history.clone(), resumed.seconds));
        Self { history, scale: scale.clone(), seconds, finished: None }
    }

    /// Epochs that are done.
    pub fn epochs(&self) -> u32 {
        self.history.last().map_or(0, |record| record.epoch.saturating_add(1))
    }

    /// Seconds of training until now.
    pub fn seconds(&self, now: f64) -> f64 {
        self.seconds + now
    }

    /// Whether the result is there.
    pub fn is_finished(&self) -> bool {
        self.finished.is_some()
    }

    /// Adds a line to the curve.
    pub fn epoch(&mut self, line: &EpochLine) -> Result<EpochRecord, Failure> {
        if line.epoch < self.epochs() || self.history.len() >= MOST_EPOCHS {
            let next = self.epochs();
            return Err(error(format!(
                "the program reports epoch {} where {next} or a later one is next, of at most {MOST_EPOCHS}",
                line.epoch
            )));
        }
        let scale = &self.scale;
        let train = metrics(scale, "train", line.train, line.train_loss)?;
        let validation = metrics(scale, "validation", line.validation, line.validation_loss)?;
        let lr = line.lr.filter(|lr| lr.is_finite() && *lr >= 0.0).unwrap_or(0.0);
        let record = EpochRecord { epoch: line.epoch, lr, train, validation };
        self.history.push(record);
        Ok(record)
    }

    /// Takes the result; there is one.
    pub fn finish(&mut self, line: ResultLine) -> Result<(), Failure> {
        if self.finished.is_some() {
            return Err(error("the program reported two results; a fold has one".to_owned()));
        }
        self.finished = Some(line);
        Ok(())
    }

    /// The result of the fold.
    pub fn result(self, job: &ProgramJob<'_>, seconds: f64, peak: u64) -> Result<FoldResult, Failure> {
        let seconds = self.seconds(seconds);
        let Self { history, scale, finished, .. } = self;
        let Some(line) = finished else { return Err(error("the program has no result".to_owned())) };
        let last = history.last().copied();
        let [test, validation, train] = outcome(&scale, &line, &history)?;
        let epochs = last.map_or(1, |record| record.epoch + 1);
        let text =
            |text: Option<String>| text.unwrap_or_default().chars().take(LONGEST / 4).collect::<String>();
        let known = &job.known;
        let score = job.trial.program.as_ref().and_then(|program| program.code.score.clone());
        let data_digest =
            if known.data_digest.is_empty() { text(line.data_digest) } else { known.data_digest.clone() };
        Ok(FoldResult {
            version: version_of(score.as_ref()),
            numerics: 0,
            score,
            test,
            validation,
            train,
            last_validation: last.map_or(validation, |record| record.validation),
            best_epoch: line.best_epoch.unwrap_or(epochs - 1).min(epochs - 1),
            epochs,
            seconds,
            finished_at: clock::milliseconds_since_1970(),
            energy_joules: None,
            peak_memory: peak,
            parameters: line.parameters.unwrap_or(0),
            confusion: Vec::new(),
            part_sizes: part_sizes(known, line.sizes),
            data_digest,
            split_digest: known.split_digest.clone(),
            provenance: provenance(job, &text(line.environment)),
            history,
        })
    }
}

/// Sizes of the parts: as we know them, else as the program says them. The corrected test of races and tables needs them.
fn part_sizes(known: &KnownData, said: Option<[u64; 3]>) -> [u64; 3] {
    if known.part_sizes == [0; 3] { said.unwrap_or_default() } else { known.part_sizes }
}

/// Test, validation and training values of the result. What it does not say is that of its best epoch, else of the last one.
fn outcome(scale: &Scale, line: &ResultLine, history: &[EpochRecord]) -> Result<[Metrics; 3], Failure> {
    let best = line.best_epoch.and_then(|best| history.iter().find(|record| record.epoch == best));
    let then = best.or(history.last());
    let of = |name: &str, value: Option<f64>, loss, then: Option<Metrics>| match (value, then) {
        (None, Some(then)) => Ok(then),
        (value, _) => metrics(scale, name, value, loss),
    };
    Ok([
        metrics(scale, "test", line.test, line.test_loss)?,
        of("validation", line.validation, line.validation_loss, then.map(|record| record.validation))?,
        of("train", line.train, line.train_loss, then.map(|record| record.train))?,
    ])
}

/// Where it came from: the files by their digest, what ran them by what it says of itself.
fn provenance(job: &ProgramJob<'_>, environment: &str) -> togl_sweeps::result::Provenance {
    let code = job.trial.program.as_ref().map(|program| &program.code);
    let commit = code.and_then(|code| code.bundle.clone().or(code.version.clone())).unwrap_or_default();
    let environment = if environment.is_empty() { "unknown environment" } else { environment };
    let device = job.request.device.split(':').next().unwrap_or_default();
    togl_sweeps::result::Provenance {
        code_version: format!("{environment}, togl {}", version::VERSION),
        commit,
        dirty: false,
        libtorch: String::new(),
        processor: togl_learning::device::processor(device),
        device: device.to_owned(),
        host: host::name(),
        worker: String::new(),
    }
}

/// A value and its loss. Without a loss the value stands for it, so that lower is better as for every loss.
fn metrics(scale: &Scale, name: &str, value: Option<f64>, loss: Option<f64>) -> Result<Metrics, Failure> {
    let Some(value) = value.filter(|value| value.is_finite()) else {
        let message = format!(
            "the program reports no finite number as `{name}`; every result has test, validation and train"
        );
        let class = if value.is_none() { FailureClass::Error } else { FailureClass::NotFinite };
        return Err(Failure::new(class, message));
    };
    if !scale.contains(value) {
        let share =
            "no share in 0..1; divide percent by 100, or declare a `score` in the sweep file".to_owned();
        let own = || {
            format!("no {} ({}); widen the `range` of `score` in the sweep file", scale.name, scale.range())
        };
        let what = if *scale == Scale::SHARE { share } else { own() };
        return Err(error(format!("the program reports {name} = {value}, which is {what}")));
    }
    let loss = loss.filter(|loss| loss.is_finite()).unwrap_or(-scale.sign() * value);
    Ok(Metrics { loss, accuracy: value })
}

fn error(message: String) -> Failure {
    Failure::new(FailureClass::Error, message)
}
