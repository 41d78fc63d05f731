//! Frames from other people's files. One source per file; each maps foreign columns to the schema, says which
//! rows it had to leave out and why, and keeps the columns it does not know.

mod export;
pub(crate) mod mapping;
mod network;
mod source;
pub mod wandb;
