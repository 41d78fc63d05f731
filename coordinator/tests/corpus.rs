//! The corpus of the fuzz targets and seeded mutations of it, through the same functions: a short run of what `fuzz/`
//! does for as long as one likes. No bytes of a store may panic whoever reads it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use togl_coordinator::hostile;

const SEED: u64 = 20_261;

/// What readers of stores may stumble over.
const PIECES: [&[u8]; 8] = [
    b"-1",
    b"1e999",
    b"null",
    b"\"",
    b"}",
    &[0xff; 8],
    &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
    &[0; 9],
];

/// The inputs of one target, by name.
fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| (file.clone(), std::fs::read(file).unwrap())).collect()
}

/// Says which input it was if the reader panics.
struct Told<'a>(&'a Path, usize);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("mutation {} of {}, seed {SEED}", self.1, self.0.display());
        }
    }
}

/// A few bytes changed in place, or a piece put over others; sometimes the end is missing.
fn mutated(sound: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    for _ in 0..1 + random.next_u32() % 6 {
        let mut below = |limit: usize| random.next_u64() as usize % limit.max(1);
        let at = below(bytes.len());
        match below(8) {
            0 => bytes.truncate(at),
            1 | 2 => {
                let piece = PIECES[below(PIECES.len())];
                bytes.iter_mut().skip(at).zip(piece).for_each(|(byte, other)| *byte = *other);
            }
            _ => {
                let value = below(256) as u8;
                bytes.get_mut(at).into_iter().for_each(|byte| *byte = value);
            }
        }
    }
    bytes
}

/// Runs the corpus and mutations of it; gives how many of each came through.
fn run(target: &str, mutations: usize, reader: impl Fn(&[u8]) -> bool) -> (usize, usize) {
    let inputs = corpus(target);
    let mut sound = 0;
    for (file, bytes) in &inputs {
        let _told = Told(file, 0);
        sound += usize::from(reader(bytes));
    }
    assert!(sound > 0, "{target}: nothing of the corpus is accepted, so nothing deep is reached");
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut came_through = 0;
    for mutation in 1..=mutations {
        let (file, bytes) = &inputs[mutation % inputs.len()];
        let _told = Told(file, mutation);
        came_through += usize::from(reader(&mutated(bytes, &mut random)));
    }
    (sound, came_through)
}

#[test]
fn no_bytes_of_a_store_file_panic_whoever_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("store");
    let (_, came_through) = run("store", 600, |bytes| hostile::store(bytes, &place));
    assert!(came_through > 0 && came_through < 600, "{came_through} mutations came through");
}

#[test]
fn no_text_of_a_stored_result_panics_whoever_reads_it() {
    let (_, came_through) = run("result", 4_000, hostile::stored_result);
    assert!(came_through > 0 && came_through < 4_000, "{came_through} mutations came through");
}
