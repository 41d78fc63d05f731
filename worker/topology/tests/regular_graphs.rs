//! Published error counts on regular graphs: how many pairs of graphs have equal Betti numbers of their clique
//! complexes. Needs the shared graph files; without them the tests say so and pass.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like the tests themselves")]
#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use std::{collections::HashMap, path::Path};

use togl_topology::{Diagram, FlagComplex};

type Graph = (usize, Vec<[u32; 2]>);

/// One line of graph6 with fewer than 63 vertices: perhaps a header, a size byte, then the upper triangle by
/// columns, six bits a byte.
fn decode_graph6(line: &str) -> Graph {
    let bytes = line.trim_start_matches(">>graph6<<").as_bytes();
    let vertices = u32::from(bytes[0] - 63);
    let bit = |i: usize| (bytes[1 + i / 6] - 63) >> (5 - i % 6) & 1 == 1;
    let pairs = (1..vertices).flat_map(|w| (0..w).map(move |u| [u, w]));
    let edges = pairs.enumerate().filter(|&(i, _)| bit(i)).map(|(_, pair)| pair).collect();
    (vertices as usize, edges)
}

fn read(name: &str) -> Option<Vec<Graph>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/graph6").join(name);
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!("skipped: {} is not there", path.display());
        return None;
    };
    Some(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(decode_graph6).collect())
}

/// Pairs of graphs with the same vector.
fn equal_pairs<T: std::hash::Hash + Eq>(vectors: impl Iterator<Item = T>) -> usize {
    let mut counts: HashMap<T, usize> = HashMap::new();
    vectors.for_each(|vector| *counts.entry(vector).or_default() += 1);
    counts.values().map(|&n| n * (n - 1) / 2).sum()
}

/// Betti numbers without trailing zeros, so that complexes of different dimension compare by homology alone.
fn betti((vertices, edges): &Graph) -> Vec<usize> {
    let mut numbers = FlagComplex::full(*vertices, edges).unwrap().betti_numbers();
    numbers.truncate(numbers.iter().rposition(|&n| n > 0).map_or(0, |last| last + 1));
    numbers
}

fn check(files: [(&str, usize, usize); 3]) {
    for (name, graphs, errors) in files {
        let Some(found) = read(name) else { continue };
        assert_eq!(found.len(), graphs, "{name}");
        assert_eq!(equal_pairs(found.iter().map(betti)), errors, "{name}");
    }
}

#[test]
fn graph6_reads_a_path_of_five_vertices() {
    let path = (5, vec![[0, 2], [1, 3], [0, 4], [3, 4]]);
    assert_eq!(decode_graph6("DQc"), path);
    assert_eq!(decode_graph6(">>graph6<<DQc"), path);
}

#[test]
fn cubic_graphs_collide_as_often_as_published() {
    check([("reg3_n12.g6", 85, 712), ("reg3_n14.g6", 509, 26_745), ("reg3_n16.g6", 4060, 1_757_385)]);
}

#[test]
fn quartic_graphs_collide_as_often_as_published() {
    check([("reg4_n10.g6", 59, 229), ("reg4_n11.g6", 265, 4832), ("reg4_n12.g6", 1544, 170_814)]);
}

#[test]
fn strongly_regular_graphs_have_a_consistent_euler_characteristic() {
    for name in ["sr16622.g6", "sr251256.g6", "sr351668.g6"] {
        let Some(graphs) = read(name) else { continue };
        for (vertices, edges) in &graphs {
            let complex = FlagComplex::full(*vertices, edges).unwrap();
            let values: Vec<f64> = (0..*vertices).map(|v| (v * 17 % *vertices) as f64).collect();
            let diagrams = complex.persistence(&values).unwrap();
            let sign = |d: usize, n: usize| if d.is_multiple_of(2) { n as i64 } else { -(n as i64) };
            let counts: i64 = complex.simplex_counts().iter().enumerate().map(|(d, &n)| sign(d, n)).sum();
            let classes: i64 = diagrams.iter().enumerate().map(|(d, g)| sign(d, g.essential.len())).sum();
            assert_eq!(counts, classes);
            let paired: usize = diagrams.iter().map(|Diagram { pairs, .. }| pairs.len()).sum();
            let essential: usize = diagrams.iter().map(|Diagram { essential, .. }| essential.len()).sum();
            assert_eq!(2 * paired + essential, complex.simplex_counts().iter().sum::<usize>());
        }
    }
}
