//! Printing data: the one place that writes to standard output. Talk goes to standard error elsewhere.
//! A reader that closes the pipe early is not an error.

use std::io::{self, IsTerminal, Write};

use clap::ValueEnum;
use serde::Serialize;

use crate::problem::Problem;

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns for people.
    Human,
    /// One JSON document.
    Json,
    /// One JSON object a line.
    Ndjson,
    /// Comma-separated values with a header.
    Csv,
}

/// How something that is not a list is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Plain {
    /// For people.
    Human,
    /// One JSON document.
    Json,
}

/// Whether standard output is a terminal that shows colour.
pub fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Prints text as it is.
pub fn print(text: &str) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Something that can be a line of a listing.
pub trait Row: Serialize {
    /// Names of the columns.
    const COLUMNS: &'static [&'static str];
    /// The cells, one per column.
    fn cells(&self) -> Vec<String>;
}

/// Prints a list in the format asked for.
pub fn list<R: Row>(rows: &[R], format: Format) -> Result<(), Problem> {
    let text = match format {
        Format::Human => aligned(R::COLUMNS, &rows.iter().map(Row::cells).collect::<Vec<_>>()),
        Format::Json => json(&rows)?,
        Format::Ndjson => {
            let lines: Result<Vec<String>, _> = rows.iter().map(serde_json::to_string).collect();
            lines.map_err(Problem::ours)?.into_iter().map(|line| line + "\n").collect()
        }
        Format::Csv => csv(R::COLUMNS, rows),
    };
    print(&text)
}

/// Indented JSON with a final newline.
pub fn json(value: &impl Serialize) -> Result<String, Problem> {
    Ok(serde_json::to_string_pretty(value).map_err(Problem::ours)? + "\n")
}

fn csv<R: Row>(columns: &[&str], rows: &[R]) -> String {
    let quote = |cell: &str| {
        let plain = !cell.contains(['"', ',', '\n', '\r']);
        if plain { cell.to_owned() } else { format!("\"{}\"", cell.replace('"', "\"\"")) }
    };
    let join = |cells: Vec<String>| cells.join(",") + "\n";
    let header = join(columns.iter().map(|c| quote(&c.to_lowercase())).collect());
    rows.iter().fold(header, |text, row| text + &join(row.cells().iter().map(|c| quote(c)).collect()))
}

fn aligned(columns: &[&str], rows: &[Vec<String>]) -> String {
    let header: Vec<String> = columns.iter().map(|&c| c.to_owned()).collect();
    let width = |column: usize| {
        let cells = rows.iter().chain([&header]).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let line = |cells: &Vec<String>| {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, &w)| format!("{cell:<w$}")).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    [&header].into_iter().chain(rows).map(line).collect()
}

/// `1 trial`, `3 trials`.
pub fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Pair(String, u32);

    impl Row for Pair {
        const COLUMNS: &'static [&'static str] = &["NAME", "N"];
        fn cells(&self) -> Vec<String> {
            vec![self.0.clone(), self.1.to_string()]
        }
    }

    #[test]
    fn columns_line_up_and_csv_is_quoted() {
        let rows = [Pair("a,b".to_owned(), 1), Pair("längeres".to_owned(), 22)];
        let cells: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
        assert_eq!(aligned(Pair::COLUMNS, &cells), "NAME      N\na,b       1\nlängeres  22\n");
        assert_eq!(csv(Pair::COLUMNS, &rows), "name,n\n\"a,b\",1\nlängeres,22\n");
    }
}
