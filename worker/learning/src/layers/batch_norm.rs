//! Batch norm over the rows of `[rows, width]`, with what usually follows it: y = act((x - mean) / sqrt(var + eps) *
//! w + b) + residual, act being ReLU or nothing. Training uses the batch's biased variance and moves the running
//! statistics (unbiased variance) by 0.1; evaluation uses those. w starts at 1, b at 0.

use tch::Tensor;

use crate::error::Result;
use crate::native::{self, Norm};
use crate::parameters::{Initialisation, Scope};

const EPS: f64 = 1e-5;
const MOMENTUM: f64 = 0.1;

/// A batch norm.
#[derive(Debug)]
pub struct BatchNorm {
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
}

/// What follows the normalisation.
#[derive(Debug, Default, Clone, Copy)]
pub struct Then<'a> {
    /// ReLU.
    pub relu: bool,
    /// Added last.
    pub residual: Option<&'a Tensor>,
}

impl BatchNorm {
    /// Makes `weight`, `bias` and the buffers `running_mean`, `running_var`.
    pub fn new(scope: &mut Scope<'_>, width: i64) -> Self {
        Self {
            weight: scope.parameter("weight", &[width], Initialisation::Constant(1.0)),
            bias: scope.parameter("bias", &[width], Initialisation::Constant(0.0)),
            running_mean: scope.buffer("running_mean", &[width], 0.0),
            running_var: scope.buffer("running_var", &[width], 1.0),
        }
    }

    /// Normalises `x` and does what follows.
    pub fn forward(&self, x: &Tensor, training: bool, then: Then<'_>) -> Result<Tensor> {
        native::batch_norm(&self.norm(training, then.relu), x, then.residual)
    }

    /// This norm as the native operations take it.
    pub(crate) fn norm(&self, training: bool, relu: bool) -> Norm<'_> {
        Norm {
            weight: &self.weight,
            bias: &self.bias,
            running_mean: &self.running_mean,
            running_var: &self.running_var,
            momentum: MOMENTUM,
            eps: EPS,
            training,
            relu,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Parameters;
    use tch::{Device, Kind};

    fn rows(kind: Kind) -> Tensor {
        let values: Vec<f64> =
            (0..140).map(|i| ((i * 37 % 41) as f64 / 7.0).sin() * 3.0 + (i % 4) as f64).collect();
        Tensor::from_slice(&values).to_kind(kind).view([35, 4]).set_requires_grad(true)
    }

    fn close(left: &Tensor, right: &Tensor, what: &str) {
        let most = (left.to_kind(Kind::Double) - right.to_kind(Kind::Double)).abs().max().double_value(&[]);
        assert!(most < 2e-5, "{what} differs by {most}");
    }

    /// Output, gradients of x, residual, weight, bias, and running statistics, after one training pass.
    fn ours(kind: Kind, relu: bool) -> Vec<Tensor> {
        let mut parameters = Parameters::of_kind(0, 0, Device::Cpu, kind);
        let norm = BatchNorm::new(&mut parameters.root(), 4);
        tch::no_grad(|| norm.weight.shallow_clone().copy_(&Tensor::from_slice(&[1.0, -0.5, 2.0, 0.3])));
        let (x, residual) = (rows(kind), rows(kind));
        let out = norm.forward(&x, true, Then { relu, residual: Some(&residual) }).unwrap();
        (&out * rows(kind).detach().cos()).sum(kind).backward();
        let evaluated = norm.forward(&x, false, Then::default()).unwrap();
        let grads = [&x, &residual, &norm.weight, &norm.bias].map(Tensor::grad);
        [out, evaluated, norm.running_mean, norm.running_var].into_iter().chain(grads).collect()
    }

    #[test]
    fn the_fast_and_the_general_form_equal_libtorch() {
        for relu in [false, true] {
            let fast = ours(Kind::Float, relu);
            for (index, (fast, general)) in fast.iter().zip(ours(Kind::Double, relu)).enumerate() {
                close(fast, &general, &format!("result {index}, relu {relu}"));
            }
            let (mean, var) = (
                Tensor::zeros([4], (Kind::Double, Device::Cpu)),
                Tensor::ones([4], (Kind::Double, Device::Cpu)),
            );
            let weight = Tensor::from_slice(&[1.0, -0.5, 2.0, 0.3]).set_requires_grad(true);
            let bias = Tensor::zeros([4], (Kind::Double, Device::Cpu)).set_requires_grad(true);
            let x = rows(Kind::Double);
            let out =
                x.batch_norm(Some(&weight), Some(&bias), Some(&mean), Some(&var), true, 0.1, 1e-5, false);
            let out = if relu { out.relu() } else { out } + rows(Kind::Double);
            (&out * rows(Kind::Double).detach().cos()).sum(Kind::Double).backward();
            close(&fast[0], &out, "output");
            close(&fast[2], &mean, "running mean");
            close(&fast[3], &var, "running variance");
            close(&fast[4], &x.grad(), "gradient of x");
            close(&fast[6], &weight.grad(), "gradient of the weight");
        }
    }

    #[test]
    fn a_single_row_is_normalised_to_the_bias_and_breaks_nothing() {
        let mut parameters = Parameters::new(0, 0, Device::Cpu);
        let norm = BatchNorm::new(&mut parameters.root(), 2);
        let out =
            norm.forward(&Tensor::from_slice(&[3f32, 4.0]).view([1, 2]), true, Then::default()).unwrap();
        assert_eq!(out.abs().max().double_value(&[]), 0.0);
        assert!(norm.running_var.isfinite().all().int64_value(&[]) == 1);
    }
}
