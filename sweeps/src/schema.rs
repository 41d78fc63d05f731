//! The JSON Schema of a sweep file, made from the tables that the reader uses: editors complete keys and check values
//! with it. It is a little more lenient than the reader, which also knows what cannot be said in a schema.

use serde_json::{Map, Value, json};

use crate::keys::{self, Block};
use crate::presets;
use crate::settings::{Kind, SETTINGS, Setting};
use crate::spec::{DeviceKind, MOST_DECIMALS, MOST_FOLDS, Metric, Per, SPEC_VERSION};

/// The schema.
pub fn schema() -> Value {
    let mut root = object(keys::SWEEP, &["version", "name"], sweep_key);
    if let Value::Object(map) = &mut root {
        map.insert("$schema".to_owned(), json!("https://json-schema.org/draft/2020-12/schema"));
        map.insert("title".to_owned(), json!("togl sweep"));
        map.insert("$defs".to_owned(), definitions());
    }
    root
}

fn definitions() -> Value {
    json!({
        "base": settings(Some(json!({"enum": presets::names().collect::<Vec<_>>()})), value),
        "grid": with_min(settings(Some(preset_list()), axis)),
        "zip": zip(),
        "condition": with_min(settings(None, |setting| one_or_list(value(setting)))),
        "random": object(keys::RANDOM_KEYS, &["budget"], random_key),
        "part": object(keys::PART, &[], part_key),
        "splits": whole_list(u32::MAX.into()),
        "seeds": whole_list(u64::MAX),
        "metric": {"enum": Metric::WORDS},
        "shown": {"enum": SETTINGS.iter().map(|setting| setting.name).chain(["method"]).collect::<Vec<_>>()},
        "figure": object(keys::FIGURE, &["x"], figure_key),
        "published": object(keys::PUBLISHED, &["table"], published_key),
    })
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// A mapping with the keys of a block, each with its sentence.
fn object(block: Block, required: &[&str], of: impl Fn(&str) -> Value) -> Value {
    let properties = block.iter().map(|key| (key.name.to_owned(), described(of(key.name), key.about)));
    closed(properties.collect(), required)
}

fn closed(properties: Map<String, Value>, required: &[&str]) -> Value {
    let mut made = json!({"type": "object", "additionalProperties": false, "properties": properties});
    if !required.is_empty() {
        made["required"] = json!(required);
    }
    made
}

fn described(mut schema: Value, about: &str) -> Value {
    if let Value::Object(map) = &mut schema {
        map.insert("description".to_owned(), json!(about));
    }
    schema
}

fn with_min(mut schema: Value) -> Value {
    schema["minProperties"] = json!(1);
    schema
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items, "minItems": 1})
}

fn one_or_list(schema: Value) -> Value {
    json!({"anyOf": [schema.clone(), list(schema)]})
}

fn whole(least: u64, most: u64) -> Value {
    json!({"type": "integer", "minimum": least, "maximum": most})
}

/// A mapping from settings, and perhaps `preset`.
fn settings(preset: Option<Value>, of: impl Fn(&Setting) -> Value) -> Value {
    let properties = SETTINGS.iter().map(|setting| {
        let needs = match setting.needs.words {
            "" => String::new(),
            words => format!(" (needs {words})"),
        };
        (setting.name.to_owned(), described(of(setting), &format!("{}{needs}", setting.about)))
    });
    let preset = preset.map(|schema| ("preset".to_owned(), described(schema, "a named set of settings")));
    closed(properties.chain(preset).collect(), &[])
}

fn value(setting: &Setting) -> Value {
    match setting.kind {
        Kind::Text => json!({"type": "string"}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::Whole(least, most) => whole(least, most),
        Kind::Real(least, most) => json!({"type": "number", "minimum": least, "maximum": most}),
        Kind::Word(words) => json!({"enum": words}),
        Kind::Position => json!({"anyOf": [whole(0, u32::MAX.into()), {"const": "last"}]}),
    }
}

fn preset_list() -> Value {
    list(json!({"enum": presets::names().collect::<Vec<_>>()}))
}

/// A list of values, some with a condition, or a range.
fn axis(setting: &Setting) -> Value {
    let of_value = |key: &str| if key == "when" { reference("condition") } else { value(setting) };
    let entry = json!({"anyOf": [value(setting), object(keys::VALUE, &["value"], of_value)]});
    let of_axis = |key: &str| match key {
        "values" => list(entry.clone()),
        "when" => reference("condition"),
        "from" | "to" => value(setting),
        "count" => whole(2, 100_000),
        _ => json!({"type": "number", "exclusiveMinimum": 0}),
    };
    json!({"anyOf": [list(entry.clone()), object(keys::AXIS, &[], of_axis)]})
}

fn zip() -> Value {
    let mut one = with_min(settings(Some(preset_list()), axis));
    one["properties"]["when"] = reference("condition");
    one_or_list(one)
}

fn whole_list(most: u64) -> Value {
    let of = |key: &str| whole(u64::from(key == "step"), most);
    json!({"anyOf": [list(whole(0, most)), object(keys::RANGE, &["from", "to"], of)]})
}

fn part_key(key: &str) -> Value {
    match key {
        "exclude" => json!({"type": "array", "items": reference("condition")}),
        other => reference(other),
    }
}

fn sweep_key(key: &str) -> Value {
    match key {
        "version" => json!({"const": SPEC_VERSION}),
        "name" => json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9._+=,-]{0,63}$"}),
        "description" => json!({"type": "string"}),
        "union" => list(reference("part")),
        "priority" => json!({"type": "integer"}),
        "limits" => object(keys::LIMITS, &[], limits_key),
        "resources" => object(keys::RESOURCES, &[], resources_key),
        "table" => object(keys::TABLE, &[], table_key),
        "figure" | "published" => one_or_list(reference(key)),
        other => part_key(other),
    }
}

fn limits_key(key: &str) -> Value {
    match key {
        "max_folds" => whole(1, MOST_FOLDS),
        "attempts" => whole(1, u32::MAX.into()),
        _ => whole(1, u64::MAX),
    }
}

fn resources_key(key: &str) -> Value {
    match key {
        "device" => json!({"enum": DeviceKind::WORDS}),
        _ => json!({"type": "string", "pattern": "^[0-9.]+ *(MB|GB|MiB|GiB)$"}),
    }
}

fn table_key(key: &str) -> Value {
    match key {
        "rows" => list(reference("shown")),
        "columns" | "group" => reference("shown"),
        "filter" => reference("condition"),
        "labels" => shown_mapping(&json!({"anyOf": [
            {"type": "string"},
            {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
        ]})),
        "order" => shown_mapping(&list(
            json!({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]}),
        )),
        "decimals" => whole(0, MOST_DECIMALS),
        "caption" | "label" => json!({"type": "string"}),
        "select" => object(keys::SELECT, &[], |key| match key {
            "among" => list(reference("shown")),
            "per" => json!({"enum": Per::WORDS}),
            _ => json!({"enum": ["validation_accuracy", "last_validation_accuracy"]}),
        }),
        _ => reference("metric"),
    }
}

/// A mapping from settings, or `method`, to the same kind of thing.
fn shown_mapping(of: &Value) -> Value {
    let names = SETTINGS.iter().map(|setting| setting.name).chain(["method"]);
    with_min(closed(names.map(|name| (name.to_owned(), of.clone())).collect(), &[]))
}

fn figure_key(key: &str) -> Value {
    match key {
        "title" => json!({"type": "string"}),
        "metric" => reference("metric"),
        "lines" => list(reference("shown")),
        _ => reference("shown"),
    }
}

fn random_key(key: &str) -> Value {
    match key {
        "budget" => whole(1, MOST_FOLDS),
        "seed" => whole(0, u64::MAX),
        "from" => json!({"const": "grid"}),
        _ => with_min(settings(None, |setting| {
            let mut law = object(keys::LAW, &[], |_| list(value(setting)));
            law["minProperties"] = json!(1);
            law["maxProperties"] = json!(1);
            law
        })),
    }
}

fn published_key(key: &str) -> Value {
    match key {
        "metric" => reference("metric"),
        "methods" => json!({"type": "object", "additionalProperties": reference("condition")}),
        "datasets" => json!({"type": "object", "additionalProperties": {"type": "string"}}),
        "columns" => list(json!({"enum": keys::CELL})),
        "cells" => list(json!({"type": "array"})),
        _ => json!({"type": "string"}),
    }
}
