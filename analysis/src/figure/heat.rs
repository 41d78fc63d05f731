//! A fold heat map: every cell of a table as a line of folds, coloured by value, so that an outlying split or a
//! fold that failed to learn is seen at once. Colours run from dark blue to yellow in even steps of lightness, which
//! colour-blind readers and grey printers keep; the value stands in each square.

use std::collections::{BTreeMap, BTreeSet};

use plotters::prelude::*;

use super::style::{BODY, GREY, HEADING, Side, text_width, wrapped, write};
use super::{Area, Figure, failed};
use crate::error::{Error, Result};
use crate::statistics::Summary;
use crate::table::Table;
use crate::wording::metric_words;

const SQUARE: (i32, i32) = (52, 26);
const MARGIN: i32 = 16;
const HEAD: i32 = 66;
const SCALE: i32 = 54;

/// Cividis, at even distances.
const CIVIDIS: [(u8, u8, u8); 6] =
    [(0, 32, 81), (60, 77, 110), (109, 109, 114), (150, 143, 112), (202, 181, 89), (253, 234, 69)];

/// One line of the map: a cell's name and its value on each split.
type Lines = Vec<(String, BTreeMap<u32, f64>)>;

/// Draws each cell of a table as a line of its folds; seeds of one split are averaged.
pub fn fold_heat_map(table: &Table) -> Result<Figure> {
    let lines = lines(table);
    let splits: Vec<u32> =
        lines.iter().flat_map(|(_, values)| values.keys().copied()).collect::<BTreeSet<u32>>().into_iter().collect();
    if splits.is_empty() {
        return Err(Error::Empty { origin: format!("the fold heat map of {}", table.title) });
    }
    let label_room = lines.iter().map(|(name, _)| text_width(name)).max().unwrap_or_default() + MARGIN;
    let width = (2 * MARGIN + label_room + splits.len() as i32 * SQUARE.0).max(560);
    let notes = wrapped(&note(table), width - 2 * MARGIN);
    let top = HEAD + notes.len() as i32 * 20;
    let height = top + lines.len() as i32 * SQUARE.1 + SCALE;
    let title = format!("Folds of {}", table.title);
    Figure::draw(&title, (width as u32, height as u32), |area| {
        write(area, &title, (MARGIN, MARGIN + 10), HEADING, &BLACK, Side::Left)?;
        for (at, note) in notes.iter().enumerate() {
            write(area, note, (MARGIN, 50 + at as i32 * 20), BODY, &GREY, Side::Left)?;
        }
        let corner = (MARGIN + label_room, top);
        draw_squares(area, &lines, &splits, corner)?;
        draw_scale(area, range(&lines), (corner.0, top + lines.len() as i32 * SQUARE.1 + 24))
    })
}

fn note(table: &Table) -> String {
    format!("{} in percent, one square per split (mean over seeds); empty: not finished.", metric_words(table.metric))
}

fn lines(table: &Table) -> Lines {
    let cells = table.cells().filter(|(_, _, cell)| cell.planned > 0);
    cells
        .map(|(labels, column, cell)| {
            let mut by_split: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
            for (fold, value) in cell.folds.iter().zip(&cell.values) {
                by_split.entry(fold.split).or_default().push(*value);
            }
            let means = by_split.into_iter().filter_map(|(split, values)| Some((split, Summary::of(&values).mean?)));
            let name: Vec<&str> = labels.iter().map(String::as_str).chain([column.label.as_str()]).collect();
            (name.join(" · "), means.collect())
        })
        .collect()
}

fn range(lines: &Lines) -> (f64, f64) {
    let values = lines.iter().flat_map(|(_, values)| values.values().copied());
    values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
}

fn draw_squares(area: &Area<'_>, lines: &Lines, splits: &[u32], corner: (i32, i32)) -> Result<()> {
    let range = range(lines);
    for (at, split) in splits.iter().enumerate() {
        let x = corner.0 + at as i32 * SQUARE.0 + SQUARE.0 / 2;
        let text = if at == 0 { format!("split {split}") } else { split.to_string() };
        write(area, &text, (x, corner.1 - 10), BODY, &BLACK, Side::Centre)?;
    }
    for (line, (name, values)) in lines.iter().enumerate() {
        let y = corner.1 + line as i32 * SQUARE.1;
        write(area, name, (corner.0 - 8, y + SQUARE.1 / 2), BODY, &BLACK, Side::Right)?;
        for (at, split) in splits.iter().enumerate() {
            let x = corner.0 + at as i32 * SQUARE.0;
            let place = [(x + 1, y + 1), (x + SQUARE.0 - 1, y + SQUARE.1 - 1)];
            let Some(value) = values.get(split) else {
                area.draw(&Rectangle::new(place, BLACK.mix(0.15))).map_err(failed)?;
                continue;
            };
            let share = share(*value, range);
            area.draw(&Rectangle::new(place, colour(share).filled())).map_err(failed)?;
            let ink = if share < 0.55 { WHITE } else { BLACK };
            let middle = (x + SQUARE.0 / 2, y + SQUARE.1 / 2);
            write(area, &format!("{value:.1}"), middle, BODY, &ink, Side::Centre)?;
        }
    }
    Ok(())
}

fn share(value: f64, range: (f64, f64)) -> f64 {
    if range.1 > range.0 { (value - range.0) / (range.1 - range.0) } else { 0.5 }
}

fn colour(share: f64) -> RGBColor {
    let place = share.clamp(0.0, 1.0) * (CIVIDIS.len() - 1) as f64;
    let (below, part) = ((place.floor() as usize).min(CIVIDIS.len() - 2), place - place.floor());
    let part = if place as usize == CIVIDIS.len() - 1 { 1.0 } else { part };
    let (from, to) = (CIVIDIS[below], CIVIDIS[below + 1]);
    let mix = |from: u8, to: u8| (f64::from(from) + part * (f64::from(to) - f64::from(from))).round() as u8;
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

fn draw_scale(area: &Area<'_>, range: (f64, f64), at: (i32, i32)) -> Result<()> {
    let (steps, step) = (60, 3);
    for index in 0..steps {
        let x = at.0 + index * step;
        let place = [(x, at.1 - 6), (x + step, at.1 + 6)];
        let shade = colour(f64::from(index) / f64::from(steps - 1));
        area.draw(&Rectangle::new(place, shade.filled())).map_err(failed)?;
    }
    write(area, &format!("{:.1}%", range.0), (at.0 - 8, at.1), BODY, &BLACK, Side::Right)?;
    write(area, &format!("{:.1}%", range.1), (at.0 + steps * step + 8, at.1), BODY, &BLACK, Side::Left)
}
