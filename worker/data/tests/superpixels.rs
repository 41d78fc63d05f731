//! Image files as graphs of superpixels: small files written by the tests with every kind of damage, and the
//! real files, where they are, against scikit-image and the published statistics.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use flate2::Compression;
use flate2::write::GzEncoder;
use togl_data::{Dataset, Error, FeatureChoice, OpenOptions, SplitRule, check, open};

/// Nodes of the first graphs, from scikit-image 0.26 (see the unit tests of the segmentation).
const MNIST_NODES: [usize; 24] =
    [71, 71, 75, 74, 73, 71, 48, 69, 47, 74, 70, 75, 71, 72, 49, 71, 73, 73, 74, 74, 73, 71, 75, 75];
const CIFAR_NODES: [usize; 24] = [
    123, 120, 116, 121, 112, 120, 118, 117, 112, 120, 121, 123, 116, 114, 117, 117, 113, 116, 112, 119, 119,
    109, 121, 119,
];

fn idx(magic: u8, sizes: &[u32], content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, 0, 8, magic];
    sizes.iter().for_each(|size| bytes.extend(size.to_be_bytes()));
    bytes.extend_from_slice(content);
    bytes
}

/// Twelve training and two test images of 12 x 12 pixels with some structure.
fn write_mnist(folder: &Path) {
    std::fs::create_dir_all(folder).expect("folder");
    for (part, count) in [("train", 12u32), ("t10k", 2)] {
        let pixels: Vec<u8> = (0..count * 144).map(|at| (at * at / 50 % 256) as u8).collect();
        let labels: Vec<u8> = (0..count).map(|number| (number % 10) as u8).collect();
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&idx(3, &[count, 12, 12], &pixels)).expect("in memory");
        let images = encoder.finish().expect("in memory");
        std::fs::write(folder.join(format!("{part}-images-idx3-ubyte.gz")), images).expect("file");
        std::fs::write(folder.join(format!("{part}-labels-idx1-ubyte")), idx(1, &[count], &labels))
            .expect("file");
    }
}

fn batch(images: usize, salt: usize) -> Vec<u8> {
    (0..images * 3073)
        .map(|at| if at % 3073 == 0 { (at / 3073 % 10) as u8 } else { ((at + salt) * 31 / 7 % 256) as u8 })
        .collect()
}

fn write_cifar(folder: &Path) {
    std::fs::create_dir_all(folder).expect("folder");
    for number in 1..=5 {
        std::fs::write(folder.join(format!("data_batch_{number}.bin")), batch(2, number)).expect("file");
    }
    std::fs::write(folder.join("test_batch.bin"), batch(2, 9)).expect("file");
}

fn options(data_dir: &Path) -> OpenOptions {
    OpenOptions { data_dir: Some(data_dir.to_path_buf()), ..OpenOptions::default() }
}

fn problem(name: &str, data_dir: &Path) -> String {
    open(name, &options(data_dir)).expect_err("damaged files").to_string()
}

#[test]
fn mnist_becomes_graphs_with_intensity_and_position_split_by_file() {
    let folder = tempfile::tempdir().expect("temporary folder");
    write_mnist(&folder.path().join("mnist"));
    let dataset = open("MNIST", &options(folder.path())).expect("sound files");
    assert_eq!((dataset.graph_count(), dataset.classes(), dataset.feature_width()), (14, 10, 3));
    assert_eq!(dataset.split_rule(), SplitRule::Published { splits: 1 });
    let split = dataset.split(0).expect("one split");
    assert_eq!(split.validation, [0], "one in twelve, the first of the training file");
    assert_eq!((split.train.len(), split.test), (11, vec![12, 13]));
    for graph in dataset.graphs() {
        assert!((2..=75).contains(&graph.node_count));
        assert_eq!(graph.sources.len(), graph.node_count * 8.min(graph.node_count - 1));
        assert!(graph.features.iter().all(|value| (0.0..=1.0).contains(value)));
    }
    let colour = OpenOptions { features: FeatureChoice::Colour, ..options(folder.path()) };
    let colour = open("mnist", &colour).expect("sound files");
    assert_eq!(colour.feature_width(), 1);
    assert_eq!(colour.graph(3).targets, dataset.graph(3).targets, "the same edges");
    assert_eq!(colour.graph(3).features[1], dataset.graph(3).features[3]);
}

#[test]
fn a_smaller_set_is_the_start_of_both_files() {
    let folder = tempfile::tempdir().expect("temporary folder");
    write_mnist(&folder.path().join("mnist"));
    let all = open("mnist", &options(folder.path())).expect("sound files");
    let few = OpenOptions { graphs: Some(7), ..options(folder.path()) };
    let few = open("mnist", &few).expect("fewer images");
    assert_eq!(few.graph_count(), 7);
    assert_eq!(few.graph(5).features, all.graph(5).features);
    assert_eq!(few.graph(6).features, all.graph(12).features, "six training images, then one test image");
    for wrong in [0, 15, 1_000_000] {
        let options = OpenOptions { graphs: Some(wrong), ..options(folder.path()) };
        assert!(matches!(open("mnist", &options), Err(Error::BadOption { option: "graphs", .. })), "{wrong}");
    }
}

#[test]
fn cifar_is_read_from_a_folder_and_from_the_archive_alike() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let batches = folder.path().join("cifar10-subset");
    write_cifar(&batches);
    let unpacked = open("cifar10", &options(folder.path())).expect("sound files");
    assert_eq!((unpacked.graph_count(), unpacked.feature_width()), (12, 5));
    assert_eq!(unpacked.split(0).expect("one split").validation, [0]);
    let packed = tempfile::tempdir().expect("temporary folder");
    write_archive(&packed.path().join("cifar-10-binary.tar.gz"), &batches);
    let archived = open("cifar10", &options(packed.path())).expect("sound archive");
    assert_eq!(archived.digest(), unpacked.digest());
    let few = OpenOptions { graphs: Some(6), ..options(packed.path()) };
    assert_eq!(open("cifar10", &few).expect("fewer").graph(4).features, unpacked.graph(4).features);
}

/// Members in another order than that of the batches, as in the official archive.
fn write_archive(path: &Path, batches: &Path) {
    let mut encoder = GzEncoder::new(std::fs::File::create(path).expect("file"), Compression::fast());
    for name in ["data_batch_4", "readme", "data_batch_1", "data_batch_5", "test_batch", "data_batch_2"]
        .into_iter()
        .chain(["data_batch_3"])
    {
        let content = std::fs::read(batches.join(format!("{name}.bin"))).unwrap_or_else(|_| vec![b'x'; 88]);
        let mut header = [0u8; 512];
        let full = format!("cifar-10-batches-bin/{name}.bin");
        header[..full.len()].copy_from_slice(full.as_bytes());
        header[124..136].copy_from_slice(format!("{:011o} ", content.len()).as_bytes());
        encoder.write_all(&header).expect("in memory");
        encoder.write_all(&content).expect("in memory");
        encoder.write_all(&vec![0; content.len().next_multiple_of(512) - content.len()]).expect("in memory");
    }
    encoder.write_all(&[0; 1024]).expect("in memory");
    encoder.finish().expect("a complete archive");
}

#[test]
fn damaged_image_files_are_named() {
    let folder = tempfile::tempdir().expect("temporary folder");
    let mnist = folder.path().join("mnist");
    write_mnist(&mnist);
    std::fs::write(mnist.join("train-labels-idx1-ubyte"), idx(1, &[11], &[0; 11])).expect("file");
    assert!(problem("mnist", folder.path()).contains("train-labels-idx1-ubyte: 11 labels for 12 images"));
    std::fs::write(mnist.join("train-labels-idx1-ubyte"), idx(1, &[12], &[10; 12])).expect("file");
    assert!(problem("mnist", folder.path()).contains("mnist is not a sound data set"));
    std::fs::remove_file(mnist.join("train-labels-idx1-ubyte")).expect("file");
    assert!(problem("mnist", folder.path()).contains("train-labels-idx1-ubyte"));
    let images = std::fs::read(mnist.join("train-images-idx3-ubyte.gz")).expect("file");
    std::fs::write(mnist.join("train-images-idx3-ubyte.gz"), &images[..images.len() / 2]).expect("file");
    assert!(problem("mnist", folder.path()).contains("train-images-idx3-ubyte.gz"));
    let cifar = folder.path().join("cifar10");
    write_cifar(&cifar);
    std::fs::write(cifar.join("data_batch_2.bin"), [0; 5000]).expect("file");
    let found = problem("cifar10", folder.path());
    assert!(
        found.ends_with("data_batch_2.bin: 5000 bytes are not a whole number of 3073-byte records"),
        "{found}"
    );
    std::fs::remove_file(cifar.join("data_batch_2.bin")).expect("file");
    assert!(problem("cifar10", folder.path()).contains("data_batch_2.bin"));
    let error = open("cifar10", &options(Path::new("nowhere"))).expect_err("no files");
    assert!(error.to_string().contains("nowhere/cifar10/cifar-10-binary.tar.gz"), "{error}");
    let hint = error.hint().expect("a way out");
    assert!(hint.starts_with("get them with `togl data fetch cifar10`"), "{hint}");
}

#[test]
fn the_observer_hears_of_every_image_exactly_once() {
    let folder = tempfile::tempdir().expect("temporary folder");
    write_mnist(&folder.path().join("mnist"));
    let heard = Mutex::new(Vec::new());
    let observer = |progress: togl_data::DataProgress| heard.lock().expect("no panic").push(progress);
    togl_data::open_observed("mnist", &options(folder.path()), &observer).expect("sound files");
    let heard = heard.into_inner().expect("no panic");
    assert_eq!(heard.last().map(|last| (last.done, last.total)), Some((14, Some(14))));
}

fn real(name: &str, folder: &str, graphs: Option<usize>) -> Option<Dataset> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data_dir = std::env::var_os("TOGL_DATA").map_or_else(beside, PathBuf::from);
    if !data_dir.join(folder).exists() {
        eprintln!("skipped: no {folder} in {} (set TOGL_DATA to its folder)", data_dir.display());
        return None;
    }
    let options = OpenOptions { data_dir: Some(data_dir), graphs, ..OpenOptions::default() };
    Some(open(name, &options).unwrap_or_else(|error| panic!("{name}: {error}")))
}

fn assert_published(dataset: &Dataset, nodes: &[usize], mean: f64, range: std::ops::RangeInclusive<usize>) {
    let found: Vec<usize> = dataset.graphs().map(|graph| graph.node_count).collect();
    assert_eq!(found[..nodes.len()], *nodes);
    assert!(
        found.iter().all(|count| range.contains(count)),
        "{:?} {:?}",
        found.iter().min(),
        found.iter().max()
    );
    let found = dataset.node_count() as f64 / dataset.graph_count() as f64;
    assert!((found - mean).abs() < 1.0, "{found} nodes on average, published {mean}");
    assert_eq!(dataset.directed_edge_count(), 8 * dataset.node_count());
    assert_eq!(check(dataset).problems, Vec::<String>::new());
}

#[test]
fn many_digits_have_the_published_sizes() {
    let Some(dataset) = real("mnist", "mnist", Some(1000)) else { return };
    assert_published(&dataset, &MNIST_NODES, 70.57, 40..=75);
    assert_eq!(dataset.labels()[..5], [5, 0, 4, 1, 9]);
    let split = dataset.split(0).expect("one split");
    assert_eq!([split.train.len(), split.validation.len(), split.test.len()], [787, 71, 142]);
}

#[test]
fn photographs_have_the_published_sizes() {
    let Some(dataset) = real("cifar10", "cifar10-subset", Some(1000)) else { return };
    assert_published(&dataset, &CIFAR_NODES, 117.63, 85..=150);
    assert_eq!(dataset.labels()[..5], [6, 9, 9, 4, 1]);
}
