//! Laws of clique complexes on random graphs: agreement with a plain boundary-matrix reduction over an explicitly
//! sorted list of cliques, the Euler characteristic, and agreement with the batch routine in dimension 0.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like the tests themselves")]

use proptest::prelude::*;
use togl_topology::FlagComplex;

mod reference;
use reference::{components, computed, reduce_boundary};

type Graph = (Vec<f64>, Vec<[u32; 2]>);

/// Up to nine vertices with distinct values; every edge is there with probability 0.6.
fn graph() -> impl Strategy<Value = Graph> {
    (1_u32..=9).prop_flat_map(|vertices| {
        let pairs: Vec<[u32; 2]> =
            (0..vertices).flat_map(|u| (u + 1..vertices).map(move |w| [u, w])).collect();
        let kept = prop::collection::vec(prop::bool::weighted(0.6), pairs.len());
        let values = Just((0..vertices).map(|v| f64::from(v) * 0.5 - 1.0).collect::<Vec<_>>()).prop_shuffle();
        (values, kept).prop_map(move |(values, kept)| {
            (values, pairs.iter().zip(kept).filter(|(_, kept)| *kept).map(|(&pair, _)| pair).collect())
        })
    })
}

/// All cliques, found by looking at every subset of the vertices.
fn cliques(vertices: usize, edges: &[[u32; 2]]) -> Vec<Vec<u32>> {
    let members = |subset: u32| (0..vertices as u32).filter(move |v| subset >> v & 1 == 1);
    let is_clique =
        |subset: &u32| members(*subset).all(|u| members(*subset).all(|w| u >= w || edges.contains(&[u, w])));
    (1..1_u32 << vertices).filter(is_clique).map(|subset| members(subset).collect()).collect()
}

/// By dimension: sorted (birth, death) pairs and sorted births of essential classes.
fn brute_force(values: &[f64], edges: &[[u32; 2]]) -> Vec<(Vec<[f64; 2]>, Vec<f64>)> {
    let value = |simplex: &[u32]| simplex.iter().map(|&v| values[v as usize]).fold(f64::MIN, f64::max);
    let mut simplices = cliques(values.len(), edges);
    simplices.sort_by(|a, b| value(a).total_cmp(&value(b)).then(a.len().cmp(&b.len())).then(a.cmp(b)));
    let largest = simplices.iter().map(Vec::len).max().unwrap_or(0);
    let mut diagrams = vec![(vec![], vec![]); largest];
    let (pairs, unpaired) = reduce_boundary(&simplices);
    for (creator, destroyer) in pairs {
        let pair = [value(&simplices[creator]), value(&simplices[destroyer])];
        diagrams[simplices[creator].len() - 1].0.push(pair);
    }
    for simplex in unpaired {
        diagrams[simplices[simplex].len() - 1].1.push(value(&simplices[simplex]));
    }
    for (pairs, essential) in &mut diagrams {
        pairs.sort_by(|a, b| a.partial_cmp(b).unwrap());
        essential.sort_by(f64::total_cmp);
    }
    diagrams
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn diagrams_agree_with_boundary_reduction_in_every_dimension((values, edges) in graph()) {
        let complex = FlagComplex::full(values.len(), &edges).unwrap();
        let found = complex.persistence(&values).unwrap().into_iter().map(|mut diagram| {
            diagram.pairs.sort_by(|a, b| a.partial_cmp(b).unwrap());
            (diagram.pairs, diagram.essential)
        });
        prop_assert_eq!(found.collect::<Vec<_>>(), brute_force(&values, &edges));
    }

    #[test]
    fn betti_numbers_agree_with_boundary_reduction((values, edges) in graph()) {
        let complex = FlagComplex::full(values.len(), &edges).unwrap();
        let expected: Vec<usize> = brute_force(&values, &edges).iter().map(|d| d.1.len()).collect();
        prop_assert_eq!(complex.betti_numbers()[0], components(values.len(), &edges));
        prop_assert_eq!(complex.betti_numbers(), expected);
    }

    #[test]
    fn betti_numbers_do_not_depend_on_the_filtration((values, edges) in graph()) {
        let complex = FlagComplex::full(values.len(), &edges).unwrap();
        let essential: Vec<usize> =
            complex.persistence(&values).unwrap().iter().map(|d| d.essential.len()).collect();
        prop_assert_eq!(complex.betti_numbers(), essential);
    }

    #[test]
    fn simplices_and_betti_numbers_have_the_same_alternating_sum((values, edges) in graph()) {
        let complex = FlagComplex::full(values.len(), &edges).unwrap();
        let alternate = |numbers: Vec<usize>| -> i64 {
            numbers.iter().enumerate().map(|(d, &n)| if d % 2 == 0 { n as i64 } else { -(n as i64) }).sum()
        };
        prop_assert_eq!(alternate(complex.simplex_counts()), alternate(complex.betti_numbers()));
    }

    #[test]
    fn dimension_zero_agrees_with_the_batch_routine((values, edges) in graph()) {
        let complex = FlagComplex::up_to(values.len(), &edges, 0).unwrap();
        let single: Vec<f32> = values.iter().map(|&v| v as f32).collect();
        let (death, _) = computed(&single, &edges);
        let mut found = complex.persistence(&values).unwrap()[0].pairs.clone();
        found.retain(|[birth, death]| birth < death);
        found.sort_by(|a, b| a.partial_cmp(b).unwrap());
        // Essential classes are not pairs here; there they die at the maximum edge value.
        let essential = &complex.persistence(&values).unwrap()[0].essential;
        let lives = |v: &usize| !essential.contains(&values[*v]);
        let mut expected: Vec<[f64; 2]> =
            (0..values.len()).filter(lives).map(|v| [values[v], values[death[v]]]).collect();
        expected.retain(|[birth, death]| birth < death);
        expected.sort_by(|a, b| a.partial_cmp(b).unwrap());
        prop_assert_eq!(found, expected);
    }
}
