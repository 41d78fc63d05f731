//! Which fields of a list are shown: those that were named with `--fields`, in that order. A field is called as the column that
//! people see or as the key that programs get. Prints nothing.

use serde::Serialize;
use serde_json::{Map, Value};
use togl_sweeps::nearest;

use crate::output::ListRow;
use crate::problem::Problem;

/// Fields that were chosen.
pub struct Fields {
    names: Vec<String>,
}

/// One row in what was chosen, in that order.
#[derive(Debug, PartialEq)]
pub struct ChosenFields(Vec<(String, Value, String)>);

impl Fields {
    /// Those that were named; all of them must be fields of the list.
    pub fn of<R: ListRow>(named: &[String]) -> Result<Self, Problem> {
        let known: Vec<String> = R::COLUMNS
            .iter()
            .map(|column| field(column))
            .chain(R::ALSO.iter().map(ToString::to_string))
            .collect();
        let check = |name: &String| {
            let name = field(name);
            if known.contains(&name) {
                return Ok(name);
            }
            let hint = nearest::hint(&name, known.iter().map(String::as_str).collect::<Vec<_>>());
            Err(Problem::usage(format!("this list has no field `{name}`")).hint(hint))
        };
        Ok(Self { names: named.iter().map(check).collect::<Result<_, _>>()? })
    }

    /// What the columns are called above a table.
    pub fn heads(&self) -> Vec<String> {
        self.names.iter().map(|name| name.to_uppercase().replace('_', " ")).collect()
    }

    /// What programs read.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The chosen fields of a row. What it does not have is empty.
    pub fn take<R: ListRow>(&self, row: &R) -> Result<ChosenFields, Problem> {
        let told = match serde_json::to_value(row).map_err(Problem::ours)? {
            Value::Object(told) => told,
            _ => Map::new(),
        };
        let cells = row.cells();
        let one = |name: &String| {
            let column = R::COLUMNS.iter().position(|column| field(column) == *name);
            let cell = column.and_then(|at| cells.get(at)).cloned();
            let value = told.get(name).cloned();
            let text = cell.clone().unwrap_or_else(|| value.as_ref().map(plain).unwrap_or_default());
            (name.clone(), value.or(cell.map(Value::String)).unwrap_or(Value::Null), text)
        };
        Ok(ChosenFields(self.names.iter().map(one).collect()))
    }
}

impl ChosenFields {
    /// As people and spreadsheets read it.
    pub fn cells(&self) -> Vec<String> {
        self.0.iter().map(|(_, _, text)| text.clone()).collect()
    }
}

impl Serialize for ChosenFields {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value, _)| (name, value)))
    }
}

/// A column as it is typed: `LAST LEASE (UTC)` is `last_lease`.
pub fn field(column: &str) -> String {
    let column = column.split('(').next().unwrap_or_default();
    column.trim().to_lowercase().replace([' ', '-'], "_")
}

/// A value without the signs of JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(" "),
        Value::Object(values) => values
            .iter()
            .map(|(name, value)| format!("{name}={}", plain(value)))
            .collect::<Vec<_>>()
            .join(" "),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Line {
        name: &'static str,
        last_lease: Option<u32>,
        devices: Vec<&'static str>,
    }

    impl ListRow for Line {
        const COLUMNS: &'static [&'static str] = &["NAME", "LAST LEASE (UTC)", "BUSY"];
        const ALSO: &'static [&'static str] = &["devices"];
        fn cells(&self) -> Vec<String> {
            vec![self.name.to_owned(), "never".to_owned(), "2".to_owned()]
        }
    }

    #[test]
    fn fields_come_in_the_order_asked_for_by_column_or_key() {
        let line = Line { name: "w", last_lease: None, devices: vec!["cpu", "cpu"] };
        let named = ["busy", "Devices", "LAST-LEASE", "name"].map(str::to_owned);
        let fields = Fields::of::<Line>(&named).unwrap();
        assert_eq!(fields.heads(), ["BUSY", "DEVICES", "LAST LEASE", "NAME"]);
        let chosen = fields.take(&line).unwrap();
        assert_eq!(chosen.cells(), ["2", "cpu cpu", "never", "w"]);
        let json = serde_json::to_string(&chosen).unwrap();
        assert_eq!(json, r#"{"busy":"2","devices":["cpu","cpu"],"last_lease":null,"name":"w"}"#);
        assert!(Fields::of::<Line>(&["bsy".to_owned()]).is_err());
    }
}
