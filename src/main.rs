//! `togl`: what a person types. Parses arguments, calls one file of `cli` per verb, turns its outcome into an
//! exit code. Decides nothing itself.

#[macro_use]
mod output;

mod alike;
mod bench;
mod calibrate;
mod cli;
mod clock;
mod contexts;
mod descriptors;
mod embedded;
mod export;
mod facts;
mod fields;
mod hosts;
mod hypot;
mod live;
mod local;
mod log;
mod mounts;
mod notify;
mod pager;
mod problem;
mod program_files;
mod progress;
mod reading;
mod remote;
mod slurm;
mod state;
mod streamed;
mod watch;
mod web;

use std::borrow::Cow;
use std::ffi::OsString;
use std::process::ExitCode;

use togl_sweeps::visible::visible;

/// A coordinator makes messages on one thread and frees them on another, all day.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = match cli::Togl::of_this_process() {
        Ok(arguments) => arguments,
        Err(cli::Instead::Usage(error)) => return usage_error(&error),
        Err(cli::Instead::Problem(problem)) => return problem.print(),
        Err(cli::Instead::Completed) => return ExitCode::SUCCESS,
    };
    arguments.mind_manners();
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
    let is_obeyed = |argument: OsString| matches!(visible(&argument.to_string_lossy()), Cow::Owned(_));
    match std::env::args_os().any(is_obeyed) {
        true => eprint!("{}", error.render()), // without colours, of which an argument could be one
        false => drop(error.print()),          // a closed pipe is nothing to complain about
    }
    ExitCode::from(if error.use_stderr() { problem::USAGE } else { problem::DONE })
}
