//! The files of a store while a coordinator serves it: nobody else serves them, under whatever name, and they are still
//! those at their place when something is acknowledged. Looks at names, numbers and times of files, never at what is
//! in them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::super::StoreError;
use super::place::{self, beside};

/// The byte of the store that its coordinator locks: right behind those that SQLite locks, where SQLite keeps nothing.
const BYTE: i64 = 0x4000_0000 + 512;

/// Takes the lock of the file itself. It has no name that could be removed or evaded, and is of the kind that SQLite
/// uses, so it works wherever a store does; `flock` on a network file system would lock SQLite out. The file must be
/// open for longer than any connection to it: closing it takes SQLite's locks along.
pub(super) fn lock(path: &Path) -> Result<File, StoreError> {
    let not_writable = |source| StoreError::NotWritable { path: path.to_owned(), source };
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(not_writable)?;
    match lock_byte(&file) {
        Ok(()) => Ok(file),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            let holder = "its lock file was removed, or it uses another name of the file".to_owned();
            Err(StoreError::Locked { path: path.to_owned(), holder })
        }
        Err(source) => Err(not_writable(source)),
    }
}

fn lock_byte(file: &File) -> io::Result<()> {
    // SAFETY: all zeros are a valid `flock`.
    let mut range: libc::flock = unsafe { mem::zeroed() };
    range.l_type = libc::F_WRLCK as _;
    range.l_whence = libc::SEEK_SET as _;
    range.l_start = BYTE;
    range.l_len = 1;
    // SAFETY: the descriptor is open for as long as `file` is borrowed, and the call reads one `flock`.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &range) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// What somebody else did to the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disturbance {
    /// The store is not at its place.
    Gone,
    /// Another store, or another log, is in its place.
    Replaced,
    /// What SQLite keeps beside it is gone.
    Bare,
    /// Something was written that is not ours.
    Written,
}

impl Disturbance {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Gone => "was deleted or moved away while it was served",
            Self::Replaced => "or its log was replaced by another file while it was served",
            Self::Bare => "has lost the files beside it (-wal, -shm) while it was served",
            Self::Written => "was written by another program while it was served",
        }
    }
}

/// The files of a store, locked.
#[derive(Debug)]
pub(super) struct Held {
    path: PathBuf,
    log: PathBuf,
    index: PathBuf,
    seen: Seen,
    _file: File,
}

/// The files as they were after our last transaction.
#[derive(Debug)]
struct Seen {
    store: Look,
    log: Look,
    index: Look,
}

/// What the system tells of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    file: (u64, u64),
    length: u64,
    written: (i64, i64),
}

impl Look {
    fn at(path: &Path) -> io::Result<Self> {
        Ok(Self::of(&fs::metadata(path)?))
    }

    fn of(about: &fs::Metadata) -> Self {
        let file = (about.dev(), about.ino());
        Self { file, length: about.len(), written: (about.mtime(), about.mtime_nsec()) }
    }
}

impl Held {
    /// Begins to watch over the files of `path`, which SQLite has opened. `file` is what [`lock`] gave.
    pub(super) fn new(path: &Path, file: File) -> Result<Self, StoreError> {
        let refuse = |source| StoreError::NotReadable { path: path.to_owned(), source };
        let opened = file.metadata().map_err(refuse)?;
        let expected = if place::is_being_put_aside(path) { 2 } else { 1 };
        if opened.nlink() > expected {
            return Err(StoreError::ManyNames { path: path.to_owned(), names: opened.nlink() });
        }
        let (log, index) = (beside(path, "-wal"), beside(path, "-shm"));
        let look = |path| Look::at(path).map_err(refuse);
        let seen = Seen { store: Look::of(&opened), log: look(&log)?, index: look(&index)? };
        Ok(Self { path: path.to_owned(), log, index, seen, _file: file })
    }

    /// Whether the files are as our last transaction left them.
    pub(super) fn check_untouched(&self) -> Result<(), Disturbance> {
        let now = self.look()?;
        match now.store == self.seen.store && now.log == self.seen.log {
            true => Ok(()),
            false => Err(Disturbance::Written),
        }
    }

    /// Whether what we have just written is at its place. Says whether the store itself was written, not only its log.
    pub(super) fn check_written(&mut self) -> Result<bool, Disturbance> {
        let now = self.look()?;
        let before = mem::replace(&mut self.seen, now);
        Ok(before.store != self.seen.store)
    }

    /// The files that SQLite has opened, as they are now, if they are still those at their place.
    fn look(&self) -> Result<Seen, Disturbance> {
        let store = Look::at(&self.path).map_err(|_| Disturbance::Gone)?;
        let beside = |path| Look::at(path).map_err(|_| Disturbance::Bare);
        if store.file != self.seen.store.file {
            return Err(Disturbance::Replaced);
        }
        let (log, index) = (beside(&self.log)?, beside(&self.index)?);
        if log.file != self.seen.log.file {
            return Err(Disturbance::Replaced);
        }
        if index.file != self.seen.index.file {
            return Err(Disturbance::Bare);
        }
        Ok(Seen { store, log, index })
    }
}
