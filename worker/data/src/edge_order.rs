//! The canonical edge order of data that is read from files: every edge once as (smaller, larger),
//! ascending, then all of them reversed, whatever order, direction or repetition the files have. Which
//! edge carries a cycle depends on list order, so there must be one order per data set.

/// The graphs of a data set, without labels and features.
pub(crate) struct Topology {
    pub(crate) node_offsets: Vec<usize>,
    pub(crate) edge_offsets: Vec<usize>,
    pub(crate) sources: Vec<u32>,
    pub(crate) targets: Vec<u32>,
}

impl Topology {
    /// Takes pairs of nodes of the same graph, counted over all graphs, the smaller one first.
    pub(crate) fn arrange(mut edges: Vec<(u32, u32)>, node_offsets: Vec<usize>) -> Topology {
        edges.sort_unstable();
        edges.dedup();
        let loops = edges.iter().filter(|(low, high)| low == high).count();
        let directed = 2 * edges.len() - loops;
        let mut sources = Vec::with_capacity(directed);
        let mut targets = Vec::with_capacity(directed);
        let mut edge_offsets = vec![0];
        let mut rest = edges.as_slice();
        for ends in node_offsets.windows(2) {
            let (own, others) = rest.split_at(rest.partition_point(|(low, _)| (*low as usize) < ends[1]));
            rest = others;
            let first = ends[0] as u32;
            let forward = own.iter().map(|(low, high)| (low - first, high - first));
            let reversed = forward.clone().filter(|(low, high)| low != high).map(|(low, high)| (high, low));
            for (source, target) in forward.chain(reversed) {
                sources.push(source);
                targets.push(target);
            }
            edge_offsets.push(sources.len());
        }
        Topology { node_offsets, edge_offsets, sources, targets }
    }

    /// Nodes of all graphs.
    pub(crate) fn node_count(&self) -> usize {
        self.node_offsets.last().copied().unwrap_or(0)
    }

    /// Outgoing edges of each node, counted over all graphs.
    pub(crate) fn degrees(&self) -> Vec<u32> {
        let mut degrees = vec![0; self.node_count()];
        for (nodes, edges) in self.node_offsets.windows(2).zip(self.edge_offsets.windows(2)) {
            for source in &self.sources[edges[0]..edges[1]] {
                degrees[nodes[0] + *source as usize] += 1;
            }
        }
        degrees
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_sorted_freed_of_repetition_and_counted_within_their_graph() {
        let edges = vec![(3, 4), (1, 2), (0, 2), (1, 2), (3, 3)];
        let topology = Topology::arrange(edges, vec![0, 3, 5, 6]);
        assert_eq!(topology.edge_offsets, [0, 4, 7, 7]);
        assert_eq!(topology.sources, [0, 1, 2, 2, 0, 0, 1]);
        assert_eq!(topology.targets, [2, 2, 0, 1, 0, 1, 0]);
        assert_eq!(topology.degrees(), [1, 1, 2, 2, 1, 0]);
    }
}
