//! The parser against hostile and random text: it may refuse, it may not panic, and it stays within its budget. Every
//! case is small, so that a case that takes long is a failure of a bound and not of the machine.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;

use proptest::prelude::*;
use togl_sweeps::SweepSpec;

mod files;

fn survives(text: &str) {
    if let Ok(spec) = SweepSpec::parse(text) {
        assert!(spec.count_folds() <= spec.limits.max_folds.into());
        assert_eq!(
            spec.grid.parts.iter().map(|part| part.points().count()).sum::<usize>() as u128,
            spec.grid.count()
        );
    }
}

/// Words that a random file is made of: keys, values, and what YAML has to offer.
const WORDS: &[&str] = &[
    "version: 1\n",
    "name: x\n",
    "base:",
    "grid:",
    "zip:",
    "union:",
    "exclude:",
    "random:",
    "when:",
    "values:",
    "splits:",
    "seeds:",
    "limits:",
    "table:",
    "figure:",
    "published:",
    "resources:",
    "dataset: cycles",
    "depth:",
    "togl:",
    "lr:",
    "preset:",
    "from:",
    "to:",
    "step:",
    "count:",
    "factor:",
    "budget:",
    "distributions:",
    "value:",
    "uniform:",
    "choice:",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\n",
    "\n  ",
    "\n    ",
    "- ",
    "&a ",
    "*a",
    "<<: *a",
    "|",
    ">",
    "!!str ",
    "? ",
    ": ",
    "'",
    "\"",
    "#",
    "---\n",
    "...\n",
    "0",
    "1",
    "-1",
    "1e309",
    ".nan",
    "true",
    "~",
    "last",
    "99999999999999999999",
    "é",
    "\u{0}",
    "\t",
    "%YAML 1.2\n",
    "!include x",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_text_never_panics(text in "\\PC{0,200}") {
        survives(&text);
        survives(&format!("version: 1\nname: x\nbase: {{dataset: cycles}}\n{text}"));
    }

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        survives(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn random_words_of_the_language_never_panic(
        words in proptest::collection::vec(proptest::sample::select(WORDS), 0..40),
    ) {
        survives(&words.concat());
        survives(&format!("version: 1\nname: x\nbase: {{dataset: cycles}}\n{}", words.concat()));
    }
}

fn shipped_texts() -> Vec<String> {
    let small = |text: &String| text.len() < 6000;
    let texts =
        files::shipped().into_iter().chain(files::bad()).map(|path| fs::read_to_string(path).unwrap());
    texts.filter(small).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn mutated_files_never_panic(
        file in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), length in 0usize..12,
        word in proptest::sample::select(WORDS),
    ) {
        let texts = shipped_texts();
        let text = file.get(&texts);
        let starts: Vec<usize> = text.char_indices().map(|(start, _)| start).collect();
        let start = *at.get(&starts);
        let end = text[start..].char_indices().nth(length).map_or(text.len(), |(more, _)| start + more);
        survives(&format!("{}{word}{}", &text[..start], &text[end..]));
    }
}

#[test]
fn a_billion_laughs_are_refused() {
    let mut text =
        "version: 1\nname: x\nbase: {dataset: cycles}\nexclude:\n  - &a [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
    for (last, next) in "abcdefghij".chars().zip("bcdefghijk".chars()) {
        let aliases = vec![format!("*{last}"); 10].join(",");
        text += &format!("  - &{next} [{aliases}]\n");
    }
    SweepSpec::parse(&text).unwrap_err();
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("[", "]"), ("{a: ", "}")] {
        for depth in [100, 10_000, 200_000] {
            let text = format!("version: 1\nname: x\nbase: {}{}", open.repeat(depth), close.repeat(depth));
            SweepSpec::parse(&text).unwrap_err();
        }
    }
    let indented: String = (0..2000).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    SweepSpec::parse(&format!("version: 1\nname: x\n{indented}")).unwrap_err();
}

#[test]
fn what_would_take_for_ever_is_refused_before_it_is_tried() {
    let head = "version: 1\nname: x\nbase: {dataset: cycles}\nlimits: {max_folds: 10000000}\n";
    let wide = "{from: 1, to: 1000}";
    let axes = format!(
        "hidden_dim: {{from: 4, to: 1000}}, lr_patience: {wide}, max_epochs: {wide}, batch_size: {wide}"
    );
    let few: Vec<String> = (2..=1000).map(|n| n.to_string()).collect();
    let few = few.join(",");
    for tail in [
        format!("grid: {{{axes}}}"),
        format!(
            "grid: {{{axes}}}\nexclude: [{{lr_patience: [{few}]}}, {{max_epochs: [{few}]}}, {{batch_size: [{few}]}}]"
        ),
        format!(
            "grid: {{{axes}}}\nexclude: [{{lr_patience: [{few}]}}, {{max_epochs: [{few}]}}, {{batch_size: [{few}]}}]\nrandom: {{budget: 9, from: grid}}"
        ),
        format!(
            "grid: {{{axes}}}\nexclude: [{{lr_patience: [{few}]}}, {{max_epochs: [{few}]}}, {{batch_size: [{few}]}}]\nrandom: {{budget: 9, distributions: {{lr: {{uniform: [0.1, 0.2]}}}}}}"
        ),
        "grid: {lr: {from: 1e-9, to: 1000, step: 1e-9}}".to_owned(),
        "grid: {lr: {from: 1e-9, to: 1000, factor: 1.0000001}}".to_owned(),
        many_grids(&few),
        "seeds: {from: 0, to: 18446744073709551615}".to_owned(),
        "random: {budget: 18446744073709551615, distributions: {lr: {uniform: [0.1, 0.2]}}}".to_owned(),
    ] {
        let refused = SweepSpec::parse(&format!("{head}{tail}"));
        assert!(refused.is_err(), "accepted: {}", &tail[..tail.len().min(200)]);
    }
}

/// A union of grids of which each is small enough and all together are not.
fn many_grids(few: &str) -> String {
    let axes =
        "hidden_dim: {from: 4, to: 103}, lr_patience: {from: 1, to: 1000}, max_epochs: {from: 1, to: 100}";
    let grid = format!("  - {{grid: {{{axes}}}, exclude: [{{lr_patience: [{few}]}}]}}\n");
    format!("union:\n{}", grid.repeat(200))
}
