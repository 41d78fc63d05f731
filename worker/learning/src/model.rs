//! Assembles the network of a trial: embedding, graph layers before TOGL, TOGL, graph layers after it, head.
//! Two kinds of networks read persistence diagrams instead of pooling: GFL those of a filtration that is learned on the
//! node states, PersLay those of fixed filtrations, whose vector it embeds in place of node features.
//! Owns the order of the parts; what each part does is in `layers`.

use tch::Tensor;
use togl_data::{Dataset, Task};
use togl_sweeps::TrialConfig;
use togl_sweeps::trial::Backbone;

use crate::batch::BatchNeeds;
use crate::error::{Result, TrainError};
use crate::launches;
use crate::layers::diagram_readout::{DiagramReadout, readout_width};
use crate::layers::graph_layer::{GraphLayer, state_width};
use crate::layers::{Pass, head::Head, linear::Linear, togl::Togl};
use crate::parameters::Parameters;

/// What a network has to fit to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Features a node.
    pub features: i64,
    /// Classes.
    pub classes: i64,
    /// One prediction a node instead of one a graph.
    pub node_task: bool,
}

impl Shape {
    /// The shape that a trial's network needs for this data set.
    pub fn of(dataset: &Dataset, trial: &TrialConfig) -> Self {
        Self {
            features: BatchNeeds::of(trial).feature_width(dataset) as i64,
            classes: i64::from(dataset.classes()),
            node_task: dataset.task() == Task::NodeClassification,
        }
    }
}

/// A network.
#[derive(Debug)]
pub struct Model {
    embedding: Linear,
    before: Vec<GraphLayer>,
    togl: Option<Togl>,
    after: Vec<GraphLayer>,
    readout: Option<DiagramReadout>,
    head: Head,
}

impl Model {
    /// Builds the network of `trial`; its parameters are made in `parameters`.
    pub fn new(trial: &TrialConfig, shape: Shape, parameters: &mut Parameters) -> Result<Self> {
        trial.check().map_err(|error| TrainError::Config(error.to_string()))?;
        if trial.model.is_kernel() {
            let text = format!("`{}` is a kernel and has no network", trial.model.as_str());
            return Err(TrainError::Config(text));
        }
        if shape.node_task && trial.model.reads_diagrams() {
            let text = format!("`{}` tells classes of graphs apart, not nodes", trial.model.as_str());
            return Err(TrainError::Config(text));
        }
        if shape.features == 0 {
            return Err(TrainError::Data("the nodes have no features".to_owned()));
        }
        let width = state_width(trial);
        let layers = trial.graph_layers();
        let before = if trial.togl { trial.layers_around_togl().0 } else { layers };
        let mut root = parameters.root();
        let embedding = Linear::new(&mut root.child("embedding"), embedded_width(trial, shape), width);
        let mut layer =
            |index: u32| GraphLayer::new(&mut root.child("layers").child(index), trial, index + 1 == layers);
        let (first, second) =
            ((0..before).map(&mut layer).collect(), (before..layers).map(&mut layer).collect());
        let togl = trial.togl.then(|| Togl::new(&mut root.child("togl"), trial, width));
        let reads = trial.model.reads_diagrams();
        let readout = reads.then(|| DiagramReadout::new(&mut root.child("readout"), trial, width));
        let head = &mut root.child("head");
        let head = match trial.model {
            Backbone::Gfl => Head::on_graphs(head, trial, readout_width(trial), shape.classes),
            Backbone::PersLay => Head::on_graphs(head, trial, width, shape.classes),
            _ => Head::new(head, trial, shape.classes, shape.node_task),
        };
        Ok(Self { embedding, before: first, togl, after: second, readout, head })
    }

    /// The filtration values of the nodes, `[N, k]`; none without a topological layer.
    pub fn filtrations(&self, pass: &Pass<'_>) -> Result<Option<Tensor>> {
        let Some(togl) = &self.togl else { return Ok(None) };
        togl.filtrations(&self.states_before_togl(pass)?).map(Some)
    }

    fn states_before_togl(&self, pass: &Pass<'_>) -> Result<Tensor> {
        launches::part("embedding");
        let mut x = self.embedding.forward(&pass.batch.features)?;
        for (index, layer) in self.before.iter().enumerate() {
            launches::part(format_args!("layer {index}"));
            x = layer.forward(&x, pass)?;
        }
        Ok(x)
    }

    /// Class scores, one row a graph (or a node for node tasks).
    pub fn forward(&self, pass: &Pass<'_>) -> Result<Tensor> {
        if let Some(fixed) = self.readout.as_ref().filter(|readout| readout.is_fixed()) {
            let vectors = fixed.forward(&pass.batch.features, pass)?;
            return self.head.forward(&self.embedding.forward_relu(&vectors)?, None, pass);
        }
        let mut x = self.states_before_togl(pass)?;
        let mut graph = None;
        if let Some(togl) = &self.togl {
            (x, graph) = togl.forward(&x, pass)?;
        }
        for (index, layer) in self.after.iter().enumerate() {
            launches::part(format_args!("layer {}", self.before.len() + index));
            x = layer.forward(&x, pass)?;
        }
        if let Some(readout) = &self.readout {
            launches::part("readout");
            x = readout.forward(&x, pass)?;
        }
        launches::part("head");
        self.head.forward(&x, graph.as_ref(), pass)
    }
}

/// Width of what the embedding takes: node features, or the diagrams of fixed filtrations.
fn embedded_width(trial: &TrialConfig, shape: Shape) -> i64 {
    if trial.model == Backbone::PersLay { readout_width(trial) } else { shape.features }
}

#[cfg(test)]
#[path = "model_tests.rs"]
mod tests;
