//! The coordinator that serves this machine's own state directory: where it is announced, and the worker token that the
//! directory made for itself. Whoever may read that directory need not be told either.

use std::fs::File;
use std::path::Path;

use togl_proto::addresses::each;
use togl_proto::client::is_local;
use togl_proto::own_machine::Served;
use togl_sweeps::bounded;

/// Where the coordinator of this directory listens, as last announced.
pub fn address(state: &Path) -> Option<String> {
    Some(Served::find(state)?.address)
}

/// The address that is joined for the one typed. `localhost` means this machine and no other, so at the port of its own
/// coordinator no name server is asked where that is.
pub fn meant(state: &Path, typed: &str) -> String {
    match (typed.strip_prefix("localhost:"), address(state)) {
        (Some(port), Some(own)) if own.rsplit_once(':').is_some_and(|(_, its)| its == port) => {
            match is_local(&own) {
                true => own,
                false => format!("127.0.0.1:{port}"),
            }
        }
        _ => typed.to_owned(),
    }
}

/// The directory's worker token, if it is its coordinator that is meant by `address`.
pub fn token(state: &Path, address: &str) -> Option<String> {
    let port = |address: &str| address.rsplit_once(':').map(|(_, port)| port.to_owned());
    let own = self::address(state)?;
    let is_its_port = |address: &str| port(address).is_some() && port(address) == port(&own);
    let is_meant = is_local(address) && each(address).all(is_its_port);
    let token = File::open(state.join("worker.token")).ok().filter(|_| is_meant)?;
    bounded::text(token, bounded::SECRET).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_coordinator_is_found_with_its_token_and_nobody_else_gets_it() {
        let state = tempfile::tempdir().unwrap();
        assert_eq!((address(state.path()), token(state.path(), "127.0.0.1:7447")), (None, None));
        std::fs::write(state.path().join("coordinator.json"), r#"{"address":"127.0.0.1:7447","pid":1}"#)
            .unwrap();
        std::fs::write(state.path().join("worker.token"), "togl1.worker.x\n").unwrap();
        assert_eq!(address(state.path()).as_deref(), Some("127.0.0.1:7447"));
        assert_eq!(token(state.path(), "127.0.0.1:7447").as_deref(), Some("togl1.worker.x\n"));
        let reached = |typed: &str| token(state.path(), &meant(state.path(), typed));
        assert_eq!(meant(state.path(), "localhost:7447"), "127.0.0.1:7447");
        assert_eq!(reached("localhost:7447").as_deref(), Some("togl1.worker.x\n"));
        // Any other name may mean any machine.
        for other in [
            "127.0.0.1:7448",
            "localhost:7448",
            "localhost.example.org:7447",
            "example.org:7447",
            "nonsense",
            "127.0.0.1:7448,127.0.0.1:7447",
        ] {
            assert_eq!(reached(other), None, "{other}");
        }
        std::fs::write(state.path().join("coordinator.json"), r#"{"address":"0.0.0.0:7447","pid":1}"#)
            .unwrap();
        assert_eq!(reached("localhost:7447").as_deref(), Some("togl1.worker.x\n"), "it listens everywhere");
    }
}
