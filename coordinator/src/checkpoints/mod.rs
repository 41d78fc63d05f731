//! The checkpoints that the coordinator holds, so that a fold can end on another machine than it began: one file a fold in a
//! folder of its own, whole or not there, or one object in storage (`stored.rs`). What is kept is decided by `book.rs`; this
//! folder reads, writes and is the only one that removes. The store knows nothing of them, because losing one costs time and
//! never a result. Knows neither wire nor tokens; everything that touches a file or storage may block.

mod book;
mod storage;
mod stored;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use togl_durable::{Draft, MINE};
use togl_proto::checkpoint::{DigestCheck, Held, Torn};
use togl_proto::storage::StorageError;
use togl_scheduler::{Timestamp, Use};
use togl_sweeps::FoldKey;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use self::book::Book;
pub use self::book::Declined;
pub use self::storage::{NotStorage, Storage};
use self::stored::Stored;

/// Room for all of them together, unless somebody says otherwise.
pub const USUAL_ROOM: u64 = 10 << 30;

/// Checkpoints that come at once. Each has a draft on the disk that counts nowhere yet.
const AT_ONCE: usize = 32;

/// How the names of their files end.
const SUFFIX: &str = "checkpoint";

/// Why a checkpoint that was to be kept is not.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// It is not what was promised.
    #[error("the checkpoint is torn: {0}")]
    Torn(#[from] Torn),
    /// The disk.
    #[error("the coordinator cannot keep the checkpoint: {0}")]
    Disk(#[from] io::Error),
    /// The storage.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// The checkpoints of one coordinator.
#[derive(Clone)]
pub struct HeldCheckpoints(Arc<Inner>);

struct Inner {
    keeping: Keeping,
    book: Mutex<Book>,
    places: Arc<Semaphore>,
}

/// Where they are.
enum Keeping {
    Folder(PathBuf),
    Storage(Box<Stored>),
}

impl HeldCheckpoints {
    /// The room in a bucket of storage, which nobody has looked into yet.
    pub fn in_storage(storage: Storage, most_bytes: u64) -> Self {
        Self::with(Keeping::Storage(Box::new(Stored::new(storage))), Book::with_room(most_bytes))
    }

    /// The room in this folder, which is made if need be and is nobody else's. Finds what was there before.
    pub fn open(folder: &Path, most_bytes: u64) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let mut book = Book::with_room(most_bytes);
        for path in oldest_first(folder)? {
            let is_whole = |held: &Held| fs::metadata(&path).is_ok_and(|facts| facts.len() == held.size);
            let found = path
                .file_name()
                .and_then(OsStr::to_str)
                .and_then(read_name)
                .filter(|(_, held)| is_whole(held));
            match found.and_then(|(fold, held)| book.keep(fold, held).ok()) {
                Some(gone) => {
                    gone.iter().try_for_each(|(of, held)| remove(&folder.join(name(*of, *held))))?
                }
                None => remove(&path)?, // a draft, a torn one, or one that is not as far
            }
        }
        let (checkpoints, bytes) = book.size();
        tracing::debug!(checkpoints, bytes, folder = %folder.display(), "checkpoints of folds");
        Ok(Self::with(Keeping::Folder(folder.to_owned()), book))
    }

    fn with(keeping: Keeping, book: Book) -> Self {
        let places = Arc::new(Semaphore::new(AT_ONCE));
        Self(Arc::new(Inner { keeping, book: Mutex::new(book), places }))
    }

    /// What is held of a fold.
    pub fn held(&self, fold: &FoldKey) -> Option<Held> {
        self.book().held(fold)
    }

    /// All folds of which something is held.
    pub fn folds(&self) -> Vec<FoldKey> {
        self.book().folds()
    }

    /// Checkpoints and their bytes.
    pub fn size(&self) -> (usize, u64) {
        self.book().size()
    }

    /// Whether it makes sense to take a checkpoint whose fold is good for this.
    pub fn judge(&self, fold: &FoldKey, offered: Held, good_for: Use) -> Result<(), Declined> {
        self.book().judge(fold, offered, good_for)
    }

    /// A place for one that is about to come; none while too many are coming.
    pub fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.0.places.clone().try_acquire_owned().ok()
    }

    /// Begins to write one.
    pub fn begin(&self, fold: FoldKey, promised: Held) -> io::Result<Upload> {
        let nowhere = || io::Error::other("it belongs into storage");
        let path = self.path(fold, promised).ok_or_else(nowhere)?;
        let draft = Draft::beside(&path, MINE)?;
        Ok(Upload { room: self.clone(), fold, promised, draft, comparison: DigestCheck::with(promised) })
    }

    /// The checkpoint of a fold, opened for reading.
    pub fn read(&self, fold: FoldKey) -> Option<(Held, File)> {
        let held = self.held(&fold)?;
        match File::open(self.path(fold, held)?) {
            Ok(file) => Some((held, file)),
            Err(error) => {
                tracing::warn!(%fold, %error, "a checkpoint cannot be read; the fold is trained without");
                None
            }
        }
    }

    /// Removes the checkpoint of a fold that has its result.
    pub fn forget(&self, fold: &FoldKey) {
        let gone = self.book().take_out(fold);
        self.remove_all(gone.map(|held| (*fold, held)));
    }

    /// Removes what is of no use any more, `now` that its folds are good for this.
    pub fn review(&self, now: Timestamp, uses: &[(FoldKey, Use)]) {
        let gone = self.book().review(now, uses);
        self.remove_all(gone);
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner) // every change of it is one step
    }

    fn path(&self, fold: FoldKey, held: Held) -> Option<PathBuf> {
        match &self.0.keeping {
            Keeping::Folder(folder) => Some(folder.join(name(fold, held))),
            Keeping::Storage(_) => None,
        }
    }

    fn remove_all(&self, gone: impl IntoIterator<Item = (FoldKey, Held)>) {
        let names = gone.into_iter().map(|(fold, held)| name(fold, held));
        match &self.0.keeping {
            Keeping::Storage(stored) => stored.discard(names),
            Keeping::Folder(folder) => {
                for path in names.map(|name| folder.join(name)) {
                    if let Err(error) = remove(&path) {
                        tracing::warn!(path = %path.display(), %error, "cannot remove a checkpoint");
                    }
                }
            }
        }
    }
}

/// A checkpoint that is coming. Dropped before it is kept, it leaves nothing.
pub struct Upload {
    room: HeldCheckpoints,
    fold: FoldKey,
    promised: Held,
    draft: Draft,
    comparison: DigestCheck,
}

impl Upload {
    /// Some more of its bytes.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(), UploadError> {
        self.comparison.take(bytes)?;
        Ok(self.draft.write_all(bytes)?)
    }

    /// Everything has come: keeps it if it is what was promised and still further than what is held.
    pub fn keep(self) -> Result<Result<(), Declined>, UploadError> {
        let Self { room, fold, promised, draft, comparison } = self;
        comparison.end()?;
        draft.publish()?; // under a name of its own, so nothing is in its way
        let kept = room.book().keep(fold, promised);
        match kept {
            Ok(gone) => {
                room.remove_all(gone);
                Ok(Ok(()))
            }
            Err(declined) => {
                // Unless it is the very same, of which another call was faster.
                room.remove_all((room.held(&fold) != Some(promised)).then_some((fold, promised)));
                Ok(Err(declined))
            }
        }
    }
}

/// Everything that names a checkpoint is in the name of its file, so the folder needs no list.
fn name(fold: FoldKey, held: Held) -> String {
    let (FoldKey { trial, split, seed }, Held { epochs, size, digest }) = (fold, held);
    format!("{trial}-{split}-{seed}-{epochs}-{size}-{digest}.{SUFFIX}")
}

fn read_name(name: &str) -> Option<(FoldKey, Held)> {
    let parts: Vec<&str> = name.strip_suffix(SUFFIX)?.strip_suffix('.')?.split('-').collect();
    let [trial, split, seed, epochs, size, digest] = parts[..] else { return None };
    let fold = FoldKey { trial: trial.parse().ok()?, split: split.parse().ok()?, seed: seed.parse().ok()? };
    let held = Held { epochs: epochs.parse().ok()?, size: size.parse().ok()?, digest: digest.parse().ok()? };
    Some((fold, held))
}

/// Checkpoints and what killed writers left, by the time when they were written.
fn oldest_first(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        let is_ours = path.extension().is_some_and(|end| end == SUFFIX || end == togl_durable::PARTIAL);
        if is_ours {
            found.push((entry.metadata()?.modified()?, path));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Gone already is as good.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
