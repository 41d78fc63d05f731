//! Measures the batch routine on random graphs of a given size, on one thread.
//! Owns the workload and its tiny deterministic generator; the clock is an argument, because this crate
//! must not read one. Called by the worker's `bench` command and by the example of this crate.

use std::time::Duration;

use crate::{EdgeLists, IndexTables, TopologyError};

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomGraphs {
    /// Vertices of every graph.
    pub vertices: usize,
    /// Undirected edges of every graph: a random spanning tree first, then random pairs.
    pub edges: usize,
    /// Filtrations of every graph.
    pub filtrations: usize,
    /// Graphs in the batch.
    pub graphs: usize,
    /// How often the whole batch is computed and timed, after one run to warm up.
    pub repeats: usize,
}

/// Microseconds for one graph under one filtration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    /// Median over the repeats.
    pub median: f64,
    /// Fastest repeat.
    pub min: f64,
}

/// Times `workload` on the calling thread; `clock` returns the time since any fixed moment.
///
/// # Errors
/// Never for a workload with at least one vertex per edge-carrying graph; reports what the batch reports.
pub fn measure(workload: RandomGraphs, mut clock: impl FnMut() -> Duration) -> Result<Timing, TopologyError> {
    let (batch, values) = workload.random()?;
    let pairs = (workload.graphs * workload.filtrations).max(1) as f64;
    let mut tables = IndexTables::default();
    tables.compute(&batch, &values, workload.filtrations)?;
    let mut times = Vec::with_capacity(workload.repeats.max(1));
    for _ in 0..workload.repeats.max(1) {
        let start = clock();
        tables.compute(&batch, &values, workload.filtrations)?;
        let elapsed = clock().saturating_sub(start);
        std::hint::black_box(&tables);
        times.push(elapsed.as_secs_f64() * 1e6 / pairs);
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(Timing { median: times[times.len() / 2], min: times[0] })
}

impl RandomGraphs {
    /// The batch and the `[k, N]` values of this workload; the same on every machine.
    ///
    /// # Errors
    /// If edges are asked for in graphs without vertices.
    pub fn random(self) -> Result<(EdgeLists, Vec<f32>), TopologyError> {
        let mut random = SplitMix(0x746f_676c);
        let mut batch = EdgeLists::new();
        let mut edges = Vec::with_capacity(self.edges);
        for _ in 0..self.graphs {
            edges.clear();
            edges.extend((0..self.edges).map(|edge| random.edge(edge + 1, self.vertices)));
            batch.push(self.vertices, &edges)?;
        }
        let count = self.filtrations * self.graphs * self.vertices;
        let values = (0..count).map(|_| random.unit()).collect();
        Ok((batch, values))
    }
}

/// The splitmix64 generator: enough for a workload, not for anything else.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> u32 {
        (self.next() % end.max(1) as u64) as u32
    }

    fn unit(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1 << 24) as f32 - 0.5
    }

    /// Links vertex `child` to an earlier one while there are vertices left, then any two vertices.
    fn edge(&mut self, child: usize, vertices: usize) -> [u32; 2] {
        if child < vertices {
            return [self.below(child), child as u32];
        }
        let (a, b) = (self.below(vertices), self.below(vertices));
        [a.min(b), a.max(b)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_the_only_source_of_time() {
        let workload = RandomGraphs { vertices: 5, edges: 7, filtrations: 2, graphs: 5, repeats: 3 };
        let mut ticks = 0;
        let timing = measure(workload, || {
            ticks += 1;
            Duration::from_micros(ticks * ticks)
        });
        // Ticks 1, 4, 9, 16, 25, 36: the repeats take 3, 7 and 11 microseconds for 10 pairs.
        assert_eq!(timing, Ok(Timing { median: 0.7, min: 0.3 }));
    }

    #[test]
    fn the_workload_is_the_same_every_time_and_has_the_asked_size() {
        let workload = RandomGraphs { vertices: 6, edges: 9, filtrations: 3, graphs: 2, repeats: 1 };
        let (batch, values) = workload.random().unwrap();
        assert_eq!((batch.vertices(), batch.edge_count(), values.len()), (12, 18, 36));
        assert_eq!(workload.random().unwrap(), (batch, values));
    }

    #[test]
    fn edges_without_vertices_are_refused() {
        let workload = RandomGraphs { vertices: 0, edges: 1, filtrations: 1, graphs: 1, repeats: 1 };
        assert!(workload.random().is_err());
    }
}
