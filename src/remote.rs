//! The coordinator as seen from the command line: where it is, with which token, and what it said, turned into
//! plain values that can be printed. Wire types stop here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use togl_coordinator::tokens::{self, Role};
use togl_proto::client::{self, AuthorisedChannel, ClientAccess, ConnectError, is_local};
use togl_proto::health::{self, Health};
use togl_proto::token::Token;
use togl_proto::wire::sweeps_client::SweepsClient;
use togl_proto::wire::{self};
use togl_sweeps::{Scale, TrialConfig, bounded};
use tonic::{Code, Status};

use crate::facts;
use crate::output::ListRow;
use crate::problem::Problem;
use crate::state::StateDir;

/// Which coordinator a command talks to.
#[derive(Debug, Clone, clap::Args)]
pub struct CoordinatorTarget {
    /// Where the coordinator listens, or several addresses with commas; the default is the one that serves the state directory
    #[arg(long, value_name = "HOST:PORT", env = "TOGL_COORDINATOR")]
    pub coordinator: Option<String>,
    /// A coordinator by its name in `togl context list`; the default is the one that `togl context use` chose
    #[arg(long, value_name = "NAME", env = "TOGL_CONTEXT")]
    pub context: Option<String>,
    /// File that holds an operator or viewer token; otherwise TOGL_TOKEN, otherwise the state directory's own
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// PEM file with a certificate and its key, for a coordinator that asks for one
    #[arg(long, value_name = "FILE", env = "TOGL_IDENTITY")]
    pub identity: Option<PathBuf>,
    /// The state directory [default: the user's own]
    #[arg(long, value_name = "DIR", env = "TOGL_STATE")]
    pub state: Option<PathBuf>,
}

/// A connection as a person.
pub type Client = SweepsClient<AuthorisedChannel>;

impl CoordinatorTarget {
    /// The state directory.
    pub fn state(&self) -> Result<StateDir, Problem> {
        StateDir::resolve(self.state.clone())
    }

    /// Connects.
    pub async fn connect(&self) -> Result<Client, Problem> {
        let address = self.address()?;
        client::check_address(&address).map_err(Problem::usage)?;
        tracing::debug!(address, context = self.context.as_deref(), "connecting");
        let token = self.token(&address)?;
        let open = token.pin().is_none() && !is_local(&address);
        let access = ClientAccess::new(&token.reveal(), self.identity.as_deref()).map_err(Problem::usage)?;
        access.sweeps(&address).await.map_err(|error| match error {
            ConnectError::Unreachable { .. } if open => Problem::unreachable(error).hint(
                "the token names no CA, so the connection was not encrypted, and a coordinator refuses that from \
                 other machines; use a whole token from `togl token create` or a `.token` file of its state directory",
            ),
            ConnectError::Unreachable { .. } => Problem::unreachable(error)
                .hint("start one with `togl serve`, or name another with --coordinator"),
            ConnectError::Stranger { .. } => Problem::unreachable(error).hint(WHERE_IT_LISTENS),
            other => Problem::usage(other),
        })
    }

    /// Whether the token may change anything, as far as it says.
    pub fn may_steer(&self) -> bool {
        let token = self.address().and_then(|address| self.token(&address));
        token.is_ok_and(|token| token.role() != Some(Role::Viewer))
    }

    /// Where the coordinator is, as far as is known.
    pub fn address(&self) -> Result<String, Problem> {
        if let Some(address) = &self.coordinator {
            return Ok(address.clone());
        }
        let state = self.state()?;
        let served = state.served().ok_or_else(|| {
            Problem::unreachable(format!("no coordinator serves {}", state.path().display()))
                .hint("start one with `togl serve`, name another with --coordinator, or choose a folder with --state")
        })?;
        Ok(served.address)
    }

    /// Whether the coordinator serves. That needs no token; of a coordinator elsewhere the token says which CA must answer.
    pub async fn health(&self) -> Result<Health, Problem> {
        let address = self.address()?;
        client::check_address(&address).map_err(Problem::usage)?;
        let token = if is_local(&address) { None } else { Some(self.token(&address)?) };
        let pin = token.as_ref().and_then(Token::pin);
        health::ask(&address, pin, self.identity.as_deref()).await.map_err(|error| match error {
            ConnectError::Unreachable { .. } if pin.is_none() && !is_local(&address) => {
                Problem::unreachable(error).hint(
                    "from another machine only TLS is answered: name with --token-file or TOGL_TOKEN any whole token of \
                     that coordinator, with its `.ca` part",
                )
            }
            ConnectError::Unreachable { .. } | ConnectError::Stranger { .. } => Problem::unreachable(error),
            other => Problem::usage(other),
        })
    }

    /// The CA of the coordinator, as far as the token names it.
    pub fn pin(&self) -> Option<String> {
        let named = self.token(&self.address().ok()?).ok()?.pin().map(ToString::to_string);
        let own =
            || tokens::own(self.state().ok()?.path(), Role::Operator).ok()?.pin().map(ToString::to_string);
        named.or_else(own)
    }

    fn token(&self, address: &str) -> Result<Token, Problem> {
        if let Some(file) = &self.token_file {
            let text = std::fs::File::open(file)
                .and_then(|file| bounded::text(file, bounded::SECRET))
                .map_err(|e| Problem::usage(format!("cannot read {}: {e}", file.display())))?;
            return Token::parse(&text).map_err(|e| Problem::usage(format!("{}: {e}", file.display())));
        }
        if let Ok(token) = std::env::var("TOGL_TOKEN") {
            return Token::parse(&token).map_err(|e| Problem::usage(format!("TOGL_TOKEN: {e}")));
        }
        let own = tokens::own(self.state()?.path(), Role::Operator).map_err(|error| {
            Problem::usage(error)
                .hint("set TOGL_TOKEN or --token-file to an operator token of that coordinator")
        })?;
        // On the machine itself TLS would protect nothing and cost time.
        Ok(if self.coordinator.is_none() && is_local(address) { own.unpinned() } else { own })
    }
}

const WHERE_IT_LISTENS: &str =
    "check host and port; `togl serve` prints where it listens, 7447 unless told otherwise";

/// What a refused call means for the user.
pub fn refused(status: Status) -> Problem {
    let message = status.message();
    match status.code() {
        // Without TLS nothing is said before the first call, so a stranger is noticed only here.
        Code::Internal | Code::Unknown if message.starts_with("h2 protocol error") => {
            Problem::unreachable("something answers, but it does not speak as a togl coordinator does")
                .hint(WHERE_IT_LISTENS)
        }
        // The same, noticed a moment earlier; or a coordinator that does not want this client, or is just stopping.
        _ if let Some(reason) = client::broken(&status) => {
            Problem::unreachable(format!("something answers, but the connection was closed: {reason}")).hint(format!(
                "{WHERE_IT_LISTENS}; from another machine only a whole token is taken, with its `.ca` part; if all is \
                 right, ask again"
            ))
        }
        Code::NotFound => Problem::negative(message),
        Code::Unimplemented => Problem::usage("the coordinator does not know this call")
            .hint("it is another version than this togl; update the older of the two"),
        Code::InvalidArgument | Code::FailedPrecondition | Code::AlreadyExists | Code::ResourceExhausted => {
            Problem::told(message)
        }
        Code::Unauthenticated | Code::PermissionDenied => Problem::usage(message)
            .hint("set TOGL_TOKEN or --token-file to an operator token of that coordinator; `togl token create` makes one"),
        Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded => {
            Problem::unreachable(format!("the coordinator went away: {message}"))
                .hint("results are safe; ask again when it is back")
        }
        _ => Problem::ours(format!("the coordinator failed: {message}")),
    }
}

/// A sweep and how far it is.
#[derive(Debug, Clone, Serialize)]
pub struct ListedSweep {
    /// Its name.
    pub name: String,
    /// `active`, `paused`, `cancelled`, `archived`; when nothing is left to do `done`, or `failed` if no fold has a result.
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
    /// Why it paused itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl ListedSweep {
    /// Whether nothing more will happen.
    pub fn ended(&self) -> bool {
        matches!(self.state.as_str(), "cancelled" | "archived") || self.finished + self.failed == self.folds
    }
}

impl ListedSweep {
    /// The same sweep, which is done if nothing is left to do, or failed if no fold has a result then.
    pub fn settled(self) -> Self {
        let over = self.state == "active" && self.finished + self.failed == self.folds;
        let outcome = if self.finished == 0 && self.failed > 0 { "failed" } else { "done" };
        Self { state: if over { outcome.to_owned() } else { self.state }, ..self }
    }
}

impl From<wire::SweepSummary> for ListedSweep {
    fn from(s: wire::SweepSummary) -> Self {
        let sweep = Self {
            name: s.name,
            state: s.state,
            trials: s.trials,
            folds: s.folds,
            pending: s.pending,
            running: s.running,
            finished: s.finished,
            failed: s.failed,
            priority: s.priority,
            note: s.note,
        };
        sweep.settled()
    }
}

impl ListRow for ListedSweep {
    const COLUMNS: &'static [&'static str] =
        &["NAME", "STATE", "TRIALS", "FOLDS", "PENDING", "RUNNING", "FINISHED", "FAILED", "PRIORITY"];
    const ALSO: &'static [&'static str] = &["note"];

    fn cells(&self) -> Vec<String> {
        let counts = [self.trials, self.folds, self.pending, self.running, self.finished, self.failed];
        let words = [self.name.clone(), self.state.clone()];
        let priority = [self.priority.to_string()];
        words.into_iter().chain(counts.iter().map(u64::to_string)).chain(priority).collect()
    }
}

/// A worker as listed.
#[derive(Debug, Clone, Serialize)]
pub struct ListedWorker {
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
    /// What it trains.
    pub running: Vec<String>,
    /// Version of its program.
    pub code_version: String,
    /// Where it runs as who started it calls it, such as `slurm:123_4`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub allocation: String,
    /// Why its host is quarantined.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl From<wire::WorkerSummary> for ListedWorker {
    fn from(w: wire::WorkerSummary) -> Self {
        let running = w.running.iter().map(|f| fold_text(Some(f))).collect();
        let wire::WorkerSummary {
            worker, host, state, slots, devices, code_version, note, allocation, ..
        } = w;
        Self { worker, host, state, slots, devices, running, code_version, allocation, note }
    }
}

impl ListRow for ListedWorker {
    const COLUMNS: &'static [&'static str] =
        &["WORKER", "HOST", "STATE", "BUSY", "SLOTS", "DEVICES", "VERSION"];
    const ALSO: &'static [&'static str] = &["running", "code_version", "note"];

    fn cells(&self) -> Vec<String> {
        let mut devices = self.devices.clone();
        devices.dedup();
        vec![
            self.worker.clone(),
            self.host.clone(),
            self.state.clone(),
            self.running.len().to_string(),
            self.slots.to_string(),
            devices.join(" "),
            self.code_version.clone(),
        ]
    }
}

/// One sweep, watched.
#[derive(Debug, Clone, Serialize)]
pub struct SweepStatus {
    /// Counts.
    #[serde(flatten)]
    pub sweep: ListedSweep,
    /// Trials with all their folds.
    pub trials_finished: u64,
    /// Estimate; 0 if there is none.
    pub eta_seconds: u64,
    /// In training, the first of them; `running` says how many there are.
    pub in_training: Vec<FoldInTraining>,
    /// Given up, the first of them; `failed` says how many there are.
    pub failures: Vec<FoldGivenUp>,
    /// All that were given up, by class.
    pub failed_by_class: BTreeMap<String, u64>,
    /// Why nothing runs although something should.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub standstill: String,
    /// What its race has stopped, in words; empty where it has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub race: String,
}

/// A fold in training.
#[derive(Debug, Clone, Serialize)]
pub struct FoldInTraining {
    /// `TRIAL/split/seed`.
    pub fold: String,
    /// What is trained on what, such as `GCN-3 on necklaces`.
    pub title: String,
    /// Which attempt.
    pub attempt: u32,
    /// By whom.
    pub worker: String,
    /// On which of its slots.
    pub slot: u32,
    /// Epochs done.
    pub epoch: u32,
    /// Epochs at the most; 0 until the first is done.
    pub max_epochs: u32,
    /// Validation accuracy of the last epoch, or the value on the scale.
    pub validation_accuracy: Option<f64>,
    /// What such values are.
    #[serde(skip_serializing_if = "is_share")]
    pub scale: Scale,
}

/// A fold that was given up.
#[derive(Debug, Clone, Serialize)]
pub struct FoldGivenUp {
    /// `TRIAL/split/seed`.
    pub fold: String,
    /// What was trained on what.
    pub title: String,
    /// Failure class.
    pub class: String,
    /// What happened.
    pub message: String,
    /// Where its last attempt was, if that is known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub host: String,
}

impl From<wire::SweepStatus> for SweepStatus {
    fn from(status: wire::SweepStatus) -> Self {
        Self {
            sweep: status.summary.unwrap_or_default().into(),
            trials_finished: status.trials_finished,
            eta_seconds: status.eta_seconds,
            in_training: status.running.into_iter().map(Into::into).collect(),
            failures: status.failures.into_iter().map(Into::into).collect(),
            failed_by_class: status.failed_by_class.into_iter().map(|c| (c.class, c.folds)).collect(),
            standstill: status.standstill,
            race: String::new(),
        }
    }
}

impl From<wire::RunningFold> for FoldInTraining {
    fn from(running: wire::RunningFold) -> Self {
        let progress = running.progress.unwrap_or_default();
        Self {
            title: title(&running.config, running.fold.as_ref()),
            fold: fold_text(running.fold.as_ref()),
            attempt: running.attempt,
            worker: running.worker,
            slot: running.slot,
            epoch: progress.epoch,
            max_epochs: progress.max_epochs,
            validation_accuracy: progress.validation.map(|metrics| metrics.accuracy),
            scale: scale(&running.config),
        }
    }
}

impl From<wire::FailedFold> for FoldGivenUp {
    fn from(failed: wire::FailedFold) -> Self {
        let failure = failed.failure.unwrap_or_default();
        Self {
            title: title(&failed.config, failed.fold.as_ref()),
            fold: fold_text(failed.fold.as_ref()),
            class: failure.class,
            message: failure.message,
            host: failed.host,
        }
    }
}

fn is_share(scale: &Scale) -> bool {
    *scale == Scale::SHARE
}

/// What the values of a trial are, by its canonical JSON.
pub fn scale(config: &str) -> Scale {
    TrialConfig::from_canonical(config).map_or(Scale::SHARE, |trial| trial.scale().clone())
}

/// `TRIAL/split/seed`.
pub fn fold_text(fold: Option<&wire::Fold>) -> String {
    fold.map_or_else(String::new, |f| format!("{}/{}/{}", f.trial, f.split, f.seed))
}

fn title(config: &str, fold: Option<&wire::Fold>) -> String {
    fold.map_or_else(|| named(config), |fold| fold_title(config, fold.split, fold.seed))
}

/// What a fold is called, by the canonical JSON of its trial.
pub fn fold_title(config: &str, split: u32, seed: u64) -> String {
    format!("{}, split {split}, seed {seed}", named(config))
}

fn named(config: &str) -> String {
    TrialConfig::from_canonical(config)
        .map_or_else(|_| "a trial of another version".to_owned(), |trial| facts::title(&trial))
}
