//! One trial: which combinations of settings make sense, what is built of them, and what the network is called. A
//! [`TrialConfig`] is always complete. The settings themselves are in `settings`, identity is in `identity`.

use serde_json::{Map, Value};

use crate::baselines;
use crate::capability::Capability;
use crate::datasets;
use crate::nearest;
use crate::program::ProgramTrial;
use crate::scale::Scale;
use crate::settings::{self, SETTINGS};

use crate::identity::CANONICAL_VERSION;
pub use crate::identity::NUMERICS;
use crate::program::SHARED;
pub use crate::settings::TrialConfig;
pub use crate::words::{
    Aggregation, Backbone, DeepsetType, Features, LastActivation, LastEpoch, LastHeads, Placement, Position,
    WlLabels,
};

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

fn find_setting(name: &str) -> Result<&'static settings::Setting, SettingError> {
    settings::find(name).ok_or_else(|| {
        let hint = nearest::hint(name, settings::names());
        SettingError::new(name, format!("no such setting; {hint}"))
    })
}

/// Canonical JSON, taken apart.
struct Canonical {
    settings: Map<String, Value>,
    version: Option<u64>,
    numerics: Option<u64>,
    program: Option<Box<ProgramTrial>>,
}

impl Canonical {
    fn parse(text: &str) -> serde_json::Result<Self> {
        let mut settings: Map<String, Value> = serde_json::from_str(text)?;
        let mut number = |key| settings.remove(key).and_then(|number| number.as_u64());
        let (version, numerics) = (number("canonical"), number("numerics"));
        let program = ProgramTrial::take(&mut settings)?.map(Box::new);
        Ok(Self { settings, version, numerics, program })
    }
}

impl TrialConfig {
    /// A complete trial from some settings; the rest take their defaults.
    pub fn from_settings(settings: &Map<String, Value>) -> Result<Self, SettingError> {
        let config = Self::as_spelled(settings, None)?;
        let dataset = datasets::spelled(&config.dataset).to_owned();
        Ok(Self { dataset, ..config })
    }

    fn as_spelled(
        settings: &Map<String, Value>,
        program: Option<Box<ProgramTrial>>,
    ) -> Result<Self, SettingError> {
        let mut config = Self { program, ..Self::default() };
        for (name, value) in settings {
            find_setting(name)?.apply(&mut config, value)?;
        }
        config.check_combination()?;
        Ok(config)
    }

    /// Reads the canonical JSON that travels with a lease. Names stay spelt as they are: the identity is made of them.
    pub fn from_canonical(text: &str) -> Result<Self, SettingError> {
        let unreadable = |reason: String| SettingError::new("canonical form", reason);
        let Canonical { settings, version, numerics, program } =
            Canonical::parse(text).map_err(|error| unreadable(error.to_string()))?;
        // What a program computes is its own business.
        let expected = program.is_none().then_some(NUMERICS.into());
        if version != Some(CANONICAL_VERSION.into()) || numerics != expected {
            return Err(unreadable(format!(
                "made for another version (canonical {version:?}, numerics {numerics:?}); \
                 this program has canonical {CANONICAL_VERSION}, numerics {NUMERICS}"
            )));
        }
        Self::as_spelled(&settings, program)
    }

    /// The trial of canonical JSON of any version, as far as its settings are known, and the numerics that it asks for.
    pub fn of_any_version(text: &str) -> Option<(Self, Option<u64>)> {
        let Canonical { settings, numerics, program, .. } = Canonical::parse(text).ok()?;
        let mut config = Self { program, ..Self::default() };
        for (name, value) in &settings {
            settings::find(name).map(|setting| setting.set(&mut config, value));
        }
        Some((config, numerics))
    }

    /// What the values of its results are.
    pub fn scale(&self) -> &Scale {
        let own = self.program.as_ref().and_then(|program| program.code.score.as_ref());
        own.unwrap_or(Scale::share())
    }

    /// The data that it sees, by name: results of trials with the same one come from the same data. The same files read for
    /// other features are other data.
    pub fn data(&self) -> String {
        let seed = if self.data_seed == 0 { String::new() } else { format!("#{}", self.data_seed) };
        let features = match self.features {
            _ if self.model.refines_labels() && self.wl_labels == WlLabels::Node => "@labels",
            Features::Colour if self.model.has_node_states() => "@colour",
            Features::Original | Features::Random | Features::Colour => "",
        };
        format!("{}{seed}{features}", self.dataset)
    }

    /// Refuses values out of range and combinations that cannot be built.
    pub fn check(&self) -> Result<(), SettingError> {
        SETTINGS.iter().try_for_each(|setting| setting.check_range(&setting.value(self)))?;
        self.check_combination()
    }

    /// Refuses combinations that cannot be built; every value is known to be in its range.
    pub(crate) fn check_combination(&self) -> Result<(), SettingError> {
        if self.dataset.is_empty() && self.program.is_some() {
            let reason = "missing; name a data set, such as `PROTEINS`, or call your own data something";
            return Err(SettingError::new("dataset", reason));
        }
        if self.dataset.is_empty() {
            return Err(SettingError::new("dataset", "missing; name a data set, such as `necklaces`"));
        }
        if self.program.is_some() {
            return Ok(()); // what it cannot train it refuses itself
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
        if let Some(program) = &self.program {
            return program.code.name().to_owned();
        }
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
        let plain = |value: Value| match value {
            Value::String(text) => text,
            other => other.to_string(),
        };
        match &self.program {
            Some(program) if !SHARED.contains(&name) => program.settings.get(name).cloned().map(plain),
            _ => settings::find(name).map(|setting| plain(setting.value(self))),
        }
    }

    /// What a worker must offer to train it; nothing if every worker can.
    pub fn needs(&self) -> Option<Capability> {
        self.program.is_some().then_some(Capability::Programs)
    }
}

#[cfg(test)]
#[path = "trial_tests.rs"]
mod tests;
