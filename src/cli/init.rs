//! `togl init`: a first sweep file of a program of one's own, with comments, and a first script where there is none yet. What
//! it writes works at once, which a test tries. Never changes a file that is there.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use togl_sweeps::bundle;

use crate::output;
use crate::problem::Problem;

const SWEEP: &str = include_str!("init/sweep.yaml");
const SCRIPT: &str = include_str!("init/train.py");

/// Write a sweep file for a program of your own, and a first script
#[derive(Debug, clap::Args)]
pub struct Init {
    /// The script that is trained; it is written if it is not there
    #[arg(long, value_name = "FILE", default_value = "train.py")]
    program: PathBuf,
    /// The sweep file to write [default: the script's name with .yaml]
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

impl Init {
    pub(super) fn run(self) -> Result<(), Problem> {
        let named = self.program.file_name().and_then(|name| name.to_str());
        let script = named.filter(|name| bundle::check_name(name).is_ok()).ok_or_else(|| {
            Problem::usage(format!("{} is not the name of a script", self.program.display()))
                .hint("name one, such as --program train.py")
        })?;
        let file = self.file.clone().unwrap_or_else(|| self.program.with_extension("yaml"));
        if file.parent() != self.program.parent() {
            return Err(Problem::usage("the sweep file and its script lie in one folder")
                .hint("give both the same folder, or leave the name of the sweep file out"));
        }
        let stem = self.program.file_stem().and_then(|stem| stem.to_str()).unwrap_or("train");
        let name: String = stem.chars().map(as_name).collect();
        let sweep = SWEEP.replace("SCRIPT", script).replace("NAME", name.trim_start_matches(['-', '.', '_']));
        if !write(&file, &sweep)? {
            return Err(Problem::usage(format!("{} is there already", file.display()))
                .hint("name another sweep file, such as `togl init other.yaml`"));
        }
        let written = write(&self.program, SCRIPT)?;
        let (file, script) = (file.display(), self.program.display());
        output::print(&match written {
            true => format!("wrote {file} and {script}; `togl run {file}` trains them\n"),
            false => format!(
                "wrote {file} for {script}; say in it which settings the script takes, then `togl run {file}`\n"
            ),
        })
    }
}

/// A letter of a script's name as names of sweeps have it.
fn as_name(letter: char) -> char {
    match letter.to_ascii_lowercase() {
        plain if plain.is_ascii_alphanumeric() || "-_.".contains(plain) => plain,
        _ => '-',
    }
}

/// Says whether it was written; a file that is there stays as it is.
fn write(path: &Path, text: &str) -> Result<bool, Problem> {
    let opened = OpenOptions::new().write(true).create_new(true).open(path);
    match opened.and_then(|mut file| file.write_all(text.as_bytes())) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Problem::usage(format!("cannot write {}: {error}", path.display()))),
    }
}
