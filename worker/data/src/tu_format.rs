//! The text format of the TU collection: `NAME_A.txt`, `NAME_graph_indicator.txt`,
//! `NAME_graph_labels.txt` and the optional node files, read line by line into the arrays of a data set.
//! It owns what the lines mean; the order of edges belongs to `edge_order`; names, places and splits are
//! not its business.

use crate::edge_order::Topology;
use crate::error::Error;
use crate::features::{FeatureChoice, FeatureMatrix};
use crate::files::FileSet;

/// The files of one data set and its name, which is part of every file name.
pub(crate) struct TuFiles<'a> {
    pub(crate) name: &'a str,
    pub(crate) files: FileSet,
}

/// Which graph each node belongs to, and where each graph's nodes begin.
struct Membership {
    graph_of_node: Vec<u32>,
    node_offsets: Vec<usize>,
}

impl TuFiles<'_> {
    /// Reads nodes and edges.
    pub(crate) fn topology(&mut self) -> Result<Topology, Error> {
        let membership = self.membership()?;
        let edges = self.edges(&membership)?;
        Ok(Topology::arrange(edges, membership.node_offsets))
    }

    /// Class of each graph, from 0 in the order of the labels in the file, and the number of classes.
    pub(crate) fn classes(&mut self, graphs: usize) -> Result<(Vec<u32>, u32), Error> {
        let file_name = self.file_name("graph_labels");
        let labels = self.files.required_lines(self.name, &file_name)?.integers(graphs, "graphs")?;
        let mut distinct = labels.clone();
        distinct.sort_unstable();
        distinct.dedup();
        // Every label is among the distinct ones, so the search always finds it.
        let class = |label: &i64| distinct.partition_point(|known| known < label) as u32;
        Ok((labels.iter().map(class).collect(), distinct.len() as u32))
    }

    /// The chosen features of all nodes.
    pub(crate) fn features(
        &mut self,
        choice: FeatureChoice,
        topology: &Topology,
    ) -> Result<FeatureMatrix, Error> {
        let nodes = topology.node_count();
        match choice {
            FeatureChoice::AsPublished => {
                if let Some(attributes) = self.attributes(nodes)? {
                    return Ok(attributes);
                }
                Ok(self.node_labels(nodes)?.unwrap_or_else(|| FeatureMatrix::constant(nodes)))
            }
            FeatureChoice::Attributes => self
                .attributes(nodes)?
                .ok_or_else(|| self.unusable("attributes", "it has no node attributes")),
            FeatureChoice::NodeLabels => {
                self.node_labels(nodes)?.ok_or_else(|| self.unusable("node-labels", "it has no node labels"))
            }
            FeatureChoice::DegreeOneHot { largest } => {
                FeatureMatrix::degree_one_hot(&topology.degrees(), largest)
                    .map_err(|count| self.too_wide(count))
            }
            FeatureChoice::DegreeNormalised => Ok(FeatureMatrix::degree_normalised(&topology.degrees())),
            FeatureChoice::Constant => Ok(FeatureMatrix::constant(nodes)),
            FeatureChoice::Colour => Err(self.unusable("colour", "its nodes are not parts of an image")),
        }
    }

    fn file_name(&self, part: &str) -> String {
        format!("{}_{part}.txt", self.name)
    }

    fn membership(&mut self) -> Result<Membership, Error> {
        let file_name = self.file_name("graph_indicator");
        let mut lines = self.files.required_lines(self.name, &file_name)?;
        let mut graph_of_node: Vec<u32> = Vec::new();
        let mut node_offsets = Vec::new();
        while lines.advance()? {
            let graph = lines.integer()?;
            let begun = node_offsets.len() as i64;
            if graph == begun + 1 {
                node_offsets.push(graph_of_node.len());
            } else if graph != begun || begun == 0 {
                let problem = format!(
                    "expected graph {}, found {graph}; graphs count from 1 and keep their nodes together",
                    if begun == 0 { "1".to_string() } else { format!("{begun} or {}", begun + 1) }
                );
                return Err(lines.malformed(problem));
            }
            if graph_of_node.len() >= u32::MAX as usize {
                return Err(lines.malformed("more nodes than 32 bits can number".to_string()));
            }
            graph_of_node.push(node_offsets.len() as u32 - 1);
        }
        node_offsets.push(graph_of_node.len());
        Ok(Membership { graph_of_node, node_offsets })
    }

    /// Unordered pairs of nodes, counted over all graphs, the smaller one first.
    fn edges(&mut self, membership: &Membership) -> Result<Vec<(u32, u32)>, Error> {
        let file_name = self.file_name("A");
        let mut lines = self.files.required_lines(self.name, &file_name)?;
        let nodes = membership.graph_of_node.len();
        let mut edges = Vec::new();
        while lines.advance()? {
            let (first, second) = lines.integer_pair()?;
            for node in [first, second] {
                if node < 1 || node as u64 > nodes as u64 {
                    let problem = format!("the edge names node {node}, but the nodes are 1 to {nodes}");
                    return Err(lines.malformed(problem));
                }
            }
            let (low, high) = (first.min(second) as u32 - 1, first.max(second) as u32 - 1);
            let graph = |node: u32| membership.graph_of_node[node as usize];
            if graph(low) != graph(high) {
                let (left, right) = (graph(low) + 1, graph(high) + 1);
                return Err(lines.malformed(format!("the edge joins graph {left} and graph {right}")));
            }
            // Most files list both directions next to each other; this spares half of the memory.
            if edges.last() != Some(&(low, high)) {
                edges.push((low, high));
            }
        }
        Ok(edges)
    }

    fn attributes(&mut self, nodes: usize) -> Result<Option<FeatureMatrix>, Error> {
        let file_name = self.file_name("node_attributes");
        let Some(lines) = self.files.lines(&file_name)? else { return Ok(None) };
        let (width, values) = lines.rows(nodes, "nodes")?;
        Ok(Some(FeatureMatrix { width, values }))
    }

    fn node_labels(&mut self, nodes: usize) -> Result<Option<FeatureMatrix>, Error> {
        let file_name = self.file_name("node_labels");
        let Some(lines) = self.files.lines(&file_name)? else { return Ok(None) };
        let labels = lines.integers(nodes, "nodes")?;
        let (Some(least), Some(most)) = (labels.iter().min().copied(), labels.iter().max().copied()) else {
            return Ok(None);
        };
        let width = most.abs_diff(least).saturating_add(1);
        let too_wide = |files: &Self| files.too_wide((nodes as u64).saturating_mul(width) as usize);
        if width > u64::from(u32::MAX) {
            return Err(too_wide(self));
        }
        let columns: Vec<u32> = labels.iter().map(|label| label.abs_diff(least) as u32).collect();
        FeatureMatrix::one_hot(&columns, width as usize).map(Some).map_err(|_| too_wide(self))
    }

    fn unusable(&self, value: &str, reason: &str) -> Error {
        Error::bad_option(self.name, "features", value, reason)
    }

    fn too_wide(&self, values: usize) -> Error {
        self.unusable("one-hot", &format!("{values} values would not fit into memory; choose other features"))
    }
}
