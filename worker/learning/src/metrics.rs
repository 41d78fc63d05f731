//! Losses and accuracies of a pass over a part of the data: batch losses are averaged unweighted, predictions are
//! pooled. Owns the loss function of each task and the ROC-AUC; must not know models or epochs.

use tch::{Device, Kind, Reduction, Tensor};
use togl_data::Task;
use togl_sweeps::result::Metrics;

use crate::batch::Batch;
use crate::error::{Result, TrainError};

/// Cross-entropy of one batch; node tasks weigh class c by (V - n_c) / V, absent classes by 0.
pub fn loss(task: Task, classes: u32, scores: &Tensor, batch: &Batch) -> Result<Tensor> {
    let weights = (task == Task::NodeClassification).then(|| class_weights(classes, &batch.host_labels));
    let weights =
        weights.map(|list| Tensor::from_slice(&list).to_kind(scores.kind()).to_device(scores.device()));
    Ok(scores.f_cross_entropy_loss(&batch.labels, weights.as_ref(), Reduction::Mean, -100, 0.0)?)
}

/// The share that every row has in the loss of its batch: equal ones, or by the rarity of its class.
pub(crate) fn row_weights(task: Task, classes: u32, labels: &[u32]) -> Vec<f32> {
    let of_class = match task {
        Task::NodeClassification => class_weights(classes, labels),
        Task::GraphClassification | Task::GraphBinaryAuc => vec![1.0; classes as usize],
    };
    let weights: Vec<f32> = labels.iter().map(|label| of_class[*label as usize]).collect();
    let total: f32 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / total).collect()
}

fn class_weights(classes: u32, labels: &[u32]) -> Vec<f32> {
    let mut counts = vec![0usize; classes as usize];
    labels.iter().for_each(|label| counts[*label as usize] += 1);
    let total = labels.len();
    let weight = |count: usize| if count == 0 { 0.0 } else { (total - count) as f32 / total as f32 };
    counts.into_iter().map(weight).collect()
}

/// Sums up one pass over one part of the data.
#[derive(Debug)]
pub struct MetricTally {
    task: Task,
    losses: f64,
    batches: u32,
    /// Rows are true classes, columns predicted ones.
    confusion: Vec<Vec<u64>>,
    /// Score of class 1 against class 0, and whether the label is 1; for the ROC-AUC only.
    scored: Vec<(f32, bool)>,
    /// What is still on a device.
    later: Vec<Later>,
}

/// A batch whose logarithms of class probabilities are still on the device.
#[derive(Debug)]
struct Later {
    log_probabilities: Tensor,
    labels: Vec<u32>,
    place: String,
}

impl MetricTally {
    /// Nothing seen yet.
    pub fn new(task: Task, classes: u32) -> Self {
        let confusion = vec![vec![0; classes as usize]; classes as usize];
        Self { task, losses: 0.0, batches: 0, confusion, scored: Vec::new(), later: Vec::new() }
    }

    /// Takes one batch; `place` says where in the run it was, for the error.
    pub fn add(&mut self, loss: &Tensor, scores: &Tensor, labels: &[u32], place: &str) -> Result<()> {
        let loss = loss.f_double_value(&[])?;
        if !loss.is_finite() {
            return Err(TrainError::NotFinite(format!("loss is {loss} {place}")));
        }
        self.losses += loss;
        self.batches += 1;
        let predicted = Vec::<i64>::try_from(scores.detach().f_argmax(1, false)?)?;
        for (label, predicted) in labels.iter().zip(predicted) {
            self.confusion[*label as usize][predicted as usize] += 1;
        }
        if self.task == Task::GraphBinaryAuc {
            let margin = scores.detach().f_select(1, 1)?.f_subtract(&scores.detach().f_select(1, 0)?)?;
            let margin = Vec::<f32>::try_from(margin.to_kind(Kind::Float))?;
            self.scored.extend(margin.into_iter().zip(labels.iter().map(|label| *label == 1)));
        }
        Ok(())
    }

    /// Takes one batch whose logarithms of class probabilities stay on their device until [`Self::settle`].
    pub fn add_later(&mut self, log_probabilities: &Tensor, labels: &[u32], place: &str) {
        let (labels, place) = (labels.to_vec(), place.to_owned());
        self.later.push(Later { log_probabilities: log_probabilities.detach(), labels, place });
    }

    /// Reads from the device what was left there: the host waits for it once, not with every batch.
    pub fn settle(&mut self) -> Result<()> {
        let later = std::mem::take(&mut self.later);
        if later.is_empty() {
            return Ok(());
        }
        let rows: Vec<&Tensor> = later.iter().map(|batch| &batch.log_probabilities).collect();
        let rows = Tensor::f_cat(&rows, 0)?.f_to_device(Device::Cpu)?;
        let mut first = 0;
        for Later { labels, place, .. } in &later {
            let count = labels.len() as i64;
            let scores = rows.f_narrow(0, first, count)?;
            let values = Vec::<f32>::try_from(scores.f_contiguous()?.f_view([-1])?)?;
            let width = values.len() / labels.len().max(1);
            let weights = row_weights(self.task, self.confusion.len() as u32, labels);
            let own = labels.iter().enumerate().map(|(row, label)| values[row * width + *label as usize]);
            let loss: f64 = own.zip(weights).map(|(value, weight)| -f64::from(value * weight)).sum();
            self.add(&Tensor::from(loss), &scores, labels, place)?;
            first += count;
        }
        Ok(())
    }

    /// Mean of the batch losses and the task's metric.
    pub fn metrics(&self) -> Metrics {
        let accuracy = match self.task {
            Task::GraphClassification => self.accuracy(),
            Task::NodeClassification => self.balanced_accuracy(),
            Task::GraphBinaryAuc => roc_auc(&self.scored),
        };
        Metrics { loss: self.losses / f64::from(self.batches), accuracy }
    }

    /// Rows are true classes, columns predicted ones.
    pub fn confusion(&self) -> &[Vec<u64>] {
        &self.confusion
    }

    fn accuracy(&self) -> f64 {
        let hits: u64 = self.confusion.iter().enumerate().map(|(class, row)| row[class]).sum();
        hits as f64 / self.confusion.iter().flatten().sum::<u64>() as f64
    }

    /// Mean over classes of recall. Classes without a single example are left out (their recall does not exist).
    fn balanced_accuracy(&self) -> f64 {
        let rows =
            self.confusion.iter().enumerate().map(|(class, row)| (row[class], row.iter().sum::<u64>()));
        let recalls: Vec<f64> =
            rows.filter(|(_, all)| *all > 0).map(|(hit, all)| hit as f64 / all as f64).collect();
        recalls.iter().sum::<f64>() / recalls.len() as f64
    }
}

/// Area under the ROC curve: the chance that a positive scores above a negative, ties counting half; one half where
/// one of the classes is missing.
fn roc_auc(scored: &[(f32, bool)]) -> f64 {
    let mut sorted = scored.to_vec();
    sorted.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (mut wins, mut negatives, mut positives) = (0.0, 0.0, 0.0);
    for tied in sorted.chunk_by(|left, right| left.0 == right.0) {
        let up = tied.iter().filter(|(_, positive)| *positive).count() as f64;
        let down = tied.len() as f64 - up;
        wins += up * (negatives + down / 2.0);
        negatives += down;
        positives += up;
    }
    if negatives * positives == 0.0 { 0.5 } else { wins / (negatives * positives) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(rows: &[[f32; 2]]) -> Tensor {
        Tensor::from_slice(&rows.concat()).view([-1, 2])
    }

    #[test]
    fn losses_are_averaged_over_batches_and_accuracy_over_examples() {
        let mut tally = MetricTally::new(Task::GraphClassification, 2);
        tally
            .add(&Tensor::from(1.0), &scores(&[[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), &[0, 1, 1], "")
            .unwrap();
        tally.add(&Tensor::from(3.0), &scores(&[[1.0, 0.0]]), &[0], "").unwrap();
        assert_eq!(tally.metrics(), Metrics { loss: 2.0, accuracy: 0.75 });
        assert_eq!(tally.confusion(), [[2, 0], [1, 1]]);
    }

    #[test]
    fn weighted_accuracy_is_the_mean_recall_of_the_classes_that_occur() {
        let mut tally = MetricTally::new(Task::NodeClassification, 3);
        let three = Tensor::from_slice(&[1f32, 0., 0., 1., 0., 0., 0., 1., 0.]).view([3, 3]);
        tally.add(&Tensor::from(1.0), &three, &[0, 1, 1], "").unwrap();
        assert_eq!(tally.metrics().accuracy, 0.75);
    }

    #[test]
    fn node_classes_are_weighted_by_their_rarity_and_absent_ones_by_zero() {
        assert_eq!(class_weights(3, &[0, 0, 0, 1]), [0.25, 0.75, 0.0]);
    }

    #[test]
    fn the_roc_auc_counts_ordered_pairs_and_halves_ties() {
        assert_eq!(roc_auc(&[(0.1, false), (0.4, false), (0.35, true), (0.8, true)]), 0.75);
        assert_eq!(roc_auc(&[(0.5, false), (0.5, true)]), 0.5);
        assert_eq!(roc_auc(&[(0.5, true)]), 0.5);
    }

    #[test]
    fn a_loss_that_is_not_finite_is_an_error_that_says_where() {
        let mut tally = MetricTally::new(Task::GraphClassification, 2);
        let error =
            tally.add(&Tensor::from(f64::NAN), &scores(&[[1.0, 0.0]]), &[0], "in epoch 3").unwrap_err();
        assert_eq!(error.to_string(), "not a finite number: loss is NaN in epoch 3");
    }

    #[test]
    fn what_is_read_at_the_end_of_an_epoch_is_what_was_read_after_each_batch() {
        let rows = scores(&[[1.0, 0.0], [0.2, 0.4], [0.0, 1.0]]);
        let labels = [0, 1, 1];
        let mut at_once = MetricTally::new(Task::GraphClassification, 2);
        let classes = Tensor::from_slice(&[0i64, 1, 1]);
        at_once.add(&rows.cross_entropy_for_logits(&classes), &rows, &labels, "").unwrap();
        let mut later = MetricTally::new(Task::GraphClassification, 2);
        later.add_later(&rows.log_softmax(1, None::<Kind>), &labels, "");
        later.settle().unwrap();
        assert!((at_once.metrics().loss - later.metrics().loss).abs() < 1e-6);
        assert_eq!(at_once.confusion(), later.confusion());
        later.add_later(&(rows.log_softmax(1, None::<Kind>) * f64::NAN), &labels, "in epoch 3, batch 1");
        let error = later.settle().unwrap_err();
        assert_eq!(error.to_string(), "not a finite number: loss is NaN in epoch 3, batch 1");
    }
}
