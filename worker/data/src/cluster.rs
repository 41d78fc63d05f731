//! The CLUSTER data: label every node of a stochastic block model with its community, given one marked
//! node per community. All other nodes carry the same token, so only the graph tells.

use crate::block_model::{BlockModel, TokenGraph, community_size, random_edges};
use crate::catalogue::OpenOptions;
use crate::dataset::Dataset;
use crate::error::Error;
use crate::streams::RandomStream;

const COMMUNITIES: u32 = 6;
const MODEL: BlockModel = BlockModel {
    name: "cluster",
    classes: COMMUNITIES,
    tokens: COMMUNITIES as usize + 1,
    sizes: [10_000, 1_000, 1_000],
};
const WITHIN_COMMUNITY: f64 = 0.55;
const ACROSS_COMMUNITIES: f64 = 0.25;

pub(crate) fn open(options: &OpenOptions) -> Result<Dataset, Error> {
    MODEL.generate(options, |stream, _| draw(stream))
}

fn draw(stream: &mut RandomStream) -> TokenGraph {
    let mut classes: Vec<u32> = Vec::new();
    for community in 0..COMMUNITIES {
        let size = community_size(stream);
        classes.extend(std::iter::repeat_n(community, size));
    }
    stream.shuffle(&mut classes);
    let tokens = mark_one_each(stream, &classes);
    let edges =
        random_edges(
            stream,
            &classes,
            |left, right| {
                if left == right { WITHIN_COMMUNITY } else { ACROSS_COMMUNITIES }
            },
        );
    TokenGraph { edges, tokens, classes }
}

/// Token 0, but for one node of each community, whose token is the community's number from 1.
fn mark_one_each(stream: &mut RandomStream, classes: &[u32]) -> Vec<u32> {
    let mut tokens = vec![0; classes.len()];
    for community in 0..COMMUNITIES {
        let members: Vec<usize> = (0..classes.len()).filter(|node| classes[*node] == community).collect();
        let chosen = members[stream.uniform_below(members.len() as u64) as usize];
        tokens[chosen] = community + 1;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::open;

    fn opened(graphs: usize) -> Dataset {
        open("CLUSTER", &OpenOptions { graphs: Some(graphs), ..OpenOptions::default() })
            .expect("no files needed")
    }

    #[test]
    fn densities_and_sizes_are_those_of_the_model() {
        let dataset = opened(600);
        assert_eq!((dataset.classes(), dataset.feature_width()), (6, 7));
        let mean_nodes = dataset.node_count() as f64 / 600.0;
        assert!((mean_nodes - 117.0).abs() < 4.0, "{mean_nodes} nodes");
        let [mut within, mut within_pairs, mut across, mut across_pairs] = [0usize; 4];
        for graph in dataset.graphs() {
            let same = graph
                .undirected_edges()
                .filter(|(u, v)| graph.labels[*u as usize] == graph.labels[*v as usize]);
            let same = same.count();
            let mut sizes = [0usize; 6];
            graph.labels.iter().for_each(|label| sizes[*label as usize] += 1);
            assert!(sizes.iter().all(|size| (5..35).contains(size)), "{sizes:?}");
            let own: usize = sizes.iter().map(|size| size * (size - 1) / 2).sum();
            within += same;
            within_pairs += own;
            across += graph.undirected_edges().count() - same;
            across_pairs += graph.node_count * (graph.node_count - 1) / 2 - own;
        }
        assert!((within as f64 / within_pairs as f64 - WITHIN_COMMUNITY).abs() < 0.01);
        assert!((across as f64 / across_pairs as f64 - ACROSS_COMMUNITIES).abs() < 0.01);
    }

    #[test]
    fn each_community_has_exactly_one_marked_node_that_tells_its_label() {
        for graph in opened(60).graphs() {
            let mut marked = Vec::new();
            for (row, label) in graph.features.chunks(7).zip(graph.labels) {
                assert_eq!(row.iter().sum::<f32>(), 1.0);
                if row[0] == 0.0 {
                    assert_eq!(row[*label as usize + 1], 1.0);
                    marked.push(*label);
                }
            }
            marked.sort_unstable();
            assert_eq!(marked, [0, 1, 2, 3, 4, 5]);
        }
    }

    #[test]
    fn parts_keep_their_shares() {
        let split = opened(120).split(0).expect("published with the data");
        assert_eq!([split.train.len(), split.validation.len(), split.test.len()], [100, 10, 10]);
    }

    #[test]
    fn content_is_the_same_on_every_machine() {
        assert_eq!(opened(120).digest().as_str()[..16], *"9560e93a825f6ed3");
    }
}
