//! One vector a graph from its persistence diagrams, in place of pooling: sum_p w(p) phi(p) over the points p of each
//! dimension and filtration, then batch norm. phi are the coordinate functions; w is 1, or learned as
//! softplus(Linear(h, 1)(ReLU(Linear(2, h)(p)))). X `[N, k]` filtration values to `[graphs, dimensions k 4q]`.
//! Points that do not exist, as the pairs of tree edges, weigh nothing.

use tch::Tensor;
use togl_sweeps::trial::{Backbone, TrialConfig};

use crate::error::Result;
use crate::layers::batch_norm::{BatchNorm, Then};
use crate::layers::coordinates::{Coordinates, KINDS};
use crate::layers::filtration::Filtration;
use crate::layers::fixed_filtration::{FIXED_FILTRATIONS, fixed_filtrations};
use crate::layers::linear::Linear;
use crate::layers::{Pass, part};
use crate::parameters::Scope;
use crate::persistence::{Diagrams, Pairs};
use crate::sparse::Segments;

/// Where filtration values come from.
#[derive(Debug)]
enum Values {
    /// One network on the node states, squeezed between 0 and 1 (GFL).
    Learned(Filtration),
    /// Known before training (PersLay).
    Fixed,
}

/// The functions of one dimension.
#[derive(Debug)]
struct Dimension {
    functions: Coordinates,
    weight: Option<(Linear, Linear)>,
}

/// The readout.
#[derive(Debug)]
pub struct DiagramReadout {
    values: Values,
    dim0: Dimension,
    dim1: Option<Dimension>,
    norm: BatchNorm,
}

/// Width of the vector of each graph.
pub fn readout_width(trial: &TrialConfig) -> i64 {
    let dimensions = if trial.dim1 { 2 } else { 1 };
    dimensions * filtrations(trial) * KINDS * i64::from(trial.num_coord_funs)
}

fn filtrations(trial: &TrialConfig) -> i64 {
    if trial.model == Backbone::PersLay { FIXED_FILTRATIONS } else { 1 }
}

impl DiagramReadout {
    /// Makes `filtration.*` if it is learned, `dim0.*` and `dim1.*` with `weight.*` if points are weighed, `norm.*`.
    pub fn new(scope: &mut Scope<'_>, trial: &TrialConfig, width: i64) -> Self {
        let learned = TrialConfig {
            num_filtrations: 1,
            deepset: false,
            tanh_filtrations: false,
            share_filtration_parameters: true,
            ..trial.clone()
        };
        let values = match trial.model {
            Backbone::PersLay => Values::Fixed,
            _ => Values::Learned(Filtration::new(&mut scope.child("filtration"), &learned, width)),
        };
        Self {
            values,
            dim0: Dimension::new(&mut scope.child("dim0"), trial),
            dim1: trial.dim1.then(|| Dimension::new(&mut scope.child("dim1"), trial)),
            norm: BatchNorm::new(&mut scope.child("norm"), readout_width(trial)),
        }
    }

    /// Whether the node states play no role.
    pub fn is_fixed(&self) -> bool {
        matches!(self.values, Values::Fixed)
    }

    /// The vectors of all graphs; `states` are the node states, or anything on the right device if they play no role.
    pub fn forward(&self, states: &Tensor, pass: &Pass<'_>) -> Result<Tensor> {
        let topology = part(&pass.batch.topology, "edge lists")?;
        let values = match &self.values {
            Values::Learned(filtration) => filtration.forward(states)?.sigmoid(),
            Values::Fixed => fixed_filtrations(topology, states.kind(), states.device()),
        };
        let diagrams = Diagrams::persistent(&values, topology)?;
        let mut parts = vec![self.dim0.forward(&diagrams.vertices(), &pass.batch.graphs, false)?];
        if let Some(dim1) = &self.dim1 {
            let cycles = diagrams.cycles()?;
            parts.push(dim1.forward(&cycles.pairs, &cycles.graphs, true)?);
        }
        self.norm.forward(&Tensor::cat(&parts, 1), pass.training, Then::default())
    }
}

impl Dimension {
    fn new(scope: &mut Scope<'_>, trial: &TrialConfig) -> Self {
        let hidden = i64::from(trial.filtration_hidden);
        let weight = (trial.model == Backbone::PersLay).then(|| {
            let scope = &mut scope.child("weight");
            let first = Linear::new(&mut scope.child("hidden"), 2, hidden);
            (first, Linear::new(&mut scope.child("output"), hidden, 1))
        });
        Self { functions: Coordinates::new(scope, i64::from(trial.num_coord_funs)), weight }
    }

    /// Sums over the points of each graph; `tree_edges` says that points at (0, 0) do not exist.
    fn forward(&self, points: &Pairs, graphs: &Segments, tree_edges: bool) -> Result<Tensor> {
        let features = self.functions.forward(points)?;
        let (rows, filtrations) = points.birth.size2()?;
        let there = if tree_edges {
            points.birth.ne(0.0).logical_or(&points.death.ne(0.0)).to_kind(features.kind())
        } else {
            Tensor::ones([rows, filtrations], (features.kind(), features.device()))
        };
        let weights = match &self.weight {
            Some((hidden, output)) => {
                let pairs = Tensor::stack(&[&points.birth, &points.death], 2);
                output.forward(&hidden.forward(&pairs)?.relu())?.softplus().squeeze_dim(2) * there
            }
            None => there,
        };
        let weighed =
            features.view([rows, filtrations, features.size()[1] / filtrations]) * weights.unsqueeze(2);
        graphs.sum(&weighed.f_reshape([rows, features.size()[1]])?)
    }
}
