//! One world: hosts, a plan of faults, an operator who submits and waits, and the judgement at the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng as SmallRng;
use togl_coordinator::store::memory::MemoryStore;
use togl_coordinator::tokens::Tokens;
use togl_proto::client::Bearer;
use togl_proto::wire;
use togl_proto::wire::sweeps_client::SweepsClient;
use turmoil::Sim;

use crate::agent::{self, Disk};
use crate::coordinator;
use crate::faults::{Fault, FaultyStore, Jumps, Troubles, pick, plan};
use crate::ledger::Ledger;
use crate::network::{self, COORDINATOR};

/// Two sweeps that share half of their folds.
const SWEEPS: [(&str, &str); 2] = [
    (
        "a",
        "version: 1\nname: a\nbase: {dataset: necklaces, depth: 2}\ngrid: {togl: [false, true]}\nsplits: [0, 1, 2, 3]\n",
    ),
    (
        "b",
        "version: 1\nname: b\nbase: {dataset: necklaces, depth: 2}\ngrid: {togl: [true]}\nsplits: [0, 1, 2, 3, 4, 5]\npriority: 1\n",
    ),
];

/// Faults stop after this much virtual time; then everything must end.
const FAULTY: Duration = Duration::from_secs(12);

struct Hosts {
    workers: Vec<String>,
    disks: Vec<Disk>,
    /// What is undone when.
    mending: Vec<(Duration, Mend)>,
    dead: Arc<AtomicBool>,
    jumps: Jumps,
    ledger: Ledger,
}

#[derive(Debug, Clone, Copy)]
enum Mend {
    StartCoordinator,
    StartWorker(usize),
    Repair(usize),
    Release(usize),
}

/// Runs the world of a seed and panics, with the seed, if a promise is broken. Says what happened in it.
pub fn run(seed: u64) -> BTreeMap<&'static str, u64> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (ledger, store, tokens) = (Ledger::default(), MemoryStore::default(), Tokens::random().unwrap());
    let (jumps, troubles, dead) = (Jumps::default(), Troubles::default(), Arc::new(AtomicBool::new(false)));
    let mut sim = simulation(seed, *pick(&mut rng, &[5, 50, 400]));
    {
        let (store, ledger, tokens) = (store.clone(), ledger.clone(), tokens.clone());
        let (jumps, troubles, dead) = (jumps.clone(), troubles.clone(), dead.clone());
        let seeds = std::cell::RefCell::new(SmallRng::seed_from_u64(rng.random()));
        sim.host(COORDINATOR, move || {
            let rng = SmallRng::seed_from_u64(seeds.borrow_mut().random());
            let (inner, troubles) = (store.clone(), troubles.clone());
            let faulty = FaultyStore { inner, troubles, jumps: jumps.clone(), ledger: ledger.clone(), rng };
            coordinator::run(faulty, jumps.clone(), tokens.clone(), ledger.clone(), dead.clone())
        });
    }
    let mut hosts =
        Hosts { workers: vec![], disks: vec![], mending: vec![], dead, jumps, ledger: ledger.clone() };
    let failing = *pick(&mut rng, &[0, 5, 20]);
    for number in 0..rng.random_range(1..4) {
        let (name, disk, slots, seed) =
            (format!("host{number}"), Disk::default(), rng.random_range(1..3), rng.random());
        hosts.workers.push(name.clone());
        hosts.disks.push(disk.clone());
        let (ledger, token) = (ledger.clone(), tokens.worker.clone());
        sim.host(name.clone(), move || {
            agent::run(name.clone(), slots, failing, disk.clone(), ledger.clone(), token.clone(), seed)
        });
    }
    sim.client("operator", operate(tokens.operator, hosts.disks.clone(), rng.random()));
    if rng.random_range(0..2) == 0 {
        troubles.set(*pick(&mut rng, &[0, 5, 20]), *pick(&mut rng, &[0, 5, 20]), *pick(&mut rng, &[0, 50]));
    }
    let faults = plan(&mut rng, hosts.workers.len(), FAULTY);
    let ended = hosts.play(&mut sim, faults, &troubles);
    ledger.compare(&store, &["a", "b"]);
    judge(seed, ended, &ledger);
    std::mem::take(&mut ledger.notes().seen)
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

fn judge(seed: u64, ended: turmoil::Result, ledger: &Ledger) {
    let notes = ledger.notes();
    if let Err(error) = &ended {
        panic!(
            "world {seed}: sweeps do not end: {error}; broken: {:?}; seen: {:?}",
            notes.broken, notes.seen
        );
    }
    let seen = &notes.seen;
    assert!(notes.broken.is_empty(), "world {seed}: {:?}; seen: {seen:?}", notes.broken);
    assert!(
        seen.get("finished").copied().unwrap_or(0) > 0 || seen.contains_key("failed folds"),
        "world {seed}: dull"
    );
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
            while let Some((_, fault)) = faults.next_if(|(at, _)| *at <= now) {
                self.inflict(sim, now, fault);
            }
            if now >= FAULTY {
                troubles.set(0, 0, 0);
            }
            if self.dead.swap(false, Ordering::SeqCst) && sim.is_host_running(COORDINATOR) {
                sim.crash(COORDINATOR); // the program ended; something starts it again
                self.mending.push((now + Duration::from_millis(300), Mend::StartCoordinator));
            }
            let (due, later): (Vec<_>, Vec<_>) = self.mending.drain(..).partition(|(at, _)| *at <= now);
            self.mending = later;
            due.into_iter().for_each(|(_, mend)| self.mend(sim, mend));
            if sim.step()? {
                return Ok(());
            }
        }
    }

    fn inflict(&mut self, sim: &mut Sim<'_>, now: Duration, fault: Fault) {
        let until = |lasts: Duration| (now + lasts).min(FAULTY.max(now));
        match fault {
            Fault::CrashCoordinator { down } if sim.is_host_running(COORDINATOR) => {
                self.ledger.count("coordinator crashes");
                sim.crash(COORDINATOR);
                self.mending.push((until(down), Mend::StartCoordinator));
            }
            Fault::CrashWorker(n, down) if sim.is_host_running(&*self.workers[n]) => {
                self.ledger.count("worker crashes");
                sim.crash(&*self.workers[n]);
                self.mending.push((until(down), Mend::StartWorker(n)));
            }
            Fault::Partition(n, lasts) => {
                self.ledger.count("partitions");
                sim.partition(&*self.workers[n], COORDINATOR);
                self.mending.push((until(lasts), Mend::Repair(n)));
            }
            Fault::OneWay(n, lasts) => {
                self.ledger.count("one-way partitions");
                sim.partition_oneway(COORDINATOR, &*self.workers[n]);
                self.mending.push((until(lasts), Mend::Repair(n)));
            }
            Fault::Hold(n, lasts) => {
                self.ledger.count("held links");
                sim.hold(&*self.workers[n], COORDINATOR);
                self.mending.push((until(lasts), Mend::Release(n)));
            }
            Fault::Jump(milliseconds) => {
                self.ledger.count("clock jumps");
                self.jumps.jump(milliseconds);
            }
            Fault::CrashCoordinator { .. } | Fault::CrashWorker(..) => {} // it is down already
        }
    }

    fn mend(&self, sim: &mut Sim<'_>, mend: Mend) {
        match mend {
            Mend::StartCoordinator => sim.bounce(COORDINATOR),
            Mend::StartWorker(n) => sim.bounce(&*self.workers[n]),
            Mend::Repair(n) => sim.repair(&*self.workers[n], COORDINATOR),
            Mend::Release(n) => sim.release(&*self.workers[n], COORDINATOR),
        }
    }
}

/// Submits, meddles, and waits until every sweep has ended and every report has arrived.
async fn operate(token: String, disks: Vec<Disk>, seed: u64) -> turmoil::Result {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut submitted: BTreeMap<&str, bool> = BTreeMap::new();
    loop {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let Ok(Ok(channel)) = tokio::time::timeout(Duration::from_secs(5), network::connect()).await else {
            continue;
        };
        let client = SweepsClient::with_interceptor(channel, Bearer::new(&token)?);
        let talk =
            tokio::time::timeout(Duration::from_secs(60), attend(client, &mut submitted, &disks, &mut rng));
        if let Ok(Ok(())) = talk.await {
            return Ok(());
        }
    }
}

async fn attend<T>(
    mut client: SweepsClient<T>,
    submitted: &mut BTreeMap<&str, bool>,
    disks: &[Disk],
    rng: &mut SmallRng,
) -> Result<(), tonic::Status>
where
    T: tonic::client::GrpcService<tonic::body::Body>,
    T::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    T::ResponseBody: tonic::codegen::Body<Data = tonic::codegen::Bytes> + Send + 'static,
    <T::ResponseBody as tonic::codegen::Body>::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    loop {
        for (name, yaml) in SWEEPS {
            if !submitted.contains_key(name) {
                client.submit(wire::SubmitRequest { yaml: yaml.to_owned(), ..Default::default() }).await?;
                submitted.insert(name, true);
            }
        }
        let sweeps = client.list_sweeps(wire::ListSweepsRequest::default()).await?.into_inner().sweeps;
        let meddling = turmoil::sim_elapsed().is_some_and(|now| now < FAULTY);
        for sweep in &sweeps {
            let sweep_name = sweep.name.clone();
            if sweep.state == "paused" {
                client.resume(wire::ResumeRequest { sweep: sweep_name }).await?;
            } else if meddling && rng.random_range(0..10) == 0 {
                client.pause(wire::PauseRequest { sweep: sweep_name }).await?;
            } else if meddling && sweep.failed > 0 && rng.random_range(0..3) == 0 {
                client.retry(wire::RetryRequest { sweep: sweep_name }).await?;
            }
        }
        let ended = sweeps.iter().all(|sweep| sweep.state == "active" && sweep.pending + sweep.running == 0);
        let delivered = disks.iter().all(|disk| disk.files().spool.is_empty());
        if ended && delivered && !meddling {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
