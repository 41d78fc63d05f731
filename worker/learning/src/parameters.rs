//! The parameters of a network by name: trainable tensors and buffers (running statistics), in the order in which
//! layers were built. Owns initial values, which come from named random streams and never from libtorch's
//! generator, and snapshots of all values.

use tch::{Device, Kind, Tensor};
use togl_data::{Purpose, RandomStream};

use crate::error::{Result, TrainError};

/// Where initial values come from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Initialisation {
    /// Uniform between minus and plus this bound.
    Uniform(f64),
    /// Normal with mean 0 and this standard deviation.
    Normal(f64),
    /// This value everywhere.
    Constant(f64),
}

impl Initialisation {
    /// Uniform with the bound sqrt(6 / (fan in + fan out)).
    pub fn glorot(fan_in: i64, fan_out: i64) -> Self {
        Self::Uniform((6.0 / (fan_in + fan_out) as f64).sqrt())
    }

    /// Uniform with the bound 1 / sqrt(fan in).
    pub fn fan_in(fan_in: i64) -> Self {
        Self::Uniform(1.0 / (fan_in as f64).sqrt())
    }
}

/// One named tensor.
#[derive(Debug)]
pub struct Parameter {
    /// Path of the layer and name inside it, such as `layers.0.conv.weight`.
    pub name: String,
    /// Its values, shared with the layer.
    pub tensor: Tensor,
    /// Whether the optimiser changes it; buffers are not trainable.
    pub trainable: bool,
}

/// All parameters of one network.
#[derive(Debug)]
pub struct Parameters {
    entries: Vec<Parameter>,
    device: Device,
    kind: Kind,
    seed: u64,
    split: u64,
}

/// A copy of all values, to return to.
#[derive(Debug)]
pub struct ParameterValues(Vec<Tensor>);

impl ParameterValues {
    /// Of values in the order of the parameters.
    pub(crate) fn new(values: Vec<Tensor>) -> Self {
        Self(values)
    }

    /// The values in the order of the parameters.
    pub(crate) fn values(&self) -> &[Tensor] {
        &self.0
    }
}

impl Parameters {
    /// No parameters yet; those that will be made draw their initial values from (seed, split, name).
    pub fn new(seed: u64, split: u64, device: Device) -> Self {
        Self::of_kind(seed, split, device, Kind::Float)
    }

    /// As [`Parameters::new`] in another precision (gradient checks use doubles).
    pub fn of_kind(seed: u64, split: u64, device: Device, kind: Kind) -> Self {
        Self { entries: Vec::new(), device, kind, seed, split }
    }

    /// Where a layer makes its parameters.
    pub fn root(&mut self) -> Scope<'_> {
        Scope { parameters: self, path: String::new() }
    }

    /// All parameters and buffers in order.
    pub fn all(&self) -> &[Parameter] {
        &self.entries
    }

    /// The trainable ones in order.
    pub fn trainable(&self) -> impl Iterator<Item = &Parameter> {
        self.entries.iter().filter(|entry| entry.trainable)
    }

    /// One of them by name.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.entries.iter().find(|entry| entry.name == name).map(|entry| &entry.tensor)
    }

    /// Number of trainable values.
    pub fn count(&self) -> u64 {
        self.trainable().map(|entry| entry.tensor.numel() as u64).sum()
    }

    /// The device of all tensors.
    pub fn device(&self) -> Device {
        self.device
    }

    /// The precision of all tensors.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Overwrites one parameter; the shape may differ in axes of length 1.
    pub fn set(&self, name: &str, values: &Tensor) -> Result<()> {
        let tensor = self
            .get(name)
            .ok_or_else(|| TrainError::Reference(format!("no parameter is called `{name}`")))?;
        if !same_shape(tensor, values) {
            let (ours, theirs) = (tensor.size(), values.size());
            return Err(TrainError::Reference(format!("`{name}` has shape {ours:?}, not {theirs:?}")));
        }
        let values = values.f_reshape(tensor.size())?;
        let _no_grad = tch::no_grad_guard();
        Ok(tensor.shallow_clone().f_copy_(&values)?)
    }

    /// A copy of all values.
    pub fn snapshot(&self) -> ParameterValues {
        ParameterValues(self.entries.iter().map(|entry| entry.tensor.detach().copy()).collect())
    }

    /// Returns to a copy made earlier from these parameters.
    pub fn restore(&self, snapshot: &ParameterValues) {
        let _no_grad = tch::no_grad_guard();
        for (entry, values) in self.entries.iter().zip(&snapshot.0) {
            entry.tensor.shallow_clone().copy_(values);
        }
    }

    fn make(&self, name: &str, shape: &[i64], init: Initialisation) -> Tensor {
        let count = shape.iter().product::<i64>() as usize;
        let mut stream = RandomStream::new(self.seed, self.split, Purpose::Initialisation(name), 0, 0);
        let values: Vec<f64> = match init {
            Initialisation::Constant(value) => vec![value; count],
            Initialisation::Uniform(bound) => {
                (0..count).map(|_| (2.0 * stream.uniform() - 1.0) * bound).collect()
            }
            Initialisation::Normal(deviation) => {
                (0..count).map(|_| stream.standard_normal() * deviation).collect()
            }
        };
        Tensor::from_slice(&values).reshape(shape).to_kind(self.kind).to_device(self.device)
    }
}

/// Whether two tensors have the same shape but for axes of length 1, which the published program adds here and there.
pub(crate) fn same_shape(one: &Tensor, other: &Tensor) -> bool {
    let long = |tensor: &Tensor| tensor.size().into_iter().filter(|length| *length != 1).collect::<Vec<_>>();
    long(one) == long(other)
}

/// A place in the tree of parameter names.
#[derive(Debug)]
pub struct Scope<'a> {
    parameters: &'a mut Parameters,
    path: String,
}

impl Scope<'_> {
    /// The place called `name` below this one.
    pub fn child(&mut self, name: impl std::fmt::Display) -> Scope<'_> {
        let path = self.name(name);
        Scope { parameters: self.parameters, path }
    }

    /// The full name of something here.
    pub fn name(&self, name: impl std::fmt::Display) -> String {
        if self.path.is_empty() { name.to_string() } else { format!("{}.{name}", self.path) }
    }

    /// The full name of this place.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Makes a trainable parameter.
    pub fn parameter(&mut self, name: &str, shape: &[i64], init: Initialisation) -> Tensor {
        self.add(name, shape, init, true)
    }

    /// Makes a buffer: saved and restored, not trained.
    pub fn buffer(&mut self, name: &str, shape: &[i64], value: f64) -> Tensor {
        self.add(name, shape, Initialisation::Constant(value), false)
    }

    fn add(&mut self, name: &str, shape: &[i64], init: Initialisation, trainable: bool) -> Tensor {
        let name = self.name(name);
        let tensor = self.parameters.make(&name, shape, init).set_requires_grad(trainable);
        self.parameters.entries.push(Parameter { name, tensor: tensor.shallow_clone(), trainable });
        tensor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn initial_values_depend_on_seed_split_and_name_only() {
        let draw = |seed, first: &str| {
            let mut parameters = Parameters::new(seed, 0, Device::Cpu);
            let _ = parameters.root().child(first).parameter("weight", &[4], Initialisation::fan_in(4));
            let after =
                parameters.root().child("second").parameter("weight", &[3], Initialisation::Normal(0.1));
            Vec::<f32>::try_from(&after.detach()).unwrap()
        };
        assert_eq!(draw(1, "a"), draw(1, "b"), "what came before plays no role");
        assert_ne!(draw(1, "a"), draw(2, "a"));
    }

    #[test]
    fn initial_values_keep_their_bounds() {
        let mut parameters = Parameters::new(7, 0, Device::Cpu);
        let weight = parameters.root().parameter("weight", &[100, 16], Initialisation::fan_in(16));
        let most = weight.abs().max().double_value(&[]);
        assert!((0.24..0.25).contains(&most), "{most}");
        assert_eq!(parameters.count(), 1600);
    }

    #[test]
    fn a_snapshot_brings_back_parameters_and_buffers() {
        let mut parameters = Parameters::new(7, 0, Device::Cpu);
        let weight = parameters.root().parameter("weight", &[3], Initialisation::Normal(1.0));
        let mean = parameters.root().buffer("mean", &[3], 0.0);
        let before = Vec::<f32>::try_from(&weight.detach()).unwrap();
        let snapshot = parameters.snapshot();
        tch::no_grad(|| {
            let _ = weight.shallow_clone().fill_(9.0);
            let _ = mean.shallow_clone().fill_(9.0);
        });
        parameters.restore(&snapshot);
        assert_eq!(Vec::<f32>::try_from(&weight.detach()).unwrap(), before);
        assert_eq!(mean.sum(Kind::Float).double_value(&[]), 0.0);
    }
}
