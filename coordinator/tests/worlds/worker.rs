//! A worker's host: the real agent, link and spool, as `togl-worker join` puts them together, with slots that train
//! nothing. The folder of its machine outlives every crash, as a disk does; hosts of one machine share it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng as SmallRng;
use tempfile::TempDir;
use togl_agent::agent::{Agent, AgentEnd, Habits};
use togl_agent::identity::WorkerIdentity;
use togl_agent::link;
use togl_agent::spool::Spool;
use tokio::sync::{mpsc, watch};

use crate::eyes::Eyes;
use crate::ledger::Ledger;
use crate::moving::{Checkpoints, Moving};
use crate::{network, slots};

/// How long folds may take to save; much longer than they do, so that nobody has to wait for its end.
const GRACE: Duration = Duration::from_secs(6);
/// How long a worker may take to leave: its folds save within half a second, a goodbye takes two.
const LEAVING: Duration = Duration::from_secs(4);

/// What survives a crash.
#[derive(Debug, Clone)]
pub struct Machine {
    pub name: String,
    folder: Arc<TempDir>,
    boots: Arc<AtomicU32>,
    pub checkpoints: Checkpoints,
}

impl Machine {
    pub fn new(number: usize) -> Self {
        Self {
            name: format!("machine{number}"),
            folder: Arc::new(disk()),
            boots: Arc::new(AtomicU32::new(0)),
            checkpoints: Checkpoints::default(),
        }
    }

    /// Reports that nobody has acknowledged yet, of all processes that ever ran here.
    pub fn spooled(&self) -> Vec<PathBuf> {
        self.entries("spool")
    }

    /// Reports that were refused for good.
    pub fn rejected(&self) -> Vec<PathBuf> {
        self.entries("spool/rejected")
    }

    fn entries(&self, below: &str) -> Vec<PathBuf> {
        let workers = std::fs::read_dir(self.folder.path()).unwrap();
        let folders = workers.map(|worker| worker.unwrap().path().join(below));
        let files = folders.flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten());
        let paths = files.map(|file| file.unwrap().path());
        paths.filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
    }
}

/// A folder that outlives crashes. In memory where the system has such a place: nothing is gained by waiting for a disk.
pub fn disk() -> TempDir {
    let mut builder = tempfile::Builder::new();
    builder.prefix("togl-world-");
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { builder.tempdir_in(memory) } else { builder.tempdir() };
    folder.unwrap()
}

/// What can be done to a running worker from outside.
#[derive(Debug, Default)]
pub struct Strings {
    stop: Option<mpsc::Sender<()>>,
    jump: Option<mpsc::UnboundedSender<Duration>>,
    told: Option<Duration>,
    paused_until: Duration,
}

impl Strings {
    /// Asks it to leave, as SIGTERM does.
    pub fn stop(&mut self, now: Duration) {
        if let Some(stop) = &self.stop
            && stop.try_send(()).is_ok()
        {
            self.told.get_or_insert(now);
        }
    }

    /// Sets its clock ahead.
    pub fn jump(&self, milliseconds: u64) {
        if let Some(jump) = &self.jump {
            _ = jump.send(Duration::from_millis(milliseconds));
        }
    }

    /// Its process stands still until then.
    pub fn pause(&mut self, until: Duration) {
        self.paused_until = until;
    }

    /// Comes back when the process goes on.
    pub async fn while_paused(strings: &Mutex<Self>, ledger: &Ledger) {
        while ledger.now() < strings.lock().unwrap().paused_until {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// When it was asked to leave, if it was.
    pub fn told(&self) -> Option<Duration> {
        self.told
    }
}

/// A worker that is started again and again.
#[derive(Debug, Clone)]
pub struct Worker {
    pub machine: Machine,
    pub slots: usize,
    /// Chances in a hundred that an attempt fails.
    pub failing: u32,
    pub token: String,
    pub seed: u64,
    pub ledger: Ledger,
    pub strings: Arc<Mutex<Strings>>,
}

impl Worker {
    /// One process, until its host crashes or it leaves.
    pub async fn run(self) -> turmoil::Result {
        let boot = self.machine.boots.fetch_add(1, Ordering::SeqCst) + 1;
        let seed = self.seed ^ (u64::from(boot) << 32);
        let worker = format!("{}-{boot}", self.machine.name);
        self.ledger.notes().slots.insert(worker.clone(), self.slots);
        let (_, spool) = Spool::open_free(self.machine.folder.path(), &self.machine.name)?;
        let (slot_events, slot_inbox) = mpsc::channel(256);
        let mut ends = Vec::new();
        for number in 0..self.slots {
            let (sender, orders) = mpsc::channel(8);
            let (progress, latest) = watch::channel(None);
            let (worker, ledger) = (worker.clone(), self.ledger.clone());
            let rng = SmallRng::seed_from_u64(seed.wrapping_add(number as u64));
            let strings = self.strings.clone();
            let (checkpoints, token) = (self.machine.checkpoints.clone(), self.token.clone());
            let moving = Moving::new(&worker, token, checkpoints, ledger.clone());
            let slot = slots::Slot { worker, number, failing: self.failing, ledger, rng, strings, moving };
            tokio::spawn(slot.run(orders, slot_events.clone(), progress));
            ends.push((sender, latest));
        }
        let link_inbox = self.join(&worker, seed);
        let stopped = self.attach();
        let agent = Agent::new(self.identity(&worker), self.habits(), spool, ends);
        let ended = agent.run(link_inbox, slot_inbox, stopped).await;
        self.judge(&worker, &ended);
        tokio::time::sleep(Duration::from_millis(50)).await; // connections close while the process ends
        Ok(())
    }

    /// The link, with somebody who watches it.
    fn join(&self, worker: &str, seed: u64) -> mpsc::Receiver<link::LinkEvent> {
        let (link_events, watched) = mpsc::channel(256);
        let token = self.token.clone();
        tokio::spawn(link::keep(move || network::workers(token.clone()), link_events));
        let (events, inbox) = mpsc::channel(256);
        let (strings, rng) = (self.strings.clone(), SmallRng::seed_from_u64(!seed));
        let eyes = Eyes::new(worker.to_owned(), self.ledger.clone(), strings, rng);
        tokio::spawn(eyes.watch(watched, events));
        inbox
    }

    fn attach(&self) -> mpsc::Receiver<()> {
        let (stop, stopped) = mpsc::channel(1);
        let (jump, mut jumps) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Some(ahead) = jumps.recv().await {
                tokio::time::advance(ahead).await;
            }
        });
        *self.strings.lock().unwrap() = Strings { stop: Some(stop), jump: Some(jump), ..Strings::default() };
        stopped
    }

    fn identity(&self, worker: &str) -> WorkerIdentity {
        WorkerIdentity {
            worker: worker.parse().unwrap(),
            host: self.machine.name.clone(),
            code_version: "simulated".to_owned(),
            devices: vec!["cpu".to_owned(); self.slots],
            memories: vec![0; self.slots],
            allocation: String::new(),
            moves_checkpoints: true,
            offers: Vec::new(),
        }
    }

    fn habits(&self) -> Habits {
        let ledger = self.ledger.clone();
        let checkpoints = self.machine.checkpoints.clone();
        let tidy = Arc::new(move |fold| {
            checkpoints.lock().unwrap().remove(&fold);
            ledger.tidied(fold);
            Ok(())
        });
        Habits { grace: GRACE, idle_exit: None, life: None, tidy }
    }

    fn judge(&self, worker: &str, ended: &AgentEnd) {
        let told = self.strings.lock().unwrap().told();
        match (ended, told) {
            (AgentEnd::Asked, Some(told)) => {
                self.ledger.count("left when told");
                // Whoever stands still leaves later.
                let told = told.max(self.strings.lock().unwrap().paused_until);
                let took = self.ledger.now().saturating_sub(told);
                if took > LEAVING {
                    self.ledger.broken(format!("{worker} took {took:?} to leave"));
                }
            }
            (AgentEnd::Asked, None) => self.ledger.count("left when drained"),
            (other, _) => self.ledger.broken(format!("{worker} ended: {other:?}")),
        }
    }
}
