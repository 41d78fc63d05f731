//! The list of tokens as a value: hashes, roles, names, expiry. Reads and writes its JSON text; touches no file and
//! no clock.

use std::fmt;

use serde::{Deserialize, Serialize};
use togl_proto::token::Role;

use super::{Caller, TokenError, UnixSeconds};

/// Tokens that a list may hold: every check looks at all of them.
const MOST: usize = 1_000;

/// Characters of a name that are kept.
const LONGEST_NAME: usize = 100;

/// Digits of an id.
const ID_DIGITS: usize = 10;

/// Names a token without giving it away: the first digits of its hash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenId(String);

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is known of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Its id.
    pub id: TokenId,
    /// What it allows.
    pub role: Role,
    /// For people.
    pub name: String,
    /// The blake3 hash of the secret. A secret has 192 random bits, so its hash gives nothing away.
    hash: String,
    /// When it was made.
    pub created: UnixSeconds,
    /// When it ends; never if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<UnixSeconds>,
}

impl Entry {
    /// Whether it is good at this time.
    pub fn is_alive(&self, now: UnixSeconds) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }

    pub(super) fn caller(&self) -> Caller {
        Caller { token: self.id.clone(), role: self.role }
    }
}

/// The list.
#[derive(Debug, Clone, Default)]
pub(super) struct List(Vec<Entry>);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    tokens: Vec<Entry>,
}

/// Two plain tokens, as the first versions wrote them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OlderDocument {
    operator: String,
    worker: String,
}

/// What a token file holds.
pub(super) enum Read {
    Current(List),
    Older { operator: String, worker: String },
}

/// Reads a token file of this or an older version; says what is wrong with any other.
pub(super) fn read(text: &[u8]) -> Result<Read, String> {
    let error = match serde_json::from_slice::<Document>(text) {
        Ok(Document { version: 2, tokens }) => return Ok(Read::Current(List(tokens))),
        Ok(Document { version, .. }) => {
            return Err(format!("it has version {version}, this togl knows version 2"));
        }
        Err(error) => error,
    };
    match serde_json::from_slice(text) {
        Ok(OlderDocument { operator, worker }) => Ok(Read::Older { operator, worker }),
        // The text of the error could quote what it could not read; its place is enough.
        Err(_) => Err(format!("it cannot be read at line {}, column {}", error.line(), error.column())),
    }
}

impl List {
    pub(super) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        serde_json::to_vec_pretty(&Document { version: 2, tokens: self.0.clone() })
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.0
    }

    pub(super) fn get(&self, id: &TokenId) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.id == *id)
    }

    /// The token with this secret. Looks at all of them, and at every digit of each hash, whatever it finds.
    pub(super) fn find(&self, secret: &str) -> Option<&Entry> {
        let presented = blake3::hash(secret.as_bytes());
        let same = |entry: &Entry| blake3::Hash::from_hex(&entry.hash).is_ok_and(|hash| hash == presented);
        self.0.iter().fold(None, |found, entry| if same(entry) { Some(entry) } else { found })
    }

    pub(super) fn add(
        &mut self,
        secret: &str,
        role: Role,
        name: &str,
        created: UnixSeconds,
        expires: Option<UnixSeconds>,
    ) -> Result<&Entry, TokenError> {
        if self.0.len() >= MOST {
            return Err(TokenError::TooMany(self.0.len()));
        }
        let hash = blake3::hash(secret.as_bytes()).to_hex().to_string();
        let id = TokenId(hash[..ID_DIGITS].to_owned());
        let name = name.chars().filter(|c| !c.is_control()).take(LONGEST_NAME).collect();
        let at = self.0.len();
        self.0.push(Entry { id, role, name, hash, created, expires });
        Ok(&self.0[at])
    }

    /// Takes the one token out whose id begins like this.
    pub(super) fn remove(&mut self, beginning: &str) -> Result<Entry, TokenError> {
        let fits = |entry: &Entry| !beginning.is_empty() && entry.id.0.starts_with(beginning);
        let mut found = (0..self.0.len()).filter(|&at| fits(&self.0[at]));
        match (found.next(), found.next()) {
            (Some(at), None) => Ok(self.0.remove(at)),
            (Some(_), Some(_)) => Err(TokenError::Ambiguous(beginning.to_owned())),
            (None, _) => Err(TokenError::Unknown(beginning.to_owned())),
        }
    }
}
