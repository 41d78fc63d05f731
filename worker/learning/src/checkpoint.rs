//! A fold in the middle of its training, as bytes: parameters, optimiser, schedule, best network so far, learning
//! curve. One safetensors file whose metadata says what it belongs to. Streams of random numbers have no position
//! but the epoch, so nothing else is needed to go on with the same bits. A *model* is the same file with the best
//! network alone: it can be looked at, but not continued.
//! Owns the form and what makes a file foreign; must not touch files and knows no epochs loop.

use std::collections::{BTreeMap, HashMap};

use safetensors::{Dtype, SafeTensors, tensor::TensorView};
use serde::{Deserialize, Serialize};
use tch::{Device, Kind, Tensor};
use togl_data::Dataset;
use togl_sweeps::result::EpochRecord;
use togl_sweeps::trial::{NUMERICS, TrialConfig};
use togl_sweeps::{Attempt, FoldKey};

use crate::adam::{Adam, AdamState};
use crate::error::{Result, TrainError};
use crate::job::Job;
use crate::parameters::{ParameterValues, Parameters};
use crate::reference;
use crate::schedule::Plateau;

/// The version of the form that this program writes and reads.
pub const FORMAT: u32 = 1;

/// Folders of names inside a file.
const NOW: &str = "now/";
const BEST: &str = "best/";
const FIRST: &str = "first/";
const SECOND: &str = "second/";

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Content {
    /// Training can go on from it.
    Checkpoint,
    /// The best network only.
    Model,
}

/// What a file belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the form.
    pub format: u32,
    /// Version of the numbers.
    pub numerics: u32,
    /// What it is for.
    pub content: Content,
    /// The fold.
    pub fold: FoldKey,
    /// Canonical JSON of its trial.
    pub config: String,
    /// Digest of the data set.
    pub data_digest: String,
    /// Kind of device: `cpu`, `cuda` or `mps`.
    pub device: String,
    /// Epochs that are done.
    pub epochs: u32,
    /// The attempt that wrote it; 0 without a coordinator.
    pub attempt: Attempt,
}

impl Header {
    /// The header of a job's files before its first epoch.
    pub fn of(job: &Job<'_>, dataset: &Dataset) -> Self {
        Self {
            format: FORMAT,
            numerics: NUMERICS,
            content: Content::Checkpoint,
            fold: FoldKey { trial: job.trial.id(), split: job.split, seed: job.seed },
            config: job.trial.canonical(),
            data_digest: dataset.digest().to_string(),
            device: job.device.kind().to_owned(),
            epochs: 0,
            attempt: Attempt(0),
        }
    }

    /// What a file says it belongs to; its tensors are not looked at.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let damaged = |what: &dyn std::fmt::Display| bad(format!("torn or not a checkpoint ({what})"));
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| damaged(&error))?;
        let header = metadata.metadata().as_ref().and_then(|texts| texts.get("togl"));
        let header = header.ok_or_else(|| damaged(&"no metadata `togl`"))?;
        refuse_other_versions(header)?;
        serde_json::from_str(header).map_err(|error| damaged(&error))
    }

    /// Why a job with this header cannot go on from `other`, if it cannot.
    pub fn misfit(&self, other: &Self) -> Option<String> {
        let differ = |what: &str, ours: &dyn std::fmt::Display, theirs: &dyn std::fmt::Display| {
            Some(format!("it is for {what} {theirs}, not {ours}"))
        };
        if other.content == Content::Model {
            return Some("it is a finished model, which cannot be continued".to_owned());
        }
        if self.fold != other.fold {
            return differ("the fold", &self.fold, &other.fold);
        }
        if self.data_digest != other.data_digest {
            return differ("data with the digest", &self.data_digest, &other.data_digest);
        }
        if self.device != other.device {
            return differ("devices of kind", &self.device, &other.device);
        }
        None
    }
}

/// What training remembers besides tensors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Notes {
    pub plateau: Plateau,
    pub best: EpochRecord,
    pub history: Vec<EpochRecord>,
    /// Seconds of training so far, of all attempts.
    pub seconds: f64,
    pub adam_steps: i64,
}

/// A fold in the middle of its training, or its best network.
#[derive(Debug)]
pub struct Checkpoint {
    /// What it belongs to.
    pub header: Header,
    pub(crate) notes: Notes,
    tensors: BTreeMap<String, Tensor>,
}

fn bad(what: impl std::fmt::Display) -> TrainError {
    TrainError::Checkpoint(what.to_string())
}

impl Checkpoint {
    /// Copies the state of a network in training.
    pub(crate) fn of(
        header: Header,
        notes: Notes,
        parameters: &Parameters,
        adam: &AdamState,
        best: &ParameterValues,
    ) -> Self {
        let mut checkpoint = Self::model(header, notes, parameters, best);
        checkpoint.header.content = Content::Checkpoint;
        let now = parameters.all().iter().map(|entry| (NOW, &entry.name, entry.tensor.detach().copy()));
        let first = adam.moments.iter().map(|(name, first, _)| (FIRST, name, first.shallow_clone()));
        let second = adam.moments.iter().map(|(name, _, second)| (SECOND, name, second.shallow_clone()));
        let more = now.chain(first).chain(second);
        checkpoint.tensors.extend(more.map(|(folder, name, tensor)| (format!("{folder}{name}"), tensor)));
        checkpoint
    }

    /// The best network alone.
    pub(crate) fn model(
        mut header: Header,
        notes: Notes,
        parameters: &Parameters,
        best: &ParameterValues,
    ) -> Self {
        (header.content, header.epochs) = (Content::Model, notes.history.len() as u32);
        let best = parameters.all().iter().zip(best.values());
        let best = best.map(|(entry, tensor)| (format!("{BEST}{}", entry.name), tensor.shallow_clone()));
        Self { header, notes, tensors: best.collect() }
    }

    /// Epoch of the best network so far, from 0.
    pub fn best_epoch(&self) -> u32 {
        self.notes.best.epoch
    }

    /// The trial that it belongs to.
    pub fn trial(&self) -> Result<TrialConfig> {
        TrialConfig::from_canonical(&self.header.config).map_err(bad)
    }

    /// Puts a fresh network and its optimiser into this state; returns the best network.
    pub(crate) fn restore(&self, parameters: &Parameters, adam: &mut Adam) -> Result<ParameterValues> {
        // All of it is looked up before anything is changed.
        let (now, best) = (self.snapshot(NOW, parameters)?, self.best(parameters)?);
        let moments = parameters.trainable().map(|entry| {
            let moment = |folder| self.tensor(folder, &entry.name, &entry.tensor);
            Ok((entry.name.clone(), moment(FIRST)?, moment(SECOND)?))
        });
        let moments = moments.collect::<Result<_>>()?;
        adam.load(&AdamState { step: self.notes.adam_steps, moments })?;
        parameters.restore(&now);
        Ok(best)
    }

    /// The values of the best network, in the order of `parameters`.
    pub(crate) fn best(&self, parameters: &Parameters) -> Result<ParameterValues> {
        self.snapshot(BEST, parameters)
    }

    fn snapshot(&self, folder: &str, parameters: &Parameters) -> Result<ParameterValues> {
        let all = parameters.all().iter();
        Ok(ParameterValues::new(
            all.map(|entry| self.tensor(folder, &entry.name, &entry.tensor)).collect::<Result<_>>()?,
        ))
    }

    /// A tensor that must be there, with the shape and on the device of `like`.
    fn tensor(&self, folder: &str, name: &str, like: &Tensor) -> Result<Tensor> {
        let tensor = self.tensors.get(&format!("{folder}{name}"));
        let tensor = tensor.ok_or_else(|| bad(format!("it has no tensor `{folder}{name}`")))?;
        if tensor.size() != like.size() {
            let (has, needs) = (tensor.size(), like.size());
            return Err(bad(format!("`{folder}{name}` has shape {has:?}, the network needs {needs:?}")));
        }
        Ok(tensor.f_to_device(like.device())?)
    }

    /// The bytes of its file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let data: Vec<(&String, Vec<usize>, Vec<u8>)> = self
            .tensors
            .iter()
            .map(|(name, tensor)| Ok((name, shape(tensor), floats(tensor)?)))
            .collect::<Result<_>>()?;
        let header = serde_json::to_string(&self.header).map_err(bad)?;
        let notes = serde_json::to_string(&self.notes).map_err(bad)?;
        let sum = checksum(&header, &notes, data.iter().map(|(name, _, bytes)| (name.as_str(), &bytes[..])));
        let texts = [("togl", header), ("progress", notes), ("checksum", sum)];
        let texts: HashMap<_, _> = texts.map(|(key, text)| (key.to_owned(), text)).into();
        let views = data.iter().map(|(name, shape, bytes)| {
            Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes).map_err(bad)?))
        });
        let views = views.collect::<Result<Vec<_>>>()?;
        safetensors::serialize(views, Some(texts)).map_err(bad)
    }

    /// Reads a file. Torn, damaged, newer and other files are refused with the reason.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let damaged = |what: &dyn std::fmt::Display| bad(format!("torn or not a checkpoint ({what})"));
        let file = SafeTensors::deserialize(bytes).map_err(|error| damaged(&error))?;
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|error| damaged(&error))?;
        let texts = metadata.metadata().as_ref();
        let text = |key: &str| {
            let text = texts.and_then(|texts| texts.get(key));
            text.ok_or_else(|| damaged(&format!("no metadata `{key}`")))
        };
        let header = text("togl")?;
        refuse_other_versions(header)?;
        let tensors: BTreeMap<&str, TensorView<'_>> = file.iter().collect();
        let data = tensors.iter().map(|(name, view)| (*name, view.data()));
        if checksum(header, text("progress")?, data) != *text("checksum")? {
            return Err(bad("damaged: its checksum is wrong"));
        }
        let decode = |(name, view): (&str, TensorView<'_>)| Ok((name.to_owned(), reference::decode(&view)?));
        Ok(Self {
            header: serde_json::from_str(header).map_err(|error| damaged(&error))?,
            notes: serde_json::from_str(text("progress")?).map_err(|error| damaged(&error))?,
            tensors: tensors.into_iter().map(decode).collect::<Result<_>>()?,
        })
    }
}

/// Before the rest is read: another version may have other fields.
fn refuse_other_versions(header: &str) -> Result<()> {
    #[derive(Deserialize)]
    struct Versions {
        format: u32,
        numerics: u32,
    }
    let found: Versions = serde_json::from_str(header).map_err(bad)?;
    match (found.format, found.numerics) {
        (FORMAT, NUMERICS) => Ok(()),
        (format, numerics) => Err(bad(format!(
            "written by another version (form {format}, numerics {numerics}; this program has {FORMAT} and {NUMERICS})"
        ))),
    }
}

/// Of everything in a file, in the order of names.
fn checksum<'a>(header: &str, notes: &str, tensors: impl Iterator<Item = (&'a str, &'a [u8])>) -> String {
    let mut hasher = blake3::Hasher::new();
    let texts = [header.as_bytes(), notes.as_bytes()].into_iter();
    for part in texts.chain(tensors.flat_map(|(name, bytes)| [name.as_bytes(), bytes])) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().to_string()
}

fn shape(tensor: &Tensor) -> Vec<usize> {
    tensor.size().into_iter().map(|length| length as usize).collect()
}

fn floats(tensor: &Tensor) -> Result<Vec<u8>> {
    if tensor.kind() != Kind::Float {
        return Err(bad(format!("parameters of kind {:?} cannot be saved", tensor.kind())));
    }
    let values = Vec::<f32>::try_from(tensor.f_to_device(Device::Cpu)?.f_reshape([-1])?)?;
    Ok(values.into_iter().flat_map(f32::to_le_bytes).collect())
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
