//! Linear map: y = x W^T + b, x `[rows, in]`, W `[out, in]`, b `[out]`, y `[rows, out]`.
//! Weight and bias start uniform between -1/sqrt(in) and 1/sqrt(in).

use tch::Tensor;

use crate::error::Result;
use crate::native;
use crate::parameters::{Init, Scope};

/// A linear map.
#[derive(Debug)]
pub struct Linear {
    weight: Tensor,
    bias: Option<Tensor>,
}

impl Linear {
    /// Makes `weight` and `bias`.
    pub fn new(scope: &mut Scope<'_>, width_in: i64, width_out: i64) -> Self {
        let init = Init::fan_in(width_in);
        let weight = scope.parameter("weight", &[width_out, width_in], init);
        Self { weight, bias: Some(scope.parameter("bias", &[width_out], init)) }
    }

    /// Makes `weight` only.
    pub fn without_bias(scope: &mut Scope<'_>, width_in: i64, width_out: i64) -> Self {
        Self { weight: scope.parameter("weight", &[width_out, width_in], Init::fan_in(width_in)), bias: None }
    }

    /// Makes a Glorot-uniform `weight`, and a `bias` of zeros if asked for.
    pub fn glorot(scope: &mut Scope<'_>, width_in: i64, width_out: i64, bias: bool) -> Self {
        let weight = scope.parameter("weight", &[width_out, width_in], Init::glorot(width_in, width_out));
        Self { weight, bias: bias.then(|| scope.parameter("bias", &[width_out], Init::Constant(0.0))) }
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
