//! The table of settings: for each key of a sweep file its kind, range, meaning and when it has an effect, with the
//! functions that read, compare, copy and write it. Checks, identities, conditions, the JSON schema and error
//! messages all come from this one table. It decides nothing about combinations: that is [`TrialConfig::check`].

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde_json::Value;

use crate::datasets;
use crate::nearest;
use crate::program;
use crate::trial::SettingError;
use crate::yaml;

/// What values a setting takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueKind {
    /// The name of a data set.
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
pub struct Needs {
    /// What a trial must have, in the words of a sweep file; empty where it always has it.
    pub words: &'static str,
    holds: fn(&TrialConfig) -> bool,
}

impl Needs {
    /// Whether a trial has what the setting needs.
    pub fn hold(&self, trial: &TrialConfig) -> bool {
        (self.holds)(trial)
    }
}

/// One setting of a trial.
pub struct Setting {
    /// The key in a sweep file.
    pub name: &'static str,
    /// The heading under which the documentation has it.
    pub section: &'static str,
    /// What values it takes.
    pub kind: ValueKind,
    /// When it has an effect.
    pub needs: &'static Needs,
    /// What it means, for people.
    pub about: &'static str,
    /// The first version of files of folds that has it as a column; older ones were trained with its default.
    pub since: u64,
    pub(crate) place: Place,
}

/// Where a trial has the value of a setting.
pub(crate) enum Place {
    /// In a field of its own.
    Field(Field),
    /// Among the settings that its program declares.
    Program,
}

/// How a field of a trial is read and written.
pub(crate) struct Field {
    set: fn(&mut TrialConfig, &Value) -> bool,
    same: fn(&TrialConfig, &TrialConfig) -> bool,
    copy: fn(&TrialConfig, &mut TrialConfig),
    write: fn(&TrialConfig, &mut Vec<u8>),
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
    /// Gives a trial this value; says whether it is of the right kind.
    pub(crate) fn set(&self, trial: &mut TrialConfig, value: &Value) -> bool {
        match &self.place {
            Place::Field(field) => (field.set)(trial, value),
            Place::Program => program::set(trial, self.name, self.kind, value),
        }
    }

    /// Whether two trials have the same value.
    pub(crate) fn same(&self, a: &TrialConfig, b: &TrialConfig) -> bool {
        match &self.place {
            Place::Field(field) => (field.same)(a, b),
            Place::Program => program::get(a, self.name) == program::get(b, self.name),
        }
    }

    pub(crate) fn copy(&self, from: &TrialConfig, to: &mut TrialConfig) {
        match &self.place {
            Place::Field(field) => (field.copy)(from, to),
            Place::Program => program::copy(from, to, self.name),
        }
    }

    /// Its value in a trial as JSON; `null` where a program is not given one.
    pub(crate) fn write(&self, trial: &TrialConfig, out: &mut Vec<u8>) {
        match &self.place {
            Place::Field(field) => (field.write)(trial, out),
            // Writing a number or a word to memory cannot fail; a failure would leave the value out.
            Place::Program => drop(serde_json::to_writer(out, &program::get(trial, self.name))),
        }
    }

    /// Checks one value on its own: type, word and range.
    pub fn check(&self, value: &Value) -> Result<(), SettingError> {
        self.apply(&mut TrialConfig::default(), value)
    }

    /// Gives a trial a value that fits.
    pub(crate) fn apply(&self, trial: &mut TrialConfig, value: &Value) -> Result<(), SettingError> {
        if !self.set(trial, value) {
            return Err(SettingError::new(self.name, self.misfit(value)));
        }
        self.check_range(value)
    }

    /// A value in its one spelling: people may write names of data sets in any case.
    pub(crate) fn spelled(&self, value: Value) -> Value {
        match value {
            Value::String(name) if self.name == "dataset" => datasets::spelled(&name).into(),
            other => other,
        }
    }

    /// Refuses a number outside of the range.
    pub(crate) fn check_range(&self, value: &Value) -> Result<(), SettingError> {
        let Some(value) = value.as_f64() else { return Ok(()) };
        let (least, most) = match self.kind {
            ValueKind::Whole(least, most) => (least as f64, most as f64),
            ValueKind::Real(least, most) => (least, most),
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
            ValueKind::Word(words) => {
                return format!("`{shown}` does not fit; {}", nearest::hint(&shown, words.iter().copied()));
            }
            ValueKind::Text => "a text".to_owned(),
            ValueKind::Flag => "`true` or `false`".to_owned(),
            ValueKind::Whole(least, u64::MAX) => format!("a whole number from {least}"),
            ValueKind::Whole(least, most) => format!("a whole number from {least} to {most}"),
            ValueKind::Real(f64::MIN, f64::MAX) => "a number".to_owned(),
            ValueKind::Real(least, most) => format!("a number from {least} to {most}"),
            ValueKind::Position => "a number of layers or `last`".to_owned(),
        };
        let quoted = value.as_str().and_then(yaml::quoted).unwrap_or_else(|| format!("`{shown}`"));
        format!("{quoted} does not fit; expected {expected}")
    }

    /// The setting's value in a trial, as JSON.
    pub fn value(&self, trial: &TrialConfig) -> Value {
        let mut text = Vec::new();
        self.write(trial, &mut text);
        serde_json::from_slice(&text).unwrap_or(Value::Null)
    }
}

/// Makes the trial, its frozen defaults and [`SETTINGS`] of rows
/// `field: type = default, kind, needs, "meaning";`, which may have `as "key"` where the key is no name of a field, and
/// `since VERSION` where older files of folds lack it.
macro_rules! settings {
    ($($section:literal {$(
        $field:ident $(as $key:literal)?: $type:ty = $default:expr, $kind:expr, $needs:ident, $about:literal
            $(, since $since:literal)?;
    )+})+) => {
        /// Every setting of a trial. The field names are the keys of a sweep file.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct TrialConfig {$($(
            #[doc = $about]
            $(#[serde(rename = $key)])?
            pub $field: $type,
        )+)+
            /// The program that is run instead of training one of our networks; then the settings above are not used, but
            /// for those of the data.
            #[serde(skip)]
            pub program: Option<Box<ProgramTrial>>,
        }

        impl Default for TrialConfig {
            /// The frozen defaults. The data set has none.
            fn default() -> Self {
                Self {$($($field: $default,)+)+ program: None}
            }
        }

        /// Every setting, in the order of [`TrialConfig`].
        pub const SETTINGS: &[Setting] = &[$($(Setting {
            name: or!($($key)?, stringify!($field)),
            section: $section,
            kind: $kind,
            needs: &needs::$needs,
            about: $about,
            since: or!($($since)?, 1),
            place: Place::Field(Field {
                set: |trial, value| Deserialize::deserialize(value).map(|read| trial.$field = read).is_ok(),
                same: |a, b| a.$field == b.$field,
                copy: |from, to| to.$field.clone_from(&from.$field),
                write: |trial, out| {
                    // Writing a number or a word to memory cannot fail; a failure would leave the value out.
                    let _ = serde_json::to_writer(out, &trial.$field);
                },
            }),
        }),+),+];
    };
}

/// What is given, or else the other.
macro_rules! or {
    (, $other:expr) => {
        $other
    };
    ($given:expr, $other:expr) => {
        $given
    };
}

#[path = "settings_needs.rs"]
pub(crate) mod needs;
#[path = "settings_table.rs"]
mod table;
pub use table::{SETTINGS, TrialConfig};

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

/// The names of all settings of some trials: those of the table, then what their programs declare.
pub fn names_of<'a>(trials: impl IntoIterator<Item = &'a TrialConfig>) -> Vec<String> {
    let programs = trials.into_iter().filter_map(|trial| trial.program.as_ref());
    let declared: BTreeSet<&String> = programs.flat_map(|program| program.settings.keys()).collect();
    let declared = declared.into_iter().filter(|name| find(name).is_none());
    names().map(str::to_owned).chain(declared.cloned()).collect()
}

/// The names of all settings, in the order of the table.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    SETTINGS.iter().map(|setting| setting.name)
}
