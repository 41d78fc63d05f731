//! One graph with a million edges: sizes and counts beyond what the small tests reach, in linear memory.

use togl_topology::{EdgeLists, IndexTables, RandomGraphs};

const VERTICES: usize = 200_000;
const EDGES: usize = 1_000_000;

#[test]
fn a_million_edges_keep_the_counting_laws() {
    let workload = RandomGraphs { vertices: VERTICES, edges: EDGES, filtrations: 1, graphs: 1, repeats: 1 };
    let (batch, random) = workload.random().unwrap();
    let coarse: Vec<f32> = random.iter().map(|value| (value * 100.0).round()).collect();
    for values in [random, coarse] {
        let mut tables = IndexTables::default();
        tables.compute(&batch, &values, 1).unwrap();
        let none = VERTICES as i64;
        let value = |index: i64| values[index as usize];
        let cycles: Vec<usize> = (0..EDGES).filter(|&e| tables.edge_birth()[e] != none).collect();
        // The graph is connected: it has a spanning tree by construction.
        assert_eq!(cycles.len(), EDGES - VERTICES + 1);
        let maximum = batch.edges(0).iter().flatten().map(|&v| value(v.into())).fold(f32::MIN, f32::max);
        for e in cycles {
            let [u, w] = batch.edges(0)[e];
            assert_eq!(value(tables.edge_birth()[e]), value(u.into()).max(value(w.into())));
            assert_eq!(value(tables.edge_death()[e]), maximum);
        }
        let minimum = values.iter().copied().fold(f32::MAX, f32::min);
        let mut longest = 0;
        for (vertex, &death) in tables.vertex_death().iter().enumerate() {
            assert!(value(death) >= values[vertex]);
            longest += usize::from(value(death) == maximum && values[vertex] == minimum);
        }
        assert!(longest >= 1);
    }
}

#[test]
fn a_chain_of_half_a_million_merges_is_followed_without_recursion() {
    // Valleys on even vertices, each deeper than the last, and passes between them, each higher than the last: every
    // pass hangs the component so far under the next valley. Then the peak asks for the root of vertex 0.
    let (passes, peak) = (EDGES / 2, EDGES as u32 + 1);
    let mut edges: Vec<[u32; 2]> = (0..EDGES as u32).map(|v| [v, v + 1]).collect();
    edges.extend([[0, peak], [EDGES as u32, peak]]);
    let height = |v: usize| if v.is_multiple_of(2) { -((v / 2) as f32) } else { (v / 2 + 1) as f32 };
    let mut values: Vec<f32> = (0..=EDGES).map(height).collect();
    values.push(1e9);
    let mut batch = EdgeLists::new();
    batch.push(values.len(), &edges).unwrap();
    let mut tables = IndexTables::default();
    tables.compute(&batch, &values, 1).unwrap();
    for pass in 0..passes {
        let at = 2 * pass as i64 + 1;
        assert_eq!(tables.vertex_death()[2 * pass..2 * pass + 2], [at, at]);
    }
    assert_eq!(tables.vertex_death()[EDGES..], [peak.into(), peak.into()]);
    let cycles: Vec<usize> = (0..edges.len()).filter(|&e| tables.edge_birth()[e] == peak.into()).collect();
    assert_eq!(cycles, [edges.len() - 1]);
}
