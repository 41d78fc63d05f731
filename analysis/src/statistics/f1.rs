//! The F1 score of a confusion matrix. It agrees with scikit-learn's `f1_score(average="macro", zero_division=0)`.

/// The mean over classes of the F1 score; rows are true classes, columns predicted ones. A class that is neither there
/// nor predicted does not count. None where nothing was counted, or the matrix is not square.
pub fn mean_f1(confusion: &[Vec<u64>]) -> Option<f64> {
    let classes = confusion.len();
    if confusion.iter().any(|row| row.len() != classes) {
        return None;
    }
    let scores = (0..classes).filter_map(|class| {
        let there: u64 = confusion[class].iter().sum();
        let predicted: u64 = confusion.iter().map(|row| row[class]).sum();
        let both = there + predicted;
        (both > 0).then(|| 2.0 * confusion[class][class] as f64 / both as f64)
    });
    let scores: Vec<f64> = scores.collect();
    (!scores.is_empty()).then(|| scores.iter().sum::<f64>() / scores.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f1_is_averaged_over_the_classes_that_are_there_or_predicted() {
        // y_true = [0]*4 + [1]*4, y_pred = [0]*3 + [1]*5: scikit-learn 1.5 says 0.873015873015873.
        assert_eq!(mean_f1(&[vec![3, 1], vec![0, 4]]), Some((6.0 / 7.0 + 8.0 / 9.0) / 2.0));
        // A class that is predicted but never there has a score of 0; one that is neither does not count.
        assert_eq!(mean_f1(&[vec![1, 1, 0], vec![0, 0, 0], vec![0, 0, 0]]), Some(1.0 / 3.0));
        assert_eq!(
            (mean_f1(&[]), mean_f1(&[vec![0, 0], vec![0, 0]]), mean_f1(&[vec![1, 2]])),
            (None, None, None)
        );
    }
}
