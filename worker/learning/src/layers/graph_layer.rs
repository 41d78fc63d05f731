//! One graph layer of the backbone: convolution, batch norm, activation, residual, dropout, in this order.
//! X `[N, d]` to `[N, d]`. Owns the rules that differ between backbones (GIN has no activation, only GCN can do
//! without the residual) and what is special about the last layer.

use tch::Tensor;
use togl_sweeps::trial::{Backbone, LastActivation, LastHeads, TrialConfig};

use crate::error::Result;
use crate::layers::batch_norm::{BatchNorm, Then};
use crate::layers::{Pass, dropout::Dropout, gat::Gat, gated_gcn::GatedGcn, gcn::Gcn, gin::Gin};
use crate::parameters::Scope;

/// The convolution of a backbone.
#[derive(Debug)]
enum Convolution {
    Gcn(Gcn),
    Gin(Gin),
    Gat(Gat),
    GatedGcn(GatedGcn),
}

/// One layer of the backbone.
#[derive(Debug)]
pub struct GraphLayer {
    convolution: Convolution,
    norm: Option<BatchNorm>,
    relu: bool,
    residual: bool,
    dropout: Dropout,
}

/// Width of the node states of a trial's network.
pub fn state_width(trial: &TrialConfig) -> i64 {
    let heads = if trial.model == Backbone::Gat { trial.num_heads } else { 1 };
    i64::from(trial.hidden_dim) * i64::from(heads)
}

impl GraphLayer {
    /// Makes `conv.*` and `norm.*`. The last layer has no dropout and, unless the trial says so, no activation.
    pub fn new(scope: &mut Scope<'_>, trial: &TrialConfig, last: bool) -> Self {
        let width = state_width(trial);
        let dropout = if last { 0.0 } else { trial.dropout_p };
        let conv = &mut scope.child("conv");
        let isomorphism = matches!(trial.model, Backbone::Gin | Backbone::Gfl);
        let convolution = match trial.model {
            Backbone::Gcn => Convolution::Gcn(Gcn::new(conv, width, width)),
            // Learned filtrations come from isomorphism layers; the others have no graph layers at all.
            Backbone::Gin
            | Backbone::Gfl
            | Backbone::PersLay
            | Backbone::Wl
            | Backbone::WlOa
            | Backbone::Ph => Convolution::Gin(Gin::new(conv, width)),
            Backbone::GatedGcn => Convolution::GatedGcn(GatedGcn::new(conv, width)),
            Backbone::Gat => {
                let heads =
                    if last && trial.gat_last == LastHeads::Single { 1 } else { trial.num_heads.into() };
                Convolution::Gat(Gat::new(conv, width, heads, width / heads, dropout))
            }
        };
        Self {
            convolution,
            norm: trial.batch_norm.then(|| BatchNorm::new(&mut scope.child("norm"), width)),
            relu: !(isomorphism || last && trial.activation_last == LastActivation::Identity),
            residual: trial.model != Backbone::Gcn || trial.residual,
            dropout: Dropout::new(scope.path(), dropout),
        }
    }

    /// One round of message passing.
    pub fn forward(&self, x: &Tensor, pass: &Pass<'_>) -> Result<Tensor> {
        if let (Convolution::Gcn(layer), Some(norm)) = (&self.convolution, &self.norm)
            && let Some(y) = layer.normed(x, norm, (self.relu, self.residual), pass)?
        {
            return Ok(self.dropout.forward(y, pass));
        }
        let y = match &self.convolution {
            Convolution::Gcn(layer) => layer.forward(x, pass)?,
            Convolution::Gin(layer) => layer.forward(x, pass)?,
            Convolution::Gat(layer) => layer.forward(x, pass)?,
            Convolution::GatedGcn(layer) => layer.forward(x, pass)?,
        };
        let residual = self.residual.then_some(x);
        let y = match &self.norm {
            Some(norm) => norm.forward(&y, pass.training, Then { relu: self.relu, residual })?,
            None => {
                let y = if self.relu { y.relu() } else { y };
                residual.map_or_else(|| y.shallow_clone(), |x| &y + x)
            }
        };
        Ok(self.dropout.forward(y, pass))
    }
}
