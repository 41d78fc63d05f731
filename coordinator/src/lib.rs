//! The coordinator: a write-ahead driver around the pure scheduler, the stores, and the gRPC server.
//!
//! The server authenticates and converts; the driver decides by asking the scheduler and stores every decision
//! before anybody hears of it; the store keeps facts. Nothing here trains, and nothing here draws tables.

pub mod bundle;
pub mod certificates;
pub mod checkpoints;
pub mod clock;
mod crash;
pub mod driver;
pub mod hostile;
pub mod liveness;
pub mod log_limit;
pub mod metrics;
pub mod private;
pub mod programs;
pub mod reads;
pub mod server;
pub mod service;
mod standby;
pub mod store;
mod store_check;
pub mod tasks;
mod telling;
pub mod tokens;
