//! `togl`: what a person types. Parses arguments, calls one file of `cli` per verb, turns its outcome into an
//! exit code. Decides nothing itself.

mod bench;
mod calibrate;
mod cli;
mod clock;
mod descriptors;
mod embedded;
mod facts;
mod local;
mod log;
mod output;
mod problem;
mod progress;
mod remote;
mod state;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = match cli::Togl::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage_error(&error),
    };
    let (format, level) = arguments.log();
    log::start(format, level);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(arguments.run());
            runtime.shutdown_background(); // a read of a store that does not answer keeps nobody here
            outcome
        }
        Err(error) => Err(error.into()),
    };
    outcome.unwrap_or_else(|problem| problem.print())
}

fn usage_error(error: &clap::Error) -> ExitCode {
    let _ = error.print(); // a closed pipe is nothing to complain about
    ExitCode::from(if error.use_stderr() { problem::USAGE } else { problem::DONE })
}
