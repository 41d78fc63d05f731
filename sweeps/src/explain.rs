//! Why two trials are the same or not: every setting that differs as written, and whether the difference matters. The
//! answer behind `togl hash FILE --explain A B`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::identity::is_default;
use crate::program::Code;
use crate::settings::{SETTINGS, Setting};
use crate::trial::TrialConfig;

/// What a difference means for the identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It makes two trials of them.
    Matters,
    /// It has an effect in neither, because what it needs is missing.
    NoEffect {
        /// What the setting needs, in the words of a sweep file.
        needs: &'static str,
    },
    /// It has an effect in one of them only; what makes that so is another difference.
    NoEffectInOne {
        /// What the setting needs, in the words of a sweep file.
        needs: &'static str,
    },
    /// It is written differently but builds the same network.
    SameNetwork,
}

/// A setting that differs as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingDifference {
    /// The setting.
    pub name: String,
    /// Its value in the first trial.
    pub a: String,
    /// Its value in the second trial.
    pub b: String,
    /// Whether the first leaves it at its default.
    pub a_is_default: bool,
    /// Whether the second leaves it at its default.
    pub b_is_default: bool,
    /// What that means.
    pub verdict: Verdict,
}

/// Every setting that differs as written, in the order of the documentation. The trials are the same exactly if no
/// verdict is [`Verdict::Matters`].
pub fn explain(a: &TrialConfig, b: &TrialConfig) -> Vec<SettingDifference> {
    let (kept_a, kept_b) = (a.relevant(), b.relevant());
    let written = SETTINGS.iter().filter(|setting| !setting.same(a, b) || !setting.same(&kept_a, &kept_b));
    let own = written.map(|setting| difference(setting, (a, b), (&kept_a, &kept_b)));
    own.chain(of_programs(a, b)).collect()
}

/// What differs in the programs of two trials: every difference there makes two trials.
fn of_programs(a: &TrialConfig, b: &TrialConfig) -> Vec<SettingDifference> {
    let parts = |trial: &TrialConfig| -> BTreeMap<String, String> {
        let Some(program) = &trial.program else { return BTreeMap::new() };
        let Code { bundle, lock, run, score, version } = program.code.as_ref();
        let code = [("files", bundle), ("lock", lock), ("version", version)].into_iter();
        let code = code.filter_map(|(name, part)| Some((format!("program.{name}"), part.clone()?)));
        let score = score.as_ref().map(|score| ("program.score".to_owned(), score.to_string()));
        let run = [("program.run".to_owned(), run.join(" "))];
        let show = |name: &String| Some((name.clone(), trial.show(name)?));
        code.chain(run).chain(score).chain(program.settings.keys().filter_map(show)).collect()
    };
    let (of_a, of_b) = (parts(a), parts(b));
    let names: BTreeSet<&String> = of_a.keys().chain(of_b.keys()).collect();
    let differ = names.into_iter().filter(|name| of_a.get(*name) != of_b.get(*name));
    let difference = |name: &String| SettingDifference {
        name: name.clone(),
        a: of_a.get(name).cloned().unwrap_or_else(|| "nothing".to_owned()),
        b: of_b.get(name).cloned().unwrap_or_else(|| "nothing".to_owned()),
        a_is_default: false,
        b_is_default: false,
        verdict: Verdict::Matters,
    };
    differ.map(difference).collect()
}

fn difference(
    setting: &'static Setting,
    (a, b): (&TrialConfig, &TrialConfig),
    (kept_a, kept_b): (&TrialConfig, &TrialConfig),
) -> SettingDifference {
    let needs = setting.needs.words;
    let verdict = match (setting.needs.hold(a), setting.needs.hold(b)) {
        _ if !setting.same(kept_a, kept_b) => Verdict::Matters,
        (false, false) => Verdict::NoEffect { needs },
        (true, true) => Verdict::SameNetwork,
        _ => Verdict::NoEffectInOne { needs },
    };
    SettingDifference {
        name: setting.name.to_owned(),
        a: a.show(setting.name).unwrap_or_default(),
        b: b.show(setting.name).unwrap_or_default(),
        a_is_default: is_default(setting, a),
        b_is_default: is_default(setting, b),
        verdict,
    }
}

impl fmt::Display for SettingDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = |default: bool| if default { " (default)" } else { "" };
        let (a, b) = (mark(self.a_is_default), mark(self.b_is_default));
        write!(f, "{}: {}{a} | {}{b}: ", self.name, self.a, self.b)?;
        match self.verdict {
            Verdict::Matters => f.write_str("makes two trials"),
            Verdict::NoEffect { needs } => write!(f, "no effect, it needs {needs}"),
            Verdict::NoEffectInOne { needs } => write!(f, "no effect in one of them, it needs {needs}"),
            Verdict::SameNetwork => f.write_str("the same network is built"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::identity::tests::any_trial;

    fn lines(a: Value, b: Value) -> Vec<String> {
        let [a, b] = [a, b].map(|settings| {
            let Value::Object(map) = settings else { panic!("settings are an object") };
            TrialConfig::from_settings(&map).unwrap()
        });
        explain(&a, &b).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn differences_say_whether_they_matter_and_why_not() {
        let plain = json!({"dataset": "cycles", "depth": 3, "num_filtrations": 3, "num_heads": 8});
        let other = json!({"dataset": "cycles", "depth": 2});
        let expected = [
            "depth: 3 | 2: makes two trials",
            "num_heads: 8 | 1 (default): no effect, it needs `model: gat`",
            "num_filtrations: 3 | 8 (default): no effect, it needs `togl: true`",
        ];
        assert_eq!(lines(plain, other), expected);
    }

    #[test]
    fn the_same_network_written_in_two_ways_is_recognised() {
        let replaced = json!({"dataset": "x", "togl": true, "placement": "replace"});
        let added = json!({"dataset": "x", "togl": true, "depth": 3});
        let expected = [
            "depth: 4 (default) | 3: the same network is built",
            "placement: replace | add (default): the same network is built",
        ];
        assert_eq!(lines(replaced, added), expected);
    }

    proptest! {
        #[test]
        fn trials_are_the_same_exactly_if_no_difference_matters(a in any_trial(), b in any_trial(), mix: u64) {
            let mut c = a.clone();
            for (at, setting) in SETTINGS.iter().enumerate().filter(|(at, _)| mix >> at & 1 == 1) {
                let _ = at;
                setting.copy(&b, &mut c);
            }
            let matters = explain(&a, &c).iter().any(|difference| difference.verdict == Verdict::Matters);
            prop_assert_eq!(matters, a.id() != c.id());
        }
    }
}
