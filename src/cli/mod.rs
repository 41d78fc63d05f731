//! The grammar of the command line: plural nouns list, verbs act. One file per verb.

mod adopt;
mod backup;
mod bench;
mod best;
mod check;
mod context;
mod data;
mod delete;
mod demand;
mod disputes;
mod examples;
mod export;
mod expressivity;
mod folds;
mod grouped;
mod hash;
mod health;
mod history;
mod hosts;
mod import;
mod init;
mod install;
mod lists;
mod logs;
mod migrate;
mod names;
mod notify;
mod plan;
mod plot;
mod race;
mod replicates;
mod report;
mod run;
mod serve;
mod shell;
mod slurm;
mod slurm_options;
mod sources;
mod status;
mod steer;
mod submit;
mod table;
mod table_block;
mod token;
mod version;
mod web;
mod worker;

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use togl_sweeps::bundle::ProgramFiles;
use togl_sweeps::{SweepSpec, bounded};

use crate::output;
use crate::problem::Problem;
use crate::program_files;

pub use self::history::rfc3339;
pub use self::serve::LogFormat;
pub use self::steer::Because;
pub use self::table::explained;
pub use self::table::make as table_of;
pub use self::table_block::TableBlock;

/// What a verb gives back that can end well in several ways.
pub type VerbOutcome = Result<ExitCode, Problem>;

/// What is to be done instead of a verb.
#[derive(Debug)]
pub enum Instead {
    /// Help, the version, or what was wrong with the arguments.
    Usage(clap::Error),
    /// What else was wrong.
    Problem(Problem),
    /// A shell asked what could be typed, and was told.
    Completed,
}

impl From<clap::Error> for Instead {
    fn from(error: clap::Error) -> Self {
        Self::Usage(error)
    }
}

impl From<Problem> for Instead {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

const AFTER_HELP: &str = "\
Exit codes:
  0    done
  1    done, with a negative outcome: failed folds, nothing found
  2    bad usage or input
  3    the coordinator cannot be reached
  4    our fault; please report it
  130  interrupted

First steps:
  togl run sweeps/quickstart.yaml     everything on this machine, a table at the end
  togl serve                          a coordinator that other machines can join";

/// Distributed hyperparameter sweeps for topological graph neural networks
#[derive(Debug, Parser)]
#[command(name = "togl", version, after_help = AFTER_HELP, arg_required_else_help = true)]
pub struct Togl {
    /// Say more (-v: what happens, -vv: everything)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Say only what was asked for, and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Print long lists in one go
    #[arg(long, global = true)]
    no_pager: bool,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a sweep file on this machine: coordinator, workers, progress, table
    Run(run::Run),
    /// Serve a coordinator
    Serve(serve::Serve),
    /// Write a sweep file for a program of your own, and a first script
    Init(init::Init),
    /// Say what a sweep file would do
    Plan(plan::Plan),
    /// Show the identity of every trial of a sweep file
    Hash(hash::Hash),
    /// Print the JSON Schema of sweep files, for editors
    Schema(hash::Schema),
    /// Send a sweep file to a coordinator
    Submit(submit::Submit),
    /// Show one sweep
    Status(status::Status),
    /// Show one sweep until it has ended, or all sweeps and workers
    Watch(status::Watch),
    /// Show sweeps, tables and workers as a page in the browser
    Web(web::Web),
    /// Stop a sweep; its results are kept
    Cancel(steer::Steer),
    /// Stop a sweep and take it out of the lists; its results are kept
    Archive(steer::Steer),
    /// Delete a sweep with the results that no other sweep has
    Delete(delete::Delete),
    /// Hand out no more folds of a sweep
    Pause(steer::Steer),
    /// Go on with a paused sweep
    Resume(steer::Steer),
    /// Try the failed folds of a sweep again
    Retry(steer::Steer),
    /// Say which sweep runs first
    Prioritise(steer::Prioritise),
    /// Make the table of a sweep
    Table(Box<table::Table>),
    /// List the trials of a sweep from best to worst, by validation
    Best(best::Best),
    /// List the trials that a race has stopped, or replay races on finished folds
    Race(race::Race),
    /// Draw a figure of a sweep
    Plot(plot::Plot),
    /// Write one HTML file about a sweep
    Report(report::Report),
    /// Give the finished folds of a sweep to MLflow, TensorBoard or Weights & Biases
    Export(export::Export),
    /// Import runs of other systems, or results of another coordinator
    Import(import::Import),
    /// List sweeps
    Sweeps(lists::Sweeps),
    /// List the folds of a sweep
    Folds(folds::Folds),
    /// List workers, or let them finish and leave
    Workers(lists::Workers),
    /// Show, start and stop workers on other machines over ssh
    Hosts(hosts::Hosts),
    /// Let a Slurm cluster start workers, as many as there is work for
    Slurm(Box<slurm::Slurm>),
    /// Say how many folds could start if there were slots for them
    Demand(demand::Demand),
    /// Say why a fold is not running, or what became of it
    Explain(folds::Explain),
    /// Show what the trainers of a fold wrote
    Logs(logs::Logs),
    #[command(flatten)]
    Store(StoreVerb),
    /// Show what happened to a fold, or who steered a sweep and why
    History(history::History),
    /// List results of further attempts with what they say differently
    Replicates(replicates::Replicates),
    /// List data sets about which results disagree
    Disputes(disputes::Disputes),
    /// Say which data a data set is made of
    Settle(disputes::Settle),
    /// Try the webhooks of `togl serve --notify`
    Notify(notify::Notify),
    /// Make, list and revoke tokens
    Token(token::Token),
    /// Name coordinators, and say which one is meant
    Context(context::ContextVerb),
    /// Look at data sets: list, fetch, check, show, path
    Data(data::Data),
    /// Count the pairs of graphs that persistence cannot tell apart
    Expressivity(expressivity::Expressivity),
    /// Measure the coordinator on this machine
    Bench(bench::Bench),
    /// Say whether a coordinator serves
    Health(health::Health),
    /// Run `togl-worker`
    Worker(worker::Worker),
    /// Print the completions of a shell
    Completions(shell::Completions),
    /// Write manual pages, one a verb
    Man(shell::Man),
    /// Show versions
    Version(version::Version),
}

/// What is done with the store as a whole.
#[derive(Debug, Subcommand)]
enum StoreVerb {
    /// Copy the store into a file, also while it is served
    Backup(backup::Backup),
    /// Put a backup in the place of the store
    Restore(backup::Restore),
    /// Copy the store to another kind of store or another place
    Migrate(migrate::Migrate),
    /// Read everything in the store and say what is damaged
    Check(check::Check),
}

impl StoreVerb {
    fn run(self) -> Result<(), Problem> {
        match self {
            Self::Backup(verb) => verb.run(),
            Self::Restore(verb) => verb.run(),
            Self::Migrate(verb) => verb.run(),
            Self::Check(verb) => verb.run(),
        }
    }
}

impl Togl {
    /// The arguments of this process, or what is to be said instead.
    pub fn of_this_process() -> Result<Self, Instead> {
        grouped::parse()
    }

    /// Prints as the user wants it from now on.
    pub fn mind_manners(&self) {
        output::manners(self.quiet, !self.no_pager);
    }

    /// How the log is written, and what is in it unless the user says otherwise. A coordinator tells more of itself
    /// than a command that is over in a moment.
    pub fn log(&self) -> (LogFormat, &'static str) {
        let (format, level) = match &self.verb {
            Verb::Serve(serve) => (serve.log_format, "info"),
            _ => (LogFormat::Human, "warn"),
        };
        let level = match self.verbose {
            0 if self.quiet => "error",
            0 => level,
            1 => "info",
            _ => "debug",
        };
        (format, level)
    }

    /// Does what was asked.
    #[expect(clippy::too_many_lines, reason = "a dispatcher: one line a verb")]
    pub async fn run(self) -> VerbOutcome {
        match self.verb {
            Verb::Run(verb) => verb.run().await,
            Verb::Serve(verb) => done(verb.run().await),
            Verb::Init(verb) => done(verb.run()),
            Verb::Plan(verb) => verb.run().await,
            Verb::Hash(verb) => done(verb.run()),
            Verb::Schema(verb) => done(verb.run()),
            Verb::Submit(verb) => verb.run().await,
            Verb::Status(verb) => done(verb.run().await),
            Verb::Watch(verb) => verb.run().await,
            Verb::Web(verb) => done(verb.run().await),
            Verb::Cancel(verb) => done(verb.cancel().await),
            Verb::Archive(verb) => done(verb.archive().await),
            Verb::Delete(verb) => done(tokio::task::block_in_place(|| verb.run())),
            Verb::Pause(verb) => done(verb.pause().await),
            Verb::Resume(verb) => done(verb.resume().await),
            Verb::Retry(verb) => done(verb.retry().await),
            Verb::Prioritise(verb) => done(verb.run().await),
            Verb::Table(verb) => verb.run().await,
            Verb::Best(verb) => done(verb.run().await),
            Verb::Race(verb) => done(verb.run().await),
            Verb::Plot(verb) => done(verb.run().await),
            Verb::Report(verb) => done(verb.run().await),
            Verb::Export(verb) => done(verb.run().await),
            Verb::Import(verb) => done(verb.run().await),
            Verb::Sweeps(verb) => done(verb.run().await),
            Verb::Folds(verb) => done(verb.run().await),
            Verb::Workers(verb) => done(verb.run().await),
            Verb::Hosts(verb) => verb.run().await,
            Verb::Slurm(verb) => verb.run().await,
            Verb::Demand(verb) => done(verb.run().await),
            Verb::Explain(verb) => done(verb.run().await),
            Verb::Logs(verb) => done(verb.run().await),
            Verb::Store(verb) => done(tokio::task::block_in_place(|| verb.run())),
            Verb::History(verb) => done(verb.run().await),
            Verb::Replicates(verb) => done(verb.run().await),
            Verb::Disputes(verb) => done(verb.run().await),
            Verb::Settle(verb) => done(verb.run().await),
            Verb::Notify(verb) => verb.run(),
            Verb::Token(verb) => done(verb.run()),
            Verb::Context(verb) => done(verb.run()),
            Verb::Data(verb) => tokio::task::block_in_place(|| verb.run()),
            Verb::Expressivity(verb) => done(tokio::task::block_in_place(|| verb.run())),
            Verb::Bench(verb) => done(verb.run().await),
            Verb::Health(verb) => verb.run().await,
            Verb::Worker(verb) => done(verb.run()),
            Verb::Completions(verb) => done(verb.run()),
            Verb::Man(verb) => done(verb.run()),
            Verb::Version(verb) => done(verb.run()),
        }
    }
}

/// The end of a verb that has only one good one.
fn done(outcome: Result<(), Problem>) -> VerbOutcome {
    outcome.map(|()| ExitCode::SUCCESS)
}

/// What a sweep file says that a coordinator has taken before.
fn read_sweep_text(text: &str) -> Result<SweepSpec, Problem> {
    SweepSpec::parse(text)
        .map_err(|error| Problem::ours(format!("the stored sweep file cannot be read any more: {error}")))
}

/// Reads and checks a sweep file; errors carry its name.
fn read_sweep(file: &Path) -> Result<(String, SweepSpec, Option<ProgramFiles>), Problem> {
    let name = file.display();
    let text = std::fs::File::open(file).and_then(|file| bounded::text(file, bounded::WRITTEN_BY_HAND));
    let text = text.map_err(|error| {
        Problem::usage(format!("cannot read the sweep file {name}: {error}"))
            .hint("name a YAML file, such as sweeps/quickstart.yaml")
    })?;
    let spec = SweepSpec::parse(&text).map_err(|error| {
        let colon = if error.at.is_some() { ":" } else { ": " };
        let lines = error.to_string().replace('\n', &format!("\n{name}:"));
        Problem::usage(format!("{name}{colon}{lines}"))
    })?;
    program_files::freeze(text, spec, file)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_grammar_is_consistent() {
        super::Togl::command().debug_assert();
    }
}
