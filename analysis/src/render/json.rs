//! Tables as JSON: a list of cells, one a line, each with its labels under the settings' names, numbers not
//! rounded (null where not defined) and the folds behind it. Keys come in a fixed order.

use std::fmt::Write;

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value;
use togl_sweeps::spec::Metric;
use togl_sweeps::{FoldKey, Goal, TrialId};

use crate::emphasis::{Emphasis, NOT_WORSE};
use crate::schema::{ColumnKind, SETTINGS};
use crate::spread::Spread;
use crate::table::{Cell, Table, TableColumn, TableRow};

/// Characters that a fold takes about; only a hint for how much room to make at once.
const ROOM_OF_A_FOLD: usize = 48;
/// The same of a cell without its folds.
const ROOM_OF_A_CELL: usize = 256;

/// The table as a JSON list of cells. Cells that are not planned are left out.
pub fn json(table: &Table) -> String {
    let cells = table.cells().map(|(row, column, cell)| JsonCell { table, row, column, cell });
    let room = |cell: &Cell| ROOM_OF_A_CELL + ROOM_OF_A_FOLD * cell.folds.len();
    let mut text: Vec<u8> = Vec::with_capacity(table.cells().map(|(_, _, cell)| room(cell)).sum::<usize>());
    for (at, cell) in cells.filter(|shown| shown.cell.is_there()).enumerate() {
        text.extend_from_slice(if at == 0 { b"[\n" } else { b",\n" });
        // Texts and finite numbers always serialise; not a number becomes null.
        let _ = serde_json::to_writer(&mut text, &cell);
    }
    text.extend_from_slice(if text.is_empty() { b"[\n\n]\n" } else { b"\n]\n" });
    String::from_utf8(text).unwrap_or_default() // serde_json writes nothing but UTF-8
}

/// Folds as texts. Those of one trial stand together, so its digits are spelt once.
struct Folds<'a>(&'a [FoldKey]);

impl Serialize for Folds<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        let (mut text, mut digits, mut last) = (String::new(), 0, None::<TrialId>);
        for fold in self.0 {
            if last != Some(fold.trial) {
                text = format!("{}/", fold.trial);
                (digits, last) = (text.len(), Some(fold.trial));
            }
            text.truncate(digits);
            let _ = write!(text, "{}/{}", fold.split, fold.seed); // writing to a text cannot fail
            list.serialize_element(&text)?;
        }
        list.end()
    }
}

struct JsonCell<'a> {
    table: &'a Table,
    column: &'a TableColumn,
    row: &'a TableRow,
    cell: &'a Cell,
}

/// The label as JSON of its setting's kind: a depth is a number, a name is text.
pub(crate) fn typed(setting: &str, label: &str) -> Value {
    let text = || Value::String(label.to_owned());
    let spec = SETTINGS.iter().find(|spec| spec.name == setting && spec.kind != ColumnKind::Text);
    spec.map_or_else(text, |_| serde_json::from_str(label).unwrap_or_else(|_| text()))
}

impl JsonCell<'_> {
    /// What was chosen about the whole table, where it is not the default.
    fn serialize_choices<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        if self.table.metric != Metric::TestAccuracy {
            map.serialize_entry("metric", self.table.metric.as_str())?;
        }
        let scale = &self.table.scale;
        if !scale.is_share() || scale.goal != Goal::Max {
            map.serialize_entry("score", &scale.name)?;
            map.serialize_entry("goal", scale.goal.as_str())?;
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
        for (setting, label) in
            self.table.settings().into_iter().zip(self.table.labels(self.row, self.column))
        {
            map.serialize_entry(setting, &typed(setting, label))?;
        }
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
        map.serialize_entry("folds", &Folds(&self.cell.folds))?;
        if self.cell.cited {
            map.serialize_entry("cited", &true)?;
        }
        self.serialize_choices(&mut map)?;
        map.end()
    }
}
