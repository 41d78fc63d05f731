//! Reference files that are damaged or say something else must not pass, and must say what is wrong with them.
#![expect(clippy::unwrap_used, reason = "helpers of tests panic like the tests themselves")]

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde_json::{Value, json};
use togl_learning::{Device, verify_file};

/// A file of reference vectors that can be changed.
#[derive(Clone)]
struct File {
    tensors: BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>,
    texts: HashMap<String, String>,
}

impl File {
    fn network() -> Self {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let bytes = std::fs::read(fixtures.join("gcn-togl-coord-pos1.safetensors")).unwrap();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let tensors = file.iter().map(|(name, view)| {
            (name.to_owned(), (view.dtype(), view.shape().to_vec(), view.data().to_vec()))
        });
        Self { tensors: tensors.collect(), texts: header.metadata().clone().unwrap() }
    }

    /// A triangle and one filtration with the values 1, 2, 3: two vertices die at once, the first one and the cycle of the
    /// last edge at the largest value.
    fn persistence() -> Self {
        let mut file = Self { tensors: BTreeMap::new(), texts: HashMap::new() };
        file.texts
            .insert("cases".to_owned(), json!([{"kind": "triangle", "n": 3, "m": 3, "k": 1}]).to_string());
        file.floats("000.f", &[1, 3], &[1.0, 2.0, 3.0]);
        file.integers("000.edges", &[3, 2], &[0, 1, 1, 2, 0, 2]);
        file.floats("000.dim0", &[1, 3, 2], &[1.0, 3.0, 2.0, 2.0, 3.0, 3.0]);
        file.floats("000.dim1", &[1, 3, 2], &[0.0, 0.0, 0.0, 0.0, 3.0, 3.0]);
        file.floats("000.w0", &[1, 3, 2], &[1.0; 6]);
        file.floats("000.w1", &[1, 3, 2], &[0.0; 6]);
        file.floats("000.grad_f", &[1, 3], &[1.0, 2.0, 3.0]);
        file
    }

    fn floats(&mut self, name: &str, shape: &[usize], values: &[f32]) {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensors.insert(name.to_owned(), (Dtype::F32, shape.to_vec(), bytes));
    }

    fn integers(&mut self, name: &str, shape: &[usize], values: &[i64]) {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensors.insert(name.to_owned(), (Dtype::I64, shape.to_vec(), bytes));
    }

    fn without(&mut self, prefix: &str) {
        let before = self.tensors.len();
        self.tensors.retain(|name, _| !name.starts_with(prefix));
        assert!(self.tensors.len() < before, "{prefix} is not there");
    }

    fn reshape(&mut self, name: &str, shape: &[usize]) {
        self.tensors.get_mut(name).unwrap().1 = shape.to_vec();
    }

    /// Replaces whole numbers.
    fn change(&mut self, name: &str, edit: impl Fn(usize, i64) -> i64) {
        let bytes = &mut self.tensors.get_mut(name).unwrap().2;
        for (place, number) in bytes.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            *number = edit(place, i64::from_le_bytes(*number)).to_le_bytes();
        }
    }

    fn setting(&mut self, name: &str, value: Value) {
        let mut config: Value = serde_json::from_str(&self.texts["config"]).unwrap();
        config[name] = value;
        self.texts.insert("config".to_owned(), config.to_string());
    }

    /// What is wrong with it; nothing if it passes.
    fn complaint(&self) -> Option<String> {
        let views = self.tensors.iter().map(|(name, (dtype, shape, bytes))| {
            (name.as_str(), TensorView::new(*dtype, shape.clone(), bytes).unwrap())
        });
        let bytes = safetensors::serialize(views, Some(self.texts.clone())).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.safetensors");
        std::fs::write(&path, bytes).unwrap();
        match verify_file(&path, Device::Cpu) {
            Ok(report) if report.passed() => None,
            Ok(report) => Some(report.failures.join("; ")),
            Err(error) => Some(error.to_string()),
        }
    }
}

type Damage = (&'static str, fn(&mut File));

fn every_damage_is_noticed(whole: &File, damages: &[Damage]) {
    assert_eq!(whole.complaint(), None);
    for (words, damage) in damages {
        let mut file = whole.clone();
        damage(&mut file);
        let complaint = file.complaint().unwrap_or_else(|| panic!("{words}: it passed"));
        assert!(complaint.contains(words), "`{complaint}` does not say `{words}`");
        assert!(!complaint.contains("panicked"), "{complaint}");
    }
}

#[test]
fn a_network_is_compared_whole_or_refused() {
    let damages: &[Damage] = &[
        ("grad.embedding.weight (not in the file): differs", |file| file.without("grad.embedding.weight")),
        ("(not in the file): differs", |file| file.without("grad.")),
        ("after.layers.0.norm.running_mean: the file does not have it", |file| file.without("after.")),
        ("the file has no values for embedding.weight", |file| file.without("param.embedding.weight")),
        ("eval.logits: shape [8, 3] instead of [3, 8]", |file| file.reshape("eval.logits", &[3, 8])),
        ("grad.embedding.weight: shape", |file| file.reshape("grad.embedding.weight", &[3, 16])),
        ("`embedding.weight` has shape [16, 3], not [3, 16]", |file| {
            file.reshape("param.embedding.weight", &[3, 16])
        }),
        ("`in.y` holds 4294967296", |file| file.change("in.y", |_, label| label + (1 << 32))),
        ("`in.y` holds 3, which is not from 0 to 2", |file| file.change("in.y", |_, _| 3)),
        ("`in.batch` holds -1", |file| {
            file.change("in.batch", |place, graph| if place == 0 { -1 } else { graph })
        }),
        ("ascending order", |file| file.change("in.batch", |_, graph| 7 - graph)),
        ("`in.edge_index` holds 1000000", |file| file.change("in.edge_index", |_, _| 1_000_000)),
        ("of another graph", |file| {
            file.change("in.edge_index", |place, node| if place == 0 { 70 } else { node })
        }),
        ("`in.edge_index` has shape", |file| {
            let count = file.tensors["in.edge_index"].1[1];
            file.reshape("in.edge_index", &[2 * count]);
        }),
        ("`in.batch` does not hold whole numbers", |file| {
            let shape = file.tensors["in.batch"].1.clone();
            file.floats("in.batch", &shape, &vec![0.4; shape[0]]);
        }),
        ("`in.x` is not a table of floats", |file| {
            let shape = file.tensors["in.x"].1.clone();
            file.reshape("in.x", &[shape[0] * shape[1]]);
        }),
        ("setting `num_classes`", |file| file.setting("num_classes", json!("three"))),
        ("setting `add_mlp` is true", |file| file.setting("add_mlp", json!(true))),
        ("setting `attention` is not known", |file| file.setting("attention", json!(true))),
        ("differs by", |file| file.setting("activation_last", json!("relu"))),
    ];
    every_damage_is_noticed(&File::network(), damages);
}

#[test]
fn persistence_cases_are_compared_whole_or_refused() {
    let damages: &[Damage] = &[
        ("it lists 1 cases and holds 0", |file| file.without("000.f")),
        ("`000.w1` is missing", |file| file.without("000.w1")),
        ("it lists 2 cases and holds 1", |file| drop(file.texts.insert("cases".into(), "[{}, {}]".into()))),
        ("it lists no list of cases", |file| drop(file.texts.insert("cases".into(), "7".into()))),
        ("`000.edges` holds 4294967296", |file| file.change("000.edges", |_, node| node + (1 << 32))),
        ("`000.edges` holds 3", |file| file.change("000.edges", |_, node| node + 1)),
        ("`000.edges` has shape [6]", |file| file.reshape("000.edges", &[6])),
        ("`000.f` is not a table", |file| file.reshape("000.f", &[3])),
        ("000.dim0: shape", |file| file.reshape("000.dim0", &[1, 2, 3])),
        ("000.dim0: differs", |file| {
            file.floats("000.dim0", &[1, 3, 2], &[1.0, 3.0, 2.0, 2.0, 3.0, 3.000_000_2])
        }),
        ("000.grad_f: differs", |file| file.floats("000.grad_f", &[1, 3], &[1.0, 2.0, 3.001])),
    ];
    every_damage_is_noticed(&File::persistence(), damages);
    let mut none = File::persistence();
    none.without("000.");
    none.texts.insert("cases".to_owned(), "[]".to_owned());
    assert_eq!(none.complaint().as_deref(), Some("the file holds nothing to compare"));
}
