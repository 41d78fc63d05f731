//! From node states to class scores: pooling over each graph (mean, or sum for GIN; none for node tasks), the vector
//! of dimension 1 beside it, then Linear(w, D/2) ReLU Linear(D/2, D/4) ReLU Linear(D/4, classes).
//! X `[N, d]` to `[graphs or N, classes]`. D is the state width; plain GAT keeps the width of one head.

use tch::Tensor;
use togl_sweeps::trial::{Backbone, TrialConfig};

use crate::error::Result;
use crate::layers::graph_layer::state_width;
use crate::layers::linear::Linear;
use crate::layers::{Pass, togl::graph_width};
use crate::parameters::Scope;

/// How nodes become rows of the classifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pooling {
    Mean,
    Sum,
    None,
}

fn maps(scope: &mut Scope<'_>, widths: [i64; 4]) -> [Linear; 3] {
    std::array::from_fn(|at| Linear::new(&mut scope.child(at), widths[at], widths[at + 1]))
}

/// Pooling and classifier.
#[derive(Debug)]
pub struct Head {
    pooling: Pooling,
    maps: [Linear; 3],
}

impl Head {
    /// Makes `0.*`, `1.*` and `2.*`.
    pub fn new(scope: &mut Scope<'_>, trial: &TrialConfig, classes: i64, node_task: bool) -> Self {
        let states = state_width(trial);
        let basis =
            if trial.model == Backbone::Gat && !trial.togl { trial.hidden_dim.into() } else { states };
        let widths = [states + graph_width(trial), basis / 2, basis / 4, classes];
        let pooling = match trial.model {
            _ if node_task => Pooling::None,
            Backbone::Gin => Pooling::Sum,
            _ => Pooling::Mean,
        };
        Self { pooling, maps: maps(scope, widths) }
    }

    /// The classifier alone, for rows that are graphs already.
    pub fn on_graphs(scope: &mut Scope<'_>, trial: &TrialConfig, width: i64, classes: i64) -> Self {
        let basis = i64::from(trial.hidden_dim);
        Self { pooling: Pooling::None, maps: maps(scope, [width, basis / 2, basis / 4, classes]) }
    }

    /// Class scores.
    pub fn forward(&self, x: &Tensor, graph: Option<&Tensor>, pass: &Pass<'_>) -> Result<Tensor> {
        let graphs = &pass.batch.graphs;
        let (rows, beside) = match self.pooling {
            Pooling::Mean => (graphs.mean(x)?, graph.map(Tensor::shallow_clone)),
            Pooling::Sum => (graphs.sum(x)?, graph.map(Tensor::shallow_clone)),
            Pooling::None => (x.shallow_clone(), graph.map(|vector| graphs.spread(vector)).transpose()?),
        };
        let rows = beside.map_or_else(|| rows.shallow_clone(), |vector| Tensor::cat(&[&rows, &vector], 1));
        let [first, second, third] = &self.maps;
        third.forward(&second.forward_relu(&first.forward_relu(&rows)?)?)
    }
}
