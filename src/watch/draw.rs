//! Draws the model: head, tabs, the lines of the view, keys. Whatever the size, it draws what fits and never more. What others
//! wrote is shown and not obeyed. Changes nothing but the buffer, and tells how many lines fitted.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use togl_sweeps::visible::visible_in_line;
use unicode_width::UnicodeWidthStr;

use super::model::{Observation, Prompt, View, WatchModel};
use super::sheet::{Sheet, SheetCell, SheetRow, Tint, grouped, in_words, percent};
use crate::remote::SweepStatus;

/// What the terminal can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signs {
    /// Otherwise only bold, faint and reversed.
    pub colour: bool,
    /// Otherwise ASCII.
    pub unicode: bool,
}

impl Signs {
    fn style(self, tint: Tint) -> Style {
        let (colour, modifier) = match tint {
            Tint::Plain => (None, Modifier::empty()),
            Tint::Strong => (None, Modifier::BOLD),
            Tint::Faint => (None, Modifier::DIM),
            Tint::Good => (Some(Color::Green), Modifier::empty()),
            Tint::Warn => (Some(Color::Yellow), Modifier::empty()),
            Tint::Bad => (Some(Color::Red), Modifier::BOLD),
        };
        let style = Style::new().add_modifier(modifier);
        colour.filter(|_| self.colour).map_or(style, |colour| style.fg(colour))
    }

    /// Text that can be shown, in one line.
    fn text(self, text: &str) -> String {
        let text = visible_in_line(text);
        if self.unicode {
            return text.into_owned();
        }
        let plain = |sign: char| match sign {
            '±' => "+-".to_owned(),
            '–' | '—' | '─' => "-".to_owned(),
            '▲' => "^".to_owned(),
            '▁' | '▂' => "_".to_owned(),
            '▃' | '▄' | '▅' => "-".to_owned(),
            '▆' | '▇' => "=".to_owned(),
            '█' => "#".to_owned(),
            '▸' => ">".to_owned(),
            sign if sign.is_ascii() => sign.to_string(),
            _ => "?".to_owned(),
        };
        text.chars().map(plain).collect()
    }

    fn bar(self, done: u64, all: u64, width: u16) -> String {
        let full = if all == 0 {
            0
        } else {
            (u128::from(done.min(all)) * u128::from(width) / u128::from(all)) as usize
        };
        let (on, off) = if self.unicode { ("█", "░") } else { ("#", ".") };
        on.repeat(full) + &off.repeat(usize::from(width).saturating_sub(full))
    }
}

/// Between two columns.
const GAP: usize = 2;

/// Below this size words are short.
const NARROW: (u16, u16) = (80, 16);

/// Below this size there is one line.
const TINY: (u16, u16) = (40, 8);

/// Draws everything into the buffer.
pub fn draw(model: &mut WatchModel, signs: Signs, buffer: &mut Buffer) {
    let area = buffer.area;
    buffer.reset();
    let mut canvas = Canvas { buffer, signs, area, next: 0 };
    if area.width < TINY.0 || area.height < TINY.1 {
        canvas.line(&[SheetCell::new(in_short(model))]);
        return;
    }
    let wide = area.width >= NARROW.0 && area.height >= NARROW.1;
    canvas.title(model);
    if let (Some(status), true) = (&model.picture().status, model.sweep.is_some()) {
        canvas.progress(status, model.picture(), wide);
    }
    canvas.machines(model);
    canvas.tabs(model, wide);
    let sheet = model.sheet();
    let place = model.place(&sheet);
    let height = usize::from(area.height.saturating_sub(canvas.next + 1));
    canvas.sheet(&sheet, place, height);
    model.page = height.saturating_sub(2).max(1);
    canvas.next = area.height - 1;
    canvas.line(&[bottom(model, wide)]);
    if model.prompt == Prompt::Help {
        canvas.help(model.may_steer);
    }
}

/// Everything in one line.
fn in_short(model: &WatchModel) -> String {
    match (&model.picture().status, &model.sweep) {
        _ if !model.away.is_empty() => model.away.clone(),
        (Some(SweepStatus { sweep, .. }), Some(_)) => format!(
            "{} {} %, {} running, {} failed",
            sweep.name,
            percent(sweep.finished, sweep.folds),
            sweep.running,
            sweep.failed
        ),
        _ => format!("{} sweeps, {} workers", model.picture().sweeps.len(), model.picture().workers.len()),
    }
}

/// What stands in the last line.
fn bottom(model: &WatchModel, wide: bool) -> SheetCell {
    match &model.prompt {
        Prompt::Ask(deed) => {
            SheetCell::tinted(format!(" {}  [N]o  [y]es  [w]hy", deed.question()), Tint::Warn)
        }
        Prompt::Why(_, reason) => {
            SheetCell::tinted(format!(" why? {reason}_  Enter does it, Esc does not"), Tint::Warn)
        }
        Prompt::Filter => SheetCell::tinted(format!(" /{}_", model.filter), Tint::Strong),
        _ if !model.said.is_empty() => SheetCell::tinted(format!(" {}", model.said), Tint::Warn),
        _ if model.is_held() => SheetCell::tinted(" held; Space goes on".to_owned(), Tint::Warn),
        _ => {
            let enter = match model.view {
                View::Sweeps | View::Running | View::Failures | View::Curves => "Enter open  ",
                _ => "",
            };
            let back = if model.sweep.is_some() || model.open.is_some() { "Esc back  " } else { "" };
            let words = match (wide, model.filter.is_empty()) {
                (_, false) => format!(" /{}  Esc all again  ? keys  q leave", model.filter),
                (true, _) => {
                    format!(" j k move  {enter}{back}/ filter  s sort  Space hold  ? keys  q leave")
                }
                (false, _) => format!(" {enter}{back}? keys  q leave"),
            };
            SheetCell::tinted(words, Tint::Faint)
        }
    }
}

/// What keys do.
const KEYS: [(&str, &str); 12] = [
    ("1-6, left, right", "views"),
    ("up, down, j, k", "move; PgUp, PgDn, Home, End"),
    ("Enter", "open a sweep or a fold"),
    ("Esc", "back"),
    ("w", "all sweeps"),
    ("/", "only lines with these letters"),
    ("s", "sort by the next column"),
    ("Space", "hold the picture; again goes on"),
    ("q", "leave; nothing is stopped"),
    ("Ctrl-Z", "to the shell; fg comes back"),
    ("P R T C", "pause, resume, retry, cancel the sweep; asks first"),
    ("D", "drain the worker; asks first"),
];

struct Canvas<'a> {
    buffer: &'a mut Buffer,
    signs: Signs,
    area: Rect,
    next: u16,
}

impl Canvas<'_> {
    /// Cells one after the other, on the next line.
    fn line(&mut self, cells: &[SheetCell]) {
        self.columns(cells, &[], false);
    }

    /// Cells in columns of these widths; as wide as they are where there are none.
    fn columns(&mut self, cells: &[SheetCell], widths: &[usize], chosen: bool) {
        let y = self.next;
        self.next = self.next.saturating_add(1);
        if y >= self.area.height {
            return;
        }
        let mut x = 0usize;
        for (at, cell) in cells.iter().enumerate() {
            let text = self.signs.text(&cell.text);
            let wide = widths.get(at).copied().unwrap_or_else(|| text.width());
            let room = usize::from(self.area.width).saturating_sub(x).min(wide);
            if room > 0 {
                self.put(x, y, &cut(&text, room, self.signs), room, self.signs.style(cell.tint));
            }
            x = x.saturating_add(wide).saturating_add(if widths.is_empty() { 0 } else { GAP });
        }
        if chosen {
            let line = Rect { x: 0, y, width: self.area.width, height: 1 };
            self.buffer.set_style(line, Style::new().add_modifier(Modifier::REVERSED));
        }
    }

    fn put(&mut self, x: usize, y: u16, text: &str, room: usize, style: Style) {
        if let Ok(x) = u16::try_from(x) {
            self.buffer.set_stringn(x, y, text, room, style);
        }
    }

    fn title(&mut self, model: &WatchModel) {
        let (state, tint) = match (model.away.is_empty(), model.may_steer) {
            (false, _) => (model.away.clone(), Tint::Bad),
            (true, true) => ("connected".to_owned(), Tint::Good),
            (true, false) => ("connected, looking".to_owned(), Tint::Good),
        };
        let right = format!("{state}  {} ", model.now);
        let left =
            [SheetCell::tinted(" togl  ", Tint::Strong), SheetCell::new(format!("{}  ", model.coordinator))];
        let used: usize = left.iter().map(|cell| self.signs.text(&cell.text).width()).sum();
        let gap = usize::from(self.area.width).saturating_sub(used + self.signs.text(&right).width());
        let cells = left.into_iter().chain([SheetCell::new(" ".repeat(gap)), SheetCell::tinted(right, tint)]);
        self.line(&cells.collect::<Vec<_>>());
    }

    fn progress(&mut self, status: &SweepStatus, picture: &Observation, wide: bool) {
        let sweep = &status.sweep;
        let failed = if sweep.failed > 0 { Tint::Bad } else { Tint::Faint };
        let counts = |done, all| format!(" {}/{}", grouped(done), grouped(all));
        let state = SheetCell::tinted(format!("{}  ", sweep.state), super::sweeps::tint(&sweep.state));
        let name = SheetCell::tinted(format!(" {}  ", sweep.name), Tint::Strong);
        let width = if wide { 24 } else { 12 };
        let bar = |done, all| SheetCell::tinted(self.signs.bar(done, all, width), Tint::Good);
        let share = SheetCell::new(format!("  {} %", percent(sweep.finished, sweep.folds)));
        let folds = [
            SheetCell::new(" folds  "),
            bar(sweep.finished, sweep.folds),
            SheetCell::new(counts(sweep.finished, sweep.folds)),
            share,
        ];
        let trials = [
            SheetCell::new(" trials "),
            bar(status.trials_finished, sweep.trials),
            SheetCell::new(counts(status.trials_finished, sweep.trials)),
        ];
        let now = [
            SheetCell::new(format!("{} running  ", grouped(sweep.running))),
            SheetCell::tinted(format!("{} failed  ", grouped(sweep.failed)), failed),
            SheetCell::tinted(left(picture.left, wide), Tint::Plain),
        ];
        self.line(&[vec![name, state], now.to_vec()].concat());
        self.line(&folds);
        if wide {
            self.line(&trials);
        }
        let why = match status.standstill.as_str() {
            "" => sweep.note.clone(),
            standstill => format!("nothing runs: {standstill}"),
        };
        if !why.is_empty() {
            self.line(&[SheetCell::tinted(format!(" {why}"), Tint::Warn)]);
        }
    }

    /// Who trains, and how much gets done; the line that adds a worker where there is none.
    fn machines(&mut self, model: &WatchModel) {
        let picture = model.picture();
        let slots: u64 = picture.workers.iter().map(|worker| u64::from(worker.slots)).sum();
        let busy: usize = picture.workers.iter().map(|worker| worker.running.len()).sum();
        if picture.workers.is_empty() {
            if picture.sweeps.iter().any(|sweep| sweep.pending > 0) {
                let words =
                    " no worker, and folds wait: run the line that `togl serve` printed, or `togl hosts up`";
                self.line(&[SheetCell::tinted(words, Tint::Warn)]);
            }
            return;
        }
        let rate = match &model.sweep {
            Some(sweep) => picture.pace.an_hour(sweep),
            None => picture
                .sweeps
                .iter()
                .filter_map(|sweep| picture.pace.an_hour(&sweep.name))
                .reduce(|a, b| a + b),
        };
        let rate = rate.map(|folds| format!(", {} folds an hour", grouped(folds))).unwrap_or_default();
        let workers = match picture.workers.len() {
            1 => "1 worker".to_owned(),
            many => format!("{many} workers"),
        };
        self.line(&[SheetCell::new(format!(" {workers}, {busy} of {slots} slots busy{rate}"))]);
    }

    fn tabs(&mut self, model: &WatchModel, wide: bool) {
        if wide {
            self.next += 1;
        }
        let mut cells = vec![SheetCell::new(" ")];
        for (at, (view, name, short)) in model.tabs().iter().enumerate() {
            let is_here = *view == model.view || model.open.as_ref().is_some_and(|(_, from)| from == view);
            let name = if wide { name } else { short };
            let text = if is_here { format!("[{} {name}]", at + 1) } else { format!(" {} {name} ", at + 1) };
            cells.push(SheetCell::tinted(text, if is_here { Tint::Strong } else { Tint::Faint }));
        }
        if let Some((fold, _)) = &model.open {
            cells.push(SheetCell::new(format!("  {fold}")));
        }
        self.line(&cells);
    }

    fn sheet(&mut self, sheet: &Sheet, place: usize, height: usize) {
        if sheet.rows.is_empty() {
            self.line(&[SheetCell::tinted(format!(" {}", sheet.empty), Tint::Faint)]);
            return;
        }
        let has_head = !sheet.heads.is_empty();
        let height = height.saturating_sub(usize::from(has_head));
        let line = vec![usize::from(self.area.width)];
        let widths = if has_head { self.widths(sheet) } else { line.clone() };
        if has_head {
            let heads: Vec<SheetCell> =
                sheet.heads.iter().map(|head| SheetCell::tinted(head, Tint::Faint)).collect();
            self.columns(&with_margin(&heads), &with_margin_width(&widths), false);
        }
        let first = first_shown(place, sheet.rows.len(), height);
        for (at, SheetRow { cells, .. }) in sheet.rows.iter().enumerate().skip(first).take(height) {
            // A line with fewer cells is a sentence, and takes the room of all columns.
            let widths = if cells.len() < widths.len() { &line } else { &widths };
            self.columns(&with_margin(cells), &with_margin_width(widths), at == place);
        }
    }

    /// As wide as what stands in a column; the last ones are cut where there is no room.
    fn widths(&self, sheet: &Sheet) -> Vec<usize> {
        let wide = |text: &str| self.signs.text(text).width();
        let column = |at: usize| {
            let rows = sheet.rows.iter().filter(|row| row.cells.len() == sheet.heads.len());
            let cells = rows.filter_map(|row| row.cells.get(at)).map(|cell| wide(&cell.text));
            cells.chain([wide(sheet.heads[at])]).max().unwrap_or(0).min(48)
        };
        (0..sheet.heads.len()).map(column).collect()
    }

    fn help(&mut self, may_steer: bool) {
        let keys: Vec<_> = KEYS.iter().take(if may_steer { KEYS.len() } else { KEYS.len() - 2 }).collect();
        let top = self.area.height.saturating_sub(keys.len() as u16 + 2) / 2;
        self.next = top;
        let blank = " ".repeat(usize::from(self.area.width));
        for (key, does) in keys {
            self.put(0, self.next.min(self.area.height - 1), &blank, blank.len(), Style::reset());
            self.line(&[SheetCell::tinted(format!("  {key:<18}"), Tint::Strong), SheetCell::new(*does)]);
        }
    }
}

/// A column for the margin before the first.
fn with_margin(cells: &[SheetCell]) -> Vec<SheetCell> {
    [SheetCell::new("")].into_iter().chain(cells.iter().cloned()).collect()
}

fn with_margin_width(widths: &[usize]) -> Vec<usize> {
    [0].into_iter().chain(widths.iter().copied()).collect()
}

/// The first line that is shown so that the chosen one is.
fn first_shown(place: usize, rows: usize, height: usize) -> usize {
    let most = rows.saturating_sub(height);
    place.saturating_sub(height / 2).min(most)
}

/// Text that fits, with a sign where something is left out.
fn cut(text: &str, room: usize, signs: Signs) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mark = if signs.unicode { "…" } else { "~" };
    let (mut cut, mut used) = (String::new(), 0);
    for sign in text.chars() {
        let wide = sign.to_string().width();
        if used + wide + 1 > room {
            break;
        }
        used += wide;
        cut.push(sign);
    }
    cut + mark
}

/// How long it takes still, at the least and at the most.
fn left([least, most]: [u64; 2], wide: bool) -> String {
    match [least, most].map(in_words) {
        _ if most == 0 => String::new(),
        [_, other] if !wide => format!("{other} left at most"),
        [one, other] if one == other => format!("about {one} left"),
        [one, other] => format!("{one} to {other} left"),
    }
}

#[cfg(test)]
#[path = "draw_tests.rs"]
mod tests;
