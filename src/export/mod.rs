//! What is exported of a sweep, the same for every system: one run a finished fold, with its settings, its numbers, its learning
//! curve and where it comes from. How a system wants it said is in a file each: [`mlflow`] (over [`server`]), [`tensorboard`]
//! (over [`records`]); W&B's form is a frame and made by `togl-analysis`. Chooses and averages nothing.

pub mod mlflow;
mod records;
pub mod server;
pub mod tensorboard;

use togl_analysis::FoldRow;
use togl_analysis::schema::{METRICS, PROVENANCE};
use togl_sweeps::TrialConfig;
use togl_sweeps::result::EpochRecord;
use togl_sweeps::settings::{SETTINGS, names_of};

/// Numbers of a fold that count something else than what training gave or took.
const NO_MEASUREMENTS: [&str; 6] =
    ["finished_at", "attempt", "numerics", "schema_version", "score_low", "score_high"];

/// The settings of a trial that have an effect, in their order; of a program those that it was given.
pub fn settings(config: &TrialConfig) -> Vec<(String, String)> {
    if config.program.is_some() {
        let names = names_of([config]).into_iter();
        return names.filter_map(|name| config.show(&name).map(|value| (name, value))).collect();
    }
    let relevant = config.relevant();
    let effective = SETTINGS.iter().filter(|setting| setting.needs.hold(&relevant));
    effective.filter_map(|setting| Some((setting.name.to_owned(), relevant.show(setting.name)?))).collect()
}

/// What training gave and took.
pub fn numbers(row: &FoldRow) -> Vec<(&'static str, f64)> {
    let measured = METRICS.iter().chain(&PROVENANCE).filter(|spec| !NO_MEASUREMENTS.contains(&spec.name));
    measured.filter_map(|spec| Some((spec.name, spec.value(row)?.as_f64()?))).collect()
}

/// Where a result comes from, in words.
pub fn provenance(row: &FoldRow) -> Vec<(&'static str, String)> {
    let said = PROVENANCE.iter().filter_map(|spec| {
        let value = spec.value(row)?;
        let counts = value.is_number() && !NO_MEASUREMENTS.contains(&spec.name);
        (!counts).then(|| (spec.name, value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
    });
    said.filter(|(name, _)| *name != "schema_version").collect()
}

/// One epoch of a learning curve, by name.
pub fn epoch(at: &EpochRecord) -> [(&'static str, f64); 5] {
    [
        ("learning_rate", at.lr),
        ("train/loss", at.train.loss),
        ("train/accuracy", at.train.accuracy),
        ("validation/loss", at.validation.loss),
        ("validation/accuracy", at.validation.accuracy),
    ]
}

/// When an epoch ended, in milliseconds since 1970: epochs are taken to be equally long, because results do not say. Results that do
/// not say when they ended begin in 1970.
pub fn ended(row: &FoldRow, epoch: u32) -> u64 {
    let share = (f64::from(epoch) + 1.0) / f64::from(row.result.epochs.max(1));
    started(row) + (share * milliseconds(row)) as u64
}

/// When training began, as far as the result says.
pub fn started(row: &FoldRow) -> u64 {
    row.result.finished_at.unwrap_or_default().saturating_sub(milliseconds(row) as u64)
}

fn milliseconds(row: &FoldRow) -> f64 {
    row.result.seconds * 1_000.0
}

/// A digest of all that is exported of a fold: whether what was exported is still what counts.
pub fn digest(row: &FoldRow) -> String {
    // A result of finite numbers and texts always serialises.
    let said = serde_json::to_vec(&(&row.result, row.attempt, &row.worker)).unwrap_or_default();
    blake3::hash(&said).to_hex()[..32].to_owned()
}

#[cfg(test)]
mod tests {
    use togl_sweeps::{FoldKey, result};

    use super::*;

    /// A finished fold.
    pub fn row() -> FoldRow {
        let config = TrialConfig { dataset: "DD".to_owned(), ..TrialConfig::default() };
        let fold = FoldKey { trial: config.id(), split: 3, seed: 1 };
        let mut result = result::example(0.75);
        result.finished_at = Some(1_700_000_010_000);
        result.seconds = 10.0;
        FoldRow { position: 0, fold, config, attempt: 2, worker: "w1".to_owned(), result }
    }

    #[test]
    fn a_run_has_the_settings_with_an_effect_and_no_others() {
        let said = settings(&row().config);
        let has = |name: &str, value: &str| said.contains(&(name.to_owned(), value.to_owned()));
        assert!(has("dataset", "DD") && has("depth", "4"));
        assert!(!said.iter().any(|(name, _)| name == "num_filtrations" || name == "svm_c_min"), "{said:?}");
    }

    #[test]
    fn a_run_of_a_program_has_the_settings_that_it_was_given_and_none_of_ours() {
        let text = "version: 1\nname: x\nprogram: {run: [./train], version: 1, settings: {lr: number, width: whole, depth: whole}}\n\
                    base: {dataset: mine, lr: 0.5, width: 8}\n";
        let spec = togl_sweeps::SweepSpec::parse(text).unwrap();
        let said = settings(&spec.trials[0].config);
        let pairs: Vec<(&str, &str)> =
            said.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(pairs, [("dataset", "mine"), ("data_seed", "0"), ("lr", "0.5"), ("width", "8")]);
    }

    #[test]
    fn numbers_and_words_are_told_apart_and_nothing_is_said_twice_or_lost() {
        let (numbers, words) = (numbers(&row()), provenance(&row()));
        assert!(numbers.contains(&("test_accuracy", 0.75)) && numbers.contains(&("train_size", 80.0)));
        assert!(words.contains(&("attempt", "2".to_owned())) && words.contains(&("worker", "w1".to_owned())));
        let all = numbers.iter().map(|(name, _)| *name).chain(words.iter().map(|(name, _)| *name));
        let known = METRICS.iter().chain(&PROVENANCE).filter(|spec| spec.value(&row()).is_some());
        let known = known.map(|spec| spec.name).filter(|name| *name != "schema_version");
        let mut sorted = [all.collect::<Vec<_>>(), known.collect()];
        sorted.iter_mut().for_each(|names| names.sort_unstable());
        assert_eq!(sorted[0], sorted[1]);
    }

    #[test]
    fn epochs_are_spread_over_the_time_of_training() {
        assert_eq!(started(&row()), 1_700_000_000_000);
        assert_eq!((ended(&row(), 0), ended(&row(), 4)), (1_700_000_002_000, 1_700_000_010_000));
    }

    #[test]
    fn another_result_has_another_digest() {
        let mut other = row();
        other.result.test.loss += 1e-9;
        assert_ne!(digest(&row()), digest(&other));
        assert_eq!(digest(&row()).len(), 32);
    }
}
