//! The trials of a search from best to worst, by their mean validation value, with the test value of each choice. Owns
//! the order and what is listed; test values decide nothing.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use togl_sweeps::Scale;
use togl_sweeps::spec::Metric;

use crate::cells::{rows_of_folds, values};
use crate::choice::{candidates, validation_words};
use crate::distinct::Distinct;
use crate::error::{Error, Result};
use crate::frame::FoldFrame;
use crate::level::SAME_SPLITS;
use crate::plan::Plan;
use crate::render::{aligned, typed};
use crate::scales;
use crate::spreadsheet;
use crate::statistics::Summary;
use crate::wording::{capital, fixed, how, metric_words};

/// A trial with what came out of it, in percent where values are shares.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RankedTrial {
    /// From 1 within its data set; none while it has fewer folds than planned, because it cannot be compared yet.
    pub rank: Option<usize>,
    /// Its identity, 32 hexadecimal digits.
    pub trial: String,
    /// What the network is called.
    pub method: String,
    /// The settings that differ between trials, as text.
    #[serde(serialize_with = "as_typed")]
    pub settings: Vec<(String, String)>,
    /// Mean of the validation values that decide.
    pub validation_mean: Option<f64>,
    /// Their sample standard deviation.
    pub validation_std: Option<f64>,
    /// Mean of the test values.
    pub test_mean: Option<f64>,
    /// Their sample standard deviation.
    pub test_std: Option<f64>,
    /// Folds that have finished with a validation value.
    pub n: usize,
    /// Folds that it is to have.
    pub planned: usize,
}

fn as_typed<S: Serializer>(settings: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(settings.len()))?;
    for (name, value) in settings {
        map.serialize_entry(name, &typed(name, value))?;
    }
    map.end()
}

/// All trials of a sweep, the best first; data set by data set, because values of different ones do not compare.
#[derive(Debug, Clone, PartialEq)]
pub struct Best {
    /// The validation metric that decided.
    pub by: Metric,
    /// What is shown of the test part.
    pub shown: Metric,
    /// What the values are.
    pub scale: Scale,
    /// The trials, data set by data set, from best to worst.
    pub trials: Vec<RankedTrial>,
}

impl Best {
    /// Orders the trials of a plan by the mean of a validation metric; of equal ones the last comes first, as in a
    /// choice.
    pub fn of(frame: &FoldFrame, plan: &Plan, by: Metric, shown: Metric) -> Result<Self> {
        let scale = scales::of_table(frame, plan, by)?;
        let of_test = scales::of_table(frame, plan, shown)?.factor();
        // What decides is turned so that higher is better.
        let of_validation = scale.sign() * scale.factor();
        let candidates = candidates(frame, plan, by)?;
        let tested = tested(frame, plan, shown)?;
        let trials: Vec<usize> = plan.trials_with_folds().into_iter().collect();
        if trials.iter().all(|trial| candidates[*trial].values.is_empty()) {
            let column = by.as_str();
            return Err(Error::NoValues { what: format!("the list of trials of {}", plan.title()), column });
        }
        let varied = plan.varied(&trials)?;
        let mut ranked = Vec::new();
        for members in by_data_set(plan, &trials)? {
            // Saved folds have no plan: what one trial has and another lacks is missing.
            let planned = members.iter().map(|trial| candidates[*trial].planned).max().unwrap_or_default();
            let complete = |trial: &usize| candidates[*trial].values.len() == planned;
            let (mut whole, mut rest): (Vec<usize>, Vec<usize>) = members.into_iter().partition(complete);
            whole.sort_by(|a, b| candidates[*b].compare(&candidates[*a]));
            rest.sort_by(|a, b| candidates[*b].compare(&candidates[*a]));
            let ranks = (1..=whole.len()).map(Some).chain(std::iter::repeat(None));
            for (rank, trial) in ranks.zip(whole.into_iter().chain(rest)) {
                let validation = summary(&candidates[trial].values, of_validation);
                let test = summary(&tested[trial], of_test);
                let setting = |name: &String| Ok((name.clone(), plan.label(trial, name)?));
                ranked.push(RankedTrial {
                    rank,
                    trial: plan.id(trial).to_string(),
                    method: plan.label(trial, "method")?,
                    settings: varied.iter().map(setting).collect::<Result<_>>()?,
                    validation_mean: validation.mean,
                    validation_std: validation.std,
                    test_mean: test.mean,
                    test_std: test.std,
                    n: validation.n,
                    planned,
                });
            }
        }
        Ok(Self { by, shown, scale, trials: ranked })
    }

    /// What the numbers are.
    pub fn caption(&self) -> String {
        format!(
            "From best to worst by the mean {}; beside it the value of each choice: {}. {}, mean ± sample standard \
             deviation over n folds.",
            validation_words(self.by, &self.scale),
            metric_words(self.shown, &self.scale),
            capital(how(&self.scale).trim_start_matches([',', ' ']))
        )
    }

    /// As aligned text, one line a trial.
    pub fn text(&self) -> String {
        let decimals = self.scale.decimals();
        let pair = |mean: Option<f64>, std: Option<f64>| match (mean, std) {
            (None, _) => "–".to_owned(),
            (Some(mean), None) => format!("{} ± n/a", fixed(mean, decimals)),
            (Some(mean), Some(std)) => format!("{} ± {}", fixed(mean, decimals), fixed(std, decimals)),
        };
        let names = self.settings();
        let headers: Vec<&str> =
            ["rank", "method"].into_iter().chain(names).chain(["validation", "test", "n", "trial"]).collect();
        let line = |trial: &RankedTrial| {
            let n = if trial.n < trial.planned {
                format!("{}/{}", trial.n, trial.planned)
            } else {
                trial.n.to_string()
            };
            let rank = trial.rank.map_or_else(|| "–".to_owned(), |rank| rank.to_string());
            let values = trial.settings.iter().map(|(_, value)| value.clone());
            let (validation, test) =
                (pair(trial.validation_mean, trial.validation_std), pair(trial.test_mean, trial.test_std));
            let id = trial.trial.chars().take(12).collect();
            [rank, trial.method.clone()].into_iter().chain(values).chain([validation, test, n, id]).collect()
        };
        aligned(&headers, &self.trials.iter().map(line).collect::<Vec<Vec<String>>>())
    }

    /// As CSV with numbers that are not rounded.
    pub fn csv(&self) -> String {
        let numbers = ["validation_mean", "validation_std", "test_mean", "test_std", "n", "planned"];
        let headers = ["rank", "trial", "method"].into_iter().chain(self.settings()).chain(numbers);
        let number = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let mut text = spreadsheet::line(headers);
        for trial in &self.trials {
            let rank = trial.rank.map(|rank| rank.to_string()).unwrap_or_default();
            let names = [rank, trial.trial.clone(), trial.method.clone()].into_iter();
            let values = trial.settings.iter().map(|(_, value)| value.clone());
            let means =
                [trial.validation_mean, trial.validation_std, trial.test_mean, trial.test_std].map(number);
            let counts = [trial.n.to_string(), trial.planned.to_string()];
            let fields = names.chain(values).chain(means).chain(counts);
            text.push_str(&spreadsheet::line(fields));
        }
        text
    }

    fn settings(&self) -> impl Iterator<Item = &str> {
        let first = self.trials.first().map(|trial| trial.settings.as_slice()).unwrap_or_default();
        first.iter().map(|(name, _)| name.as_str())
    }
}

fn summary(values: &[f64], factor: f64) -> Summary {
    Summary::of(&values.iter().map(|value| value * factor).collect::<Vec<_>>())
}

/// The trials of each data set, in the order of the plan.
fn by_data_set(plan: &Plan, trials: &[usize]) -> Result<Vec<Vec<usize>>> {
    let labelled = trials.iter().map(|trial| Ok((plan.labels(*trial, &SAME_SPLITS)?, *trial)));
    let groups = Distinct::grouped(labelled.collect::<Result<Vec<_>>>()?);
    Ok(groups.into_iter().map(|(_, trials)| trials).collect())
}

/// The test values of each trial's folds.
fn tested(frame: &FoldFrame, plan: &Plan, shown: Metric) -> Result<Vec<Vec<f64>>> {
    let values = values(frame, shown)?;
    let mut tested = vec![Vec::new(); plan.trials()];
    for (fold, row) in plan.folds().iter().zip(rows_of_folds(frame, plan)?) {
        tested[fold.trial].extend(row.and_then(|row| values[row]));
    }
    Ok(tested)
}

#[cfg(test)]
mod tests {
    use togl_sweeps::TrialConfig;
    use togl_sweeps::trial::Backbone;

    use super::*;
    use crate::frame::FoldRow;
    use crate::test_folds::{fold, frame, plan, trial};

    fn judged(position: u64, config: &TrialConfig, split: u32, validation: f64, test: f64) -> FoldRow {
        let mut row = fold(position, config, split, test);
        row.result.validation.accuracy = validation;
        row
    }

    #[test]
    fn trials_are_ordered_by_mean_validation_with_what_varies_and_the_test_value_of_that_choice() {
        let rates = [0.1, 0.01, 0.001].map(|lr| TrialConfig { lr, ..trial("DD", Backbone::Gcn, 4) });
        let other = TrialConfig { lr: 0.1, ..trial("MNIST", Backbone::Gcn, 4) };
        let rows = [
            judged(0, &rates[0], 0, 0.7, 0.9),
            judged(0, &rates[0], 1, 0.7, 0.9),
            judged(1, &rates[1], 0, 0.8, 0.5),
            judged(1, &rates[1], 1, 0.9, 0.7),
            judged(2, &rates[2], 0, 0.99, 0.99),
            judged(3, &other, 0, 0.99, 0.4),
            judged(3, &other, 1, 0.99, 0.4),
        ];
        let plan = plan(&[(&rates[0], 2), (&rates[1], 2), (&rates[2], 2), (&other, 2)]);
        let best = Best::of(&frame(rows), &plan, Metric::ValidationAccuracy, Metric::TestAccuracy).unwrap();
        insta::assert_snapshot!(best.text(), @"
        rank  method  dataset  lr     validation  test         n    trial
        1     GCN-4   DD       0.01   85.0 ± 7.1  60.0 ± 14.1  2    84ffb537cb6b
        2     GCN-4   DD       0.1    70.0 ± 0.0  90.0 ± 0.0   2    c8152c009416
        –     GCN-4   DD       0.001  99.0 ± n/a  99.0 ± n/a   1/2  131178607643
        1     GCN-4   MNIST    0.1    99.0 ± 0.0  40.0 ± 0.0   2    351d0d3ffade
        ");
        insta::assert_snapshot!(best.csv().lines().take(2).collect::<Vec<_>>().join("\n"), @"
        rank,trial,method,dataset,lr,validation_mean,validation_std,test_mean,test_std,n,planned
        1,84ffb537cb6b017fb3664d5241d77929,GCN-4,DD,0.01,85,7.0710678118654755,60,14.142135623730951,2,2
        ");
        let json = serde_json::to_string(&best.trials[0]).unwrap();
        assert!(
            json.contains(r#""settings":{"dataset":"DD","lr":0.01}"#) && json.contains(r#""rank":1"#),
            "{json}"
        );
        let none = Best::of(&frame([]), &plan, Metric::ValidationAccuracy, Metric::TestAccuracy).unwrap_err();
        assert!(matches!(none, Error::NoValues { .. }), "{none}");
    }
}
