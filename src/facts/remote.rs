//! Facts from a coordinator. Wire messages become the values that a store gives; what makes no sense is refused.

use std::str::FromStr;

use togl_coordinator::store::history::{Acted, Happened};
use togl_coordinator::store::reading::{Fact, FoldsWanted, Wanted};
use togl_coordinator::store::replicates::{Counted, Difference, Replicate};
use togl_coordinator::store::{
    FoldFilter, FoldState, FoldWord, LogPiece, ResultKind, ResultRow, ResultSummary, StoredFold, StoredSweep,
};
use togl_proto::convert::{self, ConvertError};
use togl_proto::wire;
use togl_sweeps::{Attempt, FoldKey, SweepName, WorkerId};
use tonic::async_trait;

use super::{AttemptLine, Facts, FoldExplanation, KnownWorkers, TakeFacts};
use crate::problem::Problem;
use crate::remote::{Client, ListedSweep, SweepStatus, refused};

/// A coordinator.
pub struct Remote {
    client: Client,
}

impl Remote {
    /// One that is connected.
    pub fn new(client: Client) -> Self {
        Self { client }
    }
}

/// What the coordinator said makes no sense.
fn broken(error: impl ToString) -> Problem {
    Problem::ours(format!("the coordinator sent what makes no sense: {}", error.to_string()))
}

#[async_trait]
impl Facts for Remote {
    fn is_live(&self) -> bool {
        true
    }

    async fn read(&mut self, wanted: Wanted, take: &mut TakeFacts<'_>) -> Result<(), Problem> {
        let mut stream = self.client.read(request(wanted)).await.map_err(refused)?.into_inner();
        while let Some(fact) = stream.message().await.map_err(refused)? {
            match fact.kind.ok_or_else(|| broken("an empty fact"))? {
                wire::fact::Kind::Done(_) => return Ok(()),
                kind => take(read_fact(kind)?)?,
            }
        }
        Err(Problem::unreachable("the coordinator ended its answer before everything was said")
            .hint("ask again"))
    }

    async fn sweeps(&mut self, archived: bool) -> Result<Vec<ListedSweep>, Problem> {
        let request = wire::ListSweepsRequest { archived };
        let reply = self.client.list_sweeps(request).await.map_err(refused)?;
        Ok(reply.into_inner().sweeps.into_iter().map(Into::into).collect())
    }

    async fn status(&mut self, sweep: &str) -> Result<SweepStatus, Problem> {
        let request = wire::StatusRequest { sweep: sweep.to_owned() };
        Ok(self.client.status(request).await.map_err(refused)?.into_inner().into())
    }

    async fn workers(&mut self) -> Result<KnownWorkers, Problem> {
        let reply = self.client.list_workers(wire::ListWorkersRequest {}).await.map_err(refused)?;
        Ok(KnownWorkers::Here(reply.into_inner().workers.into_iter().map(Into::into).collect()))
    }

    async fn log(&mut self, fold: &str) -> Result<Vec<LogPiece>, Problem> {
        let request = wire::LogRequest { fold: fold.to_owned() };
        let reply = self.client.log(request).await.map_err(refused)?.into_inner();
        let piece = |entry: wire::LogEntry| {
            let (fold, attempt) = (convert::fold(entry.fold)?, convert::attempt(entry.attempt)?);
            Ok(LogPiece { fold, attempt, text: entry.text })
        };
        reply.entries.into_iter().map(piece).collect::<Result<_, ConvertError>>().map_err(broken)
    }

    async fn explain(&mut self, fold: &str) -> Result<FoldExplanation, Problem> {
        let request = wire::ExplainRequest { fold: fold.to_owned() };
        let reply = self.client.explain(request).await.map_err(refused)?.into_inner();
        let line = |wire::AttemptSummary { attempt, worker, ending }| AttemptLine { attempt, worker, ending };
        Ok(FoldExplanation {
            fold: convert::fold(reply.fold).map_err(broken)?.to_string(),
            reason: reply.reason,
            sweeps: reply.sweeps,
            attempts: reply.attempts.into_iter().map(line).collect(),
        })
    }

    async fn history(&mut self, fold: &str) -> Result<(FoldKey, Vec<Happened>), Problem> {
        let request = wire::HistoryRequest { fold: fold.to_owned() };
        let reply = self.client.history(request).await.map_err(refused)?.into_inner();
        let entries: Result<_, Problem> = reply.entries.into_iter().map(happened).collect();
        Ok((convert::fold(reply.fold).map_err(broken)?, entries?))
    }

    async fn acts(&mut self, sweep: Option<&str>) -> Result<Vec<Acted>, Problem> {
        let request = wire::ActsRequest { sweep: sweep.unwrap_or_default().to_owned() };
        let reply = self.client.acts(request).await.map_err(refused)?.into_inner();
        let act =
            |wire::Act { at, by, act, about, detail, reason }| Acted { at, by, act, about, detail, reason };
        Ok(reply.acts.into_iter().map(act).collect())
    }
}

fn request(wanted: Wanted) -> wire::ReadRequest {
    let Wanted { sweep, results, results_of, curves, replicates, folds } = wanted;
    let results_of = results_of.into_iter().map(Into::into).collect();
    let sweep = sweep.as_ref().map(SweepName::to_string).unwrap_or_default();
    let folds = folds.map(|FoldsWanted { filter, skip, limit }| {
        let FoldFilter { states, worker, class, trials, dataset } = filter;
        wire::FoldsWanted {
            states: states.into_iter().map(|word| word.to_string()).collect(),
            worker: worker.as_ref().map(WorkerId::to_string).unwrap_or_default(),
            class: class.map(|class| class.to_string()).unwrap_or_default(),
            trial: trials.map(beginning).unwrap_or_default(),
            dataset: dataset.unwrap_or_default(),
            skip,
            limit,
        }
    });
    wire::ReadRequest { sweep, results, curves, replicates, folds, results_of }
}

/// What the ids of a range of trials have in common.
fn beginning(trials: [togl_sweeps::TrialId; 2]) -> String {
    let [least, greatest] = trials.map(|trial| trial.to_string());
    let common = least.chars().zip(greatest.chars()).take_while(|(one, other)| one == other);
    common.map(|(digit, _)| digit).collect()
}

fn read_fact(kind: wire::fact::Kind) -> Result<Fact, Problem> {
    match kind {
        wire::fact::Kind::Sweep(wire::SweepText { name, yaml, state, priority }) => {
            let (name, state) = (word(&name)?, word(&state)?);
            Ok(Fact::Sweep(StoredSweep { name, yaml, state, priority }))
        }
        wire::fact::Kind::Result(row) => Ok(Fact::Result(Box::new(result(row)?))),
        wire::fact::Kind::Folds(wire::FoldCount { total, digits }) => {
            Ok(Fact::Folds { total, digits: digits.clamp(1, 32) as usize })
        }
        wire::fact::Kind::Fold(summary) => Ok(Fact::Fold(Box::new(fold(summary)?))),
        wire::fact::Kind::Replicate(row) => Ok(Fact::Replicate(Box::new(replicate(row)?))),
        wire::fact::Kind::Done(_) => Err(broken("an end in the middle")),
    }
}

fn word<T: FromStr<Err: ToString>>(text: &str) -> Result<T, Problem> {
    text.parse().map_err(|error: T::Err| broken(error.to_string()))
}

fn result(row: wire::ResultRow) -> Result<ResultRow, Problem> {
    let result = row.result.ok_or(ConvertError::Missing("result")).map_err(broken)?;
    Ok(ResultRow {
        fold: convert::fold(row.fold).map_err(broken)?,
        attempt: convert::attempt(row.attempt).map_err(broken)?,
        worker: word(&row.worker)?,
        trial: row.config,
        result: result.try_into().map_err(broken)?,
    })
}

fn fold(summary: wire::FoldSummary) -> Result<StoredFold, Problem> {
    let worker: Option<WorkerId> = match summary.worker.as_str() {
        "" => None,
        name => Some(word(name)?),
    };
    let held = || worker.clone().ok_or_else(|| broken("a fold that nobody has"));
    let state = match word(&summary.state)? {
        FoldWord::Pending => FoldState::Pending,
        FoldWord::Running => FoldState::Running { attempt: Attempt(summary.attempt), worker: held()? },
        FoldWord::Finished => FoldState::Finished { attempt: Attempt(summary.attempt), worker: held()? },
        FoldWord::Failed => {
            let failure = summary.failure.ok_or(ConvertError::Missing("failure")).map_err(broken)?;
            FoldState::Failed(failure.try_into().map_err(broken)?)
        }
    };
    Ok(StoredFold {
        fold: convert::fold(summary.fold).map_err(broken)?,
        trial: summary.config,
        state,
        attempts: summary.attempts,
        worker,
        outcome: summary.outcome.map(|wire::Outcome { value, seconds, finished_at }| ResultSummary {
            value,
            seconds,
            finished_at: Some(finished_at).filter(|at| *at > 0),
        }),
    })
}

fn replicate(row: wire::Replicate) -> Result<Replicate, Problem> {
    let missing = || broken("a result without its accuracy");
    let difference = |wire::Difference { field, accepted, other, distance }| Difference {
        field,
        accepted,
        other,
        distance,
    };
    let counted = match row.accepted_attempt {
        0 => None, // the one that counted was set aside since
        attempt => Some(Counted {
            attempt: Attempt(attempt),
            test_accuracy: row.accepted_test_accuracy.ok_or_else(missing)?,
            processor: row.accepted_processor,
            differences: row.differences.into_iter().map(difference).collect(),
        }),
    };
    Ok(Replicate {
        fold: convert::fold(row.fold).map_err(broken)?,
        trial: row.config,
        attempt: convert::attempt(row.attempt).map_err(broken)?,
        worker: word(&row.worker)?,
        kind: word::<ResultKind>(&row.kind)?,
        test_accuracy: row.test_accuracy.ok_or_else(missing)?,
        processor: row.processor,
        counted,
    })
}

fn happened(entry: wire::HistoryEntry) -> Result<Happened, Problem> {
    let wire::HistoryEntry { at, event, attempt, worker, detail } = entry;
    let attempt = Some(Attempt(attempt)).filter(|attempt| attempt.0 > 0);
    let worker = if worker.is_empty() { None } else { Some(word(&worker)?) };
    Ok(Happened { at, event, attempt, worker, detail })
}
