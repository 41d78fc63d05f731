//! Which network a run was. The published logs call every network without TOGL a GCN and say beside it which one it is;
//! others write its name. Owns these words; a name or a combination that is not understood is refused.

use serde_json::{Map, Value, json};
use togl_sweeps::TrialConfig;

use super::source::RunReader;
use crate::error::Result;
use crate::published::same_dataset;

/// Heads of every logged attention network; the logs have no column for them.
const LOGGED_GAT_HEADS: u32 = 8;

/// Columns that say true for one network, and the network.
const FLAGS: [(&str, &str); 3] = [("GatedGCN", "gatedgcn"), ("GAT", "gat"), ("GIN", "gin")];

/// The names of models that are understood, in small letters, and the network without TOGL.
const MODELS: [(&str, &str); 10] = [
    ("gcn", "gcn"),
    ("gin", "gin"),
    ("gat", "gat"),
    ("gatedgcn", "gatedgcn"),
    ("topognn", "gcn"),
    ("wl", "wl"),
    ("wl-oa", "wl-oa"),
    ("ph", "ph"),
    ("gfl", "gfl"),
    ("perslay", "perslay"),
];

/// Columns that are read here under the names of the published logs.
pub const READ: [&str; 5] = ["GatedGCN", "GAT", "GIN", "early_topo", "use_node_attributes"];

impl RunReader<'_> {
    /// Adds to the settings of a run which network it was and what its nodes knew.
    pub(super) fn network(&self, row: usize, settings: &mut Map<String, Value>) -> Result<()> {
        let (backbone, named_togl) = self.backbone(row)?;
        settings.insert("model".to_owned(), json!(backbone));
        if backbone == "gat" {
            settings.entry("num_heads").or_insert(json!(LOGGED_GAT_HEADS));
        }
        let togl = settings.get("togl").and_then(Value::as_bool);
        if named_togl && togl == Some(false) {
            return Err(self.refuse(row, "togl", "false", "true where the model is a TopoGNN"));
        }
        let togl = togl.unwrap_or(named_togl);
        settings.insert("togl".to_owned(), json!(togl));
        if togl {
            let last = self.export.text(row, self.mapping.of("togl_position")) == Some("last");
            let position = if last { json!("last") } else { json!(self.position(row)?) };
            settings.insert("togl_position".to_owned(), position);
        }
        let dataset = self.export.text(row, self.mapping.of("dataset")).unwrap_or_default();
        let attributes = self.flag(row, "use_node_attributes")?.unwrap_or(true);
        let features = if attributes { "original" } else { without_attributes(dataset) };
        settings.entry("features").or_insert(json!(features));
        settings.entry("last_epoch").or_insert(json!("one-batch"));
        Ok(())
    }

    /// The network without TOGL, and whether its name says that it has TOGL.
    fn backbone(&self, row: usize) -> Result<(&'static str, bool)> {
        let text = self.export.text(row, self.mapping.of("model")).unwrap_or_default();
        let word = text.to_ascii_lowercase();
        let word = word.strip_prefix("larger").unwrap_or(&word);
        let Some((_, named)) = MODELS.iter().find(|(name, _)| *name == word) else {
            let known: Vec<&str> = MODELS.iter().map(|(name, _)| *name).collect();
            let wanted = format!("one of {}, with or without `Larger` before it", known.join(", "));
            return Err(self.refuse(row, "model", text, &wanted));
        };
        let mut flagged = Vec::new();
        for (flag, model) in FLAGS {
            if self.flag(row, flag)? == Some(true) {
                flagged.push((flag, model));
            }
        }
        let togl = word == "topognn";
        match flagged.as_slice() {
            [] => Ok((named, togl)),
            [(_, model)] if *named == "gcn" || named == model => Ok((model, togl)),
            [(flag, _)] => Err(self.refuse(row, flag, "true", &format!("false where the model is `{text}`"))),
            [_, (flag, _), ..] => {
                let other = flagged[0].0;
                Err(self.refuse(row, flag, "true", &format!("false where `{other}` is true")))
            }
        }
    }

    /// Newer logs say after how many layers; older ones only whether early (after the first) or late (before
    /// the last).
    fn position(&self, row: usize) -> Result<u64> {
        let depth = self.count(row, "depth")?.unwrap_or(TrialConfig::default().depth.into());
        let written = self.count(row, "togl_position")?;
        let late = self.flag(row, "early_topo")? == Some(false);
        Ok(written.unwrap_or(if late { depth.saturating_sub(1) } else { 1 }).min(depth))
    }
}

/// What a network saw whose run left out the attributes: fresh random features, but of images their colour, because
/// there the flag only leaves out the coordinates.
fn without_attributes(dataset: &str) -> &'static str {
    let is_image = ["MNIST", "CIFAR10"].iter().any(|image| same_dataset(image, dataset));
    if is_image { "colour" } else { "random" }
}
