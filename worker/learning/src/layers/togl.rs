//! The topological layer: k learned filtrations of the nodes, their persistence pairs, an embedding of the pairs
//! added to the node states (dimension 0) and one vector a graph (dimension 1). X `[N, d]` to `[N, d]` and
//! `[graphs, w]`. Two versions: coordinate functions (every point by itself) and DeepSet (points see each other).
//! The static variant replaces persistence by pairs without topology; parameters stay the same.

use tch::{Device, Tensor};
use togl_sweeps::TrialConfig;

use crate::batch::Batch;
use crate::error::Result;
use crate::launches;
use crate::layers::batch_norm::{BatchNorm, Then};
use crate::layers::coordinates::{Coordinates, KINDS};
use crate::layers::deepset::{DeepSet, SetFunction};
use crate::layers::{Pass, dropout::Dropout, filtration::Filtration, linear::Linear, part};
use crate::parameters::Scope;
use crate::persistence::Diagrams;

/// How pairs become vectors.
#[derive(Debug)]
enum Embedding {
    Coordinates { dim0: Coordinates, dim1: Option<Coordinates> },
    DeepSet { dim0: DeepSet, dim1: Option<SetFunction> },
}

/// How the embedding of dimension 0 enters the node states.
#[derive(Debug)]
enum Merge {
    /// x + norm(y), with ReLU before the norm, after it, or nowhere.
    Residual { norm: BatchNorm, relu_before: bool, relu_after: bool },
    /// ReLU(Linear([x ; y])).
    Concatenate(Linear),
}

/// The topological layer.
#[derive(Debug)]
pub struct Togl {
    filtration: Filtration,
    embedding: Embedding,
    output: Option<Linear>,
    merge: Merge,
    dropout: Dropout,
    fixed: bool,
    /// Whether the graph vector goes to the nodes instead of the head.
    distribute: bool,
}

/// Width of the vector that the layer gives to the head; 0 for none.
pub fn graph_width(trial: &TrialConfig) -> i64 {
    if !trial.togl || !trial.dim1 || trial.dist_dim1 {
        return 0;
    }
    if trial.deepset { trial.dim1_out_dim.into() } else { coordinate_width(trial) }
}

fn coordinate_width(trial: &TrialConfig) -> i64 {
    i64::from(trial.num_filtrations) * KINDS * i64::from(trial.num_coord_funs)
}

impl Togl {
    /// Makes `filtration.*`, `dim0.*`, `dim1.*`, and `output.*` and `norm.*` as the version needs them.
    pub fn new(scope: &mut Scope<'_>, trial: &TrialConfig, width: i64) -> Self {
        let filtration = Filtration::new(&mut scope.child("filtration"), trial, width);
        let (embedding, embedded) = embedding(scope, trial, width);
        let distribute = trial.dim1 && trial.dist_dim1;
        let output = (!trial.deepset && trial.residual_and_bn)
            .then(|| Linear::new(&mut scope.child("output"), embedded, width));
        let merge = if trial.residual_and_bn {
            let norm = BatchNorm::new(&mut scope.child("norm"), width);
            let relu_before = trial.deepset && !trial.swap_bn_order;
            Merge::Residual { norm, relu_before, relu_after: trial.swap_bn_order }
        } else {
            let spread = if distribute { i64::from(trial.dim1_out_dim) } else { 0 };
            Merge::Concatenate(Linear::new(&mut scope.child("output"), width + embedded + spread, width))
        };
        let dropout = Dropout::new(scope.path(), trial.dropout_p);
        Self { filtration, embedding, output, merge, dropout, fixed: trial.static_variant, distribute }
    }

    /// The filtration values of the nodes, `[N, k]`.
    pub fn filtrations(&self, x: &Tensor) -> Result<Tensor> {
        self.filtration.forward(x)
    }

    /// New node states, and the vector of every graph if dimension 1 goes to the head.
    pub fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<(Tensor, Option<Tensor>)> {
        let topology = part(&pass.batch.topology, "edge lists")?;
        launches::part("togl: filtration");
        let values = self.filtration.forward(x)?;
        launches::part("togl: persistence");
        let diagrams = if self.fixed {
            Diagrams::fixed(&values, topology, &pass.batch.graph_ids, pass.draws)?
        } else {
            Diagrams::persistent(&values, topology)?
        };
        let nodes = &pass.batch.graphs;
        launches::part("togl: embedding");
        let (vertices, graph) = self.embed(&diagrams, pass.batch)?;
        launches::part("togl: merging");
        let vertices = match &self.output {
            Some(map) => map.forward(&vertices)?,
            None => vertices,
        };
        let (spread, graph) = if self.distribute { (graph, None) } else { (None, graph) };
        let spread = spread.map(|vector| nodes.spread(&vector)).transpose()?;
        let y = self.merge(x, &vertices, spread.as_ref(), pass.training)?;
        Ok((self.dropout.forward(y, pass), graph))
    }

    fn embed(&self, diagrams: &Diagrams<'_>, batch: &Batch) -> Result<(Tensor, Option<Tensor>)> {
        let nodes = &batch.graphs;
        // The processor gathers each part by itself, as it always did: in another order its sums have other bits.
        let (points, mut all) = match batch.zero.device() {
            Device::Cpu => (diagrams.vertices(), None),
            _ => diagrams.at_once(&batch.zero).map(|(points, cycles)| (points, Some(cycles)))?,
        };
        let mut cycles = || all.take().map_or_else(|| diagrams.cycles(), Ok);
        match &self.embedding {
            Embedding::Coordinates { dim0, dim1 } => {
                let graph = dim1.as_ref().map(|functions| {
                    let cycles = cycles()?;
                    cycles.graphs.sum(&functions.forward(&cycles.pairs)?)
                });
                Ok((dim0.forward(&points)?, graph.transpose()?))
            }
            Embedding::DeepSet { dim0, dim1 } => {
                let graph = dim1.as_ref().map(|function| {
                    let cycles = cycles()?;
                    function.forward(&cycles.pairs.interleaved(), &cycles.graphs)
                });
                Ok((dim0.forward(&points.interleaved(), nodes)?, graph.transpose()?))
            }
        }
    }

    fn merge(&self, x: &Tensor, y: &Tensor, spread: Option<&Tensor>, training: bool) -> Result<Tensor> {
        match &self.merge {
            Merge::Residual { norm, relu_before, relu_after } => {
                let y = spread.map_or_else(|| y.shallow_clone(), |vector| y + vector);
                let y = if *relu_before { y.relu() } else { y };
                norm.forward(&y, training, Then { relu: *relu_after, residual: Some(x) })
            }
            Merge::Concatenate(linear) => {
                let parts: Vec<&Tensor> = [x, y].into_iter().chain(spread).collect();
                linear.forward_relu(&Tensor::cat(&parts, 1))
            }
        }
    }
}

/// The embedding of both dimensions, and the width of dimension 0.
fn embedding(scope: &mut Scope<'_>, trial: &TrialConfig, width: i64) -> (Embedding, i64) {
    if !trial.deepset {
        let units = i64::from(trial.num_coord_funs);
        let dim0 = Coordinates::new(&mut scope.child("dim0"), units);
        let dim1 = trial.dim1.then(|| Coordinates::new(&mut scope.child("dim1"), units));
        return (Embedding::Coordinates { dim0, dim1 }, coordinate_width(trial));
    }
    let pair_width = 2 * i64::from(trial.num_filtrations);
    let embedded = if trial.residual_and_bn { width } else { trial.dim0_out_dim.into() };
    let graph = if trial.dist_dim1 && trial.residual_and_bn { width } else { trial.dim1_out_dim.into() };
    let dim0 = DeepSet::new(&mut scope.child("dim0"), trial, pair_width, embedded);
    let dim1 = trial.dim1.then(|| SetFunction::new(&mut scope.child("dim1"), trial, pair_width, graph));
    (Embedding::DeepSet { dim0, dim1 }, embedded)
}
