//! The structure of a batch of graphs: vertex counts and ordered undirected edge lists, checked once.
//! Owns the promise that every stored edge is (u, w) with u <= w < vertices, graph-local, in list order
//! (list order breaks ties). Must not know any filtration value.

use crate::TopologyError;

/// A batch of graphs, validated once and kept by the caller as long as the graphs do not change.
///
/// Vertices of the whole batch are numbered through: graph `g` owns `node_offsets()[g]..node_offsets()[g + 1]`,
/// and likewise its undirected edges. Edges are stored graph-locally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EdgeLists {
    node_offsets: Vec<usize>,
    edge_offsets: Vec<usize>,
    edges: Vec<[u32; 2]>,
}

impl Default for EdgeLists {
    fn default() -> Self {
        Self::new()
    }
}

impl EdgeLists {
    /// A batch without graphs, to be filled with [`EdgeLists::push`].
    pub fn new() -> Self {
        Self { node_offsets: vec![0], edge_offsets: vec![0], edges: Vec::new() }
    }

    /// Forgets all graphs and keeps the memory.
    pub fn clear(&mut self) {
        self.node_offsets.truncate(1);
        self.edge_offsets.truncate(1);
        self.edges.clear();
    }

    /// Appends a graph given by its vertex count and its **graph-local** undirected edges (u, w), u <= w.
    ///
    /// Self-loops and duplicates are allowed; each closes a cycle of its own.
    ///
    /// # Errors
    /// The edge that is out of range or reversed; the batch is then unchanged.
    pub fn push(&mut self, vertices: usize, edges: &[[u32; 2]]) -> Result<(), TopologyError> {
        let graph = self.graphs();
        check_size(graph, vertices, edges.len())?;
        for (edge, &[first, second]) in edges.iter().enumerate() {
            check_edge(graph, edge, [first, second], vertices)?;
        }
        self.edges.extend_from_slice(edges);
        self.close_graph(vertices);
        Ok(())
    }

    /// Number of graphs.
    pub fn graphs(&self) -> usize {
        self.node_offsets.len() - 1
    }

    /// Number of vertices of all graphs together: N. Also the index that stands for "no pair" in dimension 1.
    pub fn vertices(&self) -> usize {
        self.node_offsets[self.graphs()]
    }

    /// Number of undirected edges of all graphs together: E.
    pub fn edge_count(&self) -> usize {
        self.edges.len()
    }

    /// First vertex of each graph, and N at the end.
    pub fn node_offsets(&self) -> &[usize] {
        &self.node_offsets
    }

    /// First undirected edge of each graph, and E at the end.
    pub fn edge_offsets(&self) -> &[usize] {
        &self.edge_offsets
    }

    /// The undirected edges of graph `graph`, graph-local, in list order; empty if there is no such graph.
    pub fn edges(&self, graph: usize) -> &[[u32; 2]] {
        match (self.edge_offsets.get(graph), self.edge_offsets.get(graph + 1)) {
            (Some(&start), Some(&end)) => &self.edges[start..end],
            _ => &[],
        }
    }

    /// All undirected edges with batch-wide endpoints, in the order of the dimension-1 columns.
    pub fn global_edges(&self) -> impl Iterator<Item = [i64; 2]> + '_ {
        (0..self.graphs()).flat_map(|graph| {
            let start = self.node_offsets[graph] as i64;
            self.edges(graph).iter().map(move |&[u, w]| [start + i64::from(u), start + i64::from(w)])
        })
    }

    fn close_graph(&mut self, vertices: usize) {
        self.node_offsets.push(self.vertices() + vertices);
        self.edge_offsets.push(self.edges.len());
    }
}

fn check_edge(
    graph: usize,
    edge: usize,
    [first, second]: [u32; 2],
    vertices: usize,
) -> Result<(), TopologyError> {
    for vertex in [first, second] {
        if vertex as usize >= vertices {
            return Err(TopologyError::VertexOutOfRange { graph, edge, vertex: vertex.into(), vertices });
        }
    }
    if first > second {
        return Err(TopologyError::EdgeReversed { graph, edge, first, second });
    }
    Ok(())
}

fn check_size(graph: usize, vertices: usize, edges: usize) -> Result<(), TopologyError> {
    if vertices.max(edges) >= u32::MAX as usize {
        return Err(TopologyError::GraphTooLarge { graph });
    }
    Ok(())
}
