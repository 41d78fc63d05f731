//! Further results of finished folds, and what they say differently: a free check of reproducibility. Reads and
//! compares; which result counts was decided long before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use togl_proto::wire;
use togl_sweeps::{FoldKey, FoldResult, SweepName};
use tokio::sync::mpsc;
use tonic::Status;

use super::{Shared, status};
use crate::store::{ResultKind, ResultQuery, ResultRow};

type Rows = mpsc::Sender<Result<wire::Replicate, Status>>;

/// Sends the replicates and conflicts of these sweeps, each once, until done or the reader left.
pub(super) async fn send(shared: Arc<Shared>, sweeps: Vec<SweepName>, rows: Rows) {
    let mut sent = BTreeSet::new();
    for sweep in sweeps {
        for kind in [ResultKind::Replicate, ResultKind::Conflict] {
            if let Err(status) = send_kind(&shared, &sweep, kind, &mut sent, &rows).await {
                return drop(rows.send(Err(status)).await);
            }
        }
    }
}

async fn send_kind(
    shared: &Shared,
    sweep: &SweepName,
    kind: ResultKind,
    sent: &mut BTreeSet<(FoldKey, ResultKind, u32)>,
    rows: &Rows,
) -> Result<(), Status> {
    let mut query = ResultQuery { kind, ..ResultQuery::accepted(sweep.clone()) };
    loop {
        let page = shared.handle.results(query.clone()).await.map_err(status)?;
        if !page.rows.is_empty() {
            let query = ResultQuery { kind: ResultKind::Accepted, ..query.clone() };
            let accepted = shared.handle.results(query).await.map_err(status)?.rows;
            let accepted: BTreeMap<FoldKey, ResultRow> =
                accepted.into_iter().map(|row| (row.fold, row)).collect();
            for row in page.rows {
                // A fold may be in several sweeps.
                if sent.insert((row.fold, kind, row.attempt.0)) {
                    let replicate = replicate(kind, accepted.get(&row.fold), row);
                    if rows.send(Ok(replicate)).await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
        match page.next {
            Some(next) => query.from = next,
            None => return Ok(()),
        }
    }
}

fn replicate(kind: ResultKind, accepted: Option<&ResultRow>, row: ResultRow) -> wire::Replicate {
    wire::Replicate {
        fold: Some(row.fold.into()),
        attempt: row.attempt.0,
        worker: row.worker.to_string(),
        kind: kind.as_str().to_owned(),
        // None if the accepted one was set aside since: then there is nothing to compare with.
        accepted_attempt: accepted.map_or(0, |accepted| accepted.attempt.0),
        differences: accepted.map_or_else(Vec::new, |accepted| differences(&accepted.result, &row.result)),
        config: row.trial,
        test_accuracy: Some(row.result.test.accuracy),
        accepted_test_accuracy: accepted.map(|accepted| accepted.result.test.accuracy),
    }
}

/// The fields that count and are not the same, in a fixed order.
fn differences(accepted: &FoldResult, other: &FoldResult) -> Vec<wire::Difference> {
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
        (a != b).then(|| wire::Difference { field, accepted: a.to_string(), other: b.to_string(), distance })
    };
    let mut found: Vec<_> = numbers.chain(epochs).filter_map(differ).collect();
    if accepted.data_digest != other.data_digest {
        found.push(wire::Difference {
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
