//! Learnt filtrations drawn on a graph: one panel for each filtration, vertices as large as their degree and coloured by
//! their value, with a bar that says which colour is which. Reads the JSON of
//! `togl-worker filtrations`; knows no network.

use std::path::Path;

use plotters::prelude::*;
use serde::Deserialize;
use togl_sweeps::bounded;

use super::arrangement::arranged;
use super::style::{BODY, SUBHEADING, Side, write};
use super::{Area, Figure, MARGIN, failed};
use crate::error::{Error, Result};
use crate::wording::fixed;

/// Larger graphs would be a ball of wool, and take long to arrange.
const MOST_VERTICES: usize = 1500;
/// More panels than this are left out; the note says so.
const MOST_PANELS: usize = 12;
const PANEL: (i32, i32) = (300, 330);
const PANELS_PER_LINE: usize = 4;
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

/// The newest form of the file that is known here.
const VERSION: u32 = 1;

/// What `togl-worker filtrations` writes: the filtrations that one network learnt, on some graphs of its data set.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct LearntFiltrations {
    /// Version of this form.
    pub version: u32,
    /// The data set.
    pub dataset: String,
    /// What the network is called.
    pub method: String,
    /// Smallest value of each filtration over all graphs of the file.
    pub smallest: Vec<f64>,
    /// Largest value of each filtration over all graphs of the file.
    pub largest: Vec<f64>,
    /// The graphs, in the order asked for.
    pub graphs: Vec<LearntGraph>,
}

/// A graph with the filtrations that the network learnt on it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct LearntGraph {
    /// Which graph of the data set.
    pub graph: u64,
    /// Part of the split that it is in.
    pub part: String,
    /// Number of vertices.
    pub vertices: usize,
    /// Undirected edges, as pairs of vertices counted from 0.
    pub edges: Vec<(usize, usize)>,
    /// The degree of each vertex.
    pub degrees: Vec<f64>,
    /// One list a filtration, one value a vertex.
    pub filtrations: Vec<Vec<f64>>,
}

impl LearntFiltrations {
    /// Reads the file; says what does not fit together.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::File::open(path)
            .and_then(|file| bounded::text(file, bounded::DOCUMENT))
            .map_err(|source| Error::io("cannot read", path, source))?;
        let read: Self = serde_json::from_str(&text).map_err(|error| {
            let reason = format!("this is not what `togl-worker filtrations` writes: {error}");
            Error::bad_file(path, reason)
        })?;
        read.check().map_err(|reason| Error::bad_file(path, reason))?;
        Ok(read)
    }

    fn check(&self) -> Result<(), String> {
        if self.version > VERSION {
            return Err(format!(
                "version {} is newer than {VERSION}; draw it with a newer togl",
                self.version
            ));
        }
        if self.graphs.is_empty() || self.smallest.is_empty() || self.smallest.len() != self.largest.len() {
            return Err("there is no graph, or no range of a filtration".to_owned());
        }
        self.graphs.iter().try_for_each(|graph| {
            graph.check(self.smallest.len()).map_err(|reason| format!("graph {}: {reason}", graph.graph))
        })
    }
}

impl LearntGraph {
    fn check(&self, kinds: usize) -> Result<(), String> {
        let vertices = self.vertices;
        if vertices == 0 || vertices > MOST_VERTICES {
            return Err(format!("it has {vertices} vertices; 1 to {MOST_VERTICES} can be drawn"));
        }
        if let Some((from, to)) = self.edges.iter().find(|(from, to)| *from >= vertices || *to >= vertices) {
            return Err(format!("the edge ({from}, {to}) is not between two of {vertices} vertices"));
        }
        if self.degrees.len() != vertices {
            return Err(format!("{vertices} vertices have {} degrees", self.degrees.len()));
        }
        if self.filtrations.len() != kinds {
            return Err(format!("it has {} filtrations, the file {kinds}", self.filtrations.len()));
        }
        let fits =
            |values: &Vec<f64>| values.len() == vertices && values.iter().all(|value| value.is_finite());
        match self.filtrations.iter().position(|values| !fits(values)) {
            Some(kind) => Err(format!("filtration {} does not have {vertices} finite values", kind + 1)),
            None => Ok(()),
        }
    }
}

/// Draws every filtration on each of the graphs: one figure a graph.
pub fn filtrations(learnt: &LearntFiltrations) -> Result<Vec<Figure>> {
    learnt.check().map_err(|reason| Error::Drawing { reason })?;
    learnt.graphs.iter().map(|graph| draw_graph(learnt, graph)).collect()
}

fn draw_graph(learnt: &LearntFiltrations, graph: &LearntGraph) -> Result<Figure> {
    let panels = graph.filtrations.len().min(MOST_PANELS);
    let across = panels.min(PANELS_PER_LINE);
    let width = (across as i32 * PANEL.0).max(2 * PANEL.0) + 2 * MARGIN;
    let title = format!("Filtrations of {} on graph {} of {}", learnt.method, graph.graph, learnt.dataset);
    let height = panels.div_ceil(across) as i32 * PANEL.1 + MARGIN;
    let places = arranged(graph.vertices, &graph.edges);
    Figure::draw(&title, &note(graph, panels, learnt.graphs.len()), (width, height), |area| {
        (0..panels).try_for_each(|kind| {
            let corner = ((kind % across) as i32 * PANEL.0 + MARGIN, (kind / across) as i32 * PANEL.1);
            let range = (learnt.smallest[kind], learnt.largest[kind]);
            draw_panel(area, graph, &places, kind, range, corner)
        })
    })
}

fn note(graph: &LearntGraph, panels: usize, graphs: usize) -> String {
    let kinds = graph.filtrations.len();
    let left_out =
        if kinds > panels { format!(" The first {panels} of {kinds} are drawn.") } else { String::new() };
    let scale = if graphs > 1 { ", the same for all graphs of the file" } else { "" };
    let part = match graph.part.as_str() {
        "none" => "in no part of the split".to_owned(),
        part => format!("in the {part} part"),
    };
    format!(
        "{} vertices, {} edges; {part}. Size: degree; colour: value of the filtration, each on its own scale{scale}.\
         {left_out}",
        graph.vertices,
        graph.edges.len()
    )
}

fn draw_panel(
    area: &Area<'_>,
    graph: &LearntGraph,
    places: &[(f64, f64)],
    kind: usize,
    (low, high): (f64, f64),
    corner: (i32, i32),
) -> Result<()> {
    let values = &graph.filtrations[kind];
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
    let largest = graph.degrees.iter().copied().fold(1.0, f64::max);
    // Many vertices are drawn smaller, so that they do not cover each other.
    let room = (side / (graph.vertices as f64).sqrt() / 4.0).clamp(2.5, 11.0);
    for (vertex, value) in values.iter().enumerate() {
        let radius = (room * (0.35 + 0.65 * (graph.degrees[vertex] / largest).sqrt())).round() as i32;
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
    let digits = match size {
        size if size < 1.0 => 3,
        size if size < 10.0 => 2,
        _ => 1,
    };
    fixed(value, digits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::tests::texts;

    /// As `togl-worker filtrations` writes it.
    const LEARNT: &str = r#"{"version": 1, "dataset": "cycles", "data_digest": "d", "method": "GCN-2-TOGL-1", "fold": "t/0/0",
    "best_epoch": 4, "num_filtrations": 2, "smallest": [0.125, -1], "largest": [0.5, 3], "graphs": [
    {"graph": 3, "part": "test", "labels": [1], "vertices": 3, "edges": [[0, 1], [1, 2]], "degrees": [1, 2, 1],
     "filtrations": [[0.5, 0.25, 0.125], [-1, 2, 3]]},
    {"graph": 7, "part": "none", "labels": [0], "vertices": 1, "edges": [], "degrees": [0],
     "filtrations": [[0.25], [0]]}]}"#;

    #[test]
    fn filtrations_are_drawn_one_panel_each_with_a_scale_that_all_graphs_share() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("learnt.json");
        std::fs::write(&path, LEARNT).unwrap();
        let figures = filtrations(&LearntFiltrations::read(&path).unwrap()).unwrap();
        let titles = ["GCN-2-TOGL-1 on graph 3 of cycles", "GCN-2-TOGL-1 on graph 7 of cycles"];
        let parts = ["in the test part", "in no part of the split"];
        assert_eq!(figures.len(), 2);
        for ((figure, title), part) in figures.iter().zip(titles).zip(parts) {
            let texts = texts(figure).replace('\n', " ");
            for wanted in [title, part, "filtration 2", "0.125", "0.500", "-1.00", "3.00"] {
                assert!(texts.contains(wanted), "{wanted} is not in\n{texts}");
            }
        }
        for (from, to, reason) in [
            ("[1, 2]]", "[1, 7]]", "graph 3: the edge (1, 7) is not between two of 3 vertices"),
            ("0.25, 0.125]", "0.25]", "graph 3: filtration 1 does not have 3 finite values"),
            ("\"vertices\": 3", "\"vertices\": 4", "graph 3: 4 vertices have 3 degrees"),
            ("[[0.25], [0]]", "[[0.25]]", "graph 7: it has 1 filtrations, the file 2"),
            ("\"version\": 1", "\"version\": 9", "version 9 is newer than 1"),
            ("\"graph\": 3,", "", "is not what `togl-worker filtrations` writes: missing field `graph`"),
        ] {
            assert!(LEARNT.contains(from), "{from}");
            std::fs::write(&path, LEARNT.replacen(from, to, 1)).unwrap();
            let message = LearntFiltrations::read(&path).unwrap_err().to_string();
            assert!(message.contains(reason), "{message}");
        }
    }
}
