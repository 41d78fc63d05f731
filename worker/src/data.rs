//! The data set of a trial: where it is, where it may be fetched from if it is missing, and how that goes on. Missing
//! files are fetched before training, once a machine however many slots ask; the fetching is done by `togl-data`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use togl_data::{DataProgress, DataWork, Dataset, Error, ObtainError, OpenOptions, Supply};
use togl_learning::baselines;
use togl_sweeps::{Failure, FailureClass, TrialConfig, hint};

use togl_proto::own_machine;

/// Where data sets come from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
pub struct Data {
    /// Where data sets are, and where missing ones are fetched to [default: data in the user's cache directory]
    #[arg(long, value_name = "DIR", env = "TOGL_DATA")]
    data_dir: Option<PathBuf>,
    /// Fetch nothing: data that is missing is an error at once
    #[arg(long, env = "TOGL_OFFLINE")]
    offline: bool,
    /// Fetch from this address instead of the public sites: a folder laid out like a data folder
    #[arg(long, value_name = "URL", env = "TOGL_DATA_MIRROR")]
    data_mirror: Option<String>,
    /// Believe the authorities in this file when fetching
    #[arg(long, value_name = "FILE", env = "SSL_CERT_FILE", hide = true)]
    data_ca: Option<PathBuf>,
}

impl Data {
    /// Where data sets are; none without a home.
    pub fn folder(&self) -> Option<PathBuf> {
        self.data_dir.clone().or_else(|| own_machine::cache_folder().map(|folder| folder.join("data")))
    }

    /// The data set of a trial, fetched if need be; what takes long is said.
    pub fn open(&self, trial: &TrialConfig, say: &(dyn Fn(&str) + Sync)) -> Result<Dataset, Failure> {
        self.obtain(trial, say).map_err(|error| failure(&error))
    }

    /// The same of a data set that may be known to a program only; then there is none.
    pub fn open_if_known(
        &self,
        trial: &TrialConfig,
        say: &(dyn Fn(&str) + Sync),
    ) -> Result<Option<Dataset>, Failure> {
        match self.obtain(trial, say) {
            Ok(dataset) => Ok(Some(dataset)),
            Err(ObtainError::Open(Error::UnknownDataset { .. })) => Ok(None),
            Err(error) => Err(failure(&error)),
        }
    }

    fn obtain(&self, trial: &TrialConfig, say: &(dyn Fn(&str) + Sync)) -> Result<Dataset, ObtainError> {
        let cache = own_machine::cache_folder();
        let options = OpenOptions {
            data_dir: self.folder(),
            cache_dir: cache.map(|folder| folder.join("data-cache")),
            data_seed: trial.data_seed,
            features: baselines::feature_choice(trial),
            ..OpenOptions::default()
        };
        let (mirror, ca_file) = (self.data_mirror.clone(), self.data_ca.clone());
        let supply = Supply { offline: self.offline, mirror, ca_file, ..Supply::default() };
        let said = AtomicU64::new(0);
        let observer = |progress: DataProgress| {
            if let Some(text) = milestone(&said, &trial.dataset, progress) {
                say(&text);
            }
        };
        togl_data::obtain(&trial.dataset, &options, &supply, &observer).map(|opened| opened.dataset)
    }
}

/// What to say of a step, if it is the first of a new tenth.
fn milestone(said: &AtomicU64, dataset: &str, progress: DataProgress) -> Option<String> {
    let total = progress.total.filter(|total| *total > 0)?;
    let tenths = progress.done * 10 / total;
    if said.fetch_max(tenths, Ordering::Relaxed) >= tenths {
        return None;
    }
    let percent = 10 * tenths;
    Some(match progress.work {
        DataWork::Download => format!("fetching {dataset}: {percent} % of {:.1} MB", total as f64 / 1e6),
        DataWork::Superpixels => format!("making superpixels of {dataset}: {percent} % of {total} images"),
    })
}

/// A setting that does not fit the data set is the trial's fault; everything else may be different elsewhere.
fn failure(error: &ObtainError) -> Failure {
    let class = match error {
        ObtainError::Open(Error::BadOption { .. }) => FailureClass::Config,
        _ => FailureClass::Data,
    };
    let mut message = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        message = format!("{message}: {next}");
        cause = next.source();
    }
    Failure::new(class, hint::beside(message, error.hint()))
}

#[cfg(test)]
mod tests {
    use togl_sweeps::trial::Features;

    use super::*;

    fn open(dataset: &str, features: Features) -> Result<Dataset, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let data = Data { data_dir: Some(folder.path().to_owned()), offline: true, ..Data::default() };
        let trial = TrialConfig { dataset: dataset.to_owned(), features, ..TrialConfig::default() };
        data.open(&trial, &|_| ())
    }

    #[test]
    fn data_that_is_missing_and_settings_that_do_not_fit_are_told_apart() {
        assert_eq!(open("cycles", Features::Random).unwrap().name(), "cycles");
        let missing = open("DD", Features::Original).unwrap_err();
        assert_eq!(missing.class, FailureClass::Data);
        assert!(missing.message.contains("togl data fetch DD"), "{missing}");
        let misfit = open("cycles", Features::Colour).unwrap_err();
        assert_eq!(misfit.class, FailureClass::Config, "{misfit}");
        assert!(misfit.message.contains("features"), "{misfit}");
    }

    #[test]
    fn long_fetches_are_mentioned_ten_times_and_not_for_every_block() {
        let said = AtomicU64::new(0);
        let step = |done| DataProgress { work: DataWork::Download, done, total: Some(1_000_000) };
        let lines: Vec<String> =
            (0..=1000).filter_map(|step_| milestone(&said, "DD", step(step_ * 1000))).collect();
        assert_eq!(lines.len(), 10);
        assert_eq!(lines[0], "fetching DD: 10 % of 1.0 MB");
        let unknown = DataProgress { work: DataWork::Download, done: 5, total: None };
        assert_eq!(milestone(&said, "DD", unknown), None);
    }
}
