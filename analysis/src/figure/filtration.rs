//! Learnt filtrations drawn on a graph: one panel for each filtration, vertices as large as their degree and coloured by
//! their value, with a bar that says which colour is which. Reads the JSON that a trained network's filtrations are
//! saved in; knows no network.

use std::path::Path;

use plotters::prelude::*;
use serde::Deserialize;

use super::arrangement::arranged;
use super::style::{BODY, GREY, HEADING, SUBHEADING, Side, wrapped, write};
use super::{Area, Figure, failed};
use crate::error::{Error, Result};

/// Larger graphs would be a ball of wool, and take long to arrange.
const MOST_VERTICES: usize = 1500;
/// More panels than this are left out; the note says so.
const MOST_PANELS: usize = 12;
const PANEL: (i32, i32) = (300, 330);
const PANELS_PER_LINE: usize = 4;
const MARGIN: i32 = 16;
const SCALE: (i32, i32) = (140, 12);

/// Viridis at equal steps: readable in grey and by colour-blind readers.
const VIRIDIS: [RGBColor; 6] = [
    RGBColor(68, 1, 84),
    RGBColor(65, 68, 135),
    RGBColor(42, 120, 142),
    RGBColor(34, 168, 132),
    RGBColor(122, 209, 81),
    RGBColor(253, 231, 37),
];

/// A graph with the filtrations that a network learnt on it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Filtrations {
    /// The data set.
    pub dataset: String,
    /// Which graph of it.
    pub graph: u64,
    /// Number of vertices.
    pub nodes: usize,
    /// Pairs of vertices, each edge once or in both directions.
    pub edges: Vec<(usize, usize)>,
    /// The degree of each vertex; counted from the edges where it is left out.
    #[serde(default)]
    pub degree: Vec<f64>,
    /// For each vertex its value in each filtration.
    pub filtrations: Vec<Vec<f64>>,
}

impl Filtrations {
    /// Reads the file; says what does not fit together.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::io("cannot read", path, source))?;
        let read: Self = serde_json::from_str(&text).map_err(|error| {
            Error::bad_file(path, format!("these are no filtrations of a graph: {error}"))
        })?;
        read.checked().map_err(|reason| Error::bad_file(path, reason))
    }

    fn checked(mut self) -> Result<Self, String> {
        let nodes = self.nodes;
        if nodes == 0 || nodes > MOST_VERTICES {
            return Err(format!("the graph has {nodes} vertices; 1 to {MOST_VERTICES} can be drawn"));
        }
        if let Some((from, to)) = self.edges.iter().find(|(from, to)| *from >= nodes || *to >= nodes) {
            return Err(format!("the edge ({from}, {to}) is not between two of {nodes} vertices"));
        }
        self.edges.iter_mut().for_each(|edge| *edge = (edge.0.min(edge.1), edge.0.max(edge.1)));
        self.edges.sort_unstable();
        self.edges.dedup();
        if self.degree.is_empty() {
            let ends = self.edges.iter().flat_map(|(from, to)| [*from, *to]);
            self.degree = ends.fold(vec![0.0; nodes], |mut degree, end| {
                degree[end] += 1.0;
                degree
            });
        }
        let kinds = self.filtrations.first().map_or(0, Vec::len);
        let fits = |values: &Vec<f64>| values.len() == kinds && values.iter().all(|value| value.is_finite());
        if self.degree.len() != nodes || self.filtrations.len() != nodes || kinds == 0 {
            return Err(format!(
                "{nodes} vertices need as many degrees ({}) and values of filtrations ({})",
                self.degree.len(),
                self.filtrations.len()
            ));
        }
        match self.filtrations.iter().position(|values| !fits(values)) {
            Some(vertex) => Err(format!("vertex {vertex} does not have {kinds} finite values")),
            None => Ok(self),
        }
    }
}

/// Draws every filtration on the graph.
pub fn filtrations(graph: &Filtrations) -> Result<Figure> {
    let graph = graph.clone().checked().map_err(|reason| Error::Drawing { reason })?;
    let kinds = graph.filtrations[0].len();
    let panels = kinds.min(MOST_PANELS);
    let across = panels.min(PANELS_PER_LINE);
    let width = (across as i32 * PANEL.0).max(2 * PANEL.0) + 2 * MARGIN;
    let title = format!("Filtrations on graph {} of {}", graph.graph, graph.dataset);
    let notes = wrapped(&note(&graph, panels), width - 2 * MARGIN);
    let top = 58 + notes.len() as i32 * 20;
    let height = top + panels.div_ceil(across) as i32 * PANEL.1 + MARGIN;
    let places = arranged(graph.nodes, &graph.edges);
    Figure::draw(&title, (width as u32, height as u32), |area| {
        write(area, &title, (MARGIN, MARGIN + 10), HEADING, &BLACK, Side::Left)?;
        for (at, note) in notes.iter().enumerate() {
            write(area, note, (MARGIN, 52 + at as i32 * 20), BODY, &GREY, Side::Left)?;
        }
        (0..panels).try_for_each(|kind| {
            let corner = ((kind % across) as i32 * PANEL.0 + MARGIN, (kind / across) as i32 * PANEL.1 + top);
            draw_panel(area, &graph, &places, kind, corner)
        })
    })
}

fn note(graph: &Filtrations, panels: usize) -> String {
    let kinds = graph.filtrations[0].len();
    let left_out =
        if kinds > panels { format!(" The first {panels} of {kinds} are drawn.") } else { String::new() };
    format!(
        "{} vertices, {} edges. Size: degree; colour: value of the filtration, each on its own scale.{left_out}",
        graph.nodes,
        graph.edges.len()
    )
}

fn draw_panel(
    area: &Area<'_>,
    graph: &Filtrations,
    places: &[(f64, f64)],
    kind: usize,
    corner: (i32, i32),
) -> Result<()> {
    let values: Vec<f64> = graph.filtrations.iter().map(|values| values[kind]).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let share = |value: f64| if high > low { (value - low) / (high - low) } else { 0.5 };
    let side = f64::from(PANEL.0 - 70);
    let spot = |vertex: usize| {
        let (x, y) = places[vertex];
        (corner.0 + 35 + (x * side).round() as i32, corner.1 + 42 + (y * side).round() as i32)
    };
    let name = format!("filtration {}", kind + 1);
    write(area, &name, (corner.0 + PANEL.0 / 2, corner.1 + 12), SUBHEADING, &BLACK, Side::Centre)?;
    for (from, to) in &graph.edges {
        let line = PathElement::new([spot(*from), spot(*to)], BLACK.mix(0.35).stroke_width(1));
        area.draw(&line).map_err(failed)?;
    }
    let largest = graph.degree.iter().copied().fold(1.0, f64::max);
    // Many vertices are drawn smaller, so that they do not cover each other.
    let room = (side / (graph.nodes as f64).sqrt() / 4.0).clamp(2.5, 11.0);
    for (vertex, value) in values.iter().enumerate() {
        let radius = (room * (0.35 + 0.65 * (graph.degree[vertex] / largest).sqrt())).round() as i32;
        let fill = viridis(share(*value));
        area.draw(&Circle::new(spot(vertex), radius, fill.filled())).map_err(failed)?;
        area.draw(&Circle::new(spot(vertex), radius, BLACK.mix(0.7))).map_err(failed)?;
    }
    draw_scale(area, (low, high), (corner.0 + (PANEL.0 - SCALE.0) / 2, corner.1 + PANEL.1 - 22))
}

/// The colour of a share between 0 and 1.
fn viridis(share: f64) -> RGBColor {
    let place = share.clamp(0.0, 1.0) * (VIRIDIS.len() - 1) as f64;
    let at = (place.floor() as usize).min(VIRIDIS.len() - 2);
    let part = place - at as f64;
    let mix = |from: u8, to: u8| (f64::from(from) + part * (f64::from(to) - f64::from(from))).round() as u8;
    let (from, to) = (VIRIDIS[at], VIRIDIS[at + 1]);
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

fn draw_scale(area: &Area<'_>, (low, high): (f64, f64), at: (i32, i32)) -> Result<()> {
    for x in 0..SCALE.0 {
        let place = [(at.0 + x, at.1), (at.0 + x + 1, at.1 + SCALE.1)];
        let colour = viridis(f64::from(x) / f64::from(SCALE.0 - 1));
        area.draw(&Rectangle::new(place, colour.filled())).map_err(failed)?;
    }
    area.draw(&Rectangle::new([at, (at.0 + SCALE.0, at.1 + SCALE.1)], BLACK.mix(0.5))).map_err(failed)?;
    let middle = at.1 + SCALE.1 / 2;
    write(area, &short(low), (at.0 - 6, middle), BODY, &BLACK, Side::Right)?;
    write(area, &short(high), (at.0 + SCALE.0 + 6, middle), BODY, &BLACK, Side::Left)
}

/// Three digits that matter.
fn short(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && !(0.01..1000.0).contains(&size) {
        return format!("{value:.1e}");
    }
    format!(
        "{value:.*}",
        if size < 1.0 {
            3
        } else if size < 10.0 {
            2
        } else {
            1
        }
    )
}
