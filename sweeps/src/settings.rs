//! The table of settings: for each key of a sweep file its kind, range, meaning and when it has an effect, with the
//! functions that read, compare, copy and write it. Checks, identities, conditions, the JSON schema and error
//! messages all come from this one table. It decides nothing about combinations: that is [`TrialConfig::check`].

use std::sync::OnceLock;

use serde::Serialize;
use serde_json::Value;

use crate::nearest;
use crate::trial::{
    Aggregation, Backbone, DeepsetType, Features, LastActivation, LastEpoch, LastHeads, Placement, Position,
    SettingError, TrialConfig, WlLabels,
};
use crate::yaml;

/// What values a setting takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Free text.
    Text,
    /// `true` or `false`.
    Flag,
    /// A whole number in a closed range.
    Whole(u64, u64),
    /// A number in a closed range.
    Real(f64, f64),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A number of layers, or the word `last`.
    Position,
}

/// When a setting changes what is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Always.
    Nothing,
    /// A network, which is trained by gradients.
    Network,
    /// A network whose nodes have states.
    NodeStates,
    /// A network that a topological layer can be added to.
    Backbone,
    /// Graph layers, or rounds of label refinement.
    Depth,
    /// A kernel with a support vector machine.
    Kernel,
    /// A kernel of refined labels.
    Refinement,
    /// The subtree kernel.
    Wl,
    /// A graph attention network.
    Gat,
    /// A graph convolution network.
    Gcn,
    /// At least one graph layer.
    Layers,
    /// A topological layer.
    Togl,
    /// A network that reads persistence diagrams.
    Diagrams,
    /// A network that evaluates coordinate functions on persistence diagrams.
    DiagramCoordinates,
    /// A topological layer that uses cycles.
    ToglCycles,
    /// A topological layer with a residual connection.
    ToglResidual,
    /// The coordinate version of the topological layer.
    Coordinates,
    /// The DeepSet version of the topological layer.
    Deepset,
    /// A DeepSet with an inner width.
    DeepsetInner,
    /// A DeepSet that uses cycles.
    DeepsetCycles,
}

impl Needs {
    /// Whether a trial has what the setting needs.
    pub fn hold(self, trial: &TrialConfig) -> bool {
        let (model, togl) = (trial.model, trial.has_togl());
        let deepset = togl && trial.deepset;
        match self {
            Self::Nothing => true,
            Self::Network => !model.is_kernel(),
            Self::NodeStates => model.has_node_states(),
            Self::Backbone => model.takes_togl(),
            Self::Depth => model.has_node_states() || model.refines_labels(),
            Self::Kernel => model.is_kernel(),
            Self::Refinement => model.refines_labels(),
            Self::Wl => model == Backbone::Wl,
            Self::Gat => trial.model == Backbone::Gat,
            Self::Gcn => trial.model == Backbone::Gcn,
            Self::Layers => trial.graph_layers() > 0,
            Self::Togl => togl,
            Self::Diagrams => togl || model.reads_diagrams(),
            Self::DiagramCoordinates => (togl && !trial.deepset) || model.reads_diagrams(),
            Self::ToglCycles => togl && trial.dim1,
            Self::ToglResidual => togl && trial.residual_and_bn,
            Self::Coordinates => togl && !trial.deepset,
            Self::Deepset => deepset,
            Self::DeepsetInner => {
                deepset && !(trial.deepset_type == DeepsetType::Linear && trial.residual_and_bn)
            }
            Self::DeepsetCycles => deepset && trial.dim1,
        }
    }

    /// The need in the words of a sweep file.
    pub fn words(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Network => "a network, such as `model: gcn`, and not a kernel (`wl`, `wl-oa`, `ph`)",
            Self::NodeStates => {
                "a network whose nodes have states (every `model` but `perslay` and the kernels)"
            }
            Self::Backbone => "`model: gcn`, `gin`, `gat` or `gatedgcn`",
            Self::Depth => "graph layers or rounds of refinement (every `model` but `ph` and `perslay`)",
            Self::Kernel => "`model: wl`, `wl-oa` or `ph`",
            Self::Refinement => "`model: wl` or `wl-oa`",
            Self::Wl => "`model: wl`",
            Self::Gat => "`model: gat`",
            Self::Gcn => "`model: gcn`",
            Self::Layers => "at least one graph layer",
            Self::Togl => "`togl: true`",
            Self::Diagrams => "`togl: true`, or `model: gfl` or `perslay`",
            Self::DiagramCoordinates => "`togl: true` and `deepset: false`, or `model: gfl` or `perslay`",
            Self::ToglCycles => "`togl: true` and `dim1: true`",
            Self::ToglResidual => "`togl: true` and `residual_and_bn: true`",
            Self::Coordinates => "`togl: true` and `deepset: false`",
            Self::Deepset => "`togl: true` and `deepset: true`",
            Self::DeepsetInner => {
                "`togl: true`, `deepset: true` and a `deepset_type` other than `linear` (or `residual_and_bn: false`)"
            }
            Self::DeepsetCycles => "`togl: true`, `deepset: true` and `dim1: true`",
        }
    }
}

/// One setting of a trial.
pub struct Setting {
    /// The key in a sweep file.
    pub name: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// When it has an effect.
    pub needs: Needs,
    /// What it means, for people.
    pub about: &'static str,
    pub(crate) set: fn(&mut TrialConfig, &Value) -> bool,
    pub(crate) same: fn(&TrialConfig, &TrialConfig) -> bool,
    pub(crate) copy: fn(&TrialConfig, &mut TrialConfig),
    pub(crate) write: fn(&TrialConfig, &mut Vec<u8>),
    number: fn(&TrialConfig) -> Option<f64>,
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Setting({})", self.name)
    }
}

impl PartialEq for Setting {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Setting {
    /// Checks one value on its own: type, word and range.
    pub fn check(&self, value: &Value) -> Result<(), SettingError> {
        let mut trial = TrialConfig::default();
        if !(self.set)(&mut trial, value) {
            return Err(SettingError::new(self.name, self.misfit(value)));
        }
        self.check_range(&trial)
    }

    /// Refuses a trial in which this setting is outside its range.
    pub(crate) fn check_range(&self, trial: &TrialConfig) -> Result<(), SettingError> {
        let Some(value) = (self.number)(trial) else { return Ok(()) };
        let (least, most) = match self.kind {
            Kind::Whole(least, most) => (least as f64, most as f64),
            Kind::Real(least, most) => (least, most),
            _ => return Ok(()),
        };
        if (least..=most).contains(&value) {
            return Ok(());
        }
        Err(SettingError::new(self.name, format!("{value} is not in {least}..={most}")))
    }

    fn misfit(&self, value: &Value) -> String {
        let shown = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let expected = match self.kind {
            Kind::Word(words) => {
                return format!("`{shown}` does not fit; {}", nearest::hint(&shown, words.iter().copied()));
            }
            Kind::Text => "a text".to_owned(),
            Kind::Flag => "`true` or `false`".to_owned(),
            Kind::Whole(least, u64::MAX) => format!("a whole number from {least}"),
            Kind::Whole(least, most) => format!("a whole number from {least} to {most}"),
            Kind::Real(least, most) => format!("a number from {least} to {most}"),
            Kind::Position => "a number of layers or `last`".to_owned(),
        };
        let quoted = value.as_str().and_then(yaml::quoted).unwrap_or_else(|| format!("`{shown}`"));
        format!("{quoted} does not fit; expected {expected}")
    }

    /// The setting's value in a trial, as JSON.
    pub fn value(&self, trial: &TrialConfig) -> Value {
        let mut text = Vec::new();
        (self.write)(trial, &mut text);
        serde_json::from_slice(&text).unwrap_or(Value::Null)
    }
}

/// A type that a setting can have.
trait Field: Clone + PartialEq + Serialize {
    fn read(value: &Value) -> Option<Self>;
    fn number(&self) -> Option<f64> {
        None
    }
}

impl Field for String {
    fn read(value: &Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }
}

impl Field for bool {
    fn read(value: &Value) -> Option<Self> {
        value.as_bool()
    }
}

impl Field for u32 {
    fn read(value: &Value) -> Option<Self> {
        value.as_u64().and_then(|number| number.try_into().ok())
    }
    fn number(&self) -> Option<f64> {
        Some(f64::from(*self))
    }
}

impl Field for u64 {
    fn read(value: &Value) -> Option<Self> {
        value.as_u64()
    }
}

impl Field for f64 {
    fn read(value: &Value) -> Option<Self> {
        value.as_f64().filter(|number| number.is_finite())
    }
    fn number(&self) -> Option<f64> {
        Some(*self)
    }
}

impl Field for Position {
    fn read(value: &Value) -> Option<Self> {
        match value.as_str() {
            Some("last") => Some(Self::Last),
            Some(_) => None,
            None => u32::read(value).map(Self::After),
        }
    }
}

macro_rules! word_fields {
    ($($name:ident),+) => {$(
        impl Field for $name {
            fn read(value: &Value) -> Option<Self> {
                value.as_str().and_then(Self::from_word)
            }
        }
    )+};
}
word_fields!(
    Features,
    Backbone,
    LastActivation,
    LastHeads,
    Placement,
    DeepsetType,
    Aggregation,
    LastEpoch,
    WlLabels
);

macro_rules! setting {
    ($name:literal, $field:ident: $type:ty, $kind:expr, $needs:ident, $about:literal) => {
        Setting {
            name: $name,
            kind: $kind,
            needs: Needs::$needs,
            about: $about,
            set: |trial, value| match <$type as Field>::read(value) {
                Some(read) => {
                    trial.$field = read;
                    true
                }
                None => false,
            },
            same: |a, b| a.$field == b.$field,
            copy: |from, to| to.$field.clone_from(&from.$field),
            write: |trial, out| {
                // Writing a number or a word to memory cannot fail; a failure would leave the value out.
                let _ = serde_json::to_writer(out, &trial.$field);
            },
            number: |trial| trial.$field.number(),
        }
    };
}

#[path = "settings_table.rs"]
mod table;
pub use table::SETTINGS;

/// The setting of this name.
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// Sorted by name, as canonical JSON wants them.
pub(crate) fn by_name() -> &'static [&'static Setting] {
    static SORTED: OnceLock<Vec<&'static Setting>> = OnceLock::new();
    SORTED.get_or_init(|| {
        let mut sorted: Vec<&Setting> = SETTINGS.iter().collect();
        sorted.sort_unstable_by_key(|setting| setting.name);
        sorted
    })
}

/// The names of all settings, in the order of the table.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    SETTINGS.iter().map(|setting| setting.name)
}
