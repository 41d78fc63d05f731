//! MNIST and CIFAR-10 as graphs of superpixels: where the image files may lie, which images form which part,
//! and the work on all of them in parallel. The graph of one image is made by `superpixels`; nothing is
//! stored here.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::builder::DatasetBuilder;
use crate::catalogue::OpenOptions;
use crate::dataset::{Dataset, Task};
use crate::error::Error;
use crate::features::FeatureChoice;
use crate::files::FileSet;
use crate::progress::{DataObserver, DataProgress, DataWork};
use crate::splits::{Split, SplitRule};
use crate::superpixels::{PixelGraph, Recipe, graph_of};
use crate::{cifar, idx};

const CLASSES: u32 = 10;
pub(crate) const SPLIT_RULE: SplitRule = SplitRule::Published { splits: 1 };
/// Row and column follow the intensities.
const POSITION: usize = 2;
const IMAGES_PER_REPORT: u64 = 100;
/// Graphs that may wait for their place in the data set.
const IMAGES_AT_ONCE: usize = 4096;

/// Labelled images of one size; pixels in planes, one a channel.
#[derive(Debug)]
pub(crate) struct Images {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channels: usize,
    pub(crate) pixels: Vec<u8>,
    pub(crate) labels: Vec<u8>,
}

impl Images {
    pub(crate) fn empty(height: usize, width: usize, channels: usize) -> Images {
        Images { height, width, channels, pixels: Vec::new(), labels: Vec::new() }
    }

    fn len(&self) -> usize {
        self.labels.len()
    }

    fn planes(&self, index: usize) -> &[u8] {
        let size = self.height * self.width * self.channels;
        &self.pixels[index * size..(index + 1) * size]
    }
}

/// A data set of labelled images.
pub(crate) struct ImageSource {
    name: &'static str,
    recipe: Recipe,
    /// Images of the complete training and test files: a smaller set keeps their shares.
    full: [usize; 2],
    /// One in this many training images, the first of the file, is for validation.
    validation_share: usize,
    places: fn(&Path) -> Vec<PathBuf>,
    files: fn(&Path) -> Vec<PathBuf>,
    read: fn(&Path, bool, Option<usize>) -> Result<Images, Error>,
}

pub(crate) static MNIST: ImageSource = ImageSource {
    name: "mnist",
    recipe: Recipe { compactness: 0.25, wanted: 95, most: 75 },
    full: [60_000, 10_000],
    validation_share: 12,
    places: mnist_places,
    files: mnist_files,
    read: read_mnist,
};

pub(crate) static CIFAR10: ImageSource = ImageSource {
    name: "cifar10",
    recipe: Recipe { compactness: 10.0, wanted: 200, most: 150 },
    full: [50_000, 10_000],
    validation_share: 10,
    places: cifar::places,
    files: cifar::files,
    read: cifar::read,
};

impl ImageSource {
    pub(crate) fn open(&self, options: &OpenOptions, observer: DataObserver<'_>) -> Result<Dataset, Error> {
        let with_position = self.with_position(options.features)?;
        let place = self.place(options)?;
        let [training, test] = match options.graphs {
            None => [(self.read)(&place, true, None)?, (self.read)(&place, false, None)?],
            Some(graphs) => self.read_first(&place, graphs)?,
        };
        let total = training.len() + test.len();
        let count = Counter { done: AtomicU64::new(0), total: total as u64, observer };
        let width = training.channels + if with_position { POSITION } else { 0 };
        let mut builder = DatasetBuilder::new(self.name, Task::GraphClassification, CLASSES, width);
        for images in [&training, &test] {
            append(&mut builder, images, self.recipe, with_position, &count);
        }
        let split = self.split(training.len(), test.len());
        let dataset = builder.split_by(SPLIT_RULE, vec![split]).finish();
        dataset.map_err(|source| Error::Structure { dataset: self.name.to_string(), source })
    }

    pub(crate) fn inputs(&self, options: &OpenOptions) -> Vec<PathBuf> {
        self.place(options).map(|place| (self.files)(&place)).unwrap_or_default()
    }

    fn with_position(&self, features: FeatureChoice) -> Result<bool, Error> {
        match features {
            FeatureChoice::AsPublished | FeatureChoice::Attributes => Ok(true),
            FeatureChoice::Colour => Ok(false),
            other => {
                let reason = "superpixels have colour and position";
                Err(Error::bad_option(self.name, "features", format!("{other:?}"), reason))
            }
        }
    }

    fn place(&self, options: &OpenOptions) -> Result<PathBuf, Error> {
        let places = options.data_dir.as_deref().map(self.places).unwrap_or_default();
        let found = places.iter().find(|place| place.exists()).cloned();
        found.ok_or_else(|| Error::missing(self.name, places))
    }

    /// The first of the training file and the first of the test file, in the shares of the complete files.
    fn read_first(&self, place: &Path, graphs: usize) -> Result<[Images; 2], Error> {
        let [training, test] = self.full;
        let first_test = graphs.min(training + test) * test / (training + test);
        let sizes = [graphs - first_test, first_test];
        let images = [(self.read)(place, true, Some(sizes[0]))?, (self.read)(place, false, Some(sizes[1]))?];
        if graphs == 0 || images.iter().zip(sizes).any(|(images, size)| images.len() < size) {
            let reason =
                "choose as many images as the files hold, in the shares of the complete files, or fewer";
            return Err(Error::bad_option(self.name, "graphs", graphs, reason));
        }
        Ok(images)
    }

    /// Validation is the start of the training file, training the rest of it.
    fn split(&self, training: usize, test: usize) -> Split {
        let validation = (training / self.validation_share) as u32;
        let (training, end) = (training as u32, (training + test) as u32);
        Split {
            train: (validation..training).collect(),
            validation: (0..validation).collect(),
            test: (training..end).collect(),
        }
    }
}

/// Tells the observer about every hundredth image and about the last.
struct Counter<'a> {
    done: AtomicU64,
    total: u64,
    observer: DataObserver<'a>,
}

impl Counter<'_> {
    fn one_more(&self) {
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        if done.is_multiple_of(IMAGES_PER_REPORT) || done == self.total {
            (self.observer)(DataProgress { work: DataWork::Superpixels, done, total: Some(self.total) });
        }
    }
}

fn append(
    builder: &mut DatasetBuilder,
    images: &Images,
    recipe: Recipe,
    with_position: bool,
    count: &Counter<'_>,
) {
    let indices: Vec<usize> = (0..images.len()).collect();
    let stored = images.channels + POSITION;
    let kept = if with_position { stored } else { images.channels };
    for portion in indices.chunks(IMAGES_AT_ONCE) {
        let graphs = portion.par_iter().map(|index| {
            let graph = graph_of(images.planes(*index), images.height, images.width, recipe);
            count.one_more();
            graph
        });
        let graphs: Vec<PixelGraph> = graphs.collect();
        for (graph, index) in graphs.iter().zip(portion) {
            let rows = graph.features.chunks_exact(stored).flat_map(|row| &row[..kept]).copied();
            let label = u32::from(images.labels[*index]);
            builder.push_directed(&graph.sources, &graph.targets, rows, &[label]);
        }
    }
}

fn mnist_places(data_dir: &Path) -> Vec<PathBuf> {
    vec![data_dir.join("mnist"), data_dir.join("MNIST").join("raw")]
}

/// The four files, each as it is there; plain where it is not.
fn mnist_files(place: &Path) -> Vec<PathBuf> {
    let kinds = ["images-idx3", "labels-idx1"];
    let names =
        ["train", "t10k"].into_iter().flat_map(|part| kinds.map(|kind| format!("{part}-{kind}-ubyte")));
    let compressed = |name: &String| place.join(format!("{name}.gz"));
    names
        .map(|name| match place.join(&name) {
            plain if !plain.is_file() && compressed(&name).is_file() => compressed(&name),
            plain => plain,
        })
        .collect()
}

fn read_mnist(place: &Path, training: bool, first: Option<usize>) -> Result<Images, Error> {
    let part = if training { "train" } else { "t10k" };
    let dataset = MNIST.name;
    let missing = || Error::missing(dataset, vec![place.to_path_buf()]);
    let mut files = FileSet::open_first(&[place.to_path_buf()])?.ok_or_else(missing)?;
    let images =
        idx::read_images(&mut files.required(dataset, &format!("{part}-images-idx3-ubyte"))?, first)?;
    let mut labels_file = files.required(dataset, &format!("{part}-labels-idx1-ubyte"))?;
    let labels = idx::read_labels(&mut labels_file, first)?;
    let count = images.pixels.len() / (images.height * images.width);
    if labels.len() != count {
        return Err(labels_file.damaged(format!("{} labels for {count} images", labels.len())));
    }
    Ok(Images { height: images.height, width: images.width, channels: 1, pixels: images.pixels, labels })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The real files, where they are.
    fn real(source: &ImageSource) -> Option<PathBuf> {
        let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
        let data_dir = Some(std::env::var_os("TOGL_DATA").map_or_else(beside, PathBuf::from));
        let place = source.place(&OpenOptions { data_dir, ..OpenOptions::default() });
        place
            .inspect_err(|_| eprintln!("skipped: no {} in TOGL_DATA or beside the project", source.name))
            .ok()
    }

    #[test]
    fn all_digits_are_read_and_have_their_published_mean() {
        let Some(place) = real(&MNIST) else { return };
        let training = read_mnist(&place, true, None).expect("sound files");
        assert_eq!((training.len(), training.height, training.width), (60_000, 28, 28));
        assert_eq!(read_mnist(&place, false, None).expect("sound files").len(), 10_000);
        let sum: u64 = training.pixels.iter().map(|pixel| u64::from(*pixel)).sum();
        let mean = sum as f64 / 255.0 / training.pixels.len() as f64;
        assert!((mean - 0.13066).abs() < 5e-6, "{mean}");
    }

    #[test]
    fn photographs_come_in_five_training_batches_and_one_of_tests() {
        let Some(place) = real(&CIFAR10) else { return };
        let [training, test] =
            [true, false].map(|training| (CIFAR10.read)(&place, training, None).expect("sound"));
        assert_eq!(training.len(), 5 * test.len(), "400 of each in a part of the set, 10,000 in all of it");
        assert_eq!((training.channels, training.planes(0).len()), (3, 3072));
    }
}
