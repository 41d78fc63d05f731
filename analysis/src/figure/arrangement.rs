//! Where the vertices of a graph stand on paper: neighbours one step apart, others as far apart as their shortest path,
//! as well as a plane allows (stress majorisation). The same graph always gets the same picture. Draws nothing.

use std::collections::VecDeque;

/// Rounds of improvement; small graphs stop moving long before.
const ROUNDS: usize = 150;

/// A place for each of `vertices` vertices, in a unit square. Edges name vertices below `vertices`.
pub fn arranged(vertices: usize, edges: &[(usize, usize)]) -> Vec<(f64, f64)> {
    let distances = distances(vertices, edges);
    // A spiral: no two vertices share a place or a line, and nothing is left to chance.
    let mut places: Vec<(f64, f64)> = (0..vertices)
        .map(|at| {
            let (turn, radius) = (at as f64 * 2.399_963, (at as f64 + 0.5).sqrt());
            (radius * turn.cos(), radius * turn.sin())
        })
        .collect();
    for _ in 0..ROUNDS {
        for (vertex, wanted) in distances.iter().enumerate() {
            places[vertex] = better(vertex, &places, wanted);
        }
    }
    in_unit_square(&places)
}

/// The place that suits a vertex best while all others stay.
fn better(vertex: usize, places: &[(f64, f64)], distances: &[f64]) -> (f64, f64) {
    let here = places[vertex];
    let (mut sum, mut weights) = ((0.0, 0.0), 0.0);
    for (other, place) in places.iter().enumerate().filter(|(other, _)| *other != vertex) {
        let wanted = distances[other];
        let weight = 1.0 / (wanted * wanted);
        let (dx, dy) = (here.0 - place.0, here.1 - place.1);
        let length = dx.hypot(dy).max(1e-9);
        sum.0 += weight * (place.0 + wanted * dx / length);
        sum.1 += weight * (place.1 + wanted * dy / length);
        weights += weight;
    }
    if weights > 0.0 { (sum.0 / weights, sum.1 / weights) } else { here }
}

/// Lengths of shortest paths; parts that are not connected are kept a little further apart than anything that is.
fn distances(vertices: usize, edges: &[(usize, usize)]) -> Vec<Vec<f64>> {
    let mut neighbours = vec![Vec::new(); vertices];
    for (from, to) in edges {
        neighbours[*from].push(*to);
        neighbours[*to].push(*from);
    }
    let from = |start: usize| {
        let mut steps: Vec<Option<usize>> = vec![None; vertices];
        steps[start] = Some(0);
        let mut waiting = VecDeque::from([start]);
        while let Some(vertex) = waiting.pop_front() {
            let next = steps[vertex].map(|steps| steps + 1);
            for neighbour in &neighbours[vertex] {
                if steps[*neighbour].is_none() {
                    steps[*neighbour] = next;
                    waiting.push_back(*neighbour);
                }
            }
        }
        steps
    };
    let steps: Vec<Vec<Option<usize>>> = (0..vertices).map(from).collect();
    let longest = steps.iter().flatten().flatten().max().copied().unwrap_or_default();
    let apart = 0.6 * longest as f64 + 2.0;
    steps
        .into_iter()
        .map(|steps| steps.into_iter().map(|steps| steps.map_or(apart, |steps| steps as f64)).collect())
        .collect()
}

/// The same picture, as large as a unit square allows without being stretched.
fn in_unit_square(places: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let range = |of: fn(&(f64, f64)) -> f64| {
        let values = places.iter().map(of);
        values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)))
    };
    let (xs, ys) = (range(|place| place.0), range(|place| place.1));
    let size = (xs.1 - xs.0).max(ys.1 - ys.0).max(1e-9);
    let middle = ((xs.0 + xs.1) / 2.0, (ys.0 + ys.1) / 2.0);
    let scaled = |place: &(f64, f64)| ((place.0 - middle.0) / size + 0.5, (place.1 - middle.1) / size + 0.5);
    places.iter().map(scaled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_drawn_as_a_ring() {
        let edges: Vec<(usize, usize)> = (0..12).map(|at| (at, (at + 1) % 12)).collect();
        let places = arranged(12, &edges);
        let radius = |place: &(f64, f64)| (place.0 - 0.5).hypot(place.1 - 0.5);
        assert!(places.iter().all(|place| (radius(place) - 0.5).abs() < 0.03), "{places:?}");
        let next = |at: usize| {
            let (a, b) = (places[at], places[(at + 1) % 12]);
            (a.0 - b.0).hypot(a.1 - b.1)
        };
        assert!((1..12).all(|at| (next(at) - next(0)).abs() < 0.05));
    }

    #[test]
    fn single_vertices_and_separate_parts_have_places_of_their_own() {
        assert_eq!(arranged(0, &[]), []);
        assert_eq!(arranged(1, &[]), [(0.5, 0.5)]);
        let places = arranged(4, &[(0, 1), (2, 3)]);
        assert!(places.iter().all(|place| place.0.is_finite() && (-0.01..=1.01).contains(&place.1)));
        let gap = |a: usize, b: usize| (places[a].0 - places[b].0).hypot(places[a].1 - places[b].1);
        assert!(gap(0, 1) < gap(0, 2) && gap(2, 3) < gap(1, 3), "{places:?}");
    }
}
