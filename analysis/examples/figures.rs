//! Draws every kind of figure as SVG and PNG into a folder, from exported runs and made-up curves, for looking at:
//! `cargo run -p togl-analysis --example figures -- FOLDER RUNS.csv...`

use std::path::PathBuf;

use togl_analysis::figure::{self, Curve, Figure};
use togl_analysis::import::wandb::{self, Mapping};
use togl_analysis::{Layout, Result};
use togl_sweeps::result::{EpochRecord, Metrics};
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
    save("folds", figure::fold_heat_map(&main)?)?;
    save("curves", figure::learning_curves("Learning curves (made up)", &curves())?)?;
    let plain = frame.only(&structural_folds(&main))?;
    let families = figure::family_table(&plain, "depth", Metric::TestAccuracy)?;
    save("families", figure::against(&families, "depth")?)
}

/// The folds behind all cells.
fn structural_folds(table: &togl_analysis::Table) -> Vec<togl_sweeps::FoldKey> {
    table.cells().flat_map(|(_, _, cell)| cell.folds.iter().copied()).collect()
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
        }
    };
    (0..10).map(fold).collect()
}
