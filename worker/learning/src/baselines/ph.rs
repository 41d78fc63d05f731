//! Persistence of the degree filtration as features: a node enters with its degree, an edge with its later node; each
//! component and each cycle is a pair (birth, death), of which the persistence death - birth counts. What never dies
//! does so at [`ESSENTIAL_DEATH`], so that components and cycles are seen even where all degrees are equal.
//! The largest values of each dimension, padded with zeros, are the features; a Gaussian kernel compares them.

use togl_data::Dataset;
use togl_topology::{EdgeLists, IndexTables};

use super::gram::Gram;
use crate::error::Result;

/// When components and cycles die that never do, as published; later where a degree is larger.
pub const ESSENTIAL_DEATH: f32 = 100.0;
/// Values of each dimension, as published.
pub const VALUES: usize = 50;
/// Dimensions 0 and 1.
pub const FEATURES: usize = 2 * VALUES;

/// The features of one graph: dimension 0, then dimension 1, each from the largest value down.
pub type PersistenceFeatures = [f64; FEATURES];

/// The features of all graphs. Each undirected edge counts once.
pub fn features(dataset: &Dataset) -> Result<Vec<PersistenceFeatures>> {
    let degrees = degrees(dataset);
    let largest = degrees.iter().copied().fold(ESSENTIAL_DEATH, f32::max);
    let mut batch = EdgeLists::new();
    let mut values = Vec::with_capacity(degrees.len() + 2 * dataset.graph_count());
    for graph in 0..dataset.graph_count() {
        let nodes = dataset.node_range(graph);
        let after = nodes.len() as u32;
        let mut edges: Vec<[u32; 2]> = dataset.graph(graph).undirected_edges().map(|(u, w)| [u, w]).collect();
        // What never dies dies at the largest edge value; this edge apart from the graph makes that the wanted one.
        edges.push([after, after + 1]);
        batch.push(nodes.len() + 2, &edges)?;
        values.extend_from_slice(&degrees[nodes]);
        values.extend([largest, largest]);
    }
    let mut tables = IndexTables::default();
    tables.compute(&batch, &values, 1)?;
    Ok((0..dataset.graph_count()).map(|graph| of_graph(graph, &batch, &values, &tables)).collect())
}

fn of_graph(graph: usize, batch: &EdgeLists, values: &[f32], tables: &IndexTables) -> PersistenceFeatures {
    let lifetime = |birth: usize, death: i64| f64::from(values[death as usize] - values[birth]);
    let (nodes, edges) = (batch.node_offsets(), batch.edge_offsets());
    let vertices = nodes[graph]..nodes[graph + 1];
    let components = vertices.map(|vertex| lifetime(vertex, tables.vertex_death()[vertex])).collect();
    let closed = |edge: &usize| (tables.edge_birth()[*edge] as usize) < values.len();
    let cycles = (edges[graph]..edges[graph + 1]).filter(closed);
    let cycles =
        cycles.map(|edge| lifetime(tables.edge_birth()[edge] as usize, tables.edge_death()[edge])).collect();
    let mut features = [0.0; FEATURES];
    let (first, second) = features.split_at_mut(VALUES);
    fill(first, components);
    fill(second, cycles);
    features
}

/// The largest values first; what does not fit is left out.
fn fill(places: &mut [f64], mut values: Vec<f64>) {
    values.sort_unstable_by(|left, right| right.total_cmp(left));
    places.iter_mut().zip(values).for_each(|(place, value)| *place = value);
}

/// The degree of every node of the data set, in undirected edges.
fn degrees(dataset: &Dataset) -> Vec<f32> {
    let mut degrees = vec![0f32; dataset.node_count()];
    for graph in 0..dataset.graph_count() {
        let first = dataset.node_range(graph).start;
        for (source, target) in dataset.graph(graph).undirected_edges() {
            degrees[first + source as usize] += 1.0;
            degrees[first + target as usize] += 1.0;
        }
    }
    degrees
}

/// Gives every feature mean 0 and variance 1 over the graphs that are learned from; constant ones become 0.
pub fn standardise(features: &mut [PersistenceFeatures], learned: &[u32]) {
    let count = learned.len().max(1) as f64;
    for column in 0..FEATURES {
        let values = || learned.iter().map(|graph| features[*graph as usize][column]);
        let mean = values().sum::<f64>() / count;
        let variance = values().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count;
        let scale = if variance > 0.0 { 1.0 / variance.sqrt() } else { 0.0 };
        features.iter_mut().for_each(|row| row[column] = (row[column] - mean) * scale);
    }
}

/// exp(-|x - y|^2 / number of features).
pub fn gaussian(features: &[PersistenceFeatures]) -> Result<Gram> {
    Gram::from_fn(features.len(), |left, right| {
        let pairs = features[left].iter().zip(&features[right]);
        let squares: f64 = pairs.map(|(x, y)| (x - y) * (x - y)).sum();
        (-squares / FEATURES as f64).exp()
    })
}

#[cfg(test)]
#[path = "ph_tests.rs"]
mod tests;
