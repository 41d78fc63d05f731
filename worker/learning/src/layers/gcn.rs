//! Graph convolution: Y = A_hat X W^T + b, A_hat = D^-1/2 A D^-1/2 without self-loops, X `[N, d]`, W `[d', d]`.
//! Isolated nodes get b. W starts Glorot-uniform, b at 0.

use tch::{Kind, Tensor};

use crate::error::Result;
use crate::layers::{Pass, batch_norm::BatchNorm, linear::Linear, part};
use crate::native::{self, Convolution};
use crate::parameters::Scope;

/// A graph convolution.
#[derive(Debug)]
pub struct Gcn {
    linear: Linear,
}

impl Gcn {
    /// Makes `weight` and `bias`.
    pub fn new(scope: &mut Scope<'_>, width_in: i64, width_out: i64) -> Self {
        Self { linear: Linear::glorot(scope, width_in, width_out, true) }
    }

    /// A_hat X W^T + b; the sum over neighbours comes first, so that the bias rides on the matrix product.
    pub fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor> {
        let adjacency = part(&pass.batch.normalised, "normalised adjacency")?;
        self.linear.forward(&adjacency.product(x)?)
    }

    /// The whole layer with the norm that follows, in one, where a device trains; nothing elsewhere.
    pub fn normed(
        &self,
        x: &Tensor,
        norm: &BatchNorm,
        (relu, residual): (bool, bool),
        pass: &Pass<'_>,
    ) -> Result<Option<Tensor>> {
        let adjacency = part(&pass.batch.normalised, "normalised adjacency")?;
        let (Some([rows, transposed]), Some(bias)) = (adjacency.compressed(), self.linear.bias()) else {
            return Ok(None);
        };
        let fits = pass.training && pass.batch.nodes() > 1 && x.kind() == Kind::Float;
        let map = Convolution { weight: self.linear.weight(), bias, rows, transposed, residual };
        fits.then(|| native::graph_convolution(&map, &norm.norm(true, relu), x)).transpose()
    }
}
