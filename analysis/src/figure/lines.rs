//! Panels of lines with error bars or bands over one legend: the form of most figures here. Owns sizes, axes and the
//! legend; what the lines mean is the caller's.

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::axis::XAxis;
use super::style::{BODY, LineStyle, SUBHEADING, Side, Sign, text_width, write};
use super::{Area, Figure, LINE, MARGIN, failed};
use crate::distinct::Distinct;
use crate::error::{Error, Result};
use crate::wording::fixed;

/// More lines than this cannot be told apart.
pub const MOST_LINES: usize = 21;

/// Lines without signs have colours and dashes only.
pub const MOST_CURVES: usize = 14;

const PANEL: (i32, i32) = (380, 300);
const PANELS_PER_LINE: usize = 3;
const SWATCH: i32 = 34;

/// A measured value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    /// How far its bar, or the band of its line, reaches to either side.
    pub error: Option<f64>,
}

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// With a sign and an error bar at each value.
    Measured,
    /// One of many, in the background.
    Thin,
    /// The one that counts, with a band where its points have errors.
    Thick,
    /// The same, told apart from another thick line by dashes.
    Dashed,
}

/// Points of one label in one panel, in the order in which they are joined.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// What the legend says; lines of one label look alike.
    pub label: String,
    pub points: Vec<Point>,
    pub weight: Weight,
}

/// Lines over one pair of axes; each panel has heights of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    pub title: String,
    pub y_label: String,
    pub lines: Vec<Line>,
}

/// Panels that share the horizontal axis and one legend.
#[derive(Debug, Clone, PartialEq)]
pub struct LinePlot {
    pub title: String,
    /// What the numbers and bars are.
    pub note: String,
    pub x_label: String,
    pub axis: XAxis,
    /// Panels side by side, where the usual number does not fit.
    pub across: Option<usize>,
    pub panels: Vec<Panel>,
}

impl LinePlot {
    /// The figure, as large as its panels and its legend need; more lines than can be told apart are refused.
    pub fn draw(&self) -> Result<Figure> {
        let labels = self.labels();
        if labels.len() > MOST_LINES {
            return Err(Error::TooManyLines { lines: labels.len(), most: MOST_LINES });
        }
        let more_room = self.axis.more_room();
        let most = if more_room > 0 { 1 } else { self.across.unwrap_or(PANELS_PER_LINE) };
        let across = self.panels.len().clamp(1, most);
        let down = self.panels.len().div_ceil(across).max(1);
        // A narrow figure still needs room for its title.
        let width = (across as i32 * (PANEL.0 + more_room)).max(2 * PANEL.0 * 8 / 10) + 2 * MARGIN;
        let legend = Legend::of(&labels, width - 2 * MARGIN);
        let middle = down as i32 * PANEL.1;
        let height = middle + legend.height() + MARGIN;
        Figure::draw(&self.title, &self.note, (width, height), |area| {
            let body = area.clone().shrink((MARGIN, 0), (width - 2 * MARGIN, middle));
            let places = body.split_evenly((down, across));
            for (panel, place) in self.panels.iter().zip(&places) {
                self.draw_panel(place, panel, &labels)?;
            }
            legend.draw(area, (MARGIN, middle + LINE / 2), self)
        })
    }

    fn has(&self, label: &str, weight: Weight) -> bool {
        let mut lines = self.panels.iter().flat_map(|panel| &panel.lines);
        lines.any(|line| line.label == label && line.weight == weight)
    }

    /// What the legend explains.
    pub fn labels(&self) -> Vec<&str> {
        Distinct::of(self.panels.iter().flat_map(|panel| &panel.lines).map(|line| line.label.as_str()))
    }

    fn draw_panel(&self, area: &Area<'_>, panel: &Panel, labels: &[&str]) -> Result<()> {
        let (xs, ys) = (self.axis.range, heights(panel));
        let ticks = self.axis.ticks.iter().map(|(place, _)| *place).collect();
        let mut chart = ChartBuilder::on(area)
            .caption(&panel.title, ("sans-serif", SUBHEADING))
            .margin(6)
            .x_label_area_size(44)
            .y_label_area_size(56)
            .build_cartesian_2d(Ticked { along: (xs.0..xs.1).into(), ticks }, ys.0..ys.1)
            .map_err(failed)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .bold_line_style(BLACK.mix(0.12))
            .light_line_style(TRANSPARENT)
            .axis_style(BLACK.mix(0.6))
            .x_desc(&self.x_label)
            .y_desc(&panel.y_label)
            .y_labels(6)
            .x_label_formatter(&|place| self.axis.name(*place))
            .y_label_formatter(&|y| plain(*y, ys.1 - ys.0))
            .label_style(("sans-serif", BODY - 1))
            .axis_desc_style(("sans-serif", BODY))
            .draw()
            .map_err(failed)?;
        for line in &panel.lines {
            let at = labels.iter().position(|label| *label == line.label).unwrap_or_default();
            draw_line(&mut chart, line, LineStyle::of(at), self.axis.step * dodge(panel, line))?;
        }
        Ok(())
    }
}

/// As many digits as the range needs.
fn plain(value: f64, range: f64) -> String {
    // Six labels, so that two of them never look alike.
    let enough = |digits: &i32| range * 10_f64.powi(*digits) >= 6.0;
    let digits = (0..12).find(enough).unwrap_or(12);
    fixed(value, digits as usize)
}

/// Lines with error bars at the same places are moved apart by this share of a step, so that bars do not hide each other.
fn dodge(panel: &Panel, line: &Line) -> f64 {
    let measured: Vec<&Line> = panel.lines.iter().filter(|line| line.weight == Weight::Measured).collect();
    let lines = measured.len() as f64;
    let place = measured.iter().position(|other| other.label == line.label);
    let step = (0.4 / lines).min(0.08);
    place.map_or(0.0, |place| (place as f64 - (lines - 1.0) / 2.0) * step)
}

/// The shown part of the vertical axis.
fn heights(panel: &Panel) -> (f64, f64) {
    let points = panel.lines.iter().flat_map(|line| &line.points);
    let ends = points.map(|point| {
        let error = point.error.unwrap_or_default();
        (point.y - error, point.y + error)
    });
    let Some((low, high)) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else { return (0.0, 1.0) };
    // Half a percentage point; less where values are much smaller.
    let size = high.abs().max(low.abs());
    let least = if size > 0.0 { (0.25 * size).min(0.5) } else { 0.5 };
    let above = 0.06 * (high - low).max(least);
    (low - above, high + above)
}

/// An axis with ticks where they are wanted.
struct Ticked {
    along: RangedCoordf64,
    ticks: Vec<f64>,
}

impl Ranged for Ticked {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        self.along.map(value, limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.along.range()
    }
}

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Ticked, RangedCoordf64>>;

fn draw_line(chart: &mut Chart<'_, '_>, line: &Line, look: LineStyle, dodge: f64) -> Result<()> {
    let colour = look.colour();
    if line.weight == Weight::Thick {
        draw_band(chart, line, look)?;
    }
    let points: Vec<(f64, f64)> = line.points.iter().map(|point| (point.x + dodge, point.y)).collect();
    let style = match line.weight {
        Weight::Measured => colour.stroke_width(2),
        Weight::Thin => colour.mix(0.28).stroke_width(1),
        Weight::Thick | Weight::Dashed => colour.stroke_width(3),
    };
    if look.dashed() || line.weight == Weight::Dashed {
        let dashes = DashedLineSeries::new(points.iter().copied(), 6, 4, style);
        chart.draw_series(dashes).map_err(failed)?;
    } else {
        chart.draw_series(LineSeries::new(points.iter().copied(), style)).map_err(failed)?;
    }
    if line.weight != Weight::Measured {
        return Ok(());
    }
    let bars = line.points.iter().filter_map(|point| {
        let error = point.error?;
        let bar = (point.y - error, point.y, point.y + error);
        Some(ErrorBar::new_vertical(
            point.x + dodge,
            bar.0,
            bar.1,
            bar.2,
            colour.mix(0.75).stroke_width(1),
            7,
        ))
    });
    chart.draw_series(bars).map_err(failed)?;
    draw_signs(chart, &points, look)
}

/// The band around a line, where its points have errors.
fn draw_band(chart: &mut Chart<'_, '_>, line: &Line, look: LineStyle) -> Result<()> {
    let errors = || line.points.iter().filter_map(|point| Some((point.x, point.y, point.error?)));
    let above = errors().map(|(x, y, error)| (x, y + error));
    let below = errors().map(|(x, y, error)| (x, y - error)).collect::<Vec<_>>().into_iter().rev();
    let band: Vec<(f64, f64)> = above.chain(below).collect();
    if band.is_empty() {
        return Ok(());
    }
    chart.draw_series([Polygon::new(band, look.colour().mix(0.1))]).map(|_| ()).map_err(failed)
}

fn draw_signs(chart: &mut Chart<'_, '_>, points: &[(f64, f64)], look: LineStyle) -> Result<()> {
    let colour = look.colour();
    let points = points.iter().copied();
    let drawn = match look.shape() {
        Sign::Circle => chart.draw_series(points.map(|at| Circle::new(at, 4, colour.filled()))).map(|_| ()),
        Sign::Triangle => {
            chart.draw_series(points.map(|at| TriangleMarker::new(at, 6, colour.filled()))).map(|_| ())
        }
        Sign::Cross => {
            chart.draw_series(points.map(|at| Cross::new(at, 4, colour.stroke_width(2)))).map(|_| ())
        }
    };
    drawn.map_err(failed)
}

/// What each look means, in as many lines as the width needs.
struct Legend<'a> {
    labels: &'a [&'a str],
    room: i32,
    per_line: usize,
}

impl<'a> Legend<'a> {
    fn of(labels: &'a [&'a str], width: i32) -> Self {
        let widest = labels.iter().map(|label| text_width(label)).max().unwrap_or_default();
        let room = SWATCH + widest + 2 * MARGIN;
        Self { labels, room, per_line: (width / room).max(1) as usize }
    }

    fn height(&self) -> i32 {
        self.labels.len().div_ceil(self.per_line) as i32 * LINE
    }

    fn draw(&self, area: &Area<'_>, at: (i32, i32), plot: &LinePlot) -> Result<()> {
        for (index, label) in self.labels.iter().enumerate() {
            let (column, line) = (index % self.per_line, index / self.per_line);
            let place = (at.0 + column as i32 * self.room, at.1 + line as i32 * LINE);
            let look = LineStyle::of(index);
            draw_swatch(area, place, look, look.dashed() || plot.has(label, Weight::Dashed))?;
            if plot.has(label, Weight::Measured) {
                draw_sign(area, (place.0 + 13, place.1), look)?;
            }
            write(area, label, (place.0 + SWATCH, place.1), BODY, &BLACK, Side::Left)?;
        }
        Ok(())
    }
}

fn draw_swatch(area: &Area<'_>, at: (i32, i32), look: LineStyle, dashed: bool) -> Result<()> {
    let colour = look.colour();
    let ends = if dashed { vec![(0, 10), (17, 27)] } else { vec![(0, 27)] };
    for (from, to) in ends {
        let line = PathElement::new([(at.0 + from, at.1), (at.0 + to, at.1)], colour.stroke_width(2));
        area.draw(&line).map_err(failed)?;
    }
    Ok(())
}

fn draw_sign(area: &Area<'_>, middle: (i32, i32), look: LineStyle) -> Result<()> {
    let colour = look.colour();
    match look.shape() {
        Sign::Circle => area.draw(&Circle::new(middle, 4, colour.filled())),
        Sign::Triangle => area.draw(&TriangleMarker::new(middle, 6, colour.filled())),
        Sign::Cross => area.draw(&Cross::new(middle, 4, colour.stroke_width(2))),
    }
    .map_err(failed)
}
