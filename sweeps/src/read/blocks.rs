//! The blocks that are not about points: limits, resources, table, figure, priority.

use serde_json::Value;

use super::fields::{Fields, Result, below, entries, list, named, refuse, text, whole, word};
use super::values::{self, Names};
use crate::blocks;
use crate::datasets;
use crate::halve::{HalveSpec, MOST_RUNGS};
use crate::keys;
use crate::program::SHARED;
use crate::race::{self, Alpha, RaceSpec};
use crate::settings::{Setting, ValueKind};
use crate::spec::{
    DeviceKind, FigureSpec, Labels, MOST_DECIMALS, MOST_FOLDS, Metric, Per, Resources, Selection,
    SweepLimits, TableSpec,
};
use crate::yaml::{Key, LineColumn, Node, NodeKind};

pub(super) fn limits(node: &Node, path: &str) -> Result<SweepLimits> {
    let fields = Fields::read(node, path, keys::LIMITS)?;
    let of = |key: &str, least, most| fields.optional(key, |node, path| whole(node, path, least, most));
    let default = SweepLimits::default();
    Ok(SweepLimits {
        max_folds: of("max_folds", 1, MOST_FOLDS)?.unwrap_or(default.max_folds),
        attempts: of("attempts", 1, u32::MAX.into())?.map_or(default.attempts, |attempts| attempts as u32),
        fold_seconds: match fields.get("fold_seconds").map(|node| &node.kind) {
            Some(NodeKind::Null) => None,
            _ => of("fold_seconds", 1, u64::MAX)?,
        },
    })
}

pub(super) fn resources(node: &Node, path: &str) -> Result<Resources> {
    let fields = Fields::read(node, path, keys::RESOURCES)?;
    let device = fields.optional("device", |node, path| match &node.kind {
        // Near to `cpu` by its letters, and the opposite of it.
        NodeKind::Text(text) if text == "gpu" => {
            refuse(node.at, path, "unknown word `gpu`; did you mean `cuda`?")
        }
        _ => word(node, path, DeviceKind::WORDS, DeviceKind::from_word),
    })?;
    Ok(Resources { device: device.unwrap_or_default(), memory: fields.optional("memory", memory)? })
}

/// An amount of memory, such as `8 GiB` or `500 MB`, in bytes.
fn memory(node: &Node, path: &str) -> Result<u64> {
    let written = text(node, path)?;
    match blocks::bytes(&written) {
        Some(bytes) => Ok(bytes),
        None => refuse(
            node.at,
            path,
            format!("`{written}` is not an amount of memory; write `8 GiB` or `500 MB`"),
        ),
    }
}

pub(super) fn priority(node: &Node, path: &str) -> Result<i32> {
    let number = match &node.kind {
        NodeKind::Number(number) => number.as_i64().and_then(|number| i32::try_from(number).ok()),
        _ => None,
    };
    let message = || format!("expected a whole number, found {}", node.found());
    number.map_or_else(|| refuse(node.at, path, message()), Ok)
}

fn metric(node: &Node, path: &str) -> Result<Metric> {
    word(node, path, Metric::WORDS, Metric::from_word)
}

/// A setting that a table can show, or `method`.
fn shown(node: &Node, path: &str, names: Names<'_>) -> Result<String> {
    shown_name(text(node, path)?, node.at, path, names)
}

/// The same as a key.
fn known(key: &Key, path: &str, names: Names<'_>) -> Result<String> {
    shown_name(key.text.clone(), key.at, path, names)
}

fn shown_name(name: String, at: LineColumn, path: &str, names: Names<'_>) -> Result<String> {
    let names: Vec<&str> = names.all().into_iter().chain(["method"]).collect();
    let found = names.iter().find(|known| **known == name);
    named(found.map(|known| (*known).to_owned()), at, path, "no setting", &name, names.iter().copied())
}

fn shown_list(node: &Node, path: &str, names: Names<'_>) -> Result<Vec<String>> {
    let listed = list(node, path)?.iter().enumerate();
    let listed: Vec<String> =
        listed.map(|(at, node)| shown(node, &format!("{path}[{at}]"), names)).collect::<Result<_>>()?;
    if listed.is_empty() {
        return refuse(node.at, path, "is empty; name at least one setting, or `method`");
    }
    Ok(listed)
}

pub(super) fn table(node: &Node, path: &str, names: Names<'_>) -> Result<(TableSpec, Option<Selection>)> {
    let fields = Fields::read(node, path, keys::TABLE)?;
    let shown = |node: &Node, path: &str| shown(node, path, names);
    let default = TableSpec::default();
    let table = TableSpec {
        rows: fields.optional("rows", |node, path| shown_list(node, path, names))?.unwrap_or(default.rows),
        columns: fields.optional("columns", shown)?.unwrap_or(default.columns),
        metric: fields.optional("metric", metric)?.unwrap_or(default.metric),
        group: fields.optional("group", shown)?,
        filter: fields.optional("filter", |node, path| filter(node, path, names))?.unwrap_or_default(),
        labels: fields.optional("labels", |node, path| labels(node, path, names))?.unwrap_or_default(),
        order: fields.optional("order", |node, path| order(node, path, names))?.unwrap_or_default(),
        decimals: fields
            .optional("decimals", |node, path| Ok(whole(node, path, 0, MOST_DECIMALS)? as usize))?,
        caption: fields.optional("caption", text)?,
        label: fields.optional("label", text)?,
    };
    Ok((table, fields.optional("select", |node, path| selection(node, path, names))?))
}

/// Settings and the values, spelt as tables spell them.
fn filter(node: &Node, path: &str, names: Names<'_>) -> Result<Vec<(String, Vec<String>)>> {
    let condition = values::condition(node, path, names)?;
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let entries = condition.entries();
    Ok(entries.map(|(name, values)| (name.to_owned(), values.into_iter().map(text).collect())).collect())
}

/// What is printed for settings: a text for the header, or a mapping for the values.
fn labels(node: &Node, path: &str, names: Names<'_>) -> Result<Vec<Labels>> {
    let read = |(key, node): &(Key, Node)| {
        let setting = known(key, path, names)?;
        let path = below(path, &key.text);
        let NodeKind::Map(values) = &node.kind else {
            return Ok(Labels { setting, header: Some(text(node, &path)?), values: Vec::new() });
        };
        let printed = |(value, node): &(Key, Node)| {
            Ok((spelled(&setting, &value.text), text(node, &below(&path, &value.text))?))
        };
        let values = values.iter().map(printed).collect::<Result<_>>()?;
        Ok(Labels { setting, header: None, values })
    };
    entries(node, path)?.iter().map(read).collect()
}

/// A value as tables spell it.
fn spelled(setting: &str, value: &str) -> String {
    if setting == "dataset" { datasets::spelled(value).to_owned() } else { value.to_owned() }
}

/// Values, spelt as tables spell them, in the order in which they are to stand.
fn order(node: &Node, path: &str, names: Names<'_>) -> Result<Vec<(String, Vec<String>)>> {
    let read = |(key, node): &(Key, Node)| {
        let (setting, path) = (known(key, path, names)?, below(path, &key.text));
        let value = |node: &Node| match node.scalar() {
            Some(Value::String(text)) => Ok(spelled(&setting, &text)),
            Some(value) => Ok(value.to_string()),
            None => refuse(node.at, &path, format!("expected a value, found {}", node.found())),
        };
        let values = list(node, &path)?.iter().map(value).collect::<Result<_>>()?;
        Ok((setting, values))
    };
    entries(node, path)?.iter().map(read).collect()
}

fn selection(node: &Node, path: &str, names: Names<'_>) -> Result<Selection> {
    let fields = Fields::read(node, path, keys::SELECT)?;
    let per = fields.optional("per", |node, path| word(node, path, Per::WORDS, Per::from_word))?;
    let per = per.unwrap_or(Per::Split);
    let among = match (fields.get("among"), per) {
        (None, Per::Config) => None,
        _ => Some(fields.need("among", "name the settings that are chosen among, such as `[deepset]`")?),
    };
    let among = among.map(|node| shown_list(node, &fields.below("among"), names)).transpose()?;
    let by = fields.optional("by", metric)?.unwrap_or(per.usual_metric());
    match (fields.get("by"), by) {
        (Some(node), by) if by.is_of_test() || by == Metric::TrainAccuracy => {
            refuse(node.at, &fields.below("by"), "a choice is made by a validation metric only")
        }
        _ => Ok(Selection { among, by, per }),
    }
}

pub(super) fn race(node: &Node, path: &str, names: Names<'_>) -> Result<RaceSpec> {
    let fields = Fields::read(node, path, keys::RACE)?;
    let among =
        fields.need("among", "name the settings that trials may differ in, such as `[lr, hidden_dim]`")?;
    let by = compared(&fields)?;
    let after =
        fields.optional("after", |node, path| whole(node, path, race::LEAST.into(), u32::MAX.into()))?;
    Ok(RaceSpec {
        among: shown_list(among, &fields.below("among"), names)?,
        by,
        after: after.map_or(race::AFTER, |after| after as u32),
        alpha: fields.optional("alpha", alpha)?.unwrap_or_default(),
    })
}

/// The validation metric that trials are compared by.
fn compared(fields: &Fields<'_>) -> Result<Metric> {
    let by = fields.optional("by", metric)?.unwrap_or(Metric::ValidationAccuracy);
    match fields.get("by") {
        Some(node) if by.is_of_test() || by == Metric::TrainAccuracy => {
            refuse(node.at, &fields.below("by"), "trials race by a validation metric only")
        }
        _ => Ok(by),
    }
}

pub(super) fn halve(node: &Node, path: &str, names: Names<'_>) -> Result<HalveSpec> {
    let fields = Fields::read(node, path, keys::HALVE)?;
    let over =
        growing(fields.need("over", "name the setting that grows, such as `max_epochs`")?, &fields, names)?;
    let keep = fields.need("keep", "say how many go on from each rung, such as `1/3`")?;
    let read = text(keep, &fields.below("keep"))?.parse();
    let among =
        fields.need("among", "name the settings that trials may differ in, such as `[lr, hidden_dim]`")?;
    Ok(HalveSpec {
        over: over.name,
        rungs: rungs(
            fields.need("rungs", "list its values, such as `[20, 60]`")?,
            &fields.below("rungs"),
            over,
        )?,
        keep: read.or_else(|message: String| refuse(keep.at, &fields.below("keep"), message))?,
        among: shown_list(among, &fields.below("among"), names)?,
        by: compared(&fields)?,
    })
}

/// A setting of which less is an exact beginning of more: the rate of our networks falls on plateaus, whatever epochs are left.
fn growing(node: &Node, fields: &Fields<'_>, names: Names<'_>) -> Result<&'static Setting> {
    let name = text(node, &fields.below("over"))?;
    let known = names.find(&name).filter(|setting| match names.0 {
        Some(_) => matches!(setting.kind, ValueKind::Whole(..)) && !SHARED.contains(&setting.name),
        None => setting.name == "max_epochs",
    });
    let message = match names.0 {
        Some(_) => "expected a whole number that the program declares, such as its epochs",
        None => "only `max_epochs` can grow from rung to rung",
    };
    known.map_or_else(|| refuse(node.at, &fields.below("over"), message), Ok)
}

fn rungs(node: &Node, path: &str, setting: &'static Setting) -> Result<Vec<u64>> {
    let read = |(at, node): (usize, &Node)| {
        let path = format!("{path}[{at}]");
        let value = values::value(node, &path, setting)?;
        value.as_u64().map_or_else(|| refuse(node.at, &path, "expected a whole number"), Ok)
    };
    let rungs: Vec<u64> = list(node, path)?.iter().enumerate().map(read).collect::<Result<_>>()?;
    if !(2..=MOST_RUNGS).contains(&rungs.len()) || !rungs.is_sorted_by(|less, more| less < more) {
        let message = format!("expected 2 to {MOST_RUNGS} numbers, each larger than the one before");
        return refuse(node.at, path, message);
    }
    Ok(rungs)
}

/// One of the few for which quantiles are known.
fn alpha(node: &Node, path: &str) -> Result<Alpha> {
    let written = node.scalar().and_then(|value| value.as_f64());
    let known = Alpha::ALL.into_iter().find(|alpha| alpha.as_str().parse().ok() == written);
    let message = || format!("expected one of {}, found {}", Alpha::WORDS.join(", "), node.found());
    known.map_or_else(|| refuse(node.at, path, message()), Ok)
}

pub(super) fn figure(node: &Node, path: &str, names: Names<'_>) -> Result<FigureSpec> {
    let fields = Fields::read(node, path, keys::FIGURE)?;
    let shown = |node: &Node, path: &str| shown(node, path, names);
    let x = fields.need("x", "name the setting along the axis, such as `x: depth`")?;
    Ok(FigureSpec {
        title: fields.optional("title", text)?.unwrap_or_default(),
        x: shown(x, &fields.below("x"))?,
        metric: fields.optional("metric", metric)?.unwrap_or(Metric::TestAccuracy),
        lines: fields
            .optional("lines", |node, path| shown_list(node, path, names))?
            .unwrap_or_else(|| vec!["method".to_owned()]),
        panels: fields.optional("panels", shown)?,
    })
}
