//! Draws every kind of figure as SVG and PNG into a folder, from exported runs and made-up curves, and writes the
//! report of a made-up sweep, for looking at:
//! `cargo run -p togl-analysis --example figures -- FOLDER RUNS.csv...`

use std::path::{Path, PathBuf};

use togl_analysis::curves::{CurveGroup, CurveGroups};
use togl_analysis::figure::{self, Curve, Figure, LearntFiltrations, LearntGraph, Work};
use togl_analysis::import::wandb::{self, Mapping};
use togl_analysis::report::{self, ReportInput, ReportedFailure};
use togl_analysis::{Error, FoldRow, Layout, Plan, Result};
use togl_sweeps::SweepSpec;
use togl_sweeps::result::{self, EpochRecord, Metrics};
use togl_sweeps::spec::Metric;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let folder = arguments.next().unwrap_or_else(|| PathBuf::from("."));
    let files: Vec<PathBuf> = arguments.collect();
    let frame = wandb::read(&files, &Mapping::default())?.frame;
    let save = |name: &str, figure: Figure| -> Result<()> {
        figure.write(&folder.join(format!("{name}.svg")))?;
        figure.write(&folder.join(format!("{name}.png"))).map(|_| ())
    };
    let structural = Layout::StructuralExtended.make(&frame)?;
    save("depth", figure::against(&structural, "depth")?)?;
    save("critical", figure::critical_difference(&figure::ranking(&structural)?, 0.05)?)?;
    let main = Layout::Table1.make(&frame)?;
    for map in figure::fold_heat_maps(&main)? {
        save("folds", map)?;
    }
    save("curves", figure::learning_curves("Learning curves (made up)", &curves())?)?;
    let runs = frame.only(&folds(&structural))?;
    let plan = Plan::of_frame("structure-only runs", &runs)?;
    let families = figure::family_table(&runs, &plan, "depth", Metric::LastValidationAccuracy)?;
    save("families", figure::against(&families, "depth")?)?;
    save("methods", figure::method_curves("Learning curves by method (made up)", &method_curves())?)?;
    for figure in figure::filtrations(&necklace())? {
        save("filtrations", figure)?;
    }
    save("work", figure::timeline("structure-only runs", &Work::of_frame(&runs)?)?)?;
    save("timeline", figure::timeline("a made-up sweep", &timed_work())?)?;
    std::fs::write(folder.join("table1.tex"), togl_analysis::render::latex(&main)).map_err(unwritten)?;
    let extended = togl_analysis::render::latex(&structural);
    std::fs::write(folder.join("structural-extended.tex"), extended).map_err(unwritten)?;
    write_report(&folder.join("report.html"))?;
    match Layout::PlacementNecklaces.make(&frame) {
        Ok(placement) => save("placement", figure::against(&placement, "togl_position")?),
        Err(error) => {
            eprintln!("no figure of placement: {error}");
            Ok(())
        }
    }
}

fn unwritten(source: std::io::Error) -> Error {
    Error::Io { what: "cannot write", path: PathBuf::from("table.tex"), source }
}

/// A chain with two rings, and three filtrations on it.
fn necklace() -> LearntFiltrations {
    let mut edges: Vec<(usize, usize)> = (0..19).map(|at| (at, at + 1)).collect();
    edges.extend([(2, 7), (11, 17), (4, 20), (20, 21), (14, 22)]);
    let degree = |vertex| edges.iter().filter(|(from, to)| *from == vertex || *to == vertex).count() as f64;
    let values = |of: fn(f64) -> f64| (0..23).map(|at| of(f64::from(at))).collect();
    let graph = LearntGraph {
        graph: 7,
        part: "test".to_owned(),
        vertices: 23,
        degrees: (0..23).map(degree).collect(),
        edges,
        filtrations: vec![
            values(|at| (at * 0.4).sin()),
            values(|at| at / 23.0),
            values(|at| 1.0 / (1.0 + at)),
        ],
    };
    LearntFiltrations {
        version: 1,
        dataset: "necklaces".to_owned(),
        method: "GCN-4-TOGL-1".to_owned(),
        smallest: vec![-1.0, 0.0, 0.0],
        largest: vec![1.0; 3],
        graphs: vec![graph],
    }
}

/// Two workers, one of them with two slots, for two hours.
fn timed_work() -> Vec<Work> {
    let fold = |at: u32, worker: &str, end: f64, seconds: f64| Work {
        worker: worker.to_owned(),
        kind: ["GCN-4", "GCN-4-TOGL-1", "GIN-4"][at as usize % 3].to_owned(),
        seconds,
        finished_at: Some(1.6e9 + end),
    };
    (0..30)
        .flat_map(|at| {
            let end = f64::from(at + 1) * 240.0;
            let busy = 150.0 + f64::from(at * 37 % 80);
            let first = fold(at, "gpu-box (cuda)", end, busy);
            let second = fold(at + 1, "gpu-box (cuda)", end + 90.0, busy);
            [first, second, fold(at + 2, "laptop (cpu)", end, busy / 2.0)]
        })
        .collect()
}

fn method_curves() -> CurveGroups {
    let names = [("DD", "GCN-4"), ("DD", "GCN-4-TOGL-1"), ("ENZYMES", "GCN-4"), ("ENZYMES", "GCN-4-TOGL-1")];
    let all = curves();
    let part = |at: usize| all[2 * at..2 * at + 3].iter().map(|curve| curve.history.clone()).collect();
    let curve = |(at, (dataset, method)): (usize, &(&str, &str))| CurveGroup {
        dataset: (*dataset).to_owned(),
        label: (*method).to_owned(),
        histories: part(at),
        scale: togl_sweeps::Scale::SHARE,
    };
    CurveGroups { groups: names.iter().enumerate().map(curve).collect(), mixed: Vec::new() }
}

/// The folds behind all cells.
fn folds(table: &togl_analysis::Table) -> Vec<togl_sweeps::FoldKey> {
    table.cells().flat_map(|(_, _, cell)| cell.folds.iter().copied()).collect()
}

const SWEEP: &str = "version: 1\nname: made-up\ndescription: Does depth help? Every number here is made up.\n\
                     base: {hidden_dim: 64}\ngrid:\n  dataset: [DD, ENZYMES, PROTEINS]\n  depth: [2, 3, 4]\n  togl: [false, true]\n\
                     splits: [0, 1, 2, 3, 4]\nseeds: [0]\ntable: {rows: [method], columns: dataset}\n\
                     figure: {title: Accuracy by depth, x: depth, lines: [togl], panels: dataset}\npublished:\n  table: made-up table\n  \
                     methods: {Plain: {togl: false}}\n  columns: [method, dataset, depth, mean, std]\n  \
                     cells: [[Plain, DD, 2, 61.0, 5.0], [Plain, ENZYMES, 3, 90.0, 1.0]]\n";

/// A report in which one fold is missing because it failed.
fn write_report(path: &Path) -> Result<()> {
    let Ok(sweep) = SweepSpec::parse(SWEEP) else { return Ok(()) };
    let mut rows = Vec::new();
    for trial in &sweep.trials {
        for fold in sweep.folds_of(trial.id) {
            let by = f64::from(fold.split) * 0.013 + trial.position as f64 * 0.007;
            let mut result = result::example(0.6 + by);
            result.history.clone_from(&curves()[fold.split as usize].history);
            let worker = "worker-1".to_owned();
            rows.push(FoldRow {
                position: trial.position,
                fold,
                config: trial.config.clone(),
                attempt: 1,
                worker,
                result,
            });
        }
    }
    let lost = rows.pop();
    let failures = lost.iter().map(failure).collect::<Vec<_>>();
    let commands =
        ["togl run made-up.yaml --out results".to_owned(), "togl table made-up --format latex".to_owned()];
    let input = ReportInput {
        sweep: &sweep,
        sweep_text: SWEEP,
        rows: &rows,
        failures: &failures,
        replicates: &[],
        commands: &commands,
        made_at: "2021-01-15 12:00 UTC",
    };
    report::write(path, &input).map(|_| ())
}

fn failure(row: &FoldRow) -> ReportedFailure {
    ReportedFailure {
        fold: row.fold.to_string(),
        attempts: 3,
        worker: row.worker.clone(),
        class: "out-of-memory".to_owned(),
        message: "the trainer was killed at 3.9 GiB".to_owned(),
    }
}

fn curves() -> Vec<Curve> {
    let metrics = |at: f64, by: f64| Metrics { loss: 0.4 + by / at, accuracy: 0.8 - 0.4 * by / at };
    let epoch = |epoch: u32, by: f64| {
        let at = f64::from(epoch) + 1.0;
        let wave = 1.0 + 0.1 * (at * by * 7.0).sin();
        EpochRecord { epoch, lr: 1e-3, train: metrics(at, by), validation: metrics(at, by * wave * 1.3) }
    };
    let fold = |split: u32| {
        let by = 0.8 + 0.07 * f64::from(split);
        Curve {
            label: format!("split {split}"),
            history: (0..40 + 5 * split).map(|at| epoch(at, by)).collect(),
            scale: togl_sweeps::Scale::SHARE,
        }
    };
    (0..10).map(fold).collect()
}
