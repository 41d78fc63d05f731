//! `togl-worker version`, and where this program was built from: part of every result's provenance.

use std::io::Write;
use std::process::ExitCode;

use clap::ValueEnum;

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Human,
    /// For programs.
    Json,
}

/// Version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Commit it was built from; empty if unknown.
pub const COMMIT: &str = env!("TOGL_COMMIT");

/// Whether the tree had changes that no commit holds when this was built.
pub fn dirty() -> bool {
    env!("TOGL_DIRTY") == "true"
}

/// Show versions
#[derive(Debug, clap::Args)]
pub struct Version {
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

impl Version {
    /// Prints.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let libtorch = togl_learning::device::libtorch_version();
        let text = match self.format {
            Format::Human => format!("togl-worker {VERSION} ({COMMIT})\nlibtorch {libtorch}\n"),
            Format::Json => {
                let value = serde_json::json!({
                    "version": VERSION, "commit": COMMIT, "dirty": dirty(), "libtorch": libtorch,
                    "numerics": togl_sweeps::trial::NUMERICS,
                });
                format!("{value:#}\n")
            }
        };
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Writes data to standard output; a reader that leaves early is no error.
pub fn print(text: &str) -> std::io::Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}
