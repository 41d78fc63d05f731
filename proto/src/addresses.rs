//! Where a coordinator may be: `HOST:PORT`, or several of them with commas where another one may have taken over. Owns the
//! spelling and the order in which they are tried; opens no connection.

use crate::client::ConnectError;

/// What stands between two addresses.
const BETWEEN: char = ',';

/// The addresses of a text, in the order in which they are tried.
pub fn each(addresses: &str) -> impl Iterator<Item = &str> {
    addresses.split(BETWEEN).map(str::trim)
}

/// Whether all of them are of this machine for sure.
pub fn are_local(addresses: &str) -> bool {
    let is_local = |address: &str| {
        address.parse::<std::net::SocketAddr>().is_ok_and(|address| address.ip().is_loopback())
    };
    each(addresses).all(is_local)
}

/// What came of trying the addresses of a text, one after the other.
#[derive(Debug)]
pub(crate) struct Tried<'a> {
    addresses: &'a str,
    failed: Vec<(&'a str, String)>,
}

impl<'a> Tried<'a> {
    pub(crate) fn new(addresses: &'a str) -> Self {
        Self { addresses, failed: Vec::new() }
    }

    /// Notes that one does not answer, or gives the error back if trying another would only hide it: a wrong token or a
    /// coordinator with another CA.
    pub(crate) fn note(&mut self, address: &'a str, error: ConnectError) -> Result<(), ConnectError> {
        match error {
            ConnectError::Unreachable { reason, .. } | ConnectError::Stranger { reason, .. }
                if self.addresses.contains(BETWEEN) =>
            {
                self.failed.push((address, reason));
                Ok(())
            }
            other => Err(other),
        }
    }

    /// Says which ones did not answer before this one did.
    pub(crate) fn answered(self, by: &str) {
        if !self.failed.is_empty() {
            tracing::warn!("{}; going on with {by}", self.failures());
        }
    }

    /// None of them answers.
    pub(crate) fn in_vain(self) -> ConnectError {
        let (address, reason) = (self.addresses.to_owned(), self.failures());
        ConnectError::Unreachable { address, reason }
    }

    fn failures(&self) -> String {
        let each =
            self.failed.iter().map(|(address, reason)| format!("{address} does not answer ({reason})"));
        each.collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_local_if_all_of_it_is() {
        assert_eq!(each("a:1, b:2").collect::<Vec<_>>(), ["a:1", "b:2"]);
        assert!(are_local("127.0.0.1:1") && are_local("127.0.0.1:1,[::1]:2"));
        for other in ["127.0.0.1:1,10.0.0.1:1", "localhost:1", "", "127.0.0.1:1,"] {
            assert!(!are_local(other), "{other}");
        }
    }

    #[test]
    fn all_that_do_not_answer_are_named_and_an_impostor_is_told_at_once() {
        let silent = |address: &str| ConnectError::Unreachable {
            address: address.to_owned(),
            reason: "refused".to_owned(),
        };
        let mut tried = Tried::new("a:1,b:2");
        tried.note("a:1", silent("a:1")).unwrap();
        let impostor = || ConnectError::Impostor { address: "b:2".to_owned() };
        assert!(matches!(tried.note("b:2", impostor()), Err(ConnectError::Impostor { .. })));
        tried.note("b:2", silent("b:2")).unwrap();
        assert_eq!(
            tried.in_vain().to_string(),
            "no coordinator answers at a:1,b:2: a:1 does not answer (refused), b:2 does not answer (refused)"
        );
        let alone = Tried::new("a:1").note("a:1", silent("a:1")).unwrap_err();
        assert_eq!(alone.to_string(), "no coordinator answers at a:1: refused");
    }
}
