//! What a scale may be, what a sweep file may say of it, and that results and races follow it.

use proptest::prelude::*;

use super::*;
use crate::race::{Alpha, Criterion, Heat, Score, SplitScores, Terms};
use crate::result::{FoldResult, ResultError, example, version_of};
use crate::spec::Metric;
use crate::{CheckedResult, SweepSpec};

fn named(name: &'static str) -> Scale {
    Scale { goal: Goal::Min, high: None, low: Some(0.0), name: name.into() }
}

#[test]
fn a_scale_that_nobody_could_print_or_reach_is_refused() {
    assert_eq!(Scale::SHARE.check(), Ok(()));
    for name in ["MAE", "hits@10", "R2", "log-loss", "test seconds"] {
        assert_eq!(named(name).check(), Ok(()), "{name}");
    }
    let long: &'static str = Box::leak("x".repeat(65).into_boxed_str());
    for name in ["", "2", "a ", "$x$", "né", "<b>", long] {
        assert_eq!(named(name).check(), Err(ScaleError::Name), "{name}");
    }
    let reversed = Scale { high: Some(-1.0), ..named("MAE") };
    assert!(matches!(reversed.check(), Err(ScaleError::Empty { .. })));
    for bound in [f64::NAN, f64::INFINITY, LARGEST * 1.01] {
        let scale = Scale { low: Some(bound), ..named("MAE") };
        assert!(matches!(scale.check(), Err(ScaleError::Bound { .. })), "{bound}");
    }
}

#[test]
fn values_are_printed_in_percent_exactly_where_they_are_shares() {
    assert_eq!(
        (Scale::SHARE.show(0.913), Scale::SHARE.axis()),
        ("91.3 %".to_owned(), "accuracy (%)".to_owned())
    );
    let mae = named("MAE");
    assert_eq!((mae.show(1.5), mae.axis()), ("1.500".to_owned(), "MAE".to_owned()));
    assert!(mae.contains(1e9) && !mae.contains(-0.1) && !mae.contains(f64::NAN));
    assert!(!mae.contains(f64::INFINITY) && !mae.contains(LARGEST * 2.0));
    assert!((LARGEST as f32 - -LARGEST as f32).is_finite(), "a difference fits into single precision");
}

const FILE: &str = "\
version: 1
name: own
program:
  run: [python3, train.py]
  version: 1
  score: {name: MAE, goal: min, range: [0, null]}
base: {dataset: PROTEINS}
";

fn with_score(score: &str) -> Result<SweepSpec, String> {
    let text = FILE.replace("{name: MAE, goal: min, range: [0, null]}", score);
    SweepSpec::parse(&text).map_err(|error| error.to_string())
}

#[test]
fn a_score_of_a_program_is_part_of_the_identity_of_its_trials_and_none_is_as_before() {
    let of = |score: &str| with_score(score).unwrap();
    let spec = of("{name: MAE, goal: min, range: [0, null]}");
    let trial = &spec.trials[0].config;
    assert_eq!((spec.scale(), trial.scale()), (&named("MAE"), &named("MAE")));
    assert_eq!(
        trial.canonical(),
        r#"{"canonical":1,"dataset":"PROTEINS","program":{"run":["python3","train.py"],"score":{"goal":"min","low":0.0,"name":"MAE"},"version":"1"},"settings":{}}"#
    );
    let read = crate::TrialConfig::from_canonical(&trial.canonical()).unwrap();
    assert_eq!((&read, read.id()), (trial, spec.trials[0].id));
    let none =
        SweepSpec::parse(&FILE.replace("  score: {name: MAE, goal: min, range: [0, null]}\n", "")).unwrap();
    let said = of("{name: accuracy, goal: max, range: [0, 1]}");
    assert_eq!(said.trials[0].id, none.trials[0].id, "what is the default says nothing");
    assert_eq!(none.trials[0].config.scale(), &Scale::SHARE);
    for other in [
        "{name: RMSE, goal: min, range: [0, null]}",
        "{name: MAE, goal: max, range: [0, null]}",
        "{name: MAE, goal: min}",
    ] {
        assert_ne!(of(other).trials[0].id, spec.trials[0].id, "{other}");
    }
}

#[test]
fn a_score_that_makes_no_sense_is_refused_with_its_place() {
    let said = |score: &str| with_score(score).unwrap_err();
    assert_eq!(
        said("{name: MAE, goal: low}"),
        "6:28: program.score.goal: unknown word `low`; known: max, min"
    );
    assert_eq!(
        said("{name: MAE, goal: min, range: [1, 0]}"),
        "6:40: program.score.range: the range is empty: 1 is not below 0"
    );
    assert!(said("{name: MAE}").contains("the key `goal` is missing; say which values are better"));
    assert!(said("{goal: min}").contains("the key `name` is missing"));
    assert!(said("{name: \"$x$\", goal: min}").contains("program.score.name: a score is called by"));
    assert!(said("{name: MAE, goal: min, range: [0]}").contains("a range is two numbers"));
    assert!(
        said("{name: MAE, goal: min, range: [0, 1e300]}")
            .contains("a bound of a range is a number of at most")
    );
    let without = "version: 1\nname: x\nbase: {dataset: DD}\nscore: {name: MAE, goal: min}\n";
    let said = SweepSpec::parse(without).unwrap_err().to_string();
    assert!(said.starts_with("4:1: unknown key `score`"), "{said}");
}

fn scored(value: f64) -> FoldResult {
    FoldResult { version: 2, score: Some(named("MAE")), confusion: Vec::new(), ..example(value) }
}

#[test]
fn a_result_says_by_its_version_whether_it_has_a_score_and_keeps_to_its_range() {
    assert_eq!((version_of(None), version_of(Some(&named("MAE")))), (1, 2));
    let text = serde_json::to_string(&scored(3.5)).unwrap();
    assert_eq!(*serde_json::from_str::<CheckedResult>(&text).unwrap(), scored(3.5));
    let said = scored(-3.5).check().unwrap_err().to_string();
    assert_eq!(said, "result has test MAE = -3.5, which is not a possible value");
    for wrong in [FoldResult { version: 1, ..scored(3.5) }, FoldResult { version: 2, ..example(0.5) }] {
        assert!(matches!(wrong.check(), Err(ResultError::Contradiction { name: "version", .. })));
    }
    assert!(!scored(0.5).same_numbers(&FoldResult { confusion: Vec::new(), ..example(0.5) }));
}

#[test]
fn what_was_written_before_there_were_scores_is_read_and_written_as_it_was() {
    let text = include_str!("../tests/fixtures/result-1.json").trim_end();
    let result: CheckedResult = serde_json::from_str(text).unwrap();
    assert_eq!((result.version, result.scale()), (1, &Scale::SHARE));
    assert_eq!(serde_json::to_string(&result).unwrap(), text, "to the letter");
}

proptest! {
    #[test]
    fn with_all_values_negated_and_the_goal_turned_a_race_stops_the_same_trials(
        values in proptest::collection::vec(proptest::collection::vec(-1e3_f64..1e3, 8), 2..6),
        bold in any::<bool>(),
    ) {
        let criterion = if bold { Criterion::WorstSplit } else { Criterion::Test(Alpha::Tenth) };
        let stops = |goal: Goal, by: f64| {
            let score = |value: f64| {
                let scale = Scale { goal, low: None, ..named("MAE") };
                Score::of(&FoldResult { score: Some(scale), ..example(by * value) })
            };
            let mut heat = Heat::new(Terms { after: 2, criterion }, values.len(), 8);
            while !heat.is_over() {
                let at = heat.looks() as usize;
                heat.look(|trial| {
                    let outcome = crate::race::FoldStanding::Scored(score(values[trial][at]));
                    SplitScores::of(Metric::ValidationAccuracy, [outcome].into_iter()).unwrap()
                });
            }
            ((0..values.len()).map(|trial| heat.stop(trial)).collect::<Vec<_>>(), heat.leader())
        };
        prop_assert_eq!(stops(Goal::Max, 1.0), stops(Goal::Min, -1.0));
    }
}
