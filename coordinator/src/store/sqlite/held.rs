//! The files of a store while a coordinator serves it: nobody else serves them, under whatever name, and they are still
//! those at their place when something is acknowledged. Looks at names, numbers and times of files; what is in the log
//! is asked of `pages`.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::mem;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::super::StoreError;
use super::pages::{self, LogEnd};
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
    log: FileNumber,
    index: FileNumber,
    end: LogEnd,
}

/// Which file it is: device and inode.
type FileNumber = (u64, u64);

/// What the system tells of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    file: FileNumber,
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

/// Which file is at a place. Does not ask for its times where that can be avoided: asked for, they are kept more exactly,
/// and flushing the log with its next transaction has to flush them too.
#[cfg(target_os = "linux")]
fn number_at(path: &Path) -> io::Result<FileNumber> {
    use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
    let about = statx(CWD, path, AtFlags::empty(), StatxFlags::INO)?;
    Ok((makedev(about.stx_dev_major, about.stx_dev_minor), about.stx_ino))
}

#[cfg(not(target_os = "linux"))]
fn number_at(path: &Path) -> io::Result<FileNumber> {
    Ok(Look::at(path)?.file)
}

impl Held {
    /// Begins to watch over the files of `path`, which SQLite has opened. `file` is what [`lock`] gave.
    pub(super) fn new(path: &Path, file: File, connection: &Connection) -> Result<Self, StoreError> {
        let refuse = |source| StoreError::NotReadable { path: path.to_owned(), source };
        let opened = file.metadata().map_err(refuse)?;
        let expected = if place::is_being_put_aside(path) { 2 } else { 1 };
        if opened.nlink() > expected {
            return Err(StoreError::ManyNames { path: path.to_owned(), names: opened.nlink() });
        }
        let (log, index) = (beside(path, "-wal"), beside(path, "-shm"));
        let number = |path| number_at(path).map_err(refuse);
        let seen = Seen {
            store: Look::of(&opened),
            log: number(&log)?,
            index: number(&index)?,
            end: pages::log_end(connection)?,
        };
        Ok(Self { path: path.to_owned(), log, index, seen, _file: file })
    }

    /// Whether the files are as our last transaction left them.
    pub(super) fn check_untouched(&self, connection: &Connection) -> Result<(), Disturbance> {
        let now = self.look(connection)?;
        let same = now.store == self.seen.store && now.end == self.seen.end;
        match same && pages::ends_so(connection, &now.end) {
            true => Ok(()),
            false => Err(Disturbance::Written),
        }
    }

    /// Whether what we have just written is at its place. Says whether the store itself was written, not only its log.
    pub(super) fn check_written(&mut self, connection: &Connection) -> Result<bool, Disturbance> {
        let now = self.look(connection)?;
        let before = mem::replace(&mut self.seen, now);
        Ok(before.store != self.seen.store)
    }

    /// The files that SQLite has opened, as they are now, if they are still those at their place.
    fn look(&self, connection: &Connection) -> Result<Seen, Disturbance> {
        let store = Look::at(&self.path).map_err(|_| Disturbance::Gone)?;
        if store.file != self.seen.store.file {
            return Err(Disturbance::Replaced);
        }
        let beside = |path| number_at(path).map_err(|_| Disturbance::Bare);
        let (log, index) = (beside(&self.log)?, beside(&self.index)?);
        if log != self.seen.log {
            return Err(Disturbance::Replaced);
        }
        if index != self.seen.index {
            return Err(Disturbance::Bare);
        }
        let end = pages::log_end(connection).map_err(|_| Disturbance::Bare)?;
        Ok(Seen { store, log, index, end })
    }
}
