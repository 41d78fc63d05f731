//! Random and damaged bytes through every reader: whatever the files hold, the answer is a data set or an
//! error, never a panic, and never much more memory than the files have bytes. Inputs start from sound files,
//! because noise alone does not get deep.

mod bounded;

use std::io::Write;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use togl_data::{
    CacheOutcome, FeatureChoice, OpenOptions, open, open_observed, parse_graph6, read_graph6, read_tu,
};

/// One change to a file.
#[derive(Clone, Debug)]
enum Damage {
    Replace(usize, u8),
    Cut(usize),
    Insert(usize, Vec<u8>),
    Remove(usize, usize),
}

fn damage() -> impl Strategy<Value = Vec<Damage>> {
    let one = prop_oneof![
        4 => (any::<usize>(), any::<u8>()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        4 => (any::<usize>(), b'0'..=b'9').prop_map(|(at, byte)| Damage::Replace(at, byte)),
        1 => any::<usize>().prop_map(Damage::Cut),
        2 => (any::<usize>(), proptest::collection::vec(any::<u8>(), 1..6)).prop_map(|(at, new)| Damage::Insert(at, new)),
        2 => (any::<usize>(), "[0-9\n,-]{1,12}").prop_map(|(at, new)| Damage::Insert(at, new.into_bytes())),
        1 => (any::<usize>(), 1usize..9).prop_map(|(at, count)| Damage::Remove(at, count)),
    ];
    proptest::collection::vec(one, 0..5)
}

fn damaged(sound: &[u8], damage: &[Damage]) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    for change in damage {
        let place = |at: usize| at % (bytes.len() + 1);
        match change {
            Damage::Replace(at, byte) => {
                let at = place(*at);
                if let Some(slot) = bytes.get_mut(at) {
                    *slot = *byte;
                }
            }
            Damage::Cut(at) => bytes.truncate(place(*at)),
            Damage::Insert(at, new) => {
                let at = place(*at);
                bytes.splice(at..at, new.iter().copied());
            }
            Damage::Remove(at, count) => {
                let at = place(*at);
                let end = (at + count).min(bytes.len());
                bytes.drain(at..end);
            }
        }
    }
    bytes
}

fn write(path: &Path, content: &[u8]) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("folder");
    std::fs::write(path, content).expect("file");
}

fn zipped(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).expect("in memory");
    encoder.finish().expect("in memory")
}

const TU: [(&str, &str); 5] = [
    ("X_A.txt", "1, 2\n2, 1\n2, 3\n3, 2\n1, 3\n3, 1\n4, 5\n5, 4\n"),
    ("X_graph_indicator.txt", "1\n1\n1\n2\n2\n"),
    ("X_graph_labels.txt", "1\n-1\n"),
    ("X_node_labels.txt", "3\n5\n3\n3\n5\n"),
    ("X_node_attributes.txt", "0.5, 1\n1,2\n 2.5,-3\n3, 4\n4, 5\n"),
];

/// Three images of 6 x 6 pixels, and their labels.
fn idx_files() -> [Vec<u8>; 2] {
    let pixels: Vec<u8> = (0..108).map(|at| (at * 5 % 256) as u8).collect();
    [
        [&[0, 0, 8, 3, 0, 0, 0, 3, 0, 0, 0, 6, 0, 0, 0, 6], pixels.as_slice()].concat(),
        vec![0, 0, 8, 1, 0, 0, 0, 3, 1, 2, 9],
    ]
}

fn options(data_dir: &Path) -> OpenOptions {
    OpenOptions { data_dir: Some(data_dir.to_path_buf()), ..OpenOptions::default() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn damaged_tu_files_are_a_data_set_or_an_error(which in 0usize..5, changes in damage()) {
        let folder = tempfile::tempdir().expect("temporary folder");
        for (position, (name, content)) in TU.iter().enumerate() {
            let changes = if position == which { changes.as_slice() } else { &[] };
            write(&folder.path().join(name), &damaged(content.as_bytes(), changes));
        }
        for choice in [FeatureChoice::AsPublished, FeatureChoice::NodeLabels, FeatureChoice::DegreeNormalised] {
            let _ = read_tu(folder.path(), "X", choice);
        }
    }

    #[test]
    fn damaged_idx_files_are_a_data_set_or_an_error(
        which in 0usize..2, changes in damage(), outside in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().expect("temporary folder");
        for (position, content) in idx_files().iter().enumerate() {
            let changes = if position == which { changes.as_slice() } else { &[] };
            // The damage is in the compressed bytes or in what they hold.
            let bytes =
                if outside { damaged(&zipped(content), changes) } else { zipped(&damaged(content, changes)) };
            for part in ["train", "t10k"] {
                let kind = ["images-idx3", "labels-idx1"][position];
                write(&folder.path().join(format!("mnist/{part}-{kind}-ubyte.gz")), &bytes);
            }
        }
        let _ = open("mnist", &options(folder.path()));
        let _ = open("mnist", &OpenOptions { graphs: Some(3), ..options(folder.path()) });
    }

    #[test]
    fn damaged_cache_copies_are_never_believed(changes in damage()) {
        let folder = tempfile::tempdir().expect("temporary folder");
        let options = OpenOptions {
            graphs: Some(3),
            cache_dir: Some(folder.path().to_path_buf()),
            ..OpenOptions::default()
        };
        let first = open_observed("cycles", &options, &|_| ()).expect("no files needed");
        let mut copies = std::fs::read_dir(folder.path()).expect("folder").map(|entry| entry.expect("entry").path());
        let copy = copies.find(|path| path.extension().is_some_and(|ending| ending == "togl-data"));
        let copy = copy.expect("a copy");
        let sound = std::fs::read(&copy).expect("file");
        let changed = damaged(&sound, &changes);
        std::fs::write(&copy, &changed).expect("file");
        let second = open_observed("cycles", &options, &|_| ()).expect("no files needed");
        prop_assert_eq!(second.dataset.digest(), first.dataset.digest());
        prop_assert_eq!(second.cache == CacheOutcome::Hit, changed == sound);
    }

    #[test]
    fn damaged_graph6_lists_are_graphs_or_an_error(changes in damage()) {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("list.g6");
        let bytes = damaged(b">>graph6<<\nDQc\nA_\nIsP@OkWHG\n~?@?_______________\n", &changes);
        write(&path, &bytes);
        let _ = read_graph6(&path);
        bytes.split(|byte| *byte == b'\n').for_each(|line| drop(parse_graph6(line)));
    }
}

proptest! {
    // Each case cuts real-sized images into superpixels.
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn damaged_cifar_files_are_a_data_set_or_an_error(
        which in 0usize..7, changes in damage(), noise in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let folder = tempfile::tempdir().expect("temporary folder");
        let batch: Vec<u8> = (0..3073usize).map(|at| if at == 0 { 3 } else { (at / 40 * 9 % 256) as u8 }).collect();
        for number in 0..6 {
            let name = if number == 0 { "test_batch".to_string() } else { format!("data_batch_{number}") };
            let changes = if number == which { changes.as_slice() } else { &[] };
            write(&folder.path().join(format!("cifar10/{name}.bin")), &damaged(&batch, changes));
        }
        let _ = open("cifar10", &options(folder.path()));
        let other = tempfile::tempdir().expect("temporary folder");
        let mut archive = vec![0; 512];
        archive[..18].copy_from_slice(b"x/data_batch_1.bin");
        archive[124..135].copy_from_slice(b"00000006001");
        archive.extend_from_slice(&batch);
        archive.extend_from_slice(&noise);
        let archive = zipped(&damaged(&archive, &changes));
        write(&other.path().join("cifar-10-binary.tar.gz"), &archive);
        prop_assert!(open("cifar10", &options(other.path())).is_err(), "five batches are missing");
    }
}
