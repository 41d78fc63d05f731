//! The grammar of the command line: plural nouns list, verbs act. One file per verb.

mod cancel;
mod data;
mod expressivity;
mod folds;
mod import;
mod lists;
mod logs;
mod plan;
mod plot;
mod report;
mod run;
mod serve;
mod status;
mod steer;
mod submit;
mod table;
mod table_block;
mod version;
mod worker;

use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use togl_sweeps::SweepSpec;

use crate::problem::Problem;

/// What every verb gives back.
pub type Outcome = Result<ExitCode, Problem>;

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
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run a sweep file on this machine: coordinator, workers, progress, table
    Run(run::Run),
    /// Serve a coordinator
    Serve(serve::Serve),
    /// Say what a sweep file would do
    Plan(plan::Plan),
    /// Show the identity of every trial of a sweep file
    Hash(plan::Hash),
    /// Print the JSON Schema of sweep files, for editors
    Schema(plan::Schema),
    /// Send a sweep file to a coordinator
    Submit(submit::Submit),
    /// Show one sweep
    Status(status::Status),
    /// Show one sweep until it has ended
    Watch(status::Watch),
    /// Stop a sweep; its results are kept
    Cancel(cancel::Cancel),
    /// Hand out no more folds of a sweep
    Pause(steer::Steer),
    /// Go on with a paused sweep
    Resume(steer::Steer),
    /// Try the failed folds of a sweep again
    Retry(steer::Steer),
    /// Make the table of a sweep
    Table(Box<table::Table>),
    /// Draw a figure of a sweep
    Plot(plot::Plot),
    /// Write one HTML file about a sweep
    Report(report::Report),
    /// Import runs of other systems
    Import(import::Import),
    /// List sweeps
    Sweeps(lists::Sweeps),
    /// List the folds of a sweep
    Folds(folds::Folds),
    /// List workers
    Workers(lists::Workers),
    /// Say why a fold is not running, or what became of it
    Explain(folds::Explain),
    /// Show what the trainers of a fold wrote
    Logs(logs::Logs),
    /// Look at data sets: list, fetch, check, show, path
    Data(data::Data),
    /// Count the pairs of graphs that persistence cannot tell apart
    Expressivity(expressivity::Expressivity),
    /// Run `togl-worker`
    Worker(worker::Worker),
    /// Show versions
    Version(version::Version),
}

impl Togl {
    /// Does what was asked.
    pub async fn run(self) -> Outcome {
        match self.verb {
            Verb::Run(verb) => verb.run().await,
            Verb::Serve(verb) => verb.run().await,
            Verb::Plan(verb) => verb.run().await,
            Verb::Hash(verb) => verb.run(),
            Verb::Schema(verb) => verb.run(),
            Verb::Submit(verb) => verb.run().await,
            Verb::Status(verb) => verb.run().await,
            Verb::Watch(verb) => verb.run().await,
            Verb::Cancel(verb) => verb.run().await,
            Verb::Pause(verb) => verb.pause().await,
            Verb::Resume(verb) => verb.resume().await,
            Verb::Retry(verb) => verb.retry().await,
            Verb::Table(verb) => verb.run().await,
            Verb::Plot(verb) => verb.run().await,
            Verb::Report(verb) => verb.run().await,
            Verb::Import(verb) => tokio::task::block_in_place(|| verb.run()),
            Verb::Sweeps(verb) => verb.run().await,
            Verb::Folds(verb) => verb.run().await,
            Verb::Workers(verb) => verb.run().await,
            Verb::Explain(verb) => verb.run().await,
            Verb::Logs(verb) => verb.run().await,
            Verb::Data(verb) => tokio::task::block_in_place(|| verb.run()),
            Verb::Expressivity(verb) => tokio::task::block_in_place(|| verb.run()),
            Verb::Worker(verb) => verb.run(),
            Verb::Version(verb) => verb.run(),
        }
    }
}

/// Reads and checks a sweep file; errors carry its name.
fn read_sweep(file: &Path) -> Result<(String, SweepSpec), Problem> {
    let name = file.display();
    let text = std::fs::read_to_string(file).map_err(|error| {
        Problem::usage(format!("cannot read the sweep file {name}: {error}"))
            .hint("name a YAML file, such as sweeps/quickstart.yaml")
    })?;
    let spec = SweepSpec::parse(&text).map_err(|error| {
        let colon = if error.at.is_some() { ":" } else { ": " };
        Problem::usage(format!("{name}{colon}{error}"))
    })?;
    Ok((text, spec))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_grammar_is_consistent() {
        super::Togl::command().debug_assert();
    }
}
