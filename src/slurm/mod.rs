//! Workers that a Slurm cluster starts, as many as there is work for. `pool.rs` says what a pool is and which folds fit,
//! `jobs.rs` reads what Slurm says, `decide.rs` decides from that and the coordinator's demand what to submit and what to
//! cancel, `memory.rs` holds the little that is remembered between two looks, `script.rs` writes the job, `commands.rs` runs
//! Slurm's programs, `autoscaler.rs` does all of it again and again. Nothing is stored: the queue is the state.

pub mod autoscaler;
pub mod commands;
pub mod decide;
pub mod jobs;
pub mod memory;
pub mod pool;
pub mod script;
