//! How long a million trials take to make, with how much memory: `cargo run --release -p togl-sweeps
//! --example enumerate`. A measurement for people; it asserts nothing.

#![expect(clippy::print_stdout, reason = "a measurement is printed")]
#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]

use std::time::Instant;

use togl_sweeps::SweepSpec;

const SWEEP: &str = "
version: 1
name: million
limits: {max_folds: 1000000}
base: {dataset: cycles, togl: true}
grid:
  hidden_dim: {from: 4, to: 103}
  lr: {from: 1e-4, to: 1e-1, count: 100}
  data_seed: {from: 0, to: 99}
";

fn memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("VmHWM: unknown");
    line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let start = Instant::now();
    let spec = SweepSpec::parse(SWEEP)?;
    println!("made:       {:?}, peak memory {}", start.elapsed(), memory());
    let start = Instant::now();
    let folds = spec.count_folds();
    println!("counted:    {:?}, {folds} folds", start.elapsed());
    let start = Instant::now();
    let mut mixed = [0u8; 16];
    for trial in &spec.trials {
        mixed.iter_mut().zip(trial.id.as_bytes()).for_each(|(sum, byte)| *sum ^= byte);
    }
    println!("distinct:   {:?}, {} trials, ids {mixed:02x?}", start.elapsed(), spec.trials.len());
    Ok(())
}
