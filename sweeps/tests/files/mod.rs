//! The files that tests look at: sweeps that we ship, and bad ones.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

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

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    yaml_files(folder, &mut files);
    files.sort();
    files
}

/// Every sweep that we ship, in order.
#[allow(dead_code, reason = "not every test looks at shipped files")]
pub fn shipped() -> Vec<PathBuf> {
    let bad = root().join("tests");
    sorted(&root()).into_iter().filter(|path| !path.starts_with(&bad)).collect()
}

/// Every bad file, in order.
#[allow(dead_code, reason = "not every test looks at bad files")]
pub fn bad() -> Vec<PathBuf> {
    sorted(&root().join("tests/bad"))
}

/// The folder of this crate.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
