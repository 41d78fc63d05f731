//! When settings have an effect: what a trial must have for it, in words and as a test. Owns the words of the messages
//! that say so; which setting needs what is in the table of settings.

use super::{Needs, TrialConfig};
use crate::words::{Backbone, DeepsetType};

fn deepset(trial: &TrialConfig) -> bool {
    trial.has_togl() && trial.deepset
}

macro_rules! needs {
    ($($name:ident = $words:literal, $holds:expr;)+) => {
        $(pub(crate) const $name: Needs = Needs { words: $words, holds: $holds };)+
    };
}

needs! {
    NOTHING = "", |_| true;
    NETWORK = "a network, such as `model: gcn`, and not a kernel (`wl`, `wl-oa`, `ph`)",
        |trial| !trial.model.is_kernel();
    NODE_STATES = "a network whose nodes have states (every `model` but `perslay` and the kernels)",
        |trial| trial.model.has_node_states();
    BACKBONE = "`model: gcn`, `gin`, `gat` or `gatedgcn`", |trial| trial.model.takes_togl();
    DEPTH = "graph layers or rounds of refinement (every `model` but `ph` and `perslay`)",
        |trial| trial.model.has_node_states() || trial.model.refines_labels();
    KERNEL = "`model: wl`, `wl-oa` or `ph`", |trial| trial.model.is_kernel();
    REFINEMENT = "`model: wl` or `wl-oa`", |trial| trial.model.refines_labels();
    WL = "`model: wl`", |trial| trial.model == Backbone::Wl;
    GAT = "`model: gat`", |trial| trial.model == Backbone::Gat;
    GCN = "`model: gcn`", |trial| trial.model == Backbone::Gcn;
    LAYERS = "at least one graph layer", |trial| trial.graph_layers() > 0;
    TOGL = "`togl: true`", |trial| trial.has_togl();
    DIAGRAMS = "`togl: true`, or `model: gfl` or `perslay`",
        |trial| trial.has_togl() || trial.model.reads_diagrams();
    DIAGRAM_COORDINATES = "`togl: true` and `deepset: false`, or `model: gfl` or `perslay`",
        |trial| (trial.has_togl() && !trial.deepset) || trial.model.reads_diagrams();
    TOGL_CYCLES = "`togl: true` and `dim1: true`", |trial| trial.has_togl() && trial.dim1;
    TOGL_RESIDUAL = "`togl: true` and `residual_and_bn: true`",
        |trial| trial.has_togl() && trial.residual_and_bn;
    COORDINATES = "`togl: true` and `deepset: false`", |trial| trial.has_togl() && !trial.deepset;
    DEEPSET = "`togl: true` and `deepset: true`", deepset;
    DEEPSET_INNER = "`togl: true`, `deepset: true` and a `deepset_type` other than `linear` (or `residual_and_bn: false`)",
        |trial| deepset(trial) && !(trial.deepset_type == DeepsetType::Linear && trial.residual_and_bn);
    DEEPSET_CYCLES = "`togl: true`, `deepset: true` and `dim1: true`", |trial| deepset(trial) && trial.dim1;
}
