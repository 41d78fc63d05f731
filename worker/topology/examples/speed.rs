//! Prints microseconds per (graph, filtration) on one thread for two typical sizes, or for the size given as
//! `VERTICES EDGES`. Only this example and the worker's `bench` command bring a clock to the crate.
#![expect(clippy::print_stdout, reason = "the figures are the output of this example")]

use std::time::Instant;

use togl_topology::{RandomGraphs, measure};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<usize> = std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let sizes = match arguments[..] {
        [vertices, edges] => vec![(vertices, edges)],
        _ => vec![(33, 62), (284, 716)],
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "the example is where the clock of a measurement comes from"
    )]
    let epoch = Instant::now();
    for (vertices, edges) in sizes {
        let graphs = (1 << 13) / (vertices + edges).max(1) + 1;
        let workload = RandomGraphs { vertices, edges, filtrations: 8, graphs, repeats: 201 };
        let timing = measure(workload, || epoch.elapsed())?;
        println!(
            "{vertices} vertices, {edges} edges: median {:.3} us, min {:.3} us per (graph, filtration)",
            timing.median, timing.min
        );
    }
    Ok(())
}
