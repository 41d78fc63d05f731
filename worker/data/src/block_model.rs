//! What the two stochastic block models share: random community sizes, shuffled nodes, edges by a
//! probability per pair, one-hot tokens as features, and one partition of the graphs that comes with the
//! data. Which roles nodes play and which probabilities hold is decided by `pattern` and `cluster`.

use crate::builder::DatasetBuilder;
use crate::catalogue::OpenOptions;
use crate::dataset::{Dataset, Task};
use crate::error::Error;
use crate::splits::{Split, SplitRule};
use crate::streams::{Purpose, RandomStream};
use crate::synthetic::graph_count;

pub(crate) const SPLIT_RULE: SplitRule = SplitRule::Published { splits: 1 };

/// A graph whose nodes carry a token as feature and a class as label.
pub(crate) struct TokenGraph {
    pub(crate) edges: Vec<(u32, u32)>,
    pub(crate) tokens: Vec<u32>,
    pub(crate) classes: Vec<u32>,
}

/// The fixed facts of one block model.
pub(crate) struct BlockModel {
    pub(crate) name: &'static str,
    pub(crate) classes: u32,
    /// Number of different tokens.
    pub(crate) tokens: usize,
    /// Graphs in the training, validation and test part at full size.
    pub(crate) sizes: [usize; 3],
}

impl BlockModel {
    /// Generates the data set; `draw` gets the stream of a graph and its position within its part.
    pub(crate) fn generate(
        &self,
        options: &OpenOptions,
        draw: impl Fn(&mut RandomStream, usize) -> TokenGraph,
    ) -> Result<Dataset, Error> {
        options.refuse_features(self.name)?;
        let sizes = self.part_sizes(graph_count(self.name, options, self.sizes.iter().sum())?);
        let mut builder = DatasetBuilder::new(self.name, Task::NodeClassification, self.classes, self.tokens);
        let positions = sizes.iter().flat_map(|size| 0..*size);
        for (index, position) in positions.enumerate() {
            let mut stream =
                RandomStream::new(options.data_seed, 0, Purpose::Generate(self.name), 0, index as u64);
            let graph = draw(&mut stream, position);
            let mut rows = vec![0.0; graph.tokens.len() * self.tokens];
            for (row, token) in rows.chunks_exact_mut(self.tokens).zip(&graph.tokens) {
                row[*token as usize] = 1.0;
            }
            builder.push_undirected(graph.tokens.len(), &graph.edges, &rows, &graph.classes);
        }
        let split = consecutive_parts(sizes);
        let dataset = builder.split_by(SPLIT_RULE, vec![split]).finish();
        dataset.map_err(|source| Error::Structure { dataset: self.name.to_string(), source })
    }

    /// A smaller data set keeps the shares of the three parts; what rounding leaves is for training.
    fn part_sizes(&self, graphs: usize) -> [usize; 3] {
        let full: usize = self.sizes.iter().sum();
        let [validation, test] = [self.sizes[1], self.sizes[2]].map(|size| graphs * size / full);
        [graphs - validation - test, validation, test]
    }
}

/// A community size: uniform on 5 to 34.
pub(crate) fn community_size(stream: &mut RandomStream) -> usize {
    5 + stream.uniform_below(30) as usize
}

/// Every pair of nodes in ascending order, kept with the probability of its roles.
pub(crate) fn random_edges<R>(
    stream: &mut RandomStream,
    roles: &[R],
    probability: impl Fn(&R, &R) -> f64,
) -> Vec<(u32, u32)> {
    let mut edges = Vec::new();
    for (u, left) in roles.iter().enumerate() {
        for (v, right) in roles.iter().enumerate().skip(u + 1) {
            // One draw per pair, even where the probability is 0 or 1, so that draws stay aligned.
            if stream.uniform() < probability(left, right) {
                edges.push((u as u32, v as u32));
            }
        }
    }
    edges
}

fn consecutive_parts([train, validation, test]: [usize; 3]) -> Split {
    let (first, second) = (train as u32, (train + validation) as u32);
    let end = second + test as u32;
    Split {
        train: (0..first).collect(),
        validation: (first..second).collect(),
        test: (second..end).collect(),
    }
}
