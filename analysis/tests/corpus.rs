//! The corpus of the fuzz targets and seeded mutations of it, through the same function: a short run of what `fuzz/` does
//! for as long as one likes. `folds.FORMAT` is a sound file; every other one was found by fuzzing and must be refused. Whatever stands in a file of folds, reading it neither panics nor changes what it says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use togl_analysis::FoldFrame;

const SEED: u64 = 20_261;

/// What readers of tables may stumble over.
const PIECES: [&[u8]; 8] =
    [b"-1", b"1e999", b"\"", b",,,,", b"\n", &[0xff; 8], &[0xff, 0xff, 0xff, 0x7f], &[0; 9]];

/// A small generator whose numbers are the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

fn sound(format: &str) -> (PathBuf, Vec<u8>) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fuzz/corpus/{format}/folds.{format}"));
    let bytes = std::fs::read(&file).unwrap();
    (file, bytes)
}

/// A few bytes changed in place, or a piece put over others; sometimes the end is missing.
fn mutated(sound: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len());
        match random.below(8) {
            0 => bytes.truncate(at),
            1 | 2 => {
                let piece = PIECES[random.below(PIECES.len())];
                bytes.iter_mut().skip(at).zip(piece).for_each(|(byte, other)| *byte = *other);
            }
            _ => {
                let value = random.below(256) as u8;
                bytes.get_mut(at).into_iter().for_each(|byte| *byte = value);
            }
        }
    }
    bytes
}

#[test]
fn no_bytes_of_a_file_of_folds_panic_whoever_reads_it() {
    for format in ["parquet", "arrow", "csv", "ndjson"] {
        let (file, bytes) = sound(format);
        FoldFrame::read_bytes(bytes.clone(), &file).unwrap();
        let mut random = Random(SEED);
        let read = |bytes| FoldFrame::read_bytes(bytes, &file).is_ok();
        let came_through = (0..150).filter(|_| read(mutated(&bytes, &mut random))).count();
        assert!(came_through < 150, "{format}, seed {SEED}: every mutation came through");
    }
}

/// Each is named after what it says and what is not so.
#[test]
fn what_fuzzing_found_is_refused() {
    let mut refused = 0;
    for format in ["parquet", "arrow", "csv", "ndjson"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(format);
        for file in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if file.file_stem().unwrap() != "folds" {
                let read = FoldFrame::read_bytes(std::fs::read(&file).unwrap(), &file);
                assert!(read.is_err(), "{} came through", file.display());
                refused += 1;
            }
        }
    }
    assert!(refused > 0, "the corpus has lost what was found");
}

#[test]
fn a_bit_that_a_disk_changed_is_noticed_or_changes_nothing() {
    for format in ["parquet", "arrow"] {
        let (file, bytes) = sound(format);
        let written = FoldFrame::read_bytes(bytes.clone(), &file).unwrap();
        let mut random = Random(SEED);
        let mut noticed = 0;
        for flip in 0..250 {
            let mut bytes = bytes.clone();
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
            match FoldFrame::read_bytes(bytes, &file) {
                Ok(read) => {
                    assert_eq!(read.data(), written.data(), "{format}, flip {flip} at byte {at}, seed {SEED}")
                }
                Err(_) => noticed += 1,
            }
        }
        assert!(noticed > 100, "{format}: {noticed} flips were noticed");
    }
}
