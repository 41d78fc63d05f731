//! What a coordinator elsewhere is to begin with: a CA, the list of tokens and the tokens that a state directory makes for
//! itself, written into an empty folder without a coordinator. Also the beginning of a state directory made from such a
//! folder is an ordinary one: whoever serves it adds the rest.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::certificates::{Authority, CertificateError};
use crate::tokens::{Registry, TokenError, UnixSeconds};

/// What is written, secrets of the coordinator first.
const FILES: [&str; 5] = ["ca.key", "ca.pem", "operator.token", "tokens.json", "worker.token"];

/// Why nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum TokenBundleError {
    /// The system refused.
    #[error("cannot write to {}: {source}", folder.display())]
    Io {
        /// Which folder.
        folder: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something is there.
    #[error("{} is not empty; nothing was changed in it", folder.display())]
    NotEmpty {
        /// Which folder.
        folder: PathBuf,
    },
    /// The CA cannot be made.
    #[error(transparent)]
    Certificates(#[from] CertificateError),
    /// The tokens cannot be made.
    #[error(transparent)]
    Tokens(#[from] TokenError),
}

/// Writes a new CA and new tokens into a folder that is not there yet or is empty. Gives the names of the files.
pub fn write(folder: &Path, now: UnixSeconds) -> Result<[&'static str; 5], TokenBundleError> {
    let failed = |source| TokenBundleError::Io { folder: folder.to_owned(), source };
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    if fs::read_dir(folder).map_err(failed)?.next().is_some() {
        return Err(TokenBundleError::NotEmpty { folder: folder.to_owned() });
    }
    let authority = Authority::load_or_create(folder)?;
    let list = folder.join("tokens.json");
    Registry::open(&list, &authority.pin(), now)?;
    // Only this process has ever locked it.
    fs::remove_file(list.with_extension("lock")).map_err(failed)?;
    Ok(FILES)
}

#[cfg(test)]
mod tests {
    use togl_proto::token::Role;

    use super::*;
    use crate::tokens;

    #[test]
    fn a_state_directory_that_begins_with_a_bundle_keeps_its_ca_and_knows_its_tokens() {
        let folder = tempfile::tempdir().unwrap();
        let bundle = folder.path().join("bundle");
        let named = write(&bundle, 1).unwrap();
        let mut there: Vec<_> = fs::read_dir(&bundle)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        there.sort();
        assert_eq!(there, named);
        let worker = tokens::own(&bundle, Role::Worker).unwrap();
        let authority = Authority::load_or_create(&bundle).unwrap();
        assert_eq!(worker.pin(), Some(&authority.pin()));
        let (registry, own) = Registry::open(&bundle.join("tokens.json"), &authority.pin(), 2).unwrap();
        assert_eq!(own.worker, worker.secret());
        assert_eq!(registry.check(worker.secret(), 2).unwrap().role, Role::Worker);
    }

    #[test]
    fn what_is_in_the_way_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("ca.pem"), "of somebody").unwrap();
        assert!(matches!(write(folder.path(), 1), Err(TokenBundleError::NotEmpty { .. })));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
