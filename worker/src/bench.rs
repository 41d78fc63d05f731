//! `togl-worker bench`: how fast this machine trains. `bench` measures epochs of a network, `bench persistence`
//! the persistence of graphs of two sizes. Measuring is done by the libraries; this chooses and prints.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::json;
use togl_agent::clock::AgentClock;
use togl_data::SplitRule;
use togl_learning::bench::{self, EpochTiming};
use togl_learning::launches::StepLaunches;
use togl_learning::{Device, Job};
use togl_sweeps::TrialConfig;
use togl_sweeps::trial::{Backbone, Placement};

use crate::data::Data;
use crate::version::{Format, print};
use crate::{Usage, devices, host, train};

/// Measure how fast this machine trains
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Bench {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    epochs: Epochs,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Microseconds of persistence per graph and filtration
    Persistence(Persistence),
}

/// Seconds of a training epoch.
#[derive(Debug, Args)]
struct Epochs {
    /// A sweep file with one trial, or canonical JSON; replaces --model
    #[arg(long, value_name = "FILE")]
    trial: Option<PathBuf>,
    /// The network: `gcn-4`, `gcn-3-togl-1` or `gcn-3-togl-1-deepset` (any backbone and depth)
    #[arg(long, default_value = "gcn-4")]
    model: String,
    /// The data set
    #[arg(long, default_value = "necklaces")]
    dataset: String,
    /// Split of the data set
    #[arg(long, default_value_t = 0)]
    split: u32,
    /// Epochs to measure, after three to warm up
    #[arg(long, default_value_t = 15)]
    epochs: usize,
    /// Threads
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Count what one training step launches on --device, part by part, instead of measuring; --epochs steps are taken
    #[arg(long, requires = "device")]
    launches: bool,
    /// Device of --launches
    #[arg(long, requires = "launches")]
    device: Option<String>,
    #[command(flatten)]
    data: Data,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

#[derive(Debug, Args)]
struct Persistence {
    /// Repetitions of the whole batch
    #[arg(long, default_value_t = 200)]
    repeats: usize,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
}

impl Bench {
    /// Measures and prints.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.what {
            Some(What::Persistence(persistence)) => persistence.run(),
            None => self.epochs.run(),
        }
    }
}

#[derive(Serialize)]
struct EpochReport {
    dataset: String,
    threads: usize,
    peak_memory: u64,
    #[serde(flatten)]
    timing: EpochTiming,
}

impl Epochs {
    fn run(self) -> anyhow::Result<ExitCode> {
        let trial = match &self.trial {
            Some(file) => train::read_trial(file)?,
            None => network(&self.model, &self.dataset)?,
        };
        togl_learning::use_threads(self.threads);
        let dataset = self
            .data
            .open(&trial, &|text| eprintln!("{text}"))
            .map_err(|failure| Usage::new(failure.message))?;
        let clock = AgentClock::start();
        let seconds = || clock.seconds();
        let device = self.device.as_deref().map_or(Ok(Device::Cpu), devices::parse).map_err(Usage::new)?;
        let job = Job { trial: &trial, split: self.split, seed: 0, device, clock: &seconds };
        if self.launches {
            let step = bench::step_launches(&job, &dataset, self.epochs).map_err(train::explained)?;
            print(&match self.format {
                Format::Json => serde_json::to_string_pretty(&step)? + "\n",
                Format::Human => launches(&step),
            })?;
            return Ok(ExitCode::SUCCESS);
        }
        let timing = bench::epoch_seconds(&job, &dataset, 3, self.epochs)?;
        let report = EpochReport {
            dataset: trial.dataset.clone(),
            threads: self.threads,
            peak_memory: host::peak_memory(),
            timing,
        };
        print(&match self.format {
            Format::Json => serde_json::to_string_pretty(&report)? + "\n",
            Format::Human => describe(&report),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

fn launches(step: &StepLaunches) -> String {
    let mut text = format!(
        "{}: launches of one training step\n{:<20}{:>9}{:>10}{:>8}{:>8}{:>8}{:>10}{:>7}\n",
        step.method, "part", "forward", "backward", "sum", "nested", "copies", "blocking", "waits"
    );
    for part in step.parts.iter().chain([&step.total]) {
        text += &format!(
            "{:<20}{:>9}{:>10}{:>8}{:>8}{:>8}{:>10}{:>7}\n",
            part.part,
            part.forward,
            part.backward,
            part.launches(),
            part.nested,
            part.copies,
            part.blocking_copies,
            part.waits
        );
    }
    text
}

fn describe(report: &EpochReport) -> String {
    let timing = &report.timing;
    format!(
        "{} on {} ({} graphs in {} batches, {} parameters, {} threads)\n  epoch       median {:.1} ms, least {:.1} ms \
         over {} epochs\n  throughput  {:.0} graphs/s\n  collation   {:.1} ms an epoch\n  memory      {:.0} MB at most\n  shares      \
         persistence {:.0} %, message passing {:.0} %, dense products of the graph layers {:.0} %\n",
        timing.method,
        report.dataset,
        timing.graphs,
        timing.batches,
        timing.parameters,
        report.threads,
        timing.median * 1e3,
        timing.min * 1e3,
        timing.epochs,
        timing.graphs_per_second,
        timing.collation * 1e3,
        report.peak_memory as f64 / 1e6,
        100.0 * timing.shares.persistence,
        100.0 * timing.shares.message_passing,
        100.0 * timing.shares.matmul,
    )
}

/// Reads `BACKBONE-DEPTH[-togl-1][-deepset]` with the published settings of the data set's family.
fn network(name: &str, dataset: &str) -> anyhow::Result<TrialConfig> {
    let refuse =
        || Usage::new(format!("`{name}` is not a network; use gcn-4, gcn-3-togl-1 or gcn-3-togl-1-deepset"));
    let lower = name.to_lowercase();
    let mut words = lower.split('-');
    let model = match words.next() {
        Some("gcn") => Backbone::Gcn,
        Some("gin") => Backbone::Gin,
        Some("gat") => Backbone::Gat,
        Some("gatedgcn") => Backbone::GatedGcn,
        _ => return Err(refuse().into()),
    };
    let depth: u32 = words.next().and_then(|word| word.parse().ok()).ok_or_else(refuse)?;
    let rest: Vec<&str> = words.collect();
    let (togl, deepset) = match rest.as_slice() {
        [] => (false, false),
        ["togl", "1"] => (true, false),
        ["togl", "1", "deepset"] => (true, true),
        _ => return Err(refuse().into()),
    };
    let synthetic = togl_data::find(dataset).is_ok_and(|source| source.split_rule == SplitRule::RandomBySeed);
    let batch_size = if synthetic { 32 } else { 20 }; // as published
    let settings = TrialConfig {
        dataset: dataset.to_owned(),
        model,
        depth,
        togl,
        deepset,
        batch_size,
        ..TrialConfig::default()
    };
    let trial = TrialConfig { placement: Placement::Add, ..settings };
    trial.check().map_err(Usage::new)?;
    Ok(trial)
}

impl Persistence {
    fn run(self) -> anyhow::Result<ExitCode> {
        let clock = AgentClock::start();
        let sizes = [("ENZYMES size", 33, 62), ("DD size", 284, 716)];
        let mut rows = Vec::new();
        for (name, vertices, edges) in sizes {
            let timing = bench::persistence_microseconds(vertices, edges, self.repeats, &|| clock.seconds())?;
            rows.push((name, vertices, edges, timing));
        }
        let text = match self.format {
            Format::Json => {
                let cells: Vec<_> = rows
                    .iter()
                    .map(|(name, vertices, edges, t)| {
                        json!({"size": name, "vertices": vertices, "edges": edges, "median_us": t.0, "min_us": t.1})
                    })
                    .collect();
                serde_json::to_string_pretty(&cells)? + "\n"
            }
            Format::Human => rows
                .iter()
                .map(|(name, vertices, edges, t)| {
                    format!("{name} ({vertices} vertices, {edges} edges): median {:.2} us, least {:.2} us per graph and filtration\n", t.0, t.1)
                })
                .collect(),
        };
        print(&text)?;
        Ok(ExitCode::SUCCESS)
    }
}
