//! A random life of a scheduler: whatever can happen, in any order, told in facts that a store must hold. Repeatable by
//! its seed; checks nothing itself.

use togl_scheduler::{Change, Event, Lease, Reply, Scheduler, Snapshot, Timestamp, WorkerInfo};
use togl_sweeps::result::example;
use togl_sweeps::trial::NUMERICS;
use togl_sweeps::{Failure, FailureClass, WorkerId};

use super::script::{awake, report, submission, sweep, worker};

/// A random but repeatable life of a scheduler, told in facts.
pub(crate) struct History {
    pub(crate) scheduler: Scheduler,
    now: Timestamp,
    random: u64,
    leases: Vec<(String, Lease)>,
    /// Who joined last, and the number of that session.
    joined: (WorkerId, u64),
}

impl History {
    pub(crate) fn new(seed: u64) -> Self {
        let scheduler = Scheduler::restore(awake(), Snapshot::default(), Timestamp(0));
        let random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let joined = (worker("w0"), 0);
        let mut history = Self { scheduler, now: Timestamp(0), random, leases: vec![], joined };
        history.draw(7);
        history
    }

    pub(crate) fn draw(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    /// What one to forty events led to.
    pub(crate) fn some_facts(&mut self) -> Vec<Change> {
        let mut changes = Vec::new();
        for _ in 0..=self.draw(60) {
            let event = self.event();
            let joins =
                if let Event::WorkerJoined { worker, .. } = &event { Some(worker.clone()) } else { None };
            if let Ok(outcome) = self.scheduler.handle(self.now, event) {
                if let (Some(worker), Reply::Joined(joined)) = (joins, &outcome.reply) {
                    self.joined = (worker, joined.session);
                }
                changes.extend(outcome.changes);
            }
        }
        changes
    }

    fn event(&mut self) -> Event {
        let name = format!("w{}", self.draw(4));
        let sweep = sweep(&format!("s{}", self.draw(3)));
        match self.draw(23) {
            0 => {
                let from = self.draw(20) as u32;
                submission(sweep.as_str(), from..from + 1 + self.draw(20) as u32)
            }
            1 => Event::Cancel { sweep },
            2 => Event::Pause { sweep },
            3 => Event::Resume { sweep },
            4 => Event::Retry { sweep },
            5 => Event::WorkerLeft { worker: self.joined.0.clone(), session: self.joined.1 },
            6 => {
                self.now = self.now.plus(self.draw(20_000));
                Event::Tick
            }
            7..=9 => {
                let mine = self.leases.iter().filter(|(who, _)| *who == name);
                let running = mine.map(|(_, lease)| (lease.fold, lease.attempt)).collect();
                let info = WorkerInfo {
                    host: "h".to_owned(),
                    slots: 5,
                    numerics: NUMERICS,
                    ..WorkerInfo::default()
                };
                Event::WorkerJoined { worker: worker(&name), info, running }
            }
            10..=12 => self.lease(&name),
            18 => Event::Prioritise { sweep, priority: self.draw(5) as i32 },
            19 => Event::Archive { sweep },
            20 => {
                let digest = if self.draw(3) == 0 { "other" } else { "data" };
                Event::SettleData { data: "cycles".to_owned(), digest: digest.to_owned() }
            }
            21 => Event::Drain { worker: worker(&name) },
            22 => Event::Undrain { worker: worker(&name) },
            choice => self.report(choice),
        }
    }

    /// Asks for leases beforehand, so that their answers are known; the facts come with the next event.
    fn lease(&mut self, name: &str) -> Event {
        let count = 1 + self.draw(3) as u32;
        let event = Event::LeasesAsked { worker: worker(name), count };
        let mut trial = Scheduler::restore(awake(), self.scheduler.snapshot(), self.now);
        let info = WorkerInfo { host: "h".to_owned(), slots: 5, numerics: NUMERICS, ..WorkerInfo::default() };
        let _ = trial.handle(self.now, Event::WorkerJoined { worker: worker(name), info, running: vec![] });
        if let Ok(outcome) = trial.handle(self.now, event.clone())
            && let Reply::Leases(leases) = outcome.reply
        {
            self.leases.extend(leases.into_iter().map(|lease| (name.to_owned(), lease)));
        }
        event
    }

    fn report(&mut self, choice: u64) -> Event {
        if self.leases.is_empty() {
            return Event::Tick;
        }
        let at = self.draw(self.leases.len() as u64) as usize;
        let (name, lease) = self.leases[at].clone();
        let (fold, attempt) = (lease.fold, lease.attempt);
        if choice < 16 {
            let mut result = example(self.draw(4) as f64 / 4.0);
            if self.draw(9) == 0 {
                result.data_digest = "other".to_owned();
            }
            return report(&name, &lease, result);
        }
        let classes = FailureClass::ALL;
        let class = classes[self.draw(classes.len() as u64) as usize];
        let failure = Failure::new(class, format!("message {}", self.draw(100)));
        Event::FailureReported { worker: worker(&name), fold, attempt, failure }
    }
}
