//! What the settings of baselines promise: names, identities, and refusals that say what to do.

use serde_json::{Value, json};

use crate::trial::TrialConfig;

fn read(settings: Value) -> Result<TrialConfig, String> {
    let Value::Object(map) = settings else { panic!("settings are an object") };
    TrialConfig::from_settings(&map).map_err(|error| error.to_string())
}

fn trial(settings: Value) -> TrialConfig {
    read(settings).unwrap()
}

#[test]
fn names_say_which_kernel_how_many_rounds_and_which_labels() {
    let name = |settings| trial(settings).method();
    assert_eq!(name(json!({"dataset": "DD", "model": "wl", "depth": 3})), "WL-3");
    assert_eq!(name(json!({"dataset": "DD", "model": "wl", "depth": 3, "as_published": true})), "WL-2");
    let chosen = json!({"dataset": "DD", "model": "wl-oa", "choose_rounds": true, "wl_labels": "node"});
    assert_eq!(name(chosen), "WL-OA-0..4 (node labels)");
    assert_eq!(name(json!({"dataset": "DD", "model": "ph"})), "PH");
    assert_eq!(name(json!({"dataset": "DD", "model": "gfl", "depth": 1})), "GFL-1");
    assert_eq!(name(json!({"dataset": "DD", "model": "perslay"})), "PersLay");
}

#[test]
fn settings_of_networks_do_not_make_another_kernel_and_the_other_way_round() {
    let kernel = trial(json!({"dataset": "DD", "model": "wl"}));
    let same = json!({"dataset": "DD", "model": "wl", "lr": 0.1, "hidden_dim": 8, "features": "random", "dim1": false});
    assert_eq!(kernel.id(), trial(same).id());
    assert_eq!(kernel.canonical(), r#"{"canonical":1,"dataset":"DD","model":"wl","numerics":1}"#);
    let network = trial(json!({"dataset": "DD"}));
    let same = trial(json!({"dataset": "DD", "svm_c_max": 1.0, "inner_folds": 3, "wl_labels": "node"}));
    assert_eq!(network.id(), same.id());
    let fixed = trial(json!({"dataset": "DD", "model": "perslay"}));
    let same = trial(
        json!({"dataset": "DD", "model": "perslay", "depth": 2, "features": "random", "svm_c_max": 1.0}),
    );
    assert_eq!(fixed.id(), same.id());
    let other = trial(json!({"dataset": "DD", "model": "perslay", "num_coord_funs": 5, "lr": 0.1}));
    assert_ne!(fixed.id(), other.id());
}

#[test]
fn leaving_out_the_last_round_is_the_kernel_with_one_round_less() {
    let published = trial(json!({"dataset": "DD", "model": "wl", "depth": 4, "as_published": true}));
    let plain = trial(json!({"dataset": "DD", "model": "wl", "depth": 3}));
    assert_eq!(published.id(), plain.id());
    let other = trial(json!({"dataset": "DD", "model": "wl-oa", "depth": 4, "as_published": true}));
    assert_eq!(other.rounds(), 4, "only the subtree kernel of the published runs left a round out");
}

#[test]
fn what_a_baseline_cannot_do_is_refused_by_name_with_a_way_out() {
    let refusal = |settings| read(settings).unwrap_err();
    insta::assert_snapshot!(
        refusal(json!({"dataset": "DD", "model": "wl", "togl": true})),
        @"setting `togl`: `wl` cannot have a topological layer; set `togl: false` for it"
    );
    insta::assert_snapshot!(
        refusal(json!({"dataset": "Pattern", "model": "gfl"})),
        @"setting `model`: `gfl` tells classes of graphs apart, and pattern labels nodes; leave this data set out for it"
    );
    insta::assert_snapshot!(
        refusal(json!({"dataset": "ogbg-molhiv", "model": "ph"})),
        @"setting `model`: `ph` tells classes of graphs apart, and ogbg-molhiv is scored by ROC-AUC; leave this data set out for it"
    );
    assert!(read(json!({"dataset": "ogbg-molhiv", "model": "perslay"})).is_ok());
    insta::assert_snapshot!(
        refusal(json!({"dataset": "IMDB-BINARY", "model": "wl-oa", "wl_labels": "node"})),
        @"setting `wl_labels`: the nodes of IMDB-BINARY have no labels; use `wl_labels: degree`"
    );
    insta::assert_snapshot!(
        refusal(json!({"dataset": "DD", "model": "ph", "svm_c_min": 10, "svm_c_max": 1})),
        @"setting `svm_c_min`: 10 is above `svm_c_max`, which is 1"
    );
    insta::assert_snapshot!(
        refusal(json!({"dataset": "DD", "model": "wl", "depth": 0, "as_published": true})),
        @"setting `as_published`: leaves out the last of `depth` rounds, so it needs a depth of at least 1"
    );
    insta::assert_snapshot!(
        refusal(json!({"dataset": "DD", "model": "gin", "outer_folds": 5})),
        @"setting `outer_folds`: only kernels are tested on folds that seeds draw, and `gin` is a network; write `outer_folds: {values: [5], when: {model: [wl, wl-oa, ph]}}` in `grid`, or keep kernels in a grid of their own (`union`)"
    );
    insta::assert_snapshot!(
        refusal(json!({"dataset": "DD", "model": "ph", "outer_folds": 1})),
        @"setting `outer_folds`: one fold leaves nothing to learn from; use 2 or more, or 0 for the data set's own splits"
    );
}

/// Results from before there were outer folds are still found.
#[test]
fn the_data_sets_own_splits_are_the_trial_that_they_always_were() {
    let before = trial(json!({"dataset": "DD", "model": "wl"}));
    let spelled = trial(json!({"dataset": "DD", "model": "wl", "outer_folds": 0}));
    assert_eq!(before.id(), spelled.id());
    let repeated = trial(json!({"dataset": "DD", "model": "wl", "outer_folds": 5}));
    assert_ne!(before.id(), repeated.id());
    assert!(repeated.canonical().contains(r#""outer_folds":5"#));
}
