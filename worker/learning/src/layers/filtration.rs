//! The filtration network: k values a node from its state, F = Linear(h, k)(ReLU(Linear(d, h)(X))), optionally
//! through tanh. X `[N, d]`, F `[N, k]`. Either one network with k outputs or k networks with one output each; the
//! latter are computed together as one matrix product.

use tch::{Kind, Tensor};
use togl_sweeps::TrialConfig;

use crate::error::Result;
use crate::layers::linear::Linear;
use crate::parameters::Scope;

/// Filtrations of the nodes.
#[derive(Debug)]
pub struct Filtration {
    networks: Vec<(Linear, Linear)>,
    tanh: bool,
}

impl Filtration {
    /// Makes `hidden.*` and `output.*`, or `I.hidden.*` and `I.output.*` for every filtration I.
    pub fn new(scope: &mut Scope<'_>, trial: &TrialConfig, width: i64) -> Self {
        let (hidden, count) = (i64::from(trial.filtration_hidden), i64::from(trial.num_filtrations));
        let network = |scope: &mut Scope<'_>, outputs| {
            let first = Linear::new(&mut scope.child("hidden"), width, hidden);
            (first, Linear::new(&mut scope.child("output"), hidden, outputs))
        };
        let networks = if trial.deepset || trial.share_filtration_parameters {
            vec![network(scope, count)]
        } else {
            (0..count).map(|index| network(&mut scope.child(index), 1)).collect()
        };
        Self { networks, tanh: trial.tanh_filtrations && !trial.deepset }
    }

    /// `[N, k]` filtration values.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let values = match self.networks.as_slice() {
            [(hidden, output)] => output.forward(&hidden.forward_relu(x)?)?,
            many => separate(many, x),
        };
        Ok(if self.tanh { values.tanh() } else { values })
    }
}

/// All networks at once: their first maps stacked, their second maps as row-wise dot products.
fn separate(networks: &[(Linear, Linear)], x: &Tensor) -> Tensor {
    let stack = |pick: &dyn Fn(&(Linear, Linear)) -> Tensor| {
        Tensor::cat(&networks.iter().map(pick).collect::<Vec<_>>(), 0)
    };
    let bias = |linear: &Linear| linear.bias().map_or_else(Tensor::new, Tensor::shallow_clone);
    let first = stack(&|(hidden, _)| hidden.weight().shallow_clone());
    let second = stack(&|(_, output)| output.weight().shallow_clone());
    let states = x.linear(&first, Some(stack(&|(hidden, _)| bias(hidden)))).relu();
    let states = states.view([x.size()[0], networks.len() as i64, -1]);
    (states * second).sum_dim_intlist(&[2i64][..], false, None::<Kind>) + stack(&|(_, output)| bias(output))
}
