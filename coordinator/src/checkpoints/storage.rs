//! A bucket of S3-compatible storage, as far as a coordinator needs it: signs URLs for workers, who hold no keys, lists what is under
//! its prefix, and removes. Nothing else writes there, so the bucket is its own list. Decides nothing; everything that asks the
//! storage blocks. Signatures carry the time of the machine, because storage compares it with its own.

use std::fmt;
use std::time::Duration;

use rusty_s3::actions::{ListObjectsV2, S3Action};
use rusty_s3::{Bucket, Credentials, UrlStyle};
use togl_proto::storage::{self, StorageError};

/// How long a worker may use a URL.
const LENT: Duration = Duration::from_secs(15 * 60);

/// How long the coordinator itself needs one.
const OWN: Duration = Duration::from_secs(60);

/// Pages of a list, a thousand names each; more than fits into any room.
const MOST_PAGES: usize = 1_000;

/// How names of objects begin that somebody tried the storage with.
pub(super) const TRY: &str = "try-";

/// Why what was typed is no storage.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotStorage {
    /// It is not `https://HOST/BUCKET/PREFIX`.
    #[error("`{text}` is no address of storage: {reason}")]
    Address {
        /// What was typed, without what could be a secret.
        text: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A key is missing.
    #[error("there are no keys for the storage: {missing} is not set")]
    NoKeys {
        /// The variable.
        missing: &'static str,
    },
}

impl NotStorage {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Address { .. } => {
                "use https://HOST/BUCKET/PREFIX, such as https://s3.eu-central-1.amazonaws.com/lab/togl"
            }
            Self::NoKeys { .. } => {
                "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment of this coordinator; workers need none"
            }
        }
    }
}

/// A bucket, the part of it that is ours, and the keys to it.
#[derive(Clone)]
pub struct Storage {
    bucket: Bucket,
    /// Before every name: empty, or with a slash at its end.
    prefix: String,
    keys: Credentials,
    address: String,
}

/// An object of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    /// Its name without the prefix.
    pub(super) name: String,
    pub(super) size: u64,
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "storage at {}", self.address)
    }
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.address)
    }
}

impl Storage {
    /// The storage at this address, `https://HOST/BUCKET/PREFIX`, with the keys that the environment has. Asks nobody.
    pub fn new(
        address: &str,
        region: &str,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, NotStorage> {
        let refuse = |reason| NotStorage::Address { text: shown(address), reason };
        let (scheme, rest) = address.split_once("://").ok_or_else(|| refuse("it names no protocol"))?;
        if !matches!(scheme, "http" | "https") {
            return Err(refuse("it is neither http nor https"));
        }
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        if host.contains('@') {
            return Err(refuse("keys do not belong there, but into the environment"));
        }
        let path = path.trim_end_matches('/');
        let (name, prefix) = path.split_once('/').unwrap_or((path, ""));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/');
        if name.is_empty() {
            return Err(refuse("it names no bucket"));
        }
        if !path.chars().all(is_plain) || path.contains("//") {
            return Err(refuse("bucket and prefix have letters, digits, `.`, `-`, `_` and single slashes"));
        }
        let endpoint = format!("{scheme}://{host}").parse().ok().ok_or_else(|| refuse("it names no host"))?;
        let bucket = Bucket::new(endpoint, UrlStyle::Path, name.to_owned(), region.to_owned());
        let bucket = bucket.map_err(|_| refuse("it names no host"))?;
        let key = |name| {
            let set = variable(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
            set.ok_or(NotStorage::NoKeys { missing: name })
        };
        let (id, secret) = (key("AWS_ACCESS_KEY_ID")?, key("AWS_SECRET_ACCESS_KEY")?);
        let keys = match key("AWS_SESSION_TOKEN") {
            Ok(session) => Credentials::new_with_token(id, secret, session),
            Err(_) => Credentials::new(id, secret),
        };
        let prefix = if prefix.is_empty() { String::new() } else { format!("{prefix}/") };
        Ok(Self { bucket, prefix, keys, address: format!("{scheme}://{host}/{path}") })
    }

    /// A URL by which a worker puts an object of exactly so many bytes.
    pub(super) fn lend_put(&self, name: &str, size: u64) -> String {
        let object = self.object(name);
        let mut action = self.bucket.put_object(Some(&self.keys), &object);
        action.headers_mut().insert("content-length", size.to_string());
        action.sign(LENT).into()
    }

    /// A URL by which a worker gets an object.
    pub(super) fn lend_get(&self, name: &str) -> String {
        self.bucket.get_object(Some(&self.keys), &self.object(name)).sign(LENT).into()
    }

    /// How many bytes an object has.
    pub(super) fn size(&self, name: &str) -> Result<u64, StorageError> {
        let object = self.object(name);
        storage::size(self.bucket.head_object(Some(&self.keys), &object).sign(OWN).as_str())
    }

    /// Removes an object. Gone already is as good.
    pub(super) fn remove(&self, name: &str) -> Result<(), StorageError> {
        let object = self.object(name);
        storage::remove(self.bucket.delete_object(Some(&self.keys), &object).sign(OWN).as_str())
    }

    /// Everything under the prefix, by the time when it was written.
    pub(super) fn list(&self) -> Result<Vec<Object>, StorageError> {
        let (mut found, mut next) = (Vec::new(), None::<String>);
        for _ in 0..MOST_PAGES {
            let mut action = self.bucket.list_objects_v2(Some(&self.keys));
            action.with_prefix(self.prefix.as_str());
            if let Some(token) = next.take() {
                action.with_continuation_token(token);
            }
            let page = storage::ask(action.sign(OWN).as_str())?;
            let page = ListObjectsV2::parse_response(&page).map_err(|error| self.strange(&error))?;
            found.extend(page.contents.into_iter().filter_map(|object| {
                let name = object.key.strip_prefix(&self.prefix)?.to_owned();
                Some((object.last_modified, Object { name, size: object.size }))
            }));
            next = page.next_continuation_token;
            if next.is_none() {
                break;
            }
        }
        found.sort_by(|(one, _), (other, _)| one.cmp(other)); // of one form, so the earlier is the smaller
        Ok(found.into_iter().map(|(_, object)| object).collect())
    }

    /// Writes, reads, lists and removes one small object of this name, as everything else here needs it.
    pub(super) fn try_out(&self, name: &str) -> Result<(), StorageError> {
        let bytes = name.as_bytes();
        storage::put(&self.lend_put(name, bytes.len() as u64), bytes)?;
        let came = storage::get(&self.lend_get(name), bytes.len() as u64)?;
        let listed = self.list()?.iter().any(|object| object.name == name);
        self.remove(name)?;
        match (came == bytes, listed) {
            (true, true) => Ok(()),
            (false, _) => Err(self.strange(&"an object has other bytes than were written")),
            (true, false) => Err(self.strange(&"an object that was written is not in the list")),
        }
    }

    fn object(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    fn strange(&self, reason: &dyn fmt::Display) -> StorageError {
        StorageError::Strange { host: self.address.clone(), reason: reason.to_string() }
    }
}

/// What was typed, as far as it holds no secret.
fn shown(address: &str) -> String {
    let plain = address.split(['?', '#']).next().unwrap_or_default();
    match plain.rsplit_once('@') {
        Some((_, rest)) => format!("...@{rest}"),
        None => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(name: &str) -> Option<String> {
        match name {
            "AWS_ACCESS_KEY_ID" => Some("id".to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some(" very-secret\n".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn urls_are_signed_for_one_object_and_for_its_size_and_hold_no_secret() {
        let storage = Storage::new("http://127.0.0.1:9000/lab/togl/", "us-east-1", keys).unwrap();
        assert_eq!(storage.to_string(), "http://127.0.0.1:9000/lab/togl");
        let (put, get) = (storage.lend_put("a.checkpoint", 700), storage.lend_get("a.checkpoint"));
        for url in [&put, &get] {
            assert!(url.starts_with("http://127.0.0.1:9000/lab/togl/a.checkpoint?"), "{url}");
            assert!(url.contains("X-Amz-Expires=900") && !url.contains("very-secret"), "{url}");
        }
        assert!(put.contains("SignedHeaders=content-length%3Bhost"), "{put}");
        assert!(!format!("{storage:?}").contains("secret"));
    }

    #[test]
    fn what_is_no_address_is_refused_with_the_reason_and_without_what_could_be_a_secret() {
        for (address, reason) in [
            ("s3://lab/togl", "neither http nor https"),
            ("lab/togl", "names no protocol"),
            ("https://host", "names no bucket"),
            ("https://host/", "names no bucket"),
            ("https:///lab", "names no host"),
            ("https://id:hush@host/lab", "keys do not belong there"),
            ("https://host/lab/a b", "letters, digits"),
            ("https://host/lab/x?secret=hush", "letters, digits"),
        ] {
            let error = Storage::new(address, "r", keys).unwrap_err();
            assert!(error.to_string().contains(reason), "{address}: {error}");
            assert!(!format!("{error} {error:?}").contains("hush"), "{error:?}");
        }
        let error = Storage::new("https://host/lab", "r", |_| None).unwrap_err();
        assert_eq!(error, NotStorage::NoKeys { missing: "AWS_ACCESS_KEY_ID" });
    }
}
