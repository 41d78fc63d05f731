//! A CSV file of another system as text: columns by name, records with the line they begin on. A record with too few or
//! too many fields is refused, because its values may stand under the wrong names. Knows no meaning of any column.

use std::collections::HashMap;
use std::path::Path;

use csv::{ErrorKind, StringRecord};

use crate::error::{Error, Result};
use crate::files::contents;

/// What programs write where there is no value.
const NOTHING: [&str; 5] = ["", "NaN", "nan", "null", "None"];

/// One file, all fields as text.
pub struct ExportFile<'a> {
    path: &'a Path,
    names: Vec<String>,
    places: HashMap<String, usize>,
    /// Each record with its line.
    records: Vec<(u64, StringRecord)>,
}

impl<'a> ExportFile<'a> {
    /// Reads the file, which must have these columns.
    pub fn open<'n>(path: &'a Path, needed: impl Iterator<Item = &'n str>) -> Result<Self> {
        let bytes = contents(path)?;
        let refuse = |error: csv::Error| explained(path, &error, &bytes);
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes.as_slice());
        let mut names: Vec<String> = reader.headers().map_err(refuse)?.iter().map(str::to_owned).collect();
        if let Some(first) = names.first_mut() {
            *first = first.trim_start_matches('\u{feff}').trim_matches('"').to_owned();
        }
        let places: HashMap<String, usize> = names.iter().cloned().zip(0..).collect();
        if let Some(twice) = names.iter().enumerate().find(|(at, name)| places[*name] != *at) {
            return Err(Error::bad_file(path, format!("the column `{}` is there twice", twice.1)));
        }
        let mut missing: Vec<String> = Vec::new();
        for name in needed.filter(|name| !places.contains_key(*name)) {
            if !missing.iter().any(|known| known == name) {
                missing.push(name.to_owned());
            }
        }
        if !missing.is_empty() {
            let advice = "is it an export of runs, one a line? Other names are told with `--map OURS=THEIRS`";
            let origin = format!("`{}`", path.display());
            return Err(Error::MissingColumns { advice, origin, columns: missing });
        }
        let mut records = Vec::new();
        let mut lines = Lines::of(&bytes);
        for record in reader.records() {
            let record = record.map_err(refuse)?;
            records.push((lines.at(record.position()), record));
        }
        Ok(Self { path, names, places, records })
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// The names of all columns, in order.
    pub fn columns(&self) -> impl Iterator<Item = &str> + Clone {
        self.names.iter().map(String::as_str)
    }

    /// Whether there is such a column.
    pub fn has(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// A field that is there and says something.
    pub fn text(&self, row: usize, name: &str) -> Option<&str> {
        let text = self.records[row].1.get(*self.places.get(name)?)?;
        Some(text).filter(|text| !NOTHING.contains(text))
    }

    /// File and line of a record.
    pub fn origin(&self, row: usize) -> String {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        format!("{name}:{}", self.records[row].0)
    }

    /// The file as errors name it.
    pub fn name(&self) -> String {
        format!("`{}`", self.path.display())
    }

    /// What is wrong with a record.
    pub fn refuse(&self, row: usize, reason: &str) -> Error {
        Error::bad_file(self.path, format!("line {}: {reason}", self.records[row].0))
    }
}

/// Which line a place is on. Goes through the text once, so places must be asked for in their order.
struct Lines<'a> {
    bytes: &'a [u8],
    /// How far lines are counted, and the line there.
    counted: usize,
    line: u64,
}

impl<'a> Lines<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, counted: 0, line: 1 }
    }

    /// The line that a record begins on. The reader's own count is one short after Windows line ends.
    fn at(&mut self, position: Option<&csv::Position>) -> u64 {
        let start =
            position.map_or(0, |position| position.byte() as usize).clamp(self.counted, self.bytes.len());
        let blank = self.bytes[start..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let new = &self.bytes[self.counted..start + blank];
        self.line += new.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.counted = start + blank;
        self.line
    }
}

fn explained(path: &Path, error: &csv::Error, bytes: &[u8]) -> Error {
    match error.kind() {
        ErrorKind::UnequalLengths { pos, expected_len, len } => {
            let line = Lines::of(bytes).at(pos.as_ref());
            let reason =
                format!("line {line} has {len} fields where the header has {expected_len}; is it cut off?");
            Error::bad_file(path, reason)
        }
        ErrorKind::Utf8 { pos, .. } => {
            Error::bad_file(path, format!("line {} is not UTF-8 text", Lines::of(bytes).at(pos.as_ref())))
        }
        _ => Error::bad_file(path, error),
    }
}
