//! Where a program runs: the files of its bundle, unpacked once and read-only, beside them the helper for Python, and for each
//! fold a scratch folder of its own that goes with it. Writes the request that the program reads first. Starts nothing.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::json;
use togl_agent::durable;
use togl_sweeps::bundle::{ProgramFiles, is_digest};
use togl_sweeps::program::ProgramTrial;

use super::checkpoint::Resumed;
use super::{Account, ProgramJob};
use crate::protocol::Request;

/// The helper for programs in Python; all Python of the project is in its package.
const HELPER: &str = include_str!("../../../deploy/python/togl_sweeps/program.py");

/// Bundles that are kept unpacked; the oldest go first.
const KEPT: usize = 64;

/// The files of programs that a worker has unpacked, by digest.
#[derive(Debug, Clone)]
pub struct Files(PathBuf);

impl Files {
    /// Those in a worker's folder for programs.
    pub fn of(folder: &Path) -> Self {
        Self(folder.join("files"))
    }

    /// The folder of a bundle, if it is there and as it was sent: a program of the same user could have changed it.
    pub fn get(&self, digest: &str) -> Option<PathBuf> {
        let folder = self.0.join(digest);
        let found = is_digest(digest).then(|| read_all(&folder)).and_then(Result::ok)?;
        let bundle = ProgramFiles::new(found).ok()?;
        (bundle.digest() == digest).then_some(folder)
    }

    /// Unpacks a bundle that came from the coordinator. Slots of one worker wait for each other: what one of them has unpacked
    /// is not touched again.
    pub fn put(&self, digest: &str, bytes: &[u8]) -> io::Result<()> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _held = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        if self.get(digest).is_some() {
            return Ok(());
        }
        let bundle = ProgramFiles::from_bytes(bytes).map_err(io::Error::other)?;
        if bundle.digest() != digest {
            return Err(io::Error::other("the files are not those of the digest"));
        }
        durable::make_folder(&self.0)?;
        let (draft, folder) = (self.0.join(format!("{digest}.draft")), self.0.join(digest));
        remove(&draft)?;
        fs::create_dir(&draft)?;
        for (name, content) in bundle.files() {
            let path = draft.join(name);
            fs::create_dir_all(path.parent().unwrap_or(&draft))?;
            fs::write(&path, content)?;
            let is_program = content.starts_with(b"#!") || content.starts_with(b"\x7fELF");
            fs::set_permissions(&path, fs::Permissions::from_mode(if is_program { 0o555 } else { 0o444 }))?;
        }
        remove(&folder)?;
        fs::rename(&draft, &folder)?;
        self.make_room(&folder)
    }

    fn make_room(&self, just_written: &Path) -> io::Result<()> {
        let changed = |path: &PathBuf| fs::metadata(path).and_then(|facts| facts.modified()).ok();
        let mut folders: Vec<PathBuf> = fs::read_dir(&self.0)?.flatten().map(|entry| entry.path()).collect();
        folders.sort_by_key(changed);
        let surplus = folders.len().saturating_sub(KEPT);
        folders
            .iter()
            .filter(|path| path.as_path() != just_written)
            .take(surplus)
            .try_for_each(|path| remove(path))
    }
}

/// Removes a folder and all in it, however its rights are.
fn remove(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// All files below a folder by their names; links are not followed.
fn read_all(folder: &Path) -> io::Result<BTreeMap<String, Vec<u8>>> {
    let (mut found, mut open) = (BTreeMap::new(), vec![(folder.to_owned(), String::new())]);
    while let Some((folder, prefix)) = open.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push((entry.path(), format!("{name}/")));
            } else if kind.is_file() {
                found.insert(name, fs::read(entry.path())?);
            } else {
                return Err(io::Error::other("there is a link among the files"));
            }
        }
    }
    Ok(found)
}

/// The place of one fold; gone when dropped.
pub struct ScratchFolder {
    /// Its own folder, in which it begins.
    pub scratch: PathBuf,
    /// Where the helper is.
    pub helper: PathBuf,
    /// What the program reads first, in one line.
    pub request: String,
    /// Where it goes on, if it does.
    pub resumed: Option<Resumed>,
}

impl ScratchFolder {
    /// Makes it.
    pub fn make(job: &ProgramJob<'_>, program: &ProgramTrial) -> io::Result<Self> {
        let fold = job.request.fold;
        let name = format!("{}-{}-{}.{}", fold.trial, fold.split, fold.seed, std::process::id());
        let scratch = job.setup.folder.join("scratch").join(name);
        remove(&scratch)?;
        fs::create_dir_all(scratch.join("tmp"))?;
        let scratch = fs::canonicalize(scratch)?;
        // Whatever fails from here on, the folder goes with the place.
        let mut place = Self { scratch, helper: PathBuf::new(), request: String::new(), resumed: None };
        place.helper = helper(&job.setup.folder)?;
        if let Some(digest) = &program.code.bundle {
            let files = Files::of(&job.setup.folder).get(digest);
            let files = files.ok_or_else(|| io::Error::other("the files of the program are not here"))?;
            for entry in fs::read_dir(fs::canonicalize(files)?)? {
                let entry = entry?;
                symlink(entry.path(), place.scratch.join(entry.file_name()))?;
            }
        }
        let resume = place.scratch.join("resume.checkpoint");
        let checkpoints = job.request.keeping.checkpoints.as_ref();
        place.resumed = checkpoints.and_then(|kept| kept.resume_program(fold, &resume));
        if let Some(resumed) = &place.resumed {
            eprintln!(
                "goes on after epoch {}, from the checkpoint of attempt {}",
                resumed.epochs, resumed.attempt
            );
        }
        place.request = ask(job, program, &place, &resume)?;
        Ok(place)
    }

    fn save(&self) -> PathBuf {
        self.scratch.join("save.checkpoint")
    }

    /// Keeps what the program has saved. Says whether there is anywhere to keep it.
    pub fn keep(&self, job: &ProgramJob<'_>, account: &Account, epoch: u32, now: f64) -> io::Result<bool> {
        let Some(checkpoints) = &job.request.keeping.checkpoints else { return Ok(false) };
        let Request { fold, attempt, .. } = job.request;
        let before = account.history.iter().filter(|record| record.epoch <= epoch).copied();
        let resumed = Resumed {
            fold: fold.to_string(),
            attempt: *attempt,
            epochs: epoch.saturating_add(1),
            seconds: account.seconds(now),
            history: before.collect(),
        };
        checkpoints.save_program(*fold, &resumed, &self.save())?;
        Ok(true)
    }

    /// Bytes of the scratch folder.
    pub fn bytes(&self) -> u64 {
        let (mut bytes, mut open, mut looked) = (0, vec![self.scratch.clone()], 0);
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                looked += 1;
                let Ok(facts) = entry.path().symlink_metadata() else { continue };
                if facts.is_dir() && looked < 100_000 {
                    open.push(entry.path());
                } else {
                    use std::os::unix::fs::MetadataExt;
                    bytes += facts.blocks().saturating_mul(512);
                }
            }
        }
        bytes
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.scratch) {
            eprintln!("warning: cannot remove {}: {error}", self.scratch.display());
        }
    }
}

/// The folder with the helper of this version, written if it is not there.
fn helper(folder: &Path) -> io::Result<PathBuf> {
    let folder = folder.join("helper");
    let path = folder.join("togl.py");
    if fs::read(&path).is_ok_and(|there| there == HELPER.as_bytes()) {
        return Ok(folder);
    }
    durable::make_folder(&folder)?;
    durable::write_with_mode(&path, HELPER.as_bytes(), togl_durable::EVERYBODYS)?;
    Ok(folder)
}

/// What the program is asked for.
fn ask(
    job: &ProgramJob<'_>,
    program: &ProgramTrial,
    place: &ScratchFolder,
    resume: &Path,
) -> io::Result<String> {
    let indices = match &job.known.indices {
        Some(parts) => {
            let path = place.scratch.join("split.json");
            fs::write(&path, parts)?;
            Some(path)
        }
        None => None,
    };
    let device = job.request.device.split(':').next().unwrap_or_default();
    let fold = job.request.fold;
    Ok(json!({
        "command": "train",
        "fold": fold.to_string(),
        "attempt": job.request.attempt,
        "settings": program.settings,
        "dataset": job.trial.dataset,
        "data_seed": job.trial.data_seed,
        "split": fold.split,
        "seed": fold.seed,
        "device": device,
        "data_dir": job.data_dir,
        "indices": indices,
        "resume": place.resumed.as_ref().map(|_| resume),
        "start": place.resumed.as_ref().map_or(0, |resumed| resumed.epochs),
        "save": place.save(),
    })
    .to_string())
}
