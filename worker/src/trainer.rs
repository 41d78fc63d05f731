//! The trainer: the child process that a slot keeps. Reads commands, trains, writes events. It dies with its
//! parent: when standard input ends there is nobody to train for. Told to stop, by its parent or by SIGTERM, it
//! saves the fold after the epoch in hand, or after the last whole one if that takes too long, and leaves.

use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::mpsc;

use togl_agent::clock::{self, AgentClock};
use togl_agent::slots::EpochReport;
use togl_data::{Dataset, FeatureChoice};
use togl_learning::{EpochProgress, Flow, Job, TrainError, baselines, device};
use togl_sweeps::program::ProgramTrial;
use togl_sweeps::{Failure, FailureClass, FoldKey, FoldResult, TrialConfig, hint};

use crate::data::Data;
use crate::energy::{self, EnergyWatch};
use crate::fold::{self, Follower, Trained};
use crate::host::PeakMemory;
use crate::program::{self, KnownData};
use crate::protocol::{self, Command, Request, TrainerEvent};
use crate::{background, devices, host, signals, version};

/// The child process that trains
#[derive(Debug, clap::Args)]
pub struct Trainer {
    /// Threads of the training; one is bit-reproducible
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Take the lowest priority there is
    #[arg(long)]
    background: bool,
}

impl Trainer {
    /// Trains until standard input ends or somebody says stop.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        if self.background {
            background::step_back();
        }
        signals::stop_on(&[libc::SIGTERM])?;
        device::use_threads(self.threads);
        device::use_interop_threads(1)?;
        let requests = listen();
        let mut shelf = Shelf::default();
        while let Ok(request) = requests.recv() {
            let outcome = match survive(&request, &mut shelf) {
                Ok(result) => TrainerEvent::Done(Box::new(result)),
                Err(failure) => TrainerEvent::Failed(failure),
            };
            say(&outcome)?;
            if signals::is_stopping() {
                leave();
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Trains; a panic anywhere in it is a failure of the fold and not the end of the trainer.
fn survive(request: &Request, shelf: &mut Shelf) -> Result<FoldResult, Failure> {
    catch_unwind(AssertUnwindSafe(|| train(request, shelf))).unwrap_or_else(|_| {
        *shelf = Shelf::default(); // whatever it was doing with the data, do not go on from there
        let message =
            "a panic outside of the training; the log has its words. Please report this bug of togl";
        Err(Failure::new(FailureClass::Panicked, message))
    })
}

/// Reads commands on a thread of its own, so that they and the end of standard input are noticed while training.
fn listen() -> mpsc::Receiver<Request> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            match serde_json::from_str(&line) {
                Ok(Command::Train(request)) => drop(sender.send(*request)),
                Ok(Command::Save) => signals::save(),
                Ok(Command::Stop) => signals::stop(),
                Err(error) => eprintln!("a command that cannot be read was ignored: {error}"),
            }
        }
        leave();
    };
    let started = std::thread::Builder::new().name("commands".to_owned()).spawn(read);
    if let Err(error) = started {
        eprintln!("cannot start the reading thread: {error}");
    }
    receiver
}

/// Ends the process at once. Training cannot be interrupted otherwise, nothing here needs tidying, and running
/// libtorch's destructors under the training thread's feet would crash.
fn leave() {
    program::end_all(); // what a program has started must not go on without anybody
    // SAFETY: takes a plain number, touches no memory of ours and does not return.
    unsafe { libc::_exit(0) }
}

fn say(event: &TrainerEvent) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(protocol::line(event)?.as_bytes())?;
    out.flush()
}

/// The data set of the last fold: the next fold usually needs the same.
#[derive(Default)]
struct Shelf(Option<(Ordered, Dataset)>);

/// What decides which data a trial sees.
type Ordered = (String, u64, FeatureChoice);

impl Shelf {
    fn get(&mut self, trial: &TrialConfig, data: &Data) -> Result<&Dataset, Failure> {
        let ordered = (trial.dataset.clone(), trial.data_seed, baselines::feature_choice(trial));
        let held = match self.0.take().filter(|(held, _)| *held == ordered) {
            Some(held) => held,
            None => (ordered, data.open(trial, &note)?),
        };
        Ok(&self.0.insert(held).1)
    }

    /// The same where it may be that only a program knows the data set.
    fn get_if_known(&mut self, trial: &TrialConfig, data: &Data) -> Result<Option<&Dataset>, Failure> {
        let ordered = (trial.dataset.clone(), trial.data_seed, baselines::feature_choice(trial));
        let held = match self.0.take().filter(|(held, _)| *held == ordered) {
            Some(held) => Some(held),
            None => data.open_if_known(trial, &note)?.map(|dataset| (ordered, dataset)),
        };
        self.0 = held;
        Ok(self.0.as_ref().map(|(_, dataset)| dataset))
    }
}

fn train(request: &Request, shelf: &mut Shelf) -> Result<FoldResult, Failure> {
    let trial = togl_proto::convert::trial(&request.config, request.fold)
        .map_err(|error| Failure::new(FailureClass::Config, error.to_string()))?;
    match &trial.program {
        Some(program) => run_program(request, &trial, program, shelf),
        None => train_ours(request, &trial, shelf),
    }
}

fn train_ours(request: &Request, trial: &TrialConfig, shelf: &mut Shelf) -> Result<FoldResult, Failure> {
    let device =
        devices::parse(&request.device).map_err(|error| Failure::new(FailureClass::Config, error))?;
    let memory = PeakMemory::start(fold::place(trial, device));
    let dataset =
        shelf.get(trial, &request.data).inspect_err(|failure| note(&format!("failed: {failure}")))?;
    let _ = say(&TrainerEvent::Started); // if nobody reads any more, the reading thread notices and leaves
    let energy = EnergyWatch::start(energy::meter(fold::place(trial, device)), std::process::id());
    let clock = AgentClock::start();
    let seconds = || clock.seconds();
    let FoldKey { split, seed, .. } = request.fold;
    let job = Job { trial, split, seed, device, clock: &seconds };
    note(&format!(
        "{} on {}, {} graphs, device {}",
        trial.method(),
        dataset.name(),
        dataset.graph_count(),
        request.device
    ));
    let mut reporter = Reporter { step: fold::step_name(trial), said: 0, memory };
    let mut epoch = |progress: &EpochProgress| reporter.epoch(progress);
    let mut in_haste = signals::haste(seconds);
    let mut saved = || drop(say(&TrainerEvent::Saved)); // nobody reads: as with epochs
    let follower = Follower { say: &note, epoch: &mut epoch, saved: &mut saved, in_haste: &mut in_haste };
    let outcome = fold::train(&job, dataset, &request.keeping, request.attempt, follower);
    let mut trained = outcome.map_err(|error| {
        let message = match &error {
            // Which splits there are is a fact of the failure; other hints are for those who train by hand.
            TrainError::NoSuchSplit(split) if let Some(hint) = split.hint() => hint::below(&error, hint),
            _ => error.to_string(),
        };
        note(&format!("failed: {message}"));
        Failure::new(error.class(), message)
    })?;
    reporter.outcome(&trained.result);
    sign(&mut trained, &reporter.memory, &energy);
    let result = trained.result;
    Ok(result)
}

/// Runs the program that trains this trial. The data set is opened for its digest and its splits, if it is one of ours.
fn run_program(
    request: &Request,
    trial: &TrialConfig,
    program: &ProgramTrial,
    shelf: &mut Shelf,
) -> Result<FoldResult, Failure> {
    let Some(setup) = &request.programs else {
        let message = "this worker runs no programs; start it with `togl-worker join --programs`";
        return Err(Failure::new(FailureClass::Error, message));
    };
    let known = match shelf.get_if_known(trial, &request.data)? {
        Some(dataset) => known(dataset, request.fold.split)?,
        None => KnownData::default(),
    };
    let data_dir = request.data.folder().unwrap_or_default();
    let _ = say(&TrainerEvent::Started); // if nobody reads any more, the reading thread notices and leaves
    note(&format!("{} on {}, device {}", program.code.name(), trial.dataset, request.device));
    let job = program::ProgramJob { request, trial, setup, data_dir, known };
    let mut tell = |event: &TrainerEvent| drop(say(event)); // as above
    let outcome = program::train(&job, program, &mut tell);
    match &outcome {
        Ok(result) => note(&format!("test {} after {} epochs", result.test.accuracy, result.epochs)),
        Err(failure) => note(&format!("failed: {failure}")),
    }
    outcome
}

/// What a program is told of a data set of ours.
fn known(dataset: &Dataset, split: u32) -> Result<KnownData, Failure> {
    let split = dataset.split(split.into()).map_err(|error| {
        let message = error.hint().map_or_else(|| error.to_string(), |hint| hint::below(&error, hint));
        Failure::new(FailureClass::Config, message)
    })?;
    Ok(KnownData {
        data_digest: dataset.digest().to_string(),
        split_digest: split.digest().to_string(),
        part_sizes: [&split.train, &split.validation, &split.test].map(|part| part.len() as u64),
        indices: serde_json::to_string(&split).ok(),
    })
}

/// Adds what only the program knows, at the end of a fold; device, libtorch and vector instructions are already in.
pub fn sign(trained: &mut Trained, memory: &PeakMemory, energy: &EnergyWatch) {
    let result = &mut trained.result;
    result.finished_at = clock::milliseconds_since_1970();
    // What an earlier attempt took is not known, so neither is the sum.
    result.energy_joules = if trained.went_on { None } else { energy.joules() };
    result.peak_memory = memory.bytes();
    let provenance = &mut result.provenance;
    provenance.code_version = version::VERSION.to_owned();
    provenance.commit = version::COMMIT.to_owned();
    provenance.dirty = version::dirty();
    provenance.host = host::name();
    if let Some(gpu) = energy.gpu() {
        provenance.processor = gpu;
    }
}

/// A line for the fold's log, which `togl logs` shows.
fn note(text: &str) {
    eprintln!("{text}");
}

/// Sends every epoch to the agent, and notes about ten of them in the fold's log.
struct Reporter {
    /// What an epoch is called.
    step: &'static str,
    /// Tenths of the epochs that were noted.
    said: u32,
    memory: PeakMemory,
}

impl Reporter {
    fn outcome(&self, result: &FoldResult) {
        let (best, steps) = (result.best_epoch + 1, result.epochs);
        note(&format!("test accuracy {:.4} at {} {best} of {steps}", result.test.accuracy, self.step));
    }

    fn epoch(&mut self, progress: &EpochProgress) -> Flow {
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
                "{} {} of {}: training loss {:.4}, validation loss {:.4}, validation accuracy {:.4}, lr {:e}",
                self.step,
                report.epoch,
                report.max_epochs,
                report.train.loss,
                report.validation.loss,
                report.validation.accuracy,
                report.lr
            ));
        }
        // If nobody reads any more, the reading thread notices and leaves.
        let _ = say(&TrainerEvent::Epoch(report));
        self.memory.look();
        signals::next()
    }
}
