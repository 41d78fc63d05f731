//! Graph isomorphism layer: Y = MLP((1 + eps) X + A X), MLP = Linear(d, d), ReLU, Linear(d, d); X `[N, d]`.
//! eps is trainable and starts at 0.

use tch::Tensor;

use crate::error::Result;
use crate::layers::{Pass, linear::Linear, part};
use crate::parameters::{Initialisation, Scope};

/// A graph isomorphism layer.
#[derive(Debug)]
pub struct Gin {
    eps: Tensor,
    first: Linear,
    second: Linear,
}

impl Gin {
    /// Makes `eps`, `mlp.0.*` and `mlp.1.*`.
    pub fn new(scope: &mut Scope<'_>, width: i64) -> Self {
        Self {
            eps: scope.parameter("eps", &[1], Initialisation::Constant(0.0)),
            first: Linear::new(&mut scope.child("mlp.0"), width, width),
            second: Linear::new(&mut scope.child("mlp.1"), width, width),
        }
    }

    /// MLP((1 + eps) X + A X).
    pub fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor> {
        let neighbours = part(&pass.batch.neighbours, "adjacency")?;
        let sum = neighbours.product(x)? + x + x * &self.eps;
        self.second.forward(&self.first.forward_relu(&sum)?)
    }
}
