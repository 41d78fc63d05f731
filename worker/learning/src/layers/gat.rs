//! Graph attention: with H = X W^T split into heads of C columns, y_i = sum_j a_ij h_j + b over the arcs j -> i and
//! one self-loop, a_i. = softmax_j LeakyReLU_0.2(s . h_j + t . h_i) per head; heads are concatenated.
//! X `[N, d]`, W `[heads C, d]`, s and t `[heads, C]`, b `[heads C]`. W, s, t start Glorot-uniform, b at 0.

use tch::{Kind, Tensor};

use crate::error::{Result, TrainError};
use crate::layers::{Pass, dropout::Dropout, linear::Linear};
use crate::parameters::{Init, Scope};

const SLOPE: f64 = 0.2;
const SOFTMAX_EPS: f64 = 1e-16;

/// A graph attention layer.
#[derive(Debug)]
pub struct Gat {
    linear: Linear,
    source: Tensor,
    target: Tensor,
    bias: Tensor,
    heads: i64,
    width: i64,
    dropout: Dropout,
}

impl Gat {
    /// Makes `weight`, `attention_source`, `attention_target` and `bias`; `width` is that of one head.
    pub fn new(scope: &mut Scope<'_>, width_in: i64, heads: i64, width: i64, dropout: f64) -> Self {
        let init = Init::glorot(heads, width);
        Self {
            linear: Linear::glorot(scope, width_in, heads * width, false),
            source: scope.parameter("attention_source", &[heads, width], init),
            target: scope.parameter("attention_target", &[heads, width], init),
            bias: scope.parameter("bias", &[heads * width], Init::Constant(0.0)),
            heads,
            width,
            dropout: Dropout::new(&scope.name("attention"), dropout),
        }
    }

    /// Attention over incoming arcs.
    pub fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor> {
        let arcs = pass.batch.arcs.as_ref();
        let arcs = arcs.ok_or_else(|| TrainError::Config("batch has no arcs".to_owned()))?;
        let states = self.linear.forward(x);
        let split = states.view([-1, self.heads, self.width]);
        let score = |vector: &Tensor| (&split * vector).sum_dim_intlist(&[2i64][..], false, None::<Kind>);
        let (from, to) = (score(&self.source), score(&self.target));
        let logits = arcs.sources.product(&from)? + arcs.targets.spread(&to)?;
        let logits = logits.maximum(&(&logits * SLOPE));
        // The largest logit only keeps the exponential in range, so no gradient flows through it.
        let most = arcs.targets.spread(&arcs.targets.max(&logits.detach())?)?;
        let powers = (logits - most).exp();
        let total = arcs.targets.sum(&powers)? + SOFTMAX_EPS;
        let attention = self.dropout.forward(powers / arcs.targets.spread(&total)?, pass);
        let messages =
            arcs.sources.product(&states)?.view([-1, self.heads, self.width]) * attention.unsqueeze(2);
        Ok(arcs.targets.sum(&messages.view([-1, self.heads * self.width]))? + &self.bias)
    }
}
