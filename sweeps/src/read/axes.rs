//! `grid` and `zip`: axes as lists, ranges and presets, with conditions, each value refused at its own place. A
//! condition may name only what is decided before its axis: the base and the axes written above it.

use std::collections::HashSet;

use super::fields::{Fields, Result, below, entries, list, refuse};
use super::part::{self, Varied};
use super::values::{self, MOST_VALUES, Names};
use crate::condition::Condition;
use crate::grid::{Axis, Choice};
use crate::keys;
use crate::settings;
use crate::yaml::{Key, Node, NodeKind};

/// An axis and where its keys stand.
pub(super) struct ReadAxis {
    pub axis: Axis,
    pub varied: Vec<Varied>,
}

/// The axes of a `grid` block.
pub(super) fn grid(
    node: &Node,
    path: &str,
    taken: &mut HashSet<String>,
    names: Names<'_>,
) -> Result<Vec<ReadAxis>> {
    let entries = entries(node, path)?;
    if entries.is_empty() {
        let message =
            "grid is empty; give it at least one axis, such as `depth: [2, 3]`, or leave `grid` out";
        return refuse(node.at, if path == "grid" { "" } else { path }, message);
    }
    let read = |(key, node): &(Key, Node)| {
        let varied = Varied { name: key.text.clone(), path: below(path, &key.text), at: key.at };
        let axis = column(key, node, path, taken, names)?;
        taken.insert(key.text.clone());
        Ok(ReadAxis { axis, varied: vec![varied] })
    };
    entries.iter().map(read).collect()
}

/// One `zip` block: columns of equal length that move together, and perhaps a `when`.
pub(super) fn zip(
    node: &Node,
    path: &str,
    taken: &mut HashSet<String>,
    names: Names<'_>,
) -> Result<ReadAxis> {
    let mut zipped = Axis { names: Vec::new(), choices: Vec::new(), when: None };
    let mut varied = Vec::new();
    for (key, node) in entries(node, path)? {
        let here = below(path, &key.text);
        if key.text == "when" {
            zipped.when = Some(values::condition(node, &here, names)?);
            continue;
        }
        let axis = column(key, node, path, taken, names)?;
        if axis.when.is_some() || axis.choices.iter().any(|choice| choice.when.is_some()) {
            return refuse(
                node.at,
                &here,
                "a `when` inside a zip stands beside its axes, not in one of them",
            );
        }
        merge(&mut zipped, axis).or_else(|(length, others)| {
            let message = format!("has {length} values, the axes above it have {others}; axes that move together are equally long");
            refuse(node.at, &here, message)
        })?;
        varied.push(Varied { name: key.text.clone(), path: here, at: key.at });
    }
    if zipped.names.is_empty() {
        return refuse(node.at, path, "has no axes; give at least two, such as `dataset` and `preset`");
    }
    taken.extend(zipped.names.iter().cloned());
    Ok(ReadAxis { axis: zipped, varied })
}

/// Adds a column to a zip, or says how long it is and how long it should be.
fn merge(zipped: &mut Axis, column: Axis) -> std::result::Result<(), (usize, usize)> {
    if zipped.names.is_empty() {
        zipped.choices = column.choices;
    } else if zipped.choices.len() == column.choices.len() {
        for (choice, more) in zipped.choices.iter_mut().zip(column.choices) {
            // A preset gives way to what the file names itself, wherever it stands in the zip.
            let named = |own: &Choice, name: &str| own.settings.iter().any(|(s, _)| s.name == name);
            let preset = column.names.iter().any(|name| name == "preset");
            if preset {
                let fresh = more.settings.into_iter().filter(|(s, _)| !named(choice, s.name));
                let fresh: Vec<_> = fresh.collect();
                choice.settings.extend(fresh);
            } else {
                choice.settings.retain(|(s, _)| !named(&more, s.name));
                choice.settings.extend(more.settings);
            }
        }
    } else {
        return Err((column.choices.len(), zipped.choices.len()));
    }
    zipped.names.extend(column.names);
    Ok(())
}

/// One axis: a list, a range, or a mapping with `values` or a range and a `when`.
fn column(key: &Key, node: &Node, path: &str, taken: &HashSet<String>, names: Names<'_>) -> Result<Axis> {
    let here = below(path, &key.text);
    if key.text == "preset" && names.0.is_none() {
        return presets(node, &here, taken);
    }
    let Some(setting) = names.find(&key.text) else {
        let others: &[&str] = if names.0.is_none() { &["preset"] } else { &[] };
        return refuse(key.at, &here, names.unknown(&key.text, others));
    };
    match &node.kind {
        NodeKind::List(_) => {
            let choices = choices(node, &here, setting, names)?;
            Ok(Axis { names: vec![key.text.clone()], choices, when: None })
        }
        NodeKind::Map(_) => {
            let fields = Fields::read(node, &here, keys::AXIS)?;
            let when = fields.optional("when", |node, path| values::condition(node, path, names))?;
            let axis = match fields.get("values") {
                Some(list) => {
                    let choices = choices(list, &fields.below("values"), setting, names)?;
                    Axis { names: vec![key.text.clone()], choices, when: None }
                }
                None => Axis::plain(setting, values::range(&fields, setting)?),
            };
            Ok(Axis { when, ..axis })
        }
        _ => {
            let message =
                format!("expected a list or a range, found {}; write `[...]` around it", node.found());
            refuse(node.at, &here, message)
        }
    }
}

fn choices(
    node: &Node,
    path: &str,
    setting: &'static settings::Setting,
    names: Names<'_>,
) -> Result<Vec<Choice>> {
    let nodes = list(node, path)?;
    if nodes.is_empty() || nodes.len() > MOST_VALUES {
        let message = match nodes.len() {
            0 => "has no values, so the grid is empty; give it at least one".to_owned(),
            many => format!("has {many} values, more than {MOST_VALUES}"),
        };
        return refuse(node.at, path, message);
    }
    let read = |(at, node): (usize, &Node)| {
        let path = format!("{path}[{at}]");
        let (written, when) = match &node.kind {
            NodeKind::Map(_) => {
                let fields = Fields::read(node, &path, keys::VALUE)?;
                let when = fields.optional("when", |node, path| values::condition(node, path, names))?;
                (fields.need("value", "a value with a condition is `{value: ..., when: {...}}`")?, when)
            }
            _ => (node, None),
        };
        let value = values::value(written, &path, setting)?;
        Ok(Choice { settings: vec![(setting, value)], when })
    };
    nodes.iter().enumerate().map(read).collect()
}

/// An axis of presets; each gives way to what the file has named before.
fn presets(node: &Node, path: &str, taken: &HashSet<String>) -> Result<Axis> {
    let read = |(at, node): (usize, &Node)| {
        let preset = part::preset(node, &format!("{path}[{at}]"))?;
        let given = preset.settings().into_iter().filter(|(name, _)| !taken.contains(*name));
        let settings = given.filter_map(|(name, value)| Some((settings::find(name)?, value))).collect();
        Ok(Choice { settings, when: None })
    };
    let choices = list(node, path)?.iter().enumerate().map(read).collect::<Result<Vec<_>>>()?;
    if choices.is_empty() {
        return refuse(node.at, path, "has no values, so the grid is empty; give it at least one");
    }
    Ok(Axis { names: vec!["preset".to_owned()], choices, when: None })
}

/// Refuses a setting on two axes, and a condition on what is decided later.
pub(super) fn check_order(axes: &[ReadAxis]) -> Result<()> {
    let mut seen = HashSet::new();
    for varied in axes.iter().flat_map(|axis| &axis.varied) {
        if !seen.insert(&varied.name) {
            return refuse(varied.at, &varied.path, "is on two axes; keep one of them");
        }
    }
    for (at, read) in axes.iter().enumerate() {
        for name in read.axis.conditions().flat_map(Condition::names) {
            if axes[at..].iter().any(|later| later.axis.gives(name))
                && let Some(varied) = read.varied.first()
            {
                let message =
                    format!("`when` names `{name}`, which is decided later; write that axis above this one");
                return refuse(varied.at, &varied.path, message);
            }
        }
    }
    Ok(())
}
