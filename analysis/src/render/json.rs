//! Tables as JSON: a list of cells, one a line, each with its labels under the settings' names, numbers not
//! rounded (null where not defined) and the folds behind it. Keys come in a fixed order.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use togl_sweeps::spec::Metric;

use crate::cells::metric_column;
use crate::emphasis::{Emphasis, NOT_WORSE};
use crate::schema::{Kind, SETTINGS};
use crate::spread::Spread;
use crate::table::{Cell, Row, Table, TableColumn};

/// The table as a JSON list of cells. Cells that are not planned are left out.
pub fn json(table: &Table) -> String {
    let cells = table.rows.iter().flat_map(|row| {
        row.cells.iter().zip(&table.columns).map(move |(cell, column)| JsonCell { table, row, column, cell })
    });
    let lines: Vec<String> = cells
        .filter(|shown| shown.cell.is_there())
        .map(|cell| {
            // Texts and finite numbers always serialise; not a number becomes null.
            serde_json::to_string(&cell).unwrap_or_default()
        })
        .collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}

struct JsonCell<'a> {
    table: &'a Table,
    column: &'a TableColumn,
    row: &'a Row,
    cell: &'a Cell,
}

/// The label as JSON of its setting's kind: a depth is a number, a name is text.
pub(crate) fn typed(setting: &str, label: &str) -> Value {
    let text = || Value::String(label.to_owned());
    let spec = SETTINGS.iter().find(|spec| spec.name == setting && spec.kind != Kind::Text);
    spec.map_or_else(text, |_| serde_json::from_str(label).unwrap_or_else(|_| text()))
}

impl JsonCell<'_> {
    /// What was chosen about the whole table, where it is not the default.
    fn serialize_choices<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        if self.table.metric != Metric::TestAccuracy {
            map.serialize_entry("metric", metric_column(self.table.metric))?;
        }
        if self.table.spread != Spread::SampleStd {
            map.serialize_entry(&self.table.spread.name(), &self.cell.plus_minus(self.table.spread))?;
        }
        if self.table.spread == Spread::Quartiles {
            map.serialize_entry("median", &self.cell.centre(self.table.spread))?;
        }
        if self.table.emphasis == Emphasis::NotSignificantlyWorse {
            map.serialize_entry(NOT_WORSE, &self.cell.stands_out())?;
        }
        Ok(())
    }
}

impl Serialize for JsonCell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (setting, label) in self.table.row_settings.iter().zip(&self.row.labels) {
            map.serialize_entry(setting, &typed(setting, label))?;
        }
        if let (Some(setting), Some(group)) = (&self.table.group_setting, &self.column.group) {
            map.serialize_entry(setting, &typed(setting, group))?;
        }
        map.serialize_entry(
            &self.table.column_setting,
            &typed(&self.table.column_setting, &self.column.label),
        )?;
        if let Some(printed) = self.column.printed_as.as_ref().or(self.row.printed_as.as_ref()) {
            map.serialize_entry("printed_as", printed)?;
        }
        map.serialize_entry("mean", &self.cell.mean)?;
        map.serialize_entry("std", &self.cell.std)?;
        map.serialize_entry("n", &self.cell.n)?;
        map.serialize_entry("planned", &self.cell.planned)?;
        map.serialize_entry("best", &self.cell.best)?;
        let marks: Vec<&str> = self.cell.marks.iter().map(|mark| mark.word()).collect();
        map.serialize_entry("marks", &marks)?;
        map.serialize_entry("folds", &self.cell.folds)?;
        if self.cell.cited {
            map.serialize_entry("cited", &true)?;
        }
        self.serialize_choices(&mut map)?;
        map.end()
    }
}
