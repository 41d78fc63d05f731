//! The one place where text reaches a terminal: data on standard output, talk on standard error. What others wrote
//! (names, messages, logs) is shown there and not obeyed. A reader that closes the pipe early is not an error. What the user said
//! about output for the whole command (`--quiet`, `--no-pager`) is here too.

use std::io::{self, BufRead, IsTerminal, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use serde::Serialize;
use togl_analysis::render::aligned;
use togl_analysis::spreadsheet;
use togl_sweeps::visible::{visible, visible_in_line, visible_json};

use crate::fields::Fields;
use crate::pager;
use crate::problem::Problem;

/// Whether talk is left out.
static QUIET: AtomicBool = AtomicBool::new(false);
/// Whether long lists are read a screen at a time.
static PAGED: AtomicBool = AtomicBool::new(true);

/// What the user wants of this whole command; said once, before anything is printed.
pub fn manners(quiet: bool, paged: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
    PAGED.store(paged, Ordering::Relaxed);
}

/// Whether only data and errors are printed.
pub fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// As that of the standard library, for this program: what others wrote is shown and not obeyed.
macro_rules! eprint {
    ($($words:tt)*) => { $crate::output::talk(&format!($($words)*)) };
}

/// As that of the standard library, for this program: what others wrote is shown and not obeyed.
macro_rules! eprintln {
    ($($words:tt)*) => { $crate::output::talk(&(format!($($words)*) + "\n")) };
}

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ListFormat {
    /// Aligned columns for people.
    Human,
    /// One JSON document.
    Json,
    /// One JSON object a line.
    Ndjson,
    /// Comma-separated values with a header.
    Csv,
}

/// How a list is printed, and what of it.
#[derive(Debug, Clone, clap::Args)]
pub struct Listing {
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    pub format: ListFormat,
    /// Only these columns, in this order, with commas between
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub fields: Vec<String>,
}

impl From<ListFormat> for Listing {
    /// All of it.
    fn from(format: ListFormat) -> Self {
        Self { format, fields: Vec::new() }
    }
}

impl From<&Self> for Listing {
    fn from(listing: &Self) -> Self {
        listing.clone()
    }
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
    io::stdout().is_terminal() && !plain()
}

/// Whether the user wants no colours anywhere: `NO_COLOR` says something.
pub fn plain() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|said| !said.is_empty())
}

/// Whether the terminal can only write one line after the other.
pub fn is_dumb() -> bool {
    std::env::var("TERM").map_or(true, |term| matches!(term.as_str(), "" | "dumb"))
}

/// Says something on standard error, where nobody may be listening, or wants to.
pub fn talk(text: &str) {
    if !is_quiet() {
        complain(text);
    }
}

/// Says what cannot be left out: an error, or a question.
pub fn complain(text: &str) {
    let _ = io::stderr().lock().write_all(visible(text).as_bytes());
}

/// What somebody at the terminal answers; nothing if nobody is there to be asked.
pub fn agreed(question: &str) -> Result<Option<bool>, Problem> {
    if !io::stdin().is_terminal() {
        return Ok(None);
    }
    complain(&format!("{question} [y/N] "));
    let mut answer = String::new();
    io::stdin().lock().take(64).read_line(&mut answer)?;
    Ok(Some(matches!(answer.trim(), "y" | "Y" | "yes")))
}

/// Prints text for people, or JSON.
pub fn print(text: &str) -> Result<(), Problem> {
    written(&visible(text))
}

/// Prints what programs read, such as CSV or SVG, as it is; unless it goes to a terminal after all.
pub fn data(text: &str) -> Result<(), Problem> {
    if io::stdout().is_terminal() { print(text) } else { written(text) }
}

/// Prints text with colours of ours, whose maker has made visible what others wrote.
pub fn styled(text: &str) -> Result<(), Problem> {
    written(text)
}

fn written(text: &str) -> Result<(), Problem> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Something that can be a line of a listing.
pub trait ListRow: Serialize {
    /// Names of the columns.
    const COLUMNS: &'static [&'static str];
    /// How many of them people see: what is long stands last, and is for programs.
    const FOR_PEOPLE: usize = Self::COLUMNS.len();
    /// What programs get beside them, by its key.
    const ALSO: &'static [&'static str] = &[];
    /// The cells, one per column.
    fn cells(&self) -> Vec<String>;
}

/// Prints a list as it was asked for.
pub fn list<R: ListRow>(rows: &[R], how: impl Into<Listing>) -> Result<(), Problem> {
    let Listing { format, fields } = how.into();
    if fields.is_empty() {
        let cells = || rows.iter().map(ListRow::cells);
        return match format {
            ListFormat::Human => paged(&table(&R::COLUMNS[..R::FOR_PEOPLE], cells())),
            ListFormat::Json => print(&json(&rows)?),
            ListFormat::Ndjson => print(&ndjson(rows)?),
            ListFormat::Csv => data(&csv(R::COLUMNS, cells())),
        };
    }
    let fields = Fields::of::<R>(&fields)?;
    let rows = rows.iter().map(|row| fields.take(row)).collect::<Result<Vec<_>, _>>()?;
    let cells = || rows.iter().map(|row| row.cells());
    match format {
        ListFormat::Human => paged(&table(&fields.heads(), cells())),
        ListFormat::Json => print(&json(&rows)?),
        ListFormat::Ndjson => print(&ndjson(&rows)?),
        ListFormat::Csv => data(&csv(fields.names(), cells())),
    }
}

/// Aligned columns, in which nothing is obeyed.
fn table(heads: &[impl AsRef<str>], cells: impl Iterator<Item = Vec<String>>) -> String {
    let heads: Vec<&str> = heads.iter().map(AsRef::as_ref).collect();
    let shown = |row: Vec<String>| row.iter().map(|cell| visible_in_line(cell).into_owned()).collect();
    aligned(&heads, &cells.map(shown).collect::<Vec<_>>())
}

/// Prints text for people, a screen at a time if it is long.
fn paged(text: &str) -> Result<(), Problem> {
    if PAGED.load(Ordering::Relaxed) && pager::shown(&visible(text)) { Ok(()) } else { print(text) }
}

/// The same as [`list`]; where there is nothing, people are told why instead.
pub fn list_unless_empty<R: ListRow>(rows: &[R], how: impl Into<Listing>, why: &str) -> Result<(), Problem> {
    let how = how.into();
    if rows.is_empty() && how.format == ListFormat::Human {
        eprintln!("{why}");
        return Ok(());
    }
    list(rows, how)
}

/// Prints something that is not a list, in words or as JSON.
pub fn one<T: Serialize>(value: &T, format: Plain, words: fn(&T) -> String) -> Result<(), Problem> {
    print(&match format {
        Plain::Human => words(value),
        Plain::Json => json(value)?,
    })
}

/// Indented JSON with a final newline.
pub fn json(value: &impl Serialize) -> Result<String, Problem> {
    let text = serde_json::to_string_pretty(value).map_err(Problem::ours)?;
    Ok(visible_json(&text).into_owned() + "\n")
}

/// One JSON object a line.
pub fn ndjson(rows: &[impl Serialize]) -> Result<String, Problem> {
    let lines: Result<Vec<String>, _> = rows.iter().map(serde_json::to_string).collect();
    Ok(lines.map_err(Problem::ours)?.iter().map(|line| visible_json(line).into_owned() + "\n").collect())
}

fn csv(columns: &[impl AsRef<str>], rows: impl Iterator<Item = Vec<String>>) -> String {
    let header = spreadsheet::line(columns.iter().map(|column| column.as_ref().to_lowercase()));
    rows.fold(header, |text, cells| text + &spreadsheet::line(cells))
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

    impl ListRow for Pair {
        const COLUMNS: &'static [&'static str] = &["NAME", "N"];
        fn cells(&self) -> Vec<String> {
            vec![self.0.clone(), self.1.to_string()]
        }
    }

    #[test]
    fn columns_line_up_and_csv_is_quoted() {
        let rows = [Pair("a,b".to_owned(), 1), Pair("längeres".to_owned(), 22)];
        let cells: Vec<Vec<String>> = rows.iter().map(ListRow::cells).collect();
        assert_eq!(aligned(Pair::COLUMNS, &cells), "NAME      N\na,b       1\nlängeres  22\n");
        assert_eq!(csv(Pair::COLUMNS, cells.iter().cloned()), "name,n\n\"a,b\",1\nlängeres,22\n");
        assert_eq!(aligned(&Pair::COLUMNS[..1], &cells), "NAME\na,b\nlängeres\n");
        let formula = [Pair("=1+1".to_owned(), 1).cells()];
        assert_eq!(csv(Pair::COLUMNS, formula.into_iter()), "name,n\n'=1+1,1\n");
    }

    #[test]
    fn json_is_safe_to_look_at_and_means_the_same() {
        let text = json(&"\u{9b}2J\u{7f}\u{202e}").unwrap();
        assert_eq!(text, "\"\\u009b2J\\u007f\\u202e\"\n");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), "\u{9b}2J\u{7f}\u{202e}");
    }
}
