//! Files that are whole or not there: written beside their place, flushed, renamed, and the folder flushed too. What fails
//! leaves nothing behind; only a killed process can leave a draft, which no reader looks at. Uses nothing but the
//! standard library and knows nothing of what the files hold.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The mode of a file that is for this user alone.
pub const MINE: u32 = 0o600;

/// The mode of a file that is for whom the umask says.
pub const EVERYBODYS: u32 = 0o666;

/// How the names of drafts end.
pub const PARTIAL: &str = "partial";

/// A file that is being written and does not have its name yet. Dropped before it is published, it is removed.
#[derive(Debug)]
pub struct Draft {
    file: File,
    path: PathBuf,
    target: PathBuf,
    published: bool,
}

impl Draft {
    /// A draft beside `target` with a name of its own: several processes, also of several machines, may write into one
    /// folder.
    pub fn beside(target: &Path, mode: u32) -> io::Result<Self> {
        let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "not the name of a file");
        let mut name = OsString::from(".");
        name.push(target.file_name().ok_or_else(no_name)?);
        let random = RandomState::new().hash_one(std::process::id()); // seeded by the operating system
        name.push(format!(".{random:016x}.{PARTIAL}"));
        let mut new = OpenOptions::new();
        new.write(true).create_new(true).mode(mode);
        Self::at(target.with_file_name(name), target, &new)
    }

    /// A draft with a name that the caller chose, who sees to it that nobody else writes there.
    pub fn at(path: PathBuf, target: &Path, options: &OpenOptions) -> io::Result<Self> {
        Ok(Self { file: options.open(&path)?, path, target: target.to_owned(), published: false })
    }

    /// The name that it will have.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Gives the file its name, replacing what had it before.
    pub fn publish(self) -> io::Result<PathBuf> {
        self.publish_seen_by(|_| ())
    }

    /// The same, step by step before the eyes of a test.
    pub fn publish_seen_by(mut self, seen: impl Fn(&'static str)) -> io::Result<PathBuf> {
        self.file.sync_all()?;
        seen("synced");
        fs::rename(&self.path, &self.target)?;
        self.published = true;
        seen("renamed");
        flush_folder_of(&self.target)?;
        seen("kept");
        Ok(std::mem::take(&mut self.target))
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.published {
            let _ = fs::remove_file(&self.path); // its name says what it is, should it stay
        }
    }
}

/// Keeps what was done to the names in the folder of `path`, on file systems that can be asked to.
fn flush_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match File::open(folder.unwrap_or(Path::new(".")))?.sync_all() {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn write(target: &Path, bytes: &[u8], mode: u32) -> io::Result<PathBuf> {
        let mut draft = Draft::beside(target, mode)?;
        draft.write_all(bytes)?;
        draft.publish()
    }

    #[test]
    fn a_file_is_for_this_user_alone_unless_it_is_wanted_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("mine"), b"one", MINE).unwrap();
        write(&folder.path().join("ours"), b"two", EVERYBODYS).unwrap();
        let mode = |name| fs::metadata(folder.path().join(name)).unwrap().permissions().mode() & 0o777;
        fs::write(folder.path().join("as the umask says"), b"three").unwrap();
        assert_eq!((mode("mine"), mode("ours")), (0o600, mode("as the umask says")));
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_a_failure_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (target, taken) = (folder.path().join("a"), folder.path().join("taken"));
        write(&target, b"one", MINE).unwrap();
        write(&target, b"two", MINE).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"two");
        fs::create_dir(&taken).unwrap();
        assert!(write(&taken, b"three", MINE).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "a, taken, and no rest of the attempt");
    }

    #[test]
    fn nothing_is_visible_before_it_is_published_and_a_draft_that_is_dropped_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("table.md");
        let mut draft = Draft::beside(&target, EVERYBODYS).unwrap();
        draft.write_all(b"half").unwrap();
        assert!(!target.try_exists().unwrap());
        drop(draft);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert_eq!(write(&target, b"whole", EVERYBODYS).unwrap(), target);
        assert_eq!(fs::read(&target).unwrap(), b"whole");
    }
}
