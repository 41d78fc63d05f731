//! Requirements of the W&B import, on exports of a few lines.

use std::fs;

use tempfile::TempDir;

use super::*;

const HEADER: &str = "\"Name\",\"State\",\"Runtime\",\"GIN\",\"dataset\",\"deepset\",\"depth\",\"early_topo\",\
                      \"fake\",\"fold\",\"lr\",\"min_lr\",\"model\",\"training_seed\",\"use_node_attributes\",\
                      \"test_acc\",\"val_acc\",\"empty\"";

fn export(lines: &[&str]) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    fs::write(&path, format!("{HEADER}\n{}\n", lines.join("\n"))).unwrap();
    (folder, path)
}

fn import(lines: &[&str]) -> Result<Imported> {
    let (_folder, path) = export(lines);
    read(&[path], &Mapping::default())
}

const TOGL: &str = r#""Topo, DD","finished","1196","false","DD","true","4","true","true","3","0.0007","0.000001","LargerTopoGNN","421","false","0.75","0.85","""#;
const GCN: &str = r#""GCN","finished","10","","DD","","2","","","0","0.0007","0.000001","LargerGCN","4294967295","true","0.5","0.25","""#;
const CRASHED: &str = r#""GCN","crashed","10","","DD","","2","","","1","0.0007","0.000001","LargerGCN","7","true","","0.25","""#;

fn text(frame: &FoldFrame, name: &str, row: usize) -> String {
    crate::columns::label(&frame.data().column(name).unwrap().get(row).unwrap())
}

#[test]
fn settings_keys_and_metrics_are_found_under_their_foreign_names() {
    let frame = import(&[TOGL, GCN]).unwrap().frame;
    let expected = [
        ("method", ["GCN-4-TOGL-1 (DeepSet, static)", "GCN-2"]),
        ("split", ["3", "0"]),
        ("seed", ["421", "4294967295"]),
        ("features", ["random", "original"]),
        ("togl_position", ["1", "1"]),
        ("lr", ["0.0007", "0.0007"]),
        ("test_accuracy", ["0.75", "0.5"]),
        ("last_validation_accuracy", ["0.85", "0.25"]),
        ("validation_accuracy", ["", ""]),
        ("seconds", ["1196.0", "10.0"]),
        ("origin", ["runs.csv:2", "runs.csv:3"]),
        ("wandb_Name", ["Topo, DD", "GCN"]),
    ];
    for (name, values) in expected {
        assert_eq!([text(&frame, name, 0), text(&frame, name, 1)], values, "{name}");
    }
    assert!(frame.data().column("wandb_empty").is_err(), "a column that says nothing is not kept");
}

#[test]
fn a_run_without_a_test_value_is_left_out_and_named() {
    let imported = import(&[CRASHED, GCN]).unwrap();
    assert_eq!(imported.frame.len(), 1);
    assert_eq!(imported.skipped, ["runs.csv:2: its state is crashed"]);
    let silent = CRASHED.replace("crashed", "finished");
    assert_eq!(import(&[&silent, GCN]).unwrap().skipped, ["runs.csv:2: no test value"]);
}

#[test]
fn rows_keep_the_order_of_files_and_lines() {
    let (_one, first) = export(&[GCN]);
    let (_two, second) = export(&[TOGL]);
    for (files, methods) in [
        ([first.clone(), second.clone()], ["GCN-2", "GCN-4-TOGL-1 (DeepSet, static)"]),
        ([second, first], ["GCN-4-TOGL-1 (DeepSet, static)", "GCN-2"]),
    ] {
        let frame = read(&files, &Mapping::default()).unwrap().frame;
        assert_eq!([text(&frame, "method", 0), text(&frame, "method", 1)], methods);
    }
}

#[test]
fn the_same_run_twice_is_refused() {
    let error = import(&[GCN, TOGL, GCN]).unwrap_err();
    insta::assert_snapshot!(error, @"the same fold twice: GCN-2 on DD, split 0, seed 4294967295 (runs.csv:2 and runs.csv:4); keep one row of each");
}

#[test]
fn late_placement_is_before_the_last_layer() {
    let late = TOGL.replace(r#""4","true","true""#, r#""4","false","true""#);
    assert_eq!(text(&import(&[&late]).unwrap().frame, "togl_position", 0), "3");
}

#[test]
fn another_column_can_be_named() {
    let (_folder, path) = export(&[GCN]);
    let swapped = Mapping::default().with("test_accuracy", "val_acc").unwrap();
    assert_eq!(text(&read(&[path], &swapped).unwrap().frame, "test_accuracy", 0), "0.25");
}

#[test]
fn what_cannot_be_read_is_named_with_its_line() {
    let message = import(&[GCN, &TOGL.replace("\"4\"", "\"four\"")]).unwrap_err().to_string();
    assert!(
        message.ends_with(
            "runs.csv`: line 3: `depth` is `four`, which is not understood; it must be a whole number from 0"
        ),
        "{message}"
    );
    let message = import(&[&TOGL.replace("0.0007", "-1")]).unwrap_err().to_string();
    assert!(message.contains("runs.csv`: line 2: setting `lr`"), "{message}");
}

#[test]
fn a_file_that_is_no_export_of_runs_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("summary.csv");
    fs::write(&path, "dataset,depth,val_acc_mean\nDD,1,0.5\n").unwrap();
    let error = read(&[path], &Mapping::default()).unwrap_err();
    assert!(matches!(&error, Error::MissingColumns { columns, .. } if columns[0] == "model"), "{error}");
    let error = import(&[CRASHED]).unwrap_err();
    insta::assert_snapshot!(error, @"no run is left to import: all 1 were left out; the reasons stand above");
    assert!(
        matches!(error, Error::AllLeftOut { skipped } if skipped == ["runs.csv:2: its state is crashed"])
    );
    let error = import(&[]).unwrap_err();
    insta::assert_snapshot!(error, @"the import has no folds; is it the right one, and has anything finished yet?");
}

/// An export of another group: other order, Python's spelling, Windows line ends, and only what is needed.
#[test]
fn an_export_with_other_columns_in_another_order_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("theirs.csv");
    let lines = [
        "\u{feff}test_acc,GIN,seed,depth,model,fold,dataset,\"my, note\",val_acc,deepset,early_topo,use_node_attributes",
        "0.5,True,3.0,4.0,LargerGCN,2,MUTAG,\"a \"\"quoted\"\" word\",,,,True",
        "0.625,False,7,2,LargerTopoGNN,0,NCI1,,0.25,True,False,False",
        "0.75,nan,8,2,LargerTopoGNN,0,NCI1,\"two\r\nlines\",NaN,False,True,False",
        "0.5,,9,2,LargerGCN,0,NCI1,,,,,",
    ];
    fs::write(&path, lines.join("\r\n")).unwrap();
    let frame = read(&[path], &Mapping::default()).unwrap().frame;
    let expected = [
        ("method", ["GIN-4", "GCN-2-TOGL-1 (DeepSet)", "GCN-2-TOGL-1", "GCN-2"]),
        ("dataset", ["MUTAG", "NCI1", "NCI1", "NCI1"]),
        ("split", ["2", "0", "0", "0"]),
        ("seed", ["3", "7", "8", "9"]),
        ("features", ["original", "random", "random", "original"]),
        ("togl_position", ["1", "1", "1", "1"]),
        ("last_validation_accuracy", ["", "0.25", "", ""]),
        ("test_accuracy", ["0.5", "0.625", "0.75", "0.5"]),
        ("origin", ["theirs.csv:2", "theirs.csv:3", "theirs.csv:4", "theirs.csv:6"]),
        ("wandb_my, note", ["a \"quoted\" word", "", "two\r\nlines", ""]),
    ];
    for (name, values) in expected {
        let found: Vec<String> = (0..4).map(|row| text(&frame, name, row)).collect();
        assert_eq!(found, values, "{name}");
    }
}

#[test]
fn runs_that_say_something_else_in_a_column_are_left_out_and_named() {
    let (_folder, path) = export(&[TOGL, GCN]);
    let paths = [path];
    let only = |values: &[&str]| read(&paths, &Mapping::default().only("depth", values)).unwrap();
    let imported = only(&["4.0"]);
    assert_eq!((imported.frame.len(), imported.skipped), (1, vec!["runs.csv:3: its depth is 2".to_owned()]));
    assert_eq!(only(&["2", "4"]).frame.len(), 2);
    let silent = read(&paths, &Mapping::default().only("deepset", &["true"])).unwrap();
    assert_eq!(silent.frame.len(), 2, "a network without TOGL says nothing about its embedding");
}

#[test]
fn images_without_attributes_keep_their_colour_and_other_graphs_get_random_features() {
    for (dataset, features) in
        [("MNIST", "colour"), ("mnist", "colour"), ("CIFAR-10", "colour"), ("ENZYMES", "random")]
    {
        let line = TOGL.replace("\"DD\"", &format!("\"{dataset}\""));
        let frame = import(&[&line]).unwrap().frame;
        assert_eq!(text(&frame, "features", 0), features, "{dataset}");
    }
}

#[test]
fn a_broken_line_is_refused_with_its_number_and_nothing_is_guessed() {
    let message = import(&[GCN, r#""Topo, DD","finished","1196""#]).unwrap_err().to_string();
    assert!(message.ends_with("line 3 has 3 fields where the header has 18; is it cut off?"), "{message}");
}

#[test]
fn a_percentage_is_not_taken_for_a_share() {
    let message = import(&[&GCN.replace("\"0.5\"", "\"50.0\"")]).unwrap_err().to_string();
    assert!(
        message.ends_with("line 2: `test_acc` is 50, which is no share from 0 to 1; divide percentages by 100 before importing"),
        "{message}"
    );
}

#[test]
fn a_mapping_of_unknown_columns_is_refused_on_either_side() {
    let error = Mapping::default().with("dpth", "layers").unwrap_err();
    insta::assert_snapshot!(error, @"our column of a mapping cannot be `dpth`; did you mean `depth`?");
    let (_folder, path) = export(&[GCN]);
    let asked = Mapping::default().with("lr_patience", "patience").unwrap();
    let message = read(&[path], &asked).unwrap_err().to_string();
    assert!(message.contains("lacks the column `patience`"), "{message}");
}

#[test]
fn text_that_is_not_utf_8_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    let mut bytes = format!("{HEADER}\n").into_bytes();
    bytes.extend([b"\"\xff\"", &b",\"x\"".repeat(17)[..], b"\n"].concat());
    fs::write(&path, bytes).unwrap();
    let message = read(&[path], &Mapping::default()).unwrap_err().to_string();
    assert!(message.ends_with("runs.csv`: line 2 is not UTF-8 text"), "{message}");
}

/// An export with only what is needed and one more column.
fn with_column(name: &str, values: &[(&str, &str)], mapping: &Mapping) -> Result<Imported> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.csv");
    let lines =
        values.iter().zip(0..).map(|((model, value), seed)| format!("DD,{model},4,0.5,{seed},{value}\n"));
    fs::write(&path, format!("dataset,model,depth,test_acc,seed,{name}\n{}", lines.collect::<String>()))
        .unwrap();
    read(&[path], mapping)
}

fn method(model: &str, column: &str, value: &str) -> Result<String> {
    let imported = with_column(column, &[(model, value)], &Mapping::default())?;
    Ok(text(&imported.frame, "method", 0))
}

#[test]
fn a_network_is_known_by_its_name_or_by_the_flag_beside_it() {
    for (model, column, value, expected) in [
        ("GIN", "x", "", "GIN-4"),
        ("LargerGCN", "GIN", "1", "GIN-4"),
        ("LargerGCN", "GIN", "Yes", "GIN-4"),
        ("gcn", "GIN", "no", "GCN-4"),
        ("GIN", "GIN", "true", "GIN-4"),
        ("topognn", "x", "", "GCN-4-TOGL-1"),
        ("LargerTopoGNN", "GAT", "True", "GAT-4-TOGL-1"),
        ("WL", "x", "", "WL-4"),
    ] {
        assert_eq!(method(model, column, value).unwrap(), expected, "{model} with {column}={value}");
    }
}

#[test]
fn a_network_that_is_not_understood_is_refused_and_never_taken_for_another() {
    let reason = |model, column, value| {
        let message = method(model, column, value).unwrap_err().to_string();
        message.split_once("runs.csv`: ").unwrap().1.to_owned()
    };
    insta::assert_snapshot!(reason("TopoGNN_v2", "x", ""), @"line 2: `model` is `TopoGNN_v2`, which is not understood; it must be one of gcn, gin, gat, gatedgcn, topognn, wl, wl-oa, ph, gfl, perslay, with or without `Larger` before it");
    insta::assert_snapshot!(reason("", "x", ""), @"line 2: `model` is empty, but needed to know what was trained");
    insta::assert_snapshot!(reason("GAT", "GIN", "true"), @"line 2: `GIN` is `true`, which is not understood; it must be false where the model is `GAT`");
    insta::assert_snapshot!(reason("GCN", "GIN", "maybe"), @"line 2: `GIN` is `maybe`, which is not understood; it must be true, false, yes, no, 1 or 0");
    insta::assert_snapshot!(reason("GCN", "use_node_attributes", "some"), @"line 2: `use_node_attributes` is `some`, which is not understood; it must be true, false, yes, no, 1 or 0");
    insta::assert_snapshot!(reason("TopoGNN", "early_topo", "2"), @"line 2: `early_topo` is `2`, which is not understood; it must be true, false, yes, no, 1 or 0");
    insta::assert_snapshot!(reason("GCN", "fold", "4294967296"), @"line 2: `fold` is `4294967296`, which is not understood; it must be a whole number below 2^32");
    insta::assert_snapshot!(reason("GCN", "lr", "inf"), @"line 2: `lr` is `inf`, which is not understood; it must be a number");
    let message = import(&[&GCN.replace(r#""2","","#, r#""","","#)]).unwrap_err().to_string();
    assert!(message.ends_with("line 2: `depth` is empty, but needed to know what was trained"), "{message}");
}

#[test]
fn attributes_are_understood_however_yes_and_no_are_written() {
    for (value, features) in
        [("0", "random"), ("no", "random"), ("False", "random"), ("1.0", "original"), ("", "original")]
    {
        let imported = with_column("use_node_attributes", &[("GCN", value)], &Mapping::default()).unwrap();
        assert_eq!(text(&imported.frame, "features", 0), features, "{value}");
    }
}

#[test]
fn every_mapped_setting_is_read_from_where_the_mapping_says() {
    for (ours, value, setting) in
        [("togl", "yes", "true"), ("features", "random", "random"), ("last_epoch", "full", "full")]
    {
        let mapping = Mapping::default().with(ours, "theirs").unwrap();
        let imported = with_column("theirs", &[("GCN", value)], &mapping).unwrap();
        assert_eq!(text(&imported.frame, ours, 0), setting);
        assert!(imported.frame.data().column("wandb_theirs").is_err(), "it was read");
    }
    let mapping = Mapping::default().with("model", "arch").unwrap();
    assert_eq!(text(&with_column("arch", &[("GCN", "gat")], &mapping).unwrap().frame, "model", 0), "gat");
    let mapping = Mapping::default().with("togl", "theirs").unwrap();
    let message = with_column("theirs", &[("TopoGNN", "no")], &mapping).unwrap_err().to_string();
    assert!(message.contains("`theirs` is `false`"), "{message}");
}

#[test]
fn a_column_that_is_only_named_like_a_setting_is_kept_and_not_read() {
    for name in ["togl", "features", "last_epoch"] {
        let imported = with_column(name, &[("GCN", "anything")], &Mapping::default()).unwrap();
        assert_eq!(text(&imported.frame, &format!("wandb_{name}"), 0), "anything");
    }
}

#[test]
fn a_condition_on_a_column_that_no_export_has_is_refused() {
    let error =
        with_column("min_cycle", &[("GCN", "3")], &Mapping::default().only("min_cycl", &["3"])).unwrap_err();
    insta::assert_snapshot!(error, @"a column of the export cannot be `min_cycl`; did you mean `min_cycle`?");
}

#[test]
fn an_unread_column_in_which_runs_of_a_trial_differ_is_named() {
    let runs = [("GCN", "3"), ("GCN", "4"), ("GCN", "3"), ("GCN", "4")];
    assert_eq!(with_column("min_cycle", &runs, &Mapping::default()).unwrap().varying, ["min_cycle"]);
    let apart = [("GCN", "3"), ("GCN", "3"), ("GIN", "4"), ("GIN", "4")];
    assert!(with_column("min_cycle", &apart, &Mapping::default()).unwrap().varying.is_empty());
    let measured = [("GCN", "0.31"), ("GCN", "0.32"), ("GCN", "0.33"), ("GCN", "0.34")];
    assert!(with_column("gpu_load", &measured, &Mapping::default()).unwrap().varying.is_empty());
}

#[test]
fn a_missing_column_is_named_once_however_often_it_is_needed() {
    let mapping = Mapping::default().with("depth", "nope").unwrap().with("model", "nope").unwrap();
    let message = with_column("x", &[("GCN", "")], &mapping).unwrap_err().to_string();
    assert!(message.contains("lacks the column `nope`;"), "{message}");
}
