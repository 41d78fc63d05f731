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
    /// Trials that have the value; only this setting of them is looked at.
    any: Vec<TrialConfig>,
}

/// A partial setting; the empty one holds everywhere.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Condition {
    tests: Vec<Test>,
}

impl Condition {
    /// Adds a setting and the values that match; values were checked before.
    pub(crate) fn and(&mut self, setting: &'static Setting, values: &[Value]) {
        let any = values.iter().map(|value| {
            let mut trial = defaults().clone();
            (setting.set)(&mut trial, value);
            trial
        });
        self.tests.push(Test { setting, any: any.collect() });
    }

    /// Whether a trial matches.
    pub fn holds(&self, trial: &TrialConfig) -> bool {
        self.tests.iter().all(|test| test.any.iter().any(|wanted| (test.setting.same)(wanted, trial)))
    }

    /// The settings that it names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.tests.iter().map(|test| test.setting.name)
    }

    /// For each value that it names, whether a trial has it: trials with equal marks are the same to it.
    pub(crate) fn marks<'a>(&'a self, trial: &'a TrialConfig) -> impl Iterator<Item = bool> + 'a {
        let tests = self.tests.iter();
        tests.flat_map(move |test| test.any.iter().map(move |wanted| (test.setting.same)(wanted, trial)))
    }

    /// The values of each setting, as JSON.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, Vec<Value>)> + '_ {
        self.tests.iter().map(|test| {
            let values = test.any.iter().map(|trial| test.setting.value(trial));
            (test.setting.name, values.collect())
        })
    }
}
