//! The frame of the page and its few kinds of blocks. All text that comes from outside goes through here and is
//! escaped here.

use crate::render::{escape, page};

/// The page: its title, when it was made, and its sections, each a heading and HTML.
pub fn finished(title: &str, made_at: &str, sections: &[(&str, String)]) -> String {
    let links = sections
        .iter()
        .map(|(heading, _)| format!("<a href=\"#{}\">{}</a>", anchor(heading), escape(heading)));
    let body = sections.iter().map(|(heading, body)| {
        let (anchor, heading) = (anchor(heading), escape(heading));
        format!("<section id=\"{anchor}\">\n<h2>{heading}</h2>\n{body}</section>\n")
    });
    let body = format!(
        "<header>\n<h1>{}</h1>\n<p>Report of a sweep, made {}</p>\n<nav>{}</nav>\n</header>\n<main>\n{}</main>\n",
        escape(title),
        escape(made_at),
        links.collect::<Vec<_>>().join(" · "),
        body.collect::<String>()
    );
    page(title, &body)
}

fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

/// Text as a paragraph.
pub fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escape(text))
}

/// Names and what they are.
pub fn facts(facts: &[(&str, String)]) -> String {
    let lines =
        facts.iter().map(|(name, value)| format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(value)));
    format!("<dl>\n{}</dl>\n", lines.collect::<String>())
}

/// Rows of text under headers.
pub fn rows(headers: &[&str], rows: &[Vec<String>]) -> String {
    let cells = |tag: &str, texts: &mut dyn Iterator<Item = &str>| -> String {
        texts.map(|text| format!("<{tag}>{}</{tag}>", escape(text))).collect()
    };
    let head = cells("th", &mut headers.iter().copied());
    let body =
        rows.iter().map(|row| format!("<tr>{}</tr>\n", cells("td", &mut row.iter().map(String::as_str))));
    format!(
        "<div class=\"scroll\"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{}</tbody>\n</table></div>\n",
        body.collect::<String>()
    )
}

/// Text that is to be copied as it is.
pub fn verbatim(text: &str) -> String {
    format!("<pre><code>{}</code></pre>\n", escape(text.trim_end()))
}

/// Something that is shown when asked for; `body` is HTML already.
pub fn folded(summary: &str, body: &str) -> String {
    format!("<details><summary>{}</summary>\n{body}</details>\n", escape(summary))
}
