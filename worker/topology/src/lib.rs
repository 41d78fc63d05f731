//! Persistent homology on graphs: plain slices in, vertex indices or numbers out.
//!
//! Two rooms: [`persist`] computes dimension 0 and 1 of whole batches with the published tie rules, as indices to
//! gather from (training); [`FlagComplex`] computes clique complexes in any dimension (expressivity studies).
//! Nothing here reads a clock, a file or the network, and nothing knows tensors.
//!
//! ```
//! use togl_topology::{EdgeLists, IndexTables};
//!
//! let mut batch = EdgeLists::new();
//! batch.push(3, &[[0, 1], [1, 2], [0, 2]])?; // a triangle
//! let values = [-3.0, -1.0, -2.0]; // one filtration, [k, N] = [1, 3]
//! let mut tables = IndexTables::default();
//! tables.compute(&batch, &values, 1)?;
//! assert_eq!(tables.vertex_death(), [1, 1, 2]); // values -1, -1, -2
//! assert_eq!(tables.edge_birth(), [3, 1, 3]); // edge (1, 2) closes the cycle; 3 = N is "no pair"
//! assert_eq!(tables.edge_death(), [3, 1, 3]);
//! # Ok::<(), togl_topology::TopologyError>(())
//! ```

mod batch;
mod clique;
mod error;
mod homology;
mod measure;
mod pair;
mod persistence;
mod rank;
mod reduction;

pub use batch::EdgeLists;
pub use clique::{FlagComplex, MAX_SIMPLICES};
pub use error::TopologyError;
pub use homology::Diagram;
pub use measure::{RandomGraphs, Timing, measure};
pub use persistence::{IndexTables, Indices, persist};
