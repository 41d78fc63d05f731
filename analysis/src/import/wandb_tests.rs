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
    assert!(message.ends_with("runs.csv`: line 3: `depth` is `four`, which cannot be"), "{message}");
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
