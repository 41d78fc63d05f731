//! Values of settings: one value, a list, a range, a range of equal ratios; conditions; splits and seeds. Every value
//! is checked against the table of settings at its own line and column.

use serde_json::Value;

use super::fields::{Fields, Result, entries, list, number, refuse, whole};
use crate::condition::Condition;
use crate::draws::rounded;
use crate::keys;
use crate::nearest;
use crate::program::Program;
use crate::settings::{self, Setting, ValueKind};
use crate::yaml::{Key, Node, NodeKind};

/// Values that one axis, or a list of splits or seeds, may have.
pub(super) const MOST_VALUES: usize = 100_000;

/// The settings that a file may name: ours, or those of the program that it trains.
#[derive(Debug, Clone, Copy)]
pub(super) struct Names<'a>(pub Option<&'a Program>);

impl Names<'_> {
    /// The setting of this name, if the file may name it.
    pub fn find(self, name: &str) -> Option<&'static Setting> {
        self.0.map_or_else(|| settings::find(name), |program| program.find(name))
    }

    /// All of them, in order.
    pub fn all(self) -> Vec<&'static str> {
        self.0.map_or_else(|| settings::names().collect(), |program| program.names().collect())
    }

    /// What to say of a name that is none of them, where others are known too.
    pub fn unknown(self, name: &str, others: &[&'static str]) -> String {
        let known: Vec<&str> = self.all().into_iter().chain(others.iter().copied()).collect();
        let hint = nearest::hint(name, known.iter().copied());
        if self.0.is_none() || nearest::nearest(name, known.iter().copied()).is_some() {
            return format!("no such setting; {hint}");
        }
        format!("the program declares no such setting; {hint}")
    }
}

/// The setting that a key names.
pub(super) fn setting(key: &Key, path: &str, names: Names<'_>) -> Result<&'static Setting> {
    let unknown = || refuse(key.at, &super::fields::below(path, &key.text), names.unknown(&key.text, &[]));
    names.find(&key.text).map_or_else(unknown, Ok)
}

/// A value that fits a setting.
pub(super) fn value(node: &Node, path: &str, setting: &'static Setting) -> Result<Value> {
    let Some(value) = node.scalar() else {
        return refuse(node.at, path, format!("expected a value, found {}", node.found()));
    };
    match setting.check(&value) {
        Ok(()) => Ok(setting.spelled(value)),
        Err(error) => refuse(node.at, path, error.reason),
    }
}

/// A partial setting: each key has a value, or a list of values of which one must match.
pub(super) fn condition(node: &Node, path: &str, names: Names<'_>) -> Result<Condition> {
    let mut condition = Condition::default();
    let entries = entries(node, path)?;
    if entries.is_empty() {
        return refuse(
            node.at,
            path,
            "is empty and would match everything; name a setting, such as `togl: true`",
        );
    }
    for (key, node) in entries {
        let setting = setting(key, path, names)?;
        let path = super::fields::below(path, &key.text);
        let values: Vec<Value> = match &node.kind {
            NodeKind::List(values) if !values.is_empty() => {
                values.iter().map(|node| value(node, &path, setting)).collect::<Result<_>>()?
            }
            _ => vec![value(node, &path, setting)?],
        };
        condition.and(setting, &values);
    }
    Ok(condition)
}

/// The values of a range in the keys `from`, `to` and `step`, `factor` or `count`.
pub(super) fn range(fields: &Fields<'_>, setting: &'static Setting) -> Result<Vec<Value>> {
    let whole = matches!(setting.kind, ValueKind::Whole(..) | ValueKind::Position);
    if !whole && !matches!(setting.kind, ValueKind::Real(..)) {
        return refuse(fields.at, fields.path, "a range needs numbers; give a list of values");
    }
    for bound in ["from", "to"] {
        let node = fields.need(bound, "a range has `from` and `to`")?;
        value(node, &fields.below(bound), setting)?;
    }
    let of = |key: &str| fields.optional(key, number);
    let (from, to) = (of("from")?.unwrap_or(0.0), of("to")?.unwrap_or(0.0));
    if from > to {
        return refuse(fields.at, fields.path, format!("the range is empty: {from} is above {to}"));
    }
    let numbers = match (of("step")?, of("factor")?, fields.get("count")) {
        (step, None, None) if step.is_some() || whole => even(fields, from, to, step.unwrap_or(1.0))?,
        (None, Some(factor), None) => by_factor(fields, from, to, factor)?,
        (None, None, Some(_)) => by_count(fields, from, to)?,
        _ => return refuse(fields.at, fields.path, "a range has one of `step`, `factor` and `count`"),
    };
    let mut values: Vec<Value> = numbers
        .into_iter()
        .map(|n| if whole { Value::from(n.round() as u64) } else { Value::from(n) })
        .collect();
    values.dedup();
    Ok(values)
}

fn even(fields: &Fields<'_>, from: f64, to: f64, step: f64) -> Result<Vec<f64>> {
    if step <= 0.0 || ((to - from) / step) >= MOST_VALUES as f64 {
        let message = match fields.get("step") {
            Some(step) => {
                return refuse(
                    step.at,
                    &fields.below("step"),
                    format!("must be above 0 and give at most {MOST_VALUES} values"),
                );
            }
            None => format!("gives more than {MOST_VALUES} values; set a `step`"),
        };
        return refuse(fields.at, fields.path, message);
    }
    let steps = ((to - from) / step + 1e-9).floor() as u32;
    Ok((0..=steps).map(|n| rounded(from + f64::from(n) * step, 12).min(to)).collect())
}

fn by_factor(fields: &Fields<'_>, from: f64, to: f64, factor: f64) -> Result<Vec<f64>> {
    if factor < 1.000_001 || from <= 0.0 {
        return refuse(
            fields.at,
            &fields.below("factor"),
            "needs a factor of at least 1.000001 and a range above 0",
        );
    }
    let mut numbers = vec![from];
    let mut next = from * factor;
    while next <= to * (1.0 + 1e-9) {
        if numbers.len() >= MOST_VALUES {
            return refuse(
                fields.at,
                &fields.below("factor"),
                format!("gives more than {MOST_VALUES} values"),
            );
        }
        numbers.push(rounded(next, 12).min(to));
        next *= factor;
    }
    Ok(numbers)
}

fn by_count(fields: &Fields<'_>, from: f64, to: f64) -> Result<Vec<f64>> {
    let count = fields.optional("count", |node, path| whole(node, path, 2, MOST_VALUES as u64))?.unwrap_or(2);
    if from <= 0.0 {
        return refuse(fields.at, &fields.below("count"), "equal ratios need a range above 0");
    }
    let (low, high, last) = (libm::log(from), libm::log(to), count - 1);
    let place = |n: u64| match n {
        0 => from,
        n if n == last => to,
        n => rounded(libm::exp(low + (high - low) * n as f64 / last as f64), 6),
    };
    Ok((0..count).map(place).collect())
}

/// `splits` or `seeds`: a list without repetition, or a range of whole numbers.
pub(super) fn whole_list(node: &Node, path: &str, most: u64) -> Result<Vec<u64>> {
    let numbers: Vec<u64> = match &node.kind {
        NodeKind::Map(_) => whole_range(&Fields::read(node, path, keys::RANGE)?, most)?,
        _ => {
            let nodes = list(node, path)?.iter().enumerate();
            nodes.map(|(at, node)| whole(node, &format!("{path}[{at}]"), 0, most)).collect::<Result<_>>()?
        }
    };
    if numbers.is_empty() {
        return refuse(node.at, path, "is empty; give at least one, such as [0]");
    }
    let mut seen = std::collections::HashSet::new();
    if let Some(twice) = numbers.iter().position(|number| !seen.insert(*number)) {
        let at = list(node, path).ok().and_then(|nodes| nodes.get(twice)).map_or(node.at, |node| node.at);
        return refuse(at, path, format!("names {} twice", numbers[twice]));
    }
    Ok(numbers)
}

fn whole_range(fields: &Fields<'_>, most: u64) -> Result<Vec<u64>> {
    let of = |key: &str, least| fields.optional(key, |node, path| whole(node, path, least, most));
    fields.need("from", "a range has `from` and `to`")?;
    fields.need("to", "a range has `from` and `to`")?;
    let (from, to) = (of("from", 0)?.unwrap_or(0), of("to", 0)?.unwrap_or(0));
    let step = of("step", 1)?.unwrap_or(1);
    if from > to || (to - from) / step >= MOST_VALUES as u64 {
        let message = format!("expected a range upwards with at most {MOST_VALUES} numbers");
        return refuse(fields.at, fields.path, message);
    }
    Ok((0..=(to - from) / step).map(|n| from + n * step).collect())
}
