//! How a store behaves with very many folds: time of group commits, size, time and memory of a start. Prints JSON.
//!
//! `cargo run -p togl-coordinator --example store_scale -- ADDRESS FOLDS BATCH`, where ADDRESS is `sqlite:PATH` or
//! `postgres://...`, empty at the beginning; a second run on the same store measures the start alone.

#![expect(clippy::print_stdout, reason = "an example prints")]
#![expect(clippy::disallowed_methods, reason = "an example reads the clock")]

use std::error::Error;
use std::time::{Duration, Instant};

use togl_coordinator::store::Store;
use togl_coordinator::store::address::StoreAddress;
use togl_scheduler::{Event, Limits, Reply, Scheduler, Submission, Timestamp, WorkerInfo};
use togl_sweeps::result::example;
use togl_sweeps::trial::NUMERICS;
use togl_sweeps::{FoldKey, TrialId};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, folds, batch] = &arguments[..] else { return Err("ADDRESS FOLDS BATCH".into()) };
    let address: StoreAddress = address.parse()?;
    let (folds, batch): (u32, u32) = (folds.parse()?, batch.parse()?);
    fill(&address, folds, batch)?;
    let before = resident();
    let start = Instant::now();
    let store = address.open()?;
    let opened = start.elapsed();
    let snapshot = store.load()?;
    let loaded = start.elapsed();
    let (count, peak) = (snapshot.folds.len(), resident());
    let scheduler = Scheduler::restore(Limits::default(), snapshot, Timestamp(0));
    let started = start.elapsed();
    println!(
        "{{\"folds\":{count},\"open_s\":{:.3},\"load_s\":{:.3},\"start_s\":{:.3},\"rss_before_mb\":{before},\
         \"rss_loaded_mb\":{peak},\"rss_started_mb\":{},\"file_mb\":{}}}",
        opened.as_secs_f64(),
        loaded.as_secs_f64(),
        started.as_secs_f64(),
        resident(),
        size(&address)
    );
    drop(scheduler);
    store.close()?;
    Ok(())
}

/// Submits, leases and finishes so many folds, `batch` of them in a transaction; does nothing to a filled store.
fn fill(address: &StoreAddress, folds: u32, batch: u32) -> Result<(), Box<dyn Error>> {
    let mut store = address.open()?;
    let mut scheduler = Scheduler::restore(Limits::default(), store.load()?, Timestamp(0));
    if !scheduler.sweeps().is_empty() {
        return Ok(());
    }
    let start = Instant::now();
    store.commit(&scheduler.handle(Timestamp(0), submission(folds)?)?.changes)?;
    let submitted = start.elapsed();
    let start = Instant::now();
    let (commits, writing) = finish(store.as_mut(), &mut scheduler, batch)?;
    println!(
        "{{\"folds\":{folds},\"batch\":{batch},\"submit_s\":{:.2},\"commits\":{commits},\"folds_per_s\":{:.0},\
         \"store_us_per_fold\":{:.1}}}",
        submitted.as_secs_f64(),
        f64::from(folds) / start.elapsed().as_secs_f64(),
        writing.as_secs_f64() * 1e6 / f64::from(folds)
    );
    store.close()?;
    Ok(())
}

/// Commits what a busy driver commits together: results of the last leases and the next leases. Gives the number of
/// commits and the time they took.
fn finish(
    store: &mut dyn Store,
    scheduler: &mut Scheduler,
    batch: u32,
) -> Result<(u32, Duration), Box<dyn Error>> {
    let mut tell = |event| scheduler.handle(Timestamp(0), event);
    let worker: togl_sweeps::WorkerId = "w".parse()?;
    let info =
        WorkerInfo { host: "host".to_owned(), slots: batch, numerics: NUMERICS, ..WorkerInfo::default() };
    tell(Event::WorkerJoined { worker: worker.clone(), info, running: vec![] })?;
    let (mut reports, mut writing, mut commits) = (Vec::new(), Duration::ZERO, 0u32);
    loop {
        let mut changes = Vec::new();
        for report in reports.drain(..) {
            changes.extend(tell(report)?.changes);
        }
        let outcome = tell(Event::LeasesAsked { worker: worker.clone(), count: batch })?;
        changes.extend(outcome.changes);
        let Reply::Leases(leases) = outcome.reply else { return Err("no leases".into()) };
        reports.extend(leases.into_iter().map(|lease| Event::ResultReported {
            worker: worker.clone(),
            fold: lease.fold,
            attempt: lease.attempt,
            result: Box::new(example(0.5).check().expect("an example")),
        }));
        let write = Instant::now();
        store.commit(&changes)?;
        writing += write.elapsed();
        commits += 1;
        if reports.is_empty() {
            return Ok((commits, writing));
        }
    }
}

fn submission(folds: u32) -> Result<Event, Box<dyn Error>> {
    let trial = |n: u32| TrialId::from_bytes(u128::from(n / 10).to_le_bytes());
    let key = |n: u32| FoldKey { trial: trial(n), split: n % 10, seed: 0 };
    Ok(Event::Submit(Box::new(Submission {
        name: "scale".parse()?,
        yaml: "name: scale".to_owned(),
        priority: 0,
        limits: Default::default(),
        resources: Default::default(),
        race: None,
        data_digests: Vec::new(),
        trials: (0..folds.div_ceil(10)).map(|n| (trial(n * 10), format!("{{\"trial\":{n}}}"))).collect(),
        folds: (0..folds).map(key).collect(),
        gathered: 0,
    })))
}

/// Megabytes of memory of this process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) / 1024
}

fn size(address: &StoreAddress) -> u64 {
    match address {
        StoreAddress::Sqlite(path) => std::fs::metadata(path).map_or(0, |metadata| metadata.len() >> 20),
        _ => 0,
    }
}
