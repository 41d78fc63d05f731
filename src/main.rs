//! `togl`: what a person types. Parses arguments, calls one file of `cli` per verb, turns its outcome into an
//! exit code. Decides nothing itself.

mod bench;
mod calibrate;
mod cli;
mod clock;
mod descriptors;
mod embedded;
mod local;
mod outcomes;
mod output;
mod problem;
mod progress;
mod remote;
mod rows;
mod state;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = match cli::Togl::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return usage_error(&error),
    };
    start_log(&arguments);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(arguments.run()),
        Err(error) => Err(error.into()),
    };
    outcome.unwrap_or_else(|problem| problem.print())
}

fn usage_error(error: &clap::Error) -> ExitCode {
    let _ = error.print(); // a closed pipe is nothing to complain about
    ExitCode::from(if error.use_stderr() { problem::USAGE } else { problem::DONE })
}

/// Logs go to standard error; `-v` or `RUST_LOG` say what is in them. The PNG writer warns of every line of length
/// zero, which is nothing to bother a user with.
fn start_log(arguments: &cli::Togl) {
    let (format, level) = arguments.log();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| {
        tracing_subscriber::EnvFilter::new(format!(
            "{level},resvg=off,usvg=off,tiny_skia=off,tiny_skia_path=off"
        ))
    });
    let ansi = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        cli::LogFormat::Human => log.with_ansi(ansi).with_target(false).init(),
        cli::LogFormat::Json => log.json().with_ansi(false).init(),
    }
}
