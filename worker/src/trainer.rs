//! The trainer: the child process that a slot keeps. Reads requests, trains, writes events. It dies with its
//! parent: when standard input ends there is nobody to train for.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc;

use togl_data::{Dataset, FeatureChoice, OpenOptions};
use togl_learning::{Flow, Job, Observer, Progress, baselines, device, train_fold};
use togl_sweeps::result::Provenance;
use togl_sweeps::{Failure, FailureClass, FoldResult, TrialConfig};

use crate::clock::Clock;
use crate::protocol::{self, EpochReport, Event, Request};
use crate::{devices, host, version};

/// The child process that trains
#[derive(Debug, clap::Args)]
pub struct Trainer {}

impl Trainer {
    /// Trains until standard input ends.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        device::use_threads(1);
        device::use_interop_threads(1)?;
        let requests = listen();
        let mut shelf = Shelf::default();
        while let Ok(request) = requests.recv() {
            let outcome = match train(&request, &mut shelf) {
                Ok(result) => Event::Done(Box::new(result)),
                Err(failure) => Event::Failed(failure),
            };
            say(&outcome)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Reads requests on a thread of its own, so that the end of standard input is noticed while training.
fn listen() -> mpsc::Receiver<Request> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            match serde_json::from_str(&line) {
                Ok(request) => drop(sender.send(request)),
                Err(error) => eprintln!("a request that cannot be read was ignored: {error}"),
            }
        }
        leave();
    };
    let started = std::thread::Builder::new().name("requests".to_owned()).spawn(read);
    if let Err(error) = started {
        eprintln!("cannot start the reading thread: {error}");
    }
    receiver
}

/// Ends the process at once. Training cannot be interrupted otherwise, nothing here needs tidying, and running
/// libtorch's destructors under the training thread's feet would crash.
fn leave() {
    // SAFETY: takes a plain number, touches no memory of ours and does not return.
    unsafe { libc::_exit(0) }
}

fn say(event: &Event) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(protocol::line(event)?.as_bytes())?;
    out.flush()
}

/// The data set of the last fold: the next fold usually needs the same.
#[derive(Default)]
struct Shelf(Option<(String, u64, FeatureChoice, Dataset)>);

impl Shelf {
    fn get(&mut self, trial: &TrialConfig, data_dir: Option<PathBuf>) -> Result<&Dataset, Failure> {
        let features = baselines::feature_choice(trial);
        let fits = |(name, seed, choice, _): &(String, u64, FeatureChoice, Dataset)| {
            (name, seed, choice) == (&trial.dataset, &trial.data_seed, &features)
        };
        let held = match self.0.take().filter(fits) {
            Some(held) => held,
            None => (trial.dataset.clone(), trial.data_seed, features, open_dataset(trial, data_dir)?),
        };
        Ok(&self.0.insert(held).3)
    }
}

/// The data set of a trial; the whole chain of causes if it cannot be had.
pub fn open_dataset(trial: &TrialConfig, data_dir: Option<PathBuf>) -> Result<Dataset, Failure> {
    let cache = host::cache_home();
    let options = OpenOptions {
        data_dir: data_dir.or_else(|| cache.as_ref().map(|folder| folder.join("data"))),
        cache_dir: cache.map(|folder| folder.join("data-cache")),
        data_seed: trial.data_seed,
        features: baselines::feature_choice(trial),
        ..OpenOptions::default()
    };
    togl_data::open(&trial.dataset, &options)
        .map_err(|error| Failure::new(FailureClass::Data, format!("{:#}", anyhow::Error::new(error))))
}

fn train(request: &Request, shelf: &mut Shelf) -> Result<FoldResult, Failure> {
    let trial = togl_proto::convert::trial(&request.config, request.fold)
        .map_err(|error| Failure::new(FailureClass::Config, error.to_string()))?;
    let dataset = shelf.get(&trial, request.data_dir.clone())?;
    let clock = Clock::start();
    let seconds = || clock.seconds();
    let job = Job {
        trial: &trial,
        split: request.fold.split,
        seed: request.fold.seed,
        device: devices::parse(&request.device).map_err(|error| Failure::new(FailureClass::Config, error))?,
        time_limit: None, // the agent keeps the time and kills
        clock: &seconds,
    };
    note(&format!(
        "{} on {}, {} graphs, device {}",
        trial.method(),
        dataset.name(),
        dataset.graph_count(),
        request.device
    ));
    let mut reporter = Reporter { said: 0 };
    let mut result = train_fold(&job, dataset, &mut reporter).map_err(|error| {
        note(&format!("failed: {error}"));
        Failure::new(error.class(), error.to_string())
    })?;
    note(&format!(
        "test accuracy {:.4} at epoch {} of {}",
        result.test.accuracy,
        result.best_epoch + 1,
        result.epochs
    ));
    result.peak_memory = host::peak_memory();
    sign(&mut result.provenance);
    Ok(result)
}

/// Adds what only the program knows; device and libtorch are already in.
fn sign(provenance: &mut Provenance) {
    provenance.code_version = version::VERSION.to_owned();
    provenance.commit = version::COMMIT.to_owned();
    provenance.dirty = version::dirty();
    provenance.host = host::name();
}

/// A line for the fold's log, which `togl logs` shows.
fn note(text: &str) {
    eprintln!("{text}");
}

/// Sends every epoch to the agent, and notes about ten of them in the fold's log.
struct Reporter {
    /// Tenths of the epochs that were noted.
    said: u32,
}

impl Observer for Reporter {
    fn epoch(&mut self, progress: &Progress) -> Flow {
        let report = EpochReport {
            epoch: progress.epoch + 1,
            max_epochs: progress.max_epochs,
            lr: progress.lr,
            train: progress.train,
            validation: progress.validation,
            graphs_per_second: progress.graphs_per_second,
        };
        let tenths = report.epoch * 10 / report.max_epochs.max(1);
        if tenths > self.said {
            self.said = tenths;
            note(&format!(
                "epoch {} of {}: training loss {:.4}, validation loss {:.4}, validation accuracy {:.4}, lr {:e}",
                report.epoch,
                report.max_epochs,
                report.train.loss,
                report.validation.loss,
                report.validation.accuracy,
                report.lr
            ));
        }
        // If nobody reads any more, the reading thread notices and leaves.
        let _ = say(&Event::Epoch(report));
        Flow::Continue
    }
}
