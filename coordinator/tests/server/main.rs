//! The service as its callers meet it: a real coordinator on a loopback port, real gRPC, a worker that is played
//! by hand. No training, no sleeping.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod checkpoints;
mod crowding;
mod hostile;
mod lies;
mod looking;
mod observed;
mod played;
mod revoked;
mod security;
mod storage;
mod stories;
