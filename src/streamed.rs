//! A long list for programs, printed while it is read: a page at a time, so that a million rows need no more memory than a
//! thousand. What comes out is what [`output::list`] prints of all rows at once. People get their lists whole, because columns
//! that line up need all rows.

use serde::Serialize;
use togl_analysis::spreadsheet;

use crate::fields::Fields;
use crate::output::{self, ListFormat, ListRow, Listing};
use crate::problem::Problem;

/// Rows that are printed together.
const PAGE: usize = 1_000;

/// A list on its way to standard output.
pub struct Streamed<R> {
    format: ListFormat,
    /// Those that were named; all if there are none.
    fields: Option<Fields>,
    page: Vec<R>,
    /// Whether nothing was printed so far.
    first: bool,
    /// Whether there was a row.
    any: bool,
}

impl<R: ListRow> Streamed<R> {
    /// A list as it was asked for, which is not for people.
    pub fn new(how: &Listing) -> Result<Self, Problem> {
        let fields = (!how.fields.is_empty()).then(|| Fields::of::<R>(&how.fields)).transpose()?;
        Ok(Self { format: how.format, fields, page: Vec::with_capacity(PAGE), first: true, any: false })
    }

    /// The next row.
    pub fn push(&mut self, row: R) -> Result<(), Problem> {
        self.page.push(row);
        if self.page.len() < PAGE { Ok(()) } else { self.print() }
    }

    /// That was the last one.
    pub fn end(mut self) -> Result<(), Problem> {
        if self.first || !self.page.is_empty() {
            self.print()?;
        }
        match self.format {
            ListFormat::Json => output::print(self.last()),
            ListFormat::Human | ListFormat::Ndjson | ListFormat::Csv => Ok(()),
        }
    }

    /// What stands behind the last row of a JSON list.
    fn last(&self) -> &'static str {
        if self.any { "\n]\n" } else { "]\n" }
    }

    fn print(&mut self) -> Result<(), Problem> {
        let text = self.text()?;
        match self.format {
            ListFormat::Csv => output::data(&text),
            ListFormat::Human | ListFormat::Json | ListFormat::Ndjson => output::print(&text),
        }
    }

    /// The page, with what stands between it and the one before.
    fn text(&mut self) -> Result<String, Problem> {
        self.any |= !self.page.is_empty();
        let (page, first) = (std::mem::take(&mut self.page), std::mem::replace(&mut self.first, false));
        match &self.fields {
            Some(fields) => {
                let rows = page.iter().map(|row| fields.take(row)).collect::<Result<Vec<_>, _>>()?;
                let cells = rows.iter().map(|row| row.cells()).collect();
                written(self.format, first, &rows, fields.names(), cells)
            }
            None => {
                let names: Vec<String> = R::COLUMNS.iter().map(|name| (*name).to_owned()).collect();
                written(self.format, first, &page, &names, page.iter().map(ListRow::cells).collect())
            }
        }
    }
}

fn written<T: Serialize>(
    format: ListFormat,
    first: bool,
    rows: &[T],
    names: &[String],
    cells: Vec<Vec<String>>,
) -> Result<String, Problem> {
    match format {
        ListFormat::Human | ListFormat::Ndjson => output::ndjson(rows),
        ListFormat::Csv => {
            let head = first.then(|| spreadsheet::line(names.iter().map(|name| name.to_lowercase())));
            Ok(head.into_iter().chain(cells.into_iter().map(spreadsheet::line)).collect())
        }
        ListFormat::Json if rows.is_empty() => Ok("[".to_owned()),
        ListFormat::Json => {
            let whole = output::json(&rows)?; // "[\n  {...}\n]\n", of which both ends belong to the list
            let inner = whole.strip_prefix('[').and_then(|text| text.strip_suffix("\n]\n")).unwrap_or(&whole);
            Ok((if first { "[" } else { "," }).to_owned() + inner)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Pair {
        name: String,
        n: usize,
    }

    impl ListRow for Pair {
        const COLUMNS: &'static [&'static str] = &["NAME", "N"];
        fn cells(&self) -> Vec<String> {
            vec![self.name.clone(), self.n.to_string()]
        }
    }

    fn rows(count: usize) -> Vec<Pair> {
        (0..count).map(|n| Pair { name: format!("a,{n}"), n }).collect()
    }

    /// All pages of so many rows in one text.
    fn pages(format: ListFormat, fields: &[&str], count: usize) -> String {
        let how = Listing { format, fields: fields.iter().map(|name| (*name).to_owned()).collect() };
        let mut streamed = Streamed::<Pair>::new(&how).unwrap();
        let mut text = String::new();
        for row in rows(count) {
            streamed.page.push(row);
            if streamed.page.len() == 2 {
                text += &streamed.text().unwrap();
            }
        }
        if streamed.first || !streamed.page.is_empty() {
            text += &streamed.text().unwrap();
        }
        text + if format == ListFormat::Json { streamed.last() } else { "" }
    }

    #[test]
    fn pages_together_are_the_list() {
        for count in [0, 1, 2, 3, 4, 5] {
            assert_eq!(pages(ListFormat::Ndjson, &[], count), output::ndjson(&rows(count)).unwrap());
            assert_eq!(pages(ListFormat::Json, &[], count), output::json(&rows(count)).unwrap(), "{count}");
            let lines: String =
                rows(count).iter().map(|row| format!("\"{}\",{}\n", row.name, row.n)).collect();
            assert_eq!(pages(ListFormat::Csv, &[], count), format!("name,n\n{lines}"));
        }
        assert_eq!(pages(ListFormat::Csv, &["n"], 3), "n\n0\n1\n2\n");
    }
}
