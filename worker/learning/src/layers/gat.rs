//! Graph attention: with H = X W^T split into heads of C columns, y_i = sum_j a_ij h_j + b over the arcs j -> i and
//! one self-loop, a_i. = softmax_j LeakyReLU_0.2(s . h_j + t . h_i) per head; heads are concatenated.
//! X `[N, d]`, W `[heads C, d]`, s and t `[heads, C]`, b `[heads C]`. W, s, t start Glorot-uniform, b at 0.

use tch::{Kind, Tensor};

use crate::error::Result;
use crate::layers::{Pass, dropout::Dropout, linear::Linear, part};
use crate::parameters::{Initialisation, Scope};

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
        let init = Initialisation::glorot(heads, width);
        Self {
            linear: Linear::glorot(scope, width_in, heads * width, false),
            source: scope.parameter("attention_source", &[heads, width], init),
            target: scope.parameter("attention_target", &[heads, width], init),
            bias: scope.parameter("bias", &[heads * width], Initialisation::Constant(0.0)),
            heads,
            width,
            dropout: Dropout::new(&scope.name("attention"), dropout),
        }
    }

    /// Attention over incoming arcs.
    pub fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor> {
        let arcs = part(&pass.batch.arcs, "arcs")?;
        let states = self.linear.forward(x)?;
        let split = states.view([-1, self.heads, self.width]);
        let score = |vector: &Tensor| (&split * vector).sum_dim_intlist(&[2i64][..], false, None::<Kind>);
        let (from, to) = (score(&self.source), score(&self.target));
        let logits = arcs.sources.product(&from)? + arcs.targets.spread(&to)?;
        // Not the maximum of both: at 0 that would have another slope.
        let logits = logits.where_self(&logits.gt(0.0), &(&logits * SLOPE));
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

#[cfg(test)]
mod tests {
    use tch::Device;
    use togl_data::{DatasetBuilder, Stage, Task};
    use togl_sweeps::trial::{Backbone, TrialConfig};

    use super::*;
    use crate::batch::{BatchNeeds, Collator, DrawKey};
    use crate::parameters::Parameters;

    /// All logits are 0. With positive states a smaller `s` makes all of them negative, so the difference to that side has
    /// the slope of LeakyReLU below 0, which is the one that it has at 0.
    #[test]
    fn at_a_logit_of_zero_the_slope_is_that_of_negative_ones() {
        const STEP: f64 = 1e-6;
        let mut builder = DatasetBuilder::new("path", Task::GraphClassification, 2, 1);
        builder.push_undirected(3, &[(0, 1), (1, 2)], &[1.0, 2.0, 4.0], &[0]);
        let dataset = builder.finish().unwrap();
        let trial = TrialConfig { model: Backbone::Gat, ..TrialConfig::default() };
        let draws = DrawKey { seed: 1, split: 0, stage: Stage::Training, epoch: 0, step: 0 };
        let collator = Collator::new(&dataset, BatchNeeds::of(&trial), Device::Cpu).with_kind(Kind::Double);
        let batch = collator.collate(&[0], draws).unwrap();
        let mut parameters = Parameters::of_kind(1, 0, Device::Cpu, Kind::Double);
        let layer = Gat::new(&mut parameters.root(), 1, 1, 1, 0.0);
        let set = |name: &str, value: f64| parameters.set(name, &Tensor::from(value).view([1, 1])).unwrap();
        let loss = || {
            let out = layer.forward(&batch.features, &Pass { batch: &batch, training: true, draws }).unwrap();
            out.square().sum(Kind::Double)
        };
        [("weight", 1.0), ("attention_source", 0.0), ("attention_target", 0.0)]
            .iter()
            .for_each(|(name, value)| set(name, *value));
        loss().backward();
        let gradient = layer.source.grad().double_value(&[0, 0]);
        let here = loss().double_value(&[]);
        set("attention_source", -STEP);
        let slope = (here - loss().double_value(&[])) / STEP;
        assert!((gradient - slope).abs() < 1e-4 && slope.abs() > 1e-2, "{gradient} is not {slope}");
    }
}
