//! Writing files so that a reader sees the old one or the whole new one, never half: everything goes to a
//! temporary file beside the target, which takes the target's name at the end. Owns the naming of temporaries.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// Keeps apart temporaries that one process writes at the same time.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A file that is written but does not have its name yet. Dropped without [`Staged::publish`], it is removed.
#[derive(Debug)]
pub struct Staged {
    temporary: PathBuf,
    target: PathBuf,
    published: bool,
}

impl Staged {
    /// Writes a temporary file beside `target`; nothing is visible under the target's name yet.
    pub fn write(target: &Path, content: impl FnOnce(&mut BufWriter<File>) -> Result<()>) -> Result<Self> {
        let temporary = temporary_beside(target)?;
        let failed = |source| Error::io("cannot write", target, source);
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary).map_err(failed)?;
        // From here on, an early return removes the temporary.
        let staged = Self { temporary, target: target.to_owned(), published: false };
        let mut writer = BufWriter::new(file);
        content(&mut writer)?;
        let file = writer.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        Ok(staged)
    }

    /// As [`Staged::write`], for text that is already made.
    pub fn write_text(target: &Path, text: &str) -> Result<Self> {
        Self::write(target, |writer| {
            writer.write_all(text.as_bytes()).map_err(|source| Error::io("cannot write", target, source))
        })
    }

    /// Gives the file its name, replacing what had it before.
    pub fn publish(mut self) -> Result<PathBuf> {
        fs::rename(&self.temporary, &self.target)
            .map_err(|source| Error::io("cannot write", &self.target, source))?;
        self.published = true;
        Ok(self.target.clone())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.published {
            // Nothing better can be done about a temporary that cannot be removed; its name says what it is.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

fn temporary_beside(target: &Path) -> Result<PathBuf> {
    let name = target.file_name().ok_or_else(|| {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, "not the name of a file");
        Error::io("cannot write", target, source)
    })?;
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}-{}.partial", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
    Ok(target.with_file_name(temporary))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_temporary() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("table.md");
        Staged::write_text(&target, "old").unwrap().publish().unwrap();
        let outcome = Staged::write(&target, |writer| {
            writer.write_all(b"half of the new").unwrap();
            Err(Error::Empty { origin: "test".to_owned() })
        });
        assert!(outcome.is_err());
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn nothing_is_visible_before_it_is_published() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("table.md");
        let staged = Staged::write_text(&target, "new").unwrap();
        assert!(!target.try_exists().unwrap());
        assert_eq!(staged.publish().unwrap(), target);
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = Staged::write_text(&folder.path().join("missing/table.md"), "x").unwrap_err();
        assert!(error.to_string().contains("missing/table.md"), "{error}");
    }
}
