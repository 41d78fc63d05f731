//! One world: hosts, a plan of faults, an operator who submits and waits, and the judgement at the end.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng as SmallRng;
use togl_coordinator::store::memory::MemoryStore;
use togl_coordinator::tokens::Tokens;
use togl_sweeps::{Attempt, FoldKey};
use turmoil::Sim;

use crate::coordinator;
use crate::faults::{Fault, FaultyStore, Jumps, Troubles, losses, pick, plan};
use crate::ledger::Ledger;
use crate::network::{COORDINATOR, COORDINATORS, STANDBY};
use crate::operator::Operator;
use crate::standby::Lock;
use crate::viewer;
use crate::worker::{Machine, Strings, Worker, disk};

/// Faults stop after this much virtual time; then everything must end.
pub const FAULTY: Duration = Duration::from_secs(12);

/// How long it takes until whatever ended by itself is started again.
const RESTART: Duration = Duration::from_millis(300);

/// The name of a worker's host, and what can be done to the worker on it.
type Seat = (String, Arc<Mutex<Strings>>);

struct Hosts {
    workers: Vec<Seat>,
    /// What is undone when.
    mending: Vec<(Duration, Mend)>,
    /// Which coordinators ended by themselves.
    dead: [Arc<AtomicBool>; 2],
    lock: Lock,
    jumps: Jumps,
    ledger: Ledger,
    /// Hosts whose processes die soon after they were started, and until when.
    looping: Vec<(usize, Duration)>,
    /// Where the coordinator holds checkpoints.
    held: [PathBuf; 2],
}

/// What happened, and what undoes it when.
type Happening = (&'static str, Option<(Duration, Mend)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mend {
    StartCoordinator,
    StartStandby,
    StartWorker(usize),
    Repair(usize),
    Release(usize),
    WakeCoordinator,
    UpgradeCoordinator,
}

/// A mistake that the coordinators of a world make, to see that it is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    None,
    /// Whoever lost the store goes on storing.
    TwoActive,
    /// A checkpoint is kept without comparing it with what was promised.
    AcceptTorn,
}

/// Runs the world of a seed and panics, with the seed, if a promise is broken. Says what happened in it.
pub fn run(seed: u64) -> BTreeMap<&'static str, u64> {
    run_with(seed, Mistake::None)
}

/// The same with this mistake in it.
pub fn run_with(seed: u64, mistake: Mistake) -> BTreeMap<&'static str, u64> {
    let lock = Lock::new(mistake == Mistake::TwoActive);
    let mut rng = SmallRng::seed_from_u64(seed);
    let (store, tokens) = (MemoryStore::default(), Tokens::random().unwrap());
    let (ledger, jumps, troubles) = (Ledger::with(mistake), Jumps::default(), Troubles::default());
    let disks = [disk(), disk()]; // each coordinator has its own
    let held = disks.each_ref().map(|disk| disk.path().to_owned());
    let mut sim = simulation(seed, *pick(&mut rng, &[5, 50, 400]));
    let mut chance = SmallRng::seed_from_u64(!seed); // of its own, so that the rest of a world is as it was without
    let has_standby = lock.unguarded || chance.random_range(0..2) == 0;
    let place = |name, is_there, seed, held: &PathBuf| {
        let dead = Arc::new(AtomicBool::new(false));
        let (store, tokens, ledger, lock) = (store.clone(), tokens.clone(), ledger.clone(), lock.clone());
        let (jumps, troubles, held) = (jumps.clone(), troubles.clone(), held.clone());
        Place { name, is_there, seed, dead, store, tokens, ledger, lock, jumps, troubles, held }
    };
    let places = [
        place(COORDINATOR, true, rng.random(), &held[0]),
        place(STANDBY, has_standby, chance.random(), &held[1]),
    ];
    let dead = places.map(|place| place.host(&mut sim));
    let (machines, workers) = settle(&mut sim, &mut rng, &tokens.worker, &ledger);
    let (token, of, seen) = (tokens.operator.clone(), ledger.clone(), rng.random());
    sim.host("viewer", move || viewer::look(token.clone(), of.clone(), seen));
    let places = (machines.clone(), held[..1 + usize::from(has_standby)].to_vec());
    let operator = Operator::new(tokens.operator, places, ledger.clone(), rng.random());
    sim.client("operator", operator.operate());
    trouble(&mut rng, &troubles);
    let mut faults = plan(&mut rng, workers.len(), FAULTY);
    if has_standby {
        faults.extend(losses(&mut chance, FAULTY));
        faults.sort_by_key(|(at, _)| *at);
    }
    let (ledger_of_hosts, mending, looping) = (ledger.clone(), vec![], vec![]);
    let mut hosts = Hosts { workers, mending, dead, lock, jumps, ledger: ledger_of_hosts, looping, held };
    let ended = hosts.play(&mut sim, faults, &troubles);
    ledger.compare(&store, &["a", "b", "c", "d"]);
    judge(seed, ended, &machines, &ledger);
    std::mem::take(&mut ledger.notes().seen)
}

/// Half of the worlds have a store that is slow or fails now and then.
fn trouble(rng: &mut SmallRng, troubles: &Troubles) {
    if rng.random_range(0..2) == 0 {
        troubles.set(*pick(rng, &[0, 10, 40]), *pick(rng, &[0, 10, 40]), *pick(rng, &[0, 50]));
    }
}

/// A host on which a coordinator runs, or waits for the store.
struct Place {
    name: &'static str,
    is_there: bool,
    seed: u64,
    dead: Arc<AtomicBool>,
    store: MemoryStore,
    tokens: Tokens,
    ledger: Ledger,
    lock: Lock,
    jumps: Jumps,
    troubles: Troubles,
    held: PathBuf,
}

impl Place {
    /// Gives what is set when its coordinator has ended by itself.
    fn host(self, sim: &mut Sim<'_>) -> Arc<AtomicBool> {
        let (dead, seeds) = (self.dead.clone(), RefCell::new(SmallRng::seed_from_u64(self.seed)));
        sim.host(self.name, move || {
            let rng = SmallRng::seed_from_u64(seeds.borrow_mut().random());
            let (inner, troubles, lock) = (self.store.clone(), self.troubles.clone(), self.lock.clone());
            let (jumps, ledger, tokens) = (self.jumps.clone(), self.ledger.clone(), self.tokens.clone());
            let name = self.name;
            let (is_there, dead, held) = (self.is_there, self.dead.clone(), self.held.clone());
            async move {
                if !is_there {
                    std::future::pending::<()>().await;
                }
                let hold = lock.take().await;
                let (on, its) = (jumps.clone(), ledger.clone());
                let faulty = FaultyStore { inner, troubles, jumps: on, ledger: its, rng, hold, of: name };
                coordinator::run((faulty, held), jumps, tokens, ledger, dead).await
            }
        });
        dead
    }
}

/// One to three workers on one or more machines.
fn settle(sim: &mut Sim<'_>, rng: &mut SmallRng, token: &str, ledger: &Ledger) -> (Vec<Machine>, Vec<Seat>) {
    let failing = *pick(rng, &[0, 5, 20]);
    let count = rng.random_range(1..4);
    let machines: Vec<Machine> = (0..rng.random_range(1..count + 1)).map(Machine::new).collect();
    ledger.notes().machines = machines.len();
    let mut workers = Vec::new();
    for number in 0..count {
        let (name, strings) = (format!("host{number}"), Arc::new(Mutex::new(Strings::default())));
        let worker = Worker {
            machine: machines[number % machines.len()].clone(),
            slots: rng.random_range(1..3),
            failing,
            token: token.to_owned(),
            seed: rng.random(),
            ledger: ledger.clone(),
            strings: strings.clone(),
        };
        sim.host(name.clone(), move || worker.clone().run());
        workers.push((name, strings));
    }
    (machines, workers)
}

fn simulation<'a>(seed: u64, latency: u64) -> Sim<'a> {
    turmoil::Builder::new()
        .simulation_duration(Duration::from_secs(240))
        .tick_duration(Duration::from_millis(20))
        .min_message_latency(Duration::from_millis(1))
        .max_message_latency(Duration::from_millis(latency))
        .rng_seed(seed)
        .build()
}

fn judge(seed: u64, ended: turmoil::Result, machines: &[Machine], ledger: &Ledger) {
    let waiting: Vec<_> = machines.iter().flat_map(Machine::spooled).collect();
    let mut rejected: Vec<_> = machines.iter().flat_map(Machine::rejected).collect();
    let notes = ledger.notes();
    let spoilt = |name: &str| notes.spoilt.iter().any(|(fold, attempt)| names(name, *fold, *attempt));
    rejected.retain(|path| !path.file_name().is_some_and(|name| spoilt(&name.to_string_lossy())));
    if let Err(error) = &ended {
        panic!(
            "world {seed}: sweeps do not end: {error}; broken: {:?}; seen: {:?}; spooled: {waiting:?}",
            notes.broken, notes.seen
        );
    }
    let seen = &notes.seen;
    assert!(notes.broken.is_empty(), "world {seed}: {:?}; seen: {seen:?}", notes.broken);
    assert!(rejected.is_empty(), "world {seed}: refused for good: {rejected:?}");
    assert!(
        seen.get("finished").copied().unwrap_or(0) > 0 || seen.contains_key("failed folds"),
        "world {seed}: dull"
    );
}

/// Whether a file of a spool is about this attempt.
fn names(file: &str, fold: FoldKey, attempt: Attempt) -> bool {
    let FoldKey { trial, split, seed } = fold;
    file.ends_with(&format!("-{trial}-{split}-{seed}-{attempt}.json"))
}

impl Hosts {
    /// Lets the world run, with its faults, until the operator is content.
    fn play(
        &mut self,
        sim: &mut Sim<'_>,
        faults: Vec<(Duration, Fault)>,
        troubles: &Troubles,
    ) -> turmoil::Result {
        let mut faults = faults.into_iter().peekable();
        loop {
            let now = sim.elapsed();
            self.ledger.set_now(now);
            while let Some((_, fault)) = faults.next_if(|(at, _)| *at <= now) {
                self.inflict(sim, now, fault);
            }
            if now >= FAULTY {
                troubles.set(0, 0, 0);
            }
            self.kill_the_doomed(sim, now);
            self.find_the_dead(sim, now);
            let (due, later): (Vec<_>, Vec<_>) = self.mending.drain(..).partition(|(at, _)| *at <= now);
            self.mending = later;
            due.into_iter().for_each(|(_, mend)| self.mend(sim, mend));
            if sim.step()? {
                return Ok(());
            }
        }
    }

    /// Processes of hosts that are in a loop live for less than a second.
    fn kill_the_doomed(&mut self, sim: &mut Sim<'_>, now: Duration) {
        self.looping.retain(|(_, until)| now < *until);
        for (number, _) in &self.looping {
            let name = &*self.workers[*number].0;
            if now.as_millis() % 800 < 20 && sim.is_host_running(name) {
                sim.crash(name);
                self.mending.push((now + Duration::from_millis(60), Mend::StartWorker(*number)));
            }
        }
    }

    /// Programs that ended by themselves are started again, as a service manager does it.
    fn find_the_dead(&mut self, sim: &mut Sim<'_>, now: Duration) {
        for ((name, dead), mend) in
            COORDINATORS.iter().zip(&self.dead).zip([Mend::StartCoordinator, Mend::StartStandby])
        {
            if dead.swap(false, Ordering::SeqCst) && sim.is_host_running(*name) {
                sim.crash(*name);
                self.mending.push((now + RESTART, mend));
            }
        }
        for number in 0..self.workers.len() {
            let start = Mend::StartWorker(number);
            let awaited = self.mending.iter().any(|(_, mend)| *mend == start);
            if !awaited && !sim.is_host_running(&*self.workers[number].0) {
                self.mending.push((now + RESTART, start));
            }
        }
    }

    fn inflict(&mut self, sim: &mut Sim<'_>, now: Duration, fault: Fault) {
        let until = |lasts: Duration| (now + lasts).min(FAULTY.max(now));
        let happens = self.strike(sim, now, fault, until).or_else(|| self.disturb(sim, fault, until));
        let (what, mend) = happens.unwrap_or(("faults of hosts that are down", None));
        self.ledger.count(what);
        self.ledger.tell("fault", &fault);
        self.mending.extend(mend);
    }

    /// Faults of processes that run.
    fn strike(
        &mut self,
        sim: &mut Sim<'_>,
        now: Duration,
        fault: Fault,
        until: impl Fn(Duration) -> Duration,
    ) -> Option<Happening> {
        let name = |number: usize| &*self.workers[number].0;
        Some(match fault {
            Fault::CrashCoordinator { down } if sim.is_host_running(COORDINATOR) => {
                sim.crash(COORDINATOR);
                self.stand(sim, false); // that was this process, and another one may take over
                ("coordinator crashes", Some((until(down), Mend::StartCoordinator)))
            }
            Fault::CrashWorker(n, down) if sim.is_host_running(name(n)) => {
                sim.crash(name(n));
                ("worker crashes", Some((until(down), Mend::StartWorker(n))))
            }
            Fault::StopWorker(n) if sim.is_host_running(name(n)) => {
                self.workers[n].1.lock().unwrap().stop(now);
                ("worker stops", None)
            }
            Fault::JumpWorker(n, milliseconds) if sim.is_host_running(name(n)) => {
                self.workers[n].1.lock().unwrap().jump(milliseconds);
                ("worker clock jumps", None)
            }
            // Whoever serves: all that is on its way to either is held.
            Fault::PauseCoordinator(lasts) if COORDINATORS.iter().any(|one| sim.is_host_running(*one)) => {
                self.stand(sim, true);
                ("coordinator pauses", Some((until(lasts), Mend::WakeCoordinator)))
            }
            Fault::PauseWorker(n, lasts) if sim.is_host_running(name(n)) => {
                self.workers[n].1.lock().unwrap().pause(until(lasts));
                ("worker pauses", None)
            }
            _ => return None,
        })
    }

    /// Faults of networks, clocks, machines and programs, whoever runs.
    fn disturb(
        &mut self,
        sim: &Sim<'_>,
        fault: Fault,
        until: impl Fn(Duration) -> Duration,
    ) -> Option<Happening> {
        let name = |number: usize| &*self.workers[number].0;
        Some(match fault {
            Fault::Partition(n, lasts) => {
                COORDINATORS.iter().for_each(|one| sim.partition(name(n), *one));
                ("partitions", Some((until(lasts), Mend::Repair(n))))
            }
            Fault::OneWay(n, lasts) => {
                COORDINATORS.iter().for_each(|one| sim.partition_oneway(*one, name(n)));
                ("one-way partitions", Some((until(lasts), Mend::Repair(n))))
            }
            Fault::Hold(n, lasts) => {
                COORDINATORS.iter().for_each(|one| sim.hold(name(n), *one));
                ("held links", Some((until(lasts), Mend::Release(n))))
            }
            Fault::Jump(milliseconds) => {
                self.jump(milliseconds);
                ("clock jumps", None)
            }
            Fault::CrashLoop(n, lasts) => {
                self.keep_crashing(n, until(lasts));
                ("crash loops", None)
            }
            Fault::Outdate => {
                self.ledger.outdate();
                ("old coordinators", Some((FAULTY, Mend::UpgradeCoordinator)))
            }
            Fault::Spoil => {
                self.ledger.notes().spoiling = true;
                ("spoilt worlds", None)
            }
            Fault::LoseStore if self.lock.lose() => {
                self.stand(sim, false); // whoever takes over does not stand still
                ("lost stores", None)
            }
            Fault::Damage => {
                self.damage();
                ("broken disks", None)
            }
            _ => return None,
        })
    }

    /// The clock of whoever serves jumps ahead.
    fn jump(&self, milliseconds: u64) {
        self.ledger.jumped(milliseconds);
        self.jumps.jump(milliseconds);
    }

    /// All workers of the same machine: a result of one would speak for the others.
    fn keep_crashing(&mut self, n: usize, until: Duration) {
        let machines = self.ledger.notes().machines;
        let its = (0..self.workers.len()).filter(|number| number % machines == n % machines);
        self.looping.extend(its.map(|number| (number, until)));
    }

    /// The coordinator's disk changes a byte of every checkpoint.
    fn damage(&self) {
        self.ledger.notes().damaged = true;
        let files = self.held.iter().flat_map(|held| std::fs::read_dir(held).unwrap());
        let files = files.map(|entry| entry.unwrap().path());
        for file in files.filter(|file| file.extension().is_some_and(|end| end == "checkpoint")) {
            let mut bytes = std::fs::read(&file).unwrap();
            bytes[0] ^= 1;
            std::fs::write(&file, bytes).unwrap();
            self.ledger.count("damaged checkpoints");
        }
    }

    /// The coordinator's process stands still, or goes on: its clock, and all that is on its way to it.
    fn stand(&self, sim: &Sim<'_>, stands: bool) {
        self.jumps.set_standing(stands);
        self.ledger.set_standing(stands);
        for (name, coordinator) in
            self.workers.iter().flat_map(|(name, _)| COORDINATORS.map(|one| (name, one)))
        {
            match stands {
                true => sim.hold(&**name, coordinator),
                false => sim.release(&**name, coordinator),
            }
        }
    }

    fn mend(&self, sim: &mut Sim<'_>, mend: Mend) {
        let name = |number: usize| &*self.workers[number].0;
        match mend {
            Mend::StartCoordinator => {
                self.stand(sim, false); // that was the process before
                sim.bounce(COORDINATOR);
            }
            Mend::StartStandby => sim.bounce(STANDBY),
            Mend::StartWorker(n) => sim.bounce(name(n)),
            Mend::Repair(n) => COORDINATORS.iter().for_each(|one| sim.repair(name(n), *one)),
            Mend::Release(n) => COORDINATORS.iter().for_each(|one| sim.release(name(n), *one)),
            Mend::WakeCoordinator => self.stand(sim, false),
            Mend::UpgradeCoordinator => {
                self.ledger.notes().outdated = false;
                COORDINATORS.iter().for_each(|name| sim.bounce(*name)); // the new program, whoever serves
            }
        }
    }
}
