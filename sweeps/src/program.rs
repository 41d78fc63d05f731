//! A program of the user's own as the thing that a sweep trains: what a sweep file says of it, the settings that it declares,
//! and the part of a trial that names it. Its files are known by the digest of their bundle (`bundle`); reads no files and
//! runs nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::scale::Scale;
use crate::settings::{Place, Setting, ValueKind, find, needs};
use crate::trial::TrialConfig;

/// Settings that one program may declare.
pub const MOST_SETTINGS: usize = 200;

/// Different declarations that one process remembers: a setting, once declared, is known as long as the process lives.
const MOST_DECLARATIONS: usize = 100_000;

/// Settings of ours that a program has too: those that say which data it is given.
pub const SHARED: [&str; 2] = ["dataset", "data_seed"];

/// What a sweep file says of the program that it trains.
#[derive(Debug, Clone, PartialEq)]
pub struct Program {
    /// The command and its arguments; no shell reads them.
    pub run: Vec<String>,
    /// The files that it consists of, beside the sweep file.
    pub files: Vec<String>,
    /// The file that lists the packages it needs.
    pub lock: Option<String>,
    /// What its user vouches for in place of files.
    pub version: Option<String>,
    /// The settings that it declares, in the order of the file.
    pub settings: Vec<&'static Setting>,
    /// What its values are, unless they are shares.
    pub score: Option<Scale>,
    /// Digest of the bundle of its files, once they were read.
    pub frozen: Option<String>,
}

impl Program {
    /// Files whose contents belong to the identity of its trials.
    pub fn bundled(&self) -> impl Iterator<Item = &str> {
        self.files.iter().chain(&self.lock).map(String::as_str)
    }

    /// Whether its files are known by what is in them: only then do identities mean anything.
    pub fn is_frozen(&self) -> bool {
        self.frozen.is_some() || self.bundled().next().is_none()
    }

    /// The setting of this name that a sweep of it may give.
    pub fn find(&self, name: &str) -> Option<&'static Setting> {
        let own = self.settings.iter().copied().find(|setting| setting.name == name);
        own.or_else(|| SHARED.contains(&name).then(|| find(name)).flatten())
    }

    /// The names of all settings that a sweep of it may give.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + Clone {
        let own = self.settings.iter().map(|setting| setting.name);
        SHARED.into_iter().chain(own)
    }

    /// The part of a trial that names it.
    pub(crate) fn trial(&self) -> ProgramTrial {
        let Self { run, version, lock, frozen, score, .. } = self.clone();
        ProgramTrial {
            code: Arc::new(Code { bundle: frozen, lock, run, score, version }),
            settings: BTreeMap::new(),
        }
    }
}

/// A sweep file together with the digest of the files of its program, as it is submitted: its identities need nothing else.
pub fn freeze(text: &str, digest: &str) -> String {
    format!("{}\nfrozen: {digest}\n", text.trim_end())
}

/// What is run, as far as it makes a trial what it is. The fields stand in the order of canonical JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Code {
    /// Digest of the bundle of its files; none if somebody vouches for a version instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bundle: Option<String>,
    /// The file in the bundle that lists the packages it needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// The command and its arguments.
    pub run: Vec<String>,
    /// What its values are; none if they are shares.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<Scale>,
    /// What its user vouches for in place of files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl Code {
    /// What people call it: the script that is run.
    pub fn name(&self) -> &str {
        let script = self.run.iter().skip(1).find(|word| !word.starts_with('-')).or(self.run.first());
        script.and_then(|word| word.rsplit('/').next()).unwrap_or("program")
    }
}

/// The program of a trial and the values of the settings that it declares.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProgramTrial {
    /// What is run; trials of a sweep share it.
    pub code: Arc<Code>,
    /// Its settings. One that is not here is the program's own business.
    pub settings: BTreeMap<String, Value>,
}

impl ProgramTrial {
    /// Takes its two keys out of canonical JSON; none if it is no trial of a program.
    pub(crate) fn take(canonical: &mut Map<String, Value>) -> serde_json::Result<Option<Self>> {
        let Some(code) = canonical.remove("program") else { return Ok(None) };
        let settings = canonical.remove("settings").unwrap_or_else(|| Value::Object(Map::new()));
        let code: Code = serde_json::from_value(code)?;
        if let Some(score) = &code.score {
            score.check().map_err(serde::de::Error::custom)?;
        }
        let code = Arc::new(code);
        Ok(Some(Self { code, settings: serde_json::from_value(settings)? }))
    }
}

pub(crate) fn get<'a>(trial: &'a TrialConfig, name: &str) -> Option<&'a Value> {
    trial.program.as_ref().and_then(|program| program.settings.get(name))
}

/// Gives a trial a declared setting in its one spelling: 1 and 1.0 are the same number.
pub(crate) fn set(trial: &mut TrialConfig, name: &str, kind: ValueKind, value: &Value) -> bool {
    let spelled = match kind {
        ValueKind::Text => value.as_str().map(Value::from),
        ValueKind::Flag => value.as_bool().map(Value::from),
        ValueKind::Whole(..) => value.as_u64().map(Value::from),
        ValueKind::Real(..) => value.as_f64().map(Value::from),
        ValueKind::Word(words) => value.as_str().filter(|word| words.contains(word)).map(Value::from),
        ValueKind::Position => None, // nobody can declare one
    };
    let Some(spelled) = spelled else { return false };
    trial.program.get_or_insert_default().settings.insert(name.to_owned(), spelled);
    true
}

pub(crate) fn copy(from: &TrialConfig, to: &mut TrialConfig, name: &str) {
    match (get(from, name), &mut to.program) {
        (Some(value), program) => {
            program.get_or_insert_default().settings.insert(name.to_owned(), value.clone());
        }
        (None, Some(program)) => drop(program.settings.remove(name)),
        (None, None) => {}
    }
}

/// The setting of this name and kind that a program declares; none if this process has seen far too many. Settings live for
/// ever, as ours do, so that everything that has to do with settings is the same for both; what is declared again is found.
pub(crate) fn declared(name: &str, kind: &DeclaredKind) -> Option<&'static Setting> {
    static KNOWN: Mutex<BTreeMap<String, &'static Setting>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let key = format!("{name} {kind:?}");
    if let Some(setting) = known.get(&key) {
        return Some(setting);
    }
    if known.len() >= MOST_DECLARATIONS {
        return None;
    }
    let for_ever = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let kind = match kind {
        DeclaredKind::Plain(kind) => *kind,
        DeclaredKind::Words(words) => {
            let words: Vec<&'static str> = words.iter().map(|word| for_ever(word)).collect();
            ValueKind::Word(Vec::leak(words))
        }
    };
    let setting: &'static Setting = Box::leak(Box::new(Setting {
        name: for_ever(name),
        section: "Program",
        kind,
        needs: &needs::NOTHING,
        about: "a setting of the program",
        since: 1,
        place: Place::Program,
    }));
    known.insert(key, setting);
    Some(setting)
}

/// What values a declared setting takes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DeclaredKind {
    Plain(ValueKind),
    Words(Vec<String>),
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
