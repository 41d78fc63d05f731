//! Identity of a trial: which settings matter, the versioned canonical JSON of those that differ from their frozen
//! default, and its hash. Adding a setting re-hashes nothing as long as its default means "as before". Nothing here
//! may change for an existing trial without raising [`NUMERICS`]: results are found by these hashes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write as _;

use serde_json::Value;

use crate::datasets;
use crate::ids::TrialId;
use crate::program::Code;
use crate::settings::{self, SETTINGS, Setting};
use crate::trial::{Placement, Position, TrialConfig};

/// Part of every trial's identity: raised whenever any trained number changes, so that old results are not
/// mixed with new ones.
pub const NUMERICS: u32 = 1;

/// Version of the canonical form that is hashed.
pub(crate) const CANONICAL_VERSION: u32 = 1;

impl TrialConfig {
    /// The same network with every setting that has no effect put back to its default.
    pub fn relevant(&self) -> Self {
        let mut config = self.with_layers_spelled_out().into_owned();
        for setting in SETTINGS.iter().filter(|setting| !setting.needs.hold(self)) {
            setting.copy(defaults(), &mut config);
        }
        config
    }

    /// One spelling for what is the same: `replace` at depth D and `add` at depth D-1 build the same network, and a
    /// kernel that leaves out its last round has one round less.
    fn with_layers_spelled_out(&self) -> Cow<'_, Self> {
        if self.rounds() != self.depth {
            return Cow::Owned(Self { depth: self.rounds(), as_published: false, ..self.clone() });
        }
        if !self.has_togl() {
            return Cow::Borrowed(self);
        }
        let (before, after) = self.layers_around_togl();
        let (placement, togl_position) = (Placement::Add, Position::After(before));
        Cow::Owned(Self { placement, togl_position, depth: before + after, ..self.clone() })
    }

    /// The versioned canonical JSON: only relevant settings that differ from their default, keys sorted.
    pub fn canonical(&self) -> String {
        let mut text = Vec::with_capacity(256);
        self.write_canonical(&mut text);
        String::from_utf8(text).unwrap_or_default() // JSON of numbers and texts is UTF-8
    }

    fn write_canonical(&self, text: &mut Vec<u8>) {
        let spelled = self.with_layers_spelled_out();
        let counts = |setting: &Setting| !is_default(setting, &spelled) && setting.needs.hold(self);
        let mut fixed = self.fixed().into_iter().flatten().peekable();
        text.push(b'{');
        for setting in settings::by_name().iter().filter(|setting| counts(setting)) {
            while let Some((name, entry)) = fixed.next_if(|(name, _)| *name < setting.name) {
                write_entry(text, name, |out| entry.write(out));
            }
            write_entry(text, setting.name, |out| setting.write(&spelled, out));
        }
        for (name, entry) in fixed {
            write_entry(text, name, |out| entry.write(out));
        }
        text.push(b'}');
    }

    /// The entries that are no settings of ours, sorted: what versions it is of, or which program it runs.
    fn fixed(&self) -> [Option<(&'static str, Fixed<'_>)>; 3] {
        let canonical = Some(("canonical", Fixed::Version(CANONICAL_VERSION)));
        match &self.program {
            None => [canonical, Some(("numerics", Fixed::Version(NUMERICS))), None],
            Some(program) => [
                canonical,
                Some(("program", Fixed::Code(&program.code))),
                Some(("settings", Fixed::Settings(&program.settings))),
            ],
        }
    }

    /// Identity: equal for trials that train the same network on the same data in the same way.
    pub fn id(&self) -> TrialId {
        let mut text = Vec::with_capacity(256);
        self.write_canonical(&mut text);
        TrialId::of_canonical(&text)
    }
}

/// The identity and the canonical JSON that a stored trial has now, if its data set is spelt in another way than it was:
/// once the case of a name was part of the identity.
pub fn respelled(canonical: &str) -> Option<(TrialId, String)> {
    let name = canonical.split_once(r#""dataset":""#)?.1.split('"').next()?; // asked of every row, so not parsed
    let spelled = datasets::spelled(name);
    if spelled == name {
        return None;
    }
    let mut settings: serde_json::Map<String, Value> = serde_json::from_str(canonical).ok()?;
    settings.insert("dataset".to_owned(), spelled.into());
    let text = Value::Object(settings).to_string();
    Some((TrialId::of_canonical(text.as_bytes()), text))
}

/// The frozen defaults, made once.
pub(crate) fn defaults() -> &'static TrialConfig {
    static DEFAULTS: std::sync::OnceLock<TrialConfig> = std::sync::OnceLock::new();
    DEFAULTS.get_or_init(TrialConfig::default)
}

/// Whether a trial leaves a setting at its frozen default.
pub(crate) fn is_default(setting: &Setting, trial: &TrialConfig) -> bool {
    setting.same(trial, defaults())
}

/// An entry of canonical JSON that is no setting of ours.
enum Fixed<'a> {
    Version(u32),
    Code(&'a Code),
    Settings(&'a BTreeMap<String, Value>),
}

impl Fixed<'_> {
    fn write(&self, out: &mut Vec<u8>) {
        // Writing numbers and texts to memory cannot fail.
        match self {
            Self::Version(version) => drop(write!(out, "{version}")),
            Self::Code(code) => drop(serde_json::to_writer(out, code)),
            Self::Settings(settings) => drop(serde_json::to_writer(out, settings)),
        }
    }
}

fn write_entry(text: &mut Vec<u8>, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
    if text.len() > 1 {
        text.push(b',');
    }
    text.push(b'"');
    text.extend_from_slice(name.as_bytes());
    text.extend_from_slice(b"\":");
    value(text);
}

#[cfg(test)]
#[path = "identity_tests.rs"]
pub(crate) mod tests;
