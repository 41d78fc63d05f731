//! What a topological layer learnt: its filtration values on the vertices of chosen graphs, computed by the best
//! network of a checkpoint or model exactly as the final test does it. Owns the form in which they are written; must
//! not train.

use serde::Serialize;
use tch::Kind;
use togl_data::{Dataset, Split, Stage};

use crate::batch::{BatchNeeds, Collator, DrawKey};
use crate::checkpoint::Checkpoint;
use crate::device::Device;
use crate::error::{Result, TrainError, guard};
use crate::layers::Pass;
use crate::model::{Model, Shape};
use crate::parameters::Parameters;

/// The version of [`Filtrations`] that this program writes.
pub const FILTRATIONS_VERSION: u32 = 1;

/// Learnt filtrations of some graphs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Filtrations {
    /// Version of this form.
    pub version: u32,
    /// Name of the data set.
    pub dataset: String,
    /// Its digest.
    pub data_digest: String,
    /// What the network is called.
    pub method: String,
    /// `TRIAL/split/seed`.
    pub fold: String,
    /// Epoch of the network, from 0: the one with the lowest validation loss.
    pub best_epoch: u32,
    /// Filtrations a graph.
    pub num_filtrations: usize,
    /// Smallest value of each filtration over all graphs below.
    pub smallest: Vec<f32>,
    /// Largest value of each filtration over all graphs below.
    pub largest: Vec<f32>,
    /// The graphs, in the order asked for.
    pub graphs: Vec<GraphFiltrations>,
}

/// Learnt filtrations of one graph.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GraphFiltrations {
    /// Position in the data set, from 0.
    pub graph: u32,
    /// Part of the split: `train`, `validation`, `test`, or `none`.
    pub part: &'static str,
    /// The class, or one class a vertex for node tasks.
    pub labels: Vec<u32>,
    /// Number of vertices.
    pub vertices: usize,
    /// Undirected edges, as persistence sees them, in the order of the data set.
    pub edges: Vec<(u32, u32)>,
    /// Edges at each vertex; a self-loop counts twice.
    pub degrees: Vec<u32>,
    /// One list a filtration, one value a vertex.
    pub filtrations: Vec<Vec<f32>>,
}

/// Computes the filtration values of `graphs` with the best network of `checkpoint`.
///
/// # Errors
/// If the network has no topological layer, the data set is not the one it was trained on, or a graph does not exist.
pub fn filtrations(
    checkpoint: &Checkpoint,
    dataset: &Dataset,
    graphs: &[u32],
    device: Device,
) -> Result<Filtrations> {
    let header = &checkpoint.header;
    let trial = checkpoint.trial()?;
    if !trial.togl {
        let message = format!("{} has no topological layer, so it learnt no filtrations", trial.method());
        return Err(TrainError::Config(message));
    }
    if dataset.digest().to_string() != header.data_digest {
        let (name, found, needed) = (dataset.name(), dataset.digest(), &header.data_digest);
        return Err(TrainError::Data(format!(
            "{name} has digest {found}, the network was trained on {needed}"
        )));
    }
    if let Some(missing) = graphs.iter().find(|graph| **graph as usize >= dataset.graph_count()) {
        let last = dataset.graph_count().saturating_sub(1);
        return Err(TrainError::Data(format!("{} has no graph {missing}; use 0 to {last}", dataset.name())));
    }
    let split = dataset.split(header.fold.split.into())?;
    guard(|| {
        let device = device.open()?;
        let mut parameters = Parameters::new(header.fold.seed, header.fold.split.into(), device);
        let model = Model::new(&trial, Shape::of(dataset, &trial), &mut parameters)?;
        parameters.restore(&checkpoint.best(&parameters)?);
        let collator = Collator::new(dataset, BatchNeeds::of(&trial), device);
        let look = |graph: &u32| look(&model, &collator, checkpoint, &split, *graph);
        let graphs = graphs.iter().map(look).collect::<Result<Vec<_>>>()?;
        let fold = |pick: fn(f32, f32) -> f32| range(&graphs, trial.num_filtrations as usize, pick);
        Ok(Filtrations {
            version: FILTRATIONS_VERSION,
            dataset: dataset.name().to_owned(),
            data_digest: header.data_digest.clone(),
            method: trial.method(),
            fold: header.fold.to_string(),
            best_epoch: checkpoint.best_epoch(),
            num_filtrations: trial.num_filtrations as usize,
            smallest: fold(f32::min),
            largest: fold(f32::max),
            graphs,
        })
    })
}

fn look(
    model: &Model,
    collator: &Collator<'_>,
    checkpoint: &Checkpoint,
    split: &Split,
    graph: u32,
) -> Result<GraphFiltrations> {
    let _no_grad = tch::no_grad_guard();
    let fold = checkpoint.header.fold;
    let draws = DrawKey { seed: fold.seed, split: fold.split.into(), stage: Stage::Test, epoch: 0, step: 0 };
    let batch = collator.collate(&[graph], draws)?;
    let values = model.filtrations(&Pass { batch: &batch, training: false, draws })?;
    let values = values.ok_or_else(|| TrainError::Config("no topological layer".to_owned()))?;
    let rows = values.transpose(0, 1).to_kind(Kind::Float).to_device(tch::Device::Cpu);
    let filtrations = (0..rows.size()[0])
        .map(|index| Ok(Vec::<f32>::try_from(rows.get(index).contiguous())?))
        .collect::<Result<Vec<_>>>()?;
    let facts = collator.dataset().graph(graph as usize);
    let edges: Vec<(u32, u32)> = facts.undirected_edges().collect();
    let mut degrees = vec![0; facts.node_count];
    edges.iter().flat_map(|(u, v)| [u, v]).for_each(|vertex| degrees[*vertex as usize] += 1);
    Ok(GraphFiltrations {
        graph,
        part: part_of(split, graph),
        labels: facts.labels.to_vec(),
        vertices: facts.node_count,
        edges,
        degrees,
        filtrations,
    })
}

fn part_of(split: &Split, graph: u32) -> &'static str {
    let parts = [("train", &split.train), ("validation", &split.validation), ("test", &split.test)];
    parts.into_iter().find(|(_, members)| members.contains(&graph)).map_or("none", |(name, _)| name)
}

/// Smallest or largest value of each filtration.
fn range(graphs: &[GraphFiltrations], count: usize, pick: fn(f32, f32) -> f32) -> Vec<f32> {
    let of = |index: usize| {
        let values = graphs.iter().flat_map(|graph| graph.filtrations[index].iter().copied());
        values.reduce(pick).unwrap_or(0.0)
    };
    (0..count).map(of).collect()
}
