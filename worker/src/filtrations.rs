//! `togl-worker filtrations`: the filtration values that a trained network gives to the vertices of chosen graphs, as
//! JSON. The network comes from a kept model or a checkpoint, or is trained first. What the values mean is in
//! `togl-learning`; this finds the network and prints.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use togl_learning::{Checkpoint, filtrations};
use togl_sweeps::bounded;

use crate::data::Data;
use crate::saving::Saving;
use crate::train::{Local, explained, read_trial};
use crate::version::print;
use crate::{Usage, devices};

/// Write learnt filtrations as JSON
#[derive(Debug, clap::Args)]
pub struct Filtrations {
    /// A model that a fold left behind (`--keep-models`), or a checkpoint
    #[arg(long, value_name = "FILE", required_unless_present = "trial", conflicts_with = "trial")]
    checkpoint: Option<PathBuf>,
    /// Train this first: a sweep file with one trial, or the canonical JSON of a trial
    #[arg(long, value_name = "FILE")]
    trial: Option<PathBuf>,
    /// Which split of the data set, with --trial
    #[arg(long, default_value_t = 0, conflicts_with = "checkpoint")]
    split: u32,
    /// Training seed, with --trial
    #[arg(long, default_value_t = 0, conflicts_with = "checkpoint")]
    seed: u64,
    /// Which graphs, by their position in the data set
    #[arg(long, value_name = "N", num_args = 1.., required = true)]
    graph: Vec<u32>,
    /// Device to compute on
    #[arg(long, default_value = "cpu")]
    device: String,
    #[command(flatten)]
    data: Data,
    #[command(flatten)]
    saving: Saving,
}

impl Filtrations {
    /// Finds or trains the network, computes and prints.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let device = devices::parse(&self.device).map_err(Usage::new)?;
        togl_learning::use_threads(1);
        let network = match (&self.checkpoint, &self.trial) {
            (Some(file), _) => read(file)?,
            (None, Some(file)) => {
                let trial = read_trial(file)?;
                if !trial.togl {
                    let message =
                        format!("{} has no topological layer, so it learns no filtrations", trial.method());
                    anyhow::bail!(Usage::new(message).hint("set `togl: true` in the trial"));
                }
                let (data, saving) = (self.data.clone(), self.saving.clone());
                let (split, seed, threads, fresh) = (self.split, self.seed, 1, false);
                let local = Local { split, seed, device, threads, data, fresh, saving };
                let Some(trained) = local.train(&trial)? else { return Ok(ExitCode::from(130)) };
                local.forget_checkpoints(&trial);
                trained.model
            }
            (None, None) => None,
        };
        let network = network.ok_or_else(|| Usage::new("name a network with --checkpoint or --trial"))?;
        let trial = network.trial().map_err(explained)?;
        let dataset =
            self.data.open(&trial, &|text| eprintln!("{text}")).map_err(|error| Usage::new(error.message))?;
        let learnt = filtrations(&network, &dataset, &self.graph, device).map_err(explained)?;
        print(&(serde_json::to_string(&learnt)? + "\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn read(file: &Path) -> anyhow::Result<Option<Checkpoint>> {
    let bytes = std::fs::File::open(file)
        .and_then(|file| bounded::bytes(file, bounded::TABLE))
        .map_err(|error| Usage::new(format!("cannot read {}: {error}", file.display())))?;
    let foreign = |error| {
        Usage::new(format!("{}: {error}", file.display()))
            .hint("name a file of --keep-models or of the checkpoint folder")
    };
    Ok(Some(Checkpoint::from_bytes(&bytes).map_err(foreign)?))
}
