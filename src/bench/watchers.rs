//! People who watch during a measurement: many streams over one connection, read and thrown away. Also the account of what
//! the coordinator needed with and without them, in turns of one run, so that both halves meet the same machine and store.

use std::time::{Duration, Instant};

use serde::Serialize;
use togl_proto::{client, wire};
use tokio::task::JoinSet;

use super::ServerUnderTest;
use crate::clock;
use crate::problem::Problem;

/// The turns of a run, and whether people watch in each: the store grows from turn to turn, and so both kinds meet the same
/// sizes of it in the mean.
const TURNS: [bool; 8] = [false, true, true, false, true, false, false, true];

/// What the coordinator did in the turns of one kind.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct Turns {
    /// Folds acknowledged as stored.
    pub folds: u64,
    /// How long they took.
    pub seconds: f64,
    /// Processor time of the coordinator.
    pub cpu_seconds: f64,
}

impl Turns {
    /// Folds per second.
    pub fn rate(&self) -> f64 {
        self.folds as f64 / self.seconds
    }

    /// Microseconds of the coordinator's processor time for one fold.
    pub fn cpu_us(&self) -> f64 {
        self.cpu_seconds * 1e6 / self.folds as f64
    }
}

/// Watchers that come and go in turns.
pub struct Watchers<'a> {
    server: &'a ServerUnderTest,
    token: &'a str,
    count: u32,
    /// Folds of a turn.
    length: u64,
    /// The number of this turn.
    turn: usize,
    /// Reading, in the turns with watchers.
    reading: JoinSet<()>,
    /// Beginning of this turn: when, after how many folds, after how much processor time.
    since: (Instant, u64, f64),
    /// What was done without and with them.
    pub done: [Turns; 2],
}

impl<'a> Watchers<'a> {
    /// So many of them, in a run of so many folds. The first turn is without.
    pub fn new(server: &'a ServerUnderTest, token: &'a str, count: u32, folds: u64) -> Self {
        let since = (clock::now(), 0, server.usage().cpu_seconds);
        let length = folds.div_ceil(TURNS.len() as u64);
        Self {
            server,
            token,
            count,
            length,
            turn: 0,
            reading: JoinSet::new(),
            since,
            done: Default::default(),
        }
    }

    /// Whether a turn is over once so many folds are done.
    pub fn is_turn_over(&self, folds: u64, all: u64) -> bool {
        self.count > 0 && (folds >= self.since.1 + self.length || folds >= all)
    }

    /// Writes down what was done in this turn, and lets watchers come or go for the next.
    pub async fn end_turn(&mut self, folds: u64) -> Result<(), Problem> {
        let (begin, before, cpu) = self.since;
        let turn = &mut self.done[usize::from(TURNS[self.turn])];
        turn.folds += folds - before;
        turn.seconds += begin.elapsed().as_secs_f64();
        turn.cpu_seconds += self.server.usage().cpu_seconds - cpu;
        self.turn = (self.turn + 1) % TURNS.len();
        match (TURNS[self.turn], self.reading.is_empty()) {
            (true, true) => self.begin().await,
            (false, false) => {
                self.reading.shutdown().await;
                Ok(())
            }
            (true, false) | (false, true) => Ok(()),
        }
    }

    /// From here on it counts again: what was done while watchers came or went belongs to no turn.
    pub fn begin_turn(&mut self, folds: u64) {
        self.since = (clock::now(), folds, self.server.usage().cpu_seconds);
    }

    async fn begin(&mut self) -> Result<(), Problem> {
        let mut client = client::sweeps(&self.server.address, self.token).await.map_err(Problem::ours)?;
        for _ in 0..self.count {
            let request = wire::StatusRequest { sweep: "bench".to_owned() };
            let mut states = client.watch(request).await.map_err(Problem::ours)?.into_inner();
            self.reading.spawn(async move {
                while let Ok(Some(_)) = states.message().await {}
                std::future::pending::<()>().await; // the sweep has ended; stays until the turn is over
            });
        }
        Ok(())
    }
}

/// The longest time between a heartbeat and its answer while `work` is done: as long as nobody was heard.
pub async fn longest_silence<T>(
    mut listener: super::crowd::SimulatedWorker,
    work: impl Future<Output = Result<T, Problem>>,
) -> Result<(T, Duration), Problem> {
    let mut longest = Duration::ZERO;
    let mut work = std::pin::pin!(work);
    loop {
        let begin = clock::now();
        listener.call_out().await?;
        longest = longest.max(begin.elapsed());
        tokio::select! {
            done = &mut work => return Ok((done?, longest)),
            () = tokio::time::sleep(Duration::from_millis(10)) => {}
        }
    }
}
