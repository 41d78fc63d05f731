//! How a PostgreSQL server is reached: what the text of an address says, with the part about TLS that the client
//! library does not know (`sslmode=verify-ca|verify-full`, `sslrootcert`). Reads text only; `tls` acts on it.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ::postgres::Config;
use ::postgres::config::{Host, SslMode};

/// A server, a database, and how far the server is trusted.
#[derive(Clone)]
pub struct PostgresAccess {
    config: Config,
    trust: Trust,
}

/// What a server has to show before it is believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trust {
    /// Nothing, and nothing is encrypted.
    Plain,
    /// Nothing, but the connection is encrypted.
    Encrypted,
    /// A certificate of one of the CAs in this file.
    Authority(PathBuf),
    /// The same, and the certificate names the host.
    AuthorityAndName(PathBuf),
}

impl PostgresAccess {
    /// What the server has to show. A socket of this machine needs no TLS, and PostgreSQL offers none there.
    pub(super) fn trust(&self) -> &Trust {
        let reached_by_network = self.config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(_)));
        if reached_by_network { &self.trust } else { &Trust::Plain }
    }
}

impl From<Config> for PostgresAccess {
    fn from(mut config: Config) -> Self {
        config.ssl_mode(SslMode::Disable);
        Self { config, trust: Trust::Plain }
    }
}

/// What the client library knows about it.
impl Deref for PostgresAccess {
    type Target = Config;

    fn deref(&self) -> &Config {
        &self.config
    }
}

/// Without the password.
impl fmt::Debug for PostgresAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access").field("config", &self.config).field("trust", &self.trust).finish()
    }
}

impl FromStr for PostgresAccess {
    type Err = String;

    /// Reads `postgres://...` or `host=... user=...`. The error never repeats the text, which may hold a password.
    fn from_str(text: &str) -> Result<Self, String> {
        let (rest, asked) = if text.contains("://") { from_url(text)? } else { from_pairs(text)? };
        let mut config: Config = rest.parse().map_err(|error| super::super::address::said(&error))?;
        let trust = trust(asked.mode.as_deref(), asked.root.as_deref())?;
        config.ssl_mode(if trust == Trust::Plain { SslMode::Disable } else { SslMode::Require });
        Ok(Self { config, trust })
    }
}

/// The part of an address that is ours.
#[derive(Default)]
struct Asked {
    mode: Option<String>,
    root: Option<String>,
}

impl Asked {
    /// Takes a setting if it is ours.
    fn takes(&mut self, key: &str, value: impl FnOnce() -> Result<String, String>) -> Result<bool, String> {
        match key {
            "sslmode" => self.mode = Some(value()?),
            "sslrootcert" => self.root = Some(value()?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn trust(mode: Option<&str>, root: Option<&str>) -> Result<Trust, String> {
    match (mode, root) {
        (None | Some("disable"), None) => Ok(Trust::Plain),
        (None | Some("disable"), Some(_)) => {
            Err("sslrootcert means nothing without TLS; add sslmode=verify-full".to_owned())
        }
        (Some("require"), None) => Ok(Trust::Encrypted),
        (Some("require" | "verify-ca"), Some(root)) => Ok(Trust::Authority(root.into())),
        (Some("verify-full"), Some(root)) => Ok(Trust::AuthorityAndName(root.into())),
        (Some(mode @ ("verify-ca" | "verify-full")), None) => {
            Err(format!("sslmode={mode} needs sslrootcert=FILE, a PEM file with the CA of the server"))
        }
        (Some(_), _) => Err("sslmode is disable, require, verify-ca or verify-full".to_owned()),
    }
}

/// Takes our settings out of the query of a URL.
fn from_url(text: &str) -> Result<(String, Asked), String> {
    let mut asked = Asked::default();
    let Some((base, query)) = text.split_once('?') else { return Ok((text.to_owned(), asked)) };
    let mut others = Vec::new();
    for pair in query.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !asked.takes(key, || unescaped(value))? {
            others.push(pair);
        }
    }
    let others = others.join("&");
    Ok((if others.is_empty() { base.to_owned() } else { format!("{base}?{others}") }, asked))
}

/// `%41` is `A`.
fn unescaped(text: &str) -> Result<String, String> {
    let wrong = || "a % is not followed by two hexadecimal digits".to_owned();
    let mut bytes = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    bytes.extend(parts.next().unwrap_or_default().bytes());
    for part in parts {
        let digits = part.get(..2).ok_or_else(wrong)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        bytes.extend(part.bytes().skip(2));
    }
    String::from_utf8(bytes).map_err(|_| "an escaped text is not UTF-8".to_owned())
}

/// Takes our settings out of `key=value` pairs, whose values may be quoted.
fn from_pairs(text: &str) -> Result<(String, Asked), String> {
    let (mut asked, mut others, mut rest) = (Asked::default(), String::new(), text.trim_start());
    while !rest.is_empty() {
        let Some((key, after)) = rest.split_once('=') else {
            others.push_str(rest); // the client library says what is wrong with it
            break;
        };
        let (value, length) = value(after.trim_start());
        let length = after.len() - after.trim_start().len() + length;
        if !asked.takes(key.trim(), || Ok(value))? {
            others.push_str(&rest[..key.len() + 1 + length]);
            others.push(' ');
        }
        rest = after[length..].trim_start();
    }
    Ok((others, asked))
}

/// A value at the beginning of `text`, and how many bytes it takes there.
fn value(text: &str) -> (String, usize) {
    let (mut value, mut escaped) = (String::new(), false);
    let quoted = text.starts_with('\'');
    for (at, letter) in text.char_indices().skip(usize::from(quoted)) {
        match letter {
            _ if escaped => {
                value.push(letter);
                escaped = false;
            }
            '\\' => escaped = true,
            '\'' if quoted => return (value, at + 1),
            _ if !quoted && letter.is_whitespace() => return (value, at),
            _ => value.push(letter),
        }
    }
    (value, text.len())
}

/// The file of CAs that is asked for.
impl Trust {
    pub(super) fn authorities(&self) -> Option<&Path> {
        match self {
            Self::Plain | Self::Encrypted => None,
            Self::Authority(file) | Self::AuthorityAndName(file) => Some(file),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Trust, Config), String> {
        text.parse::<PostgresAccess>().map(|access| (access.trust.clone(), access.config.clone()))
    }

    #[test]
    fn both_spellings_say_how_far_the_server_is_trusted() {
        let ca = || PathBuf::from("/a b/ca.pem");
        for (url, pairs, trust) in [
            ("", "", Trust::Plain),
            ("?sslmode=disable", " sslmode=disable", Trust::Plain),
            ("?sslmode=require", " sslmode = require", Trust::Encrypted),
            (
                "?sslmode=require&sslrootcert=%2fa%20b/ca.pem",
                " sslmode=require sslrootcert='/a b/ca.pem'",
                Trust::Authority(ca()),
            ),
            (
                "?sslrootcert=/a%20b/ca.pem&sslmode=verify-ca",
                " sslrootcert='/a b/ca.pem' sslmode=verify-ca",
                Trust::Authority(ca()),
            ),
            (
                "?connect_timeout=7&sslmode=verify-full&sslrootcert=/a%20b/ca.pem",
                " sslmode=verify-full sslrootcert=/a\\ b/ca.pem",
                Trust::AuthorityAndName(ca()),
            ),
        ] {
            let (found, config) = read(&format!("postgres://me@db/togl{url}")).unwrap();
            assert_eq!((found, config.get_dbname()), (trust.clone(), Some("togl")), "{url}");
            let (found, config) = read(&format!("host=db user=me{pairs} dbname=togl")).unwrap();
            assert_eq!((found, config.get_dbname()), (trust.clone(), Some("togl")), "{pairs}");
            let mode = if trust == Trust::Plain { SslMode::Disable } else { SslMode::Require };
            assert_eq!(config.get_ssl_mode(), mode);
        }
    }

    #[test]
    fn a_password_is_not_taken_for_a_setting() {
        let (trust, config) = read(r"host=db password='a sslmode=require \' b' user=me").unwrap();
        assert_eq!((trust, config.get_password()), (Trust::Plain, Some(&b"a sslmode=require ' b"[..])));
    }

    #[test]
    fn what_would_be_less_than_was_asked_for_is_refused() {
        for (settings, reason) in [
            ("sslmode=verify-full", "sslmode=verify-full needs sslrootcert=FILE"),
            ("sslrootcert=/ca.pem", "add sslmode=verify-full"),
            ("sslmode=prefer", "sslmode is disable, require, verify-ca or verify-full"),
            ("sslmode=verify-full&sslrootcert=%zz", "two hexadecimal digits"),
        ] {
            let refused = read(&format!("postgres://me:secret@db/togl?{settings}")).unwrap_err();
            assert!(refused.contains(reason) && !refused.contains("secret"), "{refused}");
        }
    }

    #[test]
    fn a_socket_of_this_machine_is_not_encrypted() {
        let access: PostgresAccess = "host=/run/postgresql user=me sslmode=require".parse().unwrap();
        assert_eq!(access.trust(), &Trust::Plain);
    }
}
