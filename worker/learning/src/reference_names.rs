//! What reference files call things, and what they are called here: settings and parameters. A setting that is not
//! understood is refused, because leaving it out would compare another network.

use serde_json::{Map, Value};
use togl_sweeps::TrialConfig;

use crate::error::Result;
use crate::reference::bad;

/// The trial that a model file's settings describe.
pub(crate) fn trial_of(config: &Value) -> Result<TrialConfig> {
    let config = config.as_object().ok_or_else(|| bad("settings are not an object"))?;
    let mut settings = Map::from_iter([
        ("dataset".to_owned(), "reference".into()),
        ("model".to_owned(), backbone(config)?.into()),
        ("dim1".to_owned(), false.into()), // their default, which is not ours
    ]);
    for (theirs, value) in config {
        match known(theirs) {
            Some(Known::As(ours)) => drop(settings.insert(ours.to_owned(), value.clone())),
            Some(Known::Off) if is_on(value) => {
                return Err(bad(format!(
                    "setting `{theirs}` is {value}; networks with it cannot be compared"
                )));
            }
            Some(Known::Off | Known::Elsewhere) => {}
            None if !is_on(value) => {} // whatever it is, this network does without
            None => return Err(bad(format!("setting `{theirs}` is not known"))),
        }
    }
    let togl = match config.get("model").and_then(Value::as_str) {
        Some("topo") => true,
        Some("gnn") => false,
        _ => return Err(bad("setting `model` is neither \"gnn\" nor \"topo\"")),
    };
    settings.insert("togl".to_owned(), togl.into());
    if let Some(position) = config.get("togl_position") {
        let position = if position.is_null() { "last".into() } else { position.clone() };
        settings.insert("togl_position".to_owned(), position);
    }
    TrialConfig::from_settings(&settings).map_err(bad)
}

/// A positive number of a model file's settings.
pub(crate) fn count(config: &Value, key: &str) -> Result<i64> {
    let found = config.get(key).and_then(Value::as_i64).filter(|number| (1..1 << 20).contains(number));
    found.ok_or_else(|| bad(format!("setting `{key}` is not a number above 0")))
}

fn backbone(config: &Map<String, Value>) -> Result<&'static str> {
    let mut chosen = "gcn";
    for (flag, word) in [("GIN", "gin"), ("GAT", "gat"), ("GatedGCN", "gatedgcn")] {
        match config.get(flag) {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) if chosen == "gcn" => chosen = word,
            Some(Value::Bool(true)) => return Err(bad(format!("settings ask for {chosen} and for {word}"))),
            Some(other) => return Err(bad(format!("setting `{flag}` is {other}, neither true nor false"))),
        }
    }
    if chosen == "gin" && config.get("train_eps") == Some(&Value::Bool(false)) {
        return Err(bad("setting `train_eps` is false; networks with a fixed epsilon cannot be compared"));
    }
    Ok(chosen)
}

/// What is done with a setting of theirs.
enum Known {
    /// It is this one of ours.
    As(&'static str),
    /// Networks that have it cannot be made here, or draw what no file can hold.
    Off,
    /// Read in another place, or without a part in one forward and backward pass.
    Elsewhere,
}

fn known(theirs: &str) -> Option<Known> {
    if let Some(ours) = RENAMED.iter().find(|(name, _)| *name == theirs) {
        return Some(Known::As(ours.1));
    }
    match theirs {
        "add_mlp" | "dropout_p" | "dropout_input_p" => Some(Known::Off),
        _ if ELSEWHERE.contains(&theirs) => Some(Known::Elsewhere),
        _ => SAME.iter().find(|name| **name == theirs).map(|name| Known::As(name)),
    }
}

fn is_on(value: &Value) -> bool {
    !value.is_null() && value.as_bool() != Some(false) && value.as_f64() != Some(0.0)
}

/// Settings that are called otherwise here.
const RENAMED: &[(&str, &str)] = &[("num_heads_gnn", "num_heads"), ("fake", "static")];

/// Settings with the same name.
const SAME: &[&str] = &[
    "hidden_dim",
    "depth",
    "batch_norm",
    "residual",
    "activation_last",
    "gat_last",
    "placement",
    "filtration_hidden",
    "num_filtrations",
    "tanh_filtrations",
    "deepset_type",
    "swap_bn_order",
    "dim1",
    "num_coord_funs",
    "residual_and_bn",
    "share_filtration_parameters",
    "deepset",
    "dim0_out_dim",
    "dim1_out_dim",
    "dist_dim1",
    "aggregation_fn",
];

const ELSEWHERE: &[&str] = &[
    "model",
    "GIN",
    "GAT",
    "GatedGCN",
    "togl_position",
    "num_node_features",
    "num_classes",
    "train_eps",
    "dataset",
    "paired",
    "merged",
    "training_seed",
    "max_epochs",
    "lr",
    "lr_patience",
    "min_lr",
    "weight_decay",
    "save_filtration",
    "dropout_edges_p", // read by nothing in the published program
    "batch_size",
    "seed",
    "use_node_attributes",
    "fold",
    "legacy",
    "benchmark_idx",
    "min_cycle",
    "k_clique",
    "p_ER_graph",
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
    use serde_json::json;

    use super::*;

    fn settings(more: &Value) -> Value {
        let mut all = json!({"model": "topo", "hidden_dim": 16, "depth": 3, "dropout_p": 0.0, "lr": 1e-3});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    }

    #[test]
    fn what_is_not_said_has_their_default_and_what_is_said_is_taken() {
        let trial = trial_of(&settings(&json!({}))).unwrap();
        assert!(trial.togl && !trial.dim1 && trial.num_filtrations == 8);
        assert!(
            trial_of(&settings(&json!({"early_topo": false, "logger": null}))).is_ok(),
            "off is no setting"
        );
        let said =
            json!({"GAT": true, "num_heads_gnn": 2, "fake": true, "dim1": true, "togl_position": null});
        let trial = trial_of(&settings(&said)).unwrap();
        assert!(trial.static_variant && trial.dim1 && trial.num_heads == 2, "{trial:?}");
    }

    #[test]
    fn a_setting_that_would_be_another_network_is_refused_by_name() {
        for (said, words) in [
            (json!({"add_mlp": true}), "`add_mlp`"),
            (json!({"dropout_p": 0.5}), "`dropout_p`"),
            (json!({"dropout_input_p": 0.5}), "`dropout_input_p`"),
            (json!({"GIN": true, "train_eps": false}), "`train_eps`"),
            (json!({"GIN": 1}), "`GIN`"),
            (json!({"GIN": true, "GAT": true}), "gin and for gat"),
            (json!({"model": "other"}), "`model`"),
            (json!({"hiden_dim": 16}), "`hiden_dim`"),
            (json!({"early_topo": true}), "`early_topo`"),
            (json!({"depth": "three"}), "`depth`"),
        ] {
            let error = trial_of(&settings(&said)).unwrap_err().to_string();
            assert!(error.contains(words), "{said}: {error}");
        }
    }

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
