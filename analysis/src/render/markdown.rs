//! Tables as GitHub-flavoured Markdown: right-aligned cells, winners in bold, caption and notes below.

use super::{Around, columns_are, full_header, lines_below, row_headers, row_labels_in_words};
use crate::table::Table;

const NUMBER: Around = Around { italic: ["_", "_"], bold: ["**", "**"], count: [" ", ""], marks: ["", ""] };

/// The table as Markdown.
pub fn markdown(table: &Table) -> String {
    let mut headers = row_headers(table);
    // Nothing can stand over several columns here, so the corner says what they are.
    if let Some(corner) = headers.last_mut() {
        *corner = format!("{corner} ↓ {} →", columns_are(table)).trim_start().to_owned();
    }
    let aligned = std::iter::repeat_n(":--", headers.len()).chain(table.columns.iter().map(|_| "--:"));
    let header = headers
        .iter()
        .map(|text| escape(text))
        .chain(table.columns.iter().map(|c| escape(&full_header(table, c))));
    let mut text = format!("### {}\n\n", escape(&table.title));
    text.push_str(&line(header));
    text.push_str(&line(aligned.map(str::to_owned)));
    for row in &table.rows {
        let labels = row_labels_in_words(table, row).into_iter().map(|label| escape(&label));
        text.push_str(&line(labels.chain(row.cells.iter().map(|cell| NUMBER.number(cell, table, escape)))));
    }
    let below: Vec<String> = lines_below(table, "bold:", "italic:").iter().map(|note| escape(note)).collect();
    let (caption, notes) = below.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    text.push_str(&format!("\n{caption}\n"));
    if !notes.is_empty() {
        text.push_str(&format!("\n{}", notes.iter().map(|note| format!("- {note}\n")).collect::<String>()));
    }
    text
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if matches!(character, '\\' | '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '#') {
            escaped.push('\\');
        }
        escaped.push(if character == '\n' { ' ' } else { character });
    }
    escaped
}
