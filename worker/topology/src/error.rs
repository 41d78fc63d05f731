//! What can be wrong with the input of this crate, in words a caller can act on.
//! Every public function reports bad input through this type; none panics on it.
//! Positions are graph-local unless the field says otherwise, counted from 0.

use thiserror::Error;

/// Why a batch, a filtration or a complex was refused.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// A filtration value is NaN or infinite, so it has no place in the order.
    #[error(
        "filtration {filtration}: value of vertex {vertex} of graph {graph} is {value}, not a finite number"
    )]
    NotFinite {
        /// Graph in the batch (0 for a single complex).
        graph: usize,
        /// Vertex inside that graph.
        vertex: usize,
        /// Row of the value table (0 for a single complex).
        filtration: usize,
        /// The offending value.
        value: f64,
    },
    /// An edge names a vertex that its graph does not have.
    #[error(
        "edge {edge} of graph {graph} names vertex {vertex}, outside the {vertices} vertices of that graph"
    )]
    VertexOutOfRange {
        /// Graph in the batch (0 for a single complex).
        graph: usize,
        /// Edge inside that graph.
        edge: usize,
        /// The vertex as the caller wrote it (batch-wide where the input is batch-wide).
        vertex: i64,
        /// How many vertices the graph has.
        vertices: usize,
    },
    /// An undirected edge is not written as (u, w) with u <= w.
    #[error("edge {edge} of graph {graph} is ({first}, {second}); the smaller vertex must come first")]
    EdgeReversed {
        /// Graph in the batch.
        graph: usize,
        /// Edge inside that graph.
        edge: usize,
        /// First endpoint, graph-local.
        first: u32,
        /// Second endpoint, graph-local.
        second: u32,
    },
    /// A slice has the wrong length.
    #[error("{what} has length {actual}, expected {expected}")]
    Length {
        /// Which slice.
        what: &'static str,
        /// Length that fits the batch.
        expected: usize,
        /// Length that was given.
        actual: usize,
    },
    /// A graph has more vertices or edges than a 32-bit index can number.
    #[error("graph {graph} has more than {} vertices or edges", u32::MAX - 1)]
    GraphTooLarge {
        /// Graph in the batch (0 for a single complex).
        graph: usize,
    },
    /// The clique complex outgrew the limit, so it was not built.
    #[error("the clique complex has more than {limit} simplices; ask for a lower dimension")]
    TooManySimplices {
        /// The limit that was crossed.
        limit: usize,
    },
}
