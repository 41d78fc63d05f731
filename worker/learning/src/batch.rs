//! Collates graphs of a data set into the tensors of one mini-batch: features, labels, the sparse matrices that the
//! network's layers multiply with, and the edge lists of persistence. Only what a trial needs is built.
//! Must not know layers; the matrices are named for what they do.

use tch::{Device, Kind, Tensor};
use togl_data::{Dataset, STRUCTURE_ONLY_WIDTH, Stage, fill_structure_only};
use togl_sweeps::trial::{Backbone, Features, TrialConfig};

use crate::error::Result;
use crate::metrics::row_weights;
use crate::sparse::{HostRows, Segments, SparseMatrix, rows_of};

/// Which parts of a batch a trial's network looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchNeeds {
    /// Neighbours weighted by degrees (`gcn`).
    pub normalised: bool,
    /// Plain sums over neighbours (`gin`, `gfl`).
    pub neighbours: bool,
    /// Single arcs (`gatedgcn`).
    pub arcs: bool,
    /// Single arcs with exactly one self-loop a node (`gat`).
    pub looped_arcs: bool,
    /// Edge lists for persistence (TOGL, `gfl`, `perslay`).
    pub topology: bool,
    /// Random features instead of the data set's own.
    pub random_features: bool,
}

impl BatchNeeds {
    /// What the network of this trial looks at.
    pub fn of(trial: &TrialConfig) -> Self {
        let layers = trial.graph_layers() > 0;
        Self {
            normalised: layers && trial.model == Backbone::Gcn,
            neighbours: layers && matches!(trial.model, Backbone::Gin | Backbone::Gfl),
            arcs: layers && trial.model == Backbone::GatedGcn,
            looped_arcs: layers && trial.model == Backbone::Gat,
            topology: trial.togl || trial.model.reads_diagrams(),
            random_features: trial.features == Features::Random,
        }
    }

    /// Features a node has under these needs.
    pub fn feature_width(&self, dataset: &Dataset) -> usize {
        if self.random_features { STRUCTURE_ONLY_WIDTH } else { dataset.feature_width() }
    }
}

/// Directed edges, ordered by target.
#[derive(Debug)]
pub struct Arcs {
    /// Rows of a node matrix at the arcs' sources.
    pub sources: SparseMatrix,
    /// The incoming arcs of each node.
    pub targets: Segments,
}

/// One mini-batch.
#[derive(Debug)]
pub struct Batch {
    /// Positions of the graphs in the data set.
    pub graph_ids: Vec<u32>,
    /// `[N, features]`.
    pub features: Tensor,
    /// Classes, one a graph or one a node.
    pub labels: Tensor,
    /// The same on the host.
    pub host_labels: Vec<u32>,
    /// The nodes of each graph.
    pub graphs: Segments,
    /// D^-1/2 A D^-1/2 without self-loops, D the in-degrees.
    pub normalised: Option<SparseMatrix>,
    /// A: row i sums over the sources of i's incoming arcs.
    pub neighbours: Option<SparseMatrix>,
    /// Arcs as they are, or with self-loops, as the network needs them.
    pub arcs: Option<Arcs>,
    /// Undirected edges in list order.
    pub topology: Option<togl_topology::EdgeLists>,
    /// One 0, to which pairs that do not exist point.
    pub zero: Tensor,
    /// The gradient of the scores' logarithms: minus the weight of every row at its class; on devices only.
    pub pull: Option<Tensor>,
}

impl Batch {
    /// Number of nodes.
    pub fn nodes(&self) -> i64 {
        self.graphs.offsets().last().copied().unwrap_or(0) as i64
    }
}

/// The coordinates of a batch's random draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrawKey {
    /// Training seed.
    pub seed: u64,
    /// Split of the data.
    pub split: u64,
    /// Which part of the split.
    pub stage: Stage,
    /// Epoch, from 0.
    pub epoch: u64,
    /// Batch within the epoch, from 0.
    pub step: u64,
}

/// Makes batches of one data set for one kind of network.
#[derive(Debug, Clone, Copy)]
pub struct Collator<'a> {
    dataset: &'a Dataset,
    needs: BatchNeeds,
    device: Device,
    kind: Kind,
}

impl<'a> Collator<'a> {
    /// A collator whose batches live on `device`.
    pub fn new(dataset: &'a Dataset, needs: BatchNeeds, device: Device) -> Self {
        Self { dataset, needs, device, kind: Kind::Float }
    }

    /// The same with features in another precision.
    pub fn with_kind(self, kind: Kind) -> Self {
        Self { kind, ..self }
    }

    /// The data set that batches are made of.
    pub fn dataset(&self) -> &'a Dataset {
        self.dataset
    }

    /// Puts these graphs together, in this order.
    pub fn collate(&self, graph_ids: &[u32], draws: DrawKey) -> Result<Batch> {
        let offsets = self.offsets(graph_ids);
        let nodes = offsets.last().copied().unwrap_or(0);
        let links = self.links(graph_ids, &offsets);
        let labels = graph_ids.iter().flat_map(|id| self.dataset.graph(*id as usize).labels.iter().copied());
        let host_labels: Vec<u32> = labels.collect();
        let classes: Vec<i64> = host_labels.iter().map(|label| i64::from(*label)).collect();
        let needs = self.needs;
        let by_target = links.needed(&needs).then(|| links.by_target(nodes));
        let arcs = match (&by_target, needs.looped_arcs, needs.arcs) {
            (Some(rows), true, _) => Some(self.arcs(&with_self_loops(rows), nodes)?),
            (Some(rows), _, true) => Some(self.arcs(rows, nodes)?),
            _ => None,
        };
        Ok(Batch {
            features: self.features(graph_ids, draws),
            labels: Tensor::from_slice(&classes).to_device(self.device),
            normalised: by_target
                .as_ref()
                .filter(|_| needs.normalised)
                .map(|rows| self.normalised(rows, nodes))
                .transpose()?,
            neighbours: by_target
                .as_ref()
                .filter(|_| needs.neighbours)
                .map(|rows| SparseMatrix::new(rows, &rows.transposed(nodes), self.device))
                .transpose()?,
            arcs,
            topology: if needs.topology { Some(self.topology(graph_ids)?) } else { None },
            graphs: Segments::new(offsets, self.device)?,
            graph_ids: graph_ids.to_vec(),
            zero: Tensor::from_slice(&[0f32]).to_kind(self.kind).to_device(self.device),
            pull: (self.device != Device::Cpu).then(|| self.pull(&host_labels)),
            host_labels,
        })
    }

    fn pull(&self, labels: &[u32]) -> Tensor {
        let classes = self.dataset.classes() as usize;
        let mut rows = vec![0f32; labels.len() * classes];
        let weights = row_weights(self.dataset.task(), self.dataset.classes(), labels);
        for (index, (label, weight)) in labels.iter().zip(weights).enumerate() {
            rows[index * classes + *label as usize] = -weight;
        }
        Tensor::from_slice(&rows).view([-1, classes as i64]).to_device(self.device)
    }

    /// Replaces the features of a batch by those of another epoch; nothing to do for the data set's own.
    pub fn refresh(&self, batch: &mut Batch, draws: DrawKey) {
        if self.needs.random_features {
            batch.features = self.features(&batch.graph_ids, draws);
        }
    }

    fn offsets(&self, graph_ids: &[u32]) -> Vec<usize> {
        let mut offsets = Vec::with_capacity(graph_ids.len() + 1);
        offsets.push(0);
        let mut nodes = 0;
        for id in graph_ids {
            nodes += self.dataset.node_range(*id as usize).len();
            offsets.push(nodes);
        }
        offsets
    }

    fn features(&self, graph_ids: &[u32], draws: DrawKey) -> Tensor {
        let width = self.needs.feature_width(self.dataset);
        let mut rows = Vec::new();
        for id in graph_ids {
            let graph = self.dataset.graph(*id as usize);
            if self.needs.random_features {
                let start = rows.len();
                rows.resize(start + graph.node_count * width, 0.0);
                let DrawKey { seed, split, stage, epoch, .. } = draws;
                fill_structure_only(seed, split, stage, epoch, u64::from(*id), &mut rows[start..]);
            } else {
                rows.extend_from_slice(graph.features);
            }
        }
        Tensor::from_slice(&rows).view([-1, width as i64]).to_kind(self.kind).to_device(self.device)
    }

    fn links(&self, graph_ids: &[u32], offsets: &[usize]) -> Links {
        let mut links = Links { sources: Vec::new(), targets: Vec::new() };
        for (id, offset) in graph_ids.iter().zip(offsets) {
            let graph = self.dataset.graph(*id as usize);
            let place = |node: &u32| *offset as i64 + i64::from(*node);
            links.sources.extend(graph.sources.iter().map(place));
            links.targets.extend(graph.targets.iter().map(place));
        }
        links
    }

    fn normalised(&self, rows: &HostRows, nodes: usize) -> Result<SparseMatrix> {
        let inverse_root = |degree: i64| if degree == 0 { 0.0 } else { 1.0 / (degree as f32).sqrt() };
        let factor: Vec<f32> = rows.row_lengths().map(inverse_root).collect();
        let weigh = |mut rows: HostRows| {
            let weights =
                rows.entries().map(|(row, column)| factor[row as usize] * factor[column as usize]).collect();
            rows.values = Some(weights);
            rows
        };
        SparseMatrix::new(&weigh(rows.clone()), &weigh(rows.transposed(nodes)), self.device)
    }

    fn arcs(&self, rows: &HostRows, nodes: usize) -> Result<Arcs> {
        let offsets = rows.row_start.iter().map(|offset| *offset as usize).collect();
        Ok(Arcs {
            sources: SparseMatrix::gather(&rows.columns, nodes, self.device)?,
            targets: Segments::new(offsets, self.device)?,
        })
    }

    fn topology(&self, graph_ids: &[u32]) -> Result<togl_topology::EdgeLists> {
        let mut batch = togl_topology::EdgeLists::new();
        let mut edges = Vec::new();
        for id in graph_ids {
            let graph = self.dataset.graph(*id as usize);
            edges.clear();
            edges.extend(graph.undirected_edges().map(|(u, w)| [u, w]));
            batch.push(graph.node_count, &edges)?;
        }
        Ok(batch)
    }
}

/// Directed edges of a whole batch.
struct Links {
    sources: Vec<i64>,
    targets: Vec<i64>,
}

impl Links {
    fn needed(&self, needs: &BatchNeeds) -> bool {
        needs.normalised || needs.neighbours || needs.arcs || needs.looped_arcs
    }

    /// Incoming arcs of every node, sources ascending.
    fn by_target(&self, nodes: usize) -> HostRows {
        let pairs = self.sources.iter().copied().zip(self.targets.iter().copied());
        rows_of(nodes, pairs).transposed(nodes)
    }
}

/// The same arcs without self-loops, then one for each node.
fn with_self_loops(rows: &HostRows) -> HostRows {
    let mut looped = HostRows { row_start: vec![0], columns: Vec::new(), values: None };
    for (bounds, node) in rows.row_start.windows(2).zip(0i64..) {
        let others =
            rows.columns[bounds[0] as usize..bounds[1] as usize].iter().filter(|source| **source != node);
        looped.columns.extend(others);
        looped.columns.push(node);
        looped.row_start.push(looped.columns.len() as i64);
    }
    looped
}

#[cfg(test)]
mod tests {
    use super::*;
    use togl_data::{DatasetBuilder, Task};

    const DRAWS: DrawKey = DrawKey { seed: 1, split: 0, stage: Stage::Training, epoch: 0, step: 0 };

    fn two_graphs() -> Dataset {
        let mut builder = DatasetBuilder::new("two", Task::GraphClassification, 2, 1);
        builder.push_undirected(3, &[(0, 1), (1, 2)], &[1.0, 2.0, 3.0], &[0]);
        builder.push_undirected(2, &[], &[4.0, 5.0], &[1]);
        builder.finish().unwrap()
    }

    fn list(tensor: &Tensor) -> Vec<f64> {
        Vec::<f64>::try_from(tensor.to_kind(Kind::Double).view([-1])).unwrap()
    }

    fn batch(trial: &TrialConfig, ids: &[u32]) -> Batch {
        Collator::new(&two_graphs(), BatchNeeds::of(trial), Device::Cpu).collate(ids, DRAWS).unwrap()
    }

    #[test]
    fn the_normalised_adjacency_has_no_self_loops_and_isolated_nodes_get_zero() {
        let batch = batch(&TrialConfig::default(), &[1, 0]);
        let out = batch.normalised.unwrap().product(&batch.features).unwrap();
        let half = f64::from(1.0 / 2f32.sqrt());
        let wanted = [0.0, 0.0, 2.0 * half, 4.0 * half, 2.0 * half];
        list(&out)
            .iter()
            .zip(wanted)
            .for_each(|(got, want)| assert!((got - want).abs() < 1e-6, "{got} {want}"));
        assert_eq!(batch.host_labels, [1, 0]);
        assert_eq!(batch.graphs.offsets(), [0, 2, 5]);
    }

    #[test]
    fn attention_arcs_have_exactly_one_self_loop_a_node() {
        let trial = TrialConfig { model: Backbone::Gat, ..TrialConfig::default() };
        let arcs = batch(&trial, &[0, 1]).arcs.unwrap();
        assert_eq!(list(arcs.sources.columns()), [1.0, 0.0, 0.0, 2.0, 1.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(list(arcs.targets.of_members()), [0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn directed_arcs_run_from_source_to_target() {
        let parts = togl_data::DatasetParts {
            name: "one way".to_owned(),
            task: Task::GraphClassification,
            classes: 1,
            node_offsets: vec![0, 3],
            edge_offsets: vec![0, 2],
            sources: vec![0, 1],
            targets: vec![2, 2],
            feature_width: 1,
            features: vec![1.0, 10.0, 100.0],
            labels: vec![0],
            split_rule: togl_data::SplitRule::RandomBySeed,
            published_splits: Vec::new(),
        };
        let dataset = Dataset::new(parts).unwrap();
        let trial = TrialConfig { model: Backbone::Gin, ..TrialConfig::default() };
        let batch =
            Collator::new(&dataset, BatchNeeds::of(&trial), Device::Cpu).collate(&[0], DRAWS).unwrap();
        assert_eq!(list(&batch.neighbours.unwrap().product(&batch.features).unwrap()), [0.0, 0.0, 11.0]);
    }

    #[test]
    fn structure_only_features_change_with_the_epoch_for_training_and_not_for_test() {
        let dataset = two_graphs();
        let trial = TrialConfig { features: Features::Random, ..TrialConfig::default() };
        let collator = Collator::new(&dataset, BatchNeeds::of(&trial), Device::Cpu);
        let mut batch = collator.collate(&[0], DRAWS).unwrap();
        assert_eq!(batch.features.size(), [3, 3]);
        let mut at = |stage, epoch| {
            collator.refresh(&mut batch, DrawKey { stage, epoch, ..DRAWS });
            list(&batch.features)
        };
        assert_ne!(at(Stage::Training, 0), at(Stage::Training, 1));
        assert_eq!(at(Stage::Test, 0), at(Stage::Test, 1));
    }
}
