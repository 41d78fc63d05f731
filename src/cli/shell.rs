//! What a shell and `man` want to know of the command line, made from its grammar: `togl completions` and `togl man`.

use std::path::PathBuf;

use clap_complete::Shell;

use super::grouped;
use crate::output;
use crate::problem::Problem;

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
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut grouped::command(), "togl", &mut script);
        output::print(&String::from_utf8_lossy(&script))
    }
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
