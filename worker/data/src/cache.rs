//! Keeps what was read or generated in a folder of its own, so that the second time takes milliseconds: a copy
//! is mapped, not read, and all processes of a machine share its pages. It is used only if it was made from
//! the very same input and is whole; otherwise it is made again. Trouble with the cache is never trouble for the
//! caller: the data set is returned anyway, and the outcome says why it was not stored. One process builds, others
//! on the same machine wait for it; machines that share the folder may build at once, and do not meet.

use std::fs::{self, File};
use std::io::{BufWriter, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;
use serde::{Deserialize, Serialize};
use togl_durable::Draft;

use crate::dataset::Dataset;
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::flat::{self, Unusable};

/// Small parts share a write; large arrays are larger than this and go past it.
const BUFFER_BYTES: usize = 1 << 16;

/// What the cache did for one data set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "outcome", content = "reason")]
pub enum CacheOutcome {
    /// No cache folder was given.
    Off,
    /// The copy was used.
    Hit,
    /// There was no copy; now there is.
    Stored,
    /// There was a copy that could not be used (this is why); it was replaced.
    Replaced(String),
    /// The data set is complete, but no copy could be kept (this is why).
    NotStored(String),
}

/// One data set's place in the cache.
pub(crate) struct CacheSlot {
    path: PathBuf,
    fingerprint: Fingerprint,
}

impl CacheSlot {
    /// The file is named after what was asked for, so a copy of older input is replaced, not kept beside.
    pub(crate) fn new(
        folder: &Path,
        name: &str,
        request: &Fingerprint,
        fingerprint: Fingerprint,
    ) -> CacheSlot {
        let number = blake3::Hash::from_bytes(*request).to_hex();
        let file = format!("{}-{}.togl-data", name.to_ascii_lowercase(), &number[..16]);
        CacheSlot { path: folder.join(file), fingerprint }
    }

    /// Whether a usable copy seems to be there, by its header only.
    pub(crate) fn is_present(&self) -> bool {
        let mut start = [0; flat::HEADER_BYTES];
        let read = File::open(&self.path).and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && start == flat::header(&self.fingerprint)
    }

    /// The copy, or what `make` gives, which is then stored.
    pub(crate) fn open_or_make(
        &self,
        make: impl FnOnce() -> Result<Dataset, Error>,
    ) -> Result<(Dataset, CacheOutcome), Error> {
        if let Ok(dataset) = self.load() {
            return Ok((dataset, CacheOutcome::Hit));
        }
        // The lock is freed when the file is dropped, also by a process that dies.
        let lock = match self.lock() {
            Ok(lock) => lock,
            Err(error) => return Ok((make()?, CacheOutcome::NotStored(error.to_string()))),
        };
        // Another process may have built it while this one waited.
        let problem = match self.load() {
            Ok(dataset) => return Ok((dataset, CacheOutcome::Hit)),
            Err(problem) => problem,
        };
        let dataset = make()?;
        let outcome = match (self.store(&dataset), problem) {
            (Err(error), _) => CacheOutcome::NotStored(error.to_string()),
            (Ok(()), None) => CacheOutcome::Stored,
            (Ok(()), Some(problem)) => CacheOutcome::Replaced(problem),
        };
        drop(lock);
        Ok((dataset, outcome))
    }

    /// The copy; otherwise what is wrong with it, nothing where there is none.
    fn load(&self) -> Result<Dataset, Option<String>> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(None),
            Err(error) => return Err(Some(error.to_string())),
        };
        // SAFETY: nobody writes into a copy. It is complete when it gets its name, and it is replaced by another
        // file that takes its name, so what is mapped stays as it is for as long as it is mapped.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| Some(error.to_string()))?;
        flat::read(&Arc::new(map), &self.fingerprint).map_err(|unusable| match unusable {
            Unusable::Stale(reason) => Some(reason.to_string()),
            Unusable::Corrupt(reason) => Some(reason),
        })
    }

    fn lock(&self) -> std::io::Result<File> {
        fs::create_dir_all(self.path.parent().unwrap_or(Path::new(".")))?;
        let lock = File::options().create(true).append(true).open(self.path.with_extension("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    /// Under the lock there is one writer on this machine. Others that share the folder may not heed it, so the unfinished file
    /// has the name of its writer; what a crash left here is removed by the next attempt.
    fn store(&self, dataset: &Dataset) -> std::io::Result<()> {
        let writer = Writer::this();
        self.tidy(&writer);
        self.fill(self.draft(&writer)?, dataset)
    }

    fn draft(&self, writer: &Writer) -> std::io::Result<Draft> {
        Draft::at(
            self.unfinished(writer),
            &self.path,
            File::options().write(true).create(true).truncate(true),
        )
    }

    fn fill(&self, draft: Draft, dataset: &Dataset) -> std::io::Result<()> {
        let out = BufWriter::with_capacity(BUFFER_BYTES, draft);
        let out = flat::write(out, dataset, &self.fingerprint)?;
        out.into_inner()?.publish().map(drop)
    }

    fn unfinished(&self, Writer { host, process }: &Writer) -> PathBuf {
        self.path.with_extension(format!("{host}-{process}.unfinished"))
    }

    /// Removes what dead writers of this machine left: whoever lives holds the lock, and that is us.
    fn tidy(&self, writer: &Writer) {
        let stem = self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (its, mine) = (format!("{stem}.{}-", writer.host), self.unfinished(writer));
        let entries = self.path.parent().and_then(|folder| fs::read_dir(folder).ok());
        for path in entries.into_iter().flatten().flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let number = name.strip_prefix(&its).and_then(|rest| rest.strip_suffix(".unfinished"));
            // Another host may have a longer name that begins like ours.
            if path != mine && number.is_some_and(|number| number.parse::<u32>().is_ok()) {
                let _ = fs::remove_file(&path); // it only takes room
            }
        }
    }
}

/// Who writes a copy.
struct Writer {
    host: String,
    process: u32,
}

impl Writer {
    fn this() -> Self {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = host.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        Self { host, process: std::process::id() }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::structure::tests::two_small_graphs;

    fn slot(folder: &Path, input: u8) -> CacheSlot {
        CacheSlot::new(folder, "Small", &[1; 32], [input; 32])
    }

    fn made() -> Result<Dataset, Error> {
        Ok(Dataset::new(two_small_graphs()).expect("sound"))
    }

    fn never() -> Result<Dataset, Error> {
        panic!("the copy was not used")
    }

    #[test]
    fn the_second_time_nothing_is_made() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let slot = slot(&folder.path().join("new"), 1);
        assert!(!slot.is_present());
        assert_eq!(slot.open_or_make(made).expect("made").1, CacheOutcome::Stored);
        assert!(slot.is_present());
        let (dataset, outcome) = slot.open_or_make(never).expect("cached");
        assert_eq!((dataset.digest(), outcome), (made().expect("sound").digest(), CacheOutcome::Hit));
    }

    #[test]
    fn a_copy_of_other_input_is_replaced() {
        let folder = tempfile::tempdir().expect("temporary folder");
        slot(folder.path(), 1).open_or_make(made).expect("made");
        assert!(!slot(folder.path(), 2).is_present());
        let outcome = slot(folder.path(), 2).open_or_make(made).expect("made").1;
        assert!(matches!(outcome, CacheOutcome::Replaced(reason) if reason.contains("other files")));
        assert_eq!(slot(folder.path(), 2).open_or_make(never).expect("cached").1, CacheOutcome::Hit);
    }

    #[test]
    fn a_corrupt_copy_is_replaced_and_an_unfinished_one_is_not_looked_at() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let slot = slot(folder.path(), 1);
        let gone = slot.unfinished(&Writer { process: 0, ..Writer::this() });
        fs::write(&gone, "half").expect("file");
        assert_eq!(slot.open_or_make(made).expect("made").1, CacheOutcome::Stored);
        let mut bytes = fs::read(&slot.path).expect("stored");
        let middle = bytes.len() - 20;
        bytes[middle] ^= 1;
        fs::write(&slot.path, bytes).expect("file");
        assert!(matches!(slot.open_or_make(made).expect("made").1, CacheOutcome::Replaced(_)));
        assert_eq!(slot.open_or_make(never).expect("cached").1, CacheOutcome::Hit);
        assert!(!gone.exists(), "nobody goes on with it");
    }

    #[test]
    fn two_hosts_that_write_at_once_do_not_meet_and_the_copy_is_whole_at_any_moment() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let slot = slot(folder.path(), 1);
        let elsewhere = Writer { host: format!("{}-2", Writer::this().host), process: std::process::id() };
        let mut theirs = slot.draft(&elsewhere).expect("draft");
        std::io::Write::write_all(&mut theirs, b"half").expect("written");
        assert_eq!(slot.open_or_make(made).expect("made").1, CacheOutcome::Stored);
        assert_eq!(slot.open_or_make(never).expect("cached").1, CacheOutcome::Hit);
        assert_eq!(fs::read(slot.unfinished(&elsewhere)).expect("still theirs"), b"half");
        drop(theirs);
        let theirs = slot.draft(&elsewhere).expect("draft");
        slot.fill(theirs, &made().expect("sound")).expect("published");
        assert_eq!(slot.open_or_make(never).expect("cached").1, CacheOutcome::Hit);
        assert_eq!(fs::read_dir(folder.path()).expect("folder").count(), 2, "the copy and its lock");
    }

    #[test]
    fn a_folder_that_cannot_be_used_costs_the_copy_not_the_data_set() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let blocked = folder.path().join("blocked");
        fs::write(&blocked, "a file where the folder should be").expect("file");
        let (dataset, outcome) = slot(&blocked, 1).open_or_make(made).expect("made");
        assert_eq!(dataset.graph_count(), 2);
        assert!(matches!(outcome, CacheOutcome::NotStored(_)));
    }

    #[test]
    fn a_write_that_fails_leaves_nothing_half_written() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let slot = slot(folder.path(), 1);
        // A folder in the place of the copy: writing works, the last step does not.
        fs::create_dir_all(slot.path.join("in the way")).expect("folder");
        let outcome = slot.open_or_make(made).expect("made").1;
        assert!(matches!(outcome, CacheOutcome::NotStored(_)), "{outcome:?}");
        assert!(!slot.unfinished(&Writer::this()).exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_costs_the_copy_not_the_data_set() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let slot = slot(folder.path(), 1);
        // The device on which every write fails for lack of space.
        std::os::unix::fs::symlink("/dev/full", slot.unfinished(&Writer::this())).expect("link");
        let (dataset, outcome) = slot.open_or_make(made).expect("made");
        assert_eq!(dataset.graph_count(), 2);
        assert!(matches!(outcome, CacheOutcome::NotStored(reason) if reason.contains("space")));
        assert!(fs::symlink_metadata(slot.unfinished(&Writer::this())).is_err());
        assert!(!slot.path.exists());
    }

    #[test]
    fn an_error_while_making_is_the_callers_and_stores_nothing() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let slot = slot(folder.path(), 1);
        let broken = || Err(Error::Damaged { file: "x".to_string(), problem: "broken".to_string() });
        assert!(matches!(slot.open_or_make(broken), Err(Error::Damaged { .. })));
        assert!(!slot.path.exists());
    }

    #[test]
    fn many_who_ask_at_once_cause_one_build() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let builds = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    let count_and_make = || {
                        builds.fetch_add(1, Ordering::Relaxed);
                        made()
                    };
                    slot(folder.path(), 1).open_or_make(count_and_make).expect("made or cached")
                });
            }
        });
        assert_eq!(builds.into_inner(), 1);
    }
}
