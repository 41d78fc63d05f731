//! YAML text as a tree in which every key and value knows its line and column. Anchors, aliases and merge keys are
//! resolved, a key given twice is refused, and the parser's budget stops files that would explode. Knows nothing of
//! sweeps.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_yaml::{Location, Spanned};

use crate::spec::SpecError;

/// Line and column, from 1, where known.
pub(crate) type LineColumn = Option<(u64, u64)>;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub at: LineColumn,
    pub kind: NodeKind,
}

/// A key and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub at: LineColumn,
    pub text: String,
}

#[derive(Debug, Clone)]
pub(crate) enum NodeKind {
    Null,
    Flag(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// Reads a text.
pub(crate) fn parse(text: &str) -> Result<Node, SpecError> {
    let options = serde_yaml::options! { with_snippet: false, strict_booleans: true, };
    let root: Spanned<NodeKind> =
        serde_yaml::from_str_with_options(text, options).map_err(|e| explain(&e))?;
    Ok(root.into())
}

fn place(location: Location) -> LineColumn {
    (location != Location::UNKNOWN).then(|| (location.line(), location.column()))
}

impl From<Spanned<NodeKind>> for Node {
    fn from(spanned: Spanned<NodeKind>) -> Self {
        Self { at: place(spanned.referenced), kind: spanned.value }
    }
}

impl Node {
    /// A scalar as JSON; none for lists and mappings.
    pub fn scalar(&self) -> Option<Value> {
        match &self.kind {
            NodeKind::Null => Some(Value::Null),
            NodeKind::Flag(flag) => Some(Value::Bool(*flag)),
            NodeKind::Number(number) => Some(Value::Number(number.clone())),
            NodeKind::Text(text) => Some(Value::String(text.clone())),
            NodeKind::List(_) | NodeKind::Map(_) => None,
        }
    }

    /// What stands here, for an error message.
    pub fn found(&self) -> String {
        match &self.kind {
            NodeKind::Null => "nothing".to_owned(),
            NodeKind::List(_) => "a list".to_owned(),
            NodeKind::Map(_) => "a mapping".to_owned(),
            NodeKind::Flag(flag) => format!("`{flag}`"),
            NodeKind::Number(number) => format!("`{number}`"),
            NodeKind::Text(text) => quoted(text).unwrap_or_else(|| format!("`{text}`")),
        }
    }
}

/// Says of text that would be a number or a flag without its quotes that it has some.
pub(crate) fn quoted(text: &str) -> Option<String> {
    let number =
        text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) && text.parse::<f64>().is_ok();
    let is_meant = number || matches!(text, "true" | "false");
    is_meant.then(|| format!("the quoted text \"{text}\" (leave the quotes away)"))
}

impl<'de> Deserialize<'de> for NodeKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = NodeKind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<NodeKind, E> {
        Ok(NodeKind::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<NodeKind, E> {
        Ok(NodeKind::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<NodeKind, E> {
        Ok(NodeKind::Number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<NodeKind, E> {
        Number::from_f64(number).map(NodeKind::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E>(self, text: &str) -> Result<NodeKind, E> {
        Ok(NodeKind::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<NodeKind, E> {
        Ok(NodeKind::Text(text))
    }

    fn visit_unit<E>(self) -> Result<NodeKind, E> {
        Ok(NodeKind::Null)
    }

    fn visit_none<E>(self) -> Result<NodeKind, E> {
        Ok(NodeKind::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<NodeKind, D::Error> {
        NodeKind::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<NodeKind, A::Error> {
        let mut entries: Vec<Node> = Vec::new();
        while let Some(entry) = list.next_element::<Spanned<NodeKind>>()? {
            entries.push(entry.into());
        }
        Ok(NodeKind::List(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NodeKind, A::Error> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Spanned<NodeKind>>()? {
            if !seen.insert(key.value.clone()) {
                return Err(A::Error::custom(format!(
                    "the key `{}` is given twice; keep one of them",
                    key.value
                )));
            }
            entries.push((Key { at: place(key.referenced), text: key.value }, value.into()));
        }
        Ok(NodeKind::Map(entries))
    }
}

/// Turns the parser's errors into ours.
fn explain(error: &serde_yaml::Error) -> SpecError {
    use serde_yaml::Error;
    let error = error.without_snippet();
    let at = place(error.location().unwrap_or(Location::UNKNOWN));
    match error {
        Error::DuplicateMappingKey { key, .. } => {
            let key = key.as_deref().unwrap_or("?");
            SpecError::new(at, format!("the key `{key}` is given twice; keep one of them"))
        }
        other => SpecError::new(at, in_our_words(&other.to_string())),
    }
}

/// The parser's message in our words, without the place that we put in front ourselves.
fn in_our_words(message: &str) -> String {
    if message.starts_with("multiple YAML documents") {
        return "a sweep file is one document; remove everything from `---` on".to_owned();
    }
    if message.starts_with("budget breached: Depth") {
        return "lists and maps are nested too deeply".to_owned();
    }
    if message.starts_with("budget breached") {
        return "the file is too large, or its aliases (`*name`) repeat too much; write a range or a grid instead".to_owned();
    }
    if message.starts_with("recursive references") {
        return "an alias (`*name`) stands inside of what it repeats".to_owned();
    }
    if message.starts_with("non-finite float") {
        return "not a finite number".to_owned();
    }
    let mut short = message;
    if let Some((before, after)) = message.rsplit_once(" at line ")
        && after.chars().all(|c| c.is_ascii_digit() || ", column".contains(c))
    {
        short = before;
    }
    short.to_owned()
}
