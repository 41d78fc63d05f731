//! Tables as LaTeX: booktabs rules, numbers aligned by siunitx, cited rows in grey. The text goes both ways: `\input`
//! in a paper that loads booktabs, siunitx and xcolor, or compiled as it is, because outside a document it brings one
//! along. All text is escaped, and signs outside ASCII are written as commands.

use super::{Shown, ShownNumber, column_header, lines_above, lines_below, row_headers, row_labels, shown};
use crate::table::{Mark, Table, TableRow};

/// Opens a document where there is none. `\@nodocument` is `\relax` inside one.
const OPEN: &str = r"% For a paper: \input this file, with \usepackage{booktabs,siunitx,xcolor} in the preamble.
% By itself it compiles as it is.
\expandafter\ifx\csname @nodocument\endcsname\relax\else
  \documentclass{article}
  \usepackage[margin=1.5cm, paperwidth=WIDTHcm]{geometry}
  \usepackage{booktabs,siunitx,xcolor}
  \begin{document}
  \gdef\toglEnd{\end{document}}
\fi
";

const CLOSE: &str = r"\ifdefined\toglEnd\expandafter\toglEnd\fi
";

/// Characters in a line of a header.
const HEADER_WIDTH: usize = 14;

/// The table as a LaTeX `table` environment.
pub fn latex(table: &Table) -> String {
    let headers = row_headers(table);
    let columns: String = (0..table.columns.len()).map(|at| column(table, at)).collect();
    let mut lines: Vec<String> =
        lines_above(table).iter().flat_map(|spans| header_lines(spans, headers.len())).collect();
    let names = table.columns.iter().map(|column| centred(&stacked(&column_header(table, column))));
    lines.push(line(headers.iter().map(|text| escape(text)).chain(names)));
    lines.push(r"    \midrule".to_owned());
    for (at, row) in table.rows.iter().enumerate() {
        if starts_block(table, at) {
            lines.push(r"    \addlinespace".to_owned());
        }
        lines.push(row_line(row, table));
    }
    let caption = format!(r"\caption{{{}}}{}", caption(table), reference(table.reference.as_deref()));
    let numbers = "  \\sisetup{detect-all, mode=text}\n  \\setlength{\\tabcolsep}{4pt}\n";
    let columns = format!("{}{columns}", "l".repeat(headers.len()));
    let width = (9 + 5 * headers.len() + 4 * table.columns.len()).max(21);
    document(&caption, numbers, &columns, &lines, width)
}

/// Rows of text under headers as a LaTeX table.
pub(crate) fn listing(headers: &[&str], rows: &[Vec<String>], caption: &str, label: Option<&str>) -> String {
    let letters = |row: &Vec<String>| row.iter().map(|text| text.chars().count()).sum::<usize>();
    let widest = rows.iter().map(letters).max().unwrap_or_default();
    let mut lines = vec![line(headers.iter().map(|text| escape(text))), r"    \midrule".to_owned()];
    // A minus sign, not the hyphen that a number in text would get.
    let cell = |text: &String| match text.strip_prefix('-') {
        Some(number) if number.starts_with(|c: char| c.is_ascii_digit()) => format!("$-${}", escape(number)),
        _ => escape(text),
    };
    lines.extend(rows.iter().map(|row| line(row.iter().map(cell))));
    let caption = format!(r"\caption{{{}}}{}", sentence(caption), reference(label));
    document(&caption, "", &"l".repeat(headers.len()), &lines, (6 + widest / 5).max(21))
}

/// Two tables in one file that compiles by itself; the first says how wide the page is.
pub(crate) fn both(first: &str, second: &str) -> String {
    let begin = second.find(r"\begin{table}").unwrap_or_default();
    first.strip_suffix(CLOSE).unwrap_or(first).to_owned() + &second[begin..]
}

/// A table that goes both ways; a page of its own is as wide as it needs.
fn document(caption: &str, setup: &str, columns: &str, lines: &[String], width: usize) -> String {
    format!(
        "{}\\begin{{table}}[htbp]\n  \\centering\n  \\setlength{{\\belowcaptionskip}}{{6pt}}\n  {caption}\n{setup}  \
         \\begin{{tabular}}{{{columns}}}\n    \\toprule\n{}\n    \\bottomrule\n  \\end{{tabular}}\n\\end{{table}}\n{CLOSE}",
        OPEN.replace("WIDTH", &width.to_string()),
        lines.join("\n")
    )
}

/// Mean, sign and deviation, the numbers aligned at their decimal points, with room for what stands behind.
fn column(table: &Table, at: usize) -> String {
    let (mut mean, mut std) = (1, 1);
    for row in &table.rows {
        if let Shown::Number(value) = shown(&row.cells[at], table) {
            mean = mean.max(digits(&value.mean));
            std = std.max(digits(&value.std));
        }
    }
    let texts = table.rows.iter().map(|row| after_number(row, at, table));
    let room = match texts.max_by_key(String::len) {
        Some(widest) if !widest.is_empty() => format!(", table-space-text-post={{{widest}}}"),
        _ => String::new(),
    };
    let decimals = table.decimals;
    // Both numbers keep to the sign between them, however wide the header is.
    format!(
        r"S[table-format={mean}.{decimals}, table-number-alignment=right]@{{\,}}c@{{\,}}S[table-format={std}.{decimals}, table-number-alignment=left, table-text-alignment=left{room}]"
    )
}

/// A header in lines of a few words, because numbers are narrow.
fn stacked(label: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in label.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + word.chars().count() < HEADER_WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    match lines.as_slice() {
        [line] => escape(line),
        lines => {
            let lines: Vec<String> = lines.iter().map(|line| escape(line)).collect();
            format!(r"\shortstack{{{}}}", lines.join(r"\\"))
        }
    }
}

fn after_number(row: &TableRow, at: usize, table: &Table) -> String {
    match shown(&row.cells[at], table) {
        Shown::Number(value) => behind(&value),
        _ => String::new(),
    }
}

/// Digits and the sign before the decimal point; a text such as n/a takes little room.
fn digits(number: &str) -> usize {
    number
        .split('.')
        .next()
        .map_or(1, |whole| whole.chars().filter(|sign| sign.is_ascii_digit() || *sign == '-').count())
        .max(1)
}

/// A line of headers that columns share, and the rules under it.
fn header_lines(spans: &[(String, usize)], labels: usize) -> [String; 2] {
    let (mut cells, mut rules) = (vec![String::new(); labels], String::new());
    let mut next = labels + 1;
    for (group, count) in spans {
        cells.push(format!(r"\multicolumn{{{}}}{{c}}{{{}}}", 3 * count, escape(group)));
        if !group.is_empty() {
            rules.push_str(&format!(r"\cmidrule(lr){{{next}-{}}}", next + 3 * count - 1));
        }
        next += 3 * count;
    }
    [line(cells.into_iter()), format!("    {rules}")]
}

/// Whether a new block of rows begins, such as another data set; a block has several rows.
fn starts_block(table: &Table, at: usize) -> bool {
    let first = |at: usize| table.rows[at].labels.first();
    let differs = |at: usize| first(at) != first(at - 1);
    at > 0 && differs(at) && !(1..table.rows.len()).all(differs)
}

fn row_line(row: &TableRow, table: &Table) -> String {
    let grey = if row.is_cited() { r"\color{gray}" } else { "" };
    let labels = row_labels(table, row).into_iter().map(|label| format!("{grey}{}", escape(&label)));
    line(labels.chain((0..row.cells.len()).map(|at| number(row, at, table, grey))))
}

fn caption(table: &Table) -> String {
    let below = lines_below(table, "Bold:", "Italic:");
    let sentences: Vec<String> = below.iter().map(|text| sentence(text)).collect();
    let grey = if table.rows.iter().any(TableRow::is_cited) { " Grey rows are cited." } else { "" };
    format!("{}: {}{grey}", escape(&table.title), sentences.join(" "))
}

/// What the paper refers to it by; it stands behind the caption, whose number it means.
fn reference(label: Option<&str>) -> String {
    let kept = |letter: &char| letter.is_ascii_alphanumeric() || ":-_./+".contains(*letter);
    let name = label.unwrap_or_default().chars().filter(kept).collect::<String>();
    if name.is_empty() { name } else { format!(r"\label{{{name}}}") }
}

pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    let first: String = letters.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    format!("{}.", escape(&(first + letters.as_str())))
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!(r"    {} \\", cells.collect::<Vec<_>>().join(" & "))
}

fn centred(text: &str) -> String {
    format!(r"\multicolumn{{3}}{{c}}{{{text}}}")
}

/// The three cells of a number: mean, sign, and deviation with what stands behind it.
fn number(row: &TableRow, at: usize, table: &Table, grey: &str) -> String {
    let cell = &row.cells[at];
    match shown(cell, table) {
        Shown::NotPlanned => centred(""),
        Shown::Missing => centred("--"),
        Shown::Number(value) => {
            let bold = if cell.stands_out() { r"\bfseries " } else { "" };
            let italic = if cell.wins_comparison { r"\itshape " } else { "" };
            let style = format!("{grey}{bold}{italic}");
            let behind = match behind(&value) {
                empty if empty.is_empty() => empty,
                text => format!(" {{{text}}}"),
            };
            let defined = value.std.starts_with(|first: char| first.is_ascii_digit());
            let std = if defined { value.std } else { format!("{{{}}}", value.std) };
            format!(r"{style}{} & {grey}$\pm$ & {style}{std}{behind}", value.mean)
        }
    }
}

/// How many folds, and the signs.
fn behind(value: &ShownNumber) -> String {
    let count = value.count.as_ref().map(|count| format!(" ({count})")).unwrap_or_default();
    let signs: String = value.marks.iter().map(|mark| sign(*mark)).collect();
    let signs = if signs.is_empty() { signs } else { format!("$^{{{signs}}}$") };
    format!("{signs}{count}")
}

fn sign(mark: Mark) -> &'static str {
    match mark {
        Mark::Incomplete => "*",
        Mark::MixedCode => r"\dagger",
        Mark::MixedData => r"\ddagger",
        Mark::MixedDevices => r"\S",
        Mark::MixedNumerics => r"\P",
        Mark::Stopped => r"\parallel",
        Mark::FewerCandidates => r"\diamond",
    }
}

fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, character| {
        match command(character) {
            Some(command) => escaped.push_str(command),
            // Letters with accents are known to every LaTeX; others would stop it.
            None if character.is_ascii() || ('\u{c0}'..='\u{17f}').contains(&character) => {
                escaped.push(character);
            }
            None => escaped.push_str(&format!("{{[}}U+{:04X}{{]}}", u32::from(character))),
        }
        escaped
    })
}

/// How a character with a meaning of its own, or without a place in the usual fonts, is written.
fn command(character: char) -> Option<&'static str> {
    Some(match character {
        '\\' => r"\textbackslash{}",
        '~' => r"\textasciitilde{}",
        '^' => r"\textasciicircum{}",
        '<' => r"\textless{}",
        '>' => r"\textgreater{}",
        '|' => r"\textbar{}",
        '&' => r"\&",
        '%' => r"\%",
        '$' => r"\$",
        '#' => r"\#",
        '_' => r"\_",
        '{' => r"\{",
        '}' => r"\}",
        // At the beginning of a row a bracket would be taken for an option of the line before.
        '[' => "{[}",
        ']' => "{]}",
        '`' => "'",
        '±' => r"$\pm$",
        '–' => "--",
        '†' => r"$^{\dagger}$",
        '‡' => r"$^{\ddagger}$",
        '§' => r"$^{\S}$",
        '¶' => r"$^{\P}$",
        '*' => "$^{*}$",
        '‖' => r"$^{\parallel}$",
        '◊' => r"$^{\diamond}$",
        '—' => "---",
        '…' => r"\ldots{}",
        '“' => "``",
        '”' => "''",
        '‘' => "`",
        '’' => "'",
        '\u{a0}' => "~",
        '\n' => " ",
        sign => return mathematics(sign),
    })
}

/// Signs of formulas that people write in captions and labels.
fn mathematics(sign: char) -> Option<&'static str> {
    Some(match sign {
        '≥' => r"$\geq$",
        '≤' => r"$\leq$",
        '·' => r"$\cdot$",
        '×' => r"$\times$",
        '≠' => r"$\neq$",
        '≈' => r"$\approx$",
        '→' => r"$\to$",
        '∞' => r"$\infty$",
        'α' => r"$\alpha$",
        'β' => r"$\beta$",
        'γ' => r"$\gamma$",
        'δ' => r"$\delta$",
        'ε' => r"$\varepsilon$",
        'λ' => r"$\lambda$",
        'μ' | 'µ' => r"$\mu$",
        'σ' => r"$\sigma$",
        'τ' => r"$\tau$",
        '−' => "$-$",
        _ => return None,
    })
}
