//! The options about what folds leave on disk, shared by the verbs that train, with their defaults.

use std::path::PathBuf;
use std::time::Duration;

use crate::checkpoints::Checkpoints;
use crate::fold::Keeping;
use togl_proto::own_machine;

/// Where checkpoints are, and how much room they have.
#[derive(Debug, Clone, clap::Args)]
pub struct CheckpointRoom {
    /// Where unacknowledged results and checkpoints are kept [default: the user's state directory]
    #[arg(long, value_name = "DIR", env = "TOGL_STATE")]
    state: Option<PathBuf>,
    /// Where checkpoints are kept, from which interrupted folds go on; workers of several machines may share it
    /// [default: checkpoints in the state directory]
    #[arg(long, value_name = "DIR", env = "TOGL_CHECKPOINT_DIR")]
    checkpoint_dir: Option<PathBuf>,
    /// Room for all checkpoints together; the oldest are removed first
    #[arg(long, value_name = "MEGABYTES", env = "TOGL_CHECKPOINT_MEGABYTES", default_value_t = 2000)]
    checkpoint_megabytes: u64,
}

impl CheckpointRoom {
    /// The state directory; none without a home.
    pub fn state(&self) -> Option<PathBuf> {
        self.state.clone().or_else(own_machine::state_folder)
    }

    /// Whether checkpoints are in a folder of their own, which workers of other machines may see.
    pub fn is_shared(&self) -> bool {
        self.checkpoint_dir.is_some()
    }

    /// The folder of checkpoints; none without a state directory.
    pub fn checkpoints(&self) -> Option<Checkpoints> {
        let folder = self.checkpoint_dir.clone().or_else(|| Some(self.state()?.join("checkpoints")))?;
        Some(Checkpoints { folder, most_bytes: self.checkpoint_megabytes.saturating_mul(1_000_000) })
    }
}

/// What is kept, where, and how often.
#[derive(Debug, Clone, clap::Args)]
pub struct Saving {
    #[command(flatten)]
    room: CheckpointRoom,
    /// Seconds between two checkpoints of a fold; 0 for one after every epoch
    #[arg(long, value_name = "SECONDS", env = "TOGL_CHECKPOINT_SECONDS", default_value_t = 60)]
    checkpoint_seconds: u64,
    /// Keep the best network of every fold in this folder, for `togl-worker filtrations`
    #[arg(long, value_name = "DIR", env = "TOGL_KEEP_MODELS")]
    keep_models: Option<PathBuf>,
}

impl Saving {
    /// Where things are.
    pub fn room(&self) -> &CheckpointRoom {
        &self.room
    }

    /// How long a fold may train without a checkpoint.
    pub fn every(&self) -> Duration {
        Duration::from_secs(self.checkpoint_seconds)
    }

    /// What folds leave on disk.
    pub fn keeping(&self) -> Keeping {
        Keeping { checkpoints: self.room.checkpoints(), models: self.keep_models.clone() }
    }
}

/// When checkpoints are brought to the coordinator; an option of `join`, because others have none.
#[derive(Debug, Clone, clap::Args)]
pub struct Bringing {
    /// Seconds between two checkpoints of a fold that are brought to the coordinator, so that it goes on elsewhere if this
    /// machine is lost; 0 for each that is written
    #[arg(long, value_name = "SECONDS", env = "TOGL_UPLOAD_SECONDS", default_value_t = 300)]
    upload_seconds: u64,
    /// Keep checkpoints on this machine: bring none to the coordinator and fetch none
    #[arg(long, env = "TOGL_NO_UPLOADS")]
    no_uploads: bool,
}

impl Bringing {
    /// How often; none for never.
    pub fn every(&self) -> Option<Duration> {
        (!self.no_uploads).then(|| Duration::from_secs(self.upload_seconds))
    }
}
