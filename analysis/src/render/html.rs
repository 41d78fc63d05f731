//! Tables as an HTML fragment without style or script: it goes into any page. All text is escaped.

use super::{Shown, lines_below, row_headers, row_labels, shown};
use crate::table::{Cell, Table};

/// The table as an HTML `figure`.
pub fn html(table: &Table) -> String {
    let mut lines = vec!["<figure class=\"togl-table\">".to_owned(), "<table>".to_owned()];
    lines.push(format!("<caption>{}</caption>", escape(&table.title)));
    let headers = row_headers(table).into_iter().map(escape);
    let headers = headers.chain(table.columns.iter().map(|column| escape(&column.label)));
    let headers: String = headers.map(|text| format!("<th scope=\"col\">{text}</th>")).collect();
    lines.push(format!("<thead><tr>{headers}</tr></thead>"));
    lines.push("<tbody>".to_owned());
    for row in &table.rows {
        let labels =
            row_labels(row).into_iter().map(|text| format!("<th scope=\"row\">{}</th>", escape(&text)));
        let cells = row.cells.iter().map(|cell| format!("<td>{}</td>", number(cell, table)));
        lines.push(format!("<tr>{}</tr>", labels.chain(cells).collect::<String>()));
    }
    lines.extend(["</tbody>", "</table>"].map(str::to_owned));
    let below: Vec<String> = lines_below(table, "Bold:", "Italic:").iter().map(|note| escape(note)).collect();
    lines.push(format!("<figcaption>{}</figcaption>", below.join("<br>")));
    lines.push("</figure>".to_owned());
    lines.join("\n") + "\n"
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
