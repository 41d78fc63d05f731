//! Degree filtrations of small graphs, counted by hand.

use togl_data::{DatasetBuilder, Task};

use super::*;

/// The features of one graph that are not zero, of each dimension.
fn of(nodes: usize, edges: &[(u32, u32)]) -> (Vec<f64>, Vec<f64>) {
    let mut builder = DatasetBuilder::new("one", Task::GraphClassification, 1, 1);
    builder.push_undirected(1, &[], &[1.0], &[0]);
    builder.push_undirected(nodes, edges, &vec![1.0; nodes], &[0]);
    let features = features(&builder.finish().unwrap()).unwrap()[1];
    let there = |part: &[f64]| part.iter().copied().filter(|value| *value != 0.0).collect();
    (there(&features[..VALUES]), there(&features[VALUES..]))
}

#[test]
fn every_component_and_every_cycle_is_seen_where_all_degrees_are_equal() {
    let triangle = [(0, 1), (1, 2), (0, 2)];
    assert_eq!(of(3, &triangle), (vec![98.0], vec![98.0]));
    let two = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)];
    assert_eq!(of(6, &two), (vec![98.0, 98.0], vec![98.0, 98.0]), "each edge counts once");
}

#[test]
fn a_path_has_one_component_that_lives_for_ever_and_one_that_joins_it() {
    // Degrees 1, 2, 1: both ends are born at 1, the edges come at 2, where one end and the middle die.
    assert_eq!(of(3, &[(0, 1), (1, 2)]), (vec![99.0, 1.0], vec![]));
    assert_eq!(of(2, &[]), (vec![100.0, 100.0], vec![]), "nodes without edges");
}

#[test]
fn nothing_dies_before_it_is_born_where_degrees_are_large() {
    let star: Vec<(u32, u32)> = (1..=150).map(|leaf| (0, leaf)).collect();
    let (components, cycles) = of(151, &star);
    assert_eq!(components.len(), VALUES, "what does not fit is left out");
    assert!(components.iter().all(|value| *value == 149.0), "{components:?}");
    assert!(cycles.is_empty());
}

#[test]
fn features_are_scaled_by_what_is_learned_from() {
    let mut rows = vec![[0.0; FEATURES]; 3];
    (rows[0][0], rows[1][0], rows[2][0]) = (1.0, 3.0, 5.0);
    rows.iter_mut().for_each(|row| row[1] = 7.0);
    standardise(&mut rows, &[0, 1]);
    assert_eq!([rows[0][0], rows[1][0], rows[2][0]], [-1.0, 1.0, 3.0]);
    assert_eq!(rows[2][1], 0.0, "a constant says nothing");
}
