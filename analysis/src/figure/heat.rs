//! A fold heat map: every cell of a table as a line of folds, coloured by how far each is from the mean of its
//! line, so that a hard split or a fold that failed to learn is seen at once, whatever the data set. Orange is below
//! and blue above, which colour-blind readers tell apart; the value stands in each square.

use std::collections::{BTreeMap, BTreeSet};

use plotters::prelude::*;

use super::style::{BODY, Side, text_width, write};
use super::{Area, Figure, MARGIN, failed};
use crate::error::{Error, Result};
use crate::statistics::Summary;
use crate::table::Table;
use crate::wording::{fixed, how, metric_words};

const SQUARE: (i32, i32) = (52, 26);
const HEAD: i32 = 24;
const SCALE: i32 = 54;
/// The scale with the numbers at its ends, from the left of the squares.
const SCALE_WIDTH: i32 = 61 * 3 + 70;
/// Lines of one figure: more would not fit on a page or a screen.
const MOST_ROWS: usize = 60;

const BELOW: RGBColor = RGBColor(213, 94, 0);
const ABOVE: RGBColor = RGBColor(0, 114, 178);

/// One line of the map: a cell's name and its value on each split.
type FoldLine = (String, BTreeMap<u32, f64>);

/// Draws each cell of a table as a line of its folds; seeds of one split are averaged. Many lines make several figures
/// with the same splits and the same colours.
pub fn fold_heat_maps(table: &Table) -> Result<Vec<Figure>> {
    let lines = lines(table);
    let splits: BTreeSet<u32> = lines.iter().flat_map(|(_, values)| values.keys().copied()).collect();
    if splits.is_empty() {
        return Err(Error::Empty { origin: format!("the fold heat map of {}", table.title) });
    }
    let (least, digits) =
        (0.1_f64.powi(i32::try_from(table.scale.decimals()).unwrap_or(1)), table.scale.decimals());
    let furthest = furthest(&lines, least);
    let map = Map { splits: splits.into_iter().collect(), furthest, digits, note: note(table) };
    let pages: Vec<&[FoldLine]> = lines.chunks(MOST_ROWS).collect();
    let title = |at: usize| match pages.len() {
        1 => format!("Folds of {}", table.title),
        count => format!("Folds of {} ({} of {count})", table.title, at + 1),
    };
    pages.iter().enumerate().map(|(at, lines)| map.draw(&title(at), lines)).collect()
}

/// What all pages have in common.
struct Map {
    splits: Vec<u32>,
    furthest: f64,
    /// Digits behind the point.
    digits: usize,
    note: String,
}

impl Map {
    fn draw(&self, title: &str, lines: &[FoldLine]) -> Result<Figure> {
        let label_room = lines.iter().map(|(name, _)| text_width(name)).max().unwrap_or_default() + MARGIN;
        let width = (2 * MARGIN + label_room + self.splits.len() as i32 * SQUARE.0).max(560);
        let width = width.max(MARGIN + label_room + SCALE_WIDTH);
        let below = HEAD + lines.len() as i32 * SQUARE.1;
        Figure::draw(title, &self.note, (width, below + SCALE), |area| {
            let left = MARGIN + label_room;
            self.draw_squares(area, lines, (left, HEAD))?;
            draw_scale(area, (self.furthest, self.digits), (left, below + 24))
        })
    }

    fn draw_squares(&self, area: &Area<'_>, lines: &[FoldLine], corner: (i32, i32)) -> Result<()> {
        for (at, split) in self.splits.iter().enumerate() {
            let x = corner.0 + at as i32 * SQUARE.0 + SQUARE.0 / 2;
            let text = if at == 0 { format!("split {split}") } else { split.to_string() };
            write(area, &text, (x, corner.1 - 10), BODY, &BLACK, Side::Centre)?;
        }
        for (line, (name, values)) in lines.iter().enumerate() {
            let y = corner.1 + line as i32 * SQUARE.1;
            write(area, name, (corner.0 - 8, y + SQUARE.1 / 2), BODY, &BLACK, Side::Right)?;
            let mean = mean(values);
            for (at, split) in self.splits.iter().enumerate() {
                let x = corner.0 + at as i32 * SQUARE.0;
                let place = [(x + 1, y + 1), (x + SQUARE.0 - 1, y + SQUARE.1 - 1)];
                if let Some(value) = values.get(split) {
                    let share = (value - mean) / self.furthest;
                    area.draw(&Rectangle::new(place, colour(share).filled())).map_err(failed)?;
                    let ink = if share > 0.6 { WHITE } else { BLACK };
                    let middle = (x + SQUARE.0 / 2, y + SQUARE.1 / 2);
                    write(area, &fixed(*value, self.digits), middle, BODY, &ink, Side::Centre)?;
                }
                area.draw(&Rectangle::new(place, BLACK.mix(0.15))).map_err(failed)?;
            }
        }
        Ok(())
    }
}

fn note(table: &Table) -> String {
    let distance = if table.scale.is_share() { "percentage points" } else { "distance" };
    format!(
        "{}{}, one square per split (mean over seeds); empty: no result. Colour: {distance} from the mean of the line.",
        metric_words(table.metric, &table.scale),
        how(&table.scale)
    )
}

fn lines(table: &Table) -> Vec<FoldLine> {
    let cells = table.cells().filter(|(_, _, cell)| cell.planned > 0);
    cells
        .map(|(row, column, cell)| {
            let mut by_split: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
            for (fold, value) in cell.folds.iter().zip(&cell.values) {
                by_split.entry(fold.split).or_default().push(*value);
            }
            let means =
                by_split.into_iter().filter_map(|(split, values)| Some((split, Summary::of(&values).mean?)));
            let labels = table.settings().into_iter().zip(table.labels(row, column));
            let name: Vec<String> = labels.map(|(name, label)| named(name, label)).collect();
            (name.join(" · "), means.collect())
        })
        .collect()
}

/// A label that says what it is; methods and data sets do.
fn named(setting: &str, label: &str) -> String {
    if ["method", "dataset"].contains(&setting) { label.to_owned() } else { format!("{setting} {label}") }
}

fn mean(values: &BTreeMap<u32, f64>) -> f64 {
    Summary::of(&values.values().copied().collect::<Vec<_>>()).mean.unwrap_or_default()
}

/// The largest distance of a value from the mean of its line, and at least what can be printed.
fn furthest(lines: &[FoldLine], least: f64) -> f64 {
    let distances = lines.iter().flat_map(|(_, values)| {
        let mean = mean(values);
        values.values().map(move |value| (value - mean).abs())
    });
    distances.fold(least, f64::max)
}

/// From orange (-1) over white (0) to blue (1).
fn colour(share: f64) -> RGBColor {
    let end = if share < 0.0 { BELOW } else { ABOVE };
    let part = share.abs().min(1.0);
    let mix = |to: u8| (255.0 + part * (f64::from(to) - 255.0)).round() as u8;
    RGBColor(mix(end.0), mix(end.1), mix(end.2))
}

fn draw_scale(area: &Area<'_>, (furthest, digits): (f64, usize), at: (i32, i32)) -> Result<()> {
    let (steps, step) = (61, 3);
    for index in 0..steps {
        let x = at.0 + index * step;
        let place = [(x, at.1 - 6), (x + step, at.1 + 6)];
        let shade = colour(f64::from(index - steps / 2) / f64::from(steps / 2));
        area.draw(&Rectangle::new(place, shade.filled())).map_err(failed)?;
    }
    let ends = [(at.0 - 8, Side::Right, -furthest), (at.0 + steps * step + 8, Side::Left, furthest)];
    ends.into_iter().try_for_each(|(x, side, value)| {
        write(area, &format!("{value:+.digits$}"), (x, at.1), BODY, &BLACK, side)
    })
}
