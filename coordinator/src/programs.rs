//! The files of programs that came with sweeps, one bundle a file under its digest, so that workers can fetch them: whole or
//! not there, and compared with the digest whenever they are read. They are kept as long as their folder is, because results
//! name them. Knows neither wire nor tokens; everything that touches a file may block.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use togl_durable::{Draft, MINE};
use togl_sweeps::bundle::{ProgramFiles, ProgramFilesError, digest_of, is_digest};

/// Why files were not taken.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// They are not what a program can consist of.
    #[error(transparent)]
    Bundle(#[from] ProgramFilesError),
    /// They are others than the sweep names.
    #[error("the files have digest {found}, the sweep names {named}; submit them again")]
    Others {
        /// Of what came.
        found: String,
        /// What the text says.
        named: String,
    },
    /// The sweep names files that did not come with it and are not here.
    #[error("the files of the program ({0}) did not come with the sweep; submit it from where they are")]
    Missing(String),
    /// The disk.
    #[error("the files of the program cannot be kept: {0}")]
    Disk(#[from] io::Error),
}

/// The files of programs of one coordinator. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Programs(PathBuf);

impl Programs {
    /// Those in this folder, which is made if need be.
    pub fn open(folder: &Path) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        Ok(Self(folder.to_owned()))
    }

    /// Keeps the files that a sweep names. Without any it is enough that they are here.
    pub fn keep(&self, named: &str, bytes: &[u8]) -> Result<(), ProgramError> {
        if bytes.is_empty() {
            return match self.read(named)? {
                Some(_) => Ok(()),
                None => Err(ProgramError::Missing(named.to_owned())),
            };
        }
        let found = ProgramFiles::from_bytes(bytes)?.digest();
        if found != named {
            return Err(ProgramError::Others { found, named: named.to_owned() });
        }
        if self.read(named)?.is_none() {
            let mut draft = Draft::beside(&self.0.join(named), MINE)?;
            draft.write_all(bytes)?;
            draft.publish()?;
        }
        Ok(())
    }

    /// The bundle of a digest; none if it is not here, or damaged.
    pub fn read(&self, digest: &str) -> io::Result<Option<Vec<u8>>> {
        if !is_digest(digest) {
            return Ok(None);
        }
        match fs::read(self.0.join(digest)) {
            Ok(bytes) if digest_of(&bytes) == digest => Ok(Some(bytes)),
            Ok(_) => {
                tracing::error!(digest, "the files of a program are damaged; submit its sweep again");
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn files_are_kept_by_what_is_in_them_and_damage_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let programs = Programs::open(&folder.path().join("programs")).unwrap();
        let bundle =
            ProgramFiles::new(BTreeMap::from([("train.py".to_owned(), b"print(1)".to_vec())])).unwrap();
        let (digest, bytes) = (bundle.digest(), bundle.to_bytes());
        assert!(matches!(programs.keep(&digest, &[]), Err(ProgramError::Missing(_))));
        assert!(matches!(programs.keep(&"0".repeat(64), &bytes), Err(ProgramError::Others { .. })));
        assert!(matches!(programs.keep(&digest, b"rubbish"), Err(ProgramError::Bundle(_))));
        programs.keep(&digest, &bytes).unwrap();
        programs.keep(&digest, &[]).unwrap();
        assert_eq!(programs.read(&digest).unwrap(), Some(bytes.clone()));
        assert_eq!(programs.read("../tokens.json").unwrap(), None);
        fs::write(folder.path().join("programs").join(&digest), b"changed").unwrap();
        assert_eq!(programs.read(&digest).unwrap(), None, "nobody is given other files under this name");
        programs.keep(&digest, &bytes).unwrap();
        assert_eq!(programs.read(&digest).unwrap(), Some(bytes));
    }
}
