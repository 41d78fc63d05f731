//! Workers on other machines, over the user's own `ssh`: `file.rs` says what is wished, `bundle.rs` what can be sent, `looked.rs`
//! what a host is like, `decide.rs` what follows from the three; `ssh.rs`, `send.rs` and `act.rs` do it with the shell scripts
//! beside them. Knows nothing of terminals and tables, which are the verb's (`cli/hosts.rs`).

pub mod act;
pub mod bundle;
pub mod decide;
pub mod file;
pub mod looked;
mod packed;
pub mod scripts;
mod send;
mod ssh;
