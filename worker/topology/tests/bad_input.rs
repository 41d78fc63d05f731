//! Bad input is named, never a panic and never a wrong diagram; and what the published routine leaves undefined
//! (graphs without edges, empty batches) has defined results.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like the tests themselves")]

use togl_topology::{EdgeLists, IndexTables, Indices, TopologyError, persist};

fn two_graphs() -> EdgeLists {
    let mut batch = EdgeLists::new();
    batch.push(2, &[[0, 1]]).unwrap();
    batch.push(3, &[[0, 2], [1, 2]]).unwrap();
    batch
}

fn compute(batch: &EdgeLists, values: &[f32], filtrations: usize) -> Result<IndexTables, TopologyError> {
    let mut tables = IndexTables::default();
    tables.compute(batch, values, filtrations)?;
    Ok(tables)
}

#[test]
fn a_value_that_is_not_finite_is_named_by_graph_vertex_and_filtration() {
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut values = [0.5_f32; 10];
        values[5 + 3] = bad;
        let error = compute(&two_graphs(), &values, 2).unwrap_err();
        let TopologyError::NotFinite { graph: 1, vertex: 1, filtration: 1, value } = error else {
            panic!("{error:?}");
        };
        assert_eq!(value.to_bits(), f64::from(bad).to_bits());
    }
    let text = compute(&two_graphs(), &[f32::INFINITY; 5], 1).unwrap_err().to_string();
    assert_eq!(text, "filtration 0: value of vertex 0 of graph 0 is inf, not a finite number");
}

#[test]
fn a_bad_value_after_empty_graphs_is_named_in_its_own_graph() {
    let mut batch = EdgeLists::new();
    for vertices in [0, 1, 0, 0, 1] {
        batch.push(vertices, &[]).unwrap();
    }
    let error = compute(&batch, &[0.0, f32::NAN], 1).unwrap_err();
    assert!(
        matches!(error, TopologyError::NotFinite { graph: 4, vertex: 0, filtration: 0, .. }),
        "{error:?}"
    );
}

#[test]
fn a_refused_call_leaves_the_callers_memory_alone() {
    let batch = two_graphs();
    let (mut death, mut birth1, mut death1) = ([7; 5], [7; 3], [7; 3]);
    let out = Indices { vertex_death: &mut death, edge_birth: &mut birth1, edge_death: &mut death1 };
    assert!(persist(&batch, &[0.0, 0.0, 0.0, 0.0, f32::NAN], 1, out).is_err());
    assert_eq!((death, birth1, death1), ([7; 5], [7; 3], [7; 3]));
}

#[test]
fn slices_of_the_wrong_length_are_named() {
    let batch = two_graphs();
    let length = |values: usize, vertices: usize, births: usize, deaths: usize| {
        let values = vec![0.0; values];
        let (mut death, mut birth1, mut death1) = (vec![0; vertices], vec![0; births], vec![0; deaths]);
        let out = Indices { vertex_death: &mut death, edge_birth: &mut birth1, edge_death: &mut death1 };
        match persist(&batch, &values, 2, out) {
            Err(TopologyError::Length { what, expected, actual }) => (what, expected, actual),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(length(9, 10, 6, 6), ("values", 10, 9));
    assert_eq!(length(10, 11, 6, 6), ("vertex_death", 10, 11));
    assert_eq!(length(10, 10, 5, 6), ("edge_birth", 6, 5));
    assert_eq!(length(10, 10, 6, 0), ("edge_death", 6, 0));
    assert!(compute(&batch, &[], usize::MAX).is_err());
}

#[test]
fn an_edge_out_of_range_or_reversed_is_refused_and_the_batch_stays_as_it_was() {
    let mut batch = two_graphs();
    let before = batch.clone();
    let error = batch.push(2, &[[0, 1], [1, 2]]).unwrap_err();
    assert_eq!(error, TopologyError::VertexOutOfRange { graph: 2, edge: 1, vertex: 2, vertices: 2 });
    let error = batch.push(2, &[[1, 0]]).unwrap_err();
    assert_eq!(error, TopologyError::EdgeReversed { graph: 2, edge: 0, first: 1, second: 0 });
    assert_eq!(batch, before);
}

#[test]
fn a_graph_that_32_bits_cannot_number_is_refused() {
    let error = EdgeLists::new().push(usize::MAX, &[]).unwrap_err();
    assert_eq!(error, TopologyError::GraphTooLarge { graph: 0 });
}

#[test]
fn edges_are_graph_local_and_known_in_the_whole_batch() {
    let mut batch = EdgeLists::new();
    for (vertices, edges) in [(2, &[[0, 1]][..]), (0, &[]), (3, &[[0, 2], [1, 2]])] {
        batch.push(vertices, edges).unwrap();
    }
    assert_eq!(batch.edges(0), [[0, 1]]);
    assert_eq!(batch.edges(1), [[0_u32; 2]; 0]);
    assert_eq!(batch.edges(2), [[0, 2], [1, 2]]);
    assert_eq!(batch.edges(3), [[0_u32; 2]; 0]);
    assert_eq!(batch.global_edges().collect::<Vec<_>>(), [[0, 1], [2, 4], [3, 4]]);
}

#[test]
fn a_graph_without_edges_has_zero_persistence_whatever_came_before_it() {
    let mut batch = EdgeLists::new();
    batch.push(2, &[[0, 1]]).unwrap();
    batch.push(2, &[]).unwrap();
    let tables = compute(&batch, &[1.0, 2.0, 7.0, -7.0], 1).unwrap();
    assert_eq!(tables.vertex_death(), [1, 1, 2, 3]);
    assert_eq!((tables.edge_birth(), tables.edge_death()), (&[4][..], &[4][..]));
}

#[test]
fn empty_batches_empty_graphs_and_no_filtrations_give_empty_results() {
    assert_eq!(compute(&EdgeLists::new(), &[], 3), Ok(IndexTables::default()));
    assert_eq!(compute(&two_graphs(), &[], 0), Ok(IndexTables::default()));
    let mut batch = EdgeLists::new();
    batch.push(0, &[]).unwrap();
    assert_eq!(compute(&batch, &[], 2), Ok(IndexTables::default()));
    assert_eq!(compute(&batch, &[], usize::MAX), Ok(IndexTables::default()));
    batch.clear();
    assert_eq!(batch, EdgeLists::default());
}

#[test]
fn isolated_vertices_die_at_the_maximum_edge_value_of_their_own_graph() {
    let mut batch = EdgeLists::new();
    batch.push(3, &[[0, 1]]).unwrap();
    batch.push(3, &[[1, 2]]).unwrap();
    let tables = compute(&batch, &[1.0, 2.0, 9.0, -5.0, 3.0, 4.0], 1).unwrap();
    assert_eq!(tables.vertex_death(), [1, 1, 1, 5, 5, 5]);
}
