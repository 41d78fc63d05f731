//! What stands above and beside the cells of a table: names of settings, labels of rows and columns, and headers that
//! several columns share, all as people are to read them. Machine-readable formats keep the words of trials.

use crate::columns::is_among;
use crate::table::{Table, TableColumn, TableRow};

/// What a header says of a setting.
fn setting(table: &Table, name: &str) -> String {
    let header =
        table.labels.iter().filter(|labels| labels.setting == name).find_map(|labels| labels.header.clone());
    header.unwrap_or_else(|| name.to_owned())
}

/// What is printed for a value of a setting.
pub(crate) fn value(table: &Table, name: &str, value: &str) -> String {
    let values =
        table.labels.iter().filter(|labels| labels.setting == name).flat_map(|labels| &labels.values);
    let mut printed = values.filter(|(known, _)| is_among(value, std::slice::from_ref(known)));
    printed.next().map_or_else(|| value.to_owned(), |(_, printed)| printed.clone())
}

/// What stands above the label columns; one empty header where no setting labels rows.
pub(super) fn row_headers(table: &Table) -> Vec<String> {
    if table.row_settings.is_empty() {
        return vec![String::new()];
    }
    table.row_settings.iter().map(|name| setting(table, name)).collect()
}

/// What the columns are.
pub(super) fn columns_are(table: &Table) -> String {
    let names = table.group_setting.iter().chain([&table.column_setting]);
    names.map(|name| setting(table, name)).collect::<Vec<_>>().join(", ")
}

/// The header of a column.
pub(super) fn column_header(table: &Table, column: &TableColumn) -> String {
    value(table, &table.column_setting, &column.label)
}

/// The header of a column where groups cannot stand over it.
pub(super) fn full_header(table: &Table, column: &TableColumn) -> String {
    let header = column_header(table, column);
    match group(table, column) {
        group if group.is_empty() => header,
        group => format!("{group}: {header}"),
    }
}

fn group(table: &Table, column: &TableColumn) -> String {
    let group = column.group.as_deref().unwrap_or_default();
    table.group_setting.as_ref().map_or_else(|| group.to_owned(), |name| value(table, name, group))
}

/// The lines of headers over those of the columns, each with how many neighbours it spans: what the columns are, and
/// their groups where they have some.
pub(super) fn lines_above(table: &Table) -> Vec<Vec<(String, usize)>> {
    let mut spans: Vec<(String, usize)> = Vec::new();
    for group in table.columns.iter().map(|column| group(table, column)) {
        match spans.last_mut() {
            Some((last, count)) if *last == group => *count += 1,
            _ => spans.push((group, 1)),
        }
    }
    let grouped = spans.iter().any(|(group, _)| !group.is_empty());
    let names = vec![(columns_are(table), table.columns.len())];
    std::iter::once(names).chain(grouped.then_some(spans)).collect()
}

/// As [`row_labels`], and in words where colour cannot say that a row is cited.
pub(super) fn row_labels_in_words(table: &Table, row: &TableRow) -> Vec<String> {
    let mut labels = row_labels(table, row);
    if let (Some(last), true) = (labels.last_mut(), row.is_cited()) {
        last.push_str(" (cited)");
    }
    labels
}

/// The labels of a row, as many as [`row_headers`] has; the last also says what a publication prints.
pub(super) fn row_labels(table: &Table, row: &TableRow) -> Vec<String> {
    if row.labels.is_empty() {
        return vec!["all".to_owned()];
    }
    let named = table.row_settings.iter().zip(&row.labels);
    let mut labels: Vec<String> = named.map(|(name, label)| value(table, name, label)).collect();
    if let (Some(last), Some(printed)) = (labels.last_mut(), &row.printed_as)
        && last != printed
    {
        last.push_str(&format!(" [{printed}]"));
    }
    labels
}
