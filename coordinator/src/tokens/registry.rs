//! The tokens of a running coordinator as they are now. A list in a file is read again when the file has changed, which is
//! asked with every message; a list that coordinators share is asked for a few times a second, by a thread of its own.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::Duration;

use togl_proto::token::{Pin, Role};

use super::list::{self, Entry, List, Read, TokenId};
use super::place::TokenPlace;
use super::{Caller, TokenError, Tokens, UnixSeconds, own_token};
use crate::store::postgres::{PostgresAccess, SharedTokens};

/// Between two looks at a list that is shared.
const LOOK: Duration = Duration::from_millis(250);

/// See the file's documentation.
#[derive(Debug)]
pub struct Registry {
    source: Source,
    known: Arc<RwLock<Known>>,
}

/// Who says what the list is.
#[derive(Debug)]
enum Source {
    /// This process alone.
    Fixed,
    File(PathBuf),
    /// The store; a thread takes the list from there.
    Store,
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
    /// The registry of a place, with the directory's own tokens: made now if there are none or the old ones ended,
    /// and written again so that they name the CA. An older file of two plain tokens is taken over.
    pub fn open(
        place: impl Into<TokenPlace>,
        pin: &Pin,
        now: UnixSeconds,
    ) -> Result<(Self, Tokens), TokenError> {
        let place = place.into();
        let file = place.file();
        let (list, tokens) = place.change(|before| {
            let (mut list, [operator, worker]) = match before {
                Some(Read::Current(list)) => (list, [None, None]),
                Some(Read::Older { operator, worker }) => (List::default(), [Some(operator), Some(worker)]),
                None => (List::default(), [None, None]),
            };
            let mut own = |role, older| own_token(&mut list, file, role, older, pin, now);
            let (operator, worker) = (own(Role::Operator, operator)?, own(Role::Worker, worker)?);
            Ok((list.clone(), (list, Tokens { operator, worker })))
        })?;
        let known = Arc::new(RwLock::new(Known { list, ..Known::default() }));
        let source = match place.shared().cloned() {
            Some(access) => {
                follow(place, access, &known)?;
                Source::Store
            }
            None => Source::File(place.file().to_owned()),
        };
        Ok((Self { source, known }, tokens))
    }

    /// A registry of these two tokens alone, without a file.
    pub fn of(tokens: &Tokens) -> Result<Self, TokenError> {
        let mut list = List::default();
        for (token, role) in [(&tokens.operator, Role::Operator), (&tokens.worker, Role::Worker)] {
            list.add(token, role, "", 0, None)?;
        }
        let known = Arc::new(RwLock::new(Known { list, ..Known::default() }));
        Ok(Self { source: Source::Fixed, known })
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
        let path = match &self.source {
            Source::File(path) => path,
            Source::Fixed | Source::Store => return self.read(),
        };
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
            Ok(Read::Current(list)) => self.take(list),
            Ok(Read::Older { .. }) => self.complain("it is one of an older togl".to_owned()),
            Err(reason) => self.complain(reason),
        }
    }

    fn take(&mut self, list: List) {
        (self.list, self.wrong) = (list, String::new());
    }

    /// Once, not with every message: a file that is gone is looked for again and again.
    fn complain(&mut self, wrong: String) {
        if wrong != self.wrong {
            tracing::warn!(wrong, "the list of tokens cannot be read; the tokens that were known stay good");
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

/// Takes the list from the store for as long as the registry is there.
fn follow(place: TokenPlace, access: PostgresAccess, known: &Arc<RwLock<Known>>) -> Result<(), TokenError> {
    let known = Arc::downgrade(known);
    let thread = std::thread::Builder::new().name("togl-tokens".to_owned());
    let started = thread.spawn(move || {
        let mut follower = Follower { place, access, link: None, number: 0 };
        while look(&mut follower, &known) {
            std::thread::sleep(LOOK);
        }
    });
    started.map(drop).map_err(|source| super::failed(Path::new("the store"), source))
}

/// One look. Says whether anybody still wants to know.
fn look(follower: &mut Follower, known: &Weak<RwLock<Known>>) -> bool {
    let found = follower.look();
    let Some(known) = known.upgrade() else { return false };
    let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
    match found {
        Ok(Some(list)) => known.take(list),
        Ok(None) if known.wrong.is_empty() => {}
        Ok(None) => known.wrong = String::new(), // the store answers again
        Err(error) => known.complain(error.to_string()),
    }
    true
}

/// Whoever asks the store for its list.
struct Follower {
    place: TokenPlace,
    access: PostgresAccess,
    /// Gone after an error; made again with the next look.
    link: Option<SharedTokens>,
    number: i64,
}

impl Follower {
    /// The list, if it is another one than before.
    fn look(&mut self) -> Result<Option<List>, TokenError> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => SharedTokens::connect(&self.access)?,
        };
        let found = link.other_than(self.number)?;
        self.link = Some(link);
        let Some(numbered) = found else { return Ok(None) };
        self.number = numbered.0;
        self.place.copied(&numbered).map(Some)
    }
}
