//! Lines of numbers from a text file, read one at a time into a reused buffer. It owns the line count, the
//! limits on lines and files, and the wording of what is wrong with a line; it never holds a whole file.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;

use crate::error::Error;
use crate::files::ReadLimits;

/// Some editors write it at the start of UTF-8 files.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
const BUFFER_BYTES: usize = 1 << 18;
const SHOWN_CHARACTERS: usize = 40;
/// Values for which memory is taken before they are read.
const MOST_RESERVED: usize = 1 << 26;

/// A text file, positioned at one of its lines.
pub(crate) struct Lines<'a> {
    reader: BufReader<Box<dyn Read + 'a>>,
    file: String,
    path: PathBuf,
    limits: ReadLimits,
    line: usize,
    bytes_read: u64,
    text: Vec<u8>,
}

impl<'a> Lines<'a> {
    /// `file` is how errors call it, `path` what the operating system knows.
    pub(crate) fn new(
        reader: Box<dyn Read + 'a>,
        file: String,
        path: PathBuf,
        limits: ReadLimits,
    ) -> Lines<'a> {
        let reader = BufReader::with_capacity(BUFFER_BYTES, reader);
        Lines { reader, file, path, limits, line: 0, bytes_read: 0, text: Vec::new() }
    }

    /// Moves to the next line; false at the end. Empty lines are accepted at the end of the file only.
    pub(crate) fn advance(&mut self) -> Result<bool, Error> {
        if !self.read_line()? {
            return Ok(false);
        }
        if !self.text.is_empty() {
            return Ok(true);
        }
        let empty = self.line;
        while self.read_line()? {
            if !self.text.is_empty() {
                self.line = empty;
                return Err(self.malformed("the line is empty".to_string()));
            }
        }
        Ok(false)
    }

    /// The current line without trailing white space.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The current line as one whole number.
    pub(crate) fn integer(&self) -> Result<i64, Error> {
        self.parse_integer(&self.text)
    }

    /// The current line as two whole numbers with a comma between them.
    pub(crate) fn integer_pair(&self) -> Result<(i64, i64), Error> {
        let comma = self.text.iter().position(|byte| *byte == b',');
        let comma = comma.ok_or_else(|| self.unexpected("two numbers with a comma", &self.text))?;
        Ok((self.parse_integer(&self.text[..comma])?, self.parse_integer(&self.text[comma + 1..])?))
    }

    /// Appends the comma-separated finite numbers of the current line; how many there were.
    pub(crate) fn append_floats(&self, values: &mut Vec<f32>) -> Result<usize, Error> {
        let before = values.len();
        for field in self.text.split(|byte| *byte == b',') {
            let number = std::str::from_utf8(field).ok().and_then(|text| text.trim().parse::<f32>().ok());
            let finite = number.filter(|number| number.is_finite());
            values.push(finite.ok_or_else(|| self.unexpected("a finite number", field))?);
        }
        Ok(values.len() - before)
    }

    /// Appends the comma-separated whole numbers below 2^32 of the current line.
    pub(crate) fn append_indices(&self, values: &mut Vec<u32>) -> Result<(), Error> {
        for field in self.text.split(|byte| *byte == b',') {
            let number = self.parse_integer(field)?;
            values.push(u32::try_from(number).map_err(|_| self.unexpected("an index", field))?);
        }
        Ok(())
    }

    /// All remaining lines as whole numbers, one each, exactly as many as there are `what`.
    pub(crate) fn integers(mut self, count: usize, what: &str) -> Result<Vec<i64>, Error> {
        let mut numbers = Vec::with_capacity(count);
        while self.advance_within(numbers.len(), count, what)? {
            numbers.push(self.integer()?);
        }
        Ok(numbers)
    }

    /// All remaining lines as rows of equally many finite numbers; the width and the values.
    pub(crate) fn rows(mut self, count: usize, what: &str) -> Result<(usize, Vec<f32>), Error> {
        let mut values = Vec::new();
        let (mut width, mut rows) = (0, 0);
        while self.advance_within(rows, count, what)? {
            let found = self.append_floats(&mut values)?;
            if rows == 0 {
                width = found;
                values.reserve_exact(width.saturating_mul(count - 1).min(MOST_RESERVED));
            } else if found != width {
                return Err(self.malformed(format!("{found} numbers, but the lines before have {width}")));
            }
            rows += 1;
        }
        Ok((width, values))
    }

    /// Moves on where `read` lines of `count` were read; an error where the file has more or fewer.
    fn advance_within(&mut self, read: usize, count: usize, what: &str) -> Result<bool, Error> {
        match (self.advance()?, read < count) {
            (true, true) => Ok(true),
            (false, false) => Ok(false),
            (true, false) => Err(self.malformed(format!("more lines than the {count} {what}"))),
            (false, true) => Err(self.ends_early(format!("the file ends after {read} of {count} {what}"))),
        }
    }

    /// What is wrong with the current line.
    pub(crate) fn malformed(&self, problem: String) -> Error {
        Error::Malformed { file: self.file.clone(), line: self.line, problem }
    }

    /// What is wrong with the end of the file.
    pub(crate) fn ends_early(&self, problem: String) -> Error {
        Error::Malformed { file: self.file.clone(), line: self.line + 1, problem }
    }

    fn read_line(&mut self) -> Result<bool, Error> {
        self.text.clear();
        let limit = self.limits.line_bytes;
        let count = (&mut self.reader)
            .take(limit + 1)
            .read_until(b'\n', &mut self.text)
            .map_err(|source| Error::Read { path: self.path.clone(), source })?;
        if count == 0 {
            return Ok(false);
        }
        self.line += 1;
        self.bytes_read += count as u64;
        if self.bytes_read > self.limits.file_bytes {
            return Err(Error::TooLarge { file: self.file.clone(), limit: self.limits.file_bytes });
        }
        if count as u64 > limit {
            return Err(self.malformed(format!("the line has more than {limit} bytes")));
        }
        if self.line == 1 && self.text.starts_with(BYTE_ORDER_MARK) {
            self.text.drain(..BYTE_ORDER_MARK.len());
        }
        self.text.truncate(self.text.trim_ascii_end().len());
        Ok(true)
    }

    fn parse_integer(&self, field: &[u8]) -> Result<i64, Error> {
        let trimmed = field.trim_ascii();
        let (negative, digits) = match trimmed {
            [b'-', rest @ ..] => (true, rest),
            other => (false, other),
        };
        // 18 digits fit into 63 bits, so the sum below cannot overflow.
        if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
            return Err(self.unexpected("a whole number", field));
        }
        let magnitude = digits.iter().fold(0i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        Ok(if negative { -magnitude } else { magnitude })
    }

    fn unexpected(&self, expected: &str, found: &[u8]) -> Error {
        let Ok(text) = std::str::from_utf8(found) else {
            return self.malformed(format!("expected {expected}, found bytes that are not UTF-8 text"));
        };
        let mut shown: String = text.trim().chars().take(SHOWN_CHARACTERS).collect();
        if shown.len() < text.trim().len() {
            shown.push_str("...");
        }
        self.malformed(format!("expected {expected}, found `{shown}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(content: &'static [u8]) -> Lines<'static> {
        let limits = ReadLimits { file_bytes: 100, line_bytes: 20 };
        Lines::new(Box::new(content), "file".to_string(), PathBuf::from("file"), limits)
    }

    fn at_first(content: &'static [u8]) -> Lines<'static> {
        let mut lines = lines(content);
        assert!(lines.advance().expect("a line"));
        lines
    }

    #[test]
    fn numbers_are_read_with_and_without_spaces_and_with_windows_line_ends() {
        assert_eq!(at_first(b"1, 2\r\n").integer_pair().expect("two numbers"), (1, 2));
        assert_eq!(at_first(b"1,2").integer_pair().expect("two numbers"), (1, 2));
        assert_eq!(at_first(b"\xEF\xBB\xBF1, 2\n").integer_pair().expect("two numbers"), (1, 2));
        assert_eq!(at_first(b"-1\n").integer().expect("a number"), -1);
        let mut values = Vec::new();
        assert_eq!(at_first(b"  1.5,-2e1, 3\n").append_floats(&mut values).expect("numbers"), 3);
        assert_eq!(values, [1.5, -20.0, 3.0]);
    }

    #[test]
    fn malformed_numbers_are_shown_with_file_and_line() {
        let text = |error: Error| error.to_string();
        let expected = "file, line 1: expected a whole number, found `x1`";
        assert_eq!(text(at_first(b"x1").integer().expect_err("no number")), expected);
        let expected = "file, line 1: expected two numbers with a comma, found `1 2`";
        assert_eq!(text(at_first(b"1 2").integer_pair().expect_err("no comma")), expected);
        assert!(text(at_first(b"1,").integer_pair().expect_err("truncated")).contains("whole number"));
        assert!(text(at_first(b"1, 2, 3").integer_pair().expect_err("three")).contains("`2, 3`"));
        assert!(text(at_first(b"1234567890123456789").integer().expect_err("long")).contains("whole number"));
        assert!(text(at_first(b"--1").integer().expect_err("signs")).contains("whole number"));
        let mut values = Vec::new();
        assert!(text(at_first(b"1, nan").append_floats(&mut values).expect_err("nan")).contains("finite"));
        assert!(text(at_first(b"1, inf").append_floats(&mut values).expect_err("inf")).contains("finite"));
        assert!(text(at_first(b"1,,2").append_floats(&mut values).expect_err("gap")).contains("finite"));
        assert!(text(at_first(b"1,-2").append_indices(&mut Vec::new()).expect_err("sign")).contains("index"));
    }

    #[test]
    fn bytes_that_are_not_text_are_said_to_be_so() {
        let error = at_first(b"\xff\xfe1").integer().expect_err("not text").to_string();
        assert!(error.ends_with("not UTF-8 text"), "{error}");
    }

    #[test]
    fn empty_lines_are_accepted_at_the_end_only() {
        let mut trailing = lines(b"1\n\n\n");
        assert!(trailing.advance().expect("a line"));
        assert!(!trailing.advance().expect("the end"));
        let mut inner = lines(b"1\n\n2\n");
        assert!(inner.advance().expect("a line"));
        assert_eq!(inner.advance().expect_err("a gap").to_string(), "file, line 2: the line is empty");
    }

    #[test]
    fn lines_and_files_beyond_the_limits_are_refused() {
        let error = lines(b"123456789012345678901234567890").advance().expect_err("long line").to_string();
        assert_eq!(error, "file, line 1: the line has more than 20 bytes");
        let mut long_file = lines(&[b'\n'; 101]);
        assert!(matches!(long_file.advance(), Err(Error::TooLarge { limit: 100, .. })));
    }
}
