//! One graph of a data set as an SVG picture: edges, nodes in the colour of their class or feature, what the
//! colours mean, and a caption. It gives text; where that goes is the caller's business.

use std::fmt::Write;

use crate::dataset::{Dataset, Graph, Task};
use crate::error::Error;
use crate::facts::facts;
use crate::layout::{Place, by_forces, fitted};

const SIDE: f64 = 800.0;
const MARGIN: f64 = 40.0;
const FOOT: f64 = 60.0;
const MOST_SWATCHES: usize = 8;
/// Distinct also for colour-blind readers (Okabe and Ito).
const PALETTE: [&str; 8] =
    ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442", "#000000"];

/// Colour of each node, and what the colours mean.
struct Paint {
    colours: Vec<String>,
    legend: Vec<(String, String)>,
}

/// Draws the graph at this position.
pub fn draw_svg(dataset: &Dataset, index: usize) -> Result<String, Error> {
    if index >= dataset.graph_count() {
        let reason = format!("its graphs are 0 to {}", dataset.graph_count() - 1);
        return Err(Error::bad_option(dataset.name(), "graph", index, reason));
    }
    let graph = dataset.graph(index);
    let superpixels = facts(dataset.name()).is_some_and(|facts| facts.directed);
    let channels = graph.feature_width.saturating_sub(2);
    let (places, paint) = match (superpixels, channels) {
        (true, 1 | 3) => (image_places(&graph), image_paint(&graph, channels)),
        _ => (graph_places(&graph), paint(dataset, &graph)),
    };
    let caption = caption(dataset, &graph);
    Ok(svg(&graph, &places, &paint, &caption))
}

fn graph_places(graph: &Graph<'_>) -> Vec<Place> {
    let edges: Vec<(u32, u32)> = graph.undirected_edges().collect();
    by_forces(graph.node_count, &edges)
}

/// Superpixels lie where they lie in the image: row and column are the last two features.
fn image_places(graph: &Graph<'_>) -> Vec<Place> {
    let width = graph.feature_width;
    let place = |row: &[f32]| [f64::from(row[width - 1]), f64::from(row[width - 2])];
    fitted(graph.features.chunks_exact(width).map(place).collect())
}

fn image_paint(graph: &Graph<'_>, channels: usize) -> Paint {
    let byte = |value: f32| (f64::from(value).clamp(0.0, 1.0) * 255.0).round() as u8;
    let colour = |row: &[f32]| {
        let [red, green, blue] = [row[0], row[1.min(channels - 1)], row[2.min(channels - 1)]].map(byte);
        format!("#{red:02X}{green:02X}{blue:02X}")
    };
    let colours = graph.features.chunks_exact(graph.feature_width).map(colour).collect();
    Paint { colours, legend: Vec::new() }
}

/// By node class, by one-hot feature, or by the first feature from least to most.
fn paint(dataset: &Dataset, graph: &Graph<'_>) -> Paint {
    let rows = || graph.features.chunks_exact(graph.feature_width);
    if dataset.task() == Task::NodeClassification {
        return categories(graph.labels.iter().map(|label| *label as usize), "class");
    }
    let hot = |row: &[f32]| {
        let one = row.iter().position(|value| *value == 1.0)?;
        (row.iter().filter(|value| **value != 0.0).count() == 1).then_some(one)
    };
    match rows().map(hot).collect::<Option<Vec<usize>>>() {
        Some(columns) if graph.feature_width > 1 => categories(columns.into_iter(), "feature"),
        _ => scale(rows().map(|row| f64::from(row[0])).collect()),
    }
}

fn categories(numbers: impl Iterator<Item = usize> + Clone, what: &str) -> Paint {
    let mut present: Vec<usize> = numbers.clone().collect();
    present.sort_unstable();
    present.dedup();
    let colour = |number: usize| PALETTE[number % PALETTE.len()].to_string();
    let mut legend: Vec<(String, String)> =
        present.iter().map(|number| (colour(*number), format!("{what} {number}"))).collect();
    if legend.len() > MOST_SWATCHES {
        legend.truncate(MOST_SWATCHES - 1);
        legend.push(("none".to_string(), format!("and {} more", present.len() + 1 - MOST_SWATCHES)));
    }
    Paint { colours: numbers.map(colour).collect(), legend }
}

/// From blue to yellow; one colour where all values are equal.
fn scale(values: Vec<f64>) -> Paint {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if most <= least {
        return Paint { colours: vec![PALETTE[0].to_string(); values.len()], legend: Vec::new() };
    }
    let colour = |value: f64| {
        let share = (value - least) / (most - least);
        let mix = |low: f64, high: f64| (low + (high - low) * share).round() as u8;
        format!("#{:02X}{:02X}{:02X}", mix(20.0, 250.0), mix(60.0, 220.0), mix(150.0, 60.0))
    };
    let legend = vec![
        (colour(least), format!("first feature {least:.3}")),
        (colour(most), format!("first feature {most:.3}")),
    ];
    Paint { colours: values.into_iter().map(colour).collect(), legend }
}

fn caption(dataset: &Dataset, graph: &Graph<'_>) -> String {
    let edges = graph.undirected_edges().count();
    let (nodes, index) = (graph.node_count, graph.index);
    let class = match dataset.task() {
        Task::NodeClassification => String::new(),
        Task::GraphClassification | Task::GraphBinaryAuc => format!(", class {}", graph.labels[0]),
    };
    let directed = graph.sources.len();
    let edges = match facts(dataset.name()).is_some_and(|facts| facts.directed) {
        true => format!("{directed} directed edges"),
        false => format!("{edges} edges"),
    };
    format!("{}, graph {index}{class}: {nodes} nodes, {edges}", dataset.name())
}

fn svg(graph: &Graph<'_>, places: &[Place], paint: &Paint, caption: &str) -> String {
    let at = |place: Place| place.map(|share| MARGIN + share * (SIDE - 2.0 * MARGIN));
    let radius = (160.0 / (graph.node_count as f64).sqrt()).clamp(2.0, 14.0);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {SIDE} {}\" font-family=\"sans-serif\" \
         font-size=\"14\" role=\"img\">\n<title>{}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>",
        SIDE + FOOT,
        escaped(caption)
    );
    text.push_str("<path fill=\"none\" stroke=\"#808080\" stroke-opacity=\"0.6\" d=\"");
    let mut lines: Vec<(u32, u32)> = graph.directed_edges().map(|(u, v)| (u.min(v), u.max(v))).collect();
    lines.sort_unstable();
    lines.dedup();
    for (u, v) in lines.into_iter().filter(|(u, v)| u != v) {
        let ([a, b], [c, d]) = (at(places[u as usize]), at(places[v as usize]));
        let _ = write!(text, "M{a:.1} {b:.1}L{c:.1} {d:.1}");
    }
    text.push_str("\"/>\n<g stroke=\"#404040\" stroke-width=\"0.7\">\n");
    for (node, (place, colour)) in places.iter().zip(&paint.colours).enumerate() {
        let [x, y] = at(*place);
        let _ = writeln!(
            text,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" fill=\"{colour}\"><title>node {node}</title></circle>"
        );
    }
    text.push_str("</g>\n");
    write_foot(&mut text, paint, caption);
    text.push_str("</svg>\n");
    text
}

fn write_foot(text: &mut String, paint: &Paint, caption: &str) {
    let _ = writeln!(text, "<text x=\"{MARGIN}\" y=\"{}\">{}</text>", SIDE + 20.0, escaped(caption));
    let step = (SIDE - 2.0 * MARGIN) / paint.legend.len().clamp(4, MOST_SWATCHES) as f64;
    for (number, (colour, meaning)) in paint.legend.iter().enumerate() {
        let x = MARGIN + step * number as f64;
        let (box_y, text_y) = (SIDE + 34.0, SIDE + 45.0);
        let _ = writeln!(
            text,
            "<rect x=\"{x:.1}\" y=\"{box_y}\" width=\"12\" height=\"12\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"{text_y}\" font-size=\"11\">{}</text>",
            x + 16.0,
            escaped(meaning)
        );
    }
}

/// Text that no name can break out of.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builder::DatasetBuilder;
    use crate::catalogue::{OpenOptions, open};

    fn generated(name: &str) -> Dataset {
        open(name, &OpenOptions { graphs: Some(10), ..OpenOptions::default() }).expect("no files needed")
    }

    fn count(text: &str, part: &str) -> usize {
        text.matches(part).count()
    }

    #[test]
    fn every_node_and_every_edge_is_drawn_once() {
        let dataset = generated("necklaces");
        let svg = draw_svg(&dataset, 3).expect("ten graphs");
        assert_eq!(count(&svg, "<circle"), dataset.graph(3).node_count);
        assert_eq!(count(&svg, "L"), dataset.undirected_edges(3).len(), "one line an edge");
        assert!(svg.contains(&format!("class {}", dataset.labels()[3])));
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
        assert_eq!(svg, draw_svg(&dataset, 3).expect("ten graphs"), "the same picture every time");
    }

    #[test]
    fn nodes_have_the_colour_of_their_class_or_feature() {
        let svg = draw_svg(&generated("cluster"), 0).expect("ten graphs");
        assert!((0..6).all(|class| svg.contains(&format!("class {class}</text>"))), "six communities");
        let mut builder = DatasetBuilder::new("own", Task::GraphClassification, 1, 2);
        builder.push_undirected(3, &[(0, 1)], &[1.0, 0.0, 0.0, 1.0, 1.0, 0.0], &[0]);
        let svg = draw_svg(&builder.finish().expect("sound"), 0).expect("one graph");
        assert_eq!((count(&svg, PALETTE[0]), count(&svg, PALETTE[1])), (3, 2), "nodes and legend");
    }

    #[test]
    fn superpixels_keep_their_place_and_shade() {
        let mut builder = DatasetBuilder::new("mnist", Task::GraphClassification, 10, 3);
        let rows = [0.0, 0.1, 0.1, 1.0, 0.1, 0.9, 0.5, 0.9, 0.5];
        builder.push_directed(&[0, 1], &[1, 2], rows.into_iter(), &[4]);
        let svg = draw_svg(&builder.finish().expect("sound"), 0).expect("one graph");
        assert!(svg.contains("cx=\"40.0\" cy=\"40.0\" r=\"14.0\" fill=\"#000000\""), "{svg}");
        assert!(svg.contains("cx=\"760.0\" cy=\"40.0\" r=\"14.0\" fill=\"#FFFFFF\""), "{svg}");
        assert!(svg.contains("2 directed edges"));
    }

    #[test]
    fn names_cannot_break_the_picture_and_absent_graphs_are_refused() {
        let mut builder = DatasetBuilder::new("<script>&", Task::GraphClassification, 1, 1);
        builder.push_undirected(1, &[], &[1.0], &[0]);
        let dataset = builder.finish().expect("sound");
        let svg = draw_svg(&dataset, 0).expect("one graph");
        assert!(!svg.contains("<script>") && svg.contains("&lt;script&gt;&amp;"), "{svg}");
        let error = draw_svg(&dataset, 1).expect_err("one graph only").to_string();
        assert!(error.contains("its graphs are 0 to 0"), "{error}");
    }
}
