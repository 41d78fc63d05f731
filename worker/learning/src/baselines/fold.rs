//! One fold of a kernel trial: the graphs of the training and the validation part are learned from, an inner
//! cross-validation among them chooses the cost (and the number of rounds), the test part is predicted once.
//!
//! In the result an epoch is one point of the grid, rounds before costs, both ascending: `history` has the inner
//! accuracies of each, `best_epoch` is the chosen one, and there is no learning rate. `validation` and
//! `last_validation` are the inner accuracy of the chosen point, `train` that of the final machine on what it learned
//! from; a loss is a share of misses. `parameters` counts support vectors.

use togl_data::{Dataset, FeatureChoice, Split, Task};
use togl_sweeps::result::{EpochRecord, FoldResult};
use togl_sweeps::trial::{Backbone, Features, TrialConfig, WlLabels};

use super::gram::Gram;
use super::inner::{self, InnerFold, KernelTally};
use super::svm::Classifier;
use super::{ph, wl::WlKernel};
use crate::error::{Result, TrainError};
use crate::job::{self, EpochProgress, Flow, Job, Observer};

/// The node features that a trial's data set is opened with.
pub fn feature_choice(trial: &TrialConfig) -> FeatureChoice {
    match trial.features {
        _ if trial.model.refines_labels() && trial.wl_labels == WlLabels::Node => FeatureChoice::NodeLabels,
        Features::Colour => FeatureChoice::Colour,
        // Random features replace the data set's own, which are the same data.
        Features::Original | Features::Random => FeatureChoice::AsPublished,
    }
}

/// How many points the grid of a kernel has: what its epochs are counted to.
pub fn grid_points(trial: &TrialConfig) -> u32 {
    let grams = if trial.model.refines_labels() && trial.choose_rounds { trial.rounds() + 1 } else { 1 };
    grams * inner::costs(trial.svm_c_min, trial.svm_c_max).len() as u32
}

/// Who learns and who is tested: the data set's own split, or a fold of the repeat that the training seed draws.
pub(crate) fn split_of(job: &Job<'_>, dataset: &Dataset) -> Result<Split> {
    let split = u64::from(job.split);
    let made = match job.trial.outer_folds {
        folds if folds > 0 && job.trial.model.is_kernel() => dataset.repeated_fold(folds, job.seed, split),
        _ => dataset.split(split),
    };
    Ok(made?)
}

/// Fits and tests one fold.
pub(crate) fn fit_fold(
    job: &Job<'_>,
    dataset: &Dataset,
    split: &Split,
    observer: &mut dyn Observer,
) -> Result<FoldResult> {
    job.trial.check().map_err(|error| TrainError::Config(error.to_string()))?;
    let mut search = Search::new(job, dataset, split, observer)?;
    if job.trial.model == Backbone::Ph {
        let mut features = ph::features(dataset)?;
        ph::standardise(&mut features, &search.learned);
        search.look_at(ph::gaussian(&features)?)?;
    } else {
        let mut kernel = WlKernel::of(job.trial, dataset)?;
        let rounds = job.trial.rounds();
        for round in 0..=rounds {
            if round > 0 {
                kernel.refine();
            }
            if round == rounds || job.trial.choose_rounds {
                search.look_at(kernel.gram())?;
            }
        }
    }
    search.finish()
}

/// The best point of the grid so far.
struct Best {
    record: EpochRecord,
    gram: std::rc::Rc<Gram>,
    cost: f64,
}

/// The walk over the grid.
struct Search<'a> {
    job: &'a Job<'a>,
    dataset: &'a Dataset,
    split: &'a Split,
    observer: &'a mut dyn Observer,
    learned: Vec<u32>,
    folds: Vec<InnerFold>,
    costs: Vec<f64>,
    best: Option<Best>,
    history: Vec<EpochRecord>,
    started: f64,
}

impl<'a> Search<'a> {
    fn new(
        job: &'a Job<'a>,
        dataset: &'a Dataset,
        split: &'a Split,
        observer: &'a mut dyn Observer,
    ) -> Result<Self> {
        if dataset.task() != Task::GraphClassification {
            let (model, name) = (job.trial.model.as_str(), dataset.name());
            let text = format!("`{model}` tells classes of graphs apart, which is not the task of {name}");
            return Err(TrainError::Config(text));
        }
        let mut learned = [split.train.as_slice(), &split.validation].concat();
        learned.sort_unstable();
        let first = learned.first().map(|graph| dataset.labels()[*graph as usize]);
        if learned.iter().all(|graph| Some(dataset.labels()[*graph as usize]) == first) {
            let (split, name) = (job.split, dataset.name());
            let text = format!("the training part of split {split} of {name} has graphs of one class only");
            return Err(TrainError::Data(text));
        }
        let trial = job.trial;
        let folds = inner::deal(&learned, dataset.labels(), trial.inner_folds, job.seed, job.split.into());
        let costs = inner::costs(trial.svm_c_min, trial.svm_c_max);
        let started = (job.clock)();
        let (best, history) = (None, Vec::new());
        Ok(Self { job, dataset, split, observer, learned, folds, costs, best, history, started })
    }

    /// Judges all costs with one kernel.
    fn look_at(&mut self, gram: Gram) -> Result<()> {
        let gram = std::rc::Rc::new(gram);
        for cost in self.costs.clone() {
            let (train, validation) = inner::judge(&gram, &self.folds, self.dataset.labels(), cost);
            let record = EpochRecord { epoch: self.history.len() as u32, lr: 0.0, train, validation };
            self.history.push(record);
            let beaten = |best: &Best| validation.accuracy > best.record.validation.accuracy;
            if self.best.as_ref().is_none_or(beaten) {
                self.best = Some(Best { record, gram: gram.clone(), cost });
            }
            self.tell(record)?;
        }
        Ok(())
    }

    fn tell(&mut self, record: EpochRecord) -> Result<()> {
        let EpochRecord { epoch, train, validation, .. } = record;
        let seconds = (self.job.clock)() - self.started;
        let progress = EpochProgress {
            epoch,
            max_epochs: grid_points(self.job.trial),
            lr: 0.0,
            train,
            validation,
            best_epoch: self.best.as_ref().map_or(epoch, |best| best.record.epoch),
            graphs_per_second: 0.0,
            seconds,
        };
        // There is nothing to save: a kernel that is stopped starts anew.
        if let Flow::Stop | Flow::SaveAndStop = self.observer.epoch(&progress) {
            return Err(TrainError::Stopped { epochs: epoch + 1 });
        }
        Ok(())
    }

    fn finish(self) -> Result<FoldResult> {
        let nothing = || TrainError::Config("the grid of costs is empty".to_owned());
        let Best { record, gram, cost } = self.best.ok_or_else(nothing)?;
        let (dataset, labels) = (self.dataset, self.dataset.labels());
        let machine = Classifier::fit(&gram, &self.learned, labels, cost);
        let metrics = |graphs: &[u32]| {
            let mut tally = KernelTally::default();
            tally.add(&machine, &gram, graphs, labels);
            tally.metrics()
        };
        let classes = dataset.classes() as usize;
        let mut confusion = vec![vec![0; classes]; classes];
        for graph in &self.split.test {
            let predicted = machine.predict(&gram, *graph) as usize;
            confusion[labels[*graph as usize] as usize][predicted] += 1;
        }
        // Kernels are computed on the host, whatever device the slot has.
        let test = metrics(&self.split.test);
        Ok(FoldResult {
            train: metrics(&self.learned),
            seconds: (self.job.clock)() - self.started,
            parameters: machine.support_count() as u64,
            confusion,
            ..job::result(dataset, self.split, "cpu", record, test, self.history)
        })
    }
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
