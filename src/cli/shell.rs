//! What a shell and `man` want to know of the command line, made from its grammar: `togl completions`, whose
//! scripts ask this program again with every key, and `togl man`.

use std::path::PathBuf;

use clap::{Arg, Command};
use clap_complete::env::Shells;
use clap_complete::{ArgValueCompleter, CompleteEnv, Shell};

use super::{grouped, names};
use crate::output;
use crate::problem::Problem;

/// The variable by which a completing shell makes itself known.
const ASKED: &str = "TOGL_COMPLETE";

/// Print the completions of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  togl completions bash > ~/.local/share/bash-completion/completions/togl
  togl completions fish > ~/.config/fish/completions/togl.fish
  togl completions zsh > \"${fpath[1]}/_togl\"")]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Write manual pages, one a verb
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  togl man ~/.local/share/man/man1")]
pub struct Man {
    /// The folder; it is made if it is not there
    folder: PathBuf,
}

impl Completions {
    pub(super) fn run(self) -> Result<(), Problem> {
        let (shells, name) = (Shells::builtins(), self.shell.to_string());
        let shell =
            shells.completer(&name).ok_or_else(|| Problem::ours(format!("no completions for {name}")))?;
        let mut script = Vec::new();
        shell.write_registration(ASKED, "togl", "togl", "togl", &mut script)?;
        output::print(&String::from_utf8_lossy(&script))
    }
}

/// Answers a shell that asks what could be typed. Says whether one did.
pub(super) fn completed() -> Result<bool, clap::Error> {
    let folder = std::env::current_dir().ok();
    CompleteEnv::with_factory(grouped_with_names)
        .var(ASKED)
        .try_complete(std::env::args_os(), folder.as_deref())
}

fn grouped_with_names() -> Command {
    output::manners(true, false); // a shell shows everything that is said
    with_names(grouped::command())
}

/// The grammar in which names of sweeps, folds and workers complete from what there is.
fn with_names(mut command: Command) -> Command {
    // An option of that name may be a file.
    let is_name = |one: &Arg| {
        one.get_value_names().is_none_or(|names| names.iter().all(|name| name.as_str() != "FILE"))
    };
    let has = |command: &Command, option: &str| {
        command.get_arguments().any(|one| one.get_id() == option && is_name(one))
    };
    for (option, complete) in [
        ("sweep", names::sweeps as names::Complete),
        ("fold", names::folds),
        ("worker", names::workers),
        ("fold_or_sweep", names::folds_and_sweeps),
    ] {
        if has(&command, "coordinator") && has(&command, option) {
            command = command.mut_arg(option, |one| one.add(ArgValueCompleter::new(complete)));
        }
    }
    let verbs: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    verbs.into_iter().fold(command, |command, verb| command.mut_subcommand(verb, with_names))
}

impl Man {
    pub(super) fn run(self) -> Result<(), Problem> {
        let written = std::fs::create_dir_all(&self.folder)
            .and_then(|()| clap_mangen::generate_to(grouped::command(), &self.folder));
        written.map_err(|error| {
            let folder = self.folder.display();
            Problem::usage(format!("cannot write manual pages to {folder}: {error}"))
                .hint("name a folder that you may write")
        })
    }
}
