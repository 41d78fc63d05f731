//! Tables as CSV for further computing: one line per cell, numbers not rounded, empty where there is none.

use crate::table::Table;

/// The table as CSV in long form: the row's labels, the column's label, then the cell.
pub fn csv(table: &Table) -> String {
    let headers = table.row_settings.iter().map(String::as_str).chain([table.column_setting.as_str()]);
    let mirrors = table.columns.iter().any(|column| column.printed_as.is_some());
    let printed = mirrors.then_some("printed_as");
    let rest = ["mean", "std", "n", "planned", "best", "marks"];
    let mut text = line(headers.chain(printed).chain(rest).map(str::to_owned));
    for (labels, column, cell) in table.cells() {
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let marks: Vec<&str> = cell.marks.iter().map(|mark| mark.word()).collect();
        let printed = mirrors.then(|| column.printed_as.clone().unwrap_or_default());
        let labels = labels.iter().cloned().chain([column.label.clone()]).chain(printed);
        let values = [
            number(cell.mean),
            number(cell.std),
            cell.n.to_string(),
            cell.planned.to_string(),
            cell.best.to_string(),
            marks.join(" "),
        ];
        text.push_str(&line(labels.chain(values)));
    }
    text
}

fn line(fields: impl Iterator<Item = String>) -> String {
    fields.map(|field| quoted(&field)).collect::<Vec<_>>().join(",") + "\n"
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", field.replace('"', "\"\""));
    }
    field.to_owned()
}
