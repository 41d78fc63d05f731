//! What a grid promises: order, count before enumeration, conditions, exclusions, stable identities.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Map, json};

use super::*;
use crate::ids::TrialId;
use crate::settings;

fn base(settings: Value) -> TrialConfig {
    let Value::Object(map) = settings else { panic!("base is an object") };
    TrialConfig::from_settings(&map).unwrap()
}

fn axis(name: &str, values: Value) -> Axis {
    Axis::plain(settings::find(name).unwrap(), values.as_array().unwrap().clone())
}

pub(crate) fn condition(settings: Value) -> Condition {
    let Value::Object(map) = settings else { panic!("a condition is an object") };
    let mut condition = Condition::default();
    for (name, value) in map {
        let values = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
        condition.and(settings::find(&name).unwrap(), &values);
    }
    condition
}

fn grid(axes: Vec<Axis>) -> Grid {
    Grid { axes, ..Grid::single(base(json!({"dataset": "x"}))) }
}

fn methods(grid: &Grid) -> Vec<String> {
    grid.points().map(|point| point.unwrap().method()).collect()
}

#[test]
fn the_last_axis_moves_fastest() {
    let grid = grid(vec![axis("togl", json!([false, true])), axis("depth", json!([1, 2]))]);
    assert_eq!(methods(&grid), ["GCN-1", "GCN-2", "GCN-1-TOGL-1", "GCN-2-TOGL-1"]);
}

#[test]
fn a_grid_without_axes_is_one_point() {
    let grid = grid(Vec::new());
    assert_eq!((methods(&grid), grid.count()), (vec!["GCN-4".to_owned()], 1));
}

#[test]
fn a_huge_grid_is_counted_without_being_made() {
    let values: Vec<u32> = (0..1000).collect();
    let axes = ["depth", "lr_patience", "hidden_dim"].map(|name| axis(name, json!(values)));
    let mut grid = grid(axes.to_vec());
    assert_eq!(grid.count(), 1_000_000_000);
    grid.exclude.push(condition(json!({"depth": 7, "lr_patience": [1, 2, 3]})));
    assert_eq!(grid.count(), 1_000_000_000 - 3_000);
    assert!(grid.points().next().is_some());
}

#[test]
fn a_point_that_does_not_fit_is_named() {
    let mut grid = grid(vec![axis("depth", json!([1, 3])), axis("togl_position", json!([3]))]);
    grid.base.togl = true;
    let error = grid.points().find_map(Result::err).expect("position 3 of depth 1");
    assert!(error.to_string().starts_with("grid point depth=1, togl_position=3: setting `togl_position`"));
}

#[test]
fn an_axis_with_a_condition_is_passed_once_where_it_does_not_hold() {
    let mut deepset = axis("deepset", json!([false, true]));
    deepset.when = Some(condition(json!({"togl": true})));
    let grid = grid(vec![axis("togl", json!([false, true])), deepset, axis("depth", json!([1, 2]))]);
    assert_eq!(grid.count(), 6);
    let expected = [
        "GCN-1",
        "GCN-2",
        "GCN-1-TOGL-1",
        "GCN-2-TOGL-1",
        "GCN-1-TOGL-1 (DeepSet)",
        "GCN-2-TOGL-1 (DeepSet)",
    ];
    assert_eq!(methods(&grid), expected);
}

#[test]
fn a_value_with_a_condition_is_there_only_where_it_holds() {
    let mut depth = axis("depth", json!([1, 2, 3]));
    depth.choices[2].when = Some(condition(json!({"model": "gin"})));
    let grid = grid(vec![axis("model", json!(["gcn", "gin"])), depth]);
    assert_eq!(methods(&grid), ["GCN-1", "GCN-2", "GIN-1", "GIN-2", "GIN-3"]);
    assert_eq!(grid.count(), 5);
}

fn some_values(setting: &'static str) -> impl Strategy<Value = Vec<Value>> {
    let all: Vec<Value> = match setting {
        "togl" | "deepset" | "static" => vec![json!(false), json!(true)],
        "model" => vec![json!("gcn"), json!("gin"), json!("gat")],
        _ => (1..5).map(Value::from).collect(),
    };
    let most = all.len();
    proptest::sample::subsequence(all, 1..=most)
}

const NAMES: [&str; 6] = ["togl", "model", "depth", "deepset", "static", "lr_patience"];

/// A condition on some of the settings before `end`.
fn some_condition(end: usize) -> impl Strategy<Value = Condition> {
    let tests: Vec<_> =
        NAMES[..end].iter().map(|name| proptest::option::weighted(0.4, some_values(name)).boxed()).collect();
    tests.prop_map(move |tests| {
        let map: Map<String, Value> = NAMES
            .iter()
            .zip(tests)
            .filter_map(|(name, values)| Some(((*name).to_owned(), json!(values?))))
            .collect();
        condition(Value::Object(map))
    })
}

fn some_axis(at: usize) -> impl Strategy<Value = Axis> {
    let when = proptest::option::weighted(0.3, some_condition(at));
    let choice_when = proptest::collection::vec(proptest::option::weighted(0.2, some_condition(at)), 5);
    (some_values(NAMES[at]), when, choice_when).prop_map(move |(values, when, choice_when)| {
        let mut made = axis(NAMES[at], json!(values));
        made.when = when.filter(|_| at > 0);
        for (choice, when) in made.choices.iter_mut().zip(choice_when) {
            choice.when = when.filter(|_| at > 0);
        }
        made
    })
}

fn some_grid() -> impl Strategy<Value = Grid> {
    let axes: Vec<_> = (0..NAMES.len()).map(|at| some_axis(at).boxed()).collect();
    (axes, proptest::collection::vec(some_condition(NAMES.len()), 0..3)).prop_map(|(axes, exclude)| {
        let exclude = exclude.into_iter().filter(|condition| condition.names().count() > 0).collect();
        Grid { axes, exclude, ..Grid::single(base(json!({"dataset": "x"}))) }
    })
}

fn ids(grid: &Grid) -> Vec<TrialId> {
    grid.points().map(|point| point.unwrap().id()).collect()
}

proptest! {
    #[test]
    fn as_many_points_come_out_as_were_counted(grid in some_grid()) {
        prop_assert_eq!(grid.points().count() as u128, grid.count());
    }

    #[test]
    fn the_points_are_the_combinations_that_are_there(grid in some_grid()) {
        let walked: Vec<TrialConfig> = grid.points().map(Result::unwrap).collect();
        let found: Vec<TrialConfig> =
            (0..grid.combinations()).filter_map(|index| grid.combination(index)).collect();
        // An axis that exists may begin with a choice that does not, so only the sets must agree.
        let sorted = |trials: &[TrialConfig]| -> BTreeSet<String> {
            trials.iter().map(|trial| serde_json::to_string(trial).unwrap()).collect()
        };
        prop_assert_eq!(walked.len(), found.len());
        prop_assert_eq!(sorted(&walked), sorted(&found));
    }

    #[test]
    fn identities_are_unique_and_do_not_depend_on_the_order_of_axes(
        depths in 1usize..6, patiences in 1usize..5, seeds in 1usize..4,
    ) {
        let list = |n: usize| json!((1..=n).collect::<Vec<_>>());
        let mut grid = grid(vec![
            axis("depth", list(depths)), axis("lr_patience", list(patiences)), axis("data_seed", list(seeds)),
        ]);
        let first: BTreeSet<_> = ids(&grid).into_iter().collect();
        prop_assert_eq!(first.len() as u128, grid.count());
        grid.axes.reverse();
        prop_assert_eq!(first, ids(&grid).into_iter().collect());
    }
}
