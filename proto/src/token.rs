//! What a token looks like: `togl1.ROLE.SECRET`, perhaps followed by `.caPIN`, the fingerprint of the coordinator's
//! private CA. Splits and joins the parts; whether a token is good is for the coordinator to say. A token never
//! shows itself in a debug print.

use std::fmt;
use std::str::FromStr;

use ring::digest::{SHA256, digest};

/// Digits of a fingerprint that travel with a token: 128 bits, far too many to find another certificate for.
const PIN_DIGITS: usize = 32;

togl_sweeps::words!(
    /// What a token allows.
    Role {
        /// May read everything and change everything.
        Operator = "operator",
        /// May read everything and change nothing.
        Viewer = "viewer",
        /// May train, and nothing else.
        Worker = "worker",
    }
);

impl Role {
    /// With its article, for sentences.
    pub fn with_article(self) -> &'static str {
        match self {
            Self::Operator => "an operator",
            Self::Viewer => "a viewer",
            Self::Worker => "a worker",
        }
    }
}

/// A word that is no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a role; use operator, viewer or worker")]
pub struct UnknownRole(String);

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        Self::from_word(text).ok_or_else(|| UnknownRole(text.to_owned()))
    }
}

/// The fingerprint of a CA: the first 128 bits of the SHA-256 of its certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin(String);

impl Pin {
    /// Of a certificate in DER.
    pub fn of(certificate: &[u8]) -> Self {
        let digits: String =
            digest(&SHA256, certificate).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Self(digits[..PIN_DIGITS].to_owned())
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("ca")?;
        let plain =
            digits.len() == PIN_DIGITS && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        plain.then(|| Self(digits.to_owned()))
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A token in two parts: what proves who calls, and who must answer.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    secret: String,
    pin: Option<Pin>,
}

/// A text that cannot be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the token is not made of letters, digits, dots and dashes; copy it again from where it was printed")]
pub struct NotAToken;

impl Token {
    /// A token of a role from random bytes.
    pub fn new(role: Role, random: &[u8]) -> Self {
        let digits: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { secret: format!("togl1.{role}.{digits}"), pin: None }
    }

    /// Takes a text apart. Spaces around it are forgiven.
    pub fn parse(text: &str) -> Result<Self, NotAToken> {
        let text = text.trim();
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        if text.is_empty() || text.len() > 512 || !text.bytes().all(plain) {
            return Err(NotAToken);
        }
        let (secret, pin) = match text.rsplit_once('.').map(|(rest, last)| (rest, Pin::parse(last))) {
            Some((rest, Some(pin))) => (rest, Some(pin)),
            _ => (text, None),
        };
        Ok(Self { secret: secret.to_owned(), pin })
    }

    /// What is sent to the coordinator.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    /// The role that it says it has; older ones say none. Only the coordinator knows whether that is so.
    pub fn role(&self) -> Option<Role> {
        self.secret.split('.').nth(1)?.parse().ok()
    }

    /// The CA that must have signed the coordinator's certificate; without one the connection is not encrypted.
    pub fn pin(&self) -> Option<&Pin> {
        self.pin.as_ref()
    }

    /// The same token for connections to the holder of this CA.
    pub fn pinned(mut self, pin: Pin) -> Self {
        self.pin = Some(pin);
        self
    }

    /// The same token for connections that are not encrypted.
    pub fn unpinned(mut self) -> Self {
        self.pin = None;
        self
    }

    /// The whole token as text. The only way to see it; never log it.
    pub fn reveal(&self) -> String {
        match &self.pin {
            Some(pin) => format!("{}.ca{pin}", self.secret),
            None => self.secret.clone(),
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_apart_and_put_together_again() {
        let pin = Pin::of(b"a certificate");
        let token = Token::new(Role::Worker, &[0xab; 24]).pinned(pin.clone());
        let text = token.reveal();
        assert!(text.starts_with("togl1.worker.abab"), "{text}");
        let read = Token::parse(&format!(" {text}\n")).unwrap();
        assert_eq!((&read, read.role()), (&token, Some(Role::Worker)));
        assert_eq!((read.secret(), read.pin()), (&text[..text.len() - 35], Some(&pin)));
        assert!(!format!("{read:?}").contains("abab"));
        assert_eq!(Token::parse(&text).unwrap().unpinned().reveal(), read.secret());
    }

    #[test]
    fn an_older_token_is_a_secret_without_a_pin() {
        let old = Token::parse("togl-worker-00ff").unwrap();
        assert_eq!((old.secret(), old.pin(), old.role()), ("togl-worker-00ff", None, None));
        for nonsense in ["", "two words", "schlüssel", "a\u{7}b"] {
            assert_eq!(Token::parse(nonsense), Err(NotAToken), "{nonsense}");
        }
    }

    #[test]
    fn roles_read_back() {
        for role in Role::ALL {
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        assert!("root".parse::<Role>().is_err());
    }
}
