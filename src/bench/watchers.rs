//! People who watch during a measurement: many streams over one connection, read and thrown away. Also the account of what
//! the coordinator needed with and without them, in turns of one run, so that both halves meet the same machine and store.

use std::time::{Duration, Instant};

use serde::Serialize;
use togl_proto::{client, wire};
use tokio::task::JoinSet;

use super::Server;
use crate::clock;
use crate::problem::Problem;

/// Turns of a run: without watchers, with them, without them, ...
const TURNS: u64 = 8;

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
    server: &'a Server,
    token: &'a str,
    count: u32,
    /// Folds of a turn.
    length: u64,
    /// Reading, in the turns with watchers.
    reading: JoinSet<()>,
    /// Beginning of this turn: when, after how many folds, after how much processor time.
    since: (Instant, u64, f64),
    /// What was done without and with them.
    pub done: [Turns; 2],
}

impl<'a> Watchers<'a> {
    /// So many of them, in a run of so many folds. The first turn is without.
    pub fn new(server: &'a Server, token: &'a str, count: u32, folds: u64) -> Self {
        let since = (clock::now(), 0, server.usage().cpu_seconds);
        let length = folds.div_ceil(TURNS);
        Self { server, token, count, length, reading: JoinSet::new(), since, done: Default::default() }
    }

    /// To be told how many folds are done; ends a turn when it is time.
    pub async fn note(&mut self, folds: u64, all: u64) -> Result<(), Problem> {
        let (begin, before, cpu) = self.since;
        if self.count == 0 || (folds < before + self.length && folds < all) {
            return Ok(());
        }
        let used = self.server.usage().cpu_seconds;
        let turn = &mut self.done[usize::from(!self.reading.is_empty())];
        turn.folds += folds - before;
        turn.seconds += begin.elapsed().as_secs_f64();
        turn.cpu_seconds += used - cpu;
        match self.reading.is_empty() {
            true => self.begin().await?,
            false => self.reading.shutdown().await,
        }
        self.since = (clock::now(), folds, self.server.usage().cpu_seconds);
        Ok(())
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
