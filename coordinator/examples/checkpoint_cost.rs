//! What checkpoints cost a coordinator: workers bring theirs over real connections as often as they can, while somebody asks for
//! the status. Prints how many arrive, the processor time of one (both sides together), and how long the status waits without and
//! with them.
//!
//! `cargo run -p togl-coordinator --example checkpoint_cost -- BYTES SECONDS`

#![expect(clippy::print_stdout, reason = "an example prints")]
#![expect(clippy::disallowed_methods, reason = "an example reads the clock and spawns")]

use std::error::Error;
use std::time::{Duration, Instant};

use togl_agent::courier::{Brought, Courier};
use togl_coordinator::service::{Coordinator, ServiceSettings};
use togl_proto::client::{self, AuthorisedChannel, ClientAccess};
use togl_proto::wire::sweeps_client::SweepsClient;
use togl_proto::wire::{self, coordinator_message, worker_message};
use togl_proto::{checkpoint, convert};
use togl_sweeps::{Attempt, FoldKey, trial};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const SWEEP: &str = "version: 1\nname: cost\nbase: {dataset: necklaces}\nsplits: {from: 0, to: 15}\n";

/// Workers that bring at once, each the checkpoints of one fold.
const WORKERS: u32 = 16;

#[tokio::main]
async fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bytes, seconds] = &arguments[..] else { return Err("BYTES SECONDS".into()) };
    let (bytes, lasts): (usize, _) = (bytes.parse()?, Duration::from_secs(seconds.parse()?));
    if bytes as u64 > checkpoint::LARGEST {
        return Err("checkpoints of that size do not move".into());
    }
    let folder = tempfile::tempdir()?;
    let (store, tokens) = (folder.path().join("store.sqlite"), folder.path().join("tokens.json"));
    let settings = ServiceSettings::new(&store, &tokens, ([127, 0, 0, 1], 0).into());
    let coordinator = Coordinator::start_with(settings).await?;
    let (address, tokens) = (coordinator.address().to_string(), coordinator.tokens().clone());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(coordinator.run(async move { drop(stopped.await) }));
    let mut people = client::sweeps(&address, &tokens.operator).await?;
    people.submit(wire::SubmitRequest { yaml: SWEEP.to_owned(), ..Default::default() }).await?;
    let folds = lease(&address, &tokens.worker).await?;

    println!("{WORKERS} workers, {bytes} bytes each, {} s", lasts.as_secs());
    println!("status alone:             {}", status(&mut people, lasts).await?);
    let (before, begin) = (processor_seconds()?, Instant::now());
    let bringing: Vec<_> = folds
        .into_iter()
        .map(|(fold, attempt)| {
            let (access, address) = (ClientAccess::new(&tokens.worker, None), address.clone());
            tokio::spawn(async move { bring(access?, address, (fold, attempt), bytes, begin + lasts).await })
        })
        .collect();
    println!("status beside checkpoints: {}", status(&mut people, lasts).await?);
    let mut arrived = 0;
    for work in bringing {
        arrived += work.await??;
    }
    let (took, processor) = (begin.elapsed().as_secs_f64(), processor_seconds()? - before);
    let each = 1e3 * processor / f64::from(arrived);
    println!(
        "{arrived} checkpoints, {:.0} a second, {each:.2} ms of processor time each",
        f64::from(arrived) / took
    );
    drop(stop);
    Ok(serving.await??)
}

/// Leases all folds to one worker, which renews them for as long as this program runs.
async fn lease(address: &str, token: &str) -> Outcome<Vec<(FoldKey, Attempt)>> {
    let (outgoing, messages) = mpsc::channel(16);
    let say = async |kind| outgoing.send(wire::WorkerMessage { kind: Some(kind) }).await;
    let (worker, devices) = ("w".to_owned(), vec!["cpu".to_owned(); WORKERS as usize]);
    let (slots, numerics) = (WORKERS, trial::NUMERICS);
    let hello = wire::Hello { worker, slots, devices, numerics, ..Default::default() };
    say(worker_message::Kind::Hello(hello)).await?;
    say(worker_message::Kind::Ask(wire::LeaseRequest { count: WORKERS })).await?;
    let mut client = client::workers(address, token).await?;
    let mut incoming = client.session(ReceiverStream::new(messages)).await?.into_inner();
    let mut running = Vec::new();
    while running.len() < WORKERS as usize {
        let message = incoming.message().await?.ok_or("the session ended")?;
        if let Some(coordinator_message::Kind::Leases(leases)) = message.kind {
            let named = |lease: wire::Lease| wire::Running {
                fold: lease.fold,
                attempt: lease.attempt,
                ..Default::default()
            };
            running.extend(leases.leases.into_iter().map(named));
        }
    }
    let folds = running
        .iter()
        .map(|one| -> Outcome<_> { Ok((convert::fold(one.fold.clone())?, Attempt(one.attempt))) });
    let folds = folds.collect::<Outcome<_>>()?;
    tokio::spawn(async move {
        let _incoming = incoming; // the session lasts while somebody listens
        loop {
            let kind = worker_message::Kind::Heartbeat(wire::Heartbeat { running: running.clone() });
            if outgoing.send(wire::WorkerMessage { kind: Some(kind) }).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    });
    Ok(folds)
}

/// Brings one checkpoint after the other, each further than the last. Says how many were kept.
async fn bring(
    access: ClientAccess,
    address: String,
    (fold, attempt): (FoldKey, Attempt),
    bytes: usize,
    until: Instant,
) -> Outcome<u32> {
    let courier = Courier::new("w".parse()?, move || {
        let (access, address) = (access.clone(), address.clone());
        async move { access.checkpoints(&address).await }
    });
    let mut epochs = 0;
    while Instant::now() < until {
        let content = vec![epochs as u8; bytes];
        match courier.bring(fold, attempt, epochs + 1, content).await? {
            Brought::Kept => epochs += 1,
            other => return Err(format!("not kept: {other:?}").into()),
        }
    }
    Ok(epochs)
}

/// How long a status takes, asked for again and again: the middle one, the 99th in a hundred, the longest.
async fn status(people: &mut SweepsClient<AuthorisedChannel>, lasts: Duration) -> Outcome<String> {
    let (begin, mut took) = (Instant::now(), Vec::new());
    while begin.elapsed() < lasts {
        let asked = Instant::now();
        people.status(wire::StatusRequest { sweep: "cost".to_owned() }).await?;
        took.push(asked.elapsed().as_secs_f64() * 1e3);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    took.sort_by(f64::total_cmp);
    let at = |share: f64| took[((took.len() - 1) as f64 * share) as usize];
    Ok(format!("{:.2} ms in the middle, {:.2} ms 99 %, {:.2} ms at the most", at(0.5), at(0.99), at(1.0)))
}

/// Processor time of this process, in which both sides run.
fn processor_seconds() -> Outcome<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap_or_default().split(' ').collect(); // from field 3 on
    let ticks =
        |number: usize| -> Outcome<f64> { Ok(fields.get(number - 3).ok_or("no such field")?.parse()?) };
    Ok((ticks(14)? + ticks(15)?) / 100.0) // Linux counts hundredths for programs
}
