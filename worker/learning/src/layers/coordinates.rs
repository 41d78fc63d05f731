//! Coordinate functions of persistence points (b, d), q units of each of four kinds, in this order:
//! triangle max(0, d - |t_j - b|); Gaussian exp(-((b - t_j)^2 + (d - t_j)^2) / (2 s^2)) with one s;
//! line w_j . (b, d) + c_j; rational hat 1/(1 + D) - 1/(1 + ||r_j| - D|) with D = |b - c_j| + |d - c_j|.
//! Points `[M, k]` to features `[M, k 4q]`, filtration-major. Centres and radii start at 0.1 N(0, 1), s at 1.

use tch::{Device, Kind, Tensor};

use crate::error::Result;
use crate::native;
use crate::parameters::{Initialisation, Scope};
use crate::persistence::Pairs;

/// Kinds of functions.
pub const KINDS: i64 = 4;

/// One set of coordinate functions, shared by all filtrations.
#[derive(Debug)]
pub struct Coordinates {
    triangle: Tensor,
    gauss_centre: Tensor,
    gauss_width: Tensor,
    line_weight: Tensor,
    line_bias: Tensor,
    hat_centre: Tensor,
    hat_radius: Tensor,
}

impl Coordinates {
    /// Makes `triangle.centre`, `gaussian.{centre,width}`, `line.{weight,bias}` and `hat.{centre,radius}`.
    pub fn new(scope: &mut Scope<'_>, units: i64) -> Self {
        let small = Initialisation::Normal(0.1);
        Self {
            triangle: scope.child("triangle").parameter("centre", &[units], small),
            gauss_centre: scope.child("gaussian").parameter("centre", &[units], small),
            gauss_width: scope.child("gaussian").parameter("width", &[1], Initialisation::Constant(1.0)),
            line_weight: scope.child("line").parameter("weight", &[units, 2], Initialisation::fan_in(2)),
            line_bias: scope.child("line").parameter("bias", &[units], Initialisation::fan_in(2)),
            hat_centre: scope.child("hat").parameter("centre", &[units], small),
            hat_radius: scope.child("hat").parameter("radius", &[units], small),
        }
    }

    /// All functions of all points.
    pub fn forward(&self, points: &Pairs) -> Result<Tensor> {
        let (count, filtrations) = points.birth.size2()?;
        let width = filtrations * KINDS * self.triangle.size()[0];
        let fast = points.birth.kind() == Kind::Float && points.birth.device() == Device::Cpu;
        let features = if fast { self.native(points)? } else { self.composed(points)? };
        Ok(features.f_reshape([count, width])?)
    }

    fn native(&self, points: &Pairs) -> Result<Tensor> {
        let parameters = [
            &self.triangle,
            &self.gauss_centre,
            &self.gauss_width,
            &self.line_weight,
            &self.line_bias,
            &self.hat_centre,
            &self.hat_radius,
        ];
        native::coordinate_functions(parameters, &points.birth, &points.death)
    }

    /// The same from libtorch's operations, for other devices and precisions: as few of them as there are, both
    /// coordinates of a point in one tensor.
    fn composed(&self, points: &Pairs) -> Result<Tensor> {
        let ((count, filtrations), units) = (points.birth.size2()?, self.triangle.size()[0]);
        let pairs = points.interleaved().view([count, filtrations, 2]);
        let line = native::dense(
            &pairs.view([count * filtrations, 2]),
            &self.line_weight,
            Some(&self.line_bias),
            false,
        )?;
        let single = pairs.unsqueeze(3).unbind(2);
        let triangle = (&single[1] - (&self.triangle - &single[0]).abs()).relu();
        let centres = Tensor::cat(&[&self.gauss_centre, &self.hat_centre], 0);
        let apart = (pairs.unsqueeze(3) - centres).chunk(2, 3);
        let sum = |x: &Tensor| x.sum_dim_intlist(&[2i64][..], false, None::<Kind>);
        let gaussian = (sum(&apart[0].square()) * (self.gauss_width.square() * -2.0).reciprocal()).exp();
        let distance = sum(&apart[1].abs());
        let gap = (self.hat_radius.abs() - &distance).abs();
        let hat = (distance + 1.0).reciprocal() - (gap + 1.0).reciprocal();
        Ok(Tensor::cat(&[triangle, gaussian, line.view([count, filtrations, units]), hat], 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Parameters;

    fn points(kind: Kind) -> Pairs {
        let values = |shift: f64| {
            let list: Vec<f64> = (0..24).map(|i| ((i as f64 + shift) * 1.7).sin()).collect();
            Tensor::from_slice(&list).to_kind(kind).view([8, 3]).set_requires_grad(true)
        };
        Pairs { birth: values(0.0), death: values(0.4), together: None }
    }

    /// Features, then gradients of both coordinates and of all parameters.
    fn evaluate(kind: Kind) -> Vec<Tensor> {
        let mut parameters = Parameters::of_kind(5, 0, Device::Cpu, kind);
        let functions = Coordinates::new(&mut parameters.root(), 3);
        let points = points(kind);
        let features = functions.forward(&points).unwrap();
        let weights: Vec<f64> = (0..features.numel()).map(|i| (i as f64 * 0.37).cos()).collect();
        (&features * Tensor::from_slice(&weights).to_kind(kind).view([8, 36])).sum(kind).backward();
        let grads = parameters.trainable().map(|entry| entry.tensor.grad());
        [features, points.birth.grad(), points.death.grad()].into_iter().chain(grads).collect()
    }

    #[test]
    fn the_fast_and_the_composed_form_agree_in_values_and_all_gradients() {
        for (index, (fast, exact)) in evaluate(Kind::Float).iter().zip(evaluate(Kind::Double)).enumerate() {
            let most = (fast.to_kind(Kind::Double) - exact).abs().max().double_value(&[]);
            assert!(most < 1e-5, "result {index} differs by {most}");
        }
    }

    #[test]
    fn no_points_give_no_rows() {
        let mut parameters = Parameters::new(5, 0, Device::Cpu);
        let functions = Coordinates::new(&mut parameters.root(), 3);
        let none = || Tensor::zeros([0, 2], (Kind::Float, Device::Cpu));
        assert_eq!(
            functions.forward(&Pairs { birth: none(), death: none(), together: None }).unwrap().size(),
            [0, 24]
        );
    }
}
