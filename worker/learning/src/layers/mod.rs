//! The layers, one a file. A layer is built from a [`Scope`](crate::parameters::Scope), which names its parameters,
//! and maps tensors to tensors; it owns no random numbers, no training loop and no data.

pub mod batch_norm;
pub mod coordinates;
pub mod deepset;
pub mod diagram_readout;
pub mod dropout;
pub mod filtration;
pub mod fixed_filtration;
pub mod gat;
pub mod gated_gcn;
pub mod gcn;
pub mod gin;
pub mod graph_layer;
pub mod head;
pub mod linear;
pub mod togl;

use crate::batch::{Batch, DrawKey};
use crate::error::{Result, TrainError};

/// One walk of one batch through a network.
#[derive(Debug, Clone, Copy)]
pub struct Pass<'a> {
    /// The batch.
    pub batch: &'a Batch,
    /// Batch statistics and dropout, or running statistics and none.
    pub training: bool,
    /// Coordinates of every random draw in it.
    pub draws: DrawKey,
}

/// A part of a batch that a layer cannot do without.
fn part<'a, T>(part: &'a Option<T>, what: &str) -> Result<&'a T> {
    part.as_ref().ok_or_else(|| TrainError::Config(format!("batch has no {what}")))
}
