//! Places for the nodes of a graph in a square, so that a picture shows its shape: edges pull, nodes push, and
//! all settle slowly. No randomness: the same graph gets the same places everywhere. Drawing is done elsewhere.

/// Steps of work that a layout may cost; large graphs get fewer rounds.
const PAIRS_IN_ALL: usize = 300_000_000;
const MOST_ROUNDS: usize = 400;
const FEWEST_ROUNDS: usize = 10;
/// Pull towards the middle, so that pieces without a connection stay in the picture.
const GRAVITY: f64 = 0.08;

/// A place in the square from 0 to 1.
pub(crate) type Place = [f64; 2];

/// Places by forces. Edges may be listed in one or both directions; self-loops do nothing.
pub(crate) fn by_forces(nodes: usize, edges: &[(u32, u32)]) -> Vec<Place> {
    let mut places = circle(nodes, edges);
    let rounds = (PAIRS_IN_ALL / (nodes * nodes).max(1)).clamp(FEWEST_ROUNDS, MOST_ROUNDS);
    // The distance that nodes keep if they share the square evenly.
    let spacing = 1.0 / (nodes as f64).sqrt();
    for round in 0..rounds {
        let longest_step = 0.1 * (1.0 - round as f64 / rounds as f64);
        let forces = forces(&places, edges, spacing);
        for (place, force) in places.iter_mut().zip(forces) {
            let length = norm(force).max(1e-12);
            let step = length.min(longest_step) / length;
            *place = [place[0] + force[0] * step, place[1] + force[1] * step];
        }
    }
    fitted(places)
}

/// Moves and scales places so that they fill the square.
pub(crate) fn fitted(mut places: Vec<Place>) -> Vec<Place> {
    let mut scale = 0.0;
    let mut middle = [0.5, 0.5];
    for axis in 0..2 {
        let least = places.iter().map(|place| place[axis]).fold(f64::INFINITY, f64::min);
        let most = places.iter().map(|place| place[axis]).fold(f64::NEG_INFINITY, f64::max);
        scale = f64::max(scale, most - least);
        middle[axis] = (least + most) / 2.0;
    }
    let scale = if scale > 0.0 && scale.is_finite() { 1.0 / scale } else { 0.0 };
    for place in &mut places {
        *place = [0.5 + (place[0] - middle[0]) * scale, 0.5 + (place[1] - middle[1]) * scale];
    }
    places
}

/// A circle on which nodes follow one another as a walk through the graph meets them: what hangs together
/// starts together, and a cycle starts untangled.
fn circle(nodes: usize, edges: &[(u32, u32)]) -> Vec<Place> {
    let mut neighbours = vec![Vec::new(); nodes];
    for (source, target) in edges {
        neighbours[*source as usize].push(*target as usize);
        neighbours[*target as usize].push(*source as usize);
    }
    let mut places = vec![None; nodes];
    let mut met = 0;
    let mut waiting: Vec<usize> = (0..nodes).rev().collect();
    while let Some(node) = waiting.pop() {
        if places[node].is_none() {
            let angle = std::f64::consts::TAU * f64::from(met) / nodes as f64;
            places[node] = Some([0.5 + 0.5 * libm::cos(angle), 0.5 + 0.5 * libm::sin(angle)]);
            met += 1;
            waiting.extend(neighbours[node].iter().rev());
        }
    }
    places.into_iter().flatten().collect()
}

fn forces(places: &[Place], edges: &[(u32, u32)], spacing: f64) -> Vec<Place> {
    let mut forces: Vec<Place> =
        places.iter().map(|place| [GRAVITY * (0.5 - place[0]), GRAVITY * (0.5 - place[1])]).collect();
    for low in 0..places.len() {
        for high in low + 1..places.len() {
            let apart = difference(places[low], places[high]);
            let squared = (apart[0] * apart[0] + apart[1] * apart[1]).max(1e-9);
            push(&mut forces, low, high, apart, spacing * spacing / squared);
        }
    }
    for (source, target) in edges.iter().filter(|(source, target)| source != target) {
        let (source, target) = (*source as usize, *target as usize);
        let apart = difference(places[source], places[target]);
        push(&mut forces, source, target, apart, -norm(apart) / spacing);
    }
    forces
}

fn push(forces: &mut [Place], one: usize, other: usize, apart: Place, strength: f64) {
    for axis in 0..2 {
        forces[one][axis] += apart[axis] * strength;
        forces[other][axis] -= apart[axis] * strength;
    }
}

fn difference(one: Place, other: Place) -> Place {
    [one[0] - other[0], one[1] - other[1]]
}

fn norm(vector: Place) -> f64 {
    (vector[0] * vector[0] + vector[1] * vector[1]).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_fill_the_square_and_no_two_nodes_share_one() {
        let path: Vec<(u32, u32)> = (0..19).map(|node| (node, node + 1)).collect();
        for (nodes, edges) in [(20, path.as_slice()), (20, &[]), (1, &[]), (2, &[(0, 1), (1, 1)])] {
            let places = by_forces(nodes, edges);
            assert!(places.iter().flatten().all(|value| (-1e-9..=1.0 + 1e-9).contains(value)), "{places:?}");
            for low in 0..nodes {
                for high in low + 1..nodes {
                    assert!(norm(difference(places[low], places[high])) > 0.01, "nodes {low} and {high}");
                }
            }
        }
    }

    #[test]
    fn neighbours_are_closer_than_strangers() {
        let cycle: Vec<(u32, u32)> = (0..16).map(|node| (node, (node + 1) % 16)).collect();
        let places = by_forces(16, &cycle);
        let distance = |one: usize, other: usize| norm(difference(places[one], places[other]));
        for node in 0..16 {
            assert!(distance(node, (node + 1) % 16) < distance(node, (node + 8) % 16), "node {node}");
        }
    }
}
