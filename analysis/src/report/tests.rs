//! Requirements of reports: one file that needs nothing else, everything asked for in it, and nothing that a
//! stranger wrote run as markup.

use super::*;
use crate::test_folds::fold;

const SWEEP: &str = "version: 1\nname: small\ndescription: two <depths> & TOGL\nbase: {dataset: DD}\n\
                     grid: {depth: [2, 3], togl: [false, true]}\nsplits: [0, 1, 2]\nseeds: [0]\n\
                     table: {rows: [method], columns: dataset}\n";

fn rows(sweep: &SweepSpec) -> Vec<FoldRow> {
    let trials = &sweep.trials;
    let folds = trials.iter().flat_map(|trial| {
        let by = trial.position as f64 * 0.05;
        (0..3)
            .map(move |split| fold(trial.position, &trial.config, split, 0.6 + by + 0.01 * f64::from(split)))
    });
    folds.collect()
}

fn report(rows: &[FoldRow], failures: &[ReportedFailure]) -> String {
    page(SWEEP, rows, failures, &[])
}

fn page(
    text: &str,
    rows: &[FoldRow],
    failures: &[ReportedFailure],
    replicates: &[ReportedReplicate],
) -> String {
    let sweep = SweepSpec::parse(text).unwrap();
    let commands = ["togl run small.yaml".to_owned()];
    let input = ReportInput {
        sweep: &sweep,
        sweep_text: text,
        rows,
        failures,
        replicates,
        commands: &commands,
        made_at: "2021-01-15 12:00 UTC",
    };
    html(&input).unwrap()
}

fn full() -> String {
    let failure = ReportedFailure {
        fold: "00112233445566778899aabbccddeeff/0/7".to_owned(),
        attempts: 2,
        worker: "w1".to_owned(),
        class: "out-of-memory".to_owned(),
        message: "<script>alert(1)</script>".to_owned(),
    };
    report(&rows(&SweepSpec::parse(SWEEP).unwrap()), &[failure])
}

#[test]
fn a_report_needs_no_other_file_and_no_network() {
    let page = full();
    for outside in ["<script", "src=", "<link", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let addresses: Vec<&str> =
        page.split("http").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(addresses.iter().all(|rest| *rest == "://www.w3.org/2000/svg"), "{addresses:?}");
}

#[test]
fn a_report_has_plan_results_figures_curves_failures_cost_environment_and_commands() {
    let page = full();
    for wanted in [
        "<h2>Plan</h2>",
        "12 of 12 finished",
        "depth: 2, 3; togl: false, true",
        "GCN-3-TOGL-1",
        "Test accuracy against depth",
        "Folds of small",
        "No figure of ranks: no test: 1 data set,",
        "GCN-2 on DD (3 folds, trial ",
        "out-of-memory",
        "device-hours",
        "Energy is not known.",
        "Work of small",
        "None: no fold has a second result.",
        "DD: validation loss",
        "data_digest",
        "togl run small.yaml",
        "All 4 trials with their hashes",
        "&quot;canonical&quot;:1",
        "made 2021-01-15 12:00 UTC",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    let sweep = SweepSpec::parse(SWEEP).unwrap();
    assert!(sweep.trials.iter().all(|trial| page.contains(&trial.id.to_string())));
}

#[test]
fn a_report_gives_the_splits_and_seeds_of_every_part_of_a_union() {
    let text = "version: 1\nname: parts\nbase: {dataset: DD}\nsplits: [0, 1]\nseeds: [7]\nunion:\n  \
                - {grid: {depth: [2]}}\n  - {grid: {depth: [3]}, splits: [5], seeds: [8, 9]}\n  - {grid: {depth: [4]}}\n";
    let page = page(text, &[], &[], &[]);
    for wanted in [
        "<dt>splits</dt><dd>0, 1 (parts 1, 3 of the union); 5 (part 2 of the union)</dd>",
        "<dt>training seeds</dt><dd>7 (parts 1, 3 of the union); 8, 9 (part 2 of the union)</dd>",
        "Every trial of parts 1, 3 of the union is trained on each of the splits 0, 1 with each of the training seeds 7. \
         Every trial of part 2 of the union is trained on each of the splits 5 with each of the training seeds 8, 9; equal",
    ] {
        assert!(page.contains(wanted), "{wanted}");
    }
    assert!(full().contains(
        "Every trial is trained on each of the splits 0, 1, 2 with each of the training seeds 0; "
    ));
}

#[test]
fn text_from_outside_is_escaped() {
    let page = full();
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(page.contains("two &lt;depths&gt; &amp; TOGL"));
}

#[test]
fn a_sweep_without_results_still_has_a_report() {
    let page = report(&[], &[]);
    assert!(page.contains("0 of 12 finished") && page.contains("No fold has a learning curve."));
    assert!(page.contains("<p>None.</p>"));
}

#[test]
fn energy_is_summed_over_the_folds_that_know_it() {
    let mut rows = rows(&SweepSpec::parse(SWEEP).unwrap());
    for row in &mut rows[..2] {
        row.result.energy_joules = Some(1.8e6);
    }
    assert!(report(&rows, &[]).contains("Energy: 1.000 kWh over 2 of 12 folds whose devices could tell."));
}

#[test]
fn a_mix_of_program_versions_is_pointed_out() {
    let mut rows = rows(&SweepSpec::parse(SWEEP).unwrap());
    assert!(!report(&rows, &[]).contains("more than one version of the program"));
    rows[0].result.provenance.commit = "abc".to_owned();
    assert!(report(&rows, &[]).contains("more than one version of the program"));
}

#[test]
fn a_report_is_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let sweep = SweepSpec::parse(SWEEP).unwrap();
    let input = ReportInput {
        sweep: &sweep,
        sweep_text: SWEEP,
        rows: &[],
        failures: &[],
        replicates: &[],
        commands: &[],
        made_at: "now",
    };
    let path = write(&folder.path().join("report.html"), &input).unwrap();
    assert!(std::fs::read_to_string(path).unwrap().ends_with("</html>\n"));
}

#[test]
fn second_results_are_listed_with_what_they_say() {
    let sweep = SweepSpec::parse(SWEEP).unwrap();
    let rows = rows(&sweep);
    let replicate = |worker: &str, same: bool| ReportedReplicate {
        fold: rows[0].fold.to_string(),
        attempt: 2,
        worker: worker.to_owned(),
        kind: "replicate".to_owned(),
        same: Some(same),
        test_accuracy: Some(0.61234),
        counted: Some(0.6),
    };
    let replicates = [replicate("w7", true), replicate("w8", false)];
    let page = page(SWEEP, &rows, &[], &replicates);
    assert!(page.contains("2 folds were trained again; 1 of them gave the same numbers"));
    assert!(page.contains("<td>w8</td><td>replicate</td><td>NO</td><td>61.23</td><td>60.00</td>"));
}

#[test]
fn figures_and_numbers_from_print_that_the_sweep_file_asks_for_are_in_the_report() {
    let text = format!(
        "{SWEEP}figure: {{title: My own picture, x: depth, lines: [togl]}}\npublished:\n  table: their table\n  \
         methods: {{Plain: {{togl: false}}}}\n  columns: [method, dataset, depth, mean, std]\n  \
         cells: [[Plain, DD, 2, 61.0, 5.0]]\n"
    );
    let sweep = SweepSpec::parse(&text).unwrap();
    let rows = rows(&sweep);
    let page = page(&text, &rows, &[], &[]);
    for wanted in ["My own picture", "Comparison with print", "their table cell by cell", "1 of 1 cells"] {
        assert!(page.contains(wanted), "{wanted}");
    }
}
