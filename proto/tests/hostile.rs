//! What the fuzz targets do, for a moment: good messages, seeded mutations of them and noise through the conversions.
//! Nothing may panic, good messages come through, and most of the noise does not.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use prost::Message;
use togl_proto::{hostile, wire};
use togl_sweeps::{TrialConfig, result};

/// A small random stream; the seed is in every message of a failure.
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }

    fn mutate(&mut self, good: &[u8]) -> Vec<u8> {
        let mut bytes = good.to_vec();
        for _ in 0..=self.below(8) {
            let at = self.below(bytes.len());
            match self.below(4) {
                0 => bytes[at] = self.below(256) as u8,
                1 => bytes[at] ^= 1 << self.below(8),
                2 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, self.below(256) as u8),
            }
        }
        bytes
    }
}

fn good_messages() -> Vec<Vec<u8>> {
    use wire::worker_message::Kind;
    let fold = || Some(wire::Fold { trial: "0123456789abcdef".repeat(2), split: 3, seed: u64::MAX });
    let running =
        wire::Running { fold: fold(), attempt: 1, progress: Some(wire::Progress::default()), slot: 0 };
    let result = wire::ResultReport { fold: fold(), attempt: 2, result: Some(result::example(0.5).into()) };
    let failure = wire::Failure { class: "crashed".to_owned(), message: "x".to_owned() };
    let failure = wire::FailureReport { fold: fold(), attempt: 1, failure: Some(failure) };
    let hello = wire::Hello { worker: "w".to_owned(), running: vec![running.clone()], ..Default::default() };
    let kinds = [
        Kind::Hello(hello),
        Kind::Heartbeat(wire::Heartbeat { running: vec![running] }),
        Kind::Reports(wire::Reports { results: vec![result], failures: vec![failure] }),
        Kind::Log(wire::LogLines { fold: fold(), attempt: 1, text: "text".to_owned() }),
    ];
    kinds.into_iter().map(|kind| wire::WorkerMessage { kind: Some(kind) }.encode_to_vec()).collect()
}

/// What the fuzz targets begin with, and what they once stumbled over.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| std::fs::read(file).unwrap()).collect()
}

#[test]
fn the_corpus_of_the_fuzz_targets_is_read_and_some_of_it_comes_through() {
    type Reader = fn(&[u8]) -> bool;
    for (target, reader) in
        [("worker_message", hostile::worker_message as Reader), ("lease", hostile::lease as Reader)]
    {
        let inputs = corpus(target);
        let came_through = inputs.iter().filter(|bytes| reader(bytes)).count();
        assert!(came_through > 0, "{target}: nothing deep is reached");
        for (input, seed) in inputs.iter().flat_map(|input| (0..1_000).map(move |seed| (input, seed))) {
            let mutated = Noise(seed).mutate(input);
            let outcome = std::panic::catch_unwind(|| reader(&mutated));
            assert!(outcome.is_ok(), "{target}, seed {seed}: {mutated:?}");
        }
    }
}

#[test]
fn bytes_of_a_peer_never_panic_us() {
    for good in good_messages() {
        assert!(hostile::worker_message(&good), "a good message comes through");
        for seed in 0..5_000 {
            let mutated = Noise(seed).mutate(&good);
            let outcome = std::panic::catch_unwind(|| hostile::worker_message(&mutated));
            assert!(outcome.is_ok(), "seed {seed}: {mutated:?}");
        }
    }
    let came_through = (0..5_000u64).filter(|seed| {
        let mut noise = Noise(*seed);
        let bytes: Vec<u8> = (0..64).map(|_| noise.below(256) as u8).collect();
        hostile::worker_message(&bytes)
    });
    assert!(came_through.count() < 500, "noise is mostly refused");
}

#[test]
fn a_lease_of_a_hostile_coordinator_never_panics_a_worker() {
    let trial = TrialConfig::from_canonical(r#"{"canonical":1,"dataset":"cycles","numerics":1}"#).unwrap();
    let fold = Some(wire::Fold { trial: trial.id().to_string(), split: 0, seed: 0 });
    let lease =
        wire::Lease { fold, attempt: 1, config: trial.canonical(), ..Default::default() }.encode_to_vec();
    assert!(hostile::lease(&lease));
    for seed in 0..5_000 {
        let mutated = Noise(seed).mutate(&lease);
        assert!(std::panic::catch_unwind(|| hostile::lease(&mutated)).is_ok(), "seed {seed}: {mutated:?}");
    }
}
