//! Who may do what: tokens with roles, names and expiry. The list in `tokens.json`, or in the store that coordinators share
//! (`place.rs`), keeps hashes only; the two tokens that a state directory makes for itself lie beside the file as
//! `operator.token` and `worker.token`. The list is the truth: whoever changes it (`togl token`) is heeded at the next check,
//! without a restart (`registry.rs`).

mod list;
mod place;
mod registry;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use togl_proto::token::{NotAToken, Pin, Token};

pub use self::list::{Entry, TokenId};
use self::list::{List, Read};
pub use self::place::TokenPlace;
pub use self::registry::Registry;
use crate::private;
use crate::store::StoreError;
pub use togl_proto::token::Role;

/// Seconds since 1970.
pub type UnixSeconds = u64;

/// Random bytes of a secret.
const SECRET: usize = 24;

/// The tokens that a state directory made for its own use.
#[derive(Clone)]
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

impl Tokens {
    /// The tokens beside a list, for commands of the same user and machine.
    pub fn load(list: &Path) -> Result<Self, TokenError> {
        let state = list.parent().unwrap_or_else(|| Path::new("."));
        let text = |role| own(state, role).map(|token| token.unpinned().reveal());
        Ok(Self { operator: text(Role::Operator)?, worker: text(Role::Worker)? })
    }

    /// Two tokens that no state directory knows, for [`Registry::of`].
    pub fn random() -> Result<Self, TokenError> {
        let token = |role| Ok::<_, TokenError>(Token::new(role, &random()?).reveal());
        Ok(Self { operator: token(Role::Operator)?, worker: token(Role::Worker)? })
    }
}

/// Why there are no tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("cannot use the token file {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The file is not one of ours.
    #[error("{} is not a token file: {reason}; move it away to have new tokens made", path.display())]
    Malformed { path: PathBuf, reason: String },
    /// There are too many.
    #[error("there are {0} tokens already, which is the limit; revoke some")]
    TooMany(usize),
    /// No token has this id.
    #[error("there is no token `{0}`; `togl token list` shows them")]
    Unknown(String),
    /// Several tokens have an id that begins like this.
    #[error("several tokens begin with `{0}`; write more of the id")]
    Ambiguous(String),
    /// The store that has the list cannot be used.
    #[error(transparent)]
    Store(Box<StoreError>),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

impl From<StoreError> for TokenError {
    fn from(error: StoreError) -> Self {
        Self::Store(Box::new(error))
    }
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// By which token.
    pub token: TokenId,
    /// What it allows.
    pub role: Role,
}

/// A token of a state directory, as written for commands of the same user.
pub fn own(state: &Path, role: Role) -> Result<Token, TokenError> {
    let path = own_file(state, role);
    let text = private::read(&path).map_err(|source| failed(&path, source))?;
    let missing = || failed(&path, io::ErrorKind::NotFound.into());
    parse(&path, &text.ok_or_else(missing)?)
}

/// Makes a token and puts it on the list. Its text is shown now and never again.
pub fn create(
    place: impl Into<TokenPlace>,
    role: Role,
    name: &str,
    expires: Option<UnixSeconds>,
    now: UnixSeconds,
) -> Result<(Token, Entry), TokenError> {
    edit(&place.into(), |list| {
        let token = Token::new(role, &random()?);
        let entry = list.add(token.secret(), role, name, now, expires)?.clone();
        Ok((token, entry))
    })
}

/// All tokens that were not revoked, the oldest first.
pub fn list(place: impl Into<TokenPlace>) -> Result<Vec<Entry>, TokenError> {
    let place = place.into();
    match place.read()? {
        Some(Read::Current(list)) => Ok(list.entries().to_vec()),
        Some(Read::Older { .. }) | None => Err(none_yet(place.file())),
    }
}

/// Takes a token off the list; the beginning of its id is enough. It is refused from now on.
pub fn revoke(place: impl Into<TokenPlace>, id: &str) -> Result<Entry, TokenError> {
    edit(&place.into(), |list| list.remove(id))
}

fn edit<T: Send>(
    place: &TokenPlace,
    change: impl FnOnce(&mut List) -> Result<T, TokenError> + Send,
) -> Result<T, TokenError> {
    let file = place.file();
    if place.shared().is_none() && !file.exists() {
        return Err(none_yet(file)); // no lock is left where there is no state directory
    }
    place.change(|before| {
        let Some(Read::Current(mut list)) = before else { return Err(none_yet(file)) };
        let changed = change(&mut list)?;
        Ok((list, changed))
    })
}

/// `operator.token` or `worker.token`.
fn own_file(state: &Path, role: Role) -> PathBuf {
    state.join(format!("{role}.token"))
}

/// The directory's own token of a role, good and written down. Gives its text without the CA.
fn own_token(
    list: &mut List,
    path: &Path,
    role: Role,
    older: Option<String>,
    pin: &Pin,
    now: UnixSeconds,
) -> Result<String, TokenError> {
    let file = own_file(path.parent().unwrap_or_else(|| Path::new(".")), role);
    let io = |source| failed(&file, source);
    let written = private::read(&file).map_err(io)?.map(|text| parse(&file, &text)).transpose()?;
    let good = written.filter(|token| list.find(token.secret()).is_some_and(|entry| entry.is_alive(now)));
    let token = match (good, older) {
        (Some(token), _) => token,
        (None, Some(older)) => {
            let token = parse(path, older.as_bytes())?;
            list.add(token.secret(), role, "made by an older togl", now, None)?;
            token
        }
        (None, None) => {
            let token = Token::new(role, &random()?);
            list.add(token.secret(), role, "made with the state directory", now, None)?;
            token
        }
    };
    let token = token.pinned(pin.clone());
    private::write(&file, format!("{}\n", token.reveal()).as_bytes()).map_err(io)?;
    Ok(token.unpinned().reveal())
}

fn parse(path: &Path, text: &[u8]) -> Result<Token, TokenError> {
    let malformed = |reason: String| TokenError::Malformed { path: path.to_owned(), reason };
    let text = std::str::from_utf8(text).map_err(|error| malformed(error.to_string()))?;
    Token::parse(text).map_err(|error: NotAToken| malformed(error.to_string()))
}

fn failed(path: &Path, source: io::Error) -> TokenError {
    TokenError::Io { path: path.to_owned(), source }
}

fn none_yet(path: &Path) -> TokenError {
    failed(
        path,
        io::Error::new(io::ErrorKind::NotFound, "there are no tokens yet; `togl serve` makes the first ones"),
    )
}

fn random() -> Result<[u8; SECRET], TokenError> {
    let mut bytes = [0; SECRET];
    getrandom::fill(&mut bytes).map_err(TokenError::Random)?;
    Ok(bytes)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
