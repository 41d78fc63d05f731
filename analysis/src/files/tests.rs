//! Requirements of files: nothing changes on the way, and what does not fit is said.

use std::fs;
use std::path::PathBuf;

use polars::prelude::{IntoLazy, col, lit};
use tempfile::TempDir;
use togl_sweeps::trial::{Backbone, Position};

use super::*;
use crate::test_folds::{fold, folds, frame, trial};

pub(super) fn folder_with(frame: &FoldFrame, name: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    frame.write(&path).unwrap();
    (folder, path)
}

pub(super) fn awkward_frame() -> FoldFrame {
    let mut config = trial("naïve, \"quoted\"\nname", Backbone::Gat, 2);
    (config.lr, config.lr_min, config.togl, config.togl_position) = (0.1 + 0.2, 1e-300, true, Position::Last);
    let mut rows = folds(3, &config, &[1.0 / 3.0, 0.1, 1.0]);
    rows[0].fold.seed = u64::MAX;
    rows[1].result.seconds = 1e-7;
    (rows[1].result.finished_at, rows[1].result.energy_joules) = (Some(1_700_000_000_123), Some(0.1 + 0.2));
    rows[2].result.provenance.commit = "0012345".to_owned();
    rows[2].result.provenance.dirty = true;
    rows.push(fold(0, &trial("DD", Backbone::Gcn, 4), 0, 0.7));
    frame(rows)
}

#[test]
fn what_is_written_is_read_back_to_the_last_bit_in_every_format() {
    let frame = awkward_frame();
    for name in ["folds.parquet", "folds.arrow", "folds.csv", "folds.ndjson"] {
        let (folder, path) = folder_with(&frame, name);
        let read = FoldFrame::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(read, frame, "{name}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{name}: no temporary is left");
    }
}

#[test]
fn text_that_a_spreadsheet_would_run_is_guarded_in_csv_and_read_back() {
    let texts = ["=1+1", "'=1+1", "@x", "-2+3", "-5", "'", "\t=x"];
    let rows = texts.iter().zip(0..).map(|(name, at)| fold(at, &trial(name, Backbone::Gcn, 2), 0, 0.5));
    let data = frame(rows).data().clone().lazy().with_column(lit("=now").alias("@who"));
    let frame = FoldFrame::from_data(&data.collect().unwrap(), "test").unwrap();
    let (_folder, path) = folder_with(&frame, "folds.csv");
    let written = fs::read_to_string(&path).unwrap();
    assert!(written.lines().next().unwrap().ends_with(",'@who"), "{written}");
    for runs in [",=", ",@", ",-2+", ",\t", ",\"="] {
        assert!(!written.contains(runs), "{runs} in {written}");
    }
    assert_eq!(FoldFrame::read(&path).unwrap(), frame);
}

#[test]
fn columns_beyond_the_schema_are_kept() {
    let data = awkward_frame().data().clone().lazy().with_column(lit(2.5).alias("extra")).collect().unwrap();
    let frame = FoldFrame::from_data(&data, "test").unwrap();
    for name in ["folds.parquet", "folds.arrow", "folds.csv", "folds.ndjson"] {
        let (_folder, path) = folder_with(&frame, name);
        assert_eq!(FoldFrame::read(&path).unwrap(), frame, "{name}");
    }
}

#[test]
fn a_missing_column_is_named() {
    let frame = awkward_frame();
    let data = frame.data().drop("seed").unwrap();
    for (name, format) in [
        ("f.parquet", FileFormat::Parquet),
        ("f.arrow", FileFormat::Arrow),
        ("f.csv", FileFormat::Csv),
        ("f.ndjson", FileFormat::Ndjson),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        write_as(format, &mut File::create(&path).unwrap(), &mut data.clone()).unwrap();
        let error = FoldFrame::read(&path).unwrap_err();
        assert!(matches!(&error, Error::MissingColumns { columns, .. } if columns == &["seed"]), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn a_newer_schema_is_refused() {
    let newer = awkward_frame().data().clone().lazy().with_column(lit(9_u64).alias("schema_version"));
    let error = FoldFrame::from_data(&newer.collect().unwrap(), "`x.parquet`").unwrap_err();
    insta::assert_snapshot!(error, @"`x.parquet` has schema version 9, this program knows up to 7; read it with a newer program");
}

#[test]
fn a_value_of_the_wrong_kind_or_none_where_one_is_needed_is_said() {
    let frame = awkward_frame();
    let words = frame.data().clone().lazy().with_column(lit("many").alias("depth")).collect().unwrap();
    let error = FoldFrame::from_data(&words, "`x.csv`").unwrap_err();
    insta::assert_snapshot!(error, @"`x.csv`, column `depth`: has values that are not whole numbers from 0");
    let holes = frame.data().clone().lazy().with_column(
        polars::prelude::when(col("split").eq(lit(1_u64)))
            .then(lit(polars::prelude::NULL))
            .otherwise(col("depth"))
            .alias("depth"),
    );
    let error = FoldFrame::from_data(&holes.collect().unwrap(), "`x.csv`").unwrap_err();
    insta::assert_snapshot!(error, @"`x.csv`, column `depth`: has no value in row 3");
}

#[test]
fn a_broken_file_is_named_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in
        [("x.parquet", "not parquet"), ("x.ndjson", "{\"a\": 1}\n{"), ("x.csv", "a,b\n1,2,3,4\n")]
    {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        let message = FoldFrame::read(&path).unwrap_err().to_string();
        assert!(message.contains(name) && message.lines().count() == 1, "{message}");
    }
}

#[test]
fn a_csv_line_that_does_not_parse_is_an_error_not_a_hole() {
    let (_folder, path) = folder_with(&awkward_frame(), "folds.csv");
    let text = fs::read_to_string(&path).unwrap().replace(",cpu,", ",cpu,extra,");
    fs::write(&path, text).unwrap();
    assert!(FoldFrame::read(&path).is_err());
}

#[test]
fn a_file_without_folds_and_one_of_unknown_kind_are_refused() {
    let (_folder, path) = folder_with(&frame([]), "none.parquet");
    assert!(matches!(FoldFrame::read(&path).unwrap_err(), Error::Empty { .. }));
    let error = FoldFrame::read(Path::new("folds.xlsx")).unwrap_err();
    insta::assert_snapshot!(error, @"cannot tell the format of `folds.xlsx` from its name; use .parquet, .arrow, .csv or .ndjson");
}

#[test]
fn a_parquet_column_of_an_unknown_type_is_refused_instead_of_panicking() {
    let data = awkward_frame().data().clone().lazy();
    let bytes = col("host").cast(DataType::Binary).alias("picture");
    let mut data = data.with_column(bytes).collect().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.parquet");
    ParquetWriter::new(File::create(&path).unwrap()).finish(&mut data).unwrap();
    let message = FoldFrame::read(&path).unwrap_err().to_string();
    assert!(message.contains("x.parquet`: column `picture` has the type"), "{message}");
}

#[test]
fn a_file_cut_off_in_the_middle_is_refused_in_every_format() {
    for name in ["folds.parquet", "folds.arrow", "folds.csv", "folds.ndjson"] {
        let (_folder, path) = folder_with(&awkward_frame(), name);
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 40]).unwrap();
        let error = FoldFrame::read(&path).unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn a_file_of_schema_version_1_is_read_without_the_sizes_it_does_not_have() {
    let data = awkward_frame().data().clone().lazy().with_column(lit(1_u64).alias("schema_version"));
    let mut old = data.collect().unwrap();
    for name in ["train_size", "validation_size", "test_size"] {
        old = old.drop(name).unwrap();
    }
    let frame = FoldFrame::from_data(&old, "`old.parquet`").unwrap();
    assert_eq!(frame.data().column("test_size").unwrap().null_count(), frame.len());
    let newer = old.lazy().with_column(lit(2_u64).alias("schema_version")).collect().unwrap();
    assert!(matches!(FoldFrame::from_data(&newer, "x"), Err(Error::MissingColumns { .. })));
}

#[test]
fn a_file_of_schema_version_2_has_the_defaults_of_settings_that_came_later() {
    let data = awkward_frame().data().clone().lazy().with_column(lit(2_u64).alias("schema_version"));
    let mut old = data.collect().unwrap();
    for name in ["wl_labels", "choose_rounds", "as_published", "svm_c_min", "svm_c_max", "inner_folds"] {
        old = old.drop(name).unwrap();
    }
    let frame = FoldFrame::from_data(&old, "`old.parquet`").unwrap();
    let fresh = awkward_frame();
    for name in ["wl_labels", "choose_rounds", "as_published", "svm_c_min", "svm_c_max", "inner_folds"] {
        let series = |frame: &FoldFrame| frame.data().column(name).unwrap().as_materialized_series().clone();
        assert!(series(&frame).equals(&series(&fresh)), "{name}");
    }
    let newer = old.lazy().with_column(lit(3_u64).alias("schema_version")).collect().unwrap();
    assert!(matches!(FoldFrame::from_data(&newer, "x"), Err(Error::MissingColumns { .. })));
}

#[test]
fn a_file_of_schema_version_3_is_read_without_times_and_energy_and_goes_together_with_a_newer_one() {
    let data = awkward_frame().data().clone().lazy().with_column(lit(3_u64).alias("schema_version"));
    let old = data.collect().unwrap().drop("finished_at").unwrap().drop("energy_joules").unwrap();
    let frame = FoldFrame::from_data(&old, "`old.parquet`").unwrap();
    for name in ["finished_at", "energy_joules"] {
        assert_eq!(frame.data().column(name).unwrap().null_count(), frame.len());
    }
    let mut timed = fold(0, &trial("ENZYMES", Backbone::Gcn, 4), 0, 0.5);
    timed.result.finished_at = Some(5);
    let together = FoldFrame::concat([frame, crate::test_folds::frame([timed])]).unwrap();
    assert_eq!(
        together.data().column("finished_at").unwrap().u64().unwrap().iter().flatten().sum::<u64>(),
        5
    );
    let newer = old.lazy().with_column(lit(4_u64).alias("schema_version")).collect().unwrap();
    assert!(matches!(FoldFrame::from_data(&newer, "x"), Err(Error::MissingColumns { .. })));
}

#[test]
fn a_file_of_schema_version_3_has_the_data_sets_own_splits() {
    let data = awkward_frame().data().clone().lazy().with_column(lit(3_u64).alias("schema_version"));
    let old = data.collect().unwrap().drop("outer_folds").unwrap();
    let frame = FoldFrame::from_data(&old, "`old.parquet`").unwrap();
    let folds = frame.data().column("outer_folds").unwrap().u64().unwrap();
    assert!(folds.iter().all(|folds| folds == Some(0)));
    let newer = old.lazy().with_column(lit(4_u64).alias("schema_version")).collect().unwrap();
    assert!(matches!(FoldFrame::from_data(&newer, "x"), Err(Error::MissingColumns { .. })));
}

#[test]
fn arrow_files_are_known_by_each_of_their_usual_endings() {
    for name in ["f.arrow", "f.ipc", "f.feather", "F.ARROW"] {
        assert_eq!(FileFormat::of(Path::new(name)).unwrap(), FileFormat::Arrow, "{name}");
    }
}

#[test]
fn files_of_all_formats_make_one_frame_in_the_order_given() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["a.ndjson", "b.csv", "c.feather", "d.parquet"];
    let mut paths = Vec::new();
    for (depth, name) in (1..).zip(names) {
        let one = frame(folds(0, &trial("DD", Backbone::Gcn, depth), &[0.5, 0.6]));
        let extra = lit(f64::from(depth)).alias("extra");
        let data = one.data().clone().lazy().with_column(extra).collect().unwrap();
        let path = folder.path().join(name);
        FoldFrame::from_data(&data, name).unwrap().write(&path).unwrap();
        paths.push(path);
    }
    let together = FoldFrame::read_all(&paths).unwrap();
    let depths: Vec<u64> = together.data().column("depth").unwrap().u64().unwrap().iter().flatten().collect();
    assert_eq!(depths, [1, 1, 2, 2, 3, 3, 4, 4]);
    let extra: Vec<f64> = together.data().column("extra").unwrap().f64().unwrap().iter().flatten().collect();
    assert_eq!(extra, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]);
}

#[test]
fn a_fold_in_two_files_is_refused_with_both_files_named() {
    let (_one, first) = folder_with(&awkward_frame(), "first.parquet");
    let (_two, second) = folder_with(&awkward_frame(), "second.arrow");
    let message = FoldFrame::read_all(&[first, second]).unwrap_err().to_string();
    assert!(message.starts_with("the same fold twice: "), "{message}");
    assert!(message.contains("first.parquet and ") && message.contains("second.arrow)"), "{message}");
}

/// A Python that can execute notebooks and read Parquet, if this machine has one.
fn python() -> Option<String> {
    let wanted = std::env::var("TOGL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let imports = "import nbconvert, ipykernel, pandas, pyarrow, polars";
    let tried = std::process::Command::new(&wanted).args(["-c", imports]).output();
    tried.is_ok_and(|output| output.status.success()).then_some(wanted)
}

#[test]
fn the_notebook_of_the_documents_says_what_it_groups_by() {
    let text = include_str!("../../../docs/notebooks/results.ipynb");
    let notebook: serde_json::Value = serde_json::from_str(text).unwrap();
    let cells = notebook["cells"].as_array().unwrap();
    let source = |cell: &serde_json::Value| {
        cell["source"].as_array().unwrap().iter().filter_map(serde_json::Value::as_str).collect::<String>()
    };
    let headings: Vec<String> =
        cells.iter().filter(|cell| cell["cell_type"] == "markdown").map(source).collect();
    assert!(headings.iter().any(|text| text == "## With pandas"), "{headings:?}");
    let code: String = cells.iter().filter(|cell| cell["cell_type"] == "code").map(source).collect();
    assert!(!code.contains("and False") && !code.contains(r#"group_by("method", "dataset""#), "{code}");
    assert_eq!(
        code.matches("group_by(").count(),
        code.matches("group_by(keys").count() + code.matches("group_by([*keys").count()
    );
}

#[test]
fn the_notebook_of_the_documents_reads_what_is_written() {
    let Some(python) = python() else {
        println!(
            "skipped: no Python with nbconvert, ipykernel, pandas, pyarrow and polars (TOGL_PYTHON names one)"
        );
        return;
    };
    let mut rows = folds(0, &trial("DD", Backbone::Gcn, 4), &[0.5, 0.6, 0.7]);
    rows.extend(folds(1, &trial("DD", Backbone::Gin, 4), &[0.4, 0.65, 0.8]));
    let slower = togl_sweeps::TrialConfig { lr: 1e-4, ..trial("DD", Backbone::Gin, 4) };
    rows.extend(folds(2, &slower, &[0.3, 0.6, 0.7]));
    let (folder, path) = folder_with(&frame(rows), "folds.parquet");
    let notebook = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/notebooks/results.ipynb");
    let output = std::process::Command::new(python)
        .args(["-m", "nbconvert", "--to", "notebook", "--execute", "--output", "done.ipynb", "--output-dir"])
        .arg(folder.path())
        .arg(notebook)
        .env("TOGL_FOLDS", &path)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let done = fs::read_to_string(folder.path().join("done.ipynb")).unwrap();
    assert!(done.contains("3 cells agree"), "{done}");
}
