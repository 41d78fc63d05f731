//! Tables as LaTeX with booktabs rules. The result compiles as it is in any document with
//! `\usepackage{booktabs}`: all text is escaped, and signs outside ASCII are written as commands.

use super::{Shown, lines_below, row_headers, row_labels, shown};
use crate::table::{Cell, Mark, Table};

/// The table as a LaTeX `table` environment.
pub fn latex(table: &Table) -> String {
    let headers = row_headers(table);
    let header =
        headers.iter().map(|text| escape(text)).chain(table.columns.iter().map(|c| escape(&c.label)));
    let alignment = "l".repeat(headers.len()) + &"r".repeat(table.columns.len());
    let mut lines = vec![
        r"\begin{table}".to_owned(),
        r"  \centering".to_owned(),
        format!(r"  \caption{{{}}}", caption(table)),
        format!(r"  \begin{{tabular}}{{{alignment}}}"),
        r"    \toprule".to_owned(),
        line(header),
        r"    \midrule".to_owned(),
    ];
    lines.extend(table.rows.iter().map(|row| {
        let labels = row_labels(row).into_iter().map(|label| escape(&label));
        line(labels.chain(row.cells.iter().map(|cell| number(cell, table))))
    }));
    lines.extend([r"    \bottomrule", r"  \end{tabular}", r"\end{table}"].map(str::to_owned));
    lines.join("\n") + "\n"
}

fn caption(table: &Table) -> String {
    let below = lines_below(table, "Bold:", "Italic:");
    let sentences: Vec<String> =
        below.iter().map(|text| format!("{}.", escape(text.trim_end_matches('.')))).collect();
    format!("{}: {}", escape(&table.title), sentences.join(" "))
}

fn line(cells: impl Iterator<Item = String>) -> String {
    format!(r"    {} \\", cells.collect::<Vec<_>>().join(" & "))
}

fn number(cell: &Cell, table: &Table) -> String {
    match shown(cell, table) {
        Shown::NotPlanned => String::new(),
        Shown::Missing => "--".to_owned(),
        Shown::Value(value) => {
            let number = format!(r"{} $\pm$ {}", value.mean, value.std);
            let number = if cell.wins_comparison { format!(r"\textit{{{number}}}") } else { number };
            let number = if cell.stands_out() { format!(r"\textbf{{{number}}}") } else { number };
            let count = value.count.map(|count| format!(" ({count})")).unwrap_or_default();
            let signs: String = value.marks.iter().map(|mark| sign(*mark)).collect();
            let signs = if signs.is_empty() { signs } else { format!("$^{{{signs}}}$") };
            format!("{number}{count}{signs}")
        }
    }
}

fn sign(mark: Mark) -> &'static str {
    match mark {
        Mark::Incomplete => "*",
        Mark::MixedCode => r"\dagger",
        Mark::MixedData => r"\ddagger",
        Mark::MixedDevices => r"\S",
        Mark::MixedNumerics => r"\P",
    }
}

fn escape(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut escaped, character| {
        match command(character) {
            Some(command) => escaped.push_str(command),
            None => escaped.push(character),
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
        '±' => r"$\pm$",
        '–' => "--",
        '†' => r"$^{\dagger}$",
        '‡' => r"$^{\ddagger}$",
        '§' => r"$^{\S}$",
        '¶' => r"$^{\P}$",
        '*' => "$^{*}$",
        '\n' => " ",
        _ => return None,
    })
}
