//! The wire: generated message types, their conversion to and from domain words, and client connections.
//!
//! Wire types stop at the border: servers and clients convert at once through [`convert`], and nothing behind
//! them knows a protobuf struct. This crate decides nothing and stores nothing.

pub mod addresses;
pub mod checkpoint;
pub mod client;
pub mod convert;
pub mod health;
pub mod hostile;
pub mod own_machine;
pub mod storage;
mod tls;
pub mod token;
pub mod trust;

/// The generated types and services of `togl.v1`; the `.proto` files are their documentation.
#[allow(
    unused_qualifications,
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::too_many_lines,
    reason = "generated code; documented in proto/togl/v1/*.proto"
)]
pub mod wire {
    tonic::include_proto!("togl.v1");
}

/// The encoded descriptors of all services, for gRPC reflection.
pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));

/// The largest message that either side accepts, in bytes.
pub const LARGEST_MESSAGE: usize = 16 << 20;
