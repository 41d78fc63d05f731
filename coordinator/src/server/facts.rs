//! What the store knows, as wire messages, and how it is sent: from one state, until done, the reader left, or it takes too
//! long. Converts and sends; what is read is [`crate::store::reading`]'s business.

use std::time::Duration;

use togl_proto::convert::{self, ConvertError};
use togl_proto::wire;
use togl_scheduler::FoldState;
use togl_sweeps::WorkerId;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use super::status;
use crate::reads::Pages;
use crate::store::history::{Acted, Happened};
use crate::store::reading::{Fact, FoldsWanted, Wanted};
use crate::store::replicates::{Difference, Replicate};
use crate::store::{
    FoldFilter, LogPiece, ResultRow, ResultSummary, StoredFold, StoredSweep, trials_beginning,
};
use crate::tasks;

/// Facts that wait for the reader.
const AHEAD: usize = 64;

/// A reader that takes nothing for so long has gone, or means harm: what it reads cannot be forgotten meanwhile.
const STALL: Duration = Duration::from_secs(20);

/// How long one answer may take.
const WHOLE: Duration = Duration::from_secs(15 * 60);

/// Folds that one request may name.
const MOST_NAMED: usize = 1_000;

/// An answer on its way.
pub(super) type Stream = ReceiverStream<Result<wire::Fact, Status>>;

type Sender = mpsc::Sender<Result<wire::Fact, Status>>;

/// Sends pages in the background, and keeps the caller's seat until nothing more is read.
pub(super) fn stream(pages: Pages, seat: impl Send + 'static) -> Stream {
    let (sender, facts) = mpsc::channel(AHEAD);
    tasks::spawn("read", async move {
        // Whoever was cut short misses the last message, and an error finds its place only if somebody still reads.
        if let Ok(Err(error)) = tokio::time::timeout(WHOLE, send(pages, &sender)).await {
            _ = sender.try_send(Err(error));
        }
        drop(seat);
    });
    ReceiverStream::new(facts)
}

async fn send(mut pages: Pages, sender: &Sender) -> Result<(), Status> {
    while let Some(page) = pages.next().await.map_err(status)? {
        for fact in page {
            hand_over(sender, kind(fact)).await?;
        }
    }
    hand_over(sender, wire::fact::Kind::Done(wire::Done {})).await
}

async fn hand_over(sender: &Sender, kind: wire::fact::Kind) -> Result<(), Status> {
    let sent = tokio::time::timeout(STALL, sender.send(Ok(wire::Fact { kind: Some(kind) }))).await;
    match sent {
        Ok(Ok(())) => Ok(()),
        Ok(Err(_)) => Err(Status::cancelled("the reader left")),
        Err(_) => Err(Status::deadline_exceeded("the reader took nothing for too long")),
    }
}

/// What a request asks for.
pub(super) fn wanted(request: wire::ReadRequest) -> Result<Wanted, Status> {
    let wire::ReadRequest { sweep, results, curves, replicates, folds, results_of } = request;
    if results_of.len() > MOST_NAMED {
        return Err(Status::invalid_argument(format!(
            "at most {MOST_NAMED} folds can be named in one request"
        )));
    }
    let folds = folds.map(folds_wanted).transpose()?;
    let named_folds: Result<_, _> = results_of.into_iter().map(|fold| convert::fold(Some(fold))).collect();
    let results_of =
        named_folds.map_err(|error: ConvertError| Status::invalid_argument(error.to_string()))?;
    Ok(Wanted { sweep: named(&sweep)?, results, results_of, curves, replicates, folds })
}

fn folds_wanted(wanted: wire::FoldsWanted) -> Result<FoldsWanted, Status> {
    let wire::FoldsWanted { states, worker, class, trial, dataset, skip, limit } = wanted;
    let states: Result<_, String> = states.iter().map(|word| word.parse()).collect();
    let filter = FoldFilter {
        states: states.map_err(Status::invalid_argument)?,
        worker: named(&worker)?,
        class: named(&class)?,
        trials: match trial.as_str() {
            "" => None,
            digits => Some(trials_beginning(digits).ok_or_else(|| {
                Status::invalid_argument(format!("`{digits}` is not the beginning of a trial's id"))
            })?),
        },
        dataset: Some(dataset).filter(|name| !name.is_empty()),
    };
    Ok(FoldsWanted { filter, skip, limit })
}

/// What is named, if something is.
fn named<T: std::str::FromStr<Err: ToString>>(text: &str) -> Result<Option<T>, Status> {
    match text {
        "" => Ok(None),
        name => name.parse().map(Some).map_err(|error: T::Err| Status::invalid_argument(error.to_string())),
    }
}

fn kind(fact: Fact) -> wire::fact::Kind {
    match fact {
        Fact::Sweep(StoredSweep { name, yaml, state, priority }) => {
            let (name, state) = (name.to_string(), state.to_string());
            wire::fact::Kind::Sweep(wire::SweepText { name, yaml, state, priority })
        }
        Fact::Result(row) => wire::fact::Kind::Result(result(*row)),
        Fact::Folds { total, digits } => {
            wire::fact::Kind::Folds(wire::FoldCount { total, digits: digits as u32 })
        }
        Fact::Fold(stored) => wire::fact::Kind::Fold(fold(*stored)),
        Fact::Replicate(row) => wire::fact::Kind::Replicate(replicate(*row)),
    }
}

fn result(row: ResultRow) -> wire::ResultRow {
    wire::ResultRow {
        fold: Some(row.fold.into()),
        attempt: row.attempt.0,
        worker: row.worker.to_string(),
        config: row.trial,
        result: Some(row.result.into()),
    }
}

fn fold(stored: StoredFold) -> wire::FoldSummary {
    let outcome = |ResultSummary { value, seconds, finished_at }| wire::Outcome {
        value,
        seconds,
        finished_at: finished_at.unwrap_or(0),
    };
    let state = stored.state.word().as_str().to_owned();
    let (attempt, failure) = match stored.state {
        FoldState::Running { attempt, .. } | FoldState::Finished { attempt, .. } => (attempt.0, None),
        FoldState::Failed(failure) => (0, Some(failure.into())),
        FoldState::Pending => (0, None),
    };
    wire::FoldSummary {
        fold: Some(stored.fold.into()),
        state,
        attempts: stored.attempts,
        worker: stored.worker.as_ref().map(WorkerId::to_string).unwrap_or_default(),
        failure,
        config: stored.trial,
        outcome: stored.outcome.map(outcome),
        attempt,
    }
}

fn replicate(row: Replicate) -> wire::Replicate {
    let counted = row.counted.as_ref();
    let (accepted_attempt, accepted_test_accuracy) =
        (counted.map_or(0, |counted| counted.attempt.0), counted.map(|counted| counted.test_accuracy));
    let difference = |Difference { field, accepted, other, distance }| wire::Difference {
        field,
        accepted,
        other,
        distance,
    };
    wire::Replicate {
        accepted_processor: counted.map(|counted| counted.processor.clone()).unwrap_or_default(),
        fold: Some(row.fold.into()),
        attempt: row.attempt.0,
        worker: row.worker.to_string(),
        kind: row.kind.as_str().to_owned(),
        accepted_attempt,
        differences: row
            .counted
            .map(|counted| counted.differences.into_iter().map(difference).collect())
            .unwrap_or_default(),
        config: row.trial,
        test_accuracy: Some(row.test_accuracy),
        accepted_test_accuracy,
        processor: row.processor,
    }
}

pub(super) fn log(piece: LogPiece) -> wire::LogEntry {
    wire::LogEntry { fold: Some(piece.fold.into()), attempt: piece.attempt.0, text: piece.text }
}

pub(super) fn act(acted: Acted) -> wire::Act {
    let Acted { at, by, act, about, detail, reason } = acted;
    wire::Act { at, by, act, about, detail, reason }
}

pub(super) fn happened(happened: Happened) -> wire::HistoryEntry {
    wire::HistoryEntry {
        at: happened.at,
        event: happened.event,
        attempt: happened.attempt.map_or(0, |attempt| attempt.0),
        worker: happened.worker.as_ref().map(WorkerId::to_string).unwrap_or_default(),
        detail: happened.detail,
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt;

    use super::*;
    use crate::reads::Reads;
    use crate::store::contract::{Script, submission};
    use crate::store::memory::MemoryStore;

    /// Reads of a sweep of so many folds.
    fn reads(folds: u32) -> Reads {
        let mut script = Script::on(Box::new(MemoryStore::default()));
        script.tell(submission("s", 0..folds));
        Reads::new(script.store.readers())
    }

    fn all_folds() -> Wanted {
        Wanted { folds: Some(FoldsWanted::default()), ..Wanted::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_never_reads_gives_its_place_back_and_is_not_told_that_all_was_said() {
        let reads = reads(200);
        let mut stalled: Vec<Stream> = Vec::new();
        for _ in 0..8 {
            stalled.push(stream(reads.begin(all_folds()).await.unwrap(), ()));
        }
        let refused = reads.begin(all_folds()).await.map(drop).unwrap_err();
        assert_eq!(status(refused).code(), tonic::Code::ResourceExhausted, "all places are taken");
        tokio::time::sleep(STALL).await;
        let mut last = stream(reads.begin(all_folds()).await.unwrap(), ());
        let mut facts = Vec::new();
        while let Some(fact) = last.next().await {
            facts.push(fact.unwrap().kind.unwrap());
        }
        assert_eq!(facts.len(), 203, "the sweep, its count, its folds and the end");
        assert!(matches!(facts.last(), Some(wire::fact::Kind::Done(_))));
        while let Some(fact) = stalled[0].next().await {
            assert!(!matches!(fact.unwrap().kind, Some(wire::fact::Kind::Done(_))));
        }
    }
}
