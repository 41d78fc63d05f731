//! The folder of checkpoints: one file a fold and attempt, whole or not there, together never larger than allowed.
//! Workers of several machines may share it. Reads nothing into a file but what `togl-learning` says of it; a file
//! that cannot be used is left alone, with the reason in the fold's log.

use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use togl_agent::durable;
use togl_durable::Draft;
use togl_learning::{Checkpoint, Header, TrainError};
use togl_sweeps::{Attempt, FoldKey};

use crate::program;

/// How names of checkpoints end.
const SUFFIX: &str = ".safetensors";
/// The same of those that programs write.
const SUFFIX_OF_PROGRAMS: &str = ".checkpoint";
/// Stands for the attempt in the name of a checkpoint that came from elsewhere.
const CAME: &str = "came";
/// An unfinished file that is so much older than a finished one belongs to a process that is no more.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// Where checkpoints are kept, and how much room they have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoints {
    /// The folder.
    pub folder: PathBuf,
    /// Bytes of all files together; the oldest go first.
    pub most_bytes: u64,
}

/// What is in the folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Files.
    pub files: u64,
    /// Bytes.
    pub bytes: u64,
}

/// A file of the folder.
struct Found {
    path: PathBuf,
    changed: SystemTime,
    bytes: u64,
}

/// The name of a fold's files without the attempt. Ids are hexadecimal and numbers, so it is always a plain name.
fn stem(fold: FoldKey) -> String {
    let FoldKey { trial, split, seed } = fold;
    format!("{trial}-{split}-{seed}")
}

/// The file name of a fold's model.
pub fn model_name(fold: FoldKey) -> String {
    format!("{}{SUFFIX}", stem(fold))
}

impl Checkpoints {
    /// Writes the checkpoint of an attempt in place of its last one, then makes room.
    pub fn save(&self, attempt: Attempt, mut checkpoint: Checkpoint) -> Result<(), TrainError> {
        checkpoint.header.attempt = attempt;
        let path = self.path_of(checkpoint.header.fold, &attempt.to_string());
        let bytes = checkpoint.to_bytes()?;
        let written = durable::make_folder(&self.folder)
            .and_then(|()| durable::write(&path, &bytes))
            .and_then(|()| self.make_room(&path));
        written.map_err(|error| TrainError::Checkpoint(format!("{}: {error}", self.folder.display())))
    }

    /// The checkpoint of this fold that has come furthest, of whichever attempt.
    pub fn newest(&self, job: &Header, say: &dyn Fn(&str)) -> Option<Checkpoint> {
        let usable = |path: &PathBuf| match read(path, job) {
            Ok(checkpoint) => Some(checkpoint),
            Err(reason) => {
                say(&format!("warning: the checkpoint {} is ignored: {reason}", path.display()));
                None
            }
        };
        let found = self.of_fold(job.fold);
        found.iter().filter_map(usable).max_by_key(|checkpoint| checkpoint.header.epochs)
    }

    /// The furthest checkpoint of a fold as it is on the disk, of whichever attempt, and how far it says it is.
    pub fn furthest(&self, fold: FoldKey) -> Option<(u32, Vec<u8>)> {
        let found = self.of_fold(fold).into_iter().filter_map(|path| {
            let bytes = fs::read(path).ok()?;
            let of_ours = || Header::from_bytes(&bytes).ok().map(|header| header.epochs);
            Some((program::epochs_of(&bytes).or_else(of_ours)?, bytes))
        });
        found.max_by_key(|(epochs, _)| *epochs)
    }

    /// Keeps a checkpoint that came from elsewhere beside those of this machine. Whether it is of use is found out by
    /// whoever goes on from it.
    pub fn receive(&self, fold: FoldKey, bytes: &[u8]) -> io::Result<()> {
        let path = match program::epochs_of(bytes) {
            Some(_) => self.path_of_program(fold, CAME),
            None => self.path_of(fold, CAME),
        };
        durable::make_folder(&self.folder)?;
        durable::write(&path, bytes)?;
        self.make_room(&path)
    }

    fn path_of(&self, fold: FoldKey, attempt: &str) -> PathBuf {
        self.folder.join(format!("{}.{attempt}{SUFFIX}", stem(fold)))
    }

    /// The same for a checkpoint of a program.
    pub(crate) fn path_of_program(&self, fold: FoldKey, attempt: &str) -> PathBuf {
        self.folder.join(format!("{}.{attempt}{SUFFIX_OF_PROGRAMS}", stem(fold)))
    }

    /// Removes the checkpoints of a fold, those of all attempts.
    pub fn remove(&self, fold: FoldKey) -> io::Result<()> {
        self.of_fold(fold).iter().try_for_each(|path| remove(path))
    }

    /// Tries whether something can be written there, or where the folder would be made; leaves nothing.
    pub fn try_writing(&self) -> io::Result<()> {
        let place = self.folder.ancestors().find(|folder| folder.exists()).unwrap_or(&self.folder);
        let mut draft = Draft::beside(&place.join("doctor"), togl_durable::MINE)?;
        draft.write_all(&[0; 1 << 16])?;
        draft.flush()
    }

    /// What is in the folder; nothing if there is none.
    pub fn usage(&self) -> Usage {
        let files = self.files();
        Usage { files: files.len() as u64, bytes: files.iter().map(|file| file.bytes).sum() }
    }

    pub(crate) fn of_fold(&self, fold: FoldKey) -> Vec<PathBuf> {
        let beginning = format!("{}.", stem(fold));
        let is_it = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            name.starts_with(&beginning) && is_checkpoint(&name)
        };
        let mut found: Vec<PathBuf> = self.files().into_iter().map(|file| file.path).filter(is_it).collect();
        found.sort();
        found
    }

    /// Finished and unfinished files; what others removed meanwhile is passed over.
    fn files(&self) -> Vec<Found> {
        let ours = |path: &Path| {
            let name = path.to_string_lossy();
            is_checkpoint(&name) || name.ends_with(togl_durable::PARTIAL)
        };
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| {
            let (path, facts) = (entry.path(), entry.metadata().ok().filter(Metadata::is_file)?);
            ours(&path).then_some(Found { path, changed: facts.modified().ok()?, bytes: facts.len() })
        });
        found.collect()
    }

    /// Removes the oldest files until the rest fits, and what killed writers left. Ages are measured against the
    /// file just written, by the clock of the file system that all who share it have in common.
    pub(crate) fn make_room(&self, just_written: &Path) -> io::Result<()> {
        let now = fs::metadata(just_written)?.modified()?;
        let mut files = self.files();
        files.sort_by_key(|file| file.changed);
        let mut total: u64 = files.iter().map(|file| file.bytes).sum();
        for file in files.iter().filter(|file| file.path != just_written) {
            let unfinished = file.path.extension().is_some_and(|end| end == togl_durable::PARTIAL);
            let age = now.duration_since(file.changed).unwrap_or_default();
            if (unfinished && age > FORGOTTEN) || (!unfinished && total > self.most_bytes) {
                remove(&file.path)?;
                total -= file.bytes;
            }
        }
        Ok(())
    }
}

fn is_checkpoint(name: &str) -> bool {
    name.ends_with(SUFFIX) || name.ends_with(SUFFIX_OF_PROGRAMS)
}

/// Somebody else may have been faster.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn read(path: &Path, job: &Header) -> Result<Checkpoint, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let checkpoint = Checkpoint::from_bytes(&bytes).map_err(|error| error.to_string())?;
    match job.misfit(&checkpoint.header) {
        Some(reason) => Err(reason),
        None => Ok(checkpoint),
    }
}

#[cfg(test)]
#[path = "checkpoints_tests.rs"]
mod tests;
