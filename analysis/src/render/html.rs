//! Tables as HTML: a page of its own, or a fragment without style or script that goes into any page. No script, no font,
//! no picture from elsewhere. All text is escaped.

use super::{Around, column_header, lines_above, lines_below, row_headers, row_labels_in_words};
use crate::table::Table;

const STYLE: &str = include_str!("style.css");

const NUMBER: Around = Around {
    italic: ["<em>", "</em>"],
    bold: ["<strong>", "</strong>"],
    count: [" <small>", "</small>"],
    marks: ["<sup>", "</sup>"],
};

/// The table as a page that can be opened, mailed and archived.
pub fn html(table: &Table) -> String {
    page(&table.title, &fragment(table))
}

/// A whole page; `body` is HTML already.
pub fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        escape(title)
    )
}

/// The table as an HTML `figure`.
pub fn fragment(table: &Table) -> String {
    let mut lines = vec!["<figure class=\"togl-table\">".to_owned(), "<table>".to_owned()];
    lines.push(format!("<caption>{}</caption>", escape(&table.title)));
    let labels = row_headers(table).into_iter().map(|text| (text, " class=\"label\""));
    let columns = table.columns.iter().map(|column| (column_header(table, column), ""));
    let header = |(text, class): (String, &str)| format!("<th scope=\"col\"{class}>{}</th>", escape(&text));
    let headers: String = labels.chain(columns).map(header).collect();
    lines.push(format!("<thead>{}<tr>{headers}</tr></thead>", headers_above(table)));
    lines.push("<tbody>".to_owned());
    for row in &table.rows {
        let labels = row_labels_in_words(table, row)
            .into_iter()
            .map(|text| format!("<th scope=\"row\">{}</th>", escape(&text)));
        let cells =
            row.cells.iter().map(|cell| format!("<td>{}</td>", NUMBER.number(cell, table, str::to_owned)));
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

/// The lines of headers that columns share.
fn headers_above(table: &Table) -> String {
    let labels = format!("<td colspan=\"{}\"></td>", row_headers(table).len());
    let line = |spans: &Vec<(String, usize)>| {
        let headers = spans.iter().map(|(header, columns)| {
            format!("<th scope=\"colgroup\" colspan=\"{columns}\">{}</th>", escape(header))
        });
        format!("<tr>{labels}{}</tr>", headers.collect::<String>())
    };
    lines_above(table).iter().map(line).collect()
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
