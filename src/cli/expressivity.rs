//! `togl expressivity`: how well clique-complex persistence tells regular graphs apart, beside WL[1]. Reads graph6
//! files; groups equal vectors instead of comparing pairs.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::{Path, PathBuf};

use serde::Serialize;
use togl_data::SimpleGraph;
use togl_topology::FlagComplex;

use crate::output::{self, ListFormat, ListRow};
use crate::problem::Problem;

/// Count the pairs of graphs that persistence cannot tell apart
#[derive(Debug, clap::Args)]
pub struct Expressivity {
    /// Files in graph6 format
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Look at the complements of the graphs
    #[arg(long)]
    complement: bool,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: ListFormat,
}

/// One file.
#[derive(Debug, Serialize)]
struct Family {
    file: String,
    graphs: u64,
    pairs: u64,
    /// Pairs with equal Betti numbers of the full clique complex.
    betti_errors: u64,
    betti_error_rate: f64,
    /// Pairs with equal total persistence in every dimension under the degree filtration.
    persistence_errors: u64,
    persistence_error_rate: f64,
    /// Pairs that one-dimensional Weisfeiler-Lehman cannot tell apart.
    wl_errors: u64,
    wl_error_rate: f64,
}

impl ListRow for Family {
    const COLUMNS: &'static [&'static str] =
        &["FILE", "GRAPHS", "PAIRS", "BETTI", "RATE", "PERSISTENCE", "RATE", "WL[1]", "RATE"];

    fn cells(&self) -> Vec<String> {
        let rate = |rate: f64| format!("{rate:.4}");
        vec![
            self.file.clone(),
            self.graphs.to_string(),
            self.pairs.to_string(),
            self.betti_errors.to_string(),
            rate(self.betti_error_rate),
            self.persistence_errors.to_string(),
            rate(self.persistence_error_rate),
            self.wl_errors.to_string(),
            rate(self.wl_error_rate),
        ]
    }
}

impl Expressivity {
    pub(super) fn run(self) -> Result<(), Problem> {
        let families: Result<Vec<Family>, Problem> =
            self.files.iter().map(|file| family(file, self.complement)).collect();
        output::list(&families?, self.format)
    }
}

fn family(file: &Path, complement: bool) -> Result<Family, Problem> {
    let mut graphs = togl_data::read_graph6(file)?;
    if complement {
        graphs = graphs.iter().map(SimpleGraph::complement).collect();
    }
    let (mut betti, mut persistence, mut refined) = (Vec::new(), Vec::new(), Vec::new());
    for (position, graph) in graphs.iter().enumerate() {
        let (numbers, totals) = features(graph).map_err(|error| {
            Problem::usage(format!("{}, graph {}: {error}", file.display(), position + 1))
        })?;
        betti.push(numbers);
        persistence.push(totals);
        refined.push(weisfeiler_lehman(graph));
    }
    let count = graphs.len() as u64;
    let pairs = count * count.saturating_sub(1) / 2;
    let rate = |errors: u64| if pairs == 0 { 0.0 } else { errors as f64 / pairs as f64 };
    let [betti, persistence, wl] = [equal_pairs(betti), equal_pairs(persistence), equal_pairs(refined)];
    Ok(Family {
        file: file.display().to_string(),
        graphs: count,
        pairs,
        betti_errors: betti,
        betti_error_rate: rate(betti),
        persistence_errors: persistence,
        persistence_error_rate: rate(persistence),
        wl_errors: wl,
        wl_error_rate: rate(wl),
    })
}

/// Betti numbers of the full clique complex, and total persistence per dimension (as bits, for grouping) under the
/// degree filtration. Trailing zeros are dropped, so complexes of different dimension compare.
fn features(graph: &SimpleGraph) -> Result<(Vec<usize>, Vec<u64>), togl_topology::TopologyError> {
    let vertices = graph.nodes as usize;
    let edges: Vec<[u32; 2]> = graph.edges.iter().map(|&(u, w)| [u, w]).collect();
    let mut degrees = vec![0.0; vertices];
    for end in edges.iter().flatten() {
        degrees[*end as usize] += 1.0;
    }
    let complex = FlagComplex::full(vertices, &edges)?;
    let mut betti = complex.betti_numbers();
    while betti.last() == Some(&0) {
        betti.pop();
    }
    let mut totals: Vec<u64> =
        complex.persistence(&degrees)?.iter().map(|diagram| diagram.total_persistence().to_bits()).collect();
    while totals.last() == Some(&0) {
        totals.pop();
    }
    Ok((betti, totals))
}

/// The stable colouring's histogram: as many rounds as it takes for the number of colours to stop growing.
fn weisfeiler_lehman(graph: &SimpleGraph) -> Vec<u64> {
    let vertices = graph.nodes as usize;
    let mut neighbours = vec![Vec::new(); vertices];
    for &(u, w) in &graph.edges {
        neighbours[u as usize].push(w as usize);
        neighbours[w as usize].push(u as usize);
    }
    // A colour is a hash of its whole history, so colours of different graphs mean the same thing.
    let mut colours: Vec<u64> = neighbours.iter().map(|n| n.len() as u64).collect();
    for _ in 0..vertices {
        let next: Vec<u64> = (0..vertices)
            .map(|vertex| {
                let mut around: Vec<u64> = neighbours[vertex].iter().map(|&n| colours[n]).collect();
                around.sort_unstable();
                stable_hash(colours[vertex], &around)
            })
            .collect();
        let grew = distinct(&next) > distinct(&colours);
        colours = next;
        if !grew {
            break;
        }
    }
    colours.sort_unstable();
    colours
}

fn distinct(colours: &[u64]) -> usize {
    colours.iter().collect::<std::collections::BTreeSet<_>>().len()
}

fn stable_hash(own: u64, around: &[u64]) -> u64 {
    // FNV-1a over the words, mixed; collisions of 64 bits among a few thousand colours do not happen in practice.
    let mix = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(29);
    around.iter().fold(mix(0xcbf2_9ce4_8422_2325, own), |hash, word| mix(hash, *word))
}

/// Pairs of equal vectors, counted by groups.
fn equal_pairs<T: Hash + Eq>(vectors: Vec<T>) -> u64 {
    let mut groups: HashMap<T, u64> = HashMap::new();
    for vector in vectors {
        *groups.entry(vector).or_default() += 1;
    }
    groups.values().map(|size| size * (size - 1) / 2).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_vectors_are_counted_as_pairs() {
        assert_eq!(equal_pairs(vec![1, 1, 1, 2, 2, 3]), 3 + 1);
        assert_eq!(equal_pairs(Vec::<u8>::new()), 0);
    }
}
