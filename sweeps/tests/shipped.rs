//! The sweep files that we ship: each is understood, and its identities are pinned, so that an upgrade which would
//! silently train everything again fails here.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use togl_sweeps::SweepSpec;

fn yaml_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            yaml_files(&path, found);
        } else if path.extension().is_some_and(|e| e == "yaml") {
            found.push(path);
        }
    }
}

/// `file: trials, folds, digest of all trial ids`, one line a file.
fn summary() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    yaml_files(root, &mut files);
    files.sort();
    let line = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap();
        let spec = SweepSpec::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let trials = spec.trials().unwrap();
        let ids: String = trials.iter().map(|trial| trial.id.to_string()).collect();
        let digest = &blake3::hash(ids.as_bytes()).to_hex()[..16];
        let folds = trials.len() * spec.splits.len() * spec.seeds.len();
        let name = path.strip_prefix(root).unwrap().display().to_string();
        format!("{name}: {} trials, {folds} folds, {digest}\n", trials.len())
    };
    files.iter().map(line).collect()
}

#[test]
fn shipped_sweeps_are_understood_and_their_identities_are_pinned() {
    let pinned = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shipped.txt")).unwrap();
    assert_eq!(summary(), pinned, "if a change of identities is meant, update sweeps/tests/shipped.txt");
}
