//! The agent of a worker: takes leases, gives its slots orders, reports what came of them until that is acknowledged,
//! and outlives the coordinator. Knows the protocol, the spool and what slots are told; neither tensors nor child
//! processes, so that simulated worlds can run it as it is.

pub mod agent;
pub mod clock;
pub mod courier;
pub mod crash;
pub mod durable;
pub mod identity;
pub mod library;
pub mod link;
pub mod slots;
pub mod spool;
pub mod tasks;
