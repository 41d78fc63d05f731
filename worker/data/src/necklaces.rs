//! The Necklaces data: a chain of beads with either two triangles (class 1) or one pair of parallel threads
//! (class 0). Both classes are connected, have equally many vertices and edges, and two independent cycles.

use crate::catalogue::OpenOptions;
use crate::dataset::Dataset;
use crate::error::Error;
use crate::synthetic::{Sketch, SketchFeatures, generate, path, ten_to_nineteen};

pub(crate) fn open(options: &OpenOptions) -> Result<Dataset, Error> {
    generate("necklaces", options, |stream, triangles| {
        let nodes = ten_to_nineteen(stream);
        Sketch { nodes: nodes as usize, edges: necklace(nodes, triangles), features: SketchFeatures::Normal }
    })
}

/// The chain, the two extra edges, then the four connections at `a` and `b`.
fn necklace(nodes: u32, triangles: bool) -> Vec<(u32, u32)> {
    let chain = nodes - 4;
    let (a, b) = (chain / 3, 2 * chain / 3);
    let [p1, p2, q1, q2] = [chain, chain + 1, chain + 2, chain + 3];
    let connections =
        if triangles { [(a, p1), (a, p2), (b, q1), (b, q2)] } else { [(a, p1), (a, q1), (b, p2), (b, q2)] };
    path(0, chain).chain([(p1, p2), (q1, q2)]).chain(connections).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use crate::synthetic::tests::{assert_common_shape, betti_numbers, degrees, opened};

    #[test]
    fn both_classes_are_connected_with_two_cycles_and_the_same_degrees() {
        let (necklaces, _) = opened("necklaces");
        assert_common_shape(&necklaces, 3);
        for graph in necklaces.graphs() {
            assert!((10..20).contains(&graph.node_count));
            assert_eq!(graph.sources.len(), 2 * (graph.node_count + 1));
            assert_eq!(betti_numbers(&necklaces, graph.index), (1, 2));
            let mut degrees = degrees(&necklaces, graph.index);
            degrees.sort_unstable();
            assert_eq!(degrees[..2], [1, 1]);
            assert_eq!(degrees[graph.node_count - 2..], [4, 4]);
            assert!(degrees[2..graph.node_count - 2].iter().all(|degree| *degree == 2));
        }
    }

    #[test]
    fn only_class_1_has_triangles() {
        let (necklaces, _) = opened("necklaces");
        for graph in necklaces.graphs() {
            let edges: HashSet<(u32, u32)> = graph.directed_edges().collect();
            let closes = |(u, v): &(u32, u32)| {
                (0..graph.node_count as u32)
                    .filter(|w| edges.contains(&(*v, *w)) && edges.contains(&(*w, *u)))
                    .count()
            };
            // Each triangle is seen from each of its six directed edges.
            let triangles = edges.iter().map(closes).sum::<usize>() / 6;
            assert_eq!(triangles, 2 * graph.labels[0] as usize);
        }
    }

    #[test]
    fn edges_of_ten_vertices_follow_the_written_order() {
        let common = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (6, 7), (8, 9)];
        let triangles = super::necklace(10, true);
        assert_eq!(triangles[..7], common);
        assert_eq!(triangles[7..], [(2, 6), (2, 7), (4, 8), (4, 9)]);
        let detours = super::necklace(10, false);
        assert_eq!(detours[..7], common);
        assert_eq!(detours[7..], [(2, 6), (2, 8), (4, 7), (4, 9)]);
    }

    #[test]
    fn content_is_the_same_on_every_machine() {
        assert_eq!(opened("necklaces").1, "de0f57472b128f28");
    }
}
