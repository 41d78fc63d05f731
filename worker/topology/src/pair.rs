//! Persistence of one graph under one filtration: the inner loop that training waits for.
//! Owns the tie rules (stable edge order; on equal values the root of the first endpoint dies) and the scratch
//! memory, which grows with the largest graph seen and is then reused. Input was validated by the callers.
//!
//! An edge's value is the value of its upper end, so edges are sorted by small integers (ranks) in linear time.
//! Then components merge along the sorted edges. Selections are written without branches, because "tree or
//! cycle" is a coin toss that a branch predictor loses. Sums are bounded by the validated sizes and written as
//! wrapping, which keeps overflow checks of the development profile out of the loop.

use std::hint::select_unpredictable;

use crate::{
    Indices,
    rank::{RankScratch, Ties, rank_vertices, running_starts},
};

/// Scratch memory of one thread.
#[derive(Debug, Default)]
pub(crate) struct Workspace {
    scratch: RankScratch,
    rank: Vec<u32>,
    vertex_at: Vec<u32>,
    bucket: Vec<u32>,
    arrivals: Vec<Arrival>,
    sorted: Vec<Arrival>,
    nodes: Vec<Node>,
}

/// One graph under one filtration; `values` are the graph's own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub values: &'a [f32],
    pub edges: &'a [[u32; 2]],
    /// Batch-wide index of the graph's vertex 0.
    pub first_vertex: i64,
    /// Index that stands for "no pair".
    pub none: i64,
}

/// An edge as the sort sees it: ranks of its ends and its place among the edges of equal value.
#[derive(Debug, Clone, Copy, Default)]
struct Arrival {
    lower: u32,
    upper: u32,
    edge: u32,
    place: u32,
}

/// A union-find node: its parent (itself for a root) and what its component died of.
#[derive(Debug, Clone, Copy, Default)]
struct Node {
    parent: u32,
    death: u32,
}

impl Workspace {
    /// Writes the indices of `pair` to `out`, which has one entry a vertex and an edge of this graph.
    pub(crate) fn persist(&mut self, pair: Pair<'_>, out: Indices<'_>) {
        if pair.edges.is_empty() {
            for (death, vertex) in out.vertex_death.iter_mut().zip(pair.first_vertex..) {
                *death = vertex;
            }
            return;
        }
        let (vertices, edges) = (pair.values.len(), pair.edges.len());
        self.grow(vertices, edges);
        let rank = &mut self.rank[..vertices];
        let order = rank_vertices(pair.values, &mut self.scratch, rank);
        let sorted = &mut self.sorted[..edges];
        sort_edges(pair.edges, rank, &mut self.bucket[..vertices], &mut self.arrivals[..edges], sorted);
        // One node more than vertices: what must not be stored anywhere goes there.
        let nodes = &mut self.nodes[..vertices + 1];
        match order {
            Ties::Distinct => {
                let vertex_at = &mut self.vertex_at[..vertices];
                for (vertex, &rank) in rank.iter().enumerate() {
                    vertex_at[rank as usize] = vertex as u32;
                }
                merge_distinct(pair, sorted, vertex_at, nodes, out);
            }
            Ties::Tied => merge_tied(pair, sorted, rank, nodes, out),
        }
    }

    fn grow(&mut self, vertices: usize, edges: usize) {
        if self.rank.len() < vertices {
            self.rank.resize(vertices, 0);
            self.vertex_at.resize(vertices, 0);
            self.bucket.resize(vertices, 0);
            self.nodes.resize(vertices + 1, Node::default());
        }
        if self.sorted.len() < edges {
            self.arrivals.resize(edges, Arrival::default());
            self.sorted.resize(edges, Arrival::default());
        }
    }
}

/// Stable counting sort of the edges by the rank of their upper end.
#[inline]
fn sort_edges(
    edges: &[[u32; 2]],
    rank: &[u32],
    bucket: &mut [u32],
    arrivals: &mut [Arrival],
    sorted: &mut [Arrival],
) {
    bucket.fill(0);
    for (edge, (&[u, w], arrival)) in edges.iter().zip(arrivals.iter_mut()).enumerate() {
        let (a, b) = (rank[u as usize], rank[w as usize]);
        let (lower, upper) = (a.min(b), a.max(b));
        let count = &mut bucket[upper as usize];
        *arrival = Arrival { lower, upper, edge: edge as u32, place: *count };
        *count = count.wrapping_add(1);
    }
    running_starts(bucket);
    for arrival in arrivals {
        sorted[bucket[arrival.upper as usize].wrapping_add(arrival.place) as usize] = *arrival;
    }
}

/// Merges components when all values differ. Vertices are named by rank, so the younger root is the larger number,
/// and all edges with the same upper end are neighbours: the root of that end stays in a register.
fn merge_distinct(
    pair: Pair<'_>,
    sorted: &[Arrival],
    vertex_at: &[u32],
    nodes: &mut [Node],
    out: Indices<'_>,
) {
    let Some(&Arrival { upper: top, .. }) = sorted.last() else { return };
    reset(nodes, top);
    let nowhere = vertex_at.len();
    let global = |rank: u32| pair.first_vertex.wrapping_add(i64::from(vertex_at[rank as usize]));
    let maximum = global(top);
    let (mut previous, mut root) = (u32::MAX, 0);
    for &Arrival { lower, upper, edge, .. } in sorted {
        root = select_unpredictable(upper == previous, root, upper);
        previous = upper;
        let other = find(nodes, lower);
        let (survivor, dying) = (root.min(other), root.max(other));
        let cycle = survivor == dying;
        nodes[select_unpredictable(cycle, nowhere, dying as usize)] = Node { parent: survivor, death: upper };
        root = survivor;
        out.edge_birth[edge as usize] = select_unpredictable(cycle, global(upper), pair.none);
        out.edge_death[edge as usize] = select_unpredictable(cycle, maximum, pair.none);
    }
    for (&vertex, node) in vertex_at.iter().zip(nodes.iter()) {
        out.vertex_death[vertex as usize] = global(node.death);
    }
}

/// Merges components when some values are equal: the rules of the specification, one by one.
fn merge_tied(pair: Pair<'_>, sorted: &[Arrival], rank: &[u32], nodes: &mut [Node], out: Indices<'_>) {
    let upper_end = |edge: u32| {
        let [u, w] = pair.edges[edge as usize];
        select_unpredictable(rank[u as usize] < rank[w as usize], w, u)
    };
    let Some(top) = sorted.last().map(|last| upper_end(last.edge)) else { return };
    reset(nodes, top);
    let nowhere = rank.len();
    let global = |vertex: u32| pair.first_vertex.wrapping_add(i64::from(vertex));
    for &Arrival { edge, .. } in sorted {
        let [u, w] = pair.edges[edge as usize];
        let upper = upper_end(edge);
        let (a, b) = (find(nodes, u), find(nodes, w));
        let first_survives = rank[a as usize] < rank[b as usize];
        let dying = select_unpredictable(first_survives, b, a);
        let survivor = select_unpredictable(first_survives, a, b);
        let cycle = a == b;
        nodes[select_unpredictable(cycle, nowhere, dying as usize)] = Node { parent: survivor, death: upper };
        out.edge_birth[edge as usize] = select_unpredictable(cycle, global(upper), pair.none);
        out.edge_death[edge as usize] = select_unpredictable(cycle, global(top), pair.none);
    }
    for (death, node) in out.vertex_death.iter_mut().zip(nodes.iter()) {
        *death = global(node.death);
    }
}

/// Every vertex alone, to die at `death` unless something kills it earlier.
#[inline]
fn reset(nodes: &mut [Node], death: u32) {
    for (vertex, node) in nodes.iter_mut().enumerate() {
        *node = Node { parent: vertex as u32, death };
    }
}

/// The root of `vertex`, compressing the path on the way. A root and its children take the same way through the
/// code, which is nearly every call.
#[inline]
fn find(nodes: &mut [Node], mut vertex: u32) -> u32 {
    let mut root = nodes[vertex as usize].parent;
    loop {
        let above = nodes[root as usize].parent;
        if above == root {
            return root;
        }
        nodes[vertex as usize].parent = above;
        (vertex, root) = (root, above);
    }
}
