//! One trial: every setting with its frozen default, which combinations make sense, and what the network is called.
//! A [`TrialConfig`] is always complete. **Never change a default here**: identities leave defaults out, so another
//! default would be another training under an old name; add a preset instead. Identity itself is in `identity`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::baselines;
use crate::nearest;
use crate::settings::{self, SETTINGS};

use crate::identity::CANONICAL_VERSION;
pub use crate::identity::NUMERICS;
pub use crate::words::{
    Aggregation, Backbone, DeepsetType, Features, LastActivation, LastEpoch, LastHeads, Placement, Position,
    WlLabels,
};

/// Every setting of a trial. The field names are the keys of a sweep file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TrialConfig {
    /// Name of the data set; the one setting without a default.
    pub dataset: String,
    /// Seed of generated data sets.
    pub data_seed: u64,
    /// What the nodes know.
    pub features: Features,

    /// The graph network, or the method that it is compared with.
    pub model: Backbone,
    /// Graph layers; for `wl` and `wl-oa` rounds of refinement.
    pub depth: u32,
    /// Width of the node states (per head for `gat`).
    pub hidden_dim: u32,
    /// Attention heads (`gat`).
    pub num_heads: u32,
    /// Whether a graph layer adds its input to its output (`gcn`; the others always do).
    pub residual: bool,
    /// Whether graph layers normalise over the batch.
    pub batch_norm: bool,
    /// Dropout after every layer.
    pub dropout_p: f64,
    /// Activation of the last graph layer.
    pub activation_last: LastActivation,
    /// Heads of the last attention layer (`gat`).
    pub gat_last: LastHeads,

    /// Whether the network has a topological layer.
    pub togl: bool,
    /// Graph layers before it.
    pub togl_position: Position,
    /// Whether it comes in addition or in place of a graph layer.
    pub placement: Placement,
    /// DeepSet version instead of coordinate functions.
    pub deepset: bool,
    /// The variant without topology: same parameters, static pairs.
    #[serde(rename = "static")]
    pub static_variant: bool,
    /// Whether cycles (dimension 1) are used too.
    pub dim1: bool,
    /// Number of filtrations.
    pub num_filtrations: u32,
    /// Hidden width of the filtration network.
    pub filtration_hidden: u32,
    /// Units of each coordinate function (coordinate version).
    pub num_coord_funs: u32,
    /// Tanh on the filtration values (coordinate version).
    pub tanh_filtrations: bool,
    /// One filtration network with many outputs, or many with one (coordinate version).
    pub share_filtration_parameters: bool,
    /// Residual connection and batch norm, or concatenation.
    pub residual_and_bn: bool,
    /// Order of activation and batch norm.
    pub swap_bn_order: bool,
    /// Shape of the dimension-0 DeepSet (DeepSet version).
    pub deepset_type: DeepsetType,
    /// How the DeepSet aggregates (DeepSet version).
    pub aggregation_fn: Aggregation,
    /// Inner width of the dimension-0 DeepSet (DeepSet version).
    pub dim0_out_dim: u32,
    /// Width of the dimension-1 graph vector (DeepSet version).
    pub dim1_out_dim: u32,
    /// Give the dimension-1 vector to the nodes instead of the classifier (DeepSet version).
    pub dist_dim1: bool,

    /// Graphs in a batch.
    pub batch_size: u32,
    /// Initial learning rate.
    pub lr: f64,
    /// Epochs without improvement before the learning rate is halved.
    pub lr_patience: u32,
    /// Training stops when the learning rate falls below this.
    pub lr_min: f64,
    /// Weight decay of Adam.
    pub weight_decay: f64,
    /// Training stops after this many epochs.
    pub max_epochs: u32,
    /// What the epoch in which training stops does.
    pub last_epoch: LastEpoch,

    /// Labels that refinement starts from (`wl`, `wl-oa`).
    pub wl_labels: WlLabels,
    /// Whether inner cross-validation chooses among 0 to `depth` rounds (`wl`, `wl-oa`).
    pub choose_rounds: bool,
    /// Whether the last round is left out, as in the published runs (`wl`).
    pub as_published: bool,
    /// Smallest cost of the support vector machine (kernels).
    pub svm_c_min: f64,
    /// Largest cost of the support vector machine (kernels).
    pub svm_c_max: f64,
    /// Folds of the inner cross-validation (kernels).
    pub inner_folds: u32,
    /// Stratified folds that each training seed draws anew, in place of the data set's own splits; 0 for those
    /// (kernels).
    pub outer_folds: u32,
}

impl Default for TrialConfig {
    /// The frozen defaults. The data set has none.
    #[expect(clippy::too_many_lines, reason = "one line for each setting")]
    fn default() -> Self {
        Self {
            dataset: String::new(),
            data_seed: 0,
            features: Features::Original,
            model: Backbone::Gcn,
            depth: 4,
            hidden_dim: 146,
            num_heads: 1,
            residual: true,
            batch_norm: true,
            dropout_p: 0.0,
            activation_last: LastActivation::Identity,
            gat_last: LastHeads::Single,
            togl: false,
            togl_position: Position::After(1),
            placement: Placement::Add,
            deepset: false,
            static_variant: false,
            dim1: true,
            num_filtrations: 8,
            filtration_hidden: 24,
            num_coord_funs: 3,
            tanh_filtrations: false,
            share_filtration_parameters: true,
            residual_and_bn: true,
            swap_bn_order: false,
            deepset_type: DeepsetType::Full,
            aggregation_fn: Aggregation::Mean,
            dim0_out_dim: 32,
            dim1_out_dim: 32,
            dist_dim1: false,
            batch_size: 32,
            lr: 1e-3,
            lr_patience: 10,
            lr_min: 1e-5,
            weight_decay: 0.0,
            max_epochs: 1000,
            last_epoch: LastEpoch::Full,
            wl_labels: WlLabels::Degree,
            choose_rounds: false,
            as_published: false,
            svm_c_min: 1e-3,
            svm_c_max: 1e3,
            inner_folds: 5,
            outer_folds: 0,
        }
    }
}

/// A setting that cannot be, by name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting `{name}`: {reason}")]
pub struct SettingError {
    /// The key.
    pub name: String,
    /// What is wrong with it and what would be right.
    pub reason: String,
}

impl SettingError {
    pub(crate) fn new(name: &str, reason: impl Into<String>) -> Self {
        Self { name: name.to_owned(), reason: reason.into() }
    }
}

/// The names of all settings, in the order of [`TrialConfig`].
pub fn setting_names() -> Vec<String> {
    settings::names().map(str::to_owned).collect()
}

/// Checks one value on its own: the name is known, the type, the word and the range fit.
pub fn check_setting(name: &str, value: &Value) -> Result<(), SettingError> {
    find_setting(name)?.check(value)
}

fn find_setting(name: &str) -> Result<&'static settings::Setting, SettingError> {
    settings::find(name).ok_or_else(|| {
        let hint = nearest::hint(name, settings::names());
        SettingError::new(name, format!("no such setting; {hint}"))
    })
}

impl TrialConfig {
    /// A complete trial from some settings; the rest take their defaults.
    pub fn from_settings(settings: &Map<String, Value>) -> Result<Self, SettingError> {
        let mut config = Self::default();
        for (name, value) in settings {
            let setting = find_setting(name)?;
            setting.check(value)?;
            (setting.set)(&mut config, value);
        }
        config.check()?;
        Ok(config)
    }

    /// Reads the canonical JSON that travels with a lease.
    pub fn from_canonical(text: &str) -> Result<Self, SettingError> {
        let unreadable = |reason: String| SettingError::new("canonical form", reason);
        let value: Value = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
        let Value::Object(mut settings) = value else {
            return Err(unreadable("not a JSON object".to_owned()));
        };
        let version = settings.remove("canonical").and_then(|v| v.as_u64());
        let numerics = settings.remove("numerics").and_then(|v| v.as_u64());
        if version != Some(CANONICAL_VERSION.into()) || numerics != Some(NUMERICS.into()) {
            return Err(unreadable(format!(
                "made for another version (canonical {version:?}, numerics {numerics:?}); \
                 this program has canonical {CANONICAL_VERSION}, numerics {NUMERICS}"
            )));
        }
        Self::from_settings(&settings)
    }

    /// Refuses values out of range and combinations that cannot be built.
    pub fn check(&self) -> Result<(), SettingError> {
        SETTINGS.iter().try_for_each(|setting| setting.check_range(self))?;
        self.check_combination()
    }

    /// Refuses combinations that cannot be built; every value is known to be in its range.
    pub(crate) fn check_combination(&self) -> Result<(), SettingError> {
        if self.dataset.is_empty() {
            return Err(SettingError::new("dataset", "missing; name a data set, such as `necklaces`"));
        }
        baselines::check(self)?;
        let room = match self.placement {
            Placement::Add => self.depth,
            Placement::Replace if self.depth == 0 && self.togl => {
                return Err(SettingError::new("placement", "`replace` needs a depth of at least 1"));
            }
            Placement::Replace => self.depth.saturating_sub(1),
        };
        match self.togl_position {
            Position::After(layers) if self.togl && layers > room => Err(SettingError::new(
                "togl_position",
                format!(
                    "{layers} is beyond the last place; with depth {} use 0 to {room} or `last`",
                    self.depth
                ),
            )),
            _ if self.togl && self.dist_dim1 && !self.deepset => {
                Err(SettingError::new("dist_dim1", "only the DeepSet version has it; set `deepset: true`"))
            }
            _ => Ok(()),
        }
    }

    /// Graph layers before TOGL, and after it.
    pub fn layers_around_togl(&self) -> (u32, u32) {
        let layers = self.graph_layers();
        let before = match self.togl_position {
            Position::After(before) => before.min(layers),
            Position::Last => layers,
        };
        (before, layers - before)
    }

    /// Graph layers that the network really has.
    pub fn graph_layers(&self) -> u32 {
        if !self.model.has_node_states() {
            return 0;
        }
        let replaced = self.has_togl() && self.placement == Placement::Replace;
        self.depth.saturating_sub(replaced.into())
    }

    /// Whether the network has a topological layer: it is asked for, and there is a network that can have it.
    pub fn has_togl(&self) -> bool {
        self.togl && self.model.takes_togl()
    }

    /// Rounds of label refinement: labels of rounds 0 to this one are compared.
    pub fn rounds(&self) -> u32 {
        let left_out = self.as_published && self.model == Backbone::Wl;
        self.depth.saturating_sub(left_out.into())
    }

    /// What the network is called, after what was built: `GCN-4`, `GCN-4-TOGL-1 (DeepSet)`.
    pub fn method(&self) -> String {
        let backbone = match self.model {
            Backbone::Gcn => "GCN",
            Backbone::Gin => "GIN",
            Backbone::Gat => "GAT",
            Backbone::GatedGcn => "GatedGCN",
            Backbone::Gfl => "GFL",
            Backbone::Wl | Backbone::WlOa | Backbone::Ph | Backbone::PersLay => return baselines::name(self),
        };
        let plain = format!("{backbone}-{}", self.graph_layers());
        if !self.has_togl() {
            return plain;
        }
        let marks: Vec<&str> =
            [(self.deepset, "DeepSet"), (self.static_variant, "static"), (!self.dim1, "dim 0")]
                .into_iter()
                .filter_map(|(on, mark)| on.then_some(mark))
                .collect();
        let marks = if marks.is_empty() { String::new() } else { format!(" ({})", marks.join(", ")) };
        format!("{plain}-TOGL-1{marks}")
    }

    /// One setting by name, as plain text for tables; the derived name `method` too.
    pub fn show(&self, name: &str) -> Option<String> {
        if name == "method" {
            return Some(self.method());
        }
        settings::find(name).map(|setting| match setting.value(self) {
            Value::String(text) => text,
            other => other.to_string(),
        })
    }
}

#[cfg(test)]
#[path = "trial_tests.rs"]
mod tests;
