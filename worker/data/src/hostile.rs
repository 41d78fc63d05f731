//! The readers for bytes from anywhere: one function a format, which the fuzz targets in `fuzz/` and the test of
//! their corpus call. Whatever the bytes are, each returns; `true` says that they were accepted, and then what was
//! made of them is walked through. Not for other use.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use memmap2::MmapMut;

use crate::check::check;
use crate::dataset::Dataset;
use crate::features::FeatureChoice;
use crate::files::{OpenFile, ReadLimits};
use crate::lines::Lines;
use crate::seal::Sealing;
use crate::{cifar, flat, graph6, idx, tu};

/// More are not taken from one input, so that a test is short.
const FIRST_IMAGES: usize = 3;
/// A graph on more vertices is not complemented, for the same reason.
const MOST_VERTICES: u32 = 500;

/// The files of one set in the format of the TU collection: each begins with `#` and its part of the name.
pub fn tu(bytes: &[u8]) -> bool {
    let sections = bytes.split(|byte| *byte == b'#').skip(1);
    let files: Vec<(String, Vec<u8>)> = sections
        .map(|section| {
            let end = section.iter().position(|byte| *byte == b'\n').unwrap_or(section.len());
            let (part, content) = section.split_at(end);
            let name = format!("X_{}.txt", String::from_utf8_lossy(part).trim());
            (name, content.get(1..).unwrap_or_default().to_vec())
        })
        .collect();
    let choices = [
        FeatureChoice::AsPublished,
        FeatureChoice::NodeLabels,
        FeatureChoice::DegreeOneHot { largest: 9 },
        FeatureChoice::DegreeNormalised,
    ];
    let read = choices.map(|choice| tu::read_in_memory("X", files.clone(), choice));
    read.into_iter().flatten().map(|dataset| walk(&dataset)).count() > 0
}

/// An IDX file, of images or of labels.
pub fn idx(bytes: &[u8]) -> bool {
    let file = || OpenFile::new(Box::new(bytes), "memory".to_string(), PathBuf::from("memory"));
    let images = [None, Some(FIRST_IMAGES)].map(|first| idx::read_images(&mut file(), first));
    let labels = [None, Some(FIRST_IMAGES)].map(|first| idx::read_labels(&mut file(), first));
    for images in images.iter().flatten() {
        assert_eq!(images.pixels.len() % (images.height * images.width), 0, "whole images");
    }
    images.iter().any(Result::is_ok) || labels.iter().any(Result::is_ok)
}

/// A batch of CIFAR-10, or an unpacked archive of its test batch.
pub fn cifar(bytes: &[u8]) -> bool {
    cifar::read_bytes(bytes).iter().any(Result::is_ok)
}

/// A list of graphs in graph6.
pub fn graph6(bytes: &[u8]) -> bool {
    let path = PathBuf::from("memory");
    let lines = Lines::new(Box::new(bytes), "memory".to_string(), path, ReadLimits::default());
    let Ok(graphs) = graph6::read_lines(lines) else { return false };
    for graph in graphs.iter().filter(|graph| graph.nodes <= MOST_VERTICES) {
        assert_eq!(graph.complement().complement(), *graph);
    }
    true
}

/// What a cached copy holds after its header; header and seal are added, because no damage gets past them.
pub fn copy(bytes: &[u8]) -> bool {
    let input = [0; 32];
    let mut out = Sealing::new(Vec::new());
    let written = out.write_all(&flat::header(&input)).and_then(|()| out.write_all(bytes));
    let (Ok(()), Ok(sealed)) = (written, out.finish()) else { return false };
    let Ok(mut map) = MmapMut::map_anon(sealed.len()) else { return false };
    map.copy_from_slice(&sealed);
    let Ok(map) = map.make_read_only() else { return false };
    flat::read(&Arc::new(map), &input).is_ok_and(|dataset| {
        walk(&dataset);
        true
    })
}

/// Looks at every part of a data set as those do who train on it.
fn walk(dataset: &Dataset) {
    for graph in dataset.graphs() {
        assert_eq!(graph.features.len(), graph.node_count * graph.feature_width);
    }
    let _ = check(dataset);
}
