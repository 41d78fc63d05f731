//! The view of what failed: folds that failed alike in one line, with how many, on which hosts and one of them, which Enter
//! opens. Words are alike if they differ in numbers only.

use std::collections::BTreeMap;

use super::model::Observation;
use super::sheet::{Sheet, SheetCell, SheetRow, Tint, grouped};
use crate::alike::alike;
use crate::remote::{FoldGivenUp, SweepStatus};

/// Hosts that are named; of the others it is said how many there are.
const HOSTS: usize = 2;

pub fn sheet(picture: &Observation) -> Sheet {
    let mut rows = Vec::new();
    if let Some(status) = &picture.status {
        let mut groups: BTreeMap<(&str, String), Vec<&FoldGivenUp>> = BTreeMap::new();
        for fold in &status.failures {
            groups.entry((&fold.class, alike(&fold.message))).or_default().push(fold);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|((class, _), folds)| std::cmp::Reverse((count(status, class), folds.len())));
        rows.extend(
            groups.iter().map(|((class, words), folds)| row(class, words, folds, count(status, class))),
        );
        let more = status.sweep.failed.saturating_sub(status.failures.len() as u64);
        if more > 0 {
            let words = format!(
                "{} of {} failed folds are shown; `togl folds {} --in failed` lists them all",
                status.failures.len(),
                grouped(status.sweep.failed),
                status.sweep.name
            );
            rows.push(SheetRow { id: String::new(), cells: vec![SheetCell::tinted(words, Tint::Faint)] });
        }
    }
    let heads = vec!["CLASS", "IN ALL", "ALIKE", "HOSTS", "MESSAGE", "SUCH AS"];
    Sheet { heads, rows, empty: "nothing failed".to_owned() }
}

/// How often a class was the reason.
fn count(status: &SweepStatus, class: &str) -> u64 {
    let shown = || status.failures.iter().filter(|fold| fold.class == class).count() as u64;
    status.failed_by_class.get(class).copied().unwrap_or_else(shown)
}

/// Who had them, the most first.
fn hosts(folds: &[&FoldGivenUp]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for fold in folds.iter().filter(|fold| !fold.host.is_empty()) {
        *counts.entry(&fold.host).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, folds)| std::cmp::Reverse(*folds));
    let named = counts.iter().take(HOSTS).map(|(host, folds)| format!("{host} {folds}"));
    let more = counts.len().saturating_sub(HOSTS);
    let more = (more > 0).then(|| format!("+{more}"));
    named.chain(more).collect::<Vec<_>>().join(", ")
}

fn row(class: &str, words: &str, folds: &[&FoldGivenUp], all: u64) -> SheetRow {
    let example = folds.first();
    let cells = vec![
        SheetCell::tinted(class, Tint::Bad),
        SheetCell::new(grouped(all)),
        SheetCell::new(folds.len()),
        SheetCell::new(hosts(folds)),
        SheetCell::tinted(words, Tint::Faint),
        SheetCell::new(example.map(|fold| fold.title.clone()).unwrap_or_default()),
    ];
    SheetRow { id: example.map(|fold| fold.fold.clone()).unwrap_or_default(), cells }
}
