//! What errors of SQLite mean for the user of a store: damage, a place that cannot be written, or something else.

use std::path::Path;

use rusqlite::{ErrorCode, ffi};

use super::super::StoreError;

/// What is damaged, if that is what an error of SQLite says.
pub(in super::super) fn damage(error: &rusqlite::Error) -> Option<String> {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) if failure.extended_code == ffi::SQLITE_IOERR_DATA => {
            Some("a page does not fit its checksum".to_owned())
        }
        _ => match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Some(error.to_string()),
            _ => None,
        },
    }
}

/// An error in as few words as possible, for a list of them.
pub(in super::super) fn said(error: &StoreError) -> String {
    match error {
        StoreError::Sqlite(error) => damage(error).unwrap_or_else(|| error.to_string()),
        StoreError::Corrupt { detail, .. } | StoreError::Impossible { detail, .. } => detail.clone(),
        other => other.to_string(),
    }
}

/// What an error of SQLite means for the user of `path`.
pub(super) fn explain(path: &Path, error: rusqlite::Error) -> StoreError {
    let path = path.to_owned();
    match (damage(&error), error.sqlite_error_code()) {
        (Some(detail), _) => StoreError::Corrupt { path, detail },
        (None, Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied)) => {
            StoreError::NotWritable { path, source: std::io::Error::other(error) }
        }
        (None, _) => StoreError::Sqlite(error),
    }
}

/// The same for an error that may be one of SQLite.
pub(in super::super) fn refine(path: &Path, error: StoreError) -> StoreError {
    match error {
        StoreError::Sqlite(error) => explain(path, error),
        other => other,
    }
}
