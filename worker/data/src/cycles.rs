//! The Cycles data: one large cycle (class 0) against several small ones (class 1) on the same number of
//! vertices. Only connectivity tells the classes apart: every vertex has degree two.

use crate::catalogue::OpenOptions;
use crate::dataset::Dataset;
use crate::error::Error;
use crate::synthetic::{Sketch, SketchFeatures, cycle, generate, ten_to_nineteen};

/// Length of the small cycles; the last one takes what remains, at most twice this length less one.
const SMALL_CYCLE: u32 = 3;

pub(crate) fn open(options: &OpenOptions) -> Result<Dataset, Error> {
    generate("cycles", options, |stream, small| {
        let nodes = ten_to_nineteen(stream);
        let edges = if small { small_cycles(nodes) } else { cycle(0, nodes).collect() };
        Sketch { nodes: nodes as usize, edges, features: SketchFeatures::Normal }
    })
}

fn small_cycles(nodes: u32) -> Vec<(u32, u32)> {
    let count = (nodes - SMALL_CYCLE) / SMALL_CYCLE;
    let used = count * SMALL_CYCLE;
    (0..count)
        .flat_map(|position| cycle(position * SMALL_CYCLE, SMALL_CYCLE))
        .chain(cycle(used, nodes - used))
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::synthetic::tests::{assert_common_shape, betti_numbers, degrees, opened};

    #[test]
    fn both_classes_are_two_regular_on_ten_to_nineteen_vertices() {
        let (cycles, _) = opened("cycles");
        assert_common_shape(&cycles, 3);
        let mut sizes = std::collections::BTreeSet::new();
        for graph in cycles.graphs() {
            sizes.insert(graph.node_count);
            assert_eq!(graph.sources.len(), 2 * graph.node_count);
            assert!(degrees(&cycles, graph.index).iter().all(|degree| *degree == 2));
        }
        assert_eq!(sizes, (10..20).collect());
    }

    #[test]
    fn class_0_is_one_cycle_and_class_1_is_as_many_triangles_as_fit_before_the_last() {
        let (cycles, _) = opened("cycles");
        for graph in cycles.graphs() {
            let components = if graph.labels == [1] { (graph.node_count - 3) / 3 + 1 } else { 1 };
            assert_eq!(betti_numbers(&cycles, graph.index), (components, components));
        }
    }

    #[test]
    fn edges_of_seven_vertices_follow_the_written_order() {
        let expected = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 6), (6, 3)];
        assert_eq!(super::small_cycles(7), expected);
        assert_eq!(super::small_cycles(11).len(), 11);
    }

    #[test]
    fn content_is_the_same_on_every_machine() {
        assert_eq!(opened("cycles").1, "012aacfc2eb49328");
    }
}
