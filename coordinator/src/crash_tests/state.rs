//! A state directory that is made while the process ends: tokens and certificates are whole or not there, and a token
//! that somebody was shown is good after the next start.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use tempfile::TempDir;
use togl_proto::token::Token;

use super::run;
use crate::certificates::Authority;
use crate::tokens::{self, Registry, Role};

/// What the child does: all that `togl serve` does to a state directory, then a further token, which is shown.
pub(super) fn make(folder: &Path) {
    let authority = Authority::load_or_create(folder).unwrap();
    let list = folder.join("tokens.json");
    let (_, own) = Registry::open(&list, &authority.pin(), 1).unwrap();
    let (further, _) = tokens::create(&list, Role::Viewer, "further", None, 1).unwrap();
    let mut shown = OpenOptions::new().create(true).append(true).open(folder.join("shown")).unwrap();
    for token in [own.operator, own.worker, further.unpinned().reveal()] {
        shown.write_all(format!("{token}\n").as_bytes()).unwrap();
    }
}

#[test]
fn tokens_and_certificates_survive_an_end_at_any_point() {
    // The key and the certificate of the CA, two own tokens, the list, and the list with the further token.
    let (mut points, files) = (Vec::new(), 6);
    for count in 1..=files {
        points.extend([format!("synced:{count}"), format!("renamed:{count}")]);
    }
    for point in points {
        let folder = TempDir::new().unwrap();
        let path = folder.path();
        let run = |crash| run("state", "memory:", path, crash);
        assert!(!run(Some(&point)).success(), "{point} was not reached");
        run(None);
        let before = Authority::load_or_create(path).unwrap().pin();
        run(None);
        let authority = Authority::load_or_create(path).unwrap();
        assert_eq!(authority.pin(), before, "{point}: the CA stays the same once it is there");
        let (registry, _) = Registry::open(&path.join("tokens.json"), &authority.pin(), 2).unwrap();
        for token in fs::read_to_string(path.join("shown")).unwrap().lines() {
            let token = Token::parse(token).unwrap();
            assert!(
                registry.check(token.secret(), 2).is_some(),
                "{point}: a token that was shown is not good"
            );
        }
        assert!(!path.join("tokens.partial").exists(), "{point}: nothing half written is left");
    }
}

#[test]
fn a_state_directory_that_crashed_after_its_ca_was_known_keeps_it() {
    let folder = TempDir::new().unwrap();
    // The certificate is there, so somebody may have its fingerprint already.
    assert!(!run("state", "memory:", folder.path(), Some("renamed:2")).success());
    let pin = Authority::load_or_create(folder.path()).unwrap().pin();
    run("state", "memory:", folder.path(), None);
    assert_eq!(Authority::load_or_create(folder.path()).unwrap().pin(), pin);
}
