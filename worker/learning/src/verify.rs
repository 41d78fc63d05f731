//! Compares this crate with reference vectors of the published implementation: persistence pairs and their
//! gradients exactly or to rounding, and whole networks (outputs, loss, running statistics, gradients, evaluation).
//! Reads files it is given; the comparison is what the `verify` command and the tests report.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tch::{Kind, Tensor};
use togl_data::Stage;
use togl_topology::EdgeLists;

use crate::batch::{BatchNeeds, Collator, DrawKey};
use crate::device::Device;
use crate::error::{Result, TrainError, guard};
use crate::layers::Pass;
use crate::metrics;
use crate::model::{Model, Shape};
use crate::parameters::{Parameters, same_shape};
use crate::persistence::{Diagrams, Pairs};
use crate::reference::{Reference, Width};
use crate::reference_names::{count, our_name, trial_of};

/// Allowed absolute difference.
pub const ABSOLUTE: f64 = 1e-5;
/// Allowed difference relative to the reference value.
pub const RELATIVE: f64 = 1e-4;

/// How one reference file compares.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseReport {
    /// Name of the file, without folder and ending.
    pub case: String,
    /// Values compared.
    pub values: u64,
    /// Largest absolute difference.
    pub largest_error: f64,
    /// Largest difference as a share of what is allowed; above 1 is a failure.
    pub worst_share: f64,
    /// The tensor with that share.
    pub worst_tensor: String,
    /// Tensors that differ by more than is allowed.
    pub failures: Vec<String>,
}

impl CaseReport {
    fn new(path: &Path) -> Self {
        let case = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let (worst_tensor, failures) = (String::new(), Vec::new());
        Self { case, values: 0, largest_error: 0.0, worst_share: 0.0, worst_tensor, failures }
    }

    /// Whether everything agrees.
    pub fn passed(&self) -> bool {
        self.failures.is_empty() && self.values > 0
    }

    fn compare(
        &mut self,
        name: &str,
        ours: &Tensor,
        theirs: &Tensor,
        (absolute, relative): (f64, f64),
    ) -> Result<()> {
        if !same_shape(ours, theirs) {
            self.failures.push(format!("{name}: shape {:?} instead of {:?}", ours.size(), theirs.size()));
            return Ok(());
        }
        if theirs.numel() == 0 {
            return Ok(());
        }
        let host =
            |tensor: &Tensor| tensor.detach().to_device(tch::Device::Cpu).to_kind(Kind::Double).reshape([-1]);
        let (ours, theirs) = (host(ours), host(theirs));
        let error = (&ours - &theirs).abs();
        let share = (&error / (theirs.abs() * relative + absolute)).max().f_double_value(&[])?;
        let largest = error.max().f_double_value(&[])?;
        self.values += theirs.numel() as u64;
        self.largest_error = self.largest_error.max(largest);
        if share > self.worst_share || share.is_nan() {
            (self.worst_share, self.worst_tensor) = (share, name.to_owned());
        }
        if share.is_nan() || share > 1.0 {
            self.failures.push(format!("{name}: differs by {largest:e}"));
        }
        Ok(())
    }
}

/// Compares one file, which is either persistence cases or one network.
///
/// # Errors
/// A file that cannot be read or does not have the layout; a difference is not an error but part of the report.
pub fn verify_file(path: &Path, device: Device) -> Result<CaseReport> {
    let device = device.open()?;
    let reference = Reference::read(path)?;
    let mut report = CaseReport::new(path);
    guard(|| {
        if reference.has_text("cases") {
            verify_persistence(&reference, device, &mut report)?;
        } else {
            verify_model(&reference, device, &mut report)?;
        }
        if report.values == 0 {
            report.failures.push("the file holds nothing to compare".to_owned());
        }
        Ok(report)
    })
}

/// The reference files of a folder: all `*.safetensors` that lie in it and in its folder `models`, in order of their
/// names. A file is itself.
///
/// # Errors
/// A folder that cannot be read, or has none.
pub fn reference_files(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = files_in(path)?;
    if path.join("models").is_dir() {
        files.extend(files_in(&path.join("models"))?);
    }
    match files.is_empty() {
        true => Err(TrainError::Reference(format!("{} has no reference files", path.display()))),
        false => Ok(files),
    }
}

fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = |error: std::io::Error| TrainError::Reference(format!("{}: {error}", folder.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ending| ending == "safetensors") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn verify_persistence(reference: &Reference, device: tch::Device, report: &mut CaseReport) -> Result<()> {
    let cases: Vec<&str> = reference.below("").filter_map(|(name, _)| name.strip_suffix(".f")).collect();
    let listed = reference.json("cases")?.as_array().map(Vec::len);
    if listed != Some(cases.len()) {
        let listed = listed.map_or_else(|| "no list of".to_owned(), |count| count.to_string());
        return Err(TrainError::Reference(format!("it lists {listed} cases and holds {}", cases.len())));
    }
    for case in cases {
        let tensor = |name: &str| -> Result<Tensor> {
            Ok(reference.tensor(&format!("{case}.{name}"))?.f_to_device(device)?)
        };
        let values = tensor("f")?;
        let &[_, vertices] = &values.size()[..] else {
            return Err(TrainError::Reference(format!("`{case}.f` is not a table")));
        };
        let values = values.transpose(0, 1).contiguous().detach().set_requires_grad(true);
        let edges = reference.indices(&format!("{case}.edges"), &[-1, 2], vertices)?;
        let edges: Vec<[u32; 2]> = edges.as_chunks::<2>().0.to_vec();
        let mut topology = EdgeLists::new();
        topology.push(vertices as usize, &edges)?;
        let diagrams = Diagrams::persistent(&values, &topology)?;
        let mut weighted = Tensor::zeros([], (Kind::Float, device));
        for (pairs, table, weight) in [(diagrams.vertices(), "dim0", "w0"), (diagrams.edges(), "dim1", "w1")]
        {
            let ours = as_table(&pairs);
            report.compare(&format!("{case}.{table}"), &ours, &tensor(table)?, (f64::MIN_POSITIVE, 0.0))?;
            weighted += (ours * tensor(weight)?).sum(Kind::Float);
        }
        weighted.f_backward()?;
        let gradient = values.grad().transpose(0, 1).contiguous();
        report.compare(&format!("{case}.grad_f"), &gradient, &tensor("grad_f")?, (ABSOLUTE, RELATIVE))?;
    }
    Ok(())
}

/// `[k, M, 2]`.
fn as_table(pairs: &Pairs) -> Tensor {
    Tensor::stack(&[&pairs.birth, &pairs.death], 2).transpose(0, 1).contiguous()
}

fn verify_model(reference: &Reference, device: tch::Device, report: &mut CaseReport) -> Result<()> {
    let config = reference.json("config")?;
    let trial = trial_of(&config)?;
    let (features, classes) = (count(&config, "num_node_features")?, count(&config, "num_classes")?);
    let dataset = reference.dataset(Width { features, classes })?;
    let mut parameters = Parameters::new(0, 0, device);
    let model = Model::new(&trial, Shape { features, classes, node_task: false }, &mut parameters)?;
    load(reference, &parameters)?;
    let draws = DrawKey { seed: 0, split: 0, stage: Stage::Training, epoch: 0, step: 0 };
    let graphs: Vec<u32> = (0..dataset.graph_count() as u32).collect();
    let batch = Collator::new(&dataset, BatchNeeds::of(&trial), device).collate(&graphs, draws)?;

    let tolerance = (ABSOLUTE, RELATIVE);
    let scores = model.forward(&Pass { batch: &batch, training: true, draws })?;
    let loss = metrics::loss(dataset.task(), dataset.classes(), &scores, &batch)?;
    loss.f_backward()?;
    report.compare("train.logits", &scores, reference.tensor("train.logits")?, tolerance)?;
    report.compare("train.loss", &loss, reference.tensor("train.loss")?, tolerance)?;
    compare_parameters(reference, &parameters, report)?;
    let _no_grad = tch::no_grad_guard();
    let scores = model.forward(&Pass { batch: &batch, training: false, draws })?;
    report.compare("eval.logits", &scores, reference.tensor("eval.logits")?, tolerance)
}

/// The gradient of every parameter and the new value of every running statistic. A parameter without a part in the loss
/// may have no gradient, there or here; that is a gradient of zero.
fn compare_parameters(reference: &Reference, parameters: &Parameters, report: &mut CaseReport) -> Result<()> {
    for kind in ["grad.", "after."] {
        let theirs: Vec<_> = reference
            .below(kind)
            .filter_map(|(name, tensor)| Some((name, our_name(name)?, tensor)))
            .collect();
        if let Some((name, ours, _)) = theirs.iter().find(|(_, ours, _)| parameters.get(ours).is_none()) {
            return Err(TrainError::Reference(format!("`{kind}{name}` has no counterpart `{ours}`")));
        }
        for entry in parameters.all().iter().filter(|entry| entry.trainable == (kind == "grad.")) {
            let ours = if entry.trainable { entry.tensor.grad() } else { entry.tensor.shallow_clone() };
            let ours = if ours.defined() { ours } else { entry.tensor.zeros_like() };
            let found = theirs.iter().find(|(_, name, _)| *name == entry.name);
            let (name, wanted) = match found {
                Some((name, _, tensor)) => (*name, tensor.shallow_clone()),
                None if entry.trainable => (&*format!("{} (not in the file)", entry.name), ours.zeros_like()),
                None => {
                    report.failures.push(format!("{kind}{}: the file does not have it", entry.name));
                    continue;
                }
            };
            report.compare(&format!("{kind}{name}"), &ours, &wanted, (ABSOLUTE, RELATIVE))?;
        }
    }
    Ok(())
}

/// Sets every parameter and buffer from the file; one that the file does not have is an error.
fn load(reference: &Reference, parameters: &Parameters) -> Result<()> {
    let mut missing: Vec<&str> = parameters.all().iter().map(|entry| entry.name.as_str()).collect();
    for (theirs, values) in reference.below("param.") {
        if let Some(name) = our_name(theirs) {
            parameters.set(&name, values)?;
            missing.retain(|other| *other != name);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(TrainError::Reference(format!("the file has no values for {}", missing.join(", "))))
}
