//! Linear map: y = x W^T + b, x `[rows, in]`, W `[out, in]`, b `[out]`, y `[rows, out]`.
//! Weight and bias start uniform between -1/sqrt(in) and 1/sqrt(in).

use tch::Tensor;

use crate::error::Result;
use crate::native;
use crate::parameters::{Initialisation, Scope};

/// A linear map.
#[derive(Debug)]
pub struct Linear {
    weight: Tensor,
    bias: Option<Tensor>,
}

impl Linear {
    /// Makes `weight` and `bias`.
    pub fn new(scope: &mut Scope<'_>, width_in: i64, width_out: i64) -> Self {
        let init = Initialisation::fan_in(width_in);
        let weight = scope.parameter("weight", &[width_out, width_in], init);
        Self { weight, bias: Some(scope.parameter("bias", &[width_out], init)) }
    }

    /// Makes `weight` only.
    pub fn without_bias(scope: &mut Scope<'_>, width_in: i64, width_out: i64) -> Self {
        Self {
            weight: scope.parameter("weight", &[width_out, width_in], Initialisation::fan_in(width_in)),
            bias: None,
        }
    }

    /// Makes a Glorot-uniform `weight`, and a `bias` of zeros if asked for.
    pub fn glorot(scope: &mut Scope<'_>, width_in: i64, width_out: i64, bias: bool) -> Self {
        let weight =
            scope.parameter("weight", &[width_out, width_in], Initialisation::glorot(width_in, width_out));
        Self {
            weight,
            bias: bias.then(|| scope.parameter("bias", &[width_out], Initialisation::Constant(0.0))),
        }
    }

    /// x W^T + b.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        native::dense(x, &self.weight, self.bias.as_ref(), false)
    }

    /// ReLU(x W^T + b).
    pub fn forward_relu(&self, x: &Tensor) -> Result<Tensor> {
        native::dense(x, &self.weight, self.bias.as_ref(), true)
    }

    /// W.
    pub fn weight(&self) -> &Tensor {
        &self.weight
    }

    /// b.
    pub fn bias(&self) -> Option<&Tensor> {
        self.bias.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Parameters;
    use tch::{Device, Kind};

    fn numbers(rows: i64, columns: i64) -> Tensor {
        let values: Vec<f32> = (0..rows * columns).map(|i| (i as f32 * 0.73).sin()).collect();
        Tensor::from_slice(&values).view([rows, columns]).set_requires_grad(true)
    }

    fn bits(tensor: &Tensor) -> Vec<u32> {
        let values = Vec::<f32>::try_from(tensor.detach().contiguous().view([-1])).unwrap();
        values.into_iter().map(f32::to_bits).collect()
    }

    /// Rows, inputs and outputs: one chain of additions, two halves, many chains; tails; too small for loops of ours.
    #[test]
    fn a_linear_map_and_its_gradients_have_the_bits_of_libtorch() {
        tch::set_num_threads(1);
        for (rows, width_in, width_out) in [
            (640, 146, 146),
            (50, 193, 33),
            (31, 301, 70),
            (577, 20, 16),
            (20, 146, 73),
            (5, 7, 3),
            (640, 32, 8),
        ] {
            let mut parameters = Parameters::new(1, 0, Device::Cpu);
            let map = Linear::new(&mut parameters.root(), width_in, width_out);
            for relu in [false, true] {
                let results = |ours: bool| {
                    let x = numbers(rows, width_in);
                    let y = match (ours, relu) {
                        (true, true) => map.forward_relu(&x).unwrap(),
                        (true, false) => map.forward(&x).unwrap(),
                        (false, true) => x.linear(&map.weight, map.bias.as_ref()).relu(),
                        (false, false) => x.linear(&map.weight, map.bias.as_ref()),
                    };
                    (&y * numbers(rows, width_out).detach()).sum(Kind::Float).backward();
                    let made = [bits(&y), bits(&x.grad()), bits(&map.weight.grad())];
                    parameters.trainable().for_each(|entry| entry.tensor.shallow_clone().zero_grad());
                    made
                };
                assert!(results(true) == results(false), "{rows} x {width_in} to {width_out}, relu {relu}");
            }
        }
    }
}
