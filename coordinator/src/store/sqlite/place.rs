//! The files of a SQLite store: where they may be, who holds them, and how a new one takes the place of an old one.
//! Knows nothing of what is in them.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::StoreError;
use crate::private;

/// What SQLite keeps beside a store.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// A name beside `path`.
pub(in super::super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => path,
    }
}

/// The one name of a place, without links; refuses one without a folder. What lies beside a store, its lock among it, is
/// then found whichever name was given.
pub(super) fn real(path: &Path) -> Result<PathBuf, StoreError> {
    let folder = folder(path);
    let no_folder = |_| StoreError::NoFolder { path: folder.to_owned() };
    match (fs::canonicalize(path), path.file_name()) {
        (Ok(real), _) => Ok(real),
        (Err(_), Some(name)) => Ok(fs::canonicalize(folder).map_err(no_folder)?.join(name)),
        (Err(source), None) => Err(StoreError::NotReadable { path: path.to_owned(), source }),
    }
}

/// Whether there is no file, or nothing in it.
pub(super) fn is_empty(path: &Path) -> Result<bool, StoreError> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(metadata.len() == 0),
        Ok(_) => Err(StoreError::Foreign { path: path.to_owned() }),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(source) => Err(StoreError::NotReadable { path: path.to_owned(), source }),
    }
}

/// Whether a log waits to be copied into the store.
pub(super) fn has_log(path: &Path) -> bool {
    fs::metadata(beside(path, "-wal")).is_ok_and(|metadata| metadata.len() > 0)
}

/// Takes the lock file beside the store. The operating system lets go of it when the process ends, however.
pub(super) fn lock(path: &Path) -> Result<File, StoreError> {
    let name = beside(path, ".lock");
    let not_writable = |source| StoreError::NotWritable { path: path.to_owned(), source };
    let options = private::options().read(true).write(true).create(true).truncate(false).open(&name);
    let mut file = options.map_err(not_writable)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            _ = file.take(32).read_to_string(&mut pid); // only for the message
            let pid = pid.trim();
            let holder = if pid.is_empty() { "starting".to_owned() } else { format!("pid {pid}") };
            return Err(StoreError::Locked { path: path.to_owned(), holder });
        }
        Err(TryLockError::Error(source)) => return Err(not_writable(source)),
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(not_writable)?;
    Ok(file)
}

/// Gives a finished file its name, for good: the file and its name are on disk when this returns.
pub(in super::super) fn publish(draft: &Path, path: &Path) -> Result<(), StoreError> {
    let not_writable = |source| StoreError::NotWritable { path: path.to_owned(), source };
    File::open(draft).and_then(|file| file.sync_all()).map_err(not_writable)?;
    crate::crash::point("rename");
    fs::rename(draft, path).map_err(not_writable)?;
    crate::crash::point("renamed");
    File::open(folder(path)).and_then(|folder| folder.sync_all()).map_err(not_writable)
}

/// Keeps what is at `path` under another name, so that something else can take its place: until it does, the store
/// has lost its log, and is refused rather than taken for an older one. What was put aside before is never touched.
pub(in super::super) fn put_aside(path: &Path) -> Result<(), StoreError> {
    let not_writable = |source| StoreError::NotWritable { path: path.to_owned(), source };
    let aside = free_name(path, ".replaced", |aside| is_same(path, aside));
    for ending in ["", "-wal"] {
        let (old, kept) = (beside(path, ending), beside(&aside, ending));
        if !is_same(&old, &kept) {
            absent_is_fine(fs::hard_link(&old, &kept)).map_err(not_writable)?;
        }
    }
    crate::crash::point("aside");
    for ending in BESIDE {
        absent_is_fine(fs::remove_file(beside(path, ending))).map_err(not_writable)?;
    }
    crate::crash::point("bare");
    Ok(())
}

/// Whether somebody who did not come to the end was putting the store aside: then it has two names.
pub(super) fn is_being_put_aside(path: &Path) -> bool {
    is_same(path, &free_name(path, ".replaced", |aside| is_same(path, aside)))
}

/// The first of `path.replaced`, `path.replaced-2`, ... (or another ending) that is free or may be used again.
pub(super) fn free_name(path: &Path, ending: &str, again: impl Fn(&Path) -> bool) -> PathBuf {
    let numbered = |number: u32| match number {
        1 => beside(path, ending),
        _ => beside(path, &format!("{ending}-{number}")),
    };
    let usable = |name: &PathBuf| again(name) || !name.exists() && !beside(name, "-wal").exists();
    (1..).map(numbered).find(usable).unwrap_or_else(|| numbered(1))
}

/// Whether both names are of one file.
fn is_same(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| fs::metadata(path).map(|about| (about.dev(), about.ino())).ok();
    identity(one).is_some_and(|one| Some(one) == identity(other))
}

fn absent_is_fine(done: std::io::Result<()>) -> std::io::Result<()> {
    match done {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes a draft that an earlier process left.
pub(super) fn clear(draft: &Path) -> Result<(), StoreError> {
    for name in [draft.to_owned(), beside(draft, "-journal"), beside(draft, "-wal"), beside(draft, "-shm")] {
        absent_is_fine(fs::remove_file(&name))
            .map_err(|source| StoreError::NotWritable { path: name, source })?;
    }
    Ok(())
}
