//! Gated graph convolution: y_i = S x_i + b + sum_j sigma(K x_i + b_K + Q x_j + b_Q) * (V x_j + b_V) over the arcs
//! j -> i; X `[N, d]`, all maps d to d. No edge features.

use tch::Tensor;

use crate::error::Result;
use crate::layers::{Pass, linear::Linear, part};
use crate::parameters::Scope;

/// A gated graph convolution.
#[derive(Debug)]
pub struct GatedGcn {
    own: Linear,
    key: Linear,
    query: Linear,
    value: Linear,
}

impl GatedGcn {
    /// Makes `own.*`, `key.*`, `query.*` and `value.*`.
    pub fn new(scope: &mut Scope<'_>, width: i64) -> Self {
        let mut linear = |name| Linear::new(&mut scope.child(name), width, width);
        Self { own: linear("own"), key: linear("key"), query: linear("query"), value: linear("value") }
    }

    /// Own state plus gated sum.
    pub fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor> {
        let arcs = part(&pass.batch.arcs, "arcs")?;
        let gate =
            arcs.targets.spread(&self.key.forward(x)?)? + arcs.sources.product(&self.query.forward(x)?)?;
        let messages = gate.sigmoid() * arcs.sources.product(&self.value.forward(x)?)?;
        Ok(self.own.forward(x)? + arcs.targets.sum(&messages)?)
    }
}
