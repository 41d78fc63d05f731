//! Reads files of reference vectors (safetensors): tensors by name, the JSON texts of the header, and the batch of graphs
//! that a model file holds. Believes nothing of a file before it was checked; must not compare anything.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde_json::Value;
use tch::{Kind, Tensor};
use togl_data::{Dataset, DatasetParts, SplitRule, Task};
use togl_sweeps::bounded;

use crate::error::{Result, TrainError};

/// A file of reference vectors.
#[derive(Debug)]
pub(crate) struct Reference {
    tensors: BTreeMap<String, Tensor>,
    texts: BTreeMap<String, String>,
}

pub(crate) fn bad(what: impl std::fmt::Display) -> TrainError {
    TrainError::Reference(what.to_string())
}

impl Reference {
    /// Reads a whole file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::File::open(path)
            .and_then(|file| bounded::bytes(file, bounded::TABLE))
            .map_err(|error| bad(format!("{}: {error}", path.display())))?;
        let (_, header) = SafeTensors::read_metadata(&bytes).map_err(bad)?;
        let texts = header.metadata().clone().unwrap_or_default().into_iter().collect();
        let file = SafeTensors::deserialize(&bytes).map_err(bad)?;
        let tensors = file.iter().map(|(name, view)| Ok((name.to_owned(), decode(&view)?)));
        Ok(Self { tensors: tensors.collect::<Result<_>>()?, texts })
    }

    /// A tensor that must be there.
    pub(crate) fn tensor(&self, name: &str) -> Result<&Tensor> {
        self.tensors.get(name).ok_or_else(|| bad(format!("tensor `{name}` is missing")))
    }

    /// All tensors whose name begins with `prefix`, under the rest of their names.
    pub(crate) fn below<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Tensor)> {
        self.tensors.iter().filter_map(move |(name, tensor)| Some((name.strip_prefix(prefix)?, tensor)))
    }

    /// A JSON text of the header.
    pub(crate) fn json(&self, key: &str) -> Result<Value> {
        let text = self.texts.get(key).ok_or_else(|| bad(format!("metadata `{key}` is missing")))?;
        serde_json::from_str(text).map_err(bad)
    }

    /// Whether the header has this text.
    pub(crate) fn has_text(&self, key: &str) -> bool {
        self.texts.contains_key(key)
    }

    /// The batch of a model file as a data set of its graphs, with their edges in the given order.
    pub(crate) fn dataset(&self, Width { features, classes }: Width) -> Result<Dataset> {
        let states = self.tensor("in.x")?;
        let nodes = match states.size()[..] {
            [nodes, width] if width == features && states.is_floating_point() => nodes,
            _ => return Err(bad(format!("`in.x` is not a table of floats with {features} columns"))),
        };
        let labels = self.indices("in.y", &[-1], classes)?;
        let graphs = labels.len() as i64;
        let graph_of = self.indices("in.batch", &[nodes], graphs)?;
        if !graph_of.is_sorted() {
            return Err(bad("`in.batch` is not in ascending order"));
        }
        let ends = self.indices("in.edge_index", &[2, -1], nodes)?;
        let (sources, targets) = ends.split_at(ends.len() / 2);
        let arcs = sources.iter().zip(targets).map(|(source, target)| Arc::new(&graph_of, *source, *target));
        let mut arcs = arcs.collect::<Result<Vec<_>>>()?;
        arcs.sort_by_key(|arc| arc.graph); // stable: the order within a graph decides ties
        let node_offsets = offsets(labels.len(), graph_of.iter().copied());
        let local = |arc: &Arc, node: u32| node - node_offsets[arc.graph as usize] as u32;
        let parts = DatasetParts {
            name: "reference".to_owned(),
            task: Task::GraphClassification,
            classes: classes as u32,
            edge_offsets: offsets(labels.len(), arcs.iter().map(|arc| arc.graph)),
            sources: arcs.iter().map(|arc| local(arc, arc.source)).collect(),
            targets: arcs.iter().map(|arc| local(arc, arc.target)).collect(),
            feature_width: features as usize,
            features: Vec::<f32>::try_from(states.to_kind(Kind::Float).reshape([-1]))?,
            split_rule: SplitRule::RandomBySeed,
            published_splits: Vec::new(),
            node_offsets,
            labels,
        };
        Dataset::new(parts).map_err(bad)
    }

    /// A tensor of whole numbers from 0 to `bound`, exclusive, with this shape; -1 stands for any length.
    pub(crate) fn indices(&self, name: &str, shape: &[i64], bound: i64) -> Result<Vec<u32>> {
        let tensor = self.tensor(name)?;
        let size = tensor.size();
        let fits = |(asked, found): (&i64, &i64)| *asked == -1 || asked == found;
        if size.len() != shape.len() || !shape.iter().zip(&size).all(fits) {
            return Err(bad(format!("`{name}` has shape {size:?}, not {shape:?}")));
        }
        if tensor.kind() != Kind::Int64 {
            return Err(bad(format!("`{name}` does not hold whole numbers")));
        }
        let numbers = Vec::<i64>::try_from(tensor.reshape([-1]))?;
        let inside = |number: &i64| u32::try_from(*number).ok().filter(|_| *number < bound);
        let outside =
            |number: &i64| bad(format!("`{name}` holds {number}, which is not from 0 to {}", bound - 1));
        numbers.iter().map(|number| inside(number).ok_or_else(|| outside(number))).collect()
    }
}

/// What a model reads and decides.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Width {
    pub features: i64,
    pub classes: i64,
}

/// An arc of a batch and the graph it is in.
struct Arc {
    graph: u32,
    source: u32,
    target: u32,
}

impl Arc {
    fn new(graph_of: &[u32], source: u32, target: u32) -> Result<Self> {
        let (graph, other) = (graph_of[source as usize], graph_of[target as usize]);
        if graph != other {
            return Err(bad(format!(
                "`in.edge_index` joins node {source} and node {target} of another graph"
            )));
        }
        Ok(Self { graph, source, target })
    }
}

/// First member of each of `groups`, given the group of every member in ascending order.
fn offsets(groups: usize, members: impl Iterator<Item = u32>) -> Vec<usize> {
    let mut offsets = vec![0; groups + 1];
    members.for_each(|group| offsets[group as usize + 1] += 1);
    (0..groups).for_each(|group| offsets[group + 1] += offsets[group]);
    offsets
}

/// A tensor of a file, on the host.
pub(crate) fn decode(view: &TensorView<'_>) -> Result<Tensor> {
    let bytes = view.data();
    let tensor = match view.dtype() {
        Dtype::F32 => Tensor::from_slice(&numbers(bytes, f32::from_le_bytes)),
        Dtype::F64 => Tensor::from_slice(&numbers(bytes, f64::from_le_bytes)),
        Dtype::I64 => Tensor::from_slice(&numbers(bytes, i64::from_le_bytes)),
        Dtype::I32 => Tensor::from_slice(&numbers(bytes, |four| i64::from(i32::from_le_bytes(four)))),
        other => return Err(bad(format!("tensors of type {other:?} are not expected"))),
    };
    let shape: Vec<i64> = view.shape().iter().map(|length| *length as i64).collect();
    Ok(tensor.f_reshape(shape)?)
}

fn numbers<const N: usize, T>(bytes: &[u8], decode: fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|chunk| decode(*chunk)).collect()
}
