//! Tables as an HTML fragment without style or script: it goes into any page. All text is escaped.

use super::{Shown, group_spans, lines_below, row_headers, row_labels_in_words, shown};
use crate::table::{Cell, Table};

/// The table as an HTML `figure`.
pub fn html(table: &Table) -> String {
    let mut lines = vec!["<figure class=\"togl-table\">".to_owned(), "<table>".to_owned()];
    lines.push(format!("<caption>{}</caption>", escape(&table.title)));
    let headers = row_headers(table).into_iter().map(escape);
    let headers = headers.chain(table.columns.iter().map(|column| escape(&column.label)));
    let headers: String = headers.map(|text| format!("<th scope=\"col\">{text}</th>")).collect();
    lines.push(format!("<thead>{}<tr>{headers}</tr></thead>", group_line(table)));
    lines.push("<tbody>".to_owned());
    for row in &table.rows {
        let labels = row_labels_in_words(row)
            .into_iter()
            .map(|text| format!("<th scope=\"row\">{}</th>", escape(&text)));
        let cells = row.cells.iter().map(|cell| format!("<td>{}</td>", number(cell, table)));
        // Inline, because the table may go into a page with a style of its own.
        let cited = if row.is_cited() { " class=\"cited\" style=\"color: #767676\"" } else { "" };
        lines.push(format!("<tr{cited}>{}</tr>", labels.chain(cells).collect::<String>()));
    }
    lines.extend(["</tbody>", "</table>"].map(str::to_owned));
    let below: Vec<String> = lines_below(table, "Bold:", "Italic:").iter().map(|note| escape(note)).collect();
    lines.push(format!("<figcaption>{}</figcaption>", below.join("<br>")));
    lines.push("</figure>".to_owned());
    lines.join("\n") + "\n"
}

/// The line of common headers over grouped columns.
fn group_line(table: &Table) -> String {
    let spans = group_spans(table);
    if spans.is_empty() {
        return String::new();
    }
    let labels = format!("<td colspan=\"{}\"></td>", row_headers(table).len());
    let groups = spans.iter().map(|(group, columns)| {
        format!("<th scope=\"colgroup\" colspan=\"{columns}\">{}</th>", escape(group))
    });
    format!("<tr>{labels}{}</tr>", groups.collect::<String>())
}

fn number(cell: &Cell, table: &Table) -> String {
    match shown(cell, table) {
        Shown::NotPlanned => String::new(),
        Shown::Missing => "–".to_owned(),
        Shown::Value(value) => {
            let number = format!("{} ± {}", value.mean, value.std);
            let number = if cell.wins_comparison { format!("<em>{number}</em>") } else { number };
            let number = if cell.stands_out() { format!("<strong>{number}</strong>") } else { number };
            let count = value.count.map(|count| format!(" <small>{count}</small>")).unwrap_or_default();
            let signs: String = value.marks.iter().map(|mark| mark.sign()).collect();
            let signs = if signs.is_empty() { signs } else { format!("<sup>{signs}</sup>") };
            format!("{number}{count}{signs}")
        }
    }
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
