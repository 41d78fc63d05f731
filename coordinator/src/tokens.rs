//! Who may do what: secret tokens with roles, kept in one private file. Makes them at the first start; compares
//! them in constant time; never shows them in a debug print.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// May submit, cancel and read.
    Operator,
    /// May train.
    Worker,
}

/// The tokens of one state directory.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    /// For people.
    pub operator: String,
    /// For workers.
    pub worker: String,
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tokens(secret)")
    }
}

/// Why there are no tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("cannot use the token file {path}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not one of ours.
    #[error("{path} is not a token file: {reason}; move it away to have new tokens made")]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

impl Tokens {
    /// New random tokens.
    pub fn random() -> Result<Self, TokenError> {
        Ok(Self { operator: secret("op")?, worker: secret("worker")? })
    }

    /// The tokens of a file.
    pub fn load(path: &Path) -> Result<Self, TokenError> {
        let text = fs::read(path).map_err(|source| TokenError::Io { path: path.to_owned(), source })?;
        serde_json::from_slice(&text)
            .map_err(|error| TokenError::Malformed { path: path.to_owned(), reason: error.to_string() })
    }

    /// The tokens of a file, made now if there is none. Only the user can read it.
    pub fn load_or_create(path: &Path) -> Result<Self, TokenError> {
        let io = |source| TokenError::Io { path: path.to_owned(), source };
        match Self::load(path) {
            Err(TokenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            other => return other,
        }
        let tokens = Self::random()?;
        let text = serde_json::to_vec_pretty(&tokens).map_err(|error| io(error.into()))?;
        let partial = path.with_extension("partial");
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&partial)
            .map_err(io)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(io)?;
        fs::rename(&partial, path).map_err(io)?;
        Ok(tokens)
    }

    /// Whether `presented` is the token of `role`. Takes as long for a near miss as for nonsense.
    pub fn allow(&self, role: Role, presented: &str) -> bool {
        let expected = match role {
            Role::Operator => &self.operator,
            Role::Worker => &self.worker,
        };
        // Comparing blake3 hashes is constant-time and hides the length too.
        blake3::hash(expected.as_bytes()) == blake3::hash(presented.as_bytes())
    }
}

fn secret(kind: &str) -> Result<String, TokenError> {
    let mut bytes = [0; 24];
    getrandom::fill(&mut bytes).map_err(TokenError::Random)?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("togl-{kind}-{digits}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn tokens_are_made_once_and_only_the_user_can_read_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        let first = Tokens::load_or_create(&path).unwrap();
        let again = Tokens::load_or_create(&path).unwrap();
        assert_eq!(first.operator, again.operator);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!format!("{first:?}").contains(&first.operator));
    }

    #[test]
    fn a_role_is_not_another() {
        let tokens = Tokens::random().unwrap();
        assert!(tokens.allow(Role::Worker, &tokens.worker));
        assert!(!tokens.allow(Role::Operator, &tokens.worker));
        assert!(!tokens.allow(Role::Worker, &tokens.worker[..10]));
        assert!(!tokens.allow(Role::Worker, ""));
    }

    #[test]
    fn a_file_that_is_not_ours_is_refused_and_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.json");
        fs::write(&path, "something else").unwrap();
        assert!(matches!(Tokens::load_or_create(&path), Err(TokenError::Malformed { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "something else");
    }
}
