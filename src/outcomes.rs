//! What a report says beyond results: folds that failed for good and second results of folds. Asks a coordinator, or
//! reads its store; a source that cannot know everything says what is missing. Computes no numbers.

use std::collections::{HashMap, HashSet};

use togl_analysis::report::{FailedFold, Replicate, Told};
use togl_coordinator::store::history::Happened;
use togl_coordinator::store::{Reader, ResultKind, ResultQuery};
use togl_proto::wire;
use togl_sweeps::{FoldKey, FoldResult};
use tonic::Code;

use crate::problem::Problem;
use crate::remote::{self, Client, Target};
use crate::rows::{self, Collected};

/// Failures and second results of one sweep.
pub struct Outcomes {
    /// Folds that were given up.
    pub failures: Told<FailedFold>,
    /// Results beside the one that counts.
    pub replicates: Told<Replicate>,
}

/// Asks where the results came from: the coordinator that was named, or else the store.
pub async fn of_sweep(target: &Target, collected: &Collected) -> Result<Outcomes, Problem> {
    if target.coordinator.is_some() {
        let mut client = target.connect().await?;
        let failures = asked_failures(&mut client, collected).await?;
        return Ok(Outcomes { failures, replicates: asked_replicates(&mut client, collected).await? });
    }
    let store = rows::open(&target.state()?)?;
    Ok(Outcomes {
        failures: stored_failures(store.as_ref(), collected)?,
        replicates: Told::all(stored_replicates(store.as_ref(), collected)?),
    })
}

async fn asked_failures(client: &mut Client, collected: &Collected) -> Result<Told<FailedFold>, Problem> {
    let folds = remote::folds_of(client, collected.spec.name.as_str()).await?;
    let failed = folds.into_iter().filter_map(|summary| {
        let failure = summary.failure?;
        Some(FailedFold {
            fold: remote::fold_text(summary.fold.as_ref()),
            attempts: summary.attempts,
            worker: summary.worker,
            class: failure.class,
            message: failure.message,
        })
    });
    Ok(Told::all(failed.collect()))
}

async fn asked_replicates(client: &mut Client, collected: &Collected) -> Result<Told<Replicate>, Problem> {
    let request = wire::ListReplicatesRequest { sweep: collected.spec.name.to_string() };
    let mut stream = match client.list_replicates(request).await {
        Ok(reply) => reply.into_inner(),
        Err(status) if status.code() == Code::Unimplemented => {
            return Ok(Told::nothing("This coordinator is older than the list of second results."));
        }
        Err(status) => return Err(remote::refused(status)),
    };
    let mut found = Vec::new();
    while let Some(row) = stream.message().await.map_err(remote::refused)? {
        found.push(told_replicate(&row));
    }
    Ok(Told::all(found))
}

fn told_replicate(row: &wire::Replicate) -> Replicate {
    let compared = row.accepted_attempt > 0; // the one that counted may have been set aside since
    Replicate {
        fold: remote::fold_text(row.fold.as_ref()),
        attempt: row.attempt,
        worker: row.worker.clone(),
        kind: row.kind.clone(),
        same: compared.then_some(row.differences.is_empty()),
        test_accuracy: row.test_accuracy,
        counted: row.accepted_test_accuracy,
    }
}

fn stored_replicates(store: &dyn Reader, collected: &Collected) -> Result<Vec<Replicate>, Problem> {
    let counted: HashMap<FoldKey, &FoldResult> =
        collected.rows.iter().map(|row| (row.fold, &row.result)).collect();
    let mut found = Vec::new();
    for kind in [ResultKind::Replicate, ResultKind::Conflict] {
        let mut query = ResultQuery { kind, ..ResultQuery::accepted(collected.spec.name.clone()) };
        loop {
            let page = store.results(&query).map_err(Problem::ours)?;
            found.extend(page.rows.into_iter().map(|row| {
                let first = counted.get(&row.fold);
                Replicate {
                    fold: row.fold.to_string(),
                    attempt: row.attempt.0,
                    worker: row.worker.to_string(),
                    kind: kind.as_str().to_owned(),
                    same: first.map(|first| first.same_numbers(&row.result)),
                    test_accuracy: Some(row.result.test.accuracy),
                    counted: first.map(|first| first.test.accuracy),
                }
            }));
            match page.next {
                Some(next) => query.from = next,
                None => break,
            }
        }
    }
    Ok(found)
}

/// Folds without a result, by what is written in their histories.
fn stored_failures(store: &dyn Reader, collected: &Collected) -> Result<Told<FailedFold>, Problem> {
    let finished: HashSet<FoldKey> = collected.rows.iter().map(|row| row.fold).collect();
    let trials = collected.spec.trials().map_err(Problem::ours)?;
    let folds = trials.iter().flat_map(|trial| collected.spec.folds_of(trial.id));
    let (mut failed, mut untold) = (Vec::new(), 0);
    for fold in folds.filter(|fold| !finished.contains(fold)) {
        let history = store.history(&fold).map_err(Problem::ours)?;
        untold += u64::from(history.is_empty());
        failed.extend(failure(&fold, &history));
    }
    let gaps = match untold {
        0 => String::new(),
        some => format!(
            "Of {some} unfinished folds this store has no history, so it cannot say whether they failed."
        ),
    };
    Ok(Told { items: failed, gaps })
}

/// The failure that a history ends with; none if the fold goes on.
fn failure(fold: &FoldKey, history: &[Happened]) -> Option<FailedFold> {
    let last = history
        .iter()
        .rposition(|line| matches!(line.event.as_str(), "failed" | "retried" | "leased" | "revived"))?;
    let end = &history[last];
    if end.event != "failed" {
        return None;
    }
    let (class, message) = end.detail.split_once(": ").unwrap_or((&end.detail, ""));
    let tried = history[..last].iter().rev().find_map(|line| Some((line.attempt?, line.worker.as_ref()?)));
    Some(FailedFold {
        fold: fold.to_string(),
        attempts: history.iter().filter_map(|line| line.attempt).map(|attempt| attempt.0).max().unwrap_or(0),
        worker: tried.map(|(_, worker)| worker.to_string()).unwrap_or_default(),
        class: class.to_owned(),
        message: message.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use togl_sweeps::{Attempt, TrialId};

    use super::*;

    fn line(event: &str, attempt: Option<u32>, detail: &str) -> Happened {
        Happened {
            at: 0,
            event: event.to_owned(),
            attempt: attempt.map(Attempt),
            worker: attempt.map(|number| format!("w{number}").parse().unwrap()),
            detail: detail.to_owned(),
        }
    }

    fn told(history: &[Happened]) -> Option<FailedFold> {
        failure(&FoldKey { trial: TrialId::from_bytes([7; 16]), split: 1, seed: 2 }, history)
    }

    #[test]
    fn a_history_that_ends_in_failure_says_what_who_and_how_often() {
        let mut history = vec![
            line("submitted", None, ""),
            line("leased", Some(1), "on a"),
            line("ended", Some(1), "crashed: signal 11"),
            line("leased", Some(2), "on b"),
            line("ended", Some(2), "data: no such file: x"),
            line("failed", None, "data: no such file: x"),
        ];
        let failed = told(&history).unwrap();
        assert_eq!((failed.attempts, failed.worker.as_str(), failed.class.as_str()), (2, "w2", "data"));
        assert_eq!(failed.message, "no such file: x");
        // A late result of an abandoned attempt does not change that the fold failed; a clean slate does.
        history.push(line("retried", None, "somebody asked for it"));
        assert_eq!(told(&history), None);
        assert_eq!(told(&history[..4]), None, "it is running");
    }

    #[test]
    fn what_a_coordinator_tells_of_second_results_is_shown_and_what_it_does_not_is_unknown() {
        let row = wire::Replicate { accepted_attempt: 1, attempt: 2, ..Default::default() };
        let old = told_replicate(&row);
        assert_eq!(
            (old.same, old.test_accuracy, old.counted),
            (Some(true), None, None),
            "an older coordinator"
        );
        let row = wire::Replicate { test_accuracy: Some(0.5), accepted_attempt: 0, ..row };
        let alone = told_replicate(&row);
        assert_eq!((alone.same, alone.test_accuracy), (None, Some(0.5)), "nothing to compare with");
    }
}
