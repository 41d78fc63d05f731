//! A fold heat map: every cell of a table as a line of folds, coloured by how far each is from the mean of its
//! line, so that a hard split or a fold that failed to learn is seen at once, whatever the data set. Orange is below
//! and blue above, which colour-blind readers tell apart; the value stands in each square.

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

const BELOW: RGBColor = RGBColor(213, 94, 0);
const ABOVE: RGBColor = RGBColor(0, 114, 178);

/// One line of the map: a cell's name and its value on each split.
type Lines = Vec<(String, BTreeMap<u32, f64>)>;

/// Draws each cell of a table as a line of its folds; seeds of one split are averaged.
pub fn fold_heat_map(table: &Table) -> Result<Figure> {
    let lines = lines(table);
    let splits: Vec<u32> = lines
        .iter()
        .flat_map(|(_, values)| values.keys().copied())
        .collect::<BTreeSet<u32>>()
        .into_iter()
        .collect();
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
        draw_scale(area, furthest(&lines), (corner.0, top + lines.len() as i32 * SQUARE.1 + 24))
    })
}

fn note(table: &Table) -> String {
    format!(
        "{} in percent, one square per split (mean over seeds); empty: no result. Colour: percentage points from the mean of the line.",
        metric_words(table.metric)
    )
}

fn lines(table: &Table) -> Lines {
    let cells = table.cells().filter(|(_, _, cell)| cell.planned > 0);
    cells
        .map(|(labels, column, cell)| {
            let mut by_split: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
            for (fold, value) in cell.folds.iter().zip(&cell.values) {
                by_split.entry(fold.split).or_default().push(*value);
            }
            let means =
                by_split.into_iter().filter_map(|(split, values)| Some((split, Summary::of(&values).mean?)));
            let name: Vec<&str> = labels.iter().map(String::as_str).chain([column.label.as_str()]).collect();
            (name.join(" · "), means.collect())
        })
        .collect()
}

fn mean(values: &BTreeMap<u32, f64>) -> f64 {
    Summary::of(&values.values().copied().collect::<Vec<_>>()).mean.unwrap_or_default()
}

/// The largest distance of a value from the mean of its line.
fn furthest(lines: &Lines) -> f64 {
    let distances = lines.iter().flat_map(|(_, values)| {
        let mean = mean(values);
        values.values().map(move |value| (value - mean).abs())
    });
    distances.fold(0.1, f64::max)
}

fn draw_squares(area: &Area<'_>, lines: &Lines, splits: &[u32], corner: (i32, i32)) -> Result<()> {
    let furthest = furthest(lines);
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
            if let Some(value) = values.get(split) {
                let share = (value - mean(values)) / furthest;
                area.draw(&Rectangle::new(place, colour(share).filled())).map_err(failed)?;
                let ink = if share > 0.6 { WHITE } else { BLACK };
                let middle = (x + SQUARE.0 / 2, y + SQUARE.1 / 2);
                write(area, &format!("{value:.1}"), middle, BODY, &ink, Side::Centre)?;
            }
            area.draw(&Rectangle::new(place, BLACK.mix(0.15))).map_err(failed)?;
        }
    }
    Ok(())
}

/// From orange (-1) over white (0) to blue (1).
fn colour(share: f64) -> RGBColor {
    let end = if share < 0.0 { BELOW } else { ABOVE };
    let part = share.abs().min(1.0);
    let mix = |to: u8| (255.0 + part * (f64::from(to) - 255.0)).round() as u8;
    RGBColor(mix(end.0), mix(end.1), mix(end.2))
}

fn draw_scale(area: &Area<'_>, furthest: f64, at: (i32, i32)) -> Result<()> {
    let (steps, step) = (61, 3);
    for index in 0..steps {
        let x = at.0 + index * step;
        let place = [(x, at.1 - 6), (x + step, at.1 + 6)];
        let shade = colour(f64::from(index - steps / 2) / f64::from(steps / 2));
        area.draw(&Rectangle::new(place, shade.filled())).map_err(failed)?;
    }
    let ends = [(at.0 - 8, Side::Right, -furthest), (at.0 + steps * step + 8, Side::Left, furthest)];
    ends.into_iter()
        .try_for_each(|(x, side, value)| write(area, &format!("{value:+.1}"), (x, at.1), BODY, &BLACK, side))
}
