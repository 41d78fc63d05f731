//! Writing files so that a reader sees the old one or the whole new one, never half. Says which file could not be written;
//! how it is done is `togl-durable`'s part.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use togl_durable::{Draft, EVERYBODYS};

use crate::error::{Error, Result};

/// Writes a draft beside `target`; nothing is visible under the target's name yet.
pub fn draft(target: &Path, content: impl FnOnce(&mut BufWriter<Draft>) -> io::Result<()>) -> Result<Draft> {
    let written = Draft::beside(target, EVERYBODYS).and_then(|draft| {
        let mut writer = BufWriter::new(draft);
        content(&mut writer)?;
        Ok(writer.into_inner()?)
    });
    written.map_err(|source| Error::io("cannot write", target, source))
}

/// Gives a draft its name, replacing what had it before.
pub fn publish(draft: Draft) -> Result<PathBuf> {
    let target = draft.target().to_owned();
    draft.publish().map_err(|source| Error::io("cannot write", &target, source))
}

/// A draft of what is already made.
pub fn draft_of(target: &Path, bytes: impl AsRef<[u8]>) -> Result<Draft> {
    draft(target, |writer| writer.write_all(bytes.as_ref()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_no_temporary() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("table.md");
        publish(draft_of(&target, "old").unwrap()).unwrap();
        let outcome = draft(&target, |writer| {
            writer.write_all(b"half of the new").unwrap();
            Err(io::ErrorKind::StorageFull.into())
        });
        assert!(outcome.is_err());
        assert_eq!(fs::read_to_string(&target).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = draft_of(&folder.path().join("missing/table.md"), "x").unwrap_err();
        assert!(error.to_string().contains("missing/table.md"), "{error}");
    }
}
