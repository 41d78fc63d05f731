//! The NoCycles data: a path (class 1) against a cycle (class 0) on 10 to 19 vertices. One edge makes the
//! difference, and with it the first Betti number.

use crate::catalogue::OpenOptions;
use crate::dataset::Dataset;
use crate::error::Error;
use crate::synthetic::{Sketch, SketchFeatures, cycle, generate, path, ten_to_nineteen};

pub(crate) fn open(options: &OpenOptions) -> Result<Dataset, Error> {
    generate("no-cycles", options, |stream, is_path| {
        let nodes = ten_to_nineteen(stream);
        let edges = if is_path { path(0, nodes).collect() } else { cycle(0, nodes).collect() };
        Sketch { nodes: nodes as usize, edges, features: SketchFeatures::Normal }
    })
}

#[cfg(test)]
mod tests {
    use crate::synthetic::tests::{assert_common_shape, betti_numbers, degrees, opened};

    #[test]
    fn only_class_0_has_a_cycle_and_both_are_connected() {
        let (dataset, _) = opened("no-cycles");
        assert_common_shape(&dataset, 3);
        for graph in dataset.graphs() {
            let cycles = if graph.labels == [0] { 1 } else { 0 };
            assert_eq!(betti_numbers(&dataset, graph.index), (1, cycles));
            let leaves = degrees(&dataset, graph.index).iter().filter(|degree| **degree == 1).count();
            assert_eq!(leaves, 2 - 2 * cycles);
        }
    }

    #[test]
    fn content_is_the_same_on_every_machine() {
        assert_eq!(opened("no-cycles").1, "1c14748c7c7afccf");
    }
}
