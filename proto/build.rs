//! Compiles the `.proto` files without protoc and leaves the descriptor set for gRPC reflection.

use std::path::PathBuf;
use std::{env, fs};

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = ["fold", "checkpoints", "workers", "sweeps"].map(|name| format!("togl/v1/{name}.proto"));
    for file in &files {
        println!("cargo:rerun-if-changed={file}");
    }
    let descriptors = protox::compile(files, ["."])?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    // The comments of the .proto files are prose, not Rust documentation.
    tonic_prost_build::configure().compile_fds(descriptors)?;
    Ok(())
}
