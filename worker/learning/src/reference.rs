//! Reads files of reference vectors (safetensors): tensors by name and the JSON texts of the header.
//! Owns the translation of their settings and parameter names into this project's; must not compare anything.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde_json::{Map, Value};
use tch::Tensor;
use togl_data::{Dataset, DatasetParts, SplitRule, Task};
use togl_sweeps::TrialConfig;

use crate::error::{Result, TrainError};

/// A file of reference vectors.
#[derive(Debug)]
pub(crate) struct Reference {
    tensors: BTreeMap<String, Tensor>,
    texts: BTreeMap<String, String>,
}

fn bad(what: impl std::fmt::Display) -> TrainError {
    TrainError::Reference(what.to_string())
}

impl Reference {
    /// Reads a whole file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|error| bad(format!("{}: {error}", path.display())))?;
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
    pub(crate) fn dataset(&self, classes: u32) -> Result<Dataset> {
        let graph_of = Vec::<i64>::try_from(self.tensor("in.batch")?)?;
        let features = self.tensor("in.x")?;
        let edges = self.tensor("in.edge_index")?;
        let (sources, targets) = (Vec::<i64>::try_from(edges.get(0))?, Vec::<i64>::try_from(edges.get(1))?);
        let labels = Vec::<i64>::try_from(self.tensor("in.y")?)?;
        let node_offsets = offsets(labels.len(), graph_of.iter().copied());
        let edge_offsets = offsets(labels.len(), sources.iter().map(|source| graph_of[*source as usize]));
        let local = |node: &i64| (*node as usize - node_offsets[graph_of[*node as usize] as usize]) as u32;
        let parts = DatasetParts {
            name: "reference".to_owned(),
            task: Task::GraphClassification,
            classes,
            sources: sources.iter().map(local).collect(),
            targets: targets.iter().map(local).collect(),
            feature_width: features.size()[1] as usize,
            features: Vec::<f32>::try_from(features.view([-1]))?,
            labels: labels.iter().map(|label| *label as u32).collect(),
            split_rule: SplitRule::RandomBySeed,
            published_splits: Vec::new(),
            edge_offsets,
            node_offsets,
        };
        Dataset::new(parts).map_err(bad)
    }
}

/// First member of each of `groups`, given the group of every member in ascending order.
fn offsets(groups: usize, members: impl Iterator<Item = i64>) -> Vec<usize> {
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
        other => return Err(bad(format!("tensors of type {other:?} are not expected"))),
    };
    let shape: Vec<i64> = view.shape().iter().map(|length| *length as i64).collect();
    Ok(tensor.f_reshape(shape)?)
}

fn numbers<const N: usize, T>(bytes: &[u8], decode: fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|chunk| decode(*chunk)).collect()
}

/// The trial that a model file's settings describe.
pub(crate) fn trial_of(config: &Value) -> Result<TrialConfig> {
    let config = config.as_object().ok_or_else(|| bad("settings are not an object"))?;
    let on = |key: &str| config.get(key).and_then(Value::as_bool).unwrap_or(false);
    let model = [("GIN", "gin"), ("GAT", "gat"), ("GatedGCN", "gatedgcn")];
    let model = model.into_iter().find(|(key, _)| on(key)).map_or("gcn", |(_, word)| word);
    let togl = config.get("model").and_then(Value::as_str) == Some("topo");
    let mut settings = Map::from_iter([
        ("dataset".to_owned(), "reference".into()),
        ("model".to_owned(), model.into()),
        ("togl".to_owned(), togl.into()),
    ]);
    for (theirs, ours) in SETTINGS {
        if let Some(value) = config.get(*theirs) {
            settings.insert((*ours).to_owned(), value.clone());
        }
    }
    if let Some(position) = config.get("togl_position") {
        let position = if position.is_null() { "last".into() } else { position.clone() };
        settings.insert("togl_position".to_owned(), position);
    }
    TrialConfig::from_settings(&settings).map_err(bad)
}

/// Their names of settings, and ours.
const SETTINGS: &[(&str, &str)] = &[
    ("hidden_dim", "hidden_dim"),
    ("depth", "depth"),
    ("num_heads_gnn", "num_heads"),
    ("batch_norm", "batch_norm"),
    ("residual", "residual"),
    ("dropout_p", "dropout_p"),
    ("filtration_hidden", "filtration_hidden"),
    ("num_filtrations", "num_filtrations"),
    ("tanh_filtrations", "tanh_filtrations"),
    ("deepset_type", "deepset_type"),
    ("swap_bn_order", "swap_bn_order"),
    ("dim1", "dim1"),
    ("num_coord_funs", "num_coord_funs"),
    ("residual_and_bn", "residual_and_bn"),
    ("share_filtration_parameters", "share_filtration_parameters"),
    ("fake", "static"),
    ("deepset", "deepset"),
    ("dim0_out_dim", "dim0_out_dim"),
    ("dim1_out_dim", "dim1_out_dim"),
    ("dist_dim1", "dist_dim1"),
    ("aggregation_fn", "aggregation_fn"),
];

/// Pieces of their parameter names and what they are called here, applied in order.
const NAMES: &[(&str, &str)] = &[
    (".batchnorm.", ".norm."),
    (".conv.lin.", ".conv."),
    (".conv.nn.0.", ".conv.mlp.0."),
    (".conv.nn.2.", ".conv.mlp.1."),
    (".att_src", ".attention_source"),
    (".att_dst", ".attention_target"),
    ("classif.0.", "head.0."),
    ("classif.2.", "head.1."),
    ("classif.4.", "head.2."),
    ("topo1.bn.", "togl.norm."),
    ("topo1.out.", "togl.output."),
    ("topo1.coord_fun_modules1.", "togl.dim1."),
    ("topo1.coord_fun_modules.", "togl.dim0."),
    (".0.t_param", ".triangle.centre"),
    (".1.t_param", ".gaussian.centre"),
    (".1.sigma", ".gaussian.width"),
    (".2.lin_mod.", ".line."),
    (".3.c_param", ".hat.centre"),
    (".3.r_param", ".hat.radius"),
    ("topo1.set_fn0.0.", "togl.dim0.input."),
    ("topo1.set_fn0.2.", "togl.dim0.set0."),
    ("topo1.set_fn0.4.", "togl.dim0.set1."),
    ("topo1.set_fn1.0.", "togl.dim1.input."),
    ("topo1.set_fn1.2.Lambda.", "togl.dim1.output."),
    (".Gamma.", ".own."),
    (".Lambda.", ".others."),
];

/// Our name of their parameter; `None` for a counter that we do not keep.
pub(crate) fn our_name(theirs: &str) -> Option<String> {
    if theirs.ends_with("num_batches_tracked") {
        return None;
    }
    let filtration = ["topo1.filtration_modules.", "topo1.filtrations."];
    if let Some(rest) = filtration.iter().find_map(|prefix| theirs.strip_prefix(prefix)) {
        let (layer, value) = rest.rsplit_once('.')?;
        let (network, layer) =
            layer.rsplit_once('.').map_or((String::new(), layer), |(n, l)| (format!("{n}."), l));
        let layer = if layer == "0" { "hidden" } else { "output" };
        return Some(format!("togl.filtration.{network}{layer}.{value}"));
    }
    Some(NAMES.iter().fold(theirs.to_owned(), |name, (from, to)| name.replace(from, to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn their_parameter_names_are_translated() {
        let pairs = [
            ("layers.0.conv.lin.weight", "layers.0.conv.weight"),
            ("layers.1.batchnorm.running_var", "layers.1.norm.running_var"),
            ("layers.2.conv.nn.2.bias", "layers.2.conv.mlp.1.bias"),
            ("topo1.filtration_modules.2.bias", "togl.filtration.output.bias"),
            ("topo1.filtration_modules.3.0.weight", "togl.filtration.3.hidden.weight"),
            ("topo1.coord_fun_modules1.1.sigma", "togl.dim1.gaussian.width"),
            ("topo1.set_fn0.4.Gamma.bias", "togl.dim0.set1.own.bias"),
            ("topo1.set_fn1.2.Lambda.weight", "togl.dim1.output.weight"),
        ];
        for (theirs, ours) in pairs {
            assert_eq!(our_name(theirs).as_deref(), Some(ours));
        }
        assert_eq!(our_name("layers.0.batchnorm.num_batches_tracked"), None);
    }
}
