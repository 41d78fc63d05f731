//! How long a million folds take: made up, written as Parquet, loaded, and turned into tables. With a FILE the Parquet
//! is kept there (and taken from there if it exists), so that another program can be timed on the same rows:
//! `cargo run --release -p togl-analysis --example million_folds -- [FOLDS] [FILE]`

use std::path::Path;
use std::time::{Duration, Instant};

use togl_analysis::{FoldFrame, Plan, Result, Table, render};
use togl_sweeps::SweepSpec;

/// Trials of the made-up sweep, and splits of each; seeds make up the rest.
const SWEEP: &str = "version: 1\nname: speed\ngrid:\n  dataset: [DD, ENZYMES, PROTEINS, MNIST]\n  depth: [1, 2, 3, 4, 5]\n  \
                     togl: [false, true]\nsplits: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]\nseeds: [SEEDS]\nlimits: {max_folds: 10000000}\n\
                     table: {rows: [method], columns: dataset}\n";

fn main() -> Result<()> {
    let folds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let seeds: Vec<String> = (0..folds.div_ceil(400)).map(|seed| seed.to_string()).collect();
    let sweep = match SweepSpec::parse(&SWEEP.replace("SEEDS", &seeds.join(", "))) {
        Ok(sweep) => sweep,
        Err(error) => {
            eprintln!("{error}");
            return Ok(());
        }
    };
    let kept = std::env::args().nth(2).map(std::path::PathBuf::from);
    let temporary = std::env::temp_dir().join(format!("togl-speed-{}.parquet", std::process::id()));
    let path = kept.as_ref().unwrap_or(&temporary);
    if !path.try_exists().unwrap_or(false) {
        let frame = timed("made", || made_up(&sweep))?;
        timed("wrote Parquet", || frame.write(path))?;
    }
    let outcome = measure(&sweep, path);
    if kept.is_none() {
        let _ = std::fs::remove_file(path);
    }
    outcome
}

fn measure(sweep: &SweepSpec, path: &Path) -> Result<()> {
    let frame = timed("loaded Parquet (columns, kinds and duplicates checked, rows ordered)", || {
        FoldFrame::read(path)
    })?;
    eprintln!(
        "{} folds, {} MB on disk",
        frame.len(),
        std::fs::metadata(path).map_or(0, |file| file.len() >> 20)
    );
    say_memory("VmRSS", "after loading");
    let plan = timed("planned", || Ok(Plan::of_sweep(sweep)))?;
    let table =
        timed("made the table", || Table::make(&frame, &Table::separated(&sweep.table, &plan)?, &plan))?;
    timed("rendered six formats", || {
        let length = render::terminal(&table, false).len()
            + [render::markdown, render::latex, render::csv, render::json, render::html]
                .iter()
                .map(|format| format(&table).len())
                .sum::<usize>();
        eprintln!("{} cells, {length} characters", table.cells().count());
        Ok(())
    })?;
    say_memory("VmRSS", "at the end");
    say_memory("VmHWM", "at the most, making of the folds included unless they were there");
    Ok(())
}

/// A line of what the system knows about this process, where it tells.
fn say_memory(line: &str, when: &str) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().filter(|text| text.starts_with(line)).for_each(|text| eprintln!("{text} {when}"));
}

/// A frame of all planned folds with made-up numbers, as different from each other as real ones: a file of equal numbers is
/// so small that reading it refuses to believe it.
fn made_up(sweep: &SweepSpec) -> Result<FoldFrame> {
    let mut rows = Vec::new();
    for trial in &sweep.trials {
        for fold in sweep.folds_of(trial.id) {
            let noise = (fold.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(fold.split)) % 1000;
            let mut result = togl_sweeps::result::example(0.5 + noise as f64 / 2500.0);
            result.history.clear();
            let share = |salt: u64| {
                let bits = (fold.seed ^ salt << 32 ^ u64::from(fold.split) << 48 ^ trial.position << 56)
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15);
                ((bits ^ bits >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1_u64 << 53) as f64
            };
            result.test.loss = share(1);
            result.validation.loss = share(2);
            result.train.loss = share(3);
            result.last_validation.loss = share(4);
            result.seconds = 100.0 * share(5);
            let config = trial.config.clone();
            rows.push(togl_analysis::FoldRow {
                position: trial.position,
                fold,
                config,
                attempt: 1,
                worker: "w1".to_owned(),
                result,
            });
        }
    }
    FoldFrame::from_rows(rows)
}

/// Runs and says how long it took.
fn timed<T>(what: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    #[expect(clippy::disallowed_methods, reason = "a benchmark is about time")]
    let start = Instant::now();
    let outcome = work()?;
    let took: Duration = start.elapsed();
    eprintln!("{:>8.3} s  {what}", took.as_secs_f64());
    Ok(outcome)
}
