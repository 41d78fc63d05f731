//! What an identity promises, checked against the slow way of computing it.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;
use crate::settings::ValueKind;

fn as_map(config: &TrialConfig) -> Map<String, Value> {
    match serde_json::to_value(config) {
        Ok(Value::Object(map)) => map,
        other => panic!("a trial is an object, not {other:?}"),
    }
}

/// The definition, through a sorted map of JSON values.
fn slow_canonical(config: &TrialConfig) -> String {
    let default = as_map(&TrialConfig::default());
    let mut settings: BTreeMap<String, Value> = as_map(&config.relevant())
        .into_iter()
        .filter(|(name, value)| default.get(name) != Some(value))
        .collect();
    settings.insert("canonical".to_owned(), CANONICAL_VERSION.into());
    settings.insert("numerics".to_owned(), NUMERICS.into());
    Value::Object(settings.into_iter().collect()).to_string()
}

/// Some value that fits a setting.
fn value_of(kind: ValueKind) -> BoxedStrategy<Value> {
    match kind {
        ValueKind::Text => "[ -~é\"\\\\]{1,8}".prop_map(Value::from).boxed(),
        ValueKind::Flag => any::<bool>().prop_map(Value::from).boxed(),
        ValueKind::Whole(least, most) => (least..=most).prop_map(Value::from).boxed(),
        ValueKind::Real(least, most) => (least..=most).prop_map(Value::from).boxed(),
        ValueKind::Word(words) => proptest::sample::select(words).prop_map(Value::from).boxed(),
        ValueKind::Position => prop_oneof![(0u32..5).prop_map(Value::from), Just(json!("last"))].boxed(),
    }
}

pub(crate) fn any_trial() -> impl Strategy<Value = TrialConfig> {
    let values: Vec<BoxedStrategy<Option<Value>>> =
        SETTINGS.iter().map(|setting| proptest::option::of(value_of(setting.kind)).boxed()).collect();
    values.prop_map(|values| {
        let mut trial = TrialConfig { dataset: "x".to_owned(), ..TrialConfig::default() };
        for (setting, value) in SETTINGS.iter().zip(values) {
            let fits = value.is_none_or(|value| setting.set(&mut trial, &value));
            assert!(fits, "{}", setting.name);
        }
        trial
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn the_fast_canonical_form_is_the_defined_one(trial in any_trial()) {
        prop_assert_eq!(trial.canonical(), slow_canonical(&trial));
    }

    #[test]
    fn a_setting_whose_need_is_not_met_never_changes_the_identity(trial in any_trial(), other in any_trial()) {
        for setting in SETTINGS.iter().filter(|setting| !setting.needs.hold(&trial)) {
            let mut changed = trial.clone();
            setting.copy(&other, &mut changed);
            prop_assert_eq!(changed.id(), trial.id(), "{}", setting.name);
        }
    }

    #[test]
    fn what_is_relevant_is_relevant_again(trial in any_trial()) {
        prop_assert_eq!(trial.relevant().relevant(), trial.relevant());
        prop_assert_eq!(trial.relevant().id(), trial.id());
    }
}

#[test]
fn the_table_of_settings_has_every_field_of_a_trial_under_its_name() {
    let table: std::collections::BTreeSet<&str> = settings::names().collect();
    let fields = as_map(&TrialConfig::default());
    assert_eq!(table, fields.keys().map(String::as_str).collect());
    for setting in SETTINGS {
        assert_eq!(setting.value(&TrialConfig::default()), fields[setting.name], "{}", setting.name);
    }
}

#[test]
fn every_default_is_in_its_range() {
    SETTINGS
        .iter()
        .try_for_each(|setting| setting.check_range(&setting.value(&TrialConfig::default())))
        .unwrap();
}
