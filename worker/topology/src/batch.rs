//! The structure of a batch of graphs: vertex counts and ordered undirected edge lists, checked once.
//! Owns the promise that every stored edge is (u, w) with u <= w < vertices, graph-local, in list order
//! (list order breaks ties). Must not know any filtration value.

use crate::TopologyError;

/// A batch of graphs, validated once and kept by the caller as long as the graphs do not change.
///
/// Vertices of the whole batch are numbered through: graph `g` owns `node_offsets()[g]..node_offsets()[g + 1]`,
/// and likewise its undirected edges. Edges are stored graph-locally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    node_offsets: Vec<usize>,
    edge_offsets: Vec<usize>,
    edges: Vec<[u32; 2]>,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// A batch without graphs, to be filled with [`Batch::push`].
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

    /// A batch from offset tables and **batch-wide** undirected edges (u, w), u <= w.
    ///
    /// # Errors
    /// Malformed offsets, or an edge that is reversed or leaves the vertex range of its graph.
    pub fn from_offsets(
        node_offsets: &[usize],
        edge_offsets: &[usize],
        edges: &[[u32; 2]],
    ) -> Result<Self, TopologyError> {
        check_offsets("node", node_offsets, None)?;
        check_offsets("edge", edge_offsets, Some(edges.len()))?;
        if edge_offsets.len() != node_offsets.len() {
            return Err(TopologyError::Length {
                what: "edge offsets",
                expected: node_offsets.len(),
                actual: edge_offsets.len(),
            });
        }
        let mut batch = Self::new();
        for (graph, (nodes, list)) in node_offsets.windows(2).zip(edge_offsets.windows(2)).enumerate() {
            let (start, vertices) = (nodes[0], nodes[1] - nodes[0]);
            check_size(graph, vertices, list[1] - list[0])?;
            for (edge, &[u, w]) in edges[list[0]..list[1]].iter().enumerate() {
                let first = localise(graph, edge, i64::from(u), start, vertices)?;
                let second = localise(graph, edge, i64::from(w), start, vertices)?;
                check_edge(graph, edge, [first, second], vertices)?;
                batch.edges.push([first, second]);
            }
            batch.close_graph(vertices);
        }
        Ok(batch)
    }

    /// A batch from a **directed**, batch-wide edge list as graph networks use it: keeps exactly the entries with
    /// source <= target, in their order. Entries must be grouped by graph.
    ///
    /// A one-way edge with source > target has no persistence, as in the published method.
    ///
    /// # Errors
    /// Malformed offsets, lists of unequal length, an entry that leaves its graph or is out of graph order.
    pub fn from_directed(
        node_offsets: &[usize],
        sources: &[i64],
        targets: &[i64],
    ) -> Result<Self, TopologyError> {
        check_offsets("node", node_offsets, None)?;
        if sources.len() != targets.len() {
            return Err(TopologyError::Length {
                what: "targets",
                expected: sources.len(),
                actual: targets.len(),
            });
        }
        let mut batch = Self::new();
        let mut position = 0;
        for (graph, nodes) in node_offsets.windows(2).enumerate() {
            let (start, end) = (nodes[0], nodes[1]);
            let first = position;
            while position < sources.len() && below(sources[position], end) {
                let source = grouped(graph, position, sources[position], start)?;
                let source = localise(graph, position - first, source, start, end - start)?;
                let target = localise(graph, position - first, targets[position], start, end - start)?;
                if source <= target {
                    batch.edges.push([source, target]);
                }
                position += 1;
            }
            check_size(graph, end - start, position - first)?;
            batch.close_graph(end - start);
        }
        match sources.get(position) {
            None => Ok(batch),
            Some(&vertex) => Err(TopologyError::VertexOutOfRange {
                graph: batch.graphs().saturating_sub(1),
                edge: position,
                vertex,
                vertices: batch.vertices(),
            }),
        }
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

fn below(vertex: i64, end: usize) -> bool {
    usize::try_from(vertex).map_or(true, |v| v < end)
}

/// Refuses a source that belongs to an earlier graph; a negative one is left to [`localise`].
fn grouped(graph: usize, edge: usize, source: i64, start: usize) -> Result<i64, TopologyError> {
    if source >= 0 && (source as u64) < start as u64 {
        return Err(TopologyError::EdgesNotGrouped { edge, graph: graph.saturating_sub(1) });
    }
    Ok(source)
}

fn localise(
    graph: usize,
    edge: usize,
    vertex: i64,
    start: usize,
    vertices: usize,
) -> Result<u32, TopologyError> {
    usize::try_from(vertex)
        .ok()
        .and_then(|v| v.checked_sub(start))
        .filter(|&v| v < vertices)
        .and_then(|v| u32::try_from(v).ok())
        .ok_or(TopologyError::VertexOutOfRange { graph, edge, vertex, vertices })
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

fn check_offsets(table: &'static str, offsets: &[usize], end: Option<usize>) -> Result<(), TopologyError> {
    let problem = |position, problem| Err(TopologyError::Offsets { table, position, problem });
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
        return problem(0, "the table is empty");
    };
    if first != 0 {
        return problem(0, "the first offset is not 0");
    }
    if let Some(position) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
        return problem(position + 1, "the offset is smaller than the one before");
    }
    if end.is_some_and(|end| end != last) {
        return problem(offsets.len() - 1, "the last offset is not the number of entries");
    }
    Ok(())
}
