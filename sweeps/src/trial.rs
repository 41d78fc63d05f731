//! One hyperparameter setting: every setting with its frozen default, which combinations make sense, and the
//! identity of a trial.
//!
//! A [`TrialConfig`] is always complete. Its identity leaves out settings that equal their frozen default and
//! settings that have no effect (a plain GCN has no filtrations), so adding a setting re-hashes nothing as long
//! as its default means "as before". **Never change a default here**: add a preset instead.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::TrialId;
use crate::nearest;

/// Part of every trial's identity: raised whenever any trained number changes, so that old results are not
/// mixed with new ones.
pub const NUMERICS: u32 = 1;

/// Version of the canonical form that is hashed.
const CANONICAL_VERSION: u32 = 1;

/// Defines a setting that takes one of a few words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// The word that a sweep file uses.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }
    };
}

words!(
    /// The graph network that TOGL is added to.
    Backbone {
        /// Graph convolution.
        Gcn = "gcn",
        /// Graph isomorphism network.
        Gin = "gin",
        /// Graph attention.
        Gat = "gat",
        /// Gated graph convolution.
        GatedGcn = "gatedgcn",
    }
);
words!(
    /// What the nodes know.
    Features {
        /// The data set's own node features.
        Original = "original",
        /// Structure only: fresh standard normal features at every look.
        Random = "random",
    }
);
words!(
    /// How the DeepSet version embeds dimension 0.
    DeepsetType {
        /// Two equivariant layers.
        Full = "full",
        /// One equivariant layer.
        Shallow = "shallow",
        /// A linear map.
        Linear = "linear",
    }
);
words!(
    /// How a DeepSet looks at the other elements of its graph.
    Aggregation {
        /// Their mean.
        Mean = "mean",
        /// Their maximum.
        Max = "max",
        /// Their sum.
        Sum = "sum",
    }
);
words!(
    /// How TOGL enters the network.
    Placement {
        /// In addition to `depth` graph layers.
        Add = "add",
        /// In place of one of them.
        Replace = "replace",
    }
);
words!(
    /// Activation of the last graph layer.
    LastActivation {
        /// None.
        Identity = "identity",
        /// As the other layers.
        Relu = "relu",
    }
);
words!(
    /// Heads of the last attention layer.
    LastHeads {
        /// One head of full width.
        Single = "single",
        /// As the other layers.
        Concat = "concat",
    }
);
words!(
    /// What the epoch in which training stops does.
    LastEpoch {
        /// There is none: training stops at once.
        Full = "full",
        /// It trains exactly one mini-batch, as the published runs did.
        OneBatch = "one-batch",
    }
);

/// Where TOGL stands among the graph layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Position {
    /// After this many graph layers; 0 is directly on the embedding.
    After(u32),
    /// After the last layer.
    #[serde(with = "last_word")]
    Last,
}

mod last_word {
    //! (De)serialises the one word `last`.
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("last")
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
        let text = String::deserialize(deserializer)?;
        if text == "last" { Ok(()) } else { Err(D::Error::custom("expected a number or `last`")) }
    }
}

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

    /// The graph network.
    pub model: Backbone,
    /// Graph layers.
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
}

impl Default for TrialConfig {
    /// The frozen defaults. The data set has none.
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
    fn new(name: &str, reason: impl Into<String>) -> Self {
        Self { name: name.to_owned(), reason: reason.into() }
    }
}

/// The names of all settings, in the order of [`TrialConfig`].
pub fn setting_names() -> Vec<String> {
    as_map(&TrialConfig::default()).into_iter().map(|(name, _)| name).collect()
}

/// Checks one value on its own: the name is known, the type and the word fit.
pub fn check_setting(name: &str, value: &Value) -> Result<(), SettingError> {
    let known = setting_names();
    if !known.iter().any(|k| k == name) {
        let hint = nearest::hint(name, known.iter().map(String::as_str));
        return Err(SettingError::new(name, format!("no such setting; {hint}")));
    }
    let single = Map::from_iter([(name.to_owned(), value.clone())]);
    let parsed: Result<TrialConfig, _> = serde_json::from_value(Value::Object(single));
    let config = parsed.map_err(|error| SettingError::new(name, wrong_type(name, value, &error)))?;
    ranges::check(&config)
}

fn wrong_type(name: &str, value: &Value, error: &serde_json::Error) -> String {
    if name == "togl_position" {
        return format!("`{value}` does not fit; expected a number of layers or `last`");
    }
    format!("{error}")
}

impl TrialConfig {
    /// A complete trial from some settings; the rest take their defaults.
    pub fn from_settings(settings: &Map<String, Value>) -> Result<Self, SettingError> {
        let config: Self = serde_json::from_value(Value::Object(settings.clone())).map_err(|error| {
            let culprit = settings.iter().find_map(|(name, value)| check_setting(name, value).err());
            culprit.unwrap_or_else(|| SettingError::new("?", error.to_string()))
        })?;
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

    /// Refuses combinations that cannot be built.
    pub fn check(&self) -> Result<(), SettingError> {
        if self.dataset.is_empty() {
            return Err(SettingError::new("dataset", "missing; name a data set, such as `necklaces`"));
        }
        ranges::check(self)?;
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
        let replaced = self.togl && self.placement == Placement::Replace;
        self.depth.saturating_sub(replaced.into())
    }

    /// What the network is called, after what was built: `GCN-4`, `GCN-4-TOGL-1 (DeepSet)`.
    pub fn method(&self) -> String {
        let backbone = match self.model {
            Backbone::Gcn => "GCN",
            Backbone::Gin => "GIN",
            Backbone::Gat => "GAT",
            Backbone::GatedGcn => "GatedGCN",
        };
        let plain = format!("{backbone}-{}", self.graph_layers());
        if !self.togl {
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

    /// The same network with every setting that has no effect put back to its default.
    pub fn relevant(&self) -> Self {
        let mut config = self.clone();
        let default = Self::default();
        if config.model != Backbone::Gat {
            (config.num_heads, config.gat_last) = (default.num_heads, default.gat_last);
        }
        if config.model != Backbone::Gcn {
            config.residual = default.residual;
        }
        if config.graph_layers() == 0 {
            (config.activation_last, config.batch_norm) = (default.activation_last, default.batch_norm);
        }
        if config.togl {
            let (before, after) = config.layers_around_togl();
            config.togl_position = Position::After(before);
            // `replace` at depth D and `add` at depth D-1 build the same network.
            (config.placement, config.depth) = (Placement::Add, before + after);
            config.drop_other_version(&default);
        } else {
            config.drop_topology(&default);
        }
        config
    }

    fn drop_other_version(&mut self, default: &Self) {
        if self.deepset {
            self.num_coord_funs = default.num_coord_funs;
            self.tanh_filtrations = default.tanh_filtrations;
            self.share_filtration_parameters = default.share_filtration_parameters;
            if self.deepset_type == DeepsetType::Linear && self.residual_and_bn {
                self.dim0_out_dim = default.dim0_out_dim;
            }
        } else {
            self.deepset_type = default.deepset_type;
            self.aggregation_fn = default.aggregation_fn;
            self.dim0_out_dim = default.dim0_out_dim;
            self.dim1_out_dim = default.dim1_out_dim;
        }
        if !self.dim1 {
            (self.dim1_out_dim, self.dist_dim1) = (default.dim1_out_dim, default.dist_dim1);
        }
        if !self.residual_and_bn {
            self.swap_bn_order = default.swap_bn_order;
        }
    }

    fn drop_topology(&mut self, default: &Self) {
        let kept = Self {
            togl: false,
            togl_position: default.togl_position,
            placement: default.placement,
            deepset: default.deepset,
            static_variant: default.static_variant,
            dim1: default.dim1,
            num_filtrations: default.num_filtrations,
            filtration_hidden: default.filtration_hidden,
            residual_and_bn: default.residual_and_bn,
            swap_bn_order: default.swap_bn_order,
            dist_dim1: default.dist_dim1,
            dim1_out_dim: default.dim1_out_dim,
            dim0_out_dim: default.dim0_out_dim,
            deepset_type: default.deepset_type,
            aggregation_fn: default.aggregation_fn,
            num_coord_funs: default.num_coord_funs,
            tanh_filtrations: default.tanh_filtrations,
            share_filtration_parameters: default.share_filtration_parameters,
            ..self.clone()
        };
        *self = kept;
    }

    /// The versioned canonical JSON: only relevant settings that differ from their default, keys sorted.
    pub fn canonical(&self) -> String {
        let default = as_map(&Self::default());
        let mut settings: std::collections::BTreeMap<String, Value> = as_map(&self.relevant())
            .into_iter()
            .filter(|(name, value)| default.get(name) != Some(value))
            .collect();
        settings.insert("canonical".to_owned(), CANONICAL_VERSION.into());
        settings.insert("numerics".to_owned(), NUMERICS.into());
        Value::Object(settings.into_iter().collect()).to_string()
    }

    /// Identity: equal for trials that train the same network on the same data in the same way.
    pub fn id(&self) -> TrialId {
        TrialId::of_canonical(&self.canonical())
    }

    /// One setting by name, as plain text for tables; the derived name `method` too.
    pub fn show(&self, name: &str) -> Option<String> {
        if name == "method" {
            return Some(self.method());
        }
        as_map(self).get(name).map(|value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }
}

fn as_map(config: &TrialConfig) -> Map<String, Value> {
    match serde_json::to_value(config) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(), // a struct of numbers and words always serialises to an object
    }
}

#[path = "trial_ranges.rs"]
mod ranges;

#[cfg(test)]
#[path = "trial_tests.rs"]
mod tests;
