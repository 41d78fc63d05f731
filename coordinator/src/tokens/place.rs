//! Where a list of tokens is: the file `tokens.json` of a state directory, or, for coordinators that share a PostgreSQL store,
//! the store. Then the file is a copy, renewed with every change that is heard of: it is what a store begins with that has no
//! list yet, such as one of an older togl.

use std::path::{Path, PathBuf};

use super::list::{self, List, Read};
use super::{TokenError, failed};
use crate::private;
use crate::store::StoreError;
use crate::store::address::StoreAddress;
use crate::store::postgres::{Numbered, PostgresAccess, SharedTokens};

/// See the file's documentation.
#[derive(Debug, Clone)]
pub struct TokenPlace {
    file: PathBuf,
    shared: Option<PostgresAccess>,
}

impl TokenPlace {
    /// The place of a state directory with this token file and this store. A SQLite store is locked and watched as a file, so
    /// nobody but its coordinator could write tokens into it.
    pub fn of(file: &Path, store: &StoreAddress) -> Self {
        let shared = match store {
            StoreAddress::Postgres(access) => Some((**access).clone()),
            StoreAddress::Sqlite(_) | StoreAddress::Memory => None,
        };
        Self { file: file.to_owned(), shared }
    }

    /// The file, be it the truth or a copy; the directory's own tokens lie beside it.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// The store of those who share theirs.
    pub(super) fn shared(&self) -> Option<&PostgresAccess> {
        self.shared.as_ref()
    }

    /// The list as it is now, if there is one.
    pub(super) fn read(&self) -> Result<Option<Read>, TokenError> {
        let Some(access) = &self.shared else { return self.read_file() };
        match SharedTokens::connect(access)?.other_than(0)? {
            Some(numbered) => Ok(Some(Read::Current(self.understood(&numbered)?))),
            None => self.read_file(),
        }
    }

    /// Replaces the list by what `change` makes of it, unless that fails. Nobody else changes it meanwhile.
    pub(super) fn change<T: Send>(
        &self,
        change: impl FnOnce(Option<Read>) -> Result<(List, T), TokenError> + Send,
    ) -> Result<T, TokenError> {
        let _guard = private::lock(&self.file).map_err(|source| failed(&self.file, source))?;
        let Some(access) = &self.shared else {
            let (list, result) = change(self.read_file()?)?;
            self.save(&self.text(&list)?)?;
            return Ok(result);
        };
        let changed = SharedTokens::connect(access)?.change(|stored| {
            let before = match stored {
                Some(text) => Some(Read::Current(self.understood(&(0, text))?)),
                None => self.read_file()?,
            };
            let (list, result) = change(before)?;
            let text = self.text(&list)?;
            Ok::<_, TokenError>((text.clone(), (text, result)))
        })?;
        let (text, result) = changed?;
        self.save(&text)?;
        Ok(result)
    }

    /// A list of the store, which is also copied to the file.
    pub(super) fn copied(&self, numbered: &Numbered) -> Result<List, TokenError> {
        let list = self.understood(numbered)?;
        let _guard = private::lock(&self.file).map_err(|source| failed(&self.file, source))?;
        self.save(&numbered.1)?;
        Ok(list)
    }

    fn understood(&self, (_, text): &Numbered) -> Result<List, TokenError> {
        let wrong = |reason: String| {
            let address = self.shared.as_ref().map(|access| StoreAddress::Postgres(Box::new(access.clone())));
            let (address, problem) = (
                address.map_or_else(String::new, |address| address.to_string()),
                format!("holds a list of tokens that cannot be used: {reason}"),
            );
            TokenError::Store(Box::new(StoreError::Unusable { address, problem }))
        };
        match list::read(text) {
            Ok(Read::Current(list)) => Ok(list),
            Ok(Read::Older { .. }) => Err(wrong("it is one of an older togl".to_owned())),
            Err(reason) => Err(wrong(reason)),
        }
    }

    fn read_file(&self) -> Result<Option<Read>, TokenError> {
        let Some(text) = private::read(&self.file).map_err(|source| failed(&self.file, source))? else {
            return Ok(None);
        };
        let malformed = |reason| TokenError::Malformed { path: self.file.clone(), reason };
        Ok(Some(list::read(&text).map_err(malformed)?))
    }

    fn text(&self, list: &List) -> Result<Vec<u8>, TokenError> {
        list.to_json().map_err(|error| failed(&self.file, error.into()))
    }

    fn save(&self, text: &[u8]) -> Result<(), TokenError> {
        private::write(&self.file, text).map_err(|source| failed(&self.file, source))
    }
}

impl From<&Path> for TokenPlace {
    fn from(file: &Path) -> Self {
        Self { file: file.to_owned(), shared: None }
    }
}

impl From<&PathBuf> for TokenPlace {
    fn from(file: &PathBuf) -> Self {
        file.as_path().into()
    }
}
