//! What the language of sweep files can say: ranges, axes that move together, unions, conditions, presets, samples.

use proptest::prelude::*;
use serde_json::Value;

use crate::SweepSpec;
use crate::ids::TrialId;
use crate::spec::{DeviceKind, Labels, Metric, Per, PlannedTrial, PublishedCell, Selection};

fn sweep(body: &str) -> SweepSpec {
    let text = format!("version: 1\nname: x\n{body}");
    SweepSpec::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn refusal(body: &str) -> String {
    SweepSpec::parse(&format!("version: 1\nname: x\n{body}")).unwrap_err().to_string()
}

fn trials(body: &str) -> Vec<PlannedTrial> {
    sweep(body).trials
}

/// The values of some settings in each trial.
fn shown(body: &str, names: &[&str]) -> Vec<String> {
    let show = |trial: &PlannedTrial| {
        let values: Vec<String> = names.iter().map(|name| trial.config.show(name).unwrap()).collect();
        values.join(" ")
    };
    trials(body).iter().map(show).collect()
}

const BASE: &str = "base: {dataset: cycles}\n";

#[test]
fn an_axis_may_be_a_range_with_a_step() {
    assert_eq!(
        shown(&format!("{BASE}grid: {{depth: {{from: 2, to: 5}}}}"), &["depth"]),
        ["2", "3", "4", "5"]
    );
    let body = format!("{BASE}grid: {{dropout_p: {{from: 0.1, to: 0.4, step: 0.1}}}}");
    assert_eq!(shown(&body, &["dropout_p"]), ["0.1", "0.2", "0.3", "0.4"]);
    assert_eq!(
        shown(&format!("{BASE}grid: {{depth: {{from: 1, to: 6, step: 2}}}}"), &["depth"]),
        ["1", "3", "5"]
    );
}

#[test]
fn an_axis_may_be_a_range_of_equal_ratios() {
    let body = format!("{BASE}grid: {{lr: {{from: 1e-4, to: 1e-1, count: 4}}}}");
    assert_eq!(shown(&body, &["lr"]), ["0.0001", "0.001", "0.01", "0.1"]);
    let body = format!("{BASE}grid: {{hidden_dim: {{from: 16, to: 128, factor: 2}}}}");
    assert_eq!(shown(&body, &["hidden_dim"]), ["16", "32", "64", "128"]);
    let body = format!("{BASE}grid: {{batch_size: {{from: 1, to: 100, count: 3}}}}");
    assert_eq!(shown(&body, &["batch_size"]), ["1", "10", "100"]);
}

#[test]
fn zipped_axes_move_together() {
    let body = "grid: {togl: [false, true]}\nzip: {dataset: [a, b], depth: [1, 2]}";
    assert_eq!(
        shown(body, &["togl", "dataset", "depth"]),
        ["false a 1", "false b 2", "true a 1", "true b 2"]
    );
    let two = "zip:\n  - {dataset: [a, b], depth: [1, 2]}\n  - {lr: [1.0, 2.0], batch_size: [8, 9]}";
    assert_eq!(shown(two, &["depth", "batch_size"]), ["1 8", "1 9", "2 8", "2 9"]);
    assert_eq!(
        refusal("zip: {dataset: [a, b], depth: [1, 2, 3]}"),
        "3:31: zip.depth: has 3 values, the axes above it have 2; axes that move together are equally long"
    );
}

#[test]
fn a_union_has_the_points_of_its_grids_in_order_each_with_its_own_folds() {
    let body = "\
base: {depth: 2}
splits: [0, 1]
union:
  - base: {dataset: a}
    grid: {togl: [false, true]}
  - base: {dataset: b, depth: 3}
    splits: {from: 0, to: 9}
    seeds: [421]
  - base: {dataset: a}
    seeds: [5]
";
    let spec = sweep(body);
    assert_eq!(spec.grid.count(), 4);
    assert_eq!(spec.count_folds(), 4 + 10 + 2);
    let trials = &spec.trials;
    let folds: Vec<usize> = trials.iter().map(|trial| spec.folds_of(trial.id).count()).collect();
    assert_eq!(folds, [4, 2, 10], "the first trial stands in two grids and has the folds of both");
    assert_eq!(trials[2].config.depth, 3);
}

#[test]
fn an_axis_or_a_value_may_depend_on_settings_above_it() {
    let axis = format!(
        "{BASE}grid:\n  togl: [false, true]\n  deepset: {{values: [false, true], when: {{togl: true}}}}"
    );
    assert_eq!(sweep(&axis).grid.count(), 3);
    let value =
        format!("{BASE}grid:\n  model: [gcn, gat]\n  num_heads: [1, {{value: 8, when: {{model: gat}}}}]");
    assert_eq!(shown(&value, &["model", "num_heads"]), ["gcn 1", "gat 1", "gat 8"]);
    let late = format!(
        "{BASE}grid:\n  deepset: {{values: [false, true], when: {{togl: true}}}}\n  togl: [false, true]"
    );
    assert_eq!(
        refusal(&late),
        "5:3: grid.deepset: `when` names `togl`, which is decided later; write that axis above this one"
    );
}

#[test]
fn excluded_points_are_left_out() {
    let body = format!(
        "{BASE}grid: {{togl: [false, true], depth: [1, 2, 3]}}\nexclude: [{{togl: true, depth: [1, 2]}}]"
    );
    assert_eq!(shown(&body, &["togl", "depth"]), ["false 1", "false 2", "false 3", "true 3"]);
    let nothing = format!("{BASE}grid: {{depth: [1, 2]}}\nexclude: [{{depth: [1, 2]}}]");
    assert!(refusal(&nothing).ends_with("`exclude` leaves no point of the grid"));
}

#[test]
fn a_preset_gives_way_to_what_the_file_names_itself() {
    let body = "base: {preset: dd, dataset: DD, lr: 0.5}\ngrid: {depth: [1]}";
    assert_eq!(shown(body, &["hidden_dim", "lr", "batch_size"]), ["138 0.5 20"]);
    let zipped = "base: {lr: 0.5}\nzip: {dataset: [DD, mnist], preset: [dd, mnist]}";
    assert_eq!(
        shown(zipped, &["dataset", "hidden_dim", "lr", "batch_size"]),
        ["DD 138 0.5 20", "mnist 146 0.5 128"]
    );
    let gat = "base: {dataset: DD, preset: dd-gat}";
    assert_eq!(
        shown(gat, &["model", "hidden_dim", "num_heads", "gat_last", "lr"]),
        ["gat 17 8 concat 0.00005"]
    );
    assert_eq!(refusal("base: {preset: ddd}"), "3:16: base.preset: no preset `ddd`; did you mean `dd`?");
}

#[test]
fn splits_and_seeds_may_be_ranges() {
    let spec = sweep(&format!("{BASE}splits: {{from: 42, to: 46}}\nseeds: {{from: 0, to: 4, step: 2}}"));
    assert_eq!((spec.splits, spec.seeds), (vec![42, 43, 44, 45, 46], vec![0, 2, 4]));
    assert_eq!(refusal(&format!("{BASE}splits: [1, 2, 1]")), "4:16: splits: names 1 twice");
}

#[test]
fn an_axis_without_any_effect_is_refused() {
    assert_eq!(
        refusal(&format!("{BASE}grid:\n  deepset: [false, true]")),
        "5:3: grid.deepset: has no effect in any point; it needs `togl: true`"
    );
    assert!(refusal(&format!("{BASE}grid: {{num_heads: [1, 8]}}")).contains("it needs `model: gat`"));
}

#[test]
fn a_point_that_cannot_be_built_is_refused_at_the_axis_to_blame() {
    let body = "base: {dataset: cycles, togl: true}\ngrid:\n  depth: [1, 3]\n  togl_position: [3]";
    assert!(refusal(body).starts_with("6:3: grid point depth=1, togl_position=3: setting `togl_position`"));
}

#[test]
fn a_sample_of_a_grid_is_extended_without_drawing_again() {
    let body = |budget: u32| {
        format!(
            "{BASE}grid: {{depth: {{from: 1, to: 20}}, hidden_dim: {{from: 4, to: 53}}}}\nexclude: [{{depth: 7}}]\n\
             random: {{budget: {budget}, seed: 3, from: grid}}"
        )
    };
    let ids = |budget| -> Vec<TrialId> { trials(&body(budget)).iter().map(|trial| trial.id).collect() };
    let (few, more, all) = (ids(10), ids(60), ids(5000));
    assert_eq!((few.len(), more.len(), all.len()), (10, 60, 19 * 50));
    assert_eq!(more[..10], few);
    assert_eq!(all[..60], more);
    assert_eq!(sweep(&body(5000)).grid.count(), 950);
}

#[test]
fn a_sample_of_a_huge_grid_is_made_at_once() {
    let axis = "{from: 1, to: 1000}";
    let body = format!(
        "{BASE}grid: {{hidden_dim: {{from: 4, to: 1000}}, lr_patience: {axis}, max_epochs: {axis}, batch_size: {axis}}}\n\
         random: {{budget: 100, seed: 1, from: grid}}"
    );
    assert_eq!(trials(&body).len(), 100);
}

#[test]
fn draws_from_distributions_do_not_depend_on_each_other_or_on_their_order() {
    let body = |distributions: &str, budget: u32| {
        format!("{BASE}random: {{budget: {budget}, seed: 9, distributions: {{{distributions}}}}}")
    };
    let lr = "lr: {log_uniform: [1e-4, 1e-1]}";
    let depth = "depth: {uniform: [1, 5]}";
    let model = "model: {choice: [gcn, gin]}";
    let alone = shown(&body(lr, 8), &["lr"]);
    assert_eq!(alone, shown(&body(&format!("{model}, {depth}, {lr}"), 8), &["lr"]));
    assert_eq!(alone, shown(&body(lr, 20), &["lr"])[..8]);
    let both = shown(&body(&format!("{depth}, {model}"), 8), &["depth", "model"]);
    assert_eq!(both, shown(&body(&format!("{model}, {depth}"), 8), &["depth", "model"]));
    let crossed = format!("grid: {{dataset: [a, b]}}\nrandom: {{budget: 3, distributions: {{{lr}}}}}");
    assert_eq!(sweep(&crossed).grid.count(), 6);
    assert_eq!(trials(&crossed).len(), 6);
}

#[test]
fn resources_figures_selection_and_printed_numbers_are_kept() {
    let body = format!(
        "{BASE}grid: {{togl: [false, true]}}
resources: {{device: cuda, memory: 8 GiB}}
table: {{rows: [togl], columns: dataset, select: {{among: [deepset]}}}}
figure: {{x: depth, lines: [method], panels: dataset, metric: last_validation_accuracy}}
published:
  table: table1
  methods: {{GCN-4: {{togl: false}}}}
  datasets: {{CYCLES: cycles}}
  columns: [method, dataset, mean, std, cited]
  cells:
    - [GCN-4, CYCLES, 68.0, 3.6, false]
    - [WL, CYCLES, 70, null, true]
"
    );
    let spec = sweep(&body);
    assert_eq!((spec.resources.device, spec.resources.memory), (DeviceKind::Cuda, Some(8 << 30)));
    let selection = spec.selection.unwrap();
    let among = Some(vec!["deepset".to_owned()]);
    assert_eq!((selection.among, selection.by), (among, Metric::LastValidationAccuracy));
    assert_eq!(
        (spec.figures[0].x.as_str(), spec.figures[0].metric),
        ("depth", Metric::LastValidationAccuracy)
    );
    let published = &spec.published[0];
    assert!(published.methods[0].1.holds(&spec.grid.parts[0].grid.base));
    assert_eq!((published.cells[0].std, published.cells[1].std), (Some(3.6), None));
    assert!(published.cells[1].cited);
}

#[test]
fn a_table_of_the_paper_is_named_and_not_repeated() {
    let published =
        |block: &str| SweepSpec::parse(&format!("version: 1\nname: x\n{BASE}published: {block}\n"));
    let spec = published("{table: table1, methods: {GCN-4: {togl: false}}}").unwrap();
    let cells: Vec<PublishedCell> = crate::published::cells_of("table1").cloned().collect();
    assert_eq!((spec.published[0].cells.len(), &spec.published[0].cells), (36, &cells));
    let own = published("{table: table1, columns: [method, dataset, mean], cells: [[a, b, 1]]}").unwrap();
    assert_eq!((own.published[0].cells.len(), own.published[0].cells[0].table.as_str()), (1, "table1"));
    let unknown = published("{table: table9}").unwrap_err().to_string();
    assert!(unknown.contains("the key `columns` is missing"), "{unknown}");
}

#[test]
fn a_table_keeps_its_group_and_its_filter_as_text() {
    let text = "version: 1\nname: x\nbase: {dataset: DD}\ngrid: {depth: [1, 2], lr: [0.001, 0.01]}\n\
                table: {columns: depth, group: lr, filter: {lr: [1e-3], togl: false}}\n";
    let table = SweepSpec::parse(text).unwrap().table;
    assert_eq!(table.group.as_deref(), Some("lr"));
    let filter =
        [("lr", "0.001"), ("togl", "false")].map(|(name, value)| (name.to_owned(), vec![value.to_owned()]));
    assert_eq!(table.filter, filter);
    let misspelt = text.replace("filter: {lr", "filter: {lrr");
    assert!(SweepSpec::parse(&misspelt).unwrap_err().message.contains("did you mean `lr`"));
}

/// A file with its keys in some order.
fn shuffled_file(order: &[usize], inner: &[usize]) -> String {
    let settings = ["depth: [1, 2]", "lr_patience: [3, 4]", "togl: [false, true]"];
    let grid: Vec<&str> = inner.iter().map(|at| settings[*at]).collect();
    let base = ["dataset: cycles", "hidden_dim: 32", "lr: 0.01"];
    let base: Vec<&str> = inner.iter().map(|at| base[*at]).collect();
    let blocks = [
        "version: 1".to_owned(),
        "name: x".to_owned(),
        format!("base: {{{}}}", base.join(", ")),
        format!("grid: {{{}}}", grid.join(", ")),
        "exclude: [{togl: true, depth: 2}]".to_owned(),
    ];
    let lines: Vec<&str> = order.iter().map(|at| blocks[*at].as_str()).collect();
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn identities_are_unique_and_stable_under_reordering_of_keys(
        order in Just(vec![0usize, 1, 2, 3, 4]).prop_shuffle(),
        inner in Just(vec![0usize, 1, 2]).prop_shuffle(),
    ) {
        let ids = |text: &str| -> std::collections::BTreeSet<TrialId> {
            SweepSpec::parse(text).unwrap().trials.iter().map(|trial| trial.id).collect()
        };
        let reference = ids(&shuffled_file(&[0, 1, 2, 3, 4], &[0, 1, 2]));
        prop_assert_eq!(reference.len(), 6);
        prop_assert_eq!(ids(&shuffled_file(&order, &inner)), reference);
    }
}

#[test]
fn the_schema_names_every_setting_and_every_preset() {
    let schema = crate::schema::schema();
    let base = &schema["$defs"]["base"]["properties"];
    assert!(crate::settings::names().all(|name| base[name] != Value::Null));
    assert_eq!(base["preset"]["enum"].as_array().unwrap().len(), crate::presets::PRESETS.len());
}

#[test]
fn a_table_block_says_what_is_printed_in_which_order_and_what_is_chosen() {
    let spec = sweep(&format!(
        "{BASE}table:
  labels: {{togl: {{true: with TOGL, false: plain}}, depth: layers}}
  order: {{depth: [4, 2], lr: [1e-3], method: [GCN-4]}}
  decimals: 2
  caption: Does it help?
  label: tab:help
  metric: test_f1
  select: {{per: config}}
"
    ));
    let values = vec![("true".to_owned(), "with TOGL".to_owned()), ("false".to_owned(), "plain".to_owned())];
    let labels = [
        Labels { setting: "togl".to_owned(), header: None, values },
        Labels { setting: "depth".to_owned(), header: Some("layers".to_owned()), values: Vec::new() },
    ];
    assert_eq!(spec.table.labels, labels);
    let order = [("depth", vec!["4", "2"]), ("lr", vec!["0.001"]), ("method", vec!["GCN-4"])];
    let order =
        order.map(|(name, values)| (name.to_owned(), values.into_iter().map(str::to_owned).collect()));
    assert_eq!(spec.table.order, order);
    assert_eq!((spec.table.decimals, spec.table.label.as_deref()), (Some(2), Some("tab:help")));
    assert_eq!((spec.table.caption.as_deref(), spec.table.metric), (Some("Does it help?"), Metric::TestF1));
    let chosen = Selection { among: None, by: Metric::ValidationAccuracy, per: Per::Config };
    assert_eq!(spec.selection, Some(chosen));
}
