//! Dropout: y = x * m / (1 - p), m 0 with probability p and 1 otherwise; the identity in evaluation.
//! Masks come from the named streams of a pass, so a run can be repeated.

use tch::Tensor;
use togl_data::{Purpose, RandomStream};

use crate::layers::Pass;

/// A dropout with its own stream of masks.
#[derive(Debug)]
pub struct Dropout {
    probability: f64,
    name: String,
}

impl Dropout {
    /// No parameters; `name` tells its masks from those of other layers.
    pub fn new(name: &str, probability: f64) -> Self {
        Self { probability, name: name.to_owned() }
    }

    /// x with some values set to 0.
    pub fn forward(&self, x: Tensor, pass: &Pass<'_>) -> Tensor {
        if !pass.training || self.probability == 0.0 {
            return x;
        }
        let draws = pass.draws;
        let purpose = Purpose::Dropout(&self.name);
        let mut stream = RandomStream::new(draws.seed, draws.split, purpose, draws.epoch, draws.step);
        let kept = (1.0 / (1.0 - self.probability)) as f32;
        let mask: Vec<f32> =
            (0..x.numel()).map(|_| if stream.uniform() < self.probability { 0.0 } else { kept }).collect();
        let mask =
            Tensor::from_slice(&mask).view(x.size().as_slice()).to_kind(x.kind()).to_device(x.device());
        x * mask
    }
}
