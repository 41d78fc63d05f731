//! Laws of dimension 0 and 1 on random graphs: agreement with two independent ways to compute them, invariance
//! under relabelling and edge order, counting laws, and independence of batching and threads.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like the tests themselves")]

use proptest::prelude::*;
use togl_topology::{EdgeLists, IndexTables};

mod reference;
use reference::{by_the_book, components, computed, reduce_boundary};

type Graph = (Vec<f32>, Vec<[u32; 2]>);

/// Up to `largest` vertices; loops and duplicates happen; `values` draws one value a vertex.
fn graph(largest: usize, values: impl Strategy<Value = f32> + Clone) -> impl Strategy<Value = Graph> {
    (1..=largest).prop_flat_map(move |vertices| {
        let end = 0..vertices as u32;
        let edge = (end.clone(), end).prop_map(|(a, b)| [a.min(b), a.max(b)]);
        (prop::collection::vec(values.clone(), vertices), prop::collection::vec(edge, 0..3 * vertices))
    })
}

fn tied(largest: usize) -> impl Strategy<Value = Graph> {
    graph(largest, prop_oneof![Just(-0.0_f32), (-3_i8..4).prop_map(f32::from)])
}

/// Any finite values, made distinct by dropping to their rank order where they collide.
fn distinct(largest: usize) -> impl Strategy<Value = Graph> {
    graph(largest, -1e3_f32..1e3).prop_map(|(mut values, edges)| {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        for pair in order.windows(2) {
            values[pair[1]] = values[pair[1]].max(values[pair[0]].next_up());
        }
        (values, edges)
    })
}

/// Simple graph: no loops, no duplicates, so that it is a simplicial complex.
fn simple((values, mut edges): Graph) -> Graph {
    edges.retain(|[u, w]| u != w);
    let mut seen = std::collections::BTreeSet::new();
    edges.retain(|edge| seen.insert(*edge));
    (values, edges)
}

fn permutation(length: usize) -> impl Strategy<Value = Vec<usize>> {
    Just((0..length).collect::<Vec<_>>()).prop_shuffle()
}

/// Sorted (birth, death) values of the cycles.
fn cycle_values(values: &[f32], cycles: &[Option<(usize, usize)>]) -> Vec<(f32, f32)> {
    let mut pairs: Vec<_> = cycles.iter().flatten().map(|&(b, d)| (values[b], values[d])).collect();
    pairs.sort_by(|a, b| a.partial_cmp(b).unwrap());
    pairs
}

proptest! {
    #[test]
    fn tied_values_follow_the_specification_index_by_index((values, edges) in tied(140)) {
        prop_assert_eq!(computed(&values, &edges), by_the_book(&values, &edges));
    }

    #[test]
    fn distinct_values_follow_the_specification_index_by_index((values, edges) in distinct(140)) {
        prop_assert_eq!(computed(&values, &edges), by_the_book(&values, &edges));
    }

    #[test]
    fn distinct_values_agree_with_boundary_reduction((values, edges) in distinct(14).prop_map(simple)) {
        let upper = |&[u, w]: &[u32; 2]| if values[u as usize] < values[w as usize] { w } else { u } as usize;
        let Some(maximum) = edges.iter().map(upper).max_by(|&a, &b| values[a].total_cmp(&values[b])) else {
            return Ok(());
        };
        // Order: value, then dimension, then edge list; `edge` remembers where an edge came from.
        let mut order: Vec<(f32, Option<usize>, Vec<u32>)> =
            values.iter().enumerate().map(|(v, &f)| (f, None, vec![v as u32])).collect();
        order.extend(edges.iter().enumerate().map(|(e, edge)| (values[upper(edge)], Some(e), edge.to_vec())));
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let simplices: Vec<Vec<u32>> = order.iter().map(|simplex| simplex.2.clone()).collect();
        let (pairs, unpaired) = reduce_boundary(&simplices);

        let mut death = vec![maximum; values.len()];
        let mut cycles = vec![None; edges.len()];
        for (creator, destroyer) in pairs {
            let killer = order[destroyer].1.unwrap();
            death[simplices[creator][0] as usize] = upper(&edges[killer]);
        }
        for edge in unpaired.into_iter().filter_map(|position| order[position].1) {
            cycles[edge] = Some((upper(&edges[edge]), maximum));
        }
        prop_assert_eq!(computed(&values, &edges), (death, cycles));
    }

    #[test]
    fn cycle_edges_number_m_minus_n_plus_components((values, edges) in tied(60)) {
        let (_, cycles) = computed(&values, &edges);
        let expected = edges.len() + components(values.len(), &edges) - values.len();
        prop_assert_eq!(cycles.iter().flatten().count(), expected);
    }

    #[test]
    fn components_that_never_merge_number_the_components((values, edges) in distinct(60)) {
        let (death, _) = computed(&values, &edges);
        let Some(maximum) = death.iter().copied().max_by(|&a, &b| values[a].total_cmp(&values[b])) else {
            return Ok(());
        };
        // The vertex of maximum edge value may die at its own value as well, so this is a lower bound.
        let at_maximum = death.iter().filter(|&&d| d == maximum).count();
        prop_assert!(edges.is_empty() || at_maximum >= components(values.len(), &edges));
    }

    #[test]
    fn relabelling_and_reordering_do_not_change_distinct_diagrams(
        ((values, edges), label, order) in distinct(40).prop_flat_map(|(values, edges)| {
            let (n, m) = (values.len(), edges.len());
            (Just((values, edges)), permutation(n), permutation(m))
        })
    ) {
        let mut renamed_values = vec![0.0; values.len()];
        for (vertex, &name) in label.iter().enumerate() {
            renamed_values[name] = values[vertex];
        }
        let rename = |&e: &usize| {
            let [u, w] = edges[e].map(|v| label[v as usize] as u32);
            [u.min(w), u.max(w)]
        };
        let renamed_edges: Vec<[u32; 2]> = order.iter().map(rename).collect();
        let (death, cycles) = computed(&values, &edges);
        let (renamed_death, renamed_cycles) = computed(&renamed_values, &renamed_edges);
        for (vertex, &death) in death.iter().enumerate() {
            prop_assert_eq!(renamed_death[label[vertex]], label[death]);
        }
        let found = cycle_values(&renamed_values, &renamed_cycles);
        prop_assert_eq!(found, cycle_values(&values, &cycles));
    }

    #[test]
    fn a_graph_has_the_same_pairs_alone_and_in_a_batch(
        graphs in prop::collection::vec(tied(30), 0..6), filtrations in 1_usize..4
    ) {
        let mut batch = EdgeLists::new();
        for (values, edges) in &graphs {
            batch.push(values.len(), edges).unwrap();
        }
        // Row r of a graph's values is its own row shifted cyclically by r vertices.
        let row = |values: &[f32], r: usize| -> Vec<f32> {
            (0..values.len()).map(|v| values[(v + r) % values.len()]).collect()
        };
        let table: Vec<f32> =
            (0..filtrations).flat_map(|r| graphs.iter().flat_map(move |g| row(&g.0, r))).collect();
        let mut tables = IndexTables::default();
        tables.compute(&batch, &table, filtrations).unwrap();
        let none = batch.vertices() as i64;
        for (g, (values, edges)) in graphs.iter().enumerate() {
            let start = batch.node_offsets()[g];
            for r in 0..filtrations {
                let (death, cycles) = by_the_book(&row(values, r), edges);
                let at = r * batch.vertices() + start;
                let expected: Vec<i64> = death.iter().map(|&d| (d + start) as i64).collect();
                prop_assert_eq!(&tables.vertex_death()[at..at + values.len()], &expected[..]);
                let at = r * batch.edge_count() + batch.edge_offsets()[g];
                for (e, pair) in cycles.iter().enumerate() {
                    let (b, d) = pair.map_or((none, none), |(b, d)| ((b + start) as i64, (d + start) as i64));
                    prop_assert_eq!((tables.edge_birth()[at + e], tables.edge_death()[at + e]), (b, d));
                }
            }
        }
    }
}
