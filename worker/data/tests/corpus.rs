//! The corpus of the fuzz targets and seeded mutations of it, through the same functions: a short run of what
//! `fuzz/` does for as long as one likes. No input may panic or take much memory.

mod bounded;

use std::path::PathBuf;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use togl_data::hostile;

const SEED: u64 = 20_231;
const MUTATIONS: usize = 3000;
/// What readers have stumbled over: signs, ends of lines, large numbers, bytes that are no text.
const PIECES: [&[u8]; 12] = [
    b"\n",
    b"\r\n",
    b"-",
    b",",
    b"#",
    b"0",
    b"4294967295",
    b"18446744073709551616",
    b"1e999",
    b"nan",
    &[0xff, 0xfe, 0, 0],
    &[0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
];

/// The inputs of one target, by name.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs: Vec<(String, Vec<u8>)> = entries
        .map(|entry| entry.expect("an entry").path())
        .map(|path| {
            (
                path.file_name().expect("named").to_string_lossy().into_owned(),
                std::fs::read(&path).expect("file"),
            )
        })
        .collect();
    inputs.sort();
    inputs
}

/// Says which input it was if the reader panics.
struct Told<'a> {
    target: &'a str,
    input: &'a str,
    mutation: usize,
    bytes: &'a [u8],
}

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Told { target, input, mutation, bytes } = self;
            eprintln!(
                "{target}: mutation {mutation} of {input}, seed {SEED}: {:?}",
                bytes.escape_ascii().to_string()
            );
        }
    }
}

fn mutated(sound: &[u8], other: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut bytes = sound.to_vec();
    for _ in 0..1 + random.next_u32() % 4 {
        let mut below = |limit: usize| random.next_u64() as usize % limit.max(1);
        let (at, from) = (below(bytes.len() + 1), below(other.len() + 1));
        match below(6) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..(at + 1 + below(8)).min(bytes.len()))),
            2 => drop(bytes.splice(at..at, PIECES[below(PIECES.len())].iter().copied())),
            3 => drop(bytes.splice(at.., other[from..].iter().copied())),
            _ => {
                let value = below(256) as u8;
                bytes.get_mut(at).into_iter().for_each(|byte| *byte = value);
            }
        }
    }
    bytes
}

fn run(target: &str, reader: fn(&[u8]) -> bool) {
    let inputs = corpus(target);
    let mut accepted = 0;
    for (name, bytes) in &inputs {
        let _told = Told { target, input: name, mutation: 0, bytes };
        accepted += usize::from(reader(bytes));
    }
    assert!(accepted > 0, "{target}: nothing of the corpus is accepted, so nothing deep is reached");
    let mut random = ChaCha8Rng::seed_from_u64(SEED);
    let mut also_accepted = 0;
    for mutation in 1..=MUTATIONS {
        let (name, sound) = &inputs[mutation % inputs.len()];
        let other = &inputs[random.next_u32() as usize % inputs.len()].1;
        let bytes = mutated(sound, other, &mut random);
        let _told = Told { target, input: name, mutation, bytes: &bytes };
        also_accepted += usize::from(reader(&bytes));
    }
    assert!(
        also_accepted > 0 && also_accepted < MUTATIONS,
        "{target}: {also_accepted} mutations were accepted"
    );
}

#[test]
fn no_bytes_make_the_tu_reader_panic() {
    run("tu", hostile::tu);
}

#[test]
fn no_bytes_make_the_idx_reader_panic() {
    run("idx", hostile::idx);
}

#[test]
fn no_bytes_make_the_cifar_reader_panic() {
    run("cifar", hostile::cifar);
}

#[test]
fn no_bytes_make_the_graph6_reader_panic() {
    run("graph6", hostile::graph6);
}

#[test]
fn no_bytes_make_the_reader_of_copies_panic() {
    run("copy", hostile::copy);
}
