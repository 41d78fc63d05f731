//! The trainer: the child process that a slot keeps. Reads requests, trains, writes events. It dies with its
//! parent: when standard input ends there is nobody to train for.

use std::io::{BufRead, Write};
use std::process::ExitCode;
use std::sync::mpsc;

use togl_data::OpenOptions;
use togl_learning::{Flow, Job, Observer, Progress, device, train_fold};
use togl_sweeps::result::Provenance;
use togl_sweeps::{Failure, FailureClass, FoldResult};

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
struct Shelf(Option<(String, u64, togl_data::Dataset)>);

impl Shelf {
    fn get(&mut self, name: &str, options: &OpenOptions) -> Result<&togl_data::Dataset, togl_data::Error> {
        let key = (name.to_owned(), options.data_seed);
        let fits = self.0.as_ref().is_some_and(|(n, s, _)| (n, s) == (&key.0, &key.1));
        let held = match self.0.take().filter(|_| fits) {
            Some(held) => held,
            None => (key.0, key.1, togl_data::open(name, options)?),
        };
        Ok(&self.0.insert(held).2)
    }
}

fn train(request: &Request, shelf: &mut Shelf) -> Result<FoldResult, Failure> {
    let trial = togl_proto::convert::trial(&request.config, request.fold)
        .map_err(|error| Failure::new(FailureClass::Config, error.to_string()))?;
    let options = OpenOptions {
        data_dir: request.data_dir.clone(),
        data_seed: trial.data_seed,
        ..OpenOptions::default()
    };
    let dataset = shelf
        .get(&trial.dataset, &options)
        .map_err(|error| Failure::new(FailureClass::Data, error.to_string()))?;
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
    let mut result = train_fold(&job, dataset, &mut Reporter)
        .map_err(|error| Failure::new(error.class(), error.to_string()))?;
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

/// Sends every epoch to the agent.
struct Reporter;

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
        // If nobody reads any more, the reading thread notices and leaves.
        let _ = say(&Event::Epoch(report));
        Flow::Continue
    }
}
