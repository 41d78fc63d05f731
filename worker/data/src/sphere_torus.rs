//! The SphereTorus data: 50 points on the unit sphere (class 1) or on a torus with radii 2 and 1 (class
//! 0), each cloud turned into random position in the ambient space. The graph is complete with
//! self-loops, so only the coordinates, which are the features, tell the classes apart.

use crate::catalogue::OpenOptions;
use crate::dataset::Dataset;
use crate::error::Error;
use crate::streams::RandomStream;
use crate::synthetic::{Sketch, SketchFeatures, generate};

const POINTS: u32 = 50;
const TORUS_RADIUS: f64 = 2.0;
const TUBE_RADIUS: f64 = 1.0;
/// Of the ambient space.
const DIMENSION: usize = 3;

pub(crate) fn open(options: &OpenOptions) -> Result<Dataset, Error> {
    embedded(DIMENSION, options)
}

/// Points in a space of so many dimensions, at least three.
fn embedded(width: usize, options: &OpenOptions) -> Result<Dataset, Error> {
    generate("sphere-torus", options, |stream, sphere| {
        let frame = random_frame(stream, width);
        let mut rows = Vec::with_capacity(POINTS as usize * width);
        for _ in 0..POINTS {
            let point = if sphere { point_on_sphere(stream) } else { point_on_torus(stream) };
            rows.extend((0..width).map(|axis| embed(&frame, point, axis) as f32));
        }
        let edges = (0..POINTS).flat_map(|u| (u..POINTS).map(move |v| (u, v))).collect();
        Sketch { nodes: POINTS as usize, edges, features: SketchFeatures::Own { width, rows } }
    })
}

fn point_on_sphere(stream: &mut RandomStream) -> [f64; 3] {
    loop {
        let point: [f64; 3] = std::array::from_fn(|_| stream.standard_normal());
        let length = dot(&point, &point).sqrt();
        // A point this close to the centre has no reliable direction; it practically never happens.
        if length > 1e-6 {
            return point.map(|coordinate| coordinate / length);
        }
    }
}

fn point_on_torus(stream: &mut RandomStream) -> [f64; 3] {
    let around_tube = stream.uniform() * std::f64::consts::TAU;
    let around_axis = stream.uniform() * std::f64::consts::TAU;
    let ring = TORUS_RADIUS + TUBE_RADIUS * libm::cos(around_tube);
    [ring * libm::cos(around_axis), ring * libm::sin(around_axis), TUBE_RADIUS * libm::sin(around_tube)]
}

/// Three orthonormal vectors in random position: normal draws, made orthonormal one after the other.
fn random_frame(stream: &mut RandomStream, width: usize) -> [Vec<f64>; 3] {
    let mut frame: [Vec<f64>; 3] = Default::default();
    let mut found = 0;
    while found < 3 {
        let mut vector: Vec<f64> = (0..width).map(|_| stream.standard_normal()).collect();
        for earlier in &frame[..found] {
            let overlap = dot(&vector, earlier);
            vector.iter_mut().zip(earlier).for_each(|(value, other)| *value -= overlap * other);
        }
        let length = dot(&vector, &vector).sqrt();
        if length > 1e-6 {
            vector.iter_mut().for_each(|value| *value /= length);
            frame[found] = vector;
            found += 1;
        }
    }
    frame
}

fn embed(frame: &[Vec<f64>; 3], point: [f64; 3], axis: usize) -> f64 {
    point[0] * frame[0][axis] + point[1] * frame[1][axis] + point[2] * frame[2][axis]
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).fold(0.0, |sum, (a, b)| sum + a * b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::tests::{assert_common_shape, opened};

    #[test]
    fn graphs_are_complete_with_self_loops_listed_once() {
        let (dataset, _) = opened("sphere-torus");
        assert_eq!((dataset.graph_count(), dataset.node_count()), (1000, 50_000));
        for graph in dataset.graphs() {
            assert_eq!(graph.sources.len(), 2500);
            assert_eq!(graph.undirected_edges().count(), 1275);
            assert_eq!(graph.undirected_edges().filter(|(u, v)| u == v).count(), 50);
        }
        assert_common_shape(&dataset, 3);
    }

    #[test]
    fn points_lie_on_the_sphere_or_within_the_shell_of_the_torus_in_any_dimension() {
        let options = OpenOptions { graphs: Some(200), ..OpenOptions::default() };
        for dimension in [3, 7] {
            let dataset = embedded(dimension, &options).expect("opens");
            assert_eq!(dataset.feature_width(), dimension);
            for graph in dataset.graphs() {
                for point in graph.features.chunks(dimension) {
                    let radius = point.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
                    let (least, most) = if graph.labels == [1] { (1.0, 1.0) } else { (1.0, 3.0) };
                    assert!(radius > least - 1e-5 && radius < most + 1e-5, "radius {radius}");
                }
            }
        }
    }

    #[test]
    fn content_is_the_same_on_every_machine() {
        assert_eq!(opened("sphere-torus").1, "fef9c6cf14976bfd");
    }
}
