//! Further results of finished folds, and what they say differently: a free check of reproducibility. Compares; which
//! result counts was decided long before.

use std::collections::BTreeMap;

use togl_sweeps::{Attempt, FoldKey, FoldResult, SweepName, WorkerId};

use super::{Reader, ResultKind, ResultQuery, ResultRow, StoreError};

/// A result beside the one that counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Replicate {
    /// Of which fold.
    pub fold: FoldKey,
    /// Canonical JSON of the trial.
    pub trial: String,
    /// Of which attempt.
    pub attempt: Attempt,
    /// Who had that attempt.
    pub worker: WorkerId,
    /// Another attempt's result, or a second report of one.
    pub kind: ResultKind,
    /// Its accuracy on the test part.
    pub test_accuracy: f64,
    /// What decided its last digits; empty if it does not say.
    pub processor: String,
    /// What it is compared with; none if that was set aside since.
    pub counted: Option<Counted>,
}

/// The result that counts, as seen from another one.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// Of which attempt.
    pub attempt: Attempt,
    /// Its accuracy on the test part.
    pub test_accuracy: f64,
    /// What decided its last digits.
    pub processor: String,
    /// Where the other one differs; nowhere if both say the same numbers.
    pub differences: Vec<Difference>,
}

/// A field that two results do not agree on.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Its name.
    pub field: String,
    /// In the result that counts.
    pub accepted: String,
    /// In the other one.
    pub other: String,
    /// How far they are apart; 0 for what is not a number.
    pub distance: f64,
}

/// The further results of some folds of a sweep, and where the next ones begin.
pub(super) fn page(
    reader: &dyn Reader,
    sweep: &SweepName,
    from: u64,
) -> Result<(Vec<Replicate>, Option<u64>), StoreError> {
    let query = ResultQuery { from, ..ResultQuery::accepted(sweep.clone()) };
    let (mut further, mut next) = (Vec::new(), None);
    for kind in [ResultKind::Replicate, ResultKind::Conflict] {
        let page = reader.results(&ResultQuery { kind, ..query.clone() })?;
        further.extend(page.rows.into_iter().map(|row| (kind, row)));
        next = page.next;
    }
    if further.is_empty() {
        return Ok((Vec::new(), next));
    }
    let accepted = reader.results(&query)?.rows;
    let accepted: BTreeMap<FoldKey, ResultRow> = accepted.into_iter().map(|row| (row.fold, row)).collect();
    let compared = further.into_iter().map(|(kind, row)| compare(kind, accepted.get(&row.fold), row));
    Ok((compared.collect(), next))
}

fn compare(kind: ResultKind, accepted: Option<&ResultRow>, row: ResultRow) -> Replicate {
    Replicate {
        counted: accepted.map(|accepted| Counted {
            attempt: accepted.attempt,
            test_accuracy: accepted.result.test.accuracy,
            processor: accepted.result.provenance.processor.clone(),
            differences: differences(&accepted.result, &row.result),
        }),
        fold: row.fold,
        trial: row.trial,
        attempt: row.attempt,
        worker: row.worker,
        kind,
        test_accuracy: row.result.test.accuracy,
        processor: row.result.provenance.processor,
    }
}

/// The fields that count and are not the same, in a fixed order.
fn differences(accepted: &FoldResult, other: &FoldResult) -> Vec<Difference> {
    let parts = [
        ("test", accepted.test, other.test),
        ("validation", accepted.validation, other.validation),
        ("train", accepted.train, other.train),
        ("last_validation", accepted.last_validation, other.last_validation),
    ];
    let numbers = parts.into_iter().flat_map(|(part, a, b)| {
        [(format!("{part}.loss"), a.loss, b.loss), (format!("{part}.accuracy"), a.accuracy, b.accuracy)]
    });
    let epochs = [
        ("best_epoch".to_owned(), f64::from(accepted.best_epoch), f64::from(other.best_epoch)),
        ("epochs".to_owned(), f64::from(accepted.epochs), f64::from(other.epochs)),
    ];
    let differ = |(field, a, b): (String, f64, f64)| {
        let distance = (a - b).abs();
        (a != b).then(|| Difference { field, accepted: a.to_string(), other: b.to_string(), distance })
    };
    let mut found: Vec<_> = numbers.chain(epochs).filter_map(differ).collect();
    if accepted.data_digest != other.data_digest {
        found.push(Difference {
            field: "data_digest".to_owned(),
            accepted: accepted.data_digest.clone(),
            other: other.data_digest.clone(),
            distance: 0.0,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use togl_sweeps::result::example;

    use super::*;

    #[test]
    fn every_field_that_counts_is_compared_and_no_other() {
        let one = example(0.5);
        let mut other = example(0.5);
        other.seconds = 99.0;
        other.provenance.host = "elsewhere".to_owned();
        assert!(one.same_numbers(&other) && differences(&one, &other).is_empty());
        other.test.loss += 0.25;
        other.epochs += 2;
        other.data_digest = "other".to_owned();
        let found = differences(&one, &other);
        let fields: Vec<(&str, f64)> = found.iter().map(|d| (d.field.as_str(), d.distance)).collect();
        assert_eq!(fields, [("test.loss", 0.25), ("epochs", 2.0), ("data_digest", 0.0)]);
    }
}
