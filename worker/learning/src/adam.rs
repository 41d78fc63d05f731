//! Adam as `torch.optim.Adam` computes it (betas 0.9 and 0.999, eps 1e-8, weight decay added to the gradient).
//! Owns the moments and the step count, which can be saved and loaded; knows neither losses nor schedules.

use tch::{Device, Kind, Tensor};

use crate::error::{Result, TrainError};
use crate::native::{self, AdamStep};
use crate::parameters::Parameters;

const BETAS: (f64, f64) = (0.9, 0.999);
const EPS: f64 = 1e-8;
/// Numbers of steps that are put on a device at a time.
const NUMBERS: i64 = 4096;

/// The optimiser of one network.
#[derive(Debug)]
pub struct Adam {
    names: Vec<String>,
    parameters: Vec<Tensor>,
    first: Vec<Tensor>,
    second: Vec<Tensor>,
    step: i64,
    weight_decay: f64,
    /// Numbers of steps on the device of the parameters, and the first of them; none on the processor.
    numbers: Option<(i64, Tensor)>,
}

/// Everything that makes the next step depend on earlier ones.
#[derive(Debug)]
pub struct AdamState {
    /// Steps taken.
    pub step: i64,
    /// Parameter name, first moment, second moment.
    pub moments: Vec<(String, Tensor, Tensor)>,
}

impl Adam {
    /// An optimiser that has taken no step, for all trainable parameters.
    pub fn new(parameters: &Parameters, weight_decay: f64) -> Self {
        let tensors: Vec<Tensor> = parameters.trainable().map(|entry| entry.tensor.shallow_clone()).collect();
        let zeros = || tensors.iter().map(|tensor| tensor.detach().zeros_like()).collect();
        Self {
            names: parameters.trainable().map(|entry| entry.name.clone()).collect(),
            first: zeros(),
            second: zeros(),
            parameters: tensors,
            step: 0,
            weight_decay,
            numbers: None,
        }
    }

    /// Moves every parameter that has a gradient, then drops the gradients.
    pub fn step(&mut self, lr: f64) -> Result<()> {
        self.step += 1;
        let (beta1, beta2) = BETAS;
        let step = AdamStep { lr, beta1, beta2, eps: EPS, weight_decay: self.weight_decay, step: self.step };
        let number = self.number()?;
        native::adam(step, [&self.parameters, &self.first, &self.second], number.as_ref())
    }

    /// The number of the step where the parameters are, looked up among those that were put there earlier.
    fn number(&mut self) -> Result<Option<Tensor>> {
        let device = self.parameters.first().map_or(Device::Cpu, Tensor::device);
        if device == Device::Cpu {
            return Ok(None);
        }
        let first = self.step - self.step % NUMBERS;
        let there = self.numbers.take().filter(|(start, _)| *start == first);
        let (_, numbers) = match there {
            Some(numbers) => self.numbers.insert(numbers),
            None => {
                let range = Tensor::f_arange_start(first, first + NUMBERS, (Kind::Float, device))?;
                self.numbers.insert((first, range))
            }
        };
        Ok(Some(numbers.f_get(self.step - first)?))
    }

    /// Steps taken.
    pub fn steps(&self) -> i64 {
        self.step
    }

    /// A copy of the state.
    pub fn state(&self) -> AdamState {
        let moments = self.names.iter().zip(self.first.iter().zip(&self.second));
        let moments = moments.map(|(name, (m, v))| (name.clone(), m.copy(), v.copy())).collect();
        AdamState { step: self.step, moments }
    }

    /// Continues from a saved state of the same network.
    pub fn load(&mut self, state: &AdamState) -> Result<()> {
        let saved: Vec<&str> = state.moments.iter().map(|(name, _, _)| name.as_str()).collect();
        if saved != self.names.iter().map(String::as_str).collect::<Vec<_>>() {
            return Err(TrainError::Config("the saved optimiser belongs to another network".to_owned()));
        }
        for (index, (_, first, second)) in state.moments.iter().enumerate() {
            self.first[index].f_copy_(first)?;
            self.second[index].f_copy_(second)?;
        }
        self.step = state.step;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Initialisation;

    /// Minimises sum((w - target)^2 * scale) for some steps and returns w.
    fn descend(kind: Kind, weight_decay: f64, steps: usize, interrupt: bool) -> Vec<f64> {
        let mut parameters = Parameters::of_kind(1, 0, Device::Cpu, kind);
        let weight = parameters.root().parameter("w", &[3], Initialisation::Constant(1.0));
        let target = Tensor::from_slice(&[0.5, -1.0, 3.0]).to_kind(kind);
        let mut adam = Adam::new(&parameters, weight_decay);
        for step in 0..steps {
            if interrupt && step == steps / 2 {
                let state = adam.state();
                adam = Adam::new(&parameters, weight_decay);
                adam.load(&state).unwrap();
            }
            ((&weight - &target).square() * Tensor::from_slice(&[1.0, 2.0, 3.0]).to_kind(kind))
                .sum(kind)
                .backward();
            adam.step(0.1).unwrap();
        }
        Vec::<f64>::try_from(&weight.detach().to_kind(Kind::Double)).unwrap()
    }

    /// The textbook form in doubles.
    fn reference(weight_decay: f64, steps: i32) -> Vec<f64> {
        let (target, scale) = ([0.5, -1.0, 3.0], [1.0, 2.0, 3.0]);
        let descend_one = |index: usize| {
            let (mut w, mut m, mut v) = (1.0f64, 0.0f64, 0.0f64);
            for step in 1..=steps {
                let gradient = 2.0 * scale[index] * (w - target[index]) + weight_decay * w;
                m = 0.9 * m + 0.1 * gradient;
                v = 0.999 * v + 0.001 * gradient * gradient;
                let (m_hat, v_hat) = (m / (1.0 - 0.9f64.powi(step)), v / (1.0 - 0.999f64.powi(step)));
                w -= 0.1 * m_hat / (v_hat.sqrt() + 1e-8);
            }
            w
        };
        (0..3).map(descend_one).collect()
    }

    #[test]
    fn steps_equal_the_textbook_with_and_without_weight_decay() {
        for decay in [0.0, 0.01] {
            for (kind, tolerance) in [(Kind::Float, 1e-4), (Kind::Double, 1e-12)] {
                for (got, wanted) in descend(kind, decay, 25, false).iter().zip(reference(decay, 25)) {
                    assert!((got - wanted).abs() < tolerance, "{kind:?}: {got} is not {wanted}");
                }
            }
        }
    }

    #[test]
    fn a_saved_state_continues_exactly() {
        assert_eq!(descend(Kind::Float, 0.0, 20, true), descend(Kind::Float, 0.0, 20, false));
    }
}
