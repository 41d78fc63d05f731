//! Tables for a terminal: aligned columns, winners bold where colour is wanted and pointed at where it is not.
//! Whether colour is wanted is the caller's to know; nothing here looks at a terminal. Names that others chose are made
//! visible before they get a place and a style, so that only our own escapes are obeyed.

use togl_sweeps::visible::visible_in_line;
use unicode_width::UnicodeWidthStr;

use super::{
    Shown, column_header, left, lines_above, lines_below, right, row_headers, row_labels_in_words, shown,
};
use crate::table::{Cell, Table};

const BOLD: &str = "\u{1b}[1m";
const PLAIN: &str = "\u{1b}[0m";
/// Points at a winner where bold cannot be used.
const BEST: &str = "▲";
/// Points at the winner of a comparison where italics cannot be used.
const COMPARISON: &str = "△";
/// Sets back what is cited.
const DIM: &str = "\u{1b}[2m";
const ITALIC: &str = "\u{1b}[3m";
const GAP: &str = "  ";

/// The table as aligned text, with its caption and notes below. `colour` allows ANSI bold.
pub fn terminal(table: &Table, colour: bool) -> String {
    let labels: Vec<LabelColumn> = label_columns(table);
    let cells: Vec<CellColumn> =
        (0..table.columns.len()).map(|at| CellColumn::of(table, at, colour)).collect();
    let mut lines = vec![visible_in_line(&table.title).into_owned(), String::new()];
    let header = labels.iter().map(|column| left(&column.header, column.room));
    let header: Vec<String> =
        header.chain(cells.iter().map(|column| right(&column.header, column.room()))).collect();
    let rule: Vec<String> = header.iter().map(|text| "─".repeat(text.width())).collect();
    lines.extend(lines_above(table).iter().flat_map(|spans| header_line(spans, &labels, &cells)));
    lines.push(header.join(GAP));
    lines.push(rule.join(GAP));
    for at in 0..table.rows.len() {
        let row = labels.iter().map(|column| left(&column.labels[at], column.room));
        let row: Vec<String> = row.chain(cells.iter().map(|column| column.line(at, colour))).collect();
        let dimmed = colour && table.rows[at].is_cited();
        let line = row.join(GAP);
        lines.push(if dimmed { format!("{DIM}{}{PLAIN}", line.trim_end()) } else { line });
    }
    lines.push(String::new());
    let (best, comparison) = if colour { ("bold", "italic") } else { (BEST, COMPARISON) };
    let below = lines_below(table, best, comparison);
    lines.extend(below.iter().map(|line| visible_in_line(line).into_owned()));
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Headers that columns share, each in the middle over a rule as wide as its columns.
fn header_line(spans: &[(String, usize)], labels: &[LabelColumn], cells: &[CellColumn]) -> [String; 2] {
    let before: usize = labels.iter().map(|column| column.room + GAP.len()).sum();
    let (mut names, mut rules) = (" ".repeat(before), " ".repeat(before));
    let mut next = 0;
    for (group, count) in spans {
        let group = visible_in_line(group);
        let rooms = cells[next..next + count].iter().map(CellColumn::room);
        let room = rooms.sum::<usize>() + GAP.len() * (count - 1);
        let spare = room.saturating_sub(group.width());
        names.push_str(&left(&(" ".repeat(spare / 2) + &group), room));
        names.push_str(GAP);
        rules.push_str(&if group.is_empty() { " ".repeat(room) } else { "─".repeat(room) });
        rules.push_str(GAP);
        next += count;
    }
    [names, rules]
}

struct LabelColumn {
    header: String,
    labels: Vec<String>,
    room: usize,
}

fn label_columns(table: &Table) -> Vec<LabelColumn> {
    let headers = row_headers(table).into_iter().enumerate();
    headers
        .map(|(at, header)| {
            let label = |labels: Vec<String>| labels.get(at).map(|label| visible_in_line(label).into_owned());
            let header = visible_in_line(&header);
            let labels: Vec<String> =
                table.rows.iter().filter_map(|row| label(row_labels_in_words(table, row))).collect();
            let room =
                labels.iter().map(|label| label.width()).chain([header.width()]).max().unwrap_or_default();
            LabelColumn { header: header.into_owned(), labels, room }
        })
        .collect()
}

/// One cell in pieces that are aligned separately, so that decimal points and ± stand under each other.
struct Pieces {
    mean: String,
    std: String,
    after: String,
    style: String,
}

impl Pieces {
    fn of(cell: &Cell, table: &Table, colour: bool) -> Self {
        let (mean, std, after) = match shown(cell, table) {
            Shown::NotPlanned => (String::new(), String::new(), String::new()),
            Shown::Missing => ("–".to_owned(), String::new(), String::new()),
            Shown::Number(value) => {
                let signs: String = value.marks.iter().map(|mark| mark.sign()).collect();
                let point = match (colour, cell.stands_out(), cell.wins_comparison) {
                    (false, true, _) => BEST,
                    (false, false, true) => COMPARISON,
                    _ => "",
                };
                let count = value.count.map(|count| format!(" {count}")).unwrap_or_default();
                (value.mean, value.std, format!("{count}{signs}{point}"))
            }
        };
        Self { mean, std, after, style: style(cell) }
    }
}

/// How a cell is set off where colour is wanted.
fn style(cell: &Cell) -> String {
    let bold = if cell.stands_out() { BOLD } else { "" };
    let italic = if cell.wins_comparison { ITALIC } else { "" };
    format!("{bold}{italic}")
}

struct CellColumn {
    header: String,
    pieces: Vec<Pieces>,
    mean_room: usize,
    std_room: usize,
    after_room: usize,
}

impl CellColumn {
    fn of(table: &Table, at: usize, colour: bool) -> Self {
        let pieces: Vec<Pieces> =
            table.rows.iter().map(|row| Pieces::of(&row.cells[at], table, colour)).collect();
        let widest =
            |piece: fn(&Pieces) -> &str| pieces.iter().map(|p| piece(p).width()).max().unwrap_or_default();
        Self {
            header: visible_in_line(&column_header(table, &table.columns[at])).into_owned(),
            mean_room: widest(|pieces| &pieces.mean),
            std_room: widest(|pieces| &pieces.std),
            after_room: widest(|pieces| &pieces.after),
            pieces,
        }
    }

    fn number_room(&self) -> usize {
        self.mean_room + if self.std_room == 0 { 0 } else { 3 + self.std_room }
    }

    fn room(&self) -> usize {
        self.header.width().max(self.number_room() + self.after_room)
    }

    fn line(&self, at: usize, colour: bool) -> String {
        let pieces = &self.pieces[at];
        let mean = right(&pieces.mean, self.mean_room);
        let number = if pieces.std.is_empty() {
            left(&mean, self.number_room())
        } else {
            format!("{mean} ± {}", right(&pieces.std, self.std_room))
        };
        let styled = colour && !pieces.style.is_empty();
        let number = if styled { format!("{}{number}{PLAIN}", pieces.style) } else { number };
        let used = self.number_room() + self.after_room;
        let before = " ".repeat(self.room() - used);
        format!("{before}{number}{}", left(&pieces.after, self.after_room))
    }
}
