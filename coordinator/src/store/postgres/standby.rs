//! Whoever waits for a store that another coordinator serves. Keeps one connection, asks for the lock, and opens the store
//! when it has it. How often is asked is not its business.

use super::super::StoreError;
use super::PostgresStore;
use super::access::PostgresAccess;
use super::link::Link;

/// See the file's documentation.
#[derive(Debug)]
pub struct Waiting {
    access: PostgresAccess,
    /// Gone after an error; made again with the next question.
    link: Option<Link>,
}

/// What came of asking.
#[derive(Debug)]
pub enum Asked {
    /// The store is ours.
    Opened(Box<PostgresStore>),
    /// Somebody else has it.
    Held {
        /// Who.
        by: String,
    },
}

impl Waiting {
    /// Waits for the store of this database.
    pub fn new(access: PostgresAccess) -> Self {
        Self { access, link: None }
    }

    /// Asks once.
    pub fn ask(&mut self) -> Result<Asked, StoreError> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => Link::connect_to_session(&self.access)?,
        };
        match link.lock() {
            Ok(()) => Ok(Asked::Opened(Box::new(PostgresStore::hold(link, &self.access)?))),
            Err(StoreError::Held { holder, .. }) => {
                self.link = Some(link);
                Ok(Asked::Held { by: holder })
            }
            Err(error) => Err(error),
        }
    }
}
