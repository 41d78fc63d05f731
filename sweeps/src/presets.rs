//! Named settings per family of data sets, as the published runs had them: what their logs show, not what the text
//! says. A sweep names one in `base: {preset: NAME}` and overrides what it likes. A preset is part of what files
//! mean: never change one, add another.
//!
//! Not in any preset, because it differs between tables: the data set, `features`, `depth`, whether there is a
//! topological layer and where it stands.

use serde_json::{Value, json};

/// A named set of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// What a sweep file calls it.
    pub name: &'static str,
    /// What it is for.
    pub about: &'static str,
    family: Family,
    gat: Option<(u32, Rate)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Synthetic,
    Dd,
    Tu,
    Superpixels,
    Blocks,
}

/// The learning rate of an attention network: as its family, or the lower one used for DD.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rate {
    OfFamily,
    Low,
}

const fn plain(name: &'static str, about: &'static str, family: Family) -> Preset {
    Preset { name, about, family, gat: None }
}

const fn gat(name: &'static str, about: &'static str, family: Family, width: u32, rate: Rate) -> Preset {
    Preset { name, about, family, gat: Some((width, rate)) }
}

/// Every preset.
pub static PRESETS: [Preset; 13] = [
    plain("synthetic", "Cycles and Necklaces", Family::Synthetic),
    plain("dd", "DD", Family::Dd),
    gat("dd-gat", "DD with graph attention", Family::Dd, 17, Rate::Low),
    plain("enzymes", "ENZYMES", Family::Tu),
    gat("enzymes-gat", "ENZYMES with graph attention", Family::Tu, 18, Rate::OfFamily),
    plain("proteins", "PROTEINS_full", Family::Tu),
    gat("proteins-gat", "PROTEINS_full with graph attention", Family::Tu, 18, Rate::OfFamily),
    plain("mnist", "MNIST superpixels", Family::Superpixels),
    gat("mnist-gat", "MNIST superpixels with graph attention", Family::Superpixels, 19, Rate::OfFamily),
    plain("pattern", "PATTERN", Family::Blocks),
    gat("pattern-gat", "PATTERN with graph attention", Family::Blocks, 19, Rate::OfFamily),
    plain("cluster", "CLUSTER", Family::Blocks),
    gat("cluster-gat", "CLUSTER with graph attention", Family::Blocks, 19, Rate::OfFamily),
];

/// The preset of this name.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

/// The names of all presets.
pub fn names() -> impl Iterator<Item = &'static str> + Clone {
    PRESETS.iter().map(|preset| preset.name)
}

impl Preset {
    /// Its settings by name.
    pub fn settings(&self) -> Vec<(&'static str, Value)> {
        let mut settings = shared();
        settings.extend(self.family.settings());
        if let Some((width, rate)) = self.gat {
            settings.retain(|(name, _)| *name != "hidden_dim");
            settings.extend([
                ("model", json!("gat")),
                ("hidden_dim", json!(width)),
                ("num_heads", json!(8)),
                ("gat_last", json!("concat")),
            ]);
            if rate == Rate::Low {
                settings.retain(|(name, _)| *name != "lr");
                settings.push(("lr", json!(5e-5)));
            }
        }
        settings
    }
}

/// What every logged run did: an activation after the last layer too, and one mini-batch in the last epoch.
fn shared() -> Vec<(&'static str, Value)> {
    vec![
        ("activation_last", json!("relu")),
        ("last_epoch", json!("one-batch")),
        ("num_filtrations", json!(8)),
        ("num_coord_funs", json!(3)),
        ("dim1", json!(true)),
        ("residual_and_bn", json!(true)),
    ]
}

impl Family {
    fn settings(self) -> Vec<(&'static str, Value)> {
        let (width, batch, lr, patience, lr_min, epochs) = match self {
            Self::Synthetic => (146, 32, 1e-3, 25, 1e-6, 200),
            Self::Dd => (138, 20, 7e-4, 25, 1e-6, 1000),
            Self::Tu => (146, 20, 7e-4, 25, 1e-6, 1000),
            Self::Superpixels => (146, 128, 1e-3, 10, 1e-5, 1000),
            Self::Blocks => (146, 128, 1e-3, 5, 1e-5, 1000),
        };
        let mut settings = vec![
            ("hidden_dim", json!(width)),
            ("batch_size", json!(batch)),
            ("lr", json!(lr)),
            ("lr_patience", json!(patience)),
            ("lr_min", json!(lr_min)),
            ("max_epochs", json!(epochs)),
        ];
        let synthetic = self == Self::Synthetic;
        settings.extend([
            ("filtration_hidden", json!(if synthetic { 24 } else { 32 })),
            ("tanh_filtrations", json!(!synthetic)),
            ("deepset_type", json!(if synthetic { "full" } else { "shallow" })),
        ]);
        settings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;

    #[test]
    fn every_preset_fits_and_names_no_setting_twice() {
        for preset in &PRESETS {
            let settings = preset.settings();
            for (name, value) in &settings {
                settings::find(name).unwrap().check(value).unwrap();
            }
            let mut names: Vec<&str> = settings.iter().map(|(name, _)| *name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), settings.len(), "{}", preset.name);
        }
    }

    /// The table of logged settings: width, batch, rate, patience, lowest rate, epochs.
    #[test]
    fn presets_are_what_the_logs_show() {
        let of = |name: &str| {
            let settings = find(name).unwrap().settings();
            let keys = ["hidden_dim", "batch_size", "lr", "lr_patience", "lr_min", "max_epochs"];
            keys.map(|key| settings.iter().find(|(n, _)| *n == key).unwrap().1.as_f64().unwrap())
        };
        assert_eq!(of("synthetic"), [146.0, 32.0, 1e-3, 25.0, 1e-6, 200.0]);
        assert_eq!(of("dd"), [138.0, 20.0, 7e-4, 25.0, 1e-6, 1000.0]);
        assert_eq!(of("dd-gat"), [17.0, 20.0, 5e-5, 25.0, 1e-6, 1000.0]);
        assert_eq!(of("enzymes-gat"), [18.0, 20.0, 7e-4, 25.0, 1e-6, 1000.0]);
        assert_eq!(of("mnist"), [146.0, 128.0, 1e-3, 10.0, 1e-5, 1000.0]);
        assert_eq!(of("pattern"), [146.0, 128.0, 1e-3, 5.0, 1e-5, 1000.0]);
        assert_eq!(of("cluster-gat"), [19.0, 128.0, 1e-3, 5.0, 1e-5, 1000.0]);
    }
}
