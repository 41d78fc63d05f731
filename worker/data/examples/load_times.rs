//! How long data sets take to load, the first time and from their copies: `cargo run -p togl-data --example
//! load_times -- DATA_DIR CACHE_DIR NAME...`. The figures of docs/benchmarks.md come from here.

#![expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use togl_data::{OpenOptions, open_observed};

/// Loads from the copy; the fastest is shown.
const TIMES: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut folder = |what| arguments.next().map(PathBuf::from).ok_or(format!("no {what} folder given"));
    let (data_dir, cache_dir) = (Some(folder("data")?), Some(folder("cache")?));
    let options = OpenOptions { data_dir, cache_dir, ..OpenOptions::default() };
    for name in arguments {
        let (first, outcome) = load(&name, &options)?;
        println!("{name}: {first:.1} ms ({outcome})");
        let mut again = Vec::new();
        for _ in 0..TIMES {
            again.push(load(&name, &options)?);
        }
        again.sort_by(|a, b| a.0.total_cmp(&b.0));
        println!("{name}: {:.1} ms ({})", again[0].0, again[0].1);
    }
    Ok(())
}

/// Milliseconds, and what the cache did.
fn load(name: &str, options: &OpenOptions) -> Result<(f64, String), Box<dyn Error>> {
    let start = Instant::now();
    let opened = open_observed(name, options, &|_| ())?;
    let spent = start.elapsed().as_secs_f64() * 1e3;
    Ok((spent, format!("{} graphs, {:?}", opened.dataset.graph_count(), opened.cache)))
}
