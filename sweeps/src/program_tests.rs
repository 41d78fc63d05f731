//! What a sweep file may say of a program, what its trials are made of, and how a wrong one is refused.

use serde_json::json;

use super::*;
use crate::explain::explain;
use crate::ids::TrialId;
use crate::settings::SETTINGS;
use crate::{Capability, SweepSpec};

const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

const FILE: &str = "\
version: 1
name: own
program:
  run: [python3, -u, train.py]
  files: [train.py, lib/model.py]
  lock: requirements.lock
  settings:
    lr: {from: 1e-6, to: 1}
    width: {from: 1, to: 512, whole: true}
    pool: [mean, sum]
    bias: flag
    note: text
    shift: number
    layers: whole
base: {dataset: proteins, width: 64, bias: true}
grid: {lr: [0.1, 1], pool: [sum, mean]}
splits: [0, 1]
";

fn parsed(text: &str) -> SweepSpec {
    SweepSpec::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn frozen(text: &str) -> SweepSpec {
    parsed(&freeze(text, DIGEST))
}

fn ids(spec: &SweepSpec) -> Vec<TrialId> {
    spec.trials.iter().map(|trial| trial.id).collect()
}

#[test]
fn a_program_is_swept_over_the_settings_that_it_declares() {
    let spec = frozen(FILE);
    let program = spec.program.as_ref().unwrap();
    assert_eq!(program.bundled().collect::<Vec<_>>(), ["train.py", "lib/model.py", "requirements.lock"]);
    let first = &spec.trials[0].config;
    assert_eq!(
        (spec.trials.len(), first.dataset.as_str(), first.method().as_str()),
        (4, "PROTEINS", "train.py")
    );
    let shown = ["lr", "width", "pool", "bias", "dataset"].map(|name| first.show(name).unwrap());
    assert_eq!(shown, ["0.1", "64", "sum", "true", "PROTEINS"]);
    assert_eq!((first.show("note"), first.show("depth")), (None, None), "not given, and not the program's");
    let varying: Vec<&str> = spec.varying().iter().map(|setting| setting.name).collect();
    assert_eq!(varying, ["lr", "pool"]);
}

#[test]
fn a_worker_reads_back_the_trial_that_it_was_sent_and_finds_the_same_identity() {
    for planned in frozen(FILE).trials {
        let text = planned.config.canonical();
        let read = TrialConfig::from_canonical(&text).unwrap();
        assert_eq!((read.id(), read.canonical()), (planned.id, text.clone()));
        assert_eq!(read, planned.config);
        assert_eq!((read.needs(), TrialConfig::default().needs()), (Some(Capability::Programs), None));
        let (known, numerics) = TrialConfig::of_any_version(&text).unwrap();
        assert_eq!((known, numerics), (planned.config, None), "its numbers are not ours to version");
    }
}

#[test]
fn the_identity_of_programs_is_pinned() {
    let spec = frozen(FILE);
    let canonical = format!(
        "{{\"canonical\":1,\"dataset\":\"PROTEINS\",\"program\":{{\"bundle\":\"{DIGEST}\",\"lock\":\"requirements.lock\",\
         \"run\":[\"python3\",\"-u\",\"train.py\"]}},\"settings\":{{\"bias\":true,\"lr\":0.1,\"pool\":\"sum\",\"width\":64}}}}"
    );
    assert_eq!(spec.trials[0].config.canonical(), canonical);
}

#[test]
fn whatever_is_run_is_part_of_the_identity_and_nothing_else_is() {
    let base = ids(&frozen(FILE));
    let other = DIGEST.replace('0', "f");
    assert_ne!(ids(&parsed(&freeze(FILE, &other))), base, "other files");
    for (from, to) in [("-u, ", ""), ("width: 64", "width: 65"), ("dataset: proteins", "dataset: DD")] {
        let changed = ids(&frozen(&FILE.replace(from, to)));
        assert!(changed.iter().all(|id| !base.contains(id)), "{from}");
    }
    for (from, to) in [
        ("name: own", "name: other"),
        ("to: 512", "to: 1024"),
        ("    note: text\n", ""),
        ("[0.1, 1]", "[1e-1, 1.0]"),
        ("splits: [0, 1]", "splits: [5]\npriority: 3"),
    ] {
        assert_eq!(ids(&frozen(&FILE.replace(from, to))), base, "{from}");
    }
    let vouched =
        FILE.replace("  files: [train.py, lib/model.py]\n  lock: requirements.lock\n", "  version: 3\n");
    assert!(parsed(&vouched).program.unwrap().is_frozen(), "nothing is read");
    assert_ne!(ids(&parsed(&vouched)), ids(&parsed(&vouched.replace("version: 3\n  s", "version: 4\n  s"))));
    assert!(!parsed(FILE).program.unwrap().is_frozen());
}

#[test]
fn a_file_of_ours_and_one_of_a_program_have_no_trial_in_common() {
    let own = "version: 1\nname: x\nbase: {dataset: PROTEINS, lr: 0.1}\n";
    let theirs = "version: 1\nname: x\nprogram: {run: [./train], version: 1, settings: {lr: number}}\n\
                  base: {dataset: PROTEINS, lr: 0.1}\n";
    assert_ne!(ids(&parsed(own)), ids(&parsed(theirs)));
}

#[test]
fn conditions_draws_tables_and_choices_know_declared_settings() {
    let spec = frozen(
        &(FILE.replace("grid: {lr: [0.1, 1], pool: [sum, mean]}", "\
grid:
  pool: [sum, mean]
  shift: {values: [-1, 0.5], when: {pool: sum}}
exclude: [{pool: sum, shift: -1}]
random: {budget: 3, distributions: {lr: {log_uniform: [1e-4, 1e-2]}, layers: {uniform: [1, 4]}}}
table: {rows: [pool], columns: layers, select: {among: [lr]}, filter: {bias: true}, order: {pool: [mean, sum]}}
figure: {x: layers, lines: [pool]}")),
    );
    assert_eq!(spec.trials.len(), 6);
    for trial in &spec.trials {
        let with = trial.config.show("shift");
        assert_eq!(with.is_some(), trial.config.show("pool").as_deref() == Some("sum"), "{with:?}");
        assert!(trial.config.show("lr").is_some() && trial.config.show("layers").is_some());
    }
    assert_eq!(spec.table.filter, [("bias".to_owned(), vec!["true".to_owned()])]);
}

#[test]
fn a_difference_of_programs_is_explained() {
    let spec = frozen(FILE);
    let other = parsed(&freeze(&FILE.replace("-u, ", ""), &DIGEST.replace('0', "f")));
    let said: Vec<String> = explain(&spec.trials[0].config, &other.trials[1].config)
        .iter()
        .map(|difference| difference.to_string().replace(DIGEST, "A").replace(&DIGEST.replace('0', "f"), "B"))
        .collect();
    assert_eq!(
        said,
        [
            "pool: sum | mean: makes two trials",
            "program.files: A | B: makes two trials",
            "program.run: python3 -u train.py | python3 train.py: makes two trials"
        ]
    );
}

#[test]
fn what_is_declared_again_is_the_same_setting_and_another_kind_is_another() {
    let of = |kind: DeclaredKind| declared("only_in_this_test", &kind).unwrap();
    let number = || DeclaredKind::Plain(ValueKind::Real(0.0, 1.0));
    let words = || DeclaredKind::Words(vec!["a".to_owned(), "b".to_owned()]);
    assert!(std::ptr::eq(of(number()), of(number())) && std::ptr::eq(of(words()), of(words())));
    assert_ne!(of(number()).kind, of(words()).kind);
    assert_eq!(of(words()).kind, ValueKind::Word(&["a", "b"]));
}

#[test]
fn numbers_have_one_spelling_and_other_kinds_are_refused() {
    let check = |name: &str, kind: ValueKind, value: Value| {
        let mut trial = TrialConfig::default();
        set(&mut trial, name, kind, &value).then(|| get(&trial, name).unwrap().to_string())
    };
    assert_eq!(check("x", ValueKind::Real(0.0, 9.0), json!(1)).as_deref(), Some("1.0"));
    assert_eq!(check("x", ValueKind::Whole(0, 9), json!(1)).as_deref(), Some("1"));
    assert_eq!(check("x", ValueKind::Whole(0, 9), json!(1.5)), None);
    assert_eq!(check("x", ValueKind::Flag, json!("true")), None);
    assert_eq!(check("x", ValueKind::Word(&["a"]), json!("b")), None);
    assert!(SETTINGS.iter().all(|setting| matches!(setting.place, Place::Field(_))));
}
