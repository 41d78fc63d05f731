//! The half of the room that lies in storage: which URL a worker gets, what is believed of what it says it has put there, and how
//! book and bucket are kept the same. The bucket is the list: what was put and never spoken of, what another process left and what
//! somebody else removed is found by looking. Only this file removes objects, later and one by one, so that nobody waits for it.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use togl_proto::checkpoint::{Held, Torn};
use togl_proto::storage::{StorageError, TRIED};
use togl_sweeps::{FoldKey, hint};
use tokio::sync::Notify;

use super::storage::{Storage, TRY};
use super::{Declined, HeldCheckpoints, Keeping, SUFFIX, UploadError, name, read_name};

/// Rounds between two looks at all of the bucket: an hour.
const ROUNDS: u32 = 360;

/// Rounds until a look that failed is repeated: a minute.
const ROUNDS_OF_TROUBLE: u32 = 6;

/// Storage, and what is still to be done there.
pub(super) struct Stored {
    storage: Storage,
    /// Names of objects that are of no use any more.
    waste: Mutex<Vec<String>>,
    has_waste: Notify,
    rounds_left: AtomicU32,
    /// What was said last of what does not work.
    trouble: Mutex<Option<StorageError>>,
}

impl Stored {
    pub(super) fn new(storage: Storage) -> Self {
        Self {
            storage,
            waste: Mutex::default(),
            has_waste: Notify::new(),
            rounds_left: AtomicU32::new(0),
            trouble: Mutex::default(),
        }
    }

    /// These are removed with the next round.
    pub(super) fn discard(&self, names: impl IntoIterator<Item = String>) {
        let mut waste = self.waste.lock().unwrap_or_else(PoisonError::into_inner);
        let before = waste.len();
        waste.extend(names);
        if waste.len() > before {
            self.has_waste.notify_one();
        }
    }

    /// Says what has changed, once.
    fn note(&self, outcome: Result<(), StorageError>) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        let now = outcome.err();
        if *trouble == now {
            return; // said already
        }
        match &now {
            Some(error) => {
                let error = hint::beside(error, Some(error.hint()));
                tracing::warn!(%error, "storage of checkpoints; folds train on, and start anew where one is missing");
            }
            None => tracing::info!(storage = %self.storage, "the storage of checkpoints works again"),
        }
        *trouble = now;
    }
}

impl HeldCheckpoints {
    /// Whether checkpoints lie in storage.
    pub fn is_in_storage(&self) -> bool {
        self.stored().is_some()
    }

    /// Where a worker puts this checkpoint; nothing if the room holds it itself.
    pub fn url_to_put(&self, fold: FoldKey, promised: Held) -> Option<String> {
        Some(self.stored()?.storage.lend_put(&name(fold, promised), promised.size))
    }

    /// What is held of a fold, and where a worker gets it; nothing if the room holds it itself.
    pub fn url_to_get(&self, fold: FoldKey) -> Option<(Held, String)> {
        let held = self.held(&fold)?;
        Some((held, self.stored()?.storage.lend_get(&name(fold, held))))
    }

    /// URLs to put and to get one small object; nothing if the room holds checkpoints itself.
    pub fn urls_to_try(&self) -> Option<(String, String)> {
        let (stored, name) = (self.stored()?, try_name());
        Some((stored.storage.lend_put(&name, TRIED.len() as u64), stored.storage.lend_get(&name)))
    }

    /// A worker says that it has put a checkpoint where it was told to: keeps it if it is there and still further than what
    /// is held. Its bytes are compared with the digest by whoever gets it.
    pub fn take_placed(&self, fold: FoldKey, held: Held) -> Result<Result<(), Declined>, UploadError> {
        let Some(stored) = self.stored() else { return Ok(Err(Declined::Elsewhere)) };
        let (name, promised) = (name(fold, held), held.size);
        let came = stored.storage.size(&name)?;
        if came != promised {
            stored.discard([name]);
            return Err(Torn::Shorter { came, promised }.into());
        }
        let mut book = self.book();
        if book.held(&fold) == Some(held) {
            return Ok(Ok(()));
        }
        match book.keep(fold, held) {
            Ok(gone) => {
                drop(book);
                self.remove_all(gone);
                Ok(Ok(()))
            }
            Err(declined) => {
                stored.discard([name]);
                Ok(Err(declined))
            }
        }
    }

    /// Comes back when there is something to remove.
    pub async fn has_waste(&self) {
        match self.stored() {
            Some(stored) => stored.has_waste.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Tries everything that is needed of the storage, and finds what is there. Says what does not work.
    pub fn try_storage(&self) {
        let Some(stored) = self.stored() else { return };
        let tried = stored.storage.try_out(&try_name()).and_then(|()| self.compare(stored));
        if tried.is_ok() {
            let (checkpoints, bytes) = self.size();
            tracing::info!(storage = %stored.storage, checkpoints, bytes, "checkpoints are kept in storage");
        }
        stored.note(tried);
    }

    /// One round: removes what is left of what is of no use, and now and then compares book and bucket.
    pub fn tidy(&self) {
        let Some(stored) = self.stored() else { return };
        self.remove_waste();
        match stored.rounds_left.load(Ordering::Relaxed).checked_sub(1) {
            Some(left) => stored.rounds_left.store(left, Ordering::Relaxed),
            None => stored.note(self.compare(stored)),
        }
    }

    /// Removes what is of no use any more. What cannot be removed now is tried again with the next round.
    pub fn remove_waste(&self) {
        let Some(stored) = self.stored() else { return };
        if let Err(error) = self.remove_each(stored) {
            stored.note(Err(error));
        }
    }

    /// Removes what was put there for a fold that has ended meanwhile.
    pub fn discard(&self, fold: FoldKey, held: Held) {
        if let Some(stored) = self.stored() {
            stored.discard([name(fold, held)]);
        }
    }

    fn stored(&self) -> Option<&Stored> {
        match &self.0.keeping {
            Keeping::Storage(stored) => Some(stored),
            Keeping::Folder(_) => None,
        }
    }

    fn remove_each(&self, stored: &Stored) -> Result<(), StorageError> {
        let waste = std::mem::take(&mut *stored.waste.lock().unwrap_or_else(PoisonError::into_inner));
        for (done, waste_name) in waste.iter().enumerate() {
            // The very same may have come again meanwhile.
            let is_held = read_name(waste_name).is_some_and(|(fold, held)| self.held(&fold) == Some(held));
            if let (false, Err(error)) = (is_held, stored.storage.remove(waste_name)) {
                let mut left = stored.waste.lock().unwrap_or_else(PoisonError::into_inner);
                left.extend_from_slice(&waste[done..]);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Makes the book say what the bucket holds.
    fn compare(&self, stored: &Stored) -> Result<(), StorageError> {
        stored.rounds_left.store(ROUNDS_OF_TROUBLE, Ordering::Relaxed);
        let before: Vec<(FoldKey, Held)> = self.book().all();
        let objects = stored.storage.list()?;
        let listed: HashSet<String> = objects.iter().map(|object| object.name.clone()).collect();
        for object in objects {
            let whole = read_name(&object.name).filter(|(_, held)| held.size == object.size);
            match whole {
                Some((fold, held)) => self.adopt(stored, fold, held),
                None if object.name.starts_with(TRY) || object.name.ends_with(SUFFIX) => {
                    stored.discard([object.name]);
                }
                None => {} // not ours
            }
        }
        let mut book = self.book();
        for (fold, held) in before {
            if book.held(&fold) == Some(held) && !listed.contains(&name(fold, held)) {
                let _ = book.take_out(&fold); // somebody else has removed it
            }
        }
        stored.rounds_left.store(ROUNDS, Ordering::Relaxed);
        Ok(())
    }

    /// Keeps what was found, or removes it if it is not as far as what is held.
    fn adopt(&self, stored: &Stored, fold: FoldKey, held: Held) {
        if self.held(&fold) == Some(held) {
            return;
        }
        let kept = self.book().keep(fold, held);
        match kept {
            Ok(gone) => self.remove_all(gone),
            Err(_) => stored.discard([name(fold, held)]),
        }
    }
}

/// A name that nobody else has.
fn try_name() -> String {
    let mut random = [0; 8];
    // Without randomness two tries may meet, which is no harm.
    let _ = getrandom::fill(&mut random);
    format!("{TRY}{:016x}", u64::from_le_bytes(random))
}
