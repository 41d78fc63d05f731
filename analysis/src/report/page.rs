//! The frame of the page and its few kinds of blocks. All text that comes from outside goes through here and is
//! escaped here.

use crate::render::{escape, page};

/// A page under construction.
pub struct Page {
    title: String,
    made_at: String,
    sections: Vec<Section>,
}

/// A part of the page with its heading.
pub struct Section {
    heading: String,
    body: String,
}

/// A section; `body` is HTML already.
pub fn section(heading: &str, body: &str) -> Section {
    Section { heading: heading.to_owned(), body: body.to_owned() }
}

impl Page {
    pub fn new(title: &str, made_at: &str) -> Self {
        Self { title: title.to_owned(), made_at: made_at.to_owned(), sections: Vec::new() }
    }

    pub fn add(&mut self, section: Section) {
        self.sections.push(section);
    }

    pub fn finish(&self) -> String {
        let title = escape(&self.title);
        let links = self.sections.iter().map(|section| {
            let heading = escape(&section.heading);
            format!("<a href=\"#{}\">{heading}</a>", anchor(&section.heading))
        });
        let body = self.sections.iter().map(|section| {
            let (anchor, heading) = (anchor(&section.heading), escape(&section.heading));
            format!("<section id=\"{anchor}\">\n<h2>{heading}</h2>\n{}</section>\n", section.body)
        });
        let body = format!(
            "<header>\n<h1>{title}</h1>\n<p>Report of a sweep, made {}</p>\n<nav>{}</nav>\n</header>\n<main>\n{}</main>\n",
            escape(&self.made_at),
            links.collect::<Vec<_>>().join(" · "),
            body.collect::<String>()
        );
        page(&self.title, &body)
    }
}

fn anchor(heading: &str) -> String {
    heading.to_lowercase().replace(' ', "-")
}

/// A paragraph.
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
