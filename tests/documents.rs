//! What the documents point to is there: every relative link of every Markdown file, and the heading that it names. And no text that
//! people get tells them to install a package by a name that is not ours.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Every Markdown file of the project.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with('.') || name.starts_with("demo-") || ["target", "dist"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            documents(&path, found);
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// The lines that are text, not code.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// How a heading is pointed to.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter_map(|(_, line)| line.strip_prefix('#'));
    headings.map(|heading| anchor(heading.trim_start_matches('#'))).collect()
}

/// What a line points to, outside of code.
fn targets(line: &str) -> Vec<&str> {
    let outside = line.split('`').step_by(2).collect::<Vec<_>>();
    let in_text = outside.iter().flat_map(|text| text.split("](").skip(1));
    let in_text = in_text.filter_map(|rest| rest.split(')').next());
    // A link whose words are code has its target in the next piece, which begins with the end of its words.
    in_text.collect()
}

fn broken(file: &Path, text: &str) -> Vec<String> {
    let mut broken = Vec::new();
    for (at, line) in prose(text) {
        for target in targets(line) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, heading) =
                target.split_once('#').map_or((target, None), |(path, heading)| (path, Some(heading)));
            let place = if path.is_empty() { file.to_owned() } else { file.parent().unwrap().join(path) };
            let is_there = place.exists();
            let heading_is_there = heading.is_none_or(|heading| {
                fs::read_to_string(&place).is_ok_and(|text| anchors(&text).contains(heading))
            });
            if !is_there || !heading_is_there {
                broken.push(format!("{}:{}: {target}", file.display(), at + 1));
            }
        }
    }
    broken
}

#[test]
fn every_link_of_every_document_leads_somewhere() {
    let mut files = Vec::new();
    documents(Path::new(env!("CARGO_MANIFEST_DIR")), &mut files);
    assert!(files.len() > 30, "{files:?}");
    let broken: Vec<String> =
        files.iter().flat_map(|file| broken(file, &fs::read_to_string(file).unwrap())).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.md");
    let text = "# One `two`, three\n[good](a.md#one-two-three) [`code`](a.md) [b](b.md)\n```\n[in code](x.md)\n```\n\
                `[also](x.md)` [c](#gone) [elsewhere](https://example.org/x)\n";
    fs::write(&file, text).unwrap();
    let found = broken(&file, text);
    let ends: Vec<&str> = found.iter().map(|line| line.rsplit(": ").next().unwrap()).collect();
    assert_eq!(ends, ["b.md", "#gone"]);
}

/// Files with text that people get: what programs print, documents, templates, the Python package.
fn shipped(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.starts_with('.')
            || ["target", "dist", "fixtures", "tests", "snapshots"].contains(&name.as_str())
        {
            continue;
        }
        if path.is_dir() {
            shipped(&path, found);
        } else if [".md", ".rs", ".py", ".sh", ".yaml", ".service", ".js", ".html"]
            .iter()
            .any(|end| name.ends_with(end))
        {
            found.push(path);
        }
    }
}

/// Whether a line installs our package by its bare name: not from a file, nor from an address.
fn installs_by_name(line: &str) -> bool {
    line.replace("uninstall ", "").split("install ").skip(1).any(|rest| {
        let what = rest.trim_start_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '/' | '{'));
        let name = what.to_lowercase().replace('_', "-");
        name.starts_with("togl") && !what.contains(" @ ") && !what.contains(".whl")
    })
}

#[test]
fn no_text_that_we_ship_installs_a_package_by_its_bare_name() {
    let mut files = Vec::new();
    shipped(Path::new(env!("CARGO_MANIFEST_DIR")), &mut files);
    assert!(files.len() > 300, "{}", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let lines = text.lines().enumerate().filter(|(_, line)| installs_by_name(line));
        found.extend(lines.map(|(at, line)| format!("{}:{}: {line}", file.display(), at + 1)));
    }
    assert!(found.is_empty(), "{found:#?}");
    let by_name = ["pip ", "uv pip ", "pipx "].map(|tool| format!("`{tool}install {}`", "togl-sweeps"));
    assert!(by_name.iter().all(|line| installs_by_name(line)));
    assert!(!installs_by_name("pip install './togl_sweeps-1.2.3-py3-none-any.whl[worker]'"));
    assert!(!installs_by_name("pip install 'togl-sweeps[worker] @ https://host/a.whl'"));
    assert!(!installs_by_name("pip uninstall togl-sweeps"));
}
