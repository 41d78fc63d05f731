//! The walls of the house: which crate may use which, asserted from `cargo metadata`. When this fails, either
//! the new arrow is a mistake or ARCHITECTURE.md has to change first.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

/// Of the packages that this platform builds: the others need not have been downloaded.
fn metadata() -> Metadata {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let rustc = Command::new("rustc").arg("-vV").output().unwrap();
    let said = String::from_utf8(rustc.stdout).unwrap();
    let host = said.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let options = ["--offline", "--filter-platform", host].map(str::to_owned);
    MetadataCommand::new().manifest_path(manifest).other_options(options).exec().unwrap()
}

/// Allowed arrows between our own crates; everything may use `togl-sweeps` and `togl-durable`. What only tests use is not an arrow: the
/// coordinator's worlds run the real agent, and the worker's crashes are seen by a real coordinator.
fn allowed() -> BTreeMap<&'static str, &'static [&'static str]> {
    BTreeMap::from([
        (
            "togl",
            &["togl-coordinator", "togl-analysis", "togl-proto", "togl-data", "togl-topology", "togl-web"]
                as &[_],
        ),
        ("togl-web", &[]),
        ("togl-durable", &[]),
        ("togl-sweeps", &[]),
        ("togl-proto", &[]),
        ("togl-scheduler", &[]),
        ("togl-coordinator", &["togl-scheduler", "togl-proto"]),
        ("togl-agent", &["togl-proto"]),
        ("togl-topology", &[]),
        ("togl-data", &["togl-topology"]),
        ("togl-learning", &["togl-data", "togl-topology"]),
        ("togl-worker", &["togl-agent", "togl-learning", "togl-data", "togl-proto"]),
        ("togl-analysis", &[]),
    ])
}

/// Normal dependencies (not for tests or builds) of each of our crates, by name.
fn direct(metadata: &Metadata) -> BTreeMap<String, BTreeSet<String>> {
    let normal = |package: &cargo_metadata::Package| {
        let used = package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal);
        used.map(|d| d.name.clone()).collect()
    };
    metadata.workspace_packages().into_iter().map(|p| (p.name.to_string(), normal(p))).collect()
}

/// Everything that a crate pulls in through normal dependencies, by name.
fn reached(metadata: &Metadata, name: &str) -> BTreeSet<String> {
    let graph = metadata.resolve.as_ref().unwrap();
    let nodes: BTreeMap<&PackageId, _> = graph.nodes.iter().map(|node| (&node.id, node)).collect();
    let start = metadata.workspace_packages().into_iter().find(|p| p.name.as_str() == name).unwrap();
    let (mut seen, mut waiting) = (BTreeSet::new(), vec![&start.id]);
    while let Some(id) = waiting.pop() {
        for dependency in &nodes[id].deps {
            let normal = dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal);
            if normal && seen.insert(&dependency.pkg) {
                waiting.push(&dependency.pkg);
            }
        }
    }
    seen.into_iter().map(|id| metadata[id].name.to_string()).collect()
}

#[test]
fn arrows_between_our_crates_are_those_of_the_map() {
    let allowed = allowed();
    for (name, used) in direct(&metadata()) {
        let ours =
            used.iter().filter(|d| d.starts_with("togl") && *d != "togl-sweeps" && *d != "togl-durable");
        let list = allowed.get(name.as_str()).unwrap_or_else(|| panic!("{name} is not on the map"));
        for arrow in ours {
            assert!(list.contains(&arrow.as_str()), "{name} -> {arrow} is not on the map");
        }
    }
}

#[test]
fn tensors_frames_sql_and_the_runtime_stay_in_their_rooms() {
    // (what, the only crates that may use it directly)
    let rooms: [(&str, &[&str]); 11] = [
        ("axum", &["togl-web"]),
        ("tch", &["togl-learning"]),
        ("torch-sys", &["togl-learning", "togl-worker"]),
        ("polars", &["togl-analysis"]),
        ("polars-io", &["togl-analysis"]),
        ("rusqlite", &["togl-coordinator"]),
        ("postgres", &["togl-coordinator"]),
        ("ratatui-core", &["togl"]),
        ("termion", &["togl"]),
        ("ureq", &["togl", "togl-data", "togl-proto"]),
        ("tonic", &["togl", "togl-proto", "togl-coordinator", "togl-agent"]),
    ];
    for (name, used) in direct(&metadata()) {
        for (what, owners) in rooms {
            assert!(!used.contains(what) || owners.contains(&name.as_str()), "{name} must not use {what}");
        }
    }
}

#[test]
fn the_pure_crates_pull_in_nothing_impure() {
    let metadata = metadata();
    for name in ["togl-durable", "togl-sweeps", "togl-scheduler", "togl-topology"] {
        let reached = reached(&metadata, name);
        for impure in ["tokio", "tonic", "rusqlite", "postgres", "tch", "polars"] {
            assert!(!reached.contains(impure), "{name} reaches {impure}");
        }
    }
}

#[test]
fn only_the_learning_side_needs_libtorch() {
    let metadata = metadata();
    for package in metadata.workspace_packages() {
        let may = ["togl-learning", "togl-worker"].contains(&package.name.as_str());
        assert!(
            may || !reached(&metadata, &package.name).contains("torch-sys"),
            "{} reaches libtorch",
            package.name
        );
    }
}

#[test]
fn every_source_file_says_what_it_owns() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut silent = Vec::new();
    for folder in ["src", "analysis/src", "coordinator", "durable/src", "proto/src", "sweeps/src", "worker"] {
        visit(&root.join(folder), &mut |path, text| {
            if !text.starts_with("//!") && !text.starts_with("/*!") {
                silent.push(path.display().to_string());
            }
        });
    }
    assert!(silent.is_empty(), "no paragraph at the top of {silent:#?}");
}

/// The lint of the compiler would ask for a comment above every field, and get one that repeats its name.
#[test]
fn what_other_crates_may_use_says_what_it_is_for() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut silent = Vec::new();
    for folder in ["analysis/src", "coordinator", "durable/src", "proto/src", "sweeps/src", "worker"] {
        visit(&root.join(folder), &mut |path, text| {
            let of_programs = path.starts_with(root.join("worker/src"));
            let of_tests = path
                .components()
                .any(|part| ["tests", "examples", "fuzz"].contains(&part.as_os_str().to_str().unwrap()));
            if !of_programs && !of_tests {
                silent.extend(undocumented(text).map(|line| format!("{}: {line}", path.display())));
            }
        });
    }
    assert!(silent.is_empty(), "no comment above {silent:#?}");
    let planted = "pub struct Said;\n/// Says it.\n#[derive(Debug)]\npub enum Word {\n    Yes,\n}\n";
    assert_eq!(undocumented(planted).collect::<Vec<_>>(), ["pub struct Said;"]);
}

/// Public types and functions without a comment, up to the tests of a file.
fn undocumented(text: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> =
        text.lines().map_while(|line| (line != "#[cfg(test)]").then(|| line.trim())).collect();
    let kinds =
        ["pub fn ", "pub async fn ", "pub const fn ", "pub struct ", "pub enum ", "pub trait ", "pub type "];
    let is_public = move |line: &str| kinds.iter().any(|kind| line.starts_with(kind));
    let mut said = false;
    lines.into_iter().filter(move |line| {
        let silent = is_public(line) && !said;
        // Attributes stand between a comment and what it is about; some take several lines. Macros hand comments on.
        said = line.starts_with("///")
            || line.starts_with("$(#[")
            || (said && !is_public(line) && !line.is_empty() && !line.ends_with(['{', ';']));
        silent
    })
}

fn visit(folder: &std::path::Path, look: &mut impl FnMut(&std::path::Path, &str)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            visit(&path, look);
        } else if path.extension().is_some_and(|e| e == "rs") {
            look(&path, &std::fs::read_to_string(&path).unwrap());
        }
    }
}
