//! `togl-worker doctor`: whether this machine can train, with what, and what to do if not. Looks, tries one tiny
//! training step per device, and prints; changes nothing.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::Serialize;
use togl_learning::device::{self, Inspection};

use crate::checkpoints::Usage;
use crate::host;
use crate::saving::Room;
use crate::version::{Format, print};

/// Say whether this machine can train
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    #[command(flatten)]
    room: Room,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Report {
    can_train: bool,
    host: String,
    cores: usize,
    memory_bytes: u64,
    nvidia_driver: bool,
    /// Whether the CUDA half of libtorch could be loaded, in one word.
    cuda: &'static str,
    #[serde(flatten)]
    inspection: Inspection,
    /// Checkpoints on disk; none without a place for them.
    checkpoints: Option<CheckpointReport>,
    /// What to do, if anything.
    advice: Vec<String>,
}

/// What checkpoints take.
#[derive(Debug, Serialize)]
struct CheckpointReport {
    folder: PathBuf,
    most_bytes: u64,
    #[serde(flatten)]
    usage: Usage,
}

impl Doctor {
    /// Prints the report; exit code 1 if nothing here can train.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let mut inspection = device::inspect();
        // libtorch itself says "no CUDA" also when only the driver is missing, which is another illness.
        inspection.cuda_linked |= host::has_loaded("libtorch_cuda.so");
        let mut report = examine(inspection, Path::new("/proc/driver/nvidia/version").exists());
        report.checkpoints = self.room.checkpoints().map(|checkpoints| {
            let usage = checkpoints.usage();
            CheckpointReport { folder: checkpoints.folder, most_bytes: checkpoints.most_bytes, usage }
        });
        let text = match self.format {
            Format::Human => describe(&report),
            Format::Json => serde_json::to_string_pretty(&report)? + "\n",
        };
        print(&text)?;
        Ok(ExitCode::from(if report.can_train { 0 } else { 1 }))
    }
}

fn examine(inspection: Inspection, nvidia_driver: bool) -> Report {
    let fits = inspection.libtorch.starts_with(&inspection.libtorch_expected);
    let can_train = fits && inspection.devices.iter().any(|device| device.works);
    let cuda = match (inspection.cuda_linked, inspection.cuda_devices) {
        (false, _) => "not linked",
        (true, 0) => "linked, no device",
        (true, _) => "usable",
    };
    let advice = advise(&inspection, nvidia_driver, fits);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory_bytes = host::total_memory();
    let (host, checkpoints) = (host::name(), None);
    Report { can_train, host, cores, memory_bytes, nvidia_driver, cuda, inspection, checkpoints, advice }
}

fn advise(inspection: &Inspection, nvidia_driver: bool, fits: bool) -> Vec<String> {
    let mut advice = Vec::new();
    if !fits {
        let (found, needed) = (&inspection.libtorch, &inspection.libtorch_expected);
        advice.push(format!(
            "libtorch is {found}, but {needed} is needed: unset LIBTORCH, run deploy/bootstrap, build again"
        ));
    }
    match (inspection.cuda_linked, nvidia_driver, inspection.cuda_devices) {
        (false, true, _) => advice.push(
            "there is an NVIDIA driver, but this build has no CUDA: run deploy/bootstrap --cuda, then build again".to_owned(),
        ),
        (true, true, 0) => advice.push(
            "CUDA is linked and a driver is there, but no device can be used: check nvidia-smi, \
             CUDA_VISIBLE_DEVICES and that the driver is new enough for CUDA 13"
                .to_owned(),
        ),
        (true, false, _) => advice.push(
            "CUDA is linked, but there is no NVIDIA driver: install one, or train on the CPU".to_owned(),
        ),
        _ => {}
    }
    for device in inspection.devices.iter().filter(|device| !device.works) {
        let error = device.error.as_deref().unwrap_or("unknown error");
        advice.push(format!("{} does not work: {error}", device.device));
    }
    advice
}

fn describe(report: &Report) -> String {
    let inspection = &report.inspection;
    let mut text = format!(
        "host        {} ({} cores, {:.1} GB memory)\nlibtorch    {} (needed: {})\nthreads     {} within an operation, \
         {} between; a trainer uses 1\ncuda        {}{}\n",
        report.host,
        report.cores,
        report.memory_bytes as f64 / 1e9,
        inspection.libtorch,
        inspection.libtorch_expected,
        inspection.threads,
        inspection.interop_threads,
        report.cuda,
        if report.nvidia_driver { ", NVIDIA driver present" } else { ", no NVIDIA driver" },
    );
    for device in &inspection.devices {
        let verdict = if device.works { "trains" } else { "does not work" };
        text += &format!("device      {} {verdict}\n", device.device);
    }
    if let Some(CheckpointReport { folder, most_bytes, usage }) = &report.checkpoints {
        text += &format!(
            "checkpoints {} files, {:.1} of at most {:.0} MB, in {}\n",
            usage.files,
            usage.bytes as f64 / 1e6,
            *most_bytes as f64 / 1e6,
            folder.display()
        );
    }
    for advice in &report.advice {
        text += &format!("advice      {advice}\n");
    }
    text + if report.can_train { "This machine can train.\n" } else { "This machine cannot train.\n" }
}

#[cfg(test)]
mod tests {
    use togl_learning::device::DeviceCheck;

    use super::*;

    fn inspection(cuda_linked: bool, cuda_devices: i64, works: bool) -> Inspection {
        let error = (!works).then(|| "no luck".to_owned());
        Inspection {
            libtorch: "2.13.0".to_owned(),
            libtorch_expected: "2.13.0".to_owned(),
            threads: 1,
            interop_threads: 1,
            cuda_linked,
            cuda_devices,
            cudnn: false,
            mps: false,
            devices: vec![DeviceCheck { device: "cpu".to_owned(), works, error }],
        }
    }

    #[test]
    fn a_driver_without_cuda_in_the_build_is_explained() {
        let report = examine(inspection(false, 0, true), true);
        assert!(report.can_train);
        assert!(report.advice[0].contains("deploy/bootstrap --cuda"), "{:?}", report.advice);
    }

    #[test]
    fn a_machine_on_which_nothing_works_cannot_train_and_says_why() {
        let report = examine(inspection(false, 0, false), false);
        assert!(!report.can_train);
        assert!(describe(&report).ends_with("This machine cannot train.\n"));
        assert!(report.advice[0].contains("no luck"));
    }

    #[test]
    fn another_libtorch_is_not_good_enough() {
        let other = Inspection { libtorch: "2.12.1".to_owned(), ..inspection(false, 0, true) };
        assert!(!examine(other, false).can_train);
    }
}
