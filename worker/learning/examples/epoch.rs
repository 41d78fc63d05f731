//! Prints how long a training epoch takes for the networks of the speed goals, as `NAME MEDIAN MIN COLLATION` in
//! milliseconds: `cargo run -p togl-learning --example epoch -- DATASET [DATA_DIR] [EPOCHS] [METHOD]`. The clock is the time
//! that this thread spent on a processor (Linux only), so other work on the machine counts little.
#![expect(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::path::PathBuf;

use togl_data::OpenOptions;
use togl_learning::{Device, Job, bench};
use togl_sweeps::TrialConfig;
use togl_sweeps::trial::Placement;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let name = arguments.first().map_or("necklaces", String::as_str);
    let data_dir = arguments.get(1).filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let epochs = arguments.get(2).and_then(|count| count.parse().ok()).unwrap_or(15);
    let dataset =
        togl_data::open(name, &OpenOptions { data_dir, ..OpenOptions::default() }).expect("data set");
    togl_learning::use_threads(1);
    let only = arguments.get(3).map_or("", String::as_str);
    for trial in trials(name).into_iter().filter(|trial| trial.method().ends_with(only)) {
        let job = Job { trial: &trial, split: 0, seed: 1, device: Device::Cpu, clock: &processor_seconds };
        let timing = bench::epoch_seconds(&job, &dataset, 3, epochs).expect("training");
        let [median, min, collation] = [timing.median, timing.min, timing.collation].map(|s| s * 1e3);
        println!("{:28} {median:8.2} {min:8.2} {collation:8.2}", timing.method);
    }
}

fn trials(dataset: &str) -> Vec<TrialConfig> {
    let plain =
        TrialConfig { dataset: dataset.to_owned(), batch_size: 20, lr: 7e-4, ..TrialConfig::default() };
    let togl = TrialConfig { togl: true, placement: Placement::Replace, ..plain.clone() };
    let deepset = TrialConfig { deepset: true, ..togl.clone() };
    vec![plain, togl, deepset]
}

fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanoseconds: u64 = text.split(' ').next().and_then(|word| word.parse().ok()).expect("a number");
    nanoseconds as f64 * 1e-9
}
