//! The critical-difference diagram: mean ranks of methods over data sets on one axis, and bars over those that
//! Nemenyi's test cannot tell apart. Owns which cells of a table are ranked; the test is in [`crate::statistics`].

use plotters::prelude::*;

use super::style::{BODY, Side, text_width, write};
use super::{Area, Figure, failed};
use crate::error::{Error, Result, listed};
use crate::statistics::{Friedman, TestRefusal, friedman};
use crate::table::{Cell, Table, Winners};

const MARGIN: i32 = 20;
const AXIS_WIDTH: i32 = 460;
const LINE: i32 = 24;

/// Methods with their ranks, and the data sets that could not be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Ranking {
    /// The methods, in the order of the table.
    pub methods: Vec<String>,
    /// Friedman's test of these methods, with their mean ranks.
    pub friedman: Friedman,
    /// What is counted as one comparison, in the plural: `data sets`, or combinations of several settings.
    pub over: String,
    /// Those on which some method is incomplete; they are left out.
    pub left_out: Vec<String>,
}

/// Ranks the methods of a table over its data sets. What competes in the table is ranked: rows where winners are
/// found per column, else columns.
pub fn ranking(table: &Table) -> Result<Ranking> {
    let row_names = table.rows.iter().map(|row| row.labels.join(" ")).collect::<Vec<_>>();
    let column_names = table.columns.iter().map(|column| column.label.clone()).collect::<Vec<_>>();
    let per_column = table.winners == Winners::PerColumn;
    let (methods, sets) = if per_column { (row_names, column_names) } else { (column_names, row_names) };
    let cell = |method: usize, set: usize| -> &Cell {
        if per_column { &table.rows[method].cells[set] } else { &table.rows[set].cells[method] }
    };
    let complete = |set: &usize| (0..methods.len()).all(|method| cell(method, *set).is_complete());
    let (used, unused): (Vec<usize>, Vec<usize>) = (0..sets.len()).partition(complete);
    let scores: Vec<Vec<f64>> = (0..methods.len())
        .map(|method| {
            used.iter()
                .filter_map(|set| cell(method, *set).mean.map(|mean| table.scale.sign() * mean))
                .collect()
        })
        .collect();
    let unfinished = |refusal| match refusal {
        TestRefusal::TooFew { .. } if !unused.is_empty() => {
            let unused: Vec<String> = unused.iter().map(|set| sets[*set].clone()).collect();
            Error::Unfit(format!(
                "cannot rank: {refusal}; not counted, because not everything has finished there: {}; finish these, or \
                 leave out what has not finished with `--filter`",
                listed(&unused)
            ))
        }
        other => other.into(),
    };
    let friedman = friedman(&scores).map_err(unfinished)?;
    let over = if per_column { plural(&[&table.column_setting]) } else { plural(&table.row_settings) };
    Ok(Ranking {
        methods,
        friedman,
        over,
        left_out: unused.into_iter().map(|set| sets[set].clone()).collect(),
    })
}

fn plural(settings: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = settings.iter().map(AsRef::as_ref).collect();
    match names.as_slice() {
        ["dataset"] => "data sets".to_owned(),
        names => format!("combinations of {}, which are not independent of each other", names.join(" and ")),
    }
}

/// Draws the diagram of a ranking at a level such as 0.05.
pub fn critical_difference(ranking: &Ranking, alpha: f64) -> Result<Figure> {
    let diagram = Diagram::of(ranking, alpha);
    let title = "Mean ranks of methods";
    let size = (diagram.left + AXIS_WIDTH + diagram.right, diagram.height());
    Figure::draw(title, &note(ranking, &diagram, alpha), size, |area| diagram.draw(area))
}

fn note(ranking: &Ranking, diagram: &Diagram<'_>, alpha: f64) -> String {
    let test = &ranking.friedman;
    let p = if test.p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {:.3}", test.p) };
    let left_out = match ranking.left_out.as_slice() {
        [] => String::new(),
        names => format!(" Left out because incomplete: {}.", names.join(", ")),
    };
    format!(
        "Rank 1 is best. Bars join methods that Nemenyi's test cannot tell apart at level {alpha} (critical \
         difference {:.2}). Friedman's test over {} {}: {p}.{left_out}",
        diagram.critical, test.datasets, ranking.over
    )
}

struct Diagram<'a> {
    ranking: &'a Ranking,
    /// Methods from best to worst.
    order: Vec<usize>,
    bars: Vec<(usize, usize)>,
    critical: f64,
    left: i32,
    right: i32,
}

impl<'a> Diagram<'a> {
    fn of(ranking: &'a Ranking, alpha: f64) -> Self {
        let (order, bars) = ranking.friedman.groups(alpha);
        let room = |methods: &[usize]| {
            let widest = methods.iter().map(|at| text_width(&ranking.methods[*at])).max();
            widest.unwrap_or_default() + text_width("  (10.00)") + 2 * MARGIN
        };
        let half = order.len().div_ceil(2);
        let (left, right) = (room(&order[..half]), room(&order[half..]));
        let critical = ranking.friedman.critical_difference(alpha);
        Self { ranking, order, bars, critical, left, right }
    }

    fn half(&self) -> usize {
        self.order.len().div_ceil(2)
    }

    /// Where the first label stands below the axis.
    fn labels_from(&self) -> i32 {
        24 + self.bars.len() as i32 * 12
    }

    fn height(&self) -> i32 {
        70 + self.labels_from() + self.half() as i32 * LINE + MARGIN
    }

    fn x(&self, rank: f64) -> i32 {
        let share = (rank - 1.0) / (self.order.len() as f64 - 1.0);
        self.left + (share * f64::from(AXIS_WIDTH)).round() as i32
    }

    fn draw(&self, area: &Area<'_>) -> Result<()> {
        let axis = 64;
        self.draw_critical(area, 12)?;
        line(area, (self.x(1.0), axis), (self.x(self.order.len() as f64), axis), 2)?;
        for rank in 1..=self.order.len() {
            let x = self.x(rank as f64);
            line(area, (x, axis - 6), (x, axis), 2)?;
            write(area, &rank.to_string(), (x, axis - 17), BODY, &BLACK, Side::Centre)?;
        }
        for (at, (first, last)) in self.bars.iter().enumerate() {
            let y = axis + 12 + at as i32 * 12;
            let rank = |place: usize| self.ranking.friedman.ranks[self.order[place]];
            line(area, (self.x(rank(*first)) - 4, y), (self.x(rank(*last)) + 4, y), 5)?;
        }
        (0..self.order.len()).try_for_each(|place| self.draw_method(area, axis, place))
    }

    /// The length of the critical difference, above the axis.
    fn draw_critical(&self, area: &Area<'_>, y: i32) -> Result<()> {
        let (from, to) = (self.x(1.0), self.x(1.0 + self.critical));
        line(area, (from, y), (to, y), 2)?;
        line(area, (from, y - 4), (from, y + 4), 2)?;
        line(area, (to, y - 4), (to, y + 4), 2)?;
        write(area, &format!("CD = {:.2}", self.critical), (to + 8, y), BODY, &BLACK, Side::Left)
    }

    /// From the axis down, then out to the nearer side.
    fn draw_method(&self, area: &Area<'_>, axis: i32, place: usize) -> Result<()> {
        let method = self.order[place];
        let rank = self.ranking.friedman.ranks[method];
        let better = place < self.half();
        let line_number = if better { place } else { self.order.len() - 1 - place };
        let y = axis + self.labels_from() + line_number as i32 * LINE;
        let (x, name) = (self.x(rank), &self.ranking.methods[method]);
        let end = if better { self.left - MARGIN } else { self.left + AXIS_WIDTH + MARGIN };
        line(area, (x, axis), (x, y), 1)?;
        line(area, (x, y), (end, y), 1)?;
        if better {
            write(area, &format!("{name}  ({rank:.2})"), (end - 6, y), BODY, &BLACK, Side::Right)
        } else {
            write(area, &format!("({rank:.2})  {name}"), (end + 6, y), BODY, &BLACK, Side::Left)
        }
    }
}

fn line(area: &Area<'_>, from: (i32, i32), to: (i32, i32), width: u32) -> Result<()> {
    area.draw(&PathElement::new([from, to], BLACK.stroke_width(width))).map_err(failed)
}
