//! Tokens from the first start to revocation, on real files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

const NOW: UnixSeconds = 1_800_000_000;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn list(&self) -> PathBuf {
        self.0.path().join("tokens.json")
    }

    fn open(&self) -> (Registry, Tokens) {
        Registry::open(&self.list(), &Pin::of(b"the CA"), NOW).unwrap()
    }
}

fn role(registry: &Registry, presented: &str) -> Option<Role> {
    registry.check(presented, NOW).map(|caller| caller.role)
}

#[test]
fn tokens_are_made_once_and_only_the_user_can_read_them() {
    let folder = Folder::new();
    let (_, first) = folder.open();
    let (registry, again) = folder.open();
    assert_eq!((&first.operator, &first.worker), (&again.operator, &again.worker));
    assert_eq!(role(&registry, &first.operator), Some(Role::Operator));
    assert_eq!(role(&registry, &first.worker), Some(Role::Worker));
    assert!(!format!("{first:?} {registry:?}").contains(&first.operator));
    for name in ["tokens.json", "operator.token", "worker.token"] {
        let mode = fs::metadata(folder.0.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let listed = fs::read_to_string(folder.list()).unwrap();
    let secret = first.worker.rsplit('.').next().unwrap();
    assert!(!listed.contains(secret), "the list keeps hashes only");
    let own = own(folder.0.path(), Role::Worker).unwrap();
    assert_eq!((own.pin(), own.secret()), (Some(&Pin::of(b"the CA")), first.worker.as_str()));
}

#[test]
fn what_is_not_a_token_is_nobody() {
    let (registry, tokens) = Folder::new().open();
    for presented in ["", &tokens.worker[..20], &format!("{}0", tokens.worker), "togl1.operator.00"] {
        assert_eq!(registry.check(presented, NOW), None, "{presented}");
    }
}

#[test]
fn a_new_token_works_at_once_and_a_revoked_one_no_more() {
    let folder = Folder::new();
    let (registry, _) = folder.open();
    let (token, entry) = create(&folder.list(), Role::Viewer, "wall display", None, NOW).unwrap();
    assert_eq!(role(&registry, token.secret()), Some(Role::Viewer));
    assert!(list(&folder.list()).unwrap().contains(&entry));
    assert!(registry.is_alive(&entry.id, NOW));
    assert_eq!(revoke(&folder.list(), &entry.id.to_string()[..4]).unwrap().name, "wall display");
    assert_eq!(role(&registry, token.secret()), None);
    assert!(!registry.is_alive(&entry.id, NOW), "who is connected with it is sent away");
    assert!(matches!(revoke(&folder.list(), "ffffffffffff"), Err(TokenError::Unknown(_))));
    assert!(matches!(revoke(&folder.list(), ""), Err(TokenError::Unknown(_))));
}

#[test]
fn a_token_ends_when_it_was_told_to() {
    let folder = Folder::new();
    let (registry, _) = folder.open();
    let (token, _) = create(&folder.list(), Role::Worker, "", Some(NOW + 60), NOW).unwrap();
    assert!(registry.check(token.secret(), NOW + 59).is_some());
    assert!(registry.check(token.secret(), NOW + 60).is_none());
}

#[test]
fn the_tokens_of_an_older_state_directory_go_on_working() {
    let folder = Folder::new();
    fs::write(folder.list(), r#"{"operator":"togl-op-0123","worker":"togl-worker-4567"}"#).unwrap();
    let (registry, tokens) = folder.open();
    assert_eq!((tokens.operator.as_str(), tokens.worker.as_str()), ("togl-op-0123", "togl-worker-4567"));
    assert_eq!(role(&registry, "togl-op-0123"), Some(Role::Operator));
    assert_eq!(role(&folder.open().0, "togl-worker-4567"), Some(Role::Worker));
    assert!(!fs::read_to_string(folder.list()).unwrap().contains("togl-op-0123"));
}

#[test]
fn a_directory_whose_own_token_was_revoked_makes_another() {
    let folder = Folder::new();
    let (registry, first) = folder.open();
    let leaked = registry.check(&first.worker, NOW).unwrap().token;
    revoke(&folder.list(), &leaked.to_string()).unwrap();
    let (registry, second) = folder.open();
    assert_ne!(first.worker, second.worker);
    assert_eq!((role(&registry, &first.worker), role(&registry, &second.worker)), (None, Some(Role::Worker)));
}

#[test]
fn a_file_that_is_not_ours_is_refused_and_left_alone() {
    let folder = Folder::new();
    for text in ["something else", r#"{"version":3,"tokens":[]}"#, r#"{"operator":"x"}"#] {
        fs::write(folder.list(), text).unwrap();
        let opened = Registry::open(&folder.list(), &Pin::of(b"the CA"), NOW);
        assert!(matches!(opened, Err(TokenError::Malformed { .. })), "{text}");
        assert_eq!(fs::read_to_string(folder.list()).unwrap(), text);
    }
}

#[test]
fn a_list_damaged_while_in_use_changes_nothing() {
    let folder = Folder::new();
    let (registry, tokens) = folder.open();
    fs::write(folder.list(), "{").unwrap();
    assert_eq!(role(&registry, &tokens.operator), Some(Role::Operator));
    fs::remove_file(folder.list()).unwrap();
    assert_eq!(role(&registry, &tokens.operator), Some(Role::Operator));
    assert_eq!(role(&registry, "togl1.operator.00"), None);
}

#[test]
fn a_list_that_is_moved_away_and_replaced_is_read_again() {
    let folder = Folder::new();
    let (registry, tokens) = folder.open();
    let (guest, entry) = create(&folder.list(), Role::Viewer, "guest", None, NOW).unwrap();
    let guest = guest.secret();
    assert_eq!(role(&registry, guest), Some(Role::Viewer));
    let aside = folder.list().with_extension("aside");
    fs::rename(folder.list(), &aside).unwrap();
    assert_eq!(role(&registry, guest), Some(Role::Viewer), "a list that is gone changes nothing");
    fs::copy(&aside, folder.list()).unwrap();
    revoke(&folder.list(), &entry.id.to_string()).unwrap();
    assert_eq!(role(&registry, guest), None);
    assert_eq!(role(&registry, &tokens.operator), Some(Role::Operator));
}
