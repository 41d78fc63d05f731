//! The user's configuration file: coordinators by name, so that nobody types addresses twice, and which of them is meant. Holds
//! where a token lies, never the token. Reads and writes that one file; who uses a context is elsewhere.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use togl_coordinator::private;
use togl_proto::own_machine;
use togl_sweeps::{bounded, nearest};

use crate::problem::Problem;

/// What the file holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contexts {
    /// The one that is meant when nothing else is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// All of them by name.
    #[serde(default)]
    pub contexts: BTreeMap<String, Context>,
}

/// A coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Context {
    /// HOST:PORT.
    pub coordinator: String,
    /// Where the token lies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// Where a client certificate and its key lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<PathBuf>,
}

impl Contexts {
    /// The user's file: `TOGL_CONFIG`, else `config.json` in the configuration directory; none where there is no home.
    pub fn place() -> Option<PathBuf> {
        let named = std::env::var_os("TOGL_CONFIG").filter(|named| !named.is_empty()).map(PathBuf::from);
        named.or_else(|| Some(own_machine::config_folder()?.join("config.json")))
    }

    /// What a file holds; nothing if it is not there.
    pub fn read(file: &Path) -> Result<Self, Problem> {
        let refuse = |error: &dyn std::fmt::Display| {
            Problem::usage(format!("cannot use the configuration file {}: {error}", file.display()))
        };
        let open = match File::open(file) {
            Ok(open) => open,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => {
                return Err(refuse(&error).hint("make it readable, or name another with TOGL_CONFIG"));
            }
        };
        let mode = open.metadata().map_err(|error| refuse(&error))?.permissions().mode();
        if mode & 0o022 != 0 {
            let hint = format!("`chmod go-w {}` keeps others out", file.display());
            return Err(refuse(&"others could write to it, and say where your tokens are sent").hint(hint));
        }
        let text = bounded::text(open, bounded::WRITTEN_BY_HAND).map_err(|error| refuse(&error))?;
        serde_json::from_str(&text)
            .map_err(|error| refuse(&error).hint("mend it, or remove it and use `togl context add` again"))
    }

    /// Writes the file, for its owner alone.
    pub fn write(&self, file: &Path) -> Result<(), Problem> {
        let text = serde_json::to_string_pretty(self).map_err(Problem::ours)? + "\n";
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let made =
            folder.map_or(Ok(()), |folder| fs::DirBuilder::new().recursive(true).mode(0o700).create(folder));
        made.and_then(|()| private::write(file, text.as_bytes())).map_err(|error| {
            Problem::usage(format!("cannot write the configuration file {}: {error}", file.display()))
                .hint("make its folder writable, or name another file with TOGL_CONFIG")
        })
    }

    /// A context by name, or that there is none with the nearest.
    pub fn find(&self, name: &str) -> Result<&Context, Problem> {
        self.contexts.get(name).ok_or_else(|| {
            let hint = match self.contexts.is_empty() {
                true => "`togl context add NAME HOST:PORT` makes one".to_owned(),
                false => nearest::hint(name, self.contexts.keys().map(String::as_str).collect::<Vec<_>>()),
            };
            Problem::usage(format!("there is no context `{name}`")).hint(hint)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_others_can_write_to_is_refused_and_one_of_ours_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/config.json");
        assert_eq!(Contexts::read(&file).unwrap(), Contexts::default());
        let lab = Context { coordinator: "lab:7447".to_owned(), token_file: None, identity: None };
        let written = Contexts { current: None, contexts: BTreeMap::from([("lab".to_owned(), lab)]) };
        written.write(&file).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Contexts::read(&file).unwrap(), written);
        fs::set_permissions(&file, PermissionsExt::from_mode(0o662)).unwrap();
        assert!(Contexts::read(&file).unwrap_err().to_string().contains("others could write to it"));
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        let text = r#"{"contexts": {"lab": {"coordinator": "lab:7447"}}}"#;
        let contexts: Contexts = serde_json::from_str(text).unwrap();
        assert!(format!("{:?}", contexts.find("lap").unwrap_err()).contains("did you mean `lab`?"));
    }
}
