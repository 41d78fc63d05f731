//! Folds on GPUs that are played (`device.cpp`): the real worker, the real libtorch, and a device whose memory the
//! processor cannot read, whose tensors do not mix with others and whose memory ends. Where libtorch has a CUDA half the
//! real one answers instead and this says that it is skipped. What only a real device can show, its digits and its
//! speed, is not asked here.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod device;
#[path = "../processes/mod.rs"]
mod processes;

use std::path::Path;
use std::process::{Command, Output};

use device::{Maker, Played};
use processes::{Place, Trainer, numbers, result_of, worker};
use serde_json::{Value, json};
use togl_sweeps::TrialConfig;

/// Settings of the networks that take different paths through the tensors.
fn networks() -> Vec<Value> {
    vec![
        json!({}),
        json!({"batch_norm": false, "residual": false, "weight_decay": 0.01}),
        json!({"model": "gin"}),
        json!({"model": "gat", "num_heads": 2}),
        json!({"model": "gatedgcn"}),
        json!({"model": "gfl", "depth": 1}),
        json!({"model": "perslay", "depth": 1}),
        json!({"togl": true, "features": "random"}),
        json!({"togl": true, "static": true, "residual_and_bn": false}),
        json!({"togl": true, "tanh_filtrations": true, "share_filtration_parameters": false, "swap_bn_order": true}),
        json!({"togl": true, "deepset": true, "aggregation_fn": "max"}),
        json!({"togl": true, "deepset": true, "static": true, "deepset_type": "linear"}),
        json!({"togl": true, "deepset": true, "deepset_type": "shallow", "aggregation_fn": "sum", "dist_dim1": true}),
    ]
}

/// One short fold with these settings.
fn trial(settings: &Value) -> TrialConfig {
    let mut all = serde_json::to_value(TrialConfig {
        dataset: "necklaces".to_owned(),
        hidden_dim: 8,
        depth: 2,
        dropout_p: 0.1,
        batch_size: 256,
        max_epochs: 2,
        lr_min: 0.0,
        ..TrialConfig::default()
    })
    .unwrap();
    all.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    serde_json::from_value(all).unwrap()
}

fn topological() -> TrialConfig {
    trial(&json!({"togl": true}))
}

/// `command` with the played devices.
fn on(played: &Played, mut command: Command, device: &str) -> Output {
    played.preload(&mut command).args(["--device", device]).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn learns_as_the_processor_does(maker: Maker, device: &str) {
    let Some(played) = Played::by(maker) else { return };
    for settings in networks() {
        let place = Place::of(trial(&settings));
        let output = on(&played, place.train(), device);
        assert_eq!(said(&output), "", "{settings}: nothing that people cannot act on");
        let there = result_of(&output);
        let here = result_of(&place.train().output().unwrap());
        let kind = device.split(':').next().unwrap();
        assert_eq!(
            (&there["provenance"]["device"], &here["provenance"]["device"]),
            (&json!(kind), &json!("cpu"))
        );
        let differ = |part: &str| {
            let loss = |result: &Value| result[part]["loss"].as_f64().unwrap();
            (loss(&there) - loss(&here)).abs()
        };
        // Gradients that are zero but for rounding become whole steps of Adam, so digits part with every step.
        assert!(differ("train") < 1e-4 && differ("validation") < 5e-3, "{settings}: {there} is not {here}");
        for same in ["parameters", "part_sizes", "data_digest", "split_digest"] {
            assert_eq!(there[same], here[same], "{settings}");
        }
    }
}

#[test]
fn every_network_learns_on_cuda_what_it_learns_on_the_processor() {
    learns_as_the_processor_does(Maker::Nvidia, "cuda:1");
}

#[test]
fn every_network_learns_on_mps_what_it_learns_on_the_processor() {
    learns_as_the_processor_does(Maker::Apple, "mps");
}

#[test]
fn reference_vectors_hold_on_every_device() {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/golden");
    if !vectors.exists() {
        eprintln!("skipped: there are no reference vectors beside the project");
        return;
    }
    for (maker, device) in [(Maker::Nvidia, "cuda:1"), (Maker::Apple, "mps")] {
        let Some(played) = Played::by(maker) else { return };
        let mut command = worker();
        command.arg("verify").arg(&vectors);
        let output = on(&played, command, device);
        let report = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && report.contains(" passed, 0 failed"), "{device}: {report}");
    }
}

/// Networks of `bench`, and what a step of theirs may launch at most.
const LAUNCHES: [(&str, u64); 3] = [("gcn-4", 60), ("gcn-3-togl-1", 221), ("gcn-3-togl-1-deepset", 116)];

/// What `bench --launches` says of the last of so many steps, and what the device says that it was asked for in all.
fn counts(played: &Played, model: &str, steps: &str) -> (Value, Value) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("counts.json");
    let mut command = worker();
    command.args(["bench", "--launches", "--model", model, "--epochs", steps, "--format", "json"]);
    command.env("PLAYED_GPU_COUNTS", &file);
    let said = result_of(&on(played, command, "cuda:0"));
    (said["total"].clone(), serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap())
}

#[test]
fn launches_are_counted_as_the_device_sees_them_and_stay_few() {
    let Some(played) = Played::by(Maker::Nvidia) else { return };
    for (model, most) in LAUNCHES {
        let (_, before) = counts(&played, model, "2");
        let (step, after) = counts(&played, model, "3");
        let seen = |what: &str| after[what].as_u64().unwrap() - before[what].as_u64().unwrap();
        let launches = step["forward"].as_u64().unwrap() + step["backward"].as_u64().unwrap();
        assert_eq!((launches, step["waits"].as_u64().unwrap()), (seen("launches"), seen("waits")), "{model}");
        assert!(launches <= most, "{model}: {step}");
        assert!(seen("waits") <= 1, "{model}: {step}");
    }
}

#[test]
fn two_folds_on_a_device_agree_bit_for_bit_and_one_that_crashed_goes_on() {
    let Some(played) = Played::by(Maker::Nvidia) else { return };
    let place = Place::of(topological());
    let calm = numbers(&result_of(&on(&played, place.train(), "cuda:0")));
    assert_eq!(
        numbers(&result_of(&on(&played, place.train(), "cuda:1"))),
        calm,
        "another device of the same kind"
    );

    let mut crashing = place.train();
    crashing.env("TOGL_CRASH", "kept:1");
    assert!(!on(&played, crashing, "cuda:0").status.success());
    assert_eq!(place.checkpoints().len(), 1);
    let second = on(&played, place.train(), "cuda:0");
    assert!(said(&second).contains("goes on after epoch 1"), "{}", said(&second));
    assert_eq!(numbers(&result_of(&second)), calm);
}

#[test]
fn a_checkpoint_of_a_device_is_not_continued_on_the_processor() {
    let Some(played) = Played::by(Maker::Nvidia) else { return };
    let place = Place::of(topological());
    let mut crashing = place.train();
    crashing.env("TOGL_CRASH", "kept:1");
    on(&played, crashing, "cuda:0");
    let here = place.train().output().unwrap();
    assert!(said(&here).contains("devices of kind"), "{}", said(&here));
    assert_eq!(numbers(&result_of(&here)), numbers(&result_of(&place.train().output().unwrap())));
}

#[test]
fn learnt_filtrations_are_read_from_what_a_device_learnt() {
    let Some(played) = Played::by(Maker::Nvidia) else { return };
    let place = Place::of(topological());
    let mut command = place.train();
    command.arg("--keep-models").arg(place.path("models"));
    result_of(&on(&played, command, "cuda:0"));
    let model = place.path("models").join(format!("{}-3-4.safetensors", place.trial.id()));
    let output =
        worker().arg("filtrations").arg("--checkpoint").arg(model).args(["--graph", "7"]).output().unwrap();
    assert_eq!(result_of(&output)["graphs"][0]["filtrations"].as_array().unwrap().len(), 8);
}

#[test]
fn a_device_without_memory_left_fails_the_fold_in_plain_words() {
    let Some(played) = Played::by(Maker::Nvidia) else { return };
    let place = Place::of(topological());
    let mut command = place.train();
    command.env("PLAYED_GPU_BYTES", "300000");
    let output = on(&played, command, "cuda:0");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.starts_with("error: out of memory: CUDA out of memory. Tried to allocate"), "{said}");
    assert!(said.contains("hint: a smaller batch_size"), "{said}");
    assert!(!said.contains("panicked") && !said.contains("frame #"), "no page of frames: {said}");
}

#[test]
fn a_trainer_survives_an_exhausted_device_and_measures_the_memory_of_each_fold() {
    let Some(played) = Played::by(Maker::Nvidia) else { return };
    let (small, large) =
        (Place::of(topological()), Place::of(trial(&json!({"togl": true, "hidden_dim": 512}))));
    let mut command = worker();
    played.preload(&mut command).env("PLAYED_GPU_BYTES", "30000000");
    let mut trainer = Trainer::start(command);
    let mut peak_of_small = |attempt| {
        trainer.train_on("cuda:1", attempt, &small);
        let (kind, result, _) = trainer.outcome();
        assert_eq!(kind, "done", "{result}");
        result["peak_memory"].as_u64().unwrap()
    };
    let before = peak_of_small(1);
    assert!(
        before > 100_000 && before < 30_000_000,
        "{before} bytes: those of the device, not of the program"
    );
    trainer.train_on("cuda:1", 2, &large);
    let (kind, failure, _) = trainer.outcome();
    assert_eq!((kind.as_str(), failure["class"].as_str().unwrap()), ("failed", "out-of-memory"), "{failure}");
    trainer.train_on("cuda:1", 3, &small);
    let (kind, result, _) = trainer.outcome();
    assert_eq!((kind.as_str(), result["peak_memory"].as_u64()), ("done", Some(before)), "{result}");
    drop(trainer.commands);
    trainer.child.wait().unwrap();
}

#[test]
fn a_kernel_on_a_slot_of_a_device_computes_on_the_processor_and_says_so() {
    let Some(played) = Played::by(Maker::Nvidia) else { return };
    let place = Place::of(trial(&json!({"model": "ph", "depth": 0})));
    let result = result_of(&on(&played, place.train(), "cuda:0"));
    assert_eq!(result["provenance"]["device"], "cpu");
    assert!(result["peak_memory"].as_u64().unwrap() > 10_000_000, "the memory of the program");
}

#[test]
fn doctor_tries_every_device_and_one_that_is_not_there_is_named_with_those_that_are() {
    let Some(played) = Played::by(Maker::Nvidia) else { return };
    let mut doctor = worker();
    let output = played.preload(&mut doctor).args(["doctor", "--format", "json"]).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let works = |device: &str| json!({"device": device, "works": true, "error": null});
    assert_eq!(report["devices"], json!([works("cpu"), works("cuda:0"), works("cuda:1")]), "{report}");
    let output = on(&played, Place::of(topological()).train(), "cuda:2");
    assert_eq!(output.status.code(), Some(2));
    let expected = "no usable device cuda:2, only cpu, cuda:0, cuda:1; `togl-worker doctor` says more";
    assert!(said(&output).contains(expected), "{}", said(&output));
}

#[test]
fn a_worker_has_the_slots_that_it_was_asked_for_on_each_gpu() {
    let Some(played) = Played::by(Maker::Nvidia) else { return };
    for (arguments, devices) in [
        (&["--slots-per-gpu", "2"][..], r#"["cuda:0", "cuda:1", "cuda:0", "cuda:1"]"#),
        (&["--devices", "1", "--slots-per-gpu", "2"], r#"["cuda:1", "cuda:1"]"#),
        (&["--device", "cpu", "--slots", "1"], r#"["cpu"]"#),
    ] {
        let place = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_togl-worker"));
        // Nobody listens there, so it says what it has, and leaves when its input ends.
        command.args(["join", "127.0.0.1:1", "--with-parent", "--state"]).arg(place.path()).args(arguments);
        let output = played.preload(&mut command).env("TOGL_TOKEN", "none").output().unwrap();
        assert!(said(&output).contains(devices), "{arguments:?}: {}", said(&output));
    }
}
