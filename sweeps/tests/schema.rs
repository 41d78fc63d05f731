//! What is made from the table of settings: the tables of the documentation, and the JSON Schema that we ship. Every
//! shipped sweep fits the schema, and it refuses what the reader refuses where a schema can. Checked with a validator of
//! just the words that our schema uses.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use serde_json::Value;
use togl_sweeps::TrialConfig;
use togl_sweeps::schema::schema;
use togl_sweeps::settings::{SETTINGS, Setting, ValueKind};

mod files;

fn shipped_schema() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("sweep.schema.json")
}

#[test]
fn the_shipped_schema_is_current() {
    let made = format!("{:#}\n", schema());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(shipped_schema(), &made).unwrap();
    }
    let shipped = fs::read_to_string(shipped_schema()).unwrap();
    assert!(shipped == made, "run the tests with UPDATE_DOCS=1 to write sweeps/sweep.schema.json again");
}

/// A number as people write it: 1e-12, 0.99, 1000.
fn plain(number: f64) -> String {
    Value::from(number).to_string().trim_end_matches(".0").to_owned()
}

fn row(setting: &Setting) -> String {
    let coded = |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    let values = match setting.kind {
        ValueKind::Text => "see [data.md](data.md)".to_owned(),
        ValueKind::Flag => String::new(),
        ValueKind::Whole(_, u64::MAX) => "whole number".to_owned(),
        ValueKind::Whole(least, most) => format!("{least} to {most}"),
        ValueKind::Real(least, most) => format!("{} to {}", plain(least), plain(most)),
        ValueKind::Word(words) => coded(words),
        ValueKind::Position => "0 to the number of layers, or `last`".to_owned(),
    };
    let default = match setting.value(&TrialConfig::default()) {
        Value::String(text) if text.is_empty() => "none".to_owned(),
        Value::String(text) => coded(&[&text]),
        Value::Number(number) => plain(number.as_f64().unwrap()),
        other => other.to_string(),
    };
    let (name, about, needs) = (setting.name, setting.about, setting.needs.words);
    format!("| `{name}` | {default} | {values} | {about} | {needs} |\n")
}

/// A table for each section.
fn settings_as_tables() -> String {
    let sections = SETTINGS.chunk_by(|a, b| a.section == b.section).map(|settings| {
        let rows: String = settings.iter().map(row).collect();
        let head = "| setting | default | values | meaning | needs |\n|---|---|---|---|---|\n";
        format!("\n### {}\n{head}{rows}", settings[0].section)
    });
    sections.collect()
}

#[test]
fn the_documentation_has_the_table_of_settings() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/sweep-files.md");
    let Ok(text) = fs::read_to_string(&path) else {
        return; // the crate alone, without the documentation of the project
    };
    let begin = text.find("<!-- Made from sweeps/src/settings_table.rs").unwrap();
    let begin = begin + text[begin..].find('\n').unwrap() + 1;
    let end = text.find("\n<!-- end of settings -->").unwrap();
    let made = settings_as_tables();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{}{made}{}", &text[..begin], &text[end..])).unwrap();
    } else {
        assert!(
            text[begin..end] == made,
            "run this test with UPDATE_DOCS=1 to write docs/sweep-files.md again"
        );
    }
}

/// The first place where a value does not fit.
#[expect(clippy::too_many_lines, reason = "a dispatcher: one line a word of the schema")]
fn misfit(root: &Value, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("{path}: {why}"));
    for (word, rule) in schema.as_object().unwrap() {
        let fits = match word.as_str() {
            "$schema" | "title" | "description" | "$defs" | "properties" => true,
            "$ref" => {
                let target = root.pointer(rule.as_str().unwrap().trim_start_matches('#')).unwrap();
                misfit(root, target, value, path)?;
                true
            }
            "then" | "else" => true,
            "if" => {
                let branch = if misfit(root, rule, value, path).is_ok() { "then" } else { "else" };
                misfit(root, &schema[branch], value, path)?;
                true
            }
            "type" => match rule {
                Value::Array(types) => types.iter().any(|name| has_type(name.as_str().unwrap(), value)),
                one => has_type(one.as_str().unwrap(), value),
            },
            "const" => value == rule,
            "enum" => rule.as_array().unwrap().contains(value),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
            "exclusiveMinimum" => value.as_f64().is_none_or(|number| number > rule.as_f64().unwrap()),
            "pattern" => value.as_str().is_none_or(|text| !text.is_empty()),
            "minItems" => value.as_array().is_none_or(|list| list.len() as u64 >= rule.as_u64().unwrap()),
            "minProperties" => value.as_object().is_none_or(|map| map.len() as u64 >= rule.as_u64().unwrap()),
            "maxProperties" => value.as_object().is_none_or(|map| map.len() as u64 <= rule.as_u64().unwrap()),
            "required" => {
                rule.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some())
            }
            "anyOf" => rule.as_array().unwrap().iter().any(|one| misfit(root, one, value, path).is_ok()),
            "items" => {
                for (at, entry) in value.as_array().into_iter().flatten().enumerate() {
                    misfit(root, rule, entry, &format!("{path}[{at}]"))?;
                }
                true
            }
            "additionalProperties" => {
                properties(root, schema, rule, value, path)?;
                true
            }
            other => panic!("the validator does not know `{other}`"),
        };
        if !fits {
            return wrong(&format!("does not fit `{word}`: {rule}"));
        }
    }
    Ok(())
}

fn properties(root: &Value, schema: &Value, others: &Value, value: &Value, path: &str) -> Result<(), String> {
    for (key, entry) in value.as_object().into_iter().flatten() {
        let path = format!("{path}.{key}");
        match (schema.get("properties").and_then(|known| known.get(key)), others) {
            (Some(rule), _) => misfit(root, rule, entry, &path)?,
            (None, Value::Bool(false)) => return Err(format!("{path}: unknown key")),
            (None, rule) => misfit(root, rule, entry, &path)?,
        }
    }
    Ok(())
}

fn has_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("the validator does not know the type `{other}`"),
    }
}

fn check(text: &str) -> Result<(), String> {
    let value: Value = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
    let schema = schema();
    misfit(&schema, &schema, &value, "")
}

#[test]
fn every_shipped_sweep_fits_the_schema() {
    for path in files::shipped() {
        let text = fs::read_to_string(&path).unwrap();
        check(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

#[test]
fn the_schema_refuses_what_an_editor_should_mark() {
    let head = "version: 1\nname: x\n";
    for (body, where_) in [
        ("gird: {}", ".gird"),
        ("base: {dpeth: 3}", ".base.dpeth"),
        ("base: {depth: 65}", ".base.depth"),
        ("base: {model: gnc}", ".base.model"),
        ("grid: {depth: 3}", ".grid.depth"),
        ("table: {metric: accuracy}", ".table.metric"),
        ("limits: {attempts: 0}", ".limits.attempts"),
        ("program: {run: python3}", ".program.run"),
        ("program: {run: [x], settings: {lr: numbre}}", ".program.settings.lr"),
        ("program: {run: [x]}\nbase: 3", ".base"),
    ] {
        let error = check(&format!("{head}{body}")).unwrap_err();
        assert!(error.starts_with(&format!("{where_}: ")), "{body}: {error}");
    }
    check(&format!("{head}base: {{dataset: cycles}}")).unwrap();
    let own = "program: {run: [./train], version: 3, settings: {width: whole, lr: {from: 0, to: 1}}}";
    check(&format!("{head}{own}\nbase: {{dataset: mine, width: 3}}")).unwrap();
}
