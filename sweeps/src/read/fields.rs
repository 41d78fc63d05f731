//! Small steps of reading: a mapping with known keys, a list, a text, a number, each refused with its place, its key
//! path and the nearest name. Knows YAML trees and wording, nothing of sweeps.

use crate::keys::{self, Block};
use crate::nearest;
use crate::spec::SpecError;
use crate::yaml::{Key, LineColumn, Node, NodeKind};

pub(super) type Result<T> = std::result::Result<T, SpecError>;

/// An error at a place; the path stands in front unless it is the file itself.
pub(super) fn refuse<T>(at: LineColumn, path: &str, message: impl AsRef<str>) -> Result<T> {
    let message = message.as_ref();
    let message = if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") };
    Err(SpecError::new(at, message))
}

/// The path of a key below another.
pub(super) fn below(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// The entries of a mapping; nothing is an empty one.
pub(super) fn entries<'a>(node: &'a Node, path: &str) -> Result<&'a [(Key, Node)]> {
    match &node.kind {
        NodeKind::Map(entries) => Ok(entries),
        NodeKind::Null => Ok(&[]),
        _ => refuse(node.at, path, format!("expected a mapping, found {}", node.found())),
    }
}

/// A mapping whose keys are all known.
pub(super) struct Fields<'a> {
    pub path: &'a str,
    pub at: LineColumn,
    entries: &'a [(Key, Node)],
}

impl<'a> Fields<'a> {
    /// The mapping, if every key is one of `block`.
    pub fn read(node: &'a Node, path: &'a str, block: Block) -> Result<Self> {
        let entries = entries(node, path)?;
        for (key, _) in entries {
            if !keys::names(block).any(|known| known == key.text) {
                let hint = nearest::hint(&key.text, keys::names(block));
                return refuse(key.at, path, format!("unknown key `{}`; {hint}", key.text));
            }
        }
        Ok(Self { path, at: node.at, entries })
    }

    /// The value of a key that the file gives.
    pub fn get(&self, key: &str) -> Option<&'a Node> {
        self.entries.iter().find(|(known, _)| known.text == key).map(|(_, node)| node)
    }

    /// The key as it stands in the file, for errors that are about the key itself.
    pub fn key(&self, key: &str) -> Option<&'a Key> {
        self.entries.iter().find(|(known, _)| known.text == key).map(|(key, _)| key)
    }

    /// Keys and values in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &'a (Key, Node)> {
        self.entries.iter()
    }

    /// The path of a key of this mapping, as errors name it.
    pub fn below(&self, key: &str) -> String {
        below(self.path, key)
    }

    /// The value of a key that has to be there; `example` says how it is written.
    pub fn need(&self, key: &str, example: &str) -> Result<&'a Node> {
        let missing = || refuse(self.at, self.path, format!("the key `{key}` is missing; {example}"));
        self.get(key).map_or_else(missing, Ok)
    }

    /// A value read by `read`, or none if the key is absent.
    pub fn optional<T>(&self, key: &str, read: impl Fn(&'a Node, &str) -> Result<T>) -> Result<Option<T>> {
        self.get(key).map(|node| read(node, &self.below(key))).transpose()
    }
}

pub(super) fn list<'a>(node: &'a Node, path: &str) -> Result<&'a [Node]> {
    match &node.kind {
        NodeKind::List(entries) => Ok(entries),
        _ => refuse(node.at, path, format!("expected a list, found {}", node.found())),
    }
}

/// One mapping, or a list of them, each with its path.
pub(super) fn one_or_many<'a>(node: &'a Node, path: &str) -> Vec<(&'a Node, String)> {
    match &node.kind {
        NodeKind::List(entries) => {
            entries.iter().enumerate().map(|(at, entry)| (entry, format!("{path}[{at}]"))).collect()
        }
        _ => vec![(node, path.to_owned())],
    }
}

pub(super) fn text(node: &Node, path: &str) -> Result<String> {
    match &node.kind {
        NodeKind::Text(text) => Ok(text.clone()),
        NodeKind::Number(number) => Ok(number.to_string()),
        _ => refuse(node.at, path, format!("expected a text, found {}", node.found())),
    }
}

pub(super) fn whole(node: &Node, path: &str, least: u64, most: u64) -> Result<u64> {
    let number = match &node.kind {
        NodeKind::Number(number) => number.as_u64(),
        _ => None,
    };
    match number {
        Some(number) if (least..=most).contains(&number) => Ok(number),
        _ => {
            let range = match most {
                u64::MAX => format!("from {least} (below 2^64)"),
                _ => format!("from {least} to {most}"),
            };
            refuse(node.at, path, format!("expected a whole number {range}, found {}", node.found()))
        }
    }
}

pub(super) fn number(node: &Node, path: &str) -> Result<f64> {
    let number = match &node.kind {
        NodeKind::Number(number) => number.as_f64(),
        _ => None,
    };
    number.map_or_else(|| refuse(node.at, path, format!("expected a number, found {}", node.found())), Ok)
}

/// One of a few words.
pub(super) fn word<T>(
    node: &Node,
    path: &str,
    words: &'static [&'static str],
    read: impl Fn(&str) -> Option<T>,
) -> Result<T> {
    let written = text(node, path)?;
    named(read(&written), node.at, path, "unknown word", &written, words.iter().copied())
}

/// What a name stands for; where nothing is called so, which names there are.
pub(super) fn named<'a, T>(
    found: Option<T>,
    at: LineColumn,
    path: &str,
    unknown: &str,
    name: &str,
    names: impl Iterator<Item = &'a str> + Clone,
) -> Result<T> {
    found.map_or_else(|| refuse(at, path, format!("{unknown} `{name}`; {}", nearest::hint(name, names))), Ok)
}
