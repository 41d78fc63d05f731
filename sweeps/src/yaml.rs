//! YAML text as a tree in which every key and value knows its line and column. Anchors, aliases and merge keys are
//! resolved, a key given twice is refused, and the parser's budget stops files that would explode. Knows nothing of
//! sweeps.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};
use serde_yaml::{Location, Spanned};

use crate::spec::SpecError;

/// Line and column, from 1, where known.
pub(crate) type Place = Option<(u64, u64)>;

/// A value and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub at: Place,
    pub kind: Kind,
}

/// A key and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub at: Place,
    pub text: String,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind {
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
    let root: Spanned<Kind> = serde_yaml::from_str_with_options(text, options).map_err(|e| explain(&e))?;
    Ok(root.into())
}

fn place(location: Location) -> Place {
    (location != Location::UNKNOWN).then(|| (location.line(), location.column()))
}

impl From<Spanned<Kind>> for Node {
    fn from(spanned: Spanned<Kind>) -> Self {
        Self { at: place(spanned.referenced), kind: spanned.value }
    }
}

impl Node {
    /// A scalar as JSON; none for lists and mappings.
    pub fn scalar(&self) -> Option<Value> {
        match &self.kind {
            Kind::Null => Some(Value::Null),
            Kind::Flag(flag) => Some(Value::Bool(*flag)),
            Kind::Number(number) => Some(Value::Number(number.clone())),
            Kind::Text(text) => Some(Value::String(text.clone())),
            Kind::List(_) | Kind::Map(_) => None,
        }
    }

    /// What stands here, for an error message.
    pub fn found(&self) -> String {
        match &self.kind {
            Kind::Null => "nothing".to_owned(),
            Kind::List(_) => "a list".to_owned(),
            Kind::Map(_) => "a mapping".to_owned(),
            Kind::Flag(flag) => format!("`{flag}`"),
            Kind::Number(number) => format!("`{number}`"),
            Kind::Text(text) => quoted(text).unwrap_or_else(|| format!("`{text}`")),
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

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KindVisitor)
    }
}

struct KindVisitor;

impl<'de> Visitor<'de> for KindVisitor {
    type Value = Kind;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Kind, E> {
        Ok(Kind::Flag(flag))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Kind, E> {
        Ok(Kind::Number(number.into()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Kind, E> {
        Ok(Kind::Number(number.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Kind, E> {
        Number::from_f64(number).map(Kind::Number).ok_or_else(|| E::custom("not a finite number"))
    }

    fn visit_str<E>(self, text: &str) -> Result<Kind, E> {
        Ok(Kind::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Kind, E> {
        Ok(Kind::Text(text))
    }

    fn visit_unit<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_none<E>(self) -> Result<Kind, E> {
        Ok(Kind::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Kind, D::Error> {
        Kind::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Kind, A::Error> {
        let mut entries: Vec<Node> = Vec::new();
        while let Some(entry) = list.next_element::<Spanned<Kind>>()? {
            entries.push(entry.into());
        }
        Ok(Kind::List(entries))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Kind, A::Error> {
        let mut entries: Vec<(Key, Node)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while let Some((key, value)) = map.next_entry::<Spanned<String>, Spanned<Kind>>()? {
            if !seen.insert(key.value.clone()) {
                return Err(A::Error::custom(format!(
                    "the key `{}` is given twice; keep one of them",
                    key.value
                )));
            }
            entries.push((Key { at: place(key.referenced), text: key.value }, value.into()));
        }
        Ok(Kind::Map(entries))
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
