//! The files of a sweep's program, read from beside the sweep file: how a text that names files becomes one whose identities
//! need nothing else. Reads no more than a program may have; sends nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use togl_sweeps::SweepSpec;
use togl_sweeps::bundle::{MOST_BYTES, ProgramFiles, ProgramFilesError};
use togl_sweeps::program::{self, Program};

use crate::problem::Problem;

/// Reads the files of a program, if the sweep has one that consists of files, and freezes the text by their digest.
pub fn freeze(
    text: String,
    spec: SweepSpec,
    sweep_file: &Path,
) -> Result<(String, SweepSpec, Option<ProgramFiles>), Problem> {
    let Some(own) = spec.program.as_ref().filter(|own| own.bundled().next().is_some()) else {
        return Ok((text, spec, None));
    };
    let folder = sweep_file.parent().unwrap_or_else(|| Path::new(""));
    let bundle = read(own, folder, sweep_file)?;
    let digest = bundle.digest();
    match &own.frozen {
        Some(frozen) if *frozen == digest => Ok((text, spec, Some(bundle))),
        Some(_) => {
            let file = sweep_file.display();
            Err(Problem::usage(format!("the files of the program are not those that {file} was frozen with"))
                .hint(
                    "bring them back, or remove the line `frozen` for a sweep of the files as they are now",
                ))
        }
        None => {
            let frozen = program::freeze(&text, &digest);
            let spec = SweepSpec::parse(&frozen).map_err(|_| {
                Problem::usage(format!("{}: a sweep of a program has its keys at the beginning of lines", sweep_file.display()))
                    .hint("write `version: 1` and all other keys of the file as lines of their own, without braces around them")
            })?;
            Ok((frozen, spec, Some(bundle)))
        }
    }
}

fn read(own: &Program, folder: &Path, sweep_file: &Path) -> Result<ProgramFiles, Problem> {
    let (mut files, mut bytes) = (BTreeMap::new(), 0);
    for name in own.bundled() {
        let path = folder.join(name);
        let mut content = Vec::new();
        let opened =
            File::open(&path).and_then(|file| file.take(MOST_BYTES as u64 + 1).read_to_end(&mut content));
        opened.map_err(|error| {
            let (path, file) = (path.display(), sweep_file.display());
            Problem::usage(format!("cannot read {path}, a file of the program: {error}"))
                .hint(format!("`files` in {file} names what lies beside it, without what it reads as data"))
        })?;
        bytes += content.len();
        files.insert(name.to_owned(), content);
        if bytes > MOST_BYTES {
            break; // the bundle says so
        }
    }
    ProgramFiles::new(files).map_err(|error| match error {
        ProgramFilesError::TooLarge { .. } => Problem::usage(error).hint(
            "`files` are what is run; data sets lie in the data directory of the workers (`--data-dir`)",
        ),
        _ => Problem::usage(error),
    })
}
