//! Who may do what: tokens with roles, names and expiry. The list in `tokens.json` keeps hashes only; the two tokens
//! that a state directory makes for itself lie beside it as `operator.token` and `worker.token`. The file is the
//! truth: whoever changes it (`togl token`) is heeded at the next check, without a restart.

mod list;

use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use togl_proto::token::{NotAToken, Pin, Token};

pub use self::list::{Entry, TokenId};
use self::list::{List, Read};
use crate::private;
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
        let token = |role| Ok(Token::new(role, &random()?).reveal());
        Ok(Self { operator: token(Role::Operator)?, worker: token(Role::Worker)? })
    }
}

/// Why there are no tokens.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read or written.
    #[error("cannot use the token file {}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not one of ours.
    #[error("{} is not a token file: {reason}; move it away to have new tokens made", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// There are too many.
    #[error("there are {0} tokens already, which is the limit; revoke some")]
    TooMany(usize),
    /// No token has this id.
    #[error("there is no token `{0}`; `togl token list` shows them")]
    Unknown(String),
    /// Several tokens have an id that begins like this.
    #[error("several tokens begin with `{0}`; write more of the id")]
    Ambiguous(String),
    /// The system gives no random numbers.
    #[error("the system gives no random numbers: {0}")]
    Random(getrandom::Error),
}

/// Who calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// By which token.
    pub token: TokenId,
    /// What it allows.
    pub role: Role,
}

/// The tokens of a state directory as they are now.
#[derive(Debug)]
pub struct Registry {
    /// None if the tokens are in no file.
    path: Option<PathBuf>,
    known: RwLock<Known>,
}

/// The list as last read, and which file that was.
#[derive(Debug, Default)]
struct Known {
    list: List,
    stamp: Option<Stamp>,
    /// The file that the list was read from, kept open.
    file: Option<File>,
    /// What is wrong with it.
    wrong: String,
}

/// The generation of a list: another one whenever its file is written to, moved or replaced, because the time of its last
/// change and the number of its names tell. Asked of the open file, which costs a quarter of a microsecond, with every
/// message; the file is read only when it has changed.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    names: u64,
    size: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn of(file: &File) -> Option<Self> {
        let about = file.metadata().ok()?;
        let changed = (about.ctime(), about.ctime_nsec());
        Some(Self { names: about.nlink(), size: about.len(), changed })
    }
}

impl Registry {
    /// The registry of `path`, with the directory's own tokens: made now if there are none or the old ones ended,
    /// and written again so that they name the CA. An older file of two plain tokens is taken over.
    pub fn open(path: &Path, pin: &Pin, now: UnixSeconds) -> Result<(Self, Tokens), TokenError> {
        let _guard = private::lock(path).map_err(|source| failed(path, source))?;
        let (mut list, [operator, worker]) = match read(path)? {
            Some(Read::Current(list)) => (list, [None, None]),
            Some(Read::Older { operator, worker }) => (List::default(), [Some(operator), Some(worker)]),
            None => (List::default(), [None, None]),
        };
        let mut own = |role, older| own_token(&mut list, path, role, older, pin, now);
        let (operator, worker) = (own(Role::Operator, operator)?, own(Role::Worker, worker)?);
        save(path, &list)?;
        let known = RwLock::new(Known { list, ..Known::default() });
        Ok((Self { path: Some(path.to_owned()), known }, Tokens { operator, worker }))
    }

    /// A registry of these two tokens alone, without a file.
    pub fn of(tokens: &Tokens) -> Result<Self, TokenError> {
        let mut list = List::default();
        for (token, role) in [(&tokens.operator, Role::Operator), (&tokens.worker, Role::Worker)] {
            list.add(token, role, "", 0, None)?;
        }
        Ok(Self { path: None, known: RwLock::new(Known { list, ..Known::default() }) })
    }

    /// Who presents this, if it is a token that was neither revoked nor has expired. Takes as long for a near miss
    /// as for nonsense.
    pub fn check(&self, presented: &str, now: UnixSeconds) -> Option<Caller> {
        let known = self.known();
        known.list.find(presented).filter(|entry| entry.is_alive(now)).map(Entry::caller)
    }

    /// Whether a token that was good when its caller came is still good.
    pub fn is_alive(&self, token: &TokenId, now: UnixSeconds) -> bool {
        self.known().list.get(token).is_some_and(|entry| entry.is_alive(now))
    }

    /// What a token is called: by its name, or its id if it has none.
    pub fn name(&self, token: &TokenId) -> String {
        let known = self.known();
        let name = known.list.get(token).map(|entry| entry.name.clone()).filter(|name| !name.is_empty());
        name.unwrap_or_else(|| format!("token {token}"))
    }

    /// The list as it is in the file now. Everybody asks with every message, so the system is asked before the lock is
    /// taken and readers do not wait for each other.
    fn known(&self) -> RwLockReadGuard<'_, Known> {
        let Some(path) = &self.path else { return self.read() };
        let is_current = self.read().is_current();
        if !is_current {
            self.known.write().unwrap_or_else(PoisonError::into_inner).renew(path);
        }
        self.read()
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    /// Whether the list is still what its file says.
    fn is_current(&self) -> bool {
        let now = self.file.as_ref().and_then(Stamp::of);
        now.is_some() && now == self.stamp
    }

    /// Takes the list from its file, unless somebody else just did. A file that cannot be read leaves everything as it
    /// was: whoever damages it must not lock everybody out, nor let anybody in.
    fn renew(&mut self, path: &Path) {
        if self.is_current() {
            return;
        }
        match self.read_again(path) {
            Ok(Read::Current(list)) => (self.list, self.wrong) = (list, String::new()),
            Ok(Read::Older { .. }) => self.complain("it is one of an older togl".to_owned()),
            Err(reason) => self.complain(reason),
        }
    }

    /// Once, not with every message: a file that is gone is looked for again and again.
    fn complain(&mut self, wrong: String) {
        if wrong != self.wrong {
            tracing::warn!(wrong, "the token file cannot be read; the tokens that were known stay good");
            self.wrong = wrong;
        }
    }

    fn read_again(&mut self, path: &Path) -> Result<Read, String> {
        let mut text = Vec::new();
        let read = File::open(path).and_then(|file| {
            self.stamp = Stamp::of(&file);
            self.file.insert(file).read_to_end(&mut text)
        });
        read.map_err(|error| error.to_string())?;
        list::read(&text)
    }
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
    path: &Path,
    role: Role,
    name: &str,
    expires: Option<UnixSeconds>,
    now: UnixSeconds,
) -> Result<(Token, Entry), TokenError> {
    edit(path, |list| {
        let token = Token::new(role, &random()?);
        let entry = list.add(token.secret(), role, name, now, expires)?.clone();
        Ok((token, entry))
    })
}

/// All tokens that were not revoked, the oldest first.
pub fn list(path: &Path) -> Result<Vec<Entry>, TokenError> {
    match read(path)? {
        Some(Read::Current(list)) => Ok(list.entries().to_vec()),
        Some(Read::Older { .. }) | None => Err(none_yet(path)),
    }
}

/// Takes a token off the list; the beginning of its id is enough. It is refused from now on.
pub fn revoke(path: &Path, id: &str) -> Result<Entry, TokenError> {
    edit(path, |list| list.remove(id))
}

fn edit<T>(path: &Path, change: impl FnOnce(&mut List) -> Result<T, TokenError>) -> Result<T, TokenError> {
    if !path.exists() {
        return Err(none_yet(path));
    }
    let _guard = private::lock(path).map_err(|source| failed(path, source))?;
    let Some(Read::Current(mut list)) = read(path)? else { return Err(none_yet(path)) };
    let changed = change(&mut list)?;
    save(path, &list)?;
    Ok(changed)
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

fn read(path: &Path) -> Result<Option<Read>, TokenError> {
    let Some(text) = private::read(path).map_err(|source| failed(path, source))? else { return Ok(None) };
    let read = list::read(&text).map_err(|reason| TokenError::Malformed { path: path.to_owned(), reason })?;
    Ok(Some(read))
}

fn save(path: &Path, list: &List) -> Result<(), TokenError> {
    let text = list.to_json().map_err(|error| failed(path, error.into()))?;
    private::write(path, &text).map_err(|source| failed(path, source))
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
