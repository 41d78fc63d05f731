//! What a trial's identity and its checks promise.

use serde_json::json;

use super::*;

fn trial(settings: Value) -> TrialConfig {
    let Value::Object(map) = settings else { panic!("settings are an object") };
    TrialConfig::from_settings(&map).unwrap()
}

fn refusal(settings: Value) -> String {
    let Value::Object(map) = settings else { panic!("settings are an object") };
    TrialConfig::from_settings(&map).unwrap_err().to_string()
}

#[test]
fn defaults_spelled_out_are_the_same_trial() {
    let short = trial(json!({"dataset": "necklaces"}));
    let long = trial(json!({"dataset": "necklaces", "depth": 4, "lr": 0.001, "togl": false}));
    assert_eq!(short.id(), long.id());
    assert_eq!(short.canonical(), r#"{"canonical":1,"dataset":"necklaces","numerics":1}"#);
}

#[test]
fn settings_without_effect_do_not_make_another_trial() {
    let plain = trial(json!({"dataset": "cycles"}));
    let same = trial(json!({"dataset": "cycles", "deepset": true, "num_filtrations": 3, "num_heads": 8}));
    assert_eq!(plain.id(), same.id());
    let togl = trial(json!({"dataset": "cycles", "togl": true, "num_filtrations": 3}));
    assert_ne!(plain.id(), togl.id());
}

#[test]
fn replacing_a_layer_and_adding_to_a_shallower_network_are_the_same_trial() {
    let replaced = trial(json!({"dataset": "cycles", "togl": true, "depth": 4, "placement": "replace"}));
    let added = trial(json!({"dataset": "cycles", "togl": true, "depth": 3}));
    assert_eq!(replaced.id(), added.id());
    assert_eq!(replaced.method(), "GCN-3-TOGL-1");
    let last = trial(json!({"dataset": "cycles", "togl": true, "depth": 3, "togl_position": "last"}));
    let third = trial(json!({"dataset": "cycles", "togl": true, "depth": 3, "togl_position": 3}));
    assert_eq!(last.id(), third.id());
}

#[test]
fn the_canonical_form_reads_back_to_the_same_trial() {
    let config =
        trial(json!({"dataset": "DD", "togl": true, "static": true, "lr": 7e-4, "togl_position": "last"}));
    let back = TrialConfig::from_canonical(&config.canonical()).unwrap();
    assert_eq!(back.id(), config.id());
    assert!(TrialConfig::from_canonical(r#"{"canonical":1,"numerics":999,"dataset":"x"}"#).is_err());
}

#[test]
fn whole_numbers_and_decimals_of_the_same_value_are_the_same() {
    let whole = trial(json!({"dataset": "cycles", "lr": 1}));
    let decimal = trial(json!({"dataset": "cycles", "lr": 1.0}));
    assert_eq!(whole.id(), decimal.id());
}

#[test]
fn what_cannot_be_built_is_refused_by_name_with_a_way_out() {
    assert_eq!(refusal(json!({})), "setting `dataset`: missing; name a data set, such as `necklaces`");
    assert_eq!(
        refusal(json!({"dataset": "x", "dpeth": 3})),
        "setting `dpeth`: no such setting; did you mean `depth`?"
    );
    assert_eq!(refusal(json!({"dataset": "x", "depth": 65})), "setting `depth`: 65 is not in 0..=64");
    assert_eq!(
        refusal(json!({"dataset": "x", "depth": "deep"})),
        "setting `depth`: `deep` does not fit; expected a whole number from 0 to 64"
    );
    assert_eq!(
        refusal(json!({"dataset": "x", "model": "gnc"})),
        "setting `model`: `gnc` does not fit; did you mean `gcn`?"
    );
    let beyond = refusal(json!({"dataset": "x", "togl": true, "depth": 2, "togl_position": 3}));
    assert!(beyond.ends_with("with depth 2 use 0 to 2 or `last`"), "{beyond}");
}

#[test]
fn names_follow_the_network_that_is_built() {
    assert_eq!(trial(json!({"dataset": "x", "model": "gin", "depth": 5})).method(), "GIN-5");
    let fancy = trial(json!({"dataset": "x", "togl": true, "deepset": true, "static": true, "dim1": false}));
    assert_eq!(fancy.method(), "GCN-4-TOGL-1 (DeepSet, static, dim 0)");
}

/// An upgrade that would silently train everything again must fail here: raise `NUMERICS` on purpose instead.
#[test]
fn the_identity_of_known_trials_is_pinned() {
    let pinned = [
        (json!({"dataset": "necklaces"}), "d05686b6"),
        (json!({"dataset": "necklaces", "togl": true, "depth": 3}), "36e47483"),
    ];
    for (settings, start) in pinned {
        let id = trial(settings.clone()).id().to_string();
        assert!(id.starts_with(start), "{settings} is now {id}");
    }
}

#[test]
fn data_read_in_another_way_is_other_data() {
    let name = |settings: &str| TrialConfig::of_any_version(settings).map(|(trial, _)| trial.data());
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(name(r#"{"dataset":"ENZYMES"}"#), named("ENZYMES"));
    assert_eq!(name(r#"{"dataset":"ENZYMES","features":"random","unheard_of":1}"#), named("ENZYMES"));
    assert_eq!(name(r#"{"dataset":"ENZYMES","model":"wl","wl_labels":"node"}"#), named("ENZYMES@labels"));
    assert_eq!(name(r#"{"dataset":"mnist","features":"colour"}"#), named("mnist@colour"));
    assert_eq!(name(r#"{"dataset":"cycles","data_seed":7,"numerics":999}"#), named("cycles#7"));
    assert_eq!(name("not settings"), None);
}

#[test]
fn the_case_of_a_known_data_set_makes_no_other_trial() {
    let spelled = trial(json!({"dataset": "DD"}));
    assert_eq!(trial(json!({"dataset": "dd"})), spelled);
    let file =
        "version: 1\nname: x\ngrid: {dataset: [dd, DD, Mnist, Own, own]}\nexclude: [{dataset: MNIST}]\n";
    let trials = crate::SweepSpec::parse(file).unwrap().trials;
    let names: Vec<&str> = trials.iter().map(|trial| trial.config.dataset.as_str()).collect();
    assert_eq!(names, ["DD", "Own", "own"], "files of one's own are found by their exact names");
}

#[test]
fn a_trial_of_another_spelling_is_read_as_it_is_and_known_under_its_new_identity() {
    let old = r#"{"canonical":1,"dataset":"dd","depth":3,"lr":0.0007,"numerics":1}"#;
    let read = TrialConfig::from_canonical(old).unwrap();
    assert_eq!(read.canonical(), old, "a worker computes the identity that it was sent");
    let now = trial(json!({"dataset": "DD", "depth": 3, "lr": 7e-4}));
    assert_eq!(crate::identity::respelled(old), Some((now.id(), now.canonical())));
    assert_eq!(crate::identity::respelled(&now.canonical()), None);
}
