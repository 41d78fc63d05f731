//! The `program` block: what is run, which files it consists of, and which settings it declares. Whether files are there is
//! found out by who reads them.

use super::fields::{Fields, Result, below, entries, list, number, refuse, text, word};
use crate::bundle;
use crate::keys;
use crate::nearest;
use crate::program::{DeclaredKind, MOST_SETTINGS, Program, SHARED, declared};
use crate::scale::{Goal, Scale, ScaleError};
use crate::settings::{Setting, ValueKind, find};
use crate::yaml::{Key, Node, NodeKind};

/// Words of a command, or of a setting.
const MOST_WORDS: usize = 1_000;

/// The longest text of the block, in bytes.
const LONGEST: usize = 4_096;

/// The longest name of a setting, in bytes.
const LONGEST_NAME: usize = 64;

/// The largest whole number that floating-point numbers hold exactly: scripts of all languages read it as it is.
const MOST_WHOLE: u64 = 1 << 53;

/// The program of a file, if it has one.
pub(super) fn of_file(fields: &Fields<'_>) -> Result<Option<Program>> {
    let frozen = fields.optional("frozen", digest)?;
    let Some(node) = fields.get("program") else {
        return match fields.key("frozen") {
            Some(key) => refuse(key.at, "frozen", "stands without a `program`; remove the line"),
            None => Ok(None),
        };
    };
    Ok(Some(Program { frozen, ..program(node, "program")? }))
}

fn program(node: &Node, path: &str) -> Result<Program> {
    let fields = Fields::read(node, path, keys::PROGRAM)?;
    let run = fields.need("run", "say what is run, such as `run: [python3, train.py]`")?;
    let run = texts(run, &fields.below("run"), "a command")?;
    let files = fields.optional("files", names_of_files)?;
    let version = fields.optional("version", text)?;
    match (&files, &version, fields.get("version")) {
        (None, None, _) => {
            let message = "needs `files`, those that it consists of, or a `version` that you vouch for";
            return refuse(node.at, path, message);
        }
        (Some(_), Some(_), Some(version)) => {
            let message = "stands beside `files`, whose contents are the version; keep one of them";
            return refuse(version.at, &fields.below("version"), message);
        }
        _ => {}
    }
    let lock = fields.optional("lock", name_of_file)?;
    let settings = fields.optional("settings", settings)?.unwrap_or_default();
    let score = fields.optional("score", score)?.filter(|score| *score != Scale::SHARE);
    Ok(Program { run, files: files.unwrap_or_default(), lock, version, settings, score, frozen: None })
}

/// `{name: MAE, goal: min, range: [0, null]}`.
fn score(node: &Node, path: &str) -> Result<Scale> {
    let fields = Fields::read(node, path, keys::SCORE)?;
    let name = fields.need("name", "call it something, such as `name: MAE`")?;
    let goal = fields.need("goal", "say which values are better: `goal: max` or `goal: min`")?;
    let goal = word(goal, &fields.below("goal"), Goal::WORDS, Goal::from_word)?;
    let (low, high) = fields.optional("range", bounds)?.unwrap_or_default();
    let scale = Scale { goal, high, low, name: text(name, &fields.below("name"))?.into() };
    match scale.check() {
        Ok(()) => Ok(scale),
        Err(error @ ScaleError::Name) => refuse(name.at, &fields.below("name"), error.to_string()),
        Err(error @ (ScaleError::Bound { .. } | ScaleError::Empty { .. })) => {
            let at = fields.get("range").map_or(node.at, |range| range.at);
            refuse(at, &fields.below("range"), error.to_string())
        }
    }
}

/// Two bounds, of which `null` is none.
fn bounds(node: &Node, path: &str) -> Result<(Option<f64>, Option<f64>)> {
    let [low, high] = list(node, path)? else {
        let message = "a range is two numbers, the lower first; `null` where there is no bound";
        return refuse(node.at, path, message);
    };
    let bound = |node: &Node| match node.kind {
        NodeKind::Null => Ok(None),
        NodeKind::Number(_)
        | NodeKind::Flag(_)
        | NodeKind::Text(_)
        | NodeKind::List(_)
        | NodeKind::Map(_) => {
            Ok(Some(number(node, path)? + 0.0)) // one spelling of zero
        }
    };
    Ok((bound(low)?, bound(high)?))
}

fn digest(node: &Node, path: &str) -> Result<String> {
    let digest = text(node, path)?;
    if bundle::is_digest(&digest) {
        return Ok(digest);
    }
    refuse(node.at, path, "is no digest of 64 hexadecimal digits; togl writes this line, remove it")
}

fn texts(node: &Node, path: &str, of: &str) -> Result<Vec<String>> {
    let nodes = list(node, path)?;
    if nodes.is_empty() || nodes.len() > MOST_WORDS {
        let message = format!("expected {of} of 1 to {MOST_WORDS} words, found {}", nodes.len());
        return refuse(node.at, path, message);
    }
    let read = |(at, node): (usize, &Node)| {
        let (path, word) = (format!("{path}[{at}]"), text(node, path)?);
        if word.is_empty() || word.len() > LONGEST || word.contains('\0') {
            return refuse(node.at, &path, format!("expected a text of 1 to {LONGEST} bytes"));
        }
        Ok(word)
    };
    nodes.iter().enumerate().map(read).collect()
}

fn names_of_files(node: &Node, path: &str) -> Result<Vec<String>> {
    let nodes = list(node, path)?.iter().enumerate();
    let files: Vec<String> =
        nodes.map(|(at, node)| name_of_file(node, &format!("{path}[{at}]"))).collect::<Result<_>>()?;
    match files.len() {
        0 => refuse(node.at, path, "is empty; name the script at least, such as `[train.py]`"),
        1..=bundle::MOST_FILES => Ok(files),
        many => refuse(node.at, path, format!("names {many} files, more than {}", bundle::MOST_FILES)),
    }
}

fn name_of_file(node: &Node, path: &str) -> Result<String> {
    let name = text(node, path)?;
    match bundle::check_name(&name) {
        Ok(()) => Ok(name),
        Err(error) => refuse(node.at, path, error.to_string()),
    }
}

fn settings(node: &Node, path: &str) -> Result<Vec<&'static Setting>> {
    let entries = entries(node, path)?;
    if entries.len() > MOST_SETTINGS {
        return refuse(node.at, path, format!("has {} settings, more than {MOST_SETTINGS}", entries.len()));
    }
    entries.iter().map(|(key, node)| setting(key, node, &below(path, &key.text))).collect()
}

fn setting(key: &Key, node: &Node, path: &str) -> Result<&'static Setting> {
    check_name(key, path)?;
    let kind = kind(node, path)?;
    let own = find(&key.text).map(|setting| plain_kind(setting.kind));
    if let Some(own) = own
        && own != "text"
        && own != plain_word(&kind)
    {
        let message = format!(
            "togl has a setting of this name, which is a {own}, and both share a column of tables; declare it so or \
             call it something else"
        );
        return refuse(key.at, path, message);
    }
    match declared(&key.text, &kind) {
        Some(setting) => Ok(setting),
        None => refuse(key.at, path, "this program has seen too many different settings; restart it"),
    }
}

fn check_name(key: &Key, path: &str) -> Result<()> {
    let name = &key.text;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if SHARED.contains(&name.as_str()) {
        return refuse(key.at, path, "every trial has it; leave it out here and give it in `base` or `grid`");
    }
    if ["method", "preset", "when", "splits", "seeds", "priority"].contains(&name.as_str()) {
        return refuse(
            key.at,
            path,
            "this name means something else in a sweep file; call it something else",
        );
    }
    if name.len() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(plain)
    {
        return Ok(());
    }
    let message =
        format!("a setting is called by 1 to {LONGEST_NAME} letters, digits and `_`, a letter first");
    refuse(key.at, path, message)
}

/// `whole`, `[mean, sum]`, or `{from: 1, to: 512, whole: true}`.
fn kind(node: &Node, path: &str) -> Result<DeclaredKind> {
    match &node.kind {
        NodeKind::List(_) => Ok(DeclaredKind::Words(texts(node, path, "a list")?)),
        NodeKind::Map(_) => range(node, path),
        NodeKind::Null | NodeKind::Flag(_) | NodeKind::Number(_) | NodeKind::Text(_) => {
            let word = text(node, path)?;
            let kind = match word.as_str() {
                "number" => ValueKind::Real(f64::MIN, f64::MAX),
                "whole" => ValueKind::Whole(0, MOST_WHOLE),
                "flag" => ValueKind::Flag,
                "text" => ValueKind::Text,
                _ => {
                    let hint = nearest::hint(&word, keys::KINDS.iter().copied());
                    let message =
                        format!("unknown kind `{word}`; {hint}; or a list of words, or `{{from: 0, to: 1}}`");
                    return refuse(node.at, path, message);
                }
            };
            Ok(DeclaredKind::Plain(kind))
        }
    }
}

fn range(node: &Node, path: &str) -> Result<DeclaredKind> {
    let fields = Fields::read(node, path, keys::DECLARED)?;
    let bound = |key: &str| number(fields.need(key, "a range has `from` and `to`")?, &fields.below(key));
    let (from, to) = (bound("from")?, bound("to")?);
    if from > to {
        return refuse(node.at, path, format!("the range is empty: {from} is above {to}"));
    }
    match fields.get("whole").map(|node| &node.kind) {
        None | Some(NodeKind::Flag(false)) => Ok(DeclaredKind::Plain(ValueKind::Real(from, to))),
        Some(NodeKind::Flag(true)) => {
            let is_whole = |bound: f64| bound.fract() == 0.0 && (0.0..=MOST_WHOLE as f64).contains(&bound);
            if !is_whole(from) || !is_whole(to) {
                let message = format!("whole numbers are from 0 to {MOST_WHOLE}; found {from} and {to}");
                return refuse(node.at, path, message);
            }
            Ok(DeclaredKind::Plain(ValueKind::Whole(from as u64, to as u64)))
        }
        Some(_) => refuse(node.at, &fields.below("whole"), "expected `true` or `false`"),
    }
}

/// What a column of tables holds for it. Words of ours are text there, which everything can be.
fn plain_kind(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Text | ValueKind::Word(_) | ValueKind::Position => "text",
        ValueKind::Flag => "flag",
        ValueKind::Whole(..) => "whole number",
        ValueKind::Real(..) => "number",
    }
}

fn plain_word(kind: &DeclaredKind) -> &'static str {
    match kind {
        DeclaredKind::Plain(kind) => plain_kind(*kind),
        DeclaredKind::Words(_) => "text",
    }
}
