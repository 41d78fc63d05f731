//! The keys of a sweep file, block by block, each with its JSON Schema and a sentence. The reader refuses what is not here
//! and the schema describes what is. Settings have a table of their own.

use serde_json::{Value, json};

use crate::race;
use crate::scale::Goal;
use crate::schema::{
    axis_value, distributions, labels, list, mapping_to, metric, object, one_or_list, order, reference,
    shown, shown_list, text, whole,
};
use crate::spec::{DeviceKind, MOST_DECIMALS, MOST_FOLDS, Per, SPEC_VERSION};

/// A key of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyInfo {
    pub name: &'static str,
    /// What may stand there. In a block about one setting it is given the schema of that setting's values.
    pub schema: fn(&Value) -> Value,
    pub about: &'static str,
}

/// The keys of one block.
pub(crate) type Block = &'static [KeyInfo];

const fn key(name: &'static str, schema: fn(&Value) -> Value, about: &'static str) -> KeyInfo {
    KeyInfo { name, schema, about }
}

/// A block of rows `"key": schema, "sentence";`.
macro_rules! block {
    ($($name:literal: $schema:expr, $about:literal;)+) => {
        &[$(key($name, $schema, $about)),+]
    };
}

/// The names of a block.
pub(crate) fn names(block: Block) -> impl Iterator<Item = &'static str> + Clone {
    block.iter().map(|key| key.name)
}

fn condition(_: &Value) -> Value {
    reference("condition")
}

fn conditions(_: &Value) -> Value {
    json!({"type": "array", "items": reference("condition")})
}

fn name(_: &Value) -> Value {
    json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9._+=,-]{0,63}$"})
}

fn figures(_: &Value) -> Value {
    one_or_list(reference("figure"))
}

fn prints(_: &Value) -> Value {
    one_or_list(reference("published"))
}

fn digest(_: &Value) -> Value {
    json!({"type": "string", "pattern": "^[0-9a-f]{64}$"})
}

fn number(_: &Value) -> Value {
    json!({"type": "number"})
}

fn declared() -> Value {
    json!({"anyOf": [{"enum": KINDS}, list(text(&Value::Null)), object(DECLARED, &["from", "to"])]})
}

fn same(value: &Value) -> Value {
    value.clone()
}

fn positive(_: &Value) -> Value {
    json!({"type": "number", "exclusiveMinimum": 0})
}

const BASE: KeyInfo =
    key("base", |_| reference("base"), "settings that all points share; `preset` names a set of them");
const GRID: KeyInfo = key("grid", |_| reference("grid"), "axes; every combination is a point");
const ZIP: KeyInfo =
    key("zip", |_| reference("zip"), "axes that move together: a mapping, or a list of mappings");
const EXCLUDE: KeyInfo = key("exclude", conditions, "partial settings; points that match one are left out");
const RANDOM: KeyInfo = key("random", |_| reference("random"), "a seeded sample instead of all points");
const SPLITS: KeyInfo = key("splits", |_| reference("splits"), "folds of the data set, or split seeds");
const SEEDS: KeyInfo = key("seeds", |_| reference("seeds"), "training seeds");

/// The file itself.
pub(crate) const SWEEP: Block = &[
    key("version", |_| json!({"const": SPEC_VERSION}), "version of this language"),
    key("name", name, "what people call the sweep: 1 to 64 of a-z, 0-9, `-`, `_` and `.`"),
    key("description", text, "a sentence for people"),
    BASE,
    GRID,
    ZIP,
    EXCLUDE,
    RANDOM,
    key("union", |_| list(reference("part")), "several grids in one sweep, each with its own keys"),
    SPLITS,
    SEEDS,
    key("program", |_| object(PROGRAM, &["run"]), "a program of your own to train instead of our networks"),
    key("frozen", digest, "digest of the program's files as they were submitted; togl writes it"),
    key("limits", |_| object(LIMITS, &[]), "guards"),
    key("resources", |_| object(RESOURCES, &[]), "what a fold needs"),
    key("race", |_| object(RACE, &["among"]), "stops trials that are clearly worse after some splits"),
    key(
        "halve",
        |_| object(HALVE, &["over", "rungs", "keep", "among"]),
        "trains only the best for more epochs",
    ),
    key("priority", |_| json!({"type": "integer"}), "higher runs first"),
    key("table", |_| object(TABLE, &[]), "the table at the end"),
    key("figure", figures, "the figures at the end: a mapping, or a list of mappings"),
    key("published", prints, "numbers from print for comparison: a mapping, or a list of mappings"),
];

/// One grid of a union.
pub(crate) const PART: Block = &[BASE, GRID, ZIP, EXCLUDE, RANDOM, SPLITS, SEEDS];

/// An axis that is not a plain list.
pub(crate) const AXIS: Block = block! {
    "values": |value| list(axis_value(value)), "the values, in order";
    "from": same, "first value of a range";
    "to": same, "last value of a range, included where a step reaches it";
    "step": positive, "distance of neighbours; 1 for whole numbers if left out";
    "factor": positive, "ratio of neighbours";
    "count": |_| whole(2, 100_000), "so many values at equal ratios, both ends included";
    "when": condition, "the axis exists only where these settings hold";
};

/// A value of an axis with a condition.
pub(crate) const VALUE: Block = block! {
    "value": same, "the value";
    "when": condition, "the value exists only where these settings hold";
};

/// A range of whole numbers.
pub(crate) const RANGE: Block = block! {
    "from": same, "first number";
    "to": same, "last number, included";
    "step": |number| whole(1, number["maximum"].as_u64().unwrap_or(u64::MAX)), "distance; 1 if left out";
};

/// `random`.
pub(crate) const RANDOM_KEYS: Block = block! {
    "budget": |_| whole(1, MOST_FOLDS), "how many draws; raise it later to add some";
    "seed": |_| whole(0, u64::MAX), "what the draws depend on";
    "from": |_| json!({"const": "grid"}), "`grid`: draw points of the grid, none twice";
    "distributions": distributions, "draw these settings, for every point of the grid";
};

/// One distribution.
pub(crate) const LAW: Block = block! {
    "uniform": |value| list(value.clone()), "two bounds; every number between is as likely";
    "log_uniform": |value| list(value.clone()), "two bounds; every order of magnitude between is as likely";
    "choice": |value| list(value.clone()), "a list; every value is as likely";
};

/// `program`.
pub(crate) const PROGRAM: Block = block! {
    "run": |_| list(text(&Value::Null)), "the command and its arguments, such as `[python3, train.py]`; no shell";
    "files": |_| list(text(&Value::Null)), "the files that it consists of, beside the sweep file; sent with the sweep";
    "version": |_| json!({"type": ["string", "number"]}), "in place of files: what you vouch for yourself";
    "lock": text, "a file that lists the packages it needs; sent with the sweep";
    "settings": |_| mapping_to(declared()), "the settings that it takes, each with its values";
    "score": |_| object(SCORE, &["name", "goal"]),
        "what its values are; without it shares from 0 to 1, of which more is better";
};

/// `program.score`.
pub(crate) const SCORE: Block = block! {
    "name": text, "what it is called, such as `MAE`";
    "goal": |_| json!({"enum": Goal::WORDS}), "which values are better";
    "range": |_| json!({"type": "array", "items": {"type": ["number", "null"]}, "minItems": 2, "maxItems": 2}),
        "the lowest and the highest value there can be, `null` for none; any number if left out";
};

/// A setting of a program that is numbers in a range.
pub(crate) const DECLARED: Block = block! {
    "from": number, "smallest value";
    "to": number, "largest value";
    "whole": |_| json!({"type": "boolean"}), "whether it is a whole number";
};

/// Kinds of settings of a program, in a word.
pub(crate) const KINDS: &[&str] = &["number", "whole", "flag", "text"];

/// `limits`.
pub(crate) const LIMITS: Block = block! {
    "max_folds": |_| whole(1, MOST_FOLDS), "a larger sweep is refused: a guard against accidents";
    "attempts": |_| whole(1, u32::MAX.into()), "attempts of one fold, whatever the reason but preemption";
    "fold_seconds": |_| whole(1, u64::MAX), "seconds that one attempt may train";
};

/// `resources`.
pub(crate) const RESOURCES: Block = block! {
    "device": |_| json!({"enum": DeviceKind::WORDS}), "kind of device";
    "memory": |_| json!({"type": "string", "pattern": "^[0-9.]+ *(MB|GB|MiB|GiB)$"}),
        "memory on it, such as `8 GiB`";
};

/// `table`.
pub(crate) const TABLE: Block = block! {
    "rows": shown_list, "settings, or `method`, that make a row";
    "columns": shown, "the setting that makes the columns";
    "metric": metric, "what is averaged";
    "group": shown, "the setting of which each value has a common header over its columns";
    "filter": condition, "only trials with these settings are in the table";
    "select": |_| object(SELECT, &[]), "a choice by validation before the table is made";
    "labels": labels, "what is printed for a setting (a text) or for its values (a mapping)";
    "order": order, "values of settings in the order in which rows and columns stand; others follow";
    "decimals": |_| whole(0, MOST_DECIMALS), "digits after the decimal point";
    "caption": text, "what is printed above it instead of the name of the sweep";
    "label": text, "what a LaTeX paper refers to it by, such as `tab:depth`";
};

/// `table.select`.
pub(crate) const SELECT: Block = block! {
    "among": shown_list,
        "the settings that are chosen among; with `per: config` all that no row or column names";
    "by": |_| json!({"enum": ["validation_accuracy", "last_validation_accuracy"]}),
        "the validation metric that decides";
    "per": |_| json!({"enum": Per::WORDS}),
        "`split`: anew in each split; `config`: once, by the mean over all splits";
};

/// `race`.
pub(crate) const RACE: Block = block! {
    "among": shown_list, "trials that differ in nothing but these settings race with each other";
    "by": |_| json!({"enum": ["validation_accuracy", "last_validation_accuracy"]}),
        "the validation metric that is compared";
    "after": |_| whole(race::LEAST.into(), u32::MAX.into()), "splits that are compared before the first trial is stopped";
    "alpha": |_| json!({"enum": [0.1, 0.05, 0.025, 0.01, 0.005]}),
        "how often one look may stop a trial that is as good as the best";
};

/// `halve`.
pub(crate) const HALVE: Block = block! {
    "over": shown, "the setting that grows from rung to rung: `max_epochs`, or a whole number that the program declares";
    "rungs": |_| list(whole(1, u64::MAX)), "its values, growing; the last one is that of trials which go all the way";
    "keep": |_| json!({"type": "string", "pattern": "^[1-9][0-9]*/[1-9][0-9]*$"}),
        "how many of a group go on from each rung, such as `1/3`, rounded up";
    "among": shown_list, "trials that differ in nothing but these settings are compared with each other";
    "by": |_| json!({"enum": ["validation_accuracy", "last_validation_accuracy"]}),
        "the validation metric that is compared";
};

/// `figure`.
pub(crate) const FIGURE: Block = block! {
    "title": text, "a sentence above it";
    "x": shown, "the setting along the axis";
    "metric": metric, "what is averaged";
    "lines": shown_list, "settings, or `method`, that make a line";
    "panels": shown, "the setting of which each value has its own panel";
};

/// `published`.
pub(crate) const PUBLISHED: Block = block! {
    "table": text, "what the paper calls it; the program knows the numbers of its tables";
    "metric": metric, "what the numbers are";
    "methods": |_| mapping_to(reference("condition")), "printed row labels and the settings that they mean";
    "datasets": |_| mapping_to(text(&Value::Null)), "printed names of data sets and ours, where they differ";
    "columns": |_| list(json!({"enum": CELL})),
        "what the entries of a cell are; not needed for a table of the paper";
    "cells": |_| list(json!({"type": "array"})),
        "one list for each printed number; not needed for a table of the paper";
};

/// What a printed cell can say.
pub(crate) const CELL: &[&str] = &["method", "dataset", "depth", "position", "mean", "std", "cited"];
