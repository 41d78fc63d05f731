//! The sweep files of a command, with the settings that are given beside them: `run`, `plan` and `submit` take several files,
//! and `KEY=VALUE` makes of each a sweep of its own.

use std::path::{Path, PathBuf};

use togl_sweeps::SweepSpec;
use togl_sweeps::bundle::ProgramFiles;
use togl_sweeps::overrides::{Override, overridden};
use togl_sweeps::settings::Setting;

use crate::problem::Problem;

/// Which sweeps a command is about.
#[derive(Debug, Clone, clap::Args)]
pub struct Sources {
    /// Sweep files, and settings instead of theirs: depth=4 fixes one, lr=1e-3,1e-2 tries several; that makes a sweep of its own
    #[arg(required = true, value_name = "FILE|KEY=VALUES")]
    what: Vec<PathBuf>,
    /// What to call the sweep, instead of NAME or NAME+KEY=VALUES
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// One sweep: its text and what it says.
pub struct SweepSource {
    pub yaml: String,
    pub spec: SweepSpec,
    /// The files of its program.
    pub program: Option<ProgramFiles>,
}

impl Sources {
    /// Reads all files and checks what they say with the settings given.
    pub fn read(&self) -> Result<Vec<SweepSource>, Problem> {
        let (given, files) = self.split();
        if files.is_empty() {
            return Err(Problem::usage("these are settings, but no sweep file")
                .hint("name the file too, such as sweeps/quickstart.yaml depth=4"));
        }
        if self.name.is_some() && files.len() > 1 {
            return Err(Problem::usage("--name is for one file; several would all be called the same"));
        }
        let read: Vec<SweepSource> = files.iter().map(|file| source(file)).collect::<Result<_, _>>()?;
        let declared = read.iter().filter_map(|source| source.spec.program.as_ref());
        let declared: Vec<&'static Setting> = declared.flat_map(|program| program.settings.clone()).collect();
        let given: Vec<Override> = given
            .into_iter()
            .map(|text| Override::parse(text, &declared))
            .collect::<Result<_, _>>()
            .map_err(Problem::usage)?;
        let with = |(source, file): (SweepSource, &&PathBuf)| self.with(source, file, &given);
        let sources: Vec<SweepSource> = read.into_iter().zip(&files).map(with).collect::<Result<_, _>>()?;
        for (at, source) in sources.iter().enumerate() {
            if let Some(before) = sources[..at].iter().position(|other| other.spec.name == source.spec.name) {
                let (a, b) = (files[before].display(), files[at].display());
                return Err(Problem::usage(format!("{a} and {b} are both called {}", source.spec.name))
                    .hint("give one of them another `name`"));
            }
        }
        Ok(sources)
    }

    /// What was typed, to be typed again.
    pub fn typed(&self) -> String {
        let what: Vec<String> = self.what.iter().map(|what| what.display().to_string()).collect();
        let name = self.name.iter().map(|name| format!(" --name {name}")).collect::<String>();
        what.join(" ") + &name
    }

    /// Settings and files. A file that is there is a file, whatever it is called.
    fn split(&self) -> (Vec<&str>, Vec<&PathBuf>) {
        let (mut given, mut files) = (Vec::new(), Vec::new());
        for what in &self.what {
            match what.to_str().filter(|text| Override::is_meant(text) && !what.exists()) {
                Some(text) => given.push(text),
                None => files.push(what),
            }
        }
        (given, files)
    }

    fn with(&self, source: SweepSource, file: &Path, given: &[Override]) -> Result<SweepSource, Problem> {
        if given.is_empty() && self.name.is_none() {
            return Ok(source);
        }
        let shown = file.display().to_string();
        let refuse = |error: togl_sweeps::spec::SpecError| {
            Problem::usage(format!("{shown} with these settings: {}", error.message))
        };
        let yaml = overridden(&source.yaml, given, self.name.as_deref(), &shown).map_err(refuse)?;
        let spec = SweepSpec::parse(&yaml).map_err(refuse)?;
        Ok(SweepSource { yaml, spec, program: source.program })
    }
}

fn source(file: &Path) -> Result<SweepSource, Problem> {
    let (yaml, spec, program) = super::read_sweep(file)?;
    Ok(SweepSource { yaml, spec, program })
}
