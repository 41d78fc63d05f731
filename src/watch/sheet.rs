//! What every view is made of: lines of cells with a head, each line known by an id, so that it can be chosen, found again and
//! put in order. Knows no terminal.

use std::cmp::Ordering;

/// How a cell is meant; the palette says how that looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tint {
    Plain,
    Strong,
    Faint,
    Good,
    Warn,
    Bad,
}

/// A cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SheetCell {
    pub text: String,
    pub tint: Tint,
}

impl SheetCell {
    pub fn new(text: impl ToString) -> Self {
        Self { text: text.to_string(), tint: Tint::Plain }
    }

    pub fn tinted(text: impl ToString, tint: Tint) -> Self {
        Self { text: text.to_string(), tint }
    }
}

/// A line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SheetRow {
    pub id: String,
    pub cells: Vec<SheetCell>,
}

/// A view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sheet {
    pub heads: Vec<&'static str>,
    pub rows: Vec<SheetRow>,
    /// What is said where there are no lines.
    pub empty: String,
}

impl Sheet {
    /// Only lines that have these letters, in the order of a column.
    pub fn choose(&mut self, filter: &str, sort: Option<usize>) {
        let wanted = filter.to_lowercase();
        if !wanted.is_empty() {
            self.rows.retain(|row| row.cells.iter().any(|cell| cell.text.to_lowercase().contains(&wanted)));
            if self.rows.is_empty() {
                self.empty = format!("nothing has `{filter}` in it");
            }
        }
        if let Some(column) = sort {
            let text =
                |row: &SheetRow| row.cells.get(column).map(|cell| cell.text.clone()).unwrap_or_default();
            self.rows.sort_by(|one, other| compared(&text(one), &text(other)));
        }
    }
}

/// Numbers by size, the largest first; words by the alphabet.
fn compared(one: &str, other: &str) -> Ordering {
    let number = |text: &str| text.split([' ', '/', '%']).next()?.replace(',', "").parse::<f64>().ok();
    match (number(one), number(other)) {
        (Some(one), Some(other)) => other.total_cmp(&one),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => one.cmp(other),
    }
}

/// `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share as a whole number; 100 only if it is all.
pub fn percent(done: u64, all: u64) -> u64 {
    match all {
        0 => 0,
        all => u64::try_from(u128::from(done.min(all)) * 100 / u128::from(all)).unwrap_or(0),
    }
}

/// How long something takes, in two units at the most.
pub fn in_words(seconds: u64) -> String {
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h {:02} min", seconds / 3_600, seconds % 3_600 / 60),
        _ => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_put_in_order_by_size_and_words_by_the_alphabet() {
        let row = |text: &str| SheetRow { id: text.to_owned(), cells: vec![SheetCell::new(text)] };
        let mut sheet =
            Sheet { heads: vec!["N"], rows: ["9", "1,000", "b", "a"].map(row).to_vec(), ..Sheet::default() };
        sheet.choose("", Some(0));
        assert_eq!(
            sheet.rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(),
            ["1,000", "9", "a", "b"]
        );
        sheet.choose("B", None);
        assert_eq!(sheet.rows.len(), 1);
    }

    #[test]
    fn a_share_is_a_hundred_only_when_all_is_done() {
        assert_eq!((percent(0, 0), percent(999, 1_000), percent(5, 5)), (0, 99, 100));
        assert_eq!((grouped(7), grouped(1_234_567)), ("7".to_owned(), "1,234,567".to_owned()));
        assert_eq!(percent(u64::MAX, u64::MAX), 100);
    }
}
