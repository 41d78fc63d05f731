//! Where the time of a training epoch goes: persistence, message passing and dense products, each repeated by itself
//! on the batches of the epoch. Measured beside the training loop and not inside it, so that the loop stays free of
//! clocks; what is left is everything else (normalisation, activations, head, loss, optimiser).

use serde::Serialize;
use tch::{Kind, Tensor};
use togl_sweeps::TrialConfig;
use togl_sweeps::trial::Backbone;
use togl_topology::IndexTables;

use crate::batch::Batch;
use crate::error::{Result, TrainError};
use crate::native;

/// Parts of an epoch as shares of the whole; they need not add up to one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Shares {
    /// Persistence of every graph under every filtration.
    pub persistence: f64,
    /// Sums over neighbours, forward and backward; 0 for attention and gates, which have no single product for it.
    pub message_passing: f64,
    /// Dense products of the graph layers, forward and backward.
    pub matmul: f64,
}

/// Repeats each part once on all batches and divides by the seconds of a whole epoch.
pub(crate) fn measure<'a>(
    trial: &TrialConfig,
    batches: impl Iterator<Item = &'a Batch> + Clone,
    epoch: f64,
    clock: &dyn Fn() -> f64,
) -> Result<Shares> {
    let share = |part: &dyn Fn(&Batch) -> Result<()>| -> Result<f64> {
        let begun = clock();
        batches.clone().try_for_each(part)?;
        Ok(if epoch > 0.0 { (clock() - begun) / epoch } else { 0.0 })
    };
    Ok(Shares {
        persistence: share(&|batch| persistence(trial, batch))?,
        message_passing: share(&|batch| message_passing(trial, batch))?,
        matmul: share(&|batch| matmul(trial, batch))?,
    })
}

fn persistence(trial: &TrialConfig, batch: &Batch) -> Result<()> {
    let Some(topology) = batch.topology.as_ref().filter(|_| trial.togl && !trial.static_variant) else {
        return Ok(());
    };
    let filtrations = trial.num_filtrations as usize;
    // Distinct values in no particular order, as a filtration network gives them.
    let values: Vec<f32> =
        (0..filtrations * topology.vertices()).map(|i| (i as f32 * 0.618_034).fract()).collect();
    IndexTables::default()
        .compute(topology, &values, filtrations)
        .map_err(|error| TrainError::Config(error.to_string()))
}

fn message_passing(trial: &TrialConfig, batch: &Batch) -> Result<()> {
    let Some(matrix) = batch.normalised.as_ref().or(batch.neighbours.as_ref()) else { return Ok(()) };
    let states = node_states(trial, batch)?;
    let gradient = states.f_ones_like()?;
    for _ in 0..trial.graph_layers() {
        native::backward(&matrix.product(&states)?, &gradient)?;
    }
    Ok(())
}

fn matmul(trial: &TrialConfig, batch: &Batch) -> Result<()> {
    let states = node_states(trial, batch)?;
    let width = i64::from(trial.hidden_dim);
    let gradient = states.f_ones_like()?;
    let weight = Tensor::f_ones([width, width], (Kind::Float, states.device()))?.set_requires_grad(true);
    let products = match trial.model {
        Backbone::Gin | Backbone::Gfl => 2,
        Backbone::GatedGcn => 4,
        _ => 1,
    };
    for _ in 0..products * trial.graph_layers() {
        native::backward(&native::dense(&states, &weight, None, false)?, &gradient)?;
    }
    Ok(())
}

fn node_states(trial: &TrialConfig, batch: &Batch) -> Result<Tensor> {
    let shape = [batch.nodes(), i64::from(trial.hidden_dim)];
    Ok(Tensor::f_ones(shape, (Kind::Float, batch.features.device()))?.set_requires_grad(true))
}
