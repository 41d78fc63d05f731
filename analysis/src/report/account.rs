//! The sections in words: the plan, failures, cost, environment, and how to train it again. Counts and lists
//! what it is given; draws nothing.

use polars::prelude::*;
use togl_sweeps::{Scale, SweepSpec, settings};

use super::page::{facts, folded, paragraph, rows, verbatim};
use super::{ReportInput, ReportedFailure, ReportedReplicate};
use crate::columns::labels;
use crate::compare::{Comparison, HEADERS};
use crate::distinct::Distinct;
use crate::error::Result;
use crate::frame::FoldFrame;
use crate::plan::Plan;
use crate::wording::fixed;

/// Failures that are listed one by one; more are counted.
const LISTED: usize = 500;

/// The settings that differ between the trials of a sweep, however its file spells them, with their values in order.
pub fn varied(sweep: &SweepSpec) -> Result<Vec<(String, Vec<String>)>> {
    let trials = &sweep.trials;
    let values_of = |name: &str| Distinct::of(trials.iter().filter_map(|trial| trial.config.show(name)));
    let all = settings::names_of(trials.iter().map(|trial| &trial.config)).into_iter();
    let all = all.map(|name| {
        let values = values_of(&name);
        (name, values)
    });
    Ok(all.filter(|(_, values)| values.len() > 1).collect())
}

/// What was to be trained, and how much of it is.
pub fn plan(input: &ReportInput<'_>, plan: &Plan) -> Result<String> {
    let sweep = input.sweep;
    let finished = input.rows.len();
    let trials = sweep.trials.len();
    let parts = alike_parts(sweep);
    let axes: Vec<String> =
        varied(sweep)?.iter().map(|(name, values)| format!("{name}: {}", listing(values))).collect();
    let mut listed = vec![
        ("trials", trials.to_string()),
        ("folds", format!("{finished} of {} finished", plan.len())),
        ("failures", input.failures.len().to_string()),
        ("replicates", input.replicates.len().to_string()),
        ("splits", of_parts(&parts, |part| &part.splits)),
        ("training seeds", of_parts(&parts, |part| &part.seeds)),
        ("varied", if axes.is_empty() { "nothing".to_owned() } else { axes.join("; ") }),
    ];
    if !sweep.description.is_empty() {
        listed.insert(0, ("about", sweep.description.clone()));
    }
    Ok(facts(&listed))
}

/// Parts of a union that are trained on the same folds.
struct AlikeParts {
    /// Which they are; nothing where all of them are alike.
    which: String,
    splits: String,
    seeds: String,
}

fn alike_parts(sweep: &SweepSpec) -> Vec<AlikeParts> {
    let numbered = (1usize..).zip(&sweep.grid.parts);
    let alike = Distinct::grouped(numbered.map(|(number, part)| ((&part.splits, &part.seeds), number)));
    let which = |numbers: &[usize]| match (alike.len(), numbers) {
        (1, _) => String::new(),
        (_, [only]) => format!("part {only} of the union"),
        (_, several) => format!("parts {} of the union", listing(several)),
    };
    let parts = alike.iter().map(|((splits, seeds), numbers)| AlikeParts {
        which: which(numbers),
        splits: listing(splits),
        seeds: listing(seeds),
    });
    parts.collect()
}

fn of_parts(parts: &[AlikeParts], what: fn(&AlikeParts) -> &String) -> String {
    let text = |part: &AlikeParts| match part.which.as_str() {
        "" => what(part).clone(),
        which => format!("{} ({which})", what(part)),
    };
    parts.iter().map(text).collect::<Vec<_>>().join("; ")
}

fn listing(numbers: &[impl ToString]) -> String {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    match texts.len() {
        count if count > 20 => format!("{} … {} ({count})", texts[..3].join(", "), texts[count - 1]),
        _ => texts.join(", "),
    }
}

/// What stands below a list that is cut short.
fn more<T>(items: &[T]) -> String {
    match items.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => paragraph(&format!("And {more} more.")),
    }
}

/// What failed and why.
pub fn failures(failures: &[ReportedFailure]) -> String {
    if failures.is_empty() {
        return paragraph("None.");
    }
    let line = |failure: &ReportedFailure| {
        let ReportedFailure { fold, attempts, worker, class, message } = failure;
        vec![fold.clone(), attempts.to_string(), worker.clone(), class.clone(), message.clone()]
    };
    let lines: Vec<Vec<String>> = failures.iter().take(LISTED).map(line).collect();
    rows(&["fold", "attempts", "last worker", "kind", "message"], &lines) + &more(failures)
}

/// Second results of folds, and whether they say the same as those that count.
pub fn replicates(replicates: &[ReportedReplicate], scale: &Scale) -> String {
    if replicates.is_empty() {
        return paragraph("None: no fold has a second result.");
    }
    let same = replicates.iter().filter(|replicate| replicate.same == Some(true)).count();
    let digits = scale.decimals() + 1;
    let value = |value: Option<f64>| {
        value.map_or_else(|| "?".to_owned(), |value| fixed(scale.factor() * value, digits))
    };
    let line = |replicate: &ReportedReplicate| {
        let same = replicate.same.map_or("unknown", |same| if same { "yes" } else { "NO" });
        vec![
            replicate.fold.clone(),
            replicate.attempt.to_string(),
            replicate.worker.clone(),
            replicate.kind.clone(),
            same.to_owned(),
            value(replicate.test_accuracy),
            value(replicate.counted),
        ]
    };
    let lines: Vec<Vec<String>> = replicates.iter().take(LISTED).map(line).collect();
    let test = format!("test {}", scale.axis());
    let counts = match scale.unit() {
        "" => "the one that counts".to_owned(),
        unit => format!("the one that counts ({unit})"),
    };
    let headers = ["fold", "attempt", "worker", "kind", "same numbers", &test, &counts];
    let summary = format!(
        "{} folds were trained again; {same} of them gave the same numbers. They are kept for comparison and count \
         in no table.",
        replicates.len()
    );
    paragraph(&summary) + &rows(&headers, &lines) + &more(replicates)
}

/// Ours beside the numbers from print that the sweep file has.
pub fn comparison(frame: &FoldFrame, plan: &Plan, sweep: &SweepSpec) -> Result<String> {
    let mut text = String::new();
    for comparison in Comparison::of_sweep(frame, plan, sweep)? {
        let cells: Vec<Vec<String>> = comparison.lines();
        text.push_str(&paragraph(&comparison.caption()));
        text.push_str(&folded(
            &format!("{} cell by cell", comparison.published_table),
            &rows(&HEADERS, &cells),
        ));
    }
    Ok(text)
}

/// Hours of training by kind of device.
pub fn cost(frame: &FoldFrame) -> Result<String> {
    if frame.is_empty() {
        return Ok(paragraph("Nothing has finished."));
    }
    let hours = (col("seconds").sum() / lit(3600.0)).alias("hours");
    let by_device = frame
        .data()
        .clone()
        .lazy()
        .group_by_stable([col("device")])
        .agg([len().cast(DataType::UInt64).alias("folds"), hours, col("peak_memory").max()])
        .collect()?;
    let mut lines = Vec::new();
    for row in 0..by_device.height() {
        let names = ["device".to_owned(), "folds".to_owned()];
        let mut line = labels(&by_device, &names, row)?;
        line.push(format!("{:.2}", by_device.column("hours")?.f64()?.get(row).unwrap_or_default()));
        let memory = by_device.column("peak_memory")?.u64()?.get(row).unwrap_or_default();
        line.push(format!("{:.0} MiB", memory as f64 / f64::from(1 << 20)));
        lines.push(line);
    }
    let note = format!(
        "Hours are summed over folds that finished; attempts that failed are not counted. {}",
        energy(frame)?
    );
    Ok(rows(&["device", "folds", "device-hours", "largest memory of a trainer"], &lines) + &paragraph(&note))
}

/// What is known of energy: only some devices can tell, and only while they train one fold at a time.
fn energy(frame: &FoldFrame) -> Result<String> {
    let known: Vec<f64> = frame.data().column("energy_joules")?.f64()?.iter().flatten().collect();
    if known.is_empty() {
        return Ok("Energy is not known.".to_owned());
    }
    let hours = known.iter().sum::<f64>() / 3.6e6;
    Ok(format!(
        "Energy: {hours:.3} kWh over {} of {} folds whose devices could tell.",
        known.len(),
        frame.len()
    ))
}

/// With what and where it was trained, and on which data.
pub fn environment(frame: &FoldFrame) -> Result<String> {
    if frame.is_empty() {
        return Ok(paragraph("Nothing has finished."));
    }
    let made_by =
        ["code_version", "commit", "dirty", "numerics", "libtorch", "device", "processor", "host", "worker"];
    let data = ["dataset", "data_digest"];
    let programs = distinct(frame, &made_by)?;
    let mixed = distinct(frame, &made_by[..4])?.len() > 1;
    let warning = if mixed {
        paragraph("Folds of more than one version of the program are mixed.")
    } else {
        String::new()
    };
    let headers: Vec<&str> = made_by.iter().copied().chain(["folds"]).collect();
    let data_headers: Vec<&str> = data.iter().copied().chain(["folds"]).collect();
    Ok(warning + &rows(&headers, &programs) + &rows(&data_headers, &distinct(frame, &data)?))
}

/// The distinct values of these columns together, with how many folds have them.
fn distinct(frame: &FoldFrame, columns: &[&str]) -> Result<Vec<Vec<String>>> {
    let counted = frame
        .data()
        .clone()
        .lazy()
        .group_by_stable(columns.iter().map(|name| col(*name)).collect::<Vec<_>>())
        .agg([len().alias("folds")])
        .collect()?;
    let names: Vec<String> = columns.iter().copied().chain(["folds"]).map(str::to_owned).collect();
    (0..counted.height()).map(|row| labels(&counted, &names, row)).collect()
}

/// Commands, the sweep's file, and the identity of every trial.
pub fn reproduce(input: &ReportInput<'_>) -> Result<String> {
    let mut trials = Vec::new();
    for trial in &input.sweep.trials {
        let place = trial.position.to_string();
        trials.push(vec![place, trial.id.to_string(), trial.config.method(), trial.config.canonical()]);
    }
    let listed = rows(&["position", "trial", "method", "settings that matter"], &trials);
    let commands = if input.commands.is_empty() {
        String::new()
    } else {
        paragraph("These commands train the sweep again:") + &verbatim(&input.commands.join("\n"))
    };
    let trained = |part: &AlikeParts| {
        let of = if part.which.is_empty() { String::new() } else { format!(" of {}", part.which) };
        let AlikeParts { splits, seeds, .. } = part;
        format!(
            "Every trial{of} is trained on each of the splits {splits} with each of the training seeds {seeds}"
        )
    };
    let trained: Vec<String> = alike_parts(input.sweep).iter().map(trained).collect();
    let seeds = format!(
        "{}; equal settings, split, seed, program and device give equal numbers.",
        trained.join(". ")
    );
    Ok(commands
        + &paragraph(&seeds)
        + &folded("The sweep's file", &verbatim(input.sweep_text))
        + &folded(&format!("All {} trials with their hashes", trials.len()), &listed))
}
