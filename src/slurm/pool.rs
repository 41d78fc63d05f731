//! A pool: workers of one kind that Slurm starts, within bounds, and which folds they can train. What is written into the
//! queue so that a pool finds its jobs again is here, too. Reads nothing and submits nothing.

use togl_proto::wire;

use super::jobs::SlurmJob;

/// Workers of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pool {
    /// Its name; letters, digits and dashes.
    pub name: String,
    /// Waiting and running at once.
    pub max_workers: u32,
    /// Waiting at once.
    pub max_waiting: u32,
    /// The device of its workers: `any` if nobody said.
    pub device: String,
    /// Bytes of memory of a device, if somebody said.
    pub memory: Option<u64>,
    /// Slots of a worker, if somebody said.
    pub slots: Option<u32>,
    /// Seconds that a worker lives.
    pub lifetime: u64,
    /// The CA of the coordinator that its workers join, so that two coordinators never share jobs.
    pub pin: String,
}

/// A name that can be part of a job's name and of a file's.
pub fn check_name(name: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    match !name.is_empty() && name.len() <= 32 && name.chars().all(plain) && !name.starts_with('-') {
        true => Ok(name.to_owned()),
        false => Err("a pool's name is 1 to 32 lower-case letters, digits and dashes".to_owned()),
    }
}

impl Pool {
    /// The name of its jobs.
    pub fn job_name(&self) -> String {
        format!("togl-{}", self.name)
    }

    /// What its jobs carry, from which another process goes on.
    pub fn comment(&self) -> String {
        let slots = self.slots.map_or_else(|| "-".to_owned(), |slots| slots.to_string());
        format!("{}{slots}", self.mark())
    }

    fn mark(&self) -> String {
        format!("togl:1:{}:{}:", self.pin, self.name)
    }

    /// Whether a job of the queue is one of its own.
    pub fn owns(&self, job: &SlurmJob) -> bool {
        job.name == self.job_name() && job.comment.starts_with(&self.mark())
    }

    /// Whether its workers can train such folds.
    pub fn fits(&self, shape: &wire::Shape) -> Result<(), Misfit> {
        if self.device != "any" && shape.device != "any" && shape.device != self.device {
            return Err(Misfit::Device);
        }
        if self.memory.is_some_and(|memory| memory < shape.memory) {
            return Err(Misfit::Memory);
        }
        // Its checkpoints are in a folder that all of its workers see.
        let needed = |p90: u64| p90.saturating_mul(3) / 2 + 120;
        match shape.p90_seconds {
            Some(p90) if !shape.resumable && needed(p90) > self.lifetime => Err(Misfit::Time),
            Some(_) | None => Ok(()),
        }
    }
}

/// Why folds do not fit a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Misfit {
    /// They want another kind of device.
    Device,
    /// They need more memory.
    Memory,
    /// They take longer than its workers live, and begin anew elsewhere.
    Time,
}

impl Misfit {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Device => "ask for another kind of device",
            Self::Memory => "need more memory than its devices have",
            Self::Time => "take longer than its workers live (raise --time)",
        }
    }
}
