//! The JSON Schema of a sweep file, made from the tables that the reader uses: editors complete keys and check values
//! with it. It is a little more lenient than the reader, which also knows what cannot be said in a schema. Which key takes
//! what is in `keys`.

use serde_json::{Map, Value, json};

use crate::keys::{self, Block};
use crate::presets;
use crate::settings::{SETTINGS, Setting, ValueKind};
use crate::spec::Metric;

/// The schema.
pub fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "togl sweep",
        "if": {"required": ["program"]},
        "then": of_a_program(),
        "else": object(keys::SWEEP, &["version", "name"]),
        "$defs": definitions(),
    })
}

/// A sweep of a program names settings that only the file knows; what names settings is left to the reader.
fn of_a_program() -> Value {
    let mut root = object(keys::SWEEP, &["version", "name"]);
    for key in NAMING_SETTINGS {
        let about = root["properties"][key]["description"].take();
        root["properties"][key] = json!({"type": ["object", "array"], "description": about});
    }
    root
}

/// Keys of a sweep under which settings are named.
const NAMING_SETTINGS: [&str; 11] =
    ["base", "grid", "zip", "exclude", "random", "union", "race", "halve", "table", "figure", "published"];

fn definitions() -> Value {
    json!({
        "base": settings(Some(json!({"enum": presets::names().collect::<Vec<_>>()})), value),
        "grid": with_min(settings(Some(preset_list()), axis)),
        "zip": zip(),
        "condition": with_min(settings(None, |setting| one_or_list(value(setting)))),
        "random": object(keys::RANDOM_KEYS, &["budget"]),
        "part": object(keys::PART, &[]),
        "splits": whole_list(u32::MAX.into()),
        "seeds": whole_list(u64::MAX),
        "metric": {"enum": Metric::WORDS},
        "shown": {"enum": shown_names().collect::<Vec<_>>()},
        "figure": object(keys::FIGURE, &["x"]),
        "published": object(keys::PUBLISHED, &["table"]),
    })
}

pub(crate) fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// A mapping with the keys of a block, each with its sentence.
pub(crate) fn object(block: Block, required: &[&str]) -> Value {
    object_of(block, required, &Value::Null)
}

/// The same of a block about values with this schema.
fn object_of(block: Block, required: &[&str], value: &Value) -> Value {
    let properties = block.iter().map(|key| (key.name.to_owned(), described((key.schema)(value), key.about)));
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

/// Some text.
pub(crate) fn text(_: &Value) -> Value {
    json!({"type": "string"})
}

/// What a table can average.
pub(crate) fn metric(_: &Value) -> Value {
    reference("metric")
}

/// A setting, or `method`.
pub(crate) fn shown(_: &Value) -> Value {
    reference("shown")
}

pub(crate) fn shown_list(_: &Value) -> Value {
    list(reference("shown"))
}

fn shown_names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().map(|setting| setting.name).chain(["method"])
}

pub(crate) fn list(items: Value) -> Value {
    json!({"type": "array", "items": items, "minItems": 1})
}

pub(crate) fn one_or_list(schema: Value) -> Value {
    json!({"anyOf": [schema.clone(), list(schema)]})
}

pub(crate) fn whole(least: u64, most: u64) -> Value {
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
        ValueKind::Text => json!({"type": "string"}),
        ValueKind::Flag => json!({"type": "boolean"}),
        ValueKind::Whole(least, most) => whole(least, most),
        ValueKind::Real(least, most) => json!({"type": "number", "minimum": least, "maximum": most}),
        ValueKind::Word(words) => json!({"enum": words}),
        ValueKind::Position => json!({"anyOf": [whole(0, u32::MAX.into()), {"const": "last"}]}),
    }
}

fn preset_list() -> Value {
    list(json!({"enum": presets::names().collect::<Vec<_>>()}))
}

/// A list of values, some with a condition, or a range.
fn axis(setting: &Setting) -> Value {
    let value = value(setting);
    json!({"anyOf": [list(axis_value(&value)), object_of(keys::AXIS, &[], &value)]})
}

/// A value, or one with a condition.
pub(crate) fn axis_value(value: &Value) -> Value {
    json!({"anyOf": [value, object_of(keys::VALUE, &["value"], value)]})
}

fn zip() -> Value {
    let mut one = with_min(settings(Some(preset_list()), axis));
    one["properties"]["when"] = reference("condition");
    one_or_list(one)
}

fn whole_list(most: u64) -> Value {
    let number = whole(0, most);
    json!({"anyOf": [list(number.clone()), object_of(keys::RANGE, &["from", "to"], &number)]})
}

/// A distribution for each of some settings.
pub(crate) fn distributions(_: &Value) -> Value {
    with_min(settings(None, |setting| {
        let mut law = object_of(keys::LAW, &[], &value(setting));
        law["minProperties"] = json!(1);
        law["maxProperties"] = json!(1);
        law
    }))
}

/// What is printed for settings: for the setting itself, or for its values.
pub(crate) fn labels(_: &Value) -> Value {
    shown_mapping(&json!({"anyOf": [
        {"type": "string"},
        {"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
    ]}))
}

/// Values of settings in an order.
pub(crate) fn order(_: &Value) -> Value {
    shown_mapping(&list(json!({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]})))
}

/// A mapping from settings, or `method`, to the same kind of thing.
fn shown_mapping(of: &Value) -> Value {
    with_min(closed(shown_names().map(|name| (name.to_owned(), of.clone())).collect(), &[]))
}

/// A mapping from any names.
pub(crate) fn mapping_to(of: Value) -> Value {
    json!({"type": "object", "additionalProperties": of})
}
