//! A partial setting that a trial may match: `{togl: true, depth: [1, 2]}` holds where every named setting has one
//! of its values. Used by `when`, `exclude` and published tables. Knows no files and no grids.

use serde_json::Value;

use crate::identity::defaults;
use crate::settings::Setting;
use crate::trial::TrialConfig;

/// One named setting and the values that match.
#[derive(Debug, Clone, PartialEq)]
struct Test {
    setting: &'static Setting,
    /// The values as JSON text, sorted.
    written: Vec<Vec<u8>>,
}

impl Test {
    fn holds(&self, trial: &TrialConfig) -> bool {
        let mut text = Vec::new();
        self.setting.write(trial, &mut text);
        self.written.binary_search(&text).is_ok()
    }
}

/// A partial setting; the empty one holds everywhere.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Condition {
    tests: Vec<Test>,
}

impl Condition {
    /// Adds a setting and the values that match; values were checked before.
    pub(crate) fn and(&mut self, setting: &'static Setting, values: &[Value]) {
        let written = |value| {
            let (mut trial, mut text) = (defaults().clone(), Vec::new());
            setting.set(&mut trial, value);
            setting.write(&trial, &mut text);
            text
        };
        let mut written: Vec<Vec<u8>> = values.iter().map(written).collect();
        written.sort_unstable();
        written.dedup();
        self.tests.push(Test { setting, written });
    }

    /// Whether a trial matches.
    pub fn holds(&self, trial: &TrialConfig) -> bool {
        self.tests.iter().all(|test| test.holds(trial))
    }

    /// The settings that it names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.tests.iter().map(|test| test.setting.name)
    }

    /// For each of these settings that it names, whether a trial has a value that matches: trials with equal marks
    /// are the same to it.
    pub(crate) fn marks<'a>(
        &'a self,
        names: &'a [&'static str],
        trial: &'a TrialConfig,
    ) -> impl Iterator<Item = bool> + 'a {
        let tests = self.tests.iter().filter(|test| names.contains(&test.setting.name));
        tests.map(|test| test.holds(trial))
    }

    /// The values of each setting, as JSON.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, Vec<Value>)> + '_ {
        self.tests.iter().map(|test| {
            let values = test.written.iter().filter_map(|text| serde_json::from_slice(text).ok());
            (test.setting.name, values.collect())
        })
    }
}
