//! Reading newline-delimited JSON into a frame, with the line named where something does not fit. Polars' own
//! reader guesses types from the values and panics or leaves holes where a guess fails, so lines are parsed here
//! and only the finished columns are handed over. Knows the schema's kinds, not their meaning.

use std::io::BufRead;
use std::path::Path;

use polars::prelude::{Column, DataFrame, NamedFrom, Series};
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::files::Declared;
use crate::schema::{self, ColumnKind};

/// What one line says.
type Object = Map<String, Value>;

/// Reads all lines; `path` is for errors.
pub fn read(bytes: &[u8], path: &Path) -> Result<DataFrame> {
    let lines = parse(bytes, path)?;
    let names = names(&lines);
    let declared = Declared { rows: lines.len() as u64, columns: names.len() as u64, bytes: 0 };
    declared.check(bytes.len()).map_err(|error| Error::bad_file(path, error))?;
    let mut columns = Vec::new();
    for name in names {
        let spec = schema::columns().find(|spec| spec.name == name);
        let values: Vec<&Value> =
            lines.iter().map(|(_, line)| line.get(&name).unwrap_or(&Value::Null)).collect();
        let kind = spec.map_or_else(|| guess(&values), |spec| spec.kind);
        let wrong = values.iter().position(|value| !value.is_null() && !fits(kind, value));
        if let (Some(_), Some(at)) = (spec, wrong) {
            let reason =
                format!("line {}: `{name}` is {}, which does not fit its column", lines[at].0, values[at]);
            return Err(Error::bad_file(path, reason));
        }
        columns.push(column(&name, kind, &values));
    }
    Ok(DataFrame::new(lines.len(), columns)?)
}

/// The objects of all lines that are not blank, each with its number from 1.
fn parse(reader: impl BufRead, path: &Path) -> Result<Vec<(usize, Object)>> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(reader.lines()) {
        let line = line.map_err(|source| Error::io("cannot read", path, source))?;
        if line.trim().is_empty() {
            continue;
        }
        let object = serde_json::from_str(&line)
            .map_err(|error| Error::bad_file(path, format!("line {number} is not a JSON object: {error}")))?;
        lines.push((number, object));
    }
    Ok(lines)
}

/// Names of the schema that occur, in its order, then the others in order of appearance.
fn names(lines: &[(usize, Object)]) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    let mut others = Vec::new();
    for name in lines.iter().flat_map(|(_, line)| line.keys()) {
        if seen.insert(name.as_str()) && schema::columns().all(|spec| spec.name != name) {
            others.push(name.clone());
        }
    }
    let known = schema::columns().filter(|spec| seen.contains(spec.name)).map(|spec| spec.name.to_owned());
    known.chain(others).collect()
}

fn fits(kind: ColumnKind, value: &Value) -> bool {
    match kind {
        ColumnKind::Text => value.is_string(),
        ColumnKind::Count => value.is_u64(),
        ColumnKind::Number => value.is_number(),
        ColumnKind::Flag => value.is_boolean(),
    }
}

/// The narrowest kind that all values of an unknown column fit; text holds anything, spelt as JSON.
fn guess(values: &[&Value]) -> ColumnKind {
    let all = |kind: ColumnKind| values.iter().all(|value| value.is_null() || fits(kind, value));
    [ColumnKind::Flag, ColumnKind::Count, ColumnKind::Number]
        .into_iter()
        .find(|kind| all(*kind))
        .unwrap_or(ColumnKind::Text)
}

fn column(name: &str, kind: ColumnKind, values: &[&Value]) -> Column {
    let values = values.iter();
    let name = name.into();
    match kind {
        ColumnKind::Text => Series::new(name, values.map(|value| text(value)).collect::<Vec<_>>()),
        ColumnKind::Count => Series::new(name, values.map(|value| value.as_u64()).collect::<Vec<_>>()),
        ColumnKind::Number => Series::new(name, values.map(|value| value.as_f64()).collect::<Vec<_>>()),
        ColumnKind::Flag => Series::new(name, values.map(|value| value.as_bool()).collect::<Vec<_>>()),
    }
    .into()
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<DataFrame> {
        read(text.as_bytes(), Path::new("x.ndjson"))
    }

    #[test]
    fn a_broken_line_is_named() {
        let message = read_text("{\"seed\": 1}\n\n{\"seed\": \n").unwrap_err().to_string();
        assert!(message.starts_with("cannot read `x.ndjson`: line 3 is not a JSON object: EOF"), "{message}");
    }

    #[test]
    fn a_value_of_another_kind_is_named() {
        let error = read_text("{\"seed\": 1}\n{\"seed\": -1}\n").unwrap_err();
        insta::assert_snapshot!(error, @"cannot read `x.ndjson`: line 2: `seed` is -1, which does not fit its column");
    }

    #[test]
    fn columns_come_in_the_order_of_the_schema_then_as_they_appear() {
        let data = read_text("{\"extra\": 1.5, \"seed\": 18446744073709551615, \"trial\": \"t\"}\n").unwrap();
        let names: Vec<&str> = data.get_column_names().into_iter().map(|name| name.as_str()).collect();
        assert_eq!(names, ["trial", "seed", "extra"]);
        assert_eq!(data.column("seed").unwrap().u64().unwrap().get(0), Some(u64::MAX));
    }
}
