//! Results that cannot be are refused with the name of the field, and what was written before is read.

use super::*;

/// What is said of the example after an edit.
fn refusal(edit: impl FnOnce(&mut FoldResult)) -> String {
    let mut result = example(0.75);
    edit(&mut result);
    result.check().unwrap_err().to_string()
}

#[test]
fn metrics_that_cannot_be_are_refused_and_named() {
    assert!(example(0.75).check().is_ok() && example(0.1 + 0.2).check().is_ok());
    let said = refusal(|result| result.validation.loss = f64::NAN);
    assert_eq!(said, "result has validation loss = NaN, which is not a possible value");
    assert!(example(1.5).check().is_err());
    let newer = FoldResult { version: RESULT_VERSION + 1, ..example(1.5) };
    assert!(matches!(newer.check(), Err(ResultError::Newer { .. })), "said before anything else");
    for joules in [f64::NAN, f64::INFINITY, -1.0] {
        let said = refusal(|result| result.energy_joules = Some(joules));
        assert!(said.starts_with("result has energy_joules = "), "{said}");
    }
}

#[test]
fn a_learning_curve_outside_its_range_is_refused() {
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let said = refusal(|result| result.history[0].train.loss = number);
        assert!(said.starts_with("result has learning curve train loss = "), "{said}");
    }
    let said = refusal(|result| result.history[0].validation.accuracy = 87.5);
    assert_eq!(said, "result has learning curve validation accuracy = 87.5, which is not a possible value");
    let said = refusal(|result| result.history[0].lr = -1e-3);
    assert_eq!(said, "result has learning curve lr = -0.001, which is not a possible value");
    let said = refusal(|result| result.history[0].epoch = 5);
    assert!(said.starts_with("result has learning curve epoch = 5, which contradicts epochs = 5"), "{said}");
    let said = refusal(|result| result.history = vec![result.history[0]; 2]);
    assert!(said.starts_with("result has learning curve epoch = 0, which contradicts"), "{said}");
}

#[test]
fn values_that_contradict_each_other_are_refused_and_named() {
    let said = refusal(|result| result.best_epoch = 5);
    assert_eq!(said, "result has best_epoch = 5, which contradicts epochs = 5");
    let said = refusal(|result| _ = result.confusion[1].pop());
    assert_eq!(said, "result has confusion row length = 1, which contradicts its 2 rows");
    let said = refusal(|result| result.provenance.host = "h".repeat(3 << 20));
    assert_eq!(said, "result has host of 3145728 bytes, the longest is 1024");
}

#[test]
fn a_confusion_matrix_is_held_against_the_value_where_that_follows_from_it() {
    let with = |confusion: &[[u64; 2]; 2], accuracy| {
        let confusion = confusion.iter().map(|row| row.to_vec()).collect();
        FoldResult { confusion, ..example(accuracy) }.check().unwrap()
    };
    let (skewed, accuracy, weighted) = ([[1, 0], [3, 4]], 0.625, (1.0 + 4.0 / 7.0) / 2.0);
    assert_eq!(with(&skewed, accuracy).check_confusion(Scoring::Accuracy), Ok(()));
    assert_eq!(with(&skewed, weighted).check_confusion(Scoring::WeightedAccuracy), Ok(()));
    for (metric, value) in [(Scoring::Accuracy, weighted), (Scoring::WeightedAccuracy, accuracy)] {
        let said = with(&skewed, value).check_confusion(metric).unwrap_err().to_string();
        assert!(
            said.starts_with(&format!("result has test accuracy = {value}, which contradicts")),
            "{said}"
        );
    }
    let said = with(&[[4, 1], [0, 4]], 8.0 / 9.0).check_confusion(Scoring::Accuracy).unwrap_err();
    assert!(said.to_string().contains("test part size = 8, which contradicts"), "{said}");
    for metric in [Scoring::Accuracy, Scoring::WeightedAccuracy, Scoring::RocAuc] {
        assert_eq!(with(&[[0, 0], [0, 0]], 0.3).check_confusion(metric), Ok(()), "it says nothing");
    }
    assert_eq!(with(&skewed, 0.3).check_confusion(Scoring::RocAuc), Ok(()));
    let most = with(&[[u64::MAX, u64::MAX], [u64::MAX, u64::MAX]], 0.5);
    assert!(most.check_confusion(Scoring::Accuracy).is_err(), "numbers of any size are counted");
}

#[test]
fn a_checked_result_is_written_as_any_and_read_only_if_it_passes() {
    let text = serde_json::to_string(&example(0.75).check().unwrap()).unwrap();
    assert_eq!(text, serde_json::to_string(&example(0.75)).unwrap());
    assert_eq!(*serde_json::from_str::<CheckedResult>(&text).unwrap(), example(0.75));
    let wrong = text.replace("\"best_epoch\":3", "\"best_epoch\":7");
    let said = serde_json::from_str::<CheckedResult>(&wrong).unwrap_err().to_string();
    assert!(said.contains("best_epoch = 7"), "{said}");
    assert!(serde_json::from_str::<FoldResult>(&wrong).is_ok(), "what was stored before stays readable");
}

#[test]
fn when_and_at_what_cost_a_fold_was_trained_says_nothing_about_its_numbers() {
    let timed = FoldResult { finished_at: Some(1), energy_joules: Some(2.0), ..example(0.75) };
    assert!(timed.same_numbers(&example(0.75)));
}

#[test]
fn a_result_from_before_times_were_kept_is_read() {
    let text = serde_json::to_string(&example(0.75)).unwrap();
    assert!(!text.contains("finished_at") && !text.contains("energy"), "as older programs wrote it: {text}");
    assert_eq!(serde_json::from_str::<FoldResult>(&text).unwrap().finished_at, None);
}

#[test]
fn a_result_survives_json() {
    let result = FoldResult { finished_at: Some(u64::MAX), energy_joules: Some(0.1), ..example(0.1 + 0.2) };
    let text = serde_json::to_string(&result).unwrap();
    assert_eq!(serde_json::from_str::<FoldResult>(&text).unwrap(), result);
}
