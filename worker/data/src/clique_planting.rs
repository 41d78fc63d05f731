//! The CliquePlanting data: a random graph on 100 vertices with edge probability one half (class 0), into
//! which class 1 has a clique on 17 random vertices planted. Edges are listed in ascending order, so the
//! list does not betray the clique.

use crate::catalogue::OpenOptions;
use crate::dataset::Dataset;
use crate::error::Error;
use crate::streams::RandomStream;
use crate::synthetic::{Sketch, SketchFeatures, generate};

const NODES: u32 = 100;
const CLIQUE: usize = 17;

pub(crate) fn open(options: &OpenOptions) -> Result<Dataset, Error> {
    generate("clique-planting", options, |stream, planted| Sketch {
        nodes: NODES as usize,
        edges: random_graph(stream, planted),
        features: SketchFeatures::Normal,
    })
}

fn random_graph(stream: &mut RandomStream, planted: bool) -> Vec<(u32, u32)> {
    let mut in_clique = [false; NODES as usize];
    if planted {
        for vertex in &stream.permutation(NODES)[..CLIQUE] {
            in_clique[*vertex as usize] = true;
        }
    }
    let pairs = (0..NODES).flat_map(|u| (u + 1..NODES).map(move |v| (u, v)));
    pairs
        // The coin is tossed for every pair, so that planting only adds edges.
        .filter(|(u, v)| stream.coin() || (in_clique[*u as usize] && in_clique[*v as usize]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::tests::opened;

    #[test]
    fn edge_density_is_one_half_plus_the_planted_clique() {
        let (dataset, _) = opened("clique-planting");
        assert_eq!(
            (dataset.graph_count(), dataset.node_count(), dataset.feature_width()),
            (1000, 100_000, 3)
        );
        let pairs = 4950.0;
        // Half of the 136 pairs of the clique would have been edges anyway.
        for (class, expected) in [(0, pairs / 2.0), (1, pairs / 2.0 + 68.0)] {
            let counts: Vec<f64> = dataset
                .graphs()
                .filter(|graph| graph.labels == [class])
                .map(|graph| graph.undirected_edges().count() as f64)
                .collect();
            let mean = counts.iter().sum::<f64>() / counts.len() as f64;
            assert!((mean - expected).abs() < 6.0, "class {class}: {mean} edges for {expected}");
        }
    }

    #[test]
    fn a_planted_graph_holds_a_clique_of_seventeen() {
        let mut stream = RandomStream::new(0, 0, crate::Purpose::Generate("test"), 0, 0);
        let members: Vec<u32> = stream.clone().permutation(NODES)[..CLIQUE].to_vec();
        let edges = random_graph(&mut stream, true);
        for (position, u) in members.iter().enumerate() {
            for v in &members[position + 1..] {
                assert!(edges.contains(&(*u.min(v), *u.max(v))));
            }
        }
        assert!(edges.is_sorted(), "the order of edges must not tell the clique");
    }

    #[test]
    fn content_is_the_same_on_every_machine() {
        assert_eq!(opened("clique-planting").1, "7799bcba60c80718");
    }
}
