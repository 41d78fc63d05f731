//! DeepSets over the members of each graph. Equivariant layer: y_i = G x_i + g - L agg_j x_j, j over the members of
//! i's graph, agg the mean, maximum or sum; rows `[M, in]` to `[M, out]`. Stack for dimension 0: a linear map, or a
//! linear map and one or two equivariant layers with ReLU between. Set function for dimension 1: one vector a graph,
//! L agg_j ReLU(Linear(x_j)), 0 for a graph without members.

use tch::Tensor;
use togl_sweeps::trial::{Aggregation, DeepsetType, TrialConfig};

use crate::error::Result;
use crate::layers::linear::Linear;
use crate::parameters::Scope;
use crate::sparse::Segments;

fn aggregate(how: Aggregation, graphs: &Segments, x: &Tensor) -> Result<Tensor> {
    match how {
        Aggregation::Mean => graphs.mean(x),
        Aggregation::Max => graphs.max(x),
        Aggregation::Sum => graphs.sum(x),
    }
}

/// An equivariant layer.
#[derive(Debug)]
pub struct Equivariant {
    own: Linear,
    others: Linear,
    how: Aggregation,
}

impl Equivariant {
    /// Makes `own.{weight,bias}` and `others.weight`.
    pub fn new(scope: &mut Scope<'_>, width_in: i64, width_out: i64, how: Aggregation) -> Self {
        Self {
            own: Linear::new(&mut scope.child("own"), width_in, width_out),
            others: Linear::without_bias(&mut scope.child("others"), width_in, width_out),
            how,
        }
    }

    /// G x_i + g - L agg.
    pub fn forward(&self, x: &Tensor, graphs: &Segments) -> Result<Tensor> {
        let others = self.others.forward(&aggregate(self.how, graphs, x)?)?;
        Ok(self.own.forward(x)? - graphs.spread(&others)?)
    }
}

/// The dimension-0 embedding.
#[derive(Debug)]
pub struct DeepSet {
    input: Linear,
    layers: Vec<Equivariant>,
}

impl DeepSet {
    /// Makes `input.*` and `set0.*`, `set1.*` as the trial's type says.
    pub fn new(scope: &mut Scope<'_>, trial: &TrialConfig, width_in: i64, width_out: i64) -> Self {
        let inner = i64::from(trial.dim0_out_dim);
        let equivariant = match trial.deepset_type {
            DeepsetType::Linear => vec![],
            DeepsetType::Shallow => vec![width_out],
            DeepsetType::Full => vec![inner, width_out],
        };
        let first = if equivariant.is_empty() { width_out } else { inner };
        let input = Linear::new(&mut scope.child("input"), width_in, first);
        let layers = equivariant.into_iter().enumerate().map(|(index, width)| {
            Equivariant::new(&mut scope.child(format!("set{index}")), inner, width, trial.aggregation_fn)
        });
        Self { input, layers: layers.collect() }
    }

    /// The stack, without an activation at its end.
    pub fn forward(&self, x: &Tensor, graphs: &Segments) -> Result<Tensor> {
        if self.layers.is_empty() {
            return self.input.forward(x);
        }
        let mut y = self.input.forward_relu(x)?;
        for (index, layer) in self.layers.iter().enumerate() {
            let inner = if index == 0 { y } else { y.relu() };
            y = layer.forward(&inner, graphs)?;
        }
        Ok(y)
    }
}

/// The dimension-1 embedding: one vector a graph.
#[derive(Debug)]
pub struct SetFunction {
    input: Linear,
    output: Linear,
    how: Aggregation,
}

impl SetFunction {
    /// Makes `input.*` and `output.weight`.
    pub fn new(scope: &mut Scope<'_>, trial: &TrialConfig, width_in: i64, width_out: i64) -> Self {
        let inner = i64::from(trial.dim1_out_dim);
        Self {
            input: Linear::new(&mut scope.child("input"), width_in, inner),
            output: Linear::without_bias(&mut scope.child("output"), inner, width_out),
            how: trial.aggregation_fn,
        }
    }

    /// `[graphs, out]`.
    pub fn forward(&self, x: &Tensor, graphs: &Segments) -> Result<Tensor> {
        self.output.forward(&aggregate(self.how, graphs, &self.input.forward_relu(x)?)?)
    }
}
