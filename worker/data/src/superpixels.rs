//! One image as a graph of superpixels: mean intensity and centre of mass of each, and directed edges to the
//! eight most similar others. It owns that arithmetic and the parameters of the two published data sets;
//! files, splits and threads belong to `images`.

use crate::colour;
use crate::slic::{Raster, Superpixels, segment_at_most};

/// Edges that leave each node.
const NEIGHBOURS: usize = 8;
/// Row and column.
const POSITION: usize = 2;

/// How an image is cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recipe {
    /// Weight of distance in the image against distance in colour.
    pub(crate) compactness: f64,
    /// Segments asked for at first.
    pub(crate) wanted: usize,
    /// Segments that are accepted.
    pub(crate) most: usize,
}

/// A graph whose nodes are superpixels; rows of `channels + 2` features.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PixelGraph {
    pub(crate) features: Vec<f32>,
    pub(crate) sources: Vec<u32>,
    pub(crate) targets: Vec<u32>,
}

/// Makes the graph of an image given in planes of bytes, one a channel.
pub(crate) fn graph_of(planes: &[u8], height: usize, width: usize, recipe: Recipe) -> PixelGraph {
    let area = height * width;
    let segments = match planes.len() / area {
        3 => {
            let colour = |at: usize| colour::lab([planes[at], planes[area + at], planes[2 * area + at]]);
            cut(Raster { height, width, pixels: (0..area).map(colour).collect() }, recipe)
        }
        _ => {
            let grey = |byte: &u8| [f64::from(*byte) / 255.0];
            cut(Raster { height, width, pixels: planes[..area].iter().map(grey).collect() }, recipe)
        }
    };
    let features = features(planes, height, width, &segments);
    let (sources, targets) = nearest_neighbours(&features, segments.count);
    PixelGraph { features, sources, targets }
}

fn cut<const CHANNELS: usize>(image: Raster<CHANNELS>, recipe: Recipe) -> Superpixels {
    segment_at_most(&image, recipe.compactness, recipe.wanted, recipe.most)
}

/// Mean intensity of each channel in [0, 1], then row and column of the centre as shares of the height.
fn features(planes: &[u8], height: usize, width: usize, segments: &Superpixels) -> Vec<f32> {
    let area = height * width;
    let row_width = planes.len() / area + POSITION;
    let mut sums = vec![0.0f64; segments.count * row_width];
    let mut sizes = vec![0.0f64; segments.count];
    for (position, segment) in segments.of_pixel.iter().enumerate() {
        let segment = *segment as usize;
        sizes[segment] += 1.0;
        let sums = &mut sums[segment * row_width..(segment + 1) * row_width];
        let (colours, place) = sums.split_at_mut(row_width - POSITION);
        for (sum, plane) in colours.iter_mut().zip(planes.chunks_exact(area)) {
            *sum += f64::from(plane[position]) / 255.0;
        }
        place[0] += (position / width) as f64 / height as f64;
        place[1] += (position % width) as f64 / height as f64;
    }
    let rows = sums.chunks_exact(row_width).zip(sizes);
    rows.flat_map(|(row, size)| row.iter().map(move |sum| (sum / size) as f32)).collect()
}

/// Edges by source, then by target.
fn nearest_neighbours(features: &[f32], nodes: usize) -> (Vec<u32>, Vec<u32>) {
    let similarities = similarities(features, nodes);
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    let mut others: Vec<u32> = Vec::new();
    for (node, row) in similarities.chunks_exact(nodes).enumerate() {
        others.clear();
        others.extend((0..nodes as u32).filter(|other| *other as usize != node));
        let more_similar = |a: &u32, b: &u32| row[*b as usize].total_cmp(&row[*a as usize]).then(a.cmp(b));
        if others.len() > NEIGHBOURS {
            others.select_nth_unstable_by(NEIGHBOURS - 1, more_similar);
            others.truncate(NEIGHBOURS);
        }
        others.sort_unstable();
        sources.extend(std::iter::repeat_n(node as u32, others.len()));
        targets.extend_from_slice(&others);
    }
    (sources, targets)
}

/// The mean of both directions of exp(-(d_position / s)^2 - (d_colour / s)^2), where s is the scale of the
/// row's node.
fn similarities(features: &[f32], nodes: usize) -> Vec<f64> {
    let width = features.len() / nodes;
    let colours = distances(features, nodes, width, 0..width - POSITION);
    let places = distances(features, nodes, width, width - POSITION..width);
    let (colour_scales, place_scales) = (scales(&colours, nodes), scales(&places, nodes));
    let one_way = |from: usize, to: usize| {
        let place = places[from * nodes + to] / place_scales[from];
        let colour = colours[from * nodes + to] / colour_scales[from];
        libm::exp(-(place * place) - colour * colour)
    };
    let mut similarities = vec![0.0; nodes * nodes];
    for low in 0..nodes {
        for high in low + 1..nodes {
            let mean = 0.5 * (one_way(low, high) + one_way(high, low));
            similarities[low * nodes + high] = mean;
            similarities[high * nodes + low] = mean;
        }
    }
    similarities
}

fn distances(features: &[f32], nodes: usize, width: usize, columns: std::ops::Range<usize>) -> Vec<f64> {
    let row = |node: usize| &features[node * width..][columns.clone()];
    let mut distances = vec![0.0; nodes * nodes];
    for low in 0..nodes {
        for high in low + 1..nodes {
            let pairs = row(low).iter().zip(row(high)).map(|(a, b)| f64::from(*a) - f64::from(*b));
            let distance = pairs.map(|difference| difference * difference).sum::<f64>().sqrt();
            distances[low * nodes + high] = distance;
            distances[high * nodes + low] = distance;
        }
    }
    distances
}

/// The sum of each row's nine smallest distances, its own zero among them, divided by eight.
fn scales(distances: &[f64], nodes: usize) -> Vec<f64> {
    let scale = |row: &[f64]| {
        let mut sorted = row.to_vec();
        if sorted.len() > NEIGHBOURS {
            sorted.select_nth_unstable_by(NEIGHBOURS, f64::total_cmp);
            sorted.truncate(NEIGHBOURS + 1);
        }
        // One order of summation, so that the sum has the same bits everywhere.
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.iter().sum::<f64>() / NEIGHBOURS as f64 + 1e-8
    };
    distances.chunks_exact(nodes).map(scale).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPE: Recipe = Recipe { compactness: 0.25, wanted: 20, most: 16 };

    #[test]
    fn a_node_carries_mean_intensity_and_centre_of_its_pixels() {
        let segments = Superpixels { of_pixel: vec![0, 0, 1, 1, 0, 1], count: 2 };
        let rows = features(&[255, 0, 51, 51, 255, 0], 2, 3, &segments);
        let expected = [2.0 / 3.0, 1.0 / 6.0, 1.0 / 3.0, 0.4 / 3.0, 2.0 / 6.0, 2.0 / 3.0];
        for (found, expected) in rows.iter().zip(expected) {
            assert!((found - expected as f32).abs() < 1e-6, "{rows:?}");
        }
    }

    #[test]
    fn every_node_has_edges_to_eight_others_or_to_all_there_are() {
        let planes: Vec<u8> = (0..28 * 28).map(|position| (position / 28 * 9) as u8).collect();
        let graph = graph_of(&planes, 28, 28, RECIPE);
        let nodes = graph.features.len() / 3;
        assert!(nodes > 9 && nodes <= 16, "{nodes}");
        assert_eq!(graph.sources.len(), 8 * nodes);
        assert!(graph.sources.iter().zip(&graph.targets).all(|(source, target)| source != target));
        let few = graph_of(&[0, 0, 255, 255], 2, 2, Recipe { wanted: 4, ..RECIPE });
        let nodes = few.features.len() / 3;
        assert_eq!(few.sources.len(), nodes * (nodes - 1));
    }

    /// From numpy and scipy, in double precision:
    ///
    /// ```text
    /// f = array([[(n * 7 % 5) / 4, n / 12, (n * n % 7) / 12] for n in range(12)], float32).astype(float)
    /// scale = lambda d: sort(d, axis=1)[:, :9].sum(1, keepdims=True) / 8 + 1e-8
    /// c, d = cdist(f[:, 1:], f[:, 1:]), cdist(f[:, :1], f[:, :1])
    /// a = exp(-(c / scale(c))**2 - (d / scale(d))**2); a = (a + a.T) / 2; fill_diagonal(a, 0)
    /// ```
    const FIRST_ROW: [f64; 6] =
        [0.0, 0.064105092332, 0.000928674393, 0.228514644827, 0.002078532798, 0.130861447899];

    #[test]
    fn similarities_and_neighbours_are_those_of_the_formula() {
        let number = |value: u32, by: f32| value as f32 / by;
        let row = |n: u32| [number(n * 7 % 5, 4.0), number(n, 12.0), number(n * n % 7, 12.0)];
        let rows: Vec<f32> = (0..12).flat_map(row).collect();
        for (found, expected) in similarities(&rows, 12).iter().zip(FIRST_ROW) {
            assert!((found - expected).abs() < 1e-11, "{found} is not {expected}");
        }
        let (sources, targets) = nearest_neighbours(&rows, 12);
        assert_eq!((sources.len(), &sources[40..48]), (96, &[5; 8][..]));
        assert_eq!(targets[..8], [1, 2, 3, 4, 5, 6, 8, 10]);
        assert_eq!(targets[40..48], [0, 1, 3, 4, 6, 8, 10, 11]);
        assert_eq!(targets[88..], [1, 3, 4, 6, 7, 8, 9, 10]);
    }
}
