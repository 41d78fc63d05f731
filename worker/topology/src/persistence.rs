//! Dimension 0 and 1 persistence of a whole batch, one (filtration, graph) pair after the other: workers train several
//! folds at once, so threads within one batch would only get into each other's way.
//! Owns the layout of values and results and the check of values; the inner loop lives in `pair`.
//! Returns vertex indices only: the caller gathers values, so gradients flow through the gather.

use std::cell::RefCell;

use crate::{
    EdgeLists, TopologyError,
    pair::{Pair, Workspace},
};

thread_local! {
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

/// Result slices that the caller owns, for example the memory of freshly made `i64` tensors.
///
/// All entries are indices into a row of N + 1 filtration values: the N vertices of the batch and a constant 0
/// in column N, which stands for "no pair".
#[derive(Debug)]
pub struct Indices<'a> {
    /// `[k, N]`: the vertex whose value is the death of this vertex's component (the birth is the vertex itself).
    pub vertex_death: &'a mut [i64],
    /// `[k, E]`: the vertex whose value is the birth of the cycle this edge closes; N for a tree edge.
    pub edge_birth: &'a mut [i64],
    /// `[k, E]`: the vertex whose value is that cycle's death, the graph's maximum edge value; N for a tree edge.
    pub edge_death: &'a mut [i64],
}

impl Indices<'_> {
    /// Splits off the first entries of each table.
    fn split(self, vertices: usize, edges: usize) -> (Self, Self) {
        let (vertex_death, vertex_rest) = self.vertex_death.split_at_mut(vertices);
        let (edge_birth, birth_rest) = self.edge_birth.split_at_mut(edges);
        let (edge_death, death_rest) = self.edge_death.split_at_mut(edges);
        (
            Indices { vertex_death, edge_birth, edge_death },
            Indices { vertex_death: vertex_rest, edge_birth: birth_rest, edge_death: death_rest },
        )
    }
}

/// Result tables that own and reuse their memory; rows as in [`Indices`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexTables {
    vertex_death: Vec<i64>,
    edge_birth: Vec<i64>,
    edge_death: Vec<i64>,
}

impl IndexTables {
    /// Computes into these tables, growing them only if the batch is larger than any before.
    ///
    /// # Errors
    /// As [`persist`].
    pub fn compute(
        &mut self,
        batch: &EdgeLists,
        values: &[f32],
        filtrations: usize,
    ) -> Result<(), TopologyError> {
        check_values(batch, values, filtrations)?;
        self.vertex_death.resize(filtrations * batch.vertices(), 0);
        self.edge_birth.resize(filtrations * batch.edge_count(), 0);
        self.edge_death.resize(filtrations * batch.edge_count(), 0);
        PairsOfBatch { batch, values, filtrations }.run(self.as_indices());
        Ok(())
    }

    /// `[k, N]` death index of every vertex.
    pub fn vertex_death(&self) -> &[i64] {
        &self.vertex_death
    }

    /// `[k, E]` birth index of every edge, N for a tree edge.
    pub fn edge_birth(&self) -> &[i64] {
        &self.edge_birth
    }

    /// `[k, E]` death index of every edge, N for a tree edge.
    pub fn edge_death(&self) -> &[i64] {
        &self.edge_death
    }

    fn as_indices(&mut self) -> Indices<'_> {
        Indices {
            vertex_death: &mut self.vertex_death,
            edge_birth: &mut self.edge_birth,
            edge_death: &mut self.edge_death,
        }
    }
}

/// Persistence of every (filtration, graph) pair of a batch, written to slices of the caller.
///
/// `values` is `[k, N]`, one row a filtration. Every vertex is born at its own value; an edge appears at the larger
/// value of its ends; ties follow the edge list. The last component of a graph dies at the graph's maximum edge
/// value; in a graph without edges every vertex dies at its birth. Every entry of `out` is written.
///
/// # Errors
/// A slice of the wrong length, or the first value that is NaN or infinite; `out` is then untouched.
pub fn persist(
    batch: &EdgeLists,
    values: &[f32],
    filtrations: usize,
    out: Indices<'_>,
) -> Result<(), TopologyError> {
    check_values(batch, values, filtrations)?;
    let edges = table_length("edge table", filtrations, batch.edge_count())?;
    check_length("vertex_death", values.len(), out.vertex_death.len())?;
    check_length("edge_birth", edges, out.edge_birth.len())?;
    check_length("edge_death", edges, out.edge_death.len())?;
    PairsOfBatch { batch, values, filtrations }.run(out);
    Ok(())
}

/// The validated work of one call. Pair `p` is graph `p % graphs` under filtration `p / graphs`, so consecutive
/// pairs own consecutive pieces of every result table and the tables can be split safely.
#[derive(Clone, Copy)]
struct PairsOfBatch<'a> {
    batch: &'a EdgeLists,
    values: &'a [f32],
    filtrations: usize,
}

impl PairsOfBatch<'_> {
    fn run(self, mut out: Indices<'_>) {
        if self.values.is_empty() {
            return; // there may be no end of filtrations of nothing
        }
        WORKSPACE.with_borrow_mut(|workspace| {
            for index in 0..self.filtrations * self.batch.graphs() {
                let pair = self.pair(index);
                let (own, rest) = out.split(pair.values.len(), pair.edges.len());
                workspace.persist(pair, own);
                out = rest;
            }
        });
    }

    fn pair(&self, index: usize) -> Pair<'_> {
        let (row, graph) = (index / self.batch.graphs(), index % self.batch.graphs());
        let (start, end) = (self.batch.node_offsets()[graph], self.batch.node_offsets()[graph + 1]);
        let row_start = row * self.batch.vertices();
        Pair {
            values: &self.values[row_start + start..row_start + end],
            edges: self.batch.edges(graph),
            first_vertex: start as i64,
            none: self.batch.vertices() as i64,
        }
    }
}

fn check_values(batch: &EdgeLists, values: &[f32], filtrations: usize) -> Result<(), TopologyError> {
    check_length("values", table_length("values", filtrations, batch.vertices())?, values.len())?;
    table_length("edge table", filtrations, batch.edge_count())?;
    // Looking at all values without a way out is a vector loop, much faster than searching for the first bad one.
    if values.iter().fold(true, |finite, value| finite & value.is_finite()) {
        return Ok(());
    }
    let Some(position) = values.iter().position(|value| !value.is_finite()) else { return Ok(()) };
    let (filtration, vertex) = (position / batch.vertices(), position % batch.vertices());
    let graph = batch.node_offsets().partition_point(|&start| start <= vertex) - 1;
    Err(TopologyError::NotFinite {
        graph,
        vertex: vertex - batch.node_offsets()[graph],
        filtration,
        value: f64::from(values[position]),
    })
}

fn table_length(what: &'static str, rows: usize, columns: usize) -> Result<usize, TopologyError> {
    rows.checked_mul(columns).ok_or(TopologyError::Length { what, expected: usize::MAX, actual: columns })
}

fn check_length(what: &'static str, expected: usize, actual: usize) -> Result<(), TopologyError> {
    if expected == actual { Ok(()) } else { Err(TopologyError::Length { what, expected, actual }) }
}
