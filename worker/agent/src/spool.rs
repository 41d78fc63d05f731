//! Finished work that nobody has acknowledged yet, on disk: written and fsynced before it is reported, removed
//! once acknowledged, moved to `rejected/` with the reason when refused for good. A report that the coordinator is too old
//! to read stays until a newer one takes it. One process owns a spool.
//!
//! Entries name the store they belong to; those of another store stay where they are and are not sent. A result is worth
//! something whoever reports it; a failure only from the worker that had the attempt, so it ends with that process.
//! The second line of a file is the digest of the first: what a disk changed is never reported.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use togl_durable::{Draft, MINE};
use togl_sweeps::{Attempt, CheckedResult, Failure, FoldKey};

use crate::durable;

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpooledOutcome {
    /// With a result.
    Result(Box<CheckedResult>),
    /// Without one.
    Failure(Failure),
}

/// One report that waits for its acknowledgement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SpoolEntry {
    /// The store that issued the attempt.
    pub incarnation: String,
    /// Which fold.
    pub fold: FoldKey,
    /// Which attempt.
    pub attempt: Attempt,
    /// How it ended.
    pub outcome: SpooledOutcome,
}

impl SpoolEntry {
    fn key(&self) -> Key {
        (self.incarnation.clone(), self.fold, self.attempt)
    }

    /// The name of its file. Ids are hexadecimal and numbers, so it is always a plain name.
    fn file_name(&self) -> String {
        let FoldKey { trial, split, seed } = self.fold;
        let digest = plain(&self.incarnation);
        format!("{digest}-{trial}-{split}-{seed}-{}.json", self.attempt)
    }
}

/// Only letters and digits of what a peer sent ever become part of a file name.
fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).take(32).collect()
}

/// What tells entries apart: two stores may issue the same attempt of the same fold.
type Key = (String, FoldKey, Attempt);

/// The spool of one worker process.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    entries: BTreeMap<Key, SpoolEntry>,
    _lock: File,
}

/// Why a spool cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// Another process has it.
    #[error("{0} is used by another worker")]
    InUse(PathBuf),
    /// The file system refused.
    #[error("cannot use the spool {folder}: {source}; choose a writable folder with --state")]
    Io {
        /// Which folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Spool {
    /// Opens or makes a spool and takes it for this process.
    pub fn open(folder: &Path) -> Result<Self, SpoolError> {
        let io = |source| SpoolError::Io { folder: folder.to_owned(), source };
        durable::make_folder(&folder.join("rejected")).map_err(io)?;
        let mut options = File::options();
        let lock = options.write(true).create(true).truncate(false).mode(MINE);
        let lock = lock.open(folder.join("lock")).map_err(io)?;
        lock.try_lock().map_err(|_| SpoolError::InUse(folder.to_owned()))?;
        let mut entries = BTreeMap::new();
        for file in fs::read_dir(folder).map_err(io)? {
            let path = file.map_err(io)?.path();
            if path.extension().is_some_and(|e| e == togl_durable::PARTIAL) {
                let _ = fs::remove_file(&path); // left by a writer that was killed; the lock says it is no more
            } else if path.extension().is_some_and(|e| e == "json") {
                match read(&path) {
                    Ok(SpoolEntry { outcome: SpooledOutcome::Failure(failure), fold, attempt, .. }) => {
                        tracing::info!(%fold, %attempt, %failure, "a dead worker's failure is not reported");
                        fs::remove_file(&path).map_err(io)?;
                    }
                    Ok(entry) => drop(entries.insert(entry.key(), entry)),
                    Err(error) => {
                        tracing::warn!(file = %path.display(), %error, "unreadable spool entry left alone")
                    }
                }
            }
        }
        Ok(Self { folder: folder.to_owned(), entries, _lock: lock })
    }

    /// Says so if everybody can write to the state directory: what others put there would be reported.
    fn warn_if_open_to_all(parent: &Path) {
        if fs::metadata(parent).is_ok_and(|folder| folder.permissions().mode() & 0o002 != 0) {
            let folder = parent.display();
            tracing::warn!(
                "everybody can write to {folder}, and so could add results; `chmod o-w {folder}` helps"
            );
        }
    }

    /// The first free of `parent/worker`, `parent/worker-2`, ... that is no other host's: several workers may share a state
    /// directory, and so may several hosts that have one home.
    pub fn open_free(parent: &Path, host: &str) -> Result<(PathBuf, Self), SpoolError> {
        Self::warn_if_open_to_all(parent);
        let mut last = None;
        for number in 1..=1024 {
            let name = if number == 1 { "worker".to_owned() } else { format!("worker-{number}") };
            let folder = parent.join(name);
            let claimed = claim(&folder, host);
            if !claimed.map_err(|source| SpoolError::Io { folder: folder.clone(), source })? {
                continue;
            }
            match Self::open(&folder.join("spool")) {
                Ok(mut spool) => {
                    spool.adopt_orphans(parent, host);
                    return Ok((folder, spool));
                }
                Err(error @ SpoolError::InUse(_)) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.unwrap_or_else(|| SpoolError::InUse(parent.to_owned())))
    }

    /// Takes over what workers of this host that are no more left in other spools of the same state directory.
    fn adopt_orphans(&mut self, parent: &Path, host: &str) {
        let workers = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
        let its =
            workers.filter(|worker| owner(worker).is_ok_and(|owner| owner.is_none_or(|name| name == host)));
        let siblings = its.map(|worker| worker.join("spool"));
        for folder in siblings.filter(|folder| folder.is_dir() && *folder != self.folder) {
            let Ok(orphan) = Self::open(&folder) else { continue }; // in use: its owner reports
            for (key, entry) in orphan.entries {
                let name = entry.file_name();
                match fs::rename(folder.join(&name), self.folder.join(&name)) {
                    Ok(()) => drop(self.entries.insert(key, entry)),
                    Err(error) => tracing::warn!(file = %name, %error, "cannot take over a spool entry"),
                }
            }
        }
    }

    /// Makes an entry durable. Only after this may it be reported.
    pub fn save(&mut self, entry: SpoolEntry) -> io::Result<()> {
        let text = serde_json::to_string(&entry)?;
        let sealed = format!("{text}\n{}\n", seal(&text));
        durable::write(&self.folder.join(entry.file_name()), sealed.as_bytes())?;
        self.hold(entry);
        Ok(())
    }

    /// Keeps an entry in memory only, where the disk takes nothing: better than to report it once.
    pub fn hold(&mut self, entry: SpoolEntry) {
        self.entries.insert(entry.key(), entry);
    }

    /// Forgets an entry that its store acknowledged.
    pub fn remove(&mut self, store: &str, fold: FoldKey, attempt: Attempt) -> io::Result<()> {
        let Some(entry) = self.entries.remove(&(store.to_owned(), fold, attempt)) else { return Ok(()) };
        absent_is_fine(fs::remove_file(self.folder.join(entry.file_name())))
    }

    /// Moves an entry that its store refused aside, with the reason beside it.
    pub fn reject(&mut self, store: &str, fold: FoldKey, attempt: Attempt, reason: &str) -> io::Result<()> {
        let Some(entry) = self.entries.remove(&(store.to_owned(), fold, attempt)) else { return Ok(()) };
        let (name, aside) = (entry.file_name(), self.folder.join("rejected"));
        durable::write(&aside.join(format!("{name}.reason.txt")), reason.as_bytes())?;
        absent_is_fine(fs::rename(self.folder.join(&name), aside.join(&name)))
    }

    /// Whether a result of this attempt waits for its store; a failure is none.
    pub fn has_result(&self, store: &str, fold: FoldKey, attempt: Attempt) -> bool {
        let entry = self.entries.get(&(store.to_owned(), fold, attempt));
        entry.is_some_and(|entry| matches!(entry.outcome, SpooledOutcome::Result(_)))
    }

    /// Everything that waits, of whatever store.
    pub fn all(&self) -> impl Iterator<Item = &SpoolEntry> {
        self.entries.values()
    }

    /// What waits for an acknowledgement of the store `incarnation`.
    pub fn waiting<'a>(&'a self, incarnation: &'a str) -> impl Iterator<Item = &'a SpoolEntry> {
        self.entries.values().filter(move |entry| entry.incarnation == incarnation)
    }
}

/// The file that says whose a worker's folder is. Locks do not tell: on a network file system they may hold on one host only.
const OWNER: &str = "host";

/// The host that a worker's folder belongs to; none if that was never said.
fn owner(worker: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(worker.join(OWNER)) {
        Ok(name) => Ok(Some(name.trim_end().to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Makes a worker's folder this host's, if it is nobody's. Says whether it is this host's now.
fn claim(worker: &Path, host: &str) -> io::Result<bool> {
    if let Some(name) = owner(worker)? {
        return Ok(name == host);
    }
    durable::make_folder(worker)?;
    let mine = worker.join(format!("{OWNER}.{}-{}", plain(host), std::process::id()));
    let mut draft = Draft::beside(&mine, MINE)?;
    draft.write_all(format!("{host}\n").as_bytes())?;
    draft.publish()?;
    // A link is made by one of several hosts only, and shows a whole file from the first moment.
    let linked = fs::hard_link(&mine, worker.join(OWNER));
    fs::remove_file(&mine)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(owner(worker)?.is_some_and(|name| name == host)),
    }
}

/// An entry that was only held has no file.
fn absent_is_fine(done: io::Result<()>) -> io::Result<()> {
    done.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn seal(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}

/// Files of a single line are from before there were seals.
fn read(path: &Path) -> io::Result<SpoolEntry> {
    let file = fs::read_to_string(path)?;
    let text = match file.split_once('\n') {
        Some((text, found)) if found.trim_end() == seal(text) => text,
        Some(_) => return Err(io::Error::other("its digest is wrong: the disk has changed it")),
        None => &file,
    };
    Ok(serde_json::from_str(text)?)
}

#[cfg(test)]
mod tests {
    use togl_sweeps::{FailureClass, TrialId, result};

    use super::*;

    fn entry(attempt: u32) -> SpoolEntry {
        SpoolEntry {
            incarnation: "store1".to_owned(),
            fold: FoldKey { trial: TrialId::from_bytes([1; 16]), split: 0, seed: 7 },
            attempt: Attempt(attempt),
            outcome: SpooledOutcome::Result(Box::new(result::example(0.5).check().unwrap())),
        }
    }

    #[test]
    fn a_spool_is_for_its_owner_alone() {
        let state = tempfile::tempdir().unwrap();
        let (folder, _spool) = Spool::open_free(state.path(), "here").unwrap();
        for private in [&folder, &folder.join("spool"), &folder.join("spool/rejected")] {
            let mode = fs::metadata(private).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{}", private.display());
        }
    }

    #[test]
    fn what_was_saved_survives_the_process_and_what_was_acknowledged_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(folder.path()).unwrap();
        spool.save(entry(1)).unwrap();
        spool.save(entry(2)).unwrap();
        spool.remove("store1", entry(1).fold, Attempt(1)).unwrap();
        drop(spool);
        let spool = Spool::open(folder.path()).unwrap();
        assert_eq!(spool.waiting("store1").cloned().collect::<Vec<_>>(), [entry(2)]);
        assert_eq!(spool.waiting("another store").count(), 0);
    }

    #[test]
    fn the_same_attempt_of_two_stores_is_two_entries_and_neither_speaks_for_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(folder.path()).unwrap();
        let other = SpoolEntry { incarnation: "store2".to_owned(), ..entry(1) };
        spool.save(entry(1)).unwrap();
        spool.save(other.clone()).unwrap();
        spool.remove("store1", entry(1).fold, Attempt(1)).unwrap();
        assert_eq!(spool.waiting("store1").count(), 0);
        assert_eq!(spool.waiting("store2").cloned().collect::<Vec<_>>(), [other]);
    }

    #[test]
    fn a_refused_entry_is_kept_aside_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(folder.path()).unwrap();
        let failed = SpoolEntry {
            outcome: SpooledOutcome::Failure(Failure::new(FailureClass::Error, "no")),
            ..entry(3)
        };
        spool.save(failed.clone()).unwrap();
        spool.reject("store1", failed.fold, Attempt(3), "never issued").unwrap();
        assert_eq!(spool.waiting("store1").count(), 0);
        let aside: Vec<String> = fs::read_dir(folder.path().join("rejected"))
            .unwrap()
            .map(|f| f.unwrap().file_name().into_string().unwrap())
            .collect();
        assert_eq!(aside.len(), 2, "{aside:?}");
        assert!(aside.iter().any(|name| name.ends_with(".reason.txt")));
    }

    /// The coordinator would refuse it: it never gave the attempt to the worker that reports now. The lease of the dead
    /// worker ends by itself.
    #[test]
    fn a_failure_ends_with_the_process_that_had_the_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let failed = SpoolEntry {
            outcome: SpooledOutcome::Failure(Failure::new(FailureClass::Error, "no")),
            ..entry(2)
        };
        let mut spool = Spool::open(folder.path()).unwrap();
        spool.save(entry(1)).unwrap();
        spool.save(failed.clone()).unwrap();
        assert_eq!(spool.waiting("store1").count(), 2, "its own process reports it until it is acknowledged");
        drop(spool);
        let spool = Spool::open(folder.path()).unwrap();
        assert_eq!(spool.waiting("store1").cloned().collect::<Vec<_>>(), [entry(1)]);
        assert!(!folder.path().join(failed.file_name()).exists());
    }

    /// As a worker wrote it when all values were shares.
    #[test]
    fn a_result_from_before_there_were_scores_is_still_delivered() {
        let folder = tempfile::tempdir().unwrap();
        let old = include_str!("../tests/fixtures/spooled-1.json");
        fs::write(folder.path().join("store1-old.json"), old).unwrap();
        let spool = Spool::open(folder.path()).unwrap();
        assert_eq!(spool.waiting("store1").cloned().collect::<Vec<_>>(), [entry(1)]);
    }

    #[test]
    fn a_torn_entry_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("torn.json"), b"{\"fold\":").unwrap();
        let spool = Spool::open(folder.path()).unwrap();
        assert_eq!(spool.waiting("store1").count(), 0);
        assert!(folder.path().join("torn.json").exists());
    }

    #[test]
    fn an_entry_that_the_disk_changed_is_left_alone_whatever_was_changed() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(folder.path()).unwrap();
        spool.save(entry(1)).unwrap();
        drop(spool);
        let path = folder.path().join(entry(1).file_name());
        let whole = fs::read(&path).unwrap();
        assert!(String::from_utf8_lossy(&whole).contains("\"accuracy\":0.5"));
        for place in 0..whole.len() - 1 {
            let mut changed = whole.clone();
            changed[place] ^= 1;
            fs::write(&path, &changed).unwrap();
            let spool = Spool::open(folder.path()).unwrap();
            assert_eq!(spool.waiting("store1").count(), 0, "byte {place}");
        }
        for length in 0..whole.len() - 1 {
            fs::write(&path, &whole[..length]).unwrap();
            let spool = Spool::open(folder.path()).unwrap();
            // The first line alone is a whole entry of an earlier version.
            let is_first_line = whole[length] == b'\n';
            assert_eq!(spool.waiting("store1").count(), usize::from(is_first_line), "cut to {length} bytes");
        }
    }

    #[test]
    fn an_entry_that_the_disk_did_not_take_waits_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::open(folder.path()).unwrap();
        spool.hold(entry(1));
        assert!(spool.has_result("store1", entry(1).fold, Attempt(1)));
        spool.remove("store1", entry(1).fold, Attempt(1)).unwrap();
        spool.hold(entry(2));
        spool.reject("store1", entry(2).fold, Attempt(2), "never issued").unwrap();
        assert_eq!(spool.all().count(), 0);
    }

    #[test]
    fn two_workers_of_one_machine_get_two_spools() {
        let folder = tempfile::tempdir().unwrap();
        let (first, _kept) = Spool::open_free(folder.path(), "here").unwrap();
        let (second, _also) = Spool::open_free(folder.path(), "here").unwrap();
        assert_ne!(first, second);
    }

    #[test]
    fn what_a_dead_worker_left_is_taken_over_by_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let (_, first) = Spool::open_free(folder.path(), "here").unwrap();
        let (_, mut second) = Spool::open_free(folder.path(), "here").unwrap();
        second.save(entry(1)).unwrap();
        drop((first, second)); // both die; only one comes back
        let (_, next) = Spool::open_free(folder.path(), "here").unwrap();
        assert_eq!(next.waiting("store1").cloned().collect::<Vec<_>>(), [entry(1)]);
        drop(next);
        let (_, again) = Spool::open_free(folder.path(), "here").unwrap();
        assert_eq!(again.waiting("store1").count(), 1, "taken over durably");
    }

    #[test]
    fn hosts_that_share_a_home_leave_each_other_alone_until_somebody_delivers_by_hand() {
        let home = tempfile::tempdir().unwrap();
        let (first, mut spool) = Spool::open_free(home.path(), "here").unwrap();
        spool.save(entry(1)).unwrap();
        drop(spool); // the host is gone for ever; on some file systems its locks would be as free while it lives
        let (second, other) = Spool::open_free(home.path(), "there").unwrap();
        assert_ne!(first, second);
        assert_eq!(other.all().count(), 0, "not taken over by another host");
        let (third, _other) = Spool::open_free(home.path(), "there").unwrap();
        assert!(third != first && third != second);
        let by_hand = Spool::open(&first.join("spool")).unwrap();
        assert_eq!(by_hand.waiting("store1").cloned().collect::<Vec<_>>(), [entry(1)]);
        drop(by_hand);
        let (again, spool) = Spool::open_free(home.path(), "here").unwrap();
        assert_eq!((again, spool.all().count()), (first, 1), "it comes back after all");
    }

    #[test]
    fn a_folder_from_before_hosts_had_names_belongs_to_the_first_that_comes() {
        let home = tempfile::tempdir().unwrap();
        let mut old = Spool::open(&home.path().join("worker/spool")).unwrap();
        old.save(entry(1)).unwrap();
        drop(old);
        let hosts: Vec<String> = (0..8).map(|number| format!("node{number}")).collect();
        let claims = hosts.iter().map(|host| claim(&home.path().join("worker"), host).unwrap());
        assert_eq!(claims.filter(|mine| *mine).count(), 1);
        let (_, spool) = Spool::open_free(home.path(), "node0").unwrap();
        assert_eq!(spool.waiting("store1").count(), 1);
        let left = fs::read_dir(home.path().join("worker")).unwrap().count();
        assert_eq!(left, 2, "the spool and the name, and nothing else");
    }

    #[test]
    fn what_a_peer_calls_its_store_never_becomes_a_path() {
        let hostile = SpoolEntry { incarnation: "../../../../tmp/x".to_owned(), ..entry(1) };
        assert!(!hostile.file_name().contains(['/', '\\']));
        assert!(hostile.file_name().starts_with("tmpx-"));
    }
}
