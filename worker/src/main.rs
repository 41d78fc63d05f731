//! `togl-worker`: trains. The only program that links libtorch. Parses arguments and calls one file per verb;
//! tensor code is in `togl-learning`.

/// As that of the standard library, for this program: what others wrote is shown and not obeyed.
macro_rules! eprintln {
    ($($words:tt)*) => { std::eprintln!("{}", togl_sweeps::visible::visible(&format!($($words)*))) };
}

mod background;
mod bench;
mod calling;
mod checkpoints;
mod data;
mod deliver;
mod devices;
mod doctor;
mod energy;
mod filtrations;
mod fold;
mod host;
mod join;
mod moving;
mod own_coordinator;
mod program;
mod protocol;
mod saving;
mod signals;
mod slot;
mod train;
mod trainer;
mod verify;
mod version;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use togl_sweeps::visible::log_field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::format::debug_fn;

const AFTER_HELP: &str = "\
Exit codes:
  0    done
  1    negative outcome: this machine cannot train, verification failed
  2    bad usage or input
  4    our fault; please report it
  130  interrupted";

/// Trains folds for a togl coordinator
#[derive(Debug, Parser)]
#[command(name = "togl-worker", version, after_help = AFTER_HELP, arg_required_else_help = true)]
struct Worker {
    /// Say more (-v: everything)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Join a coordinator and train what it hands out
    Join(join::Join),
    /// Say whether this machine can train, with what, and what to do if not
    Doctor(doctor::Doctor),
    /// Report the results that a worker kept whose machine never returns
    Deliver(deliver::Deliver),
    /// Train one fold here, without a coordinator
    Train(train::Train),
    /// Write the filtration values that a trained network gives to the vertices of chosen graphs
    Filtrations(filtrations::Filtrations),
    /// Measure how fast this machine trains
    Bench(bench::Bench),
    /// Compare this machine's numbers with reference vectors
    Verify(verify::Verify),
    /// Show versions
    Version(version::Version),
    /// The child process that trains (started by `join`)
    #[command(hide = true)]
    Trainer(trainer::Trainer),
}

/// Bad usage or input: exit code 2 instead of 4.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Usage {
    message: String,
    /// What to do about it.
    hint: Option<String>,
}

impl Usage {
    fn new(message: impl std::fmt::Display) -> Self {
        Self { message: message.to_string(), hint: None }
    }

    fn hint(self, hint: impl std::fmt::Display) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }
}

fn main() -> ExitCode {
    let arguments = match Worker::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            let _ = error.print(); // a closed pipe is nothing to complain about
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    start_log(arguments.verbose);
    keep_panics_readable();
    let outcome = match arguments.verb {
        Verb::Join(verb) => verb.run(),
        Verb::Doctor(verb) => verb.run(),
        Verb::Deliver(verb) => verb.run(),
        Verb::Train(verb) => verb.run(),
        Verb::Filtrations(verb) => verb.run(),
        Verb::Bench(verb) => verb.run(),
        Verb::Verify(verb) => verb.run(),
        Verb::Version(verb) => verb.run(),
        Verb::Trainer(verb) => verb.run(),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        let trained = error.downcast_ref::<togl_learning::TrainError>();
        let hint = trained.and_then(togl_learning::TrainError::hint);
        let usage = error.downcast_ref::<Usage>();
        if let Some(hint) = usage.and_then(|usage| usage.hint.clone()).or(hint) {
            eprintln!("\n  hint: {hint}");
        }
        let is_users = usage.is_some() || error.is::<togl_agent::spool::SpoolError>();
        ExitCode::from(if is_users { 2 } else { 4 })
    })
}

/// What libtorch throws while training is reported as the failure of a fold; Rust need not print it before.
fn keep_panics_readable() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !togl_learning::is_returned_as_error(panic) {
            usual(panic);
        }
    }));
}

/// Logs go to standard error.
fn start_log(verbose: u8) {
    let level = if verbose > 0 { "debug" } else { "info" };
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(level));
    // What others wrote is shown and not obeyed, also in a log.
    let fields =
        debug_fn(|out, field, value| write!(out, "{}", log_field(field.name(), value))).delimited(" ");
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    log.with_ansi(ansi).with_target(false).fmt_fields(fields).init();
}
