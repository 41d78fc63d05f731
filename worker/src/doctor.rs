//! `togl-worker doctor`: whether this machine can train, with what, and what to do if not. Looks, tries one tiny
//! training step per device, and how checkpoints would move, and prints; changes nothing.

use std::path::PathBuf;
use std::process::ExitCode;

use serde::Serialize;
use togl_agent::courier::{Courier, CourierError};
use togl_agent::identity::unique_worker_id;
use togl_learning::device::{self, CudaHalf, Inspection};

use crate::calling::AgentCaller;
use crate::checkpoints::Usage;
use crate::host;
use crate::saving::CheckpointRoom;
use crate::version::{Format, print};

/// The oldest NVIDIA driver that libtorch's CUDA (13) works with.
const DRIVER_NEEDED: u32 = 580;

/// Say whether this machine can train
#[derive(Debug, clap::Args)]
pub struct Doctor {
    /// A coordinator, as HOST:PORT: try, too, how checkpoints move to it, or to the storage that it names
    address: Option<String>,
    #[command(flatten)]
    caller: AgentCaller,
    /// How to print
    #[arg(long, value_enum, default_value = "human")]
    format: Format,
    #[command(flatten)]
    room: CheckpointRoom,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Report {
    can_train: bool,
    host: String,
    cores: usize,
    memory_bytes: u64,
    /// Its version, if there is one.
    nvidia_driver: Option<String>,
    nvidia_driver_needed: u32,
    /// Whether CUDA can be used and, if not, why, in a few words.
    cuda: String,
    #[serde(flatten)]
    inspection: Inspection,
    /// Checkpoints on disk; none without a place for them.
    checkpoints: Option<CheckpointReport>,
    /// How checkpoints move; none if no coordinator was named.
    moving: Option<MovingReport>,
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
    /// Why nothing can be written there, if so.
    trouble: Option<String>,
}

/// How checkpoints move to a coordinator.
#[derive(Debug, Serialize)]
struct MovingReport {
    coordinator: String,
    /// Through what, in a word or two.
    through: &'static str,
    /// What does not work, and what to do about it.
    trouble: Option<String>,
}

impl MovingReport {
    fn of(coordinator: String, tried: Result<&'static str, CourierError>) -> Self {
        match tried {
            Ok(through) => Self { coordinator, through, trouble: None },
            Err(CourierError::Storage(error)) => {
                let trouble = Some(format!("{error}: {}", error.hint()));
                Self { coordinator, through: "storage", trouble }
            }
            Err(error) => Self { coordinator, through: "nothing", trouble: Some(error.to_string()) },
        }
    }

    fn advice(&self) -> Option<String> {
        let trouble = self.trouble.as_ref()?;
        Some(format!("checkpoints cannot move, so folds of lost machines start anew: {trouble}"))
    }
}

impl CheckpointReport {
    fn advice(&self) -> Option<String> {
        let folder = self.folder.display();
        self.trouble.as_ref().map(|trouble| {
            format!(
                "no checkpoint can be written in {folder} ({trouble}), so interrupted folds start anew: make room there, or \
                 name another folder with --checkpoint-dir"
            )
        })
    }
}

impl Doctor {
    /// Prints the report; exit code 1 if nothing here can train.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        let mut report = examine(device::inspect(), host::nvidia_driver());
        report.checkpoints = self.room.checkpoints().map(|checkpoints| {
            let (usage, tried) = (checkpoints.usage(), checkpoints.try_writing());
            let (folder, most_bytes) = (checkpoints.folder, checkpoints.most_bytes);
            CheckpointReport {
                folder,
                most_bytes,
                usage,
                trouble: tried.err().map(|error| error.to_string()),
            }
        });
        report.moving = self.moving()?;
        report.advice.extend(report.checkpoints.as_ref().and_then(CheckpointReport::advice));
        report.advice.extend(report.moving.as_ref().and_then(MovingReport::advice));
        let text = match self.format {
            Format::Human => describe(&report),
            Format::Json => serde_json::to_string_pretty(&report)? + "\n",
        };
        print(&text)?;
        Ok(ExitCode::from(if report.can_train { 0 } else { 1 }))
    }

    /// Tries how checkpoints would move, if a coordinator is named.
    fn moving(&self) -> anyhow::Result<Option<MovingReport>> {
        let Some(address) = self.address.clone() else { return Ok(None) };
        let (access, to) = (self.caller.access(&address)?, address.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let courier = Courier::new(unique_worker_id(&host::name()), move || {
            let (access, address) = (access.clone(), to.clone());
            async move { access.checkpoints(&address).await }
        });
        Ok(Some(MovingReport::of(address, runtime.block_on(courier.try_out()))))
    }
}

fn examine(inspection: Inspection, nvidia_driver: Option<String>) -> Report {
    let fits = inspection.libtorch.starts_with(&inspection.libtorch_expected);
    let can_train = fits && inspection.devices.iter().any(|device| device.works);
    let cuda = cuda(&inspection, nvidia_driver.as_deref());
    let advice = advise(&inspection, nvidia_driver.as_deref(), fits);
    Report {
        can_train,
        host: host::name(),
        cores: host::cores(),
        memory_bytes: host::total_memory(),
        nvidia_driver,
        nvidia_driver_needed: DRIVER_NEEDED,
        cuda,
        inspection,
        checkpoints: None,
        moving: None,
        advice,
    }
}

fn is_too_old(driver: &str) -> bool {
    driver
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok())
        .is_some_and(|major| major < DRIVER_NEEDED)
}

fn cuda(inspection: &Inspection, driver: Option<&str>) -> String {
    let with = driver.map_or("no NVIDIA driver".to_owned(), |version| format!("NVIDIA driver {version}"));
    let needs = format!("this CUDA needs driver {DRIVER_NEEDED} or newer");
    match (&inspection.cuda_half, inspection.cuda_devices, driver) {
        (_, 1.., _) => format!("usable, {with}"),
        (CudaHalf::Absent, ..) => format!("this libtorch has no CUDA half, {with}"),
        (CudaHalf::Broken { path, error }, ..) => format!("{} cannot be loaded: {error}", path.display()),
        (CudaHalf::Opened { path }, _, None) => format!("found {}, but {with}; {needs}", path.display()),
        (CudaHalf::Opened { .. }, _, Some(version)) if is_too_old(version) => {
            format!("{with} is too old: {needs}")
        }
        (CudaHalf::Opened { .. }, ..) => format!("no device can be used, {with}; {needs}"),
    }
}

fn advise(inspection: &Inspection, driver: Option<&str>, fits: bool) -> Vec<String> {
    let mut advice = Vec::new();
    let (found, needed) = (&inspection.libtorch, &inspection.libtorch_expected);
    if !fits {
        advice.push(format!(
            "libtorch is {found}, but {needed} is needed: install torch=={needed} beside this program"
        ));
    }
    match (&inspection.cuda_half, driver, inspection.cuda_devices) {
        (CudaHalf::Absent, Some(_), 0) => advice.push(format!(
            "there is an NVIDIA driver, but this libtorch is for processors only: use one with CUDA, such as that of the \
             Python package torch=={needed}"
        )),
        (CudaHalf::Opened { .. }, Some(version), 0) if is_too_old(version) => advice
            .push(format!("update the NVIDIA driver from {version} to {DRIVER_NEEDED} or newer, or train on the CPU")),
        (CudaHalf::Opened { .. }, Some(_), 0) => advice.push(
            "CUDA and a driver are there, but no device can be used: check nvidia-smi and CUDA_VISIBLE_DEVICES".to_owned(),
        ),
        (CudaHalf::Opened { .. }, None, 0) => advice.push(format!(
            "to train on a GPU, install NVIDIA's driver {DRIVER_NEEDED} or newer; without one this machine trains on its CPU"
        )),
        (CudaHalf::Broken { .. }, _, 0) => {
            advice.push(format!("install torch=={needed} anew: a part of it is missing or damaged"));
        }
        (CudaHalf::Absent | CudaHalf::Opened { .. } | CudaHalf::Broken { .. }, ..) => {}
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
        "host        {} ({} cores, {:.1} GB memory)\nlibtorch    {} (needed: {}){}\nthreads     {} within an operation, \
         {} between; a trainer uses 1\ncuda        {}\n",
        report.host,
        report.cores,
        report.memory_bytes as f64 / 1e9,
        inspection.libtorch,
        inspection.libtorch_expected,
        inspection
            .libtorch_folder
            .as_ref()
            .map_or(String::new(), |folder| format!(", in {}", folder.display())),
        inspection.threads,
        inspection.interop_threads,
        report.cuda,
    );
    for device in &inspection.devices {
        let verdict = if device.works { "trains" } else { "does not work" };
        text += &format!("device      {} {verdict}\n", device.device);
    }
    if let Some(CheckpointReport { folder, most_bytes, usage, trouble: _ }) = &report.checkpoints {
        text += &format!(
            "checkpoints {} files, {:.1} of at most {:.0} MB, in {}\n",
            usage.files,
            usage.bytes as f64 / 1e6,
            *most_bytes as f64 / 1e6,
            folder.display()
        );
    }
    if let Some(MovingReport { coordinator, through, trouble: _ }) = &report.moving {
        text += &format!("moving      checkpoints through {through}, by {coordinator}\n");
    }
    for advice in &report.advice {
        text += &format!("advice      {advice}\n");
    }
    text + if report.can_train { "This machine can train.\n" } else { "This machine cannot train.\n" }
}

#[cfg(test)]
mod tests {
    use togl_learning::device::DeviceCheck;

    use crate::checkpoints::Checkpoints;

    use super::*;

    fn inspection(cuda_half: CudaHalf, works: bool) -> Inspection {
        let error = (!works).then(|| "no luck".to_owned());
        Inspection {
            libtorch: "2.13.0".to_owned(),
            libtorch_expected: "2.13.0".to_owned(),
            libtorch_folder: Some(PathBuf::from("/env/torch/lib")),
            threads: 1,
            interop_threads: 1,
            cuda_half,
            cuda_devices: 0,
            cudnn: false,
            mps: false,
            devices: vec![DeviceCheck { device: "cpu".to_owned(), works, error }],
        }
    }

    fn opened() -> CudaHalf {
        CudaHalf::Opened { path: PathBuf::from("/env/torch/lib/libtorch_cuda.so") }
    }

    #[test]
    fn why_cuda_is_not_used_is_said_with_what_was_found_where() {
        let broken =
            CudaHalf::Broken { path: PathBuf::from("/x/libtorch_cuda.so"), error: "no libcublas".to_owned() };
        for (half, driver, says, advises) in [
            (CudaHalf::Absent, Some("580.65.06"), "no CUDA half, NVIDIA driver 580.65.06", "torch==2.13.0"),
            (CudaHalf::Absent, None, "no CUDA half, no NVIDIA driver", ""),
            (
                opened(),
                None,
                "found /env/torch/lib/libtorch_cuda.so, but no NVIDIA driver",
                "trains on its CPU",
            ),
            (
                opened(),
                Some("535.104.05"),
                "535.104.05 is too old: this CUDA needs driver 580",
                "from 535.104.05 to 580",
            ),
            (opened(), Some("581.1"), "no device can be used, NVIDIA driver 581.1", "CUDA_VISIBLE_DEVICES"),
            (
                broken,
                Some("580.1"),
                "/x/libtorch_cuda.so cannot be loaded: no libcublas",
                "missing or damaged",
            ),
        ] {
            let report = examine(inspection(half, true), driver.map(str::to_owned));
            assert!(report.can_train && report.cuda.contains(says), "{}", report.cuda);
            assert!(report.advice.join("; ").contains(advises), "{:?}", report.advice);
            assert_eq!(report.advice.is_empty(), advises.is_empty(), "{:?}", report.advice);
        }
        let usable = Inspection { cuda_devices: 2, ..inspection(opened(), true) };
        let report = examine(usable, Some("580.1".to_owned()));
        assert_eq!((report.cuda.as_str(), report.advice.len()), ("usable, NVIDIA driver 580.1", 0));
    }

    #[test]
    fn a_machine_on_which_nothing_works_cannot_train_and_says_why() {
        let report = examine(inspection(CudaHalf::Absent, false), None);
        assert!(!report.can_train);
        assert!(describe(&report).ends_with("This machine cannot train.\n"));
        assert!(report.advice[0].contains("no luck"));
    }

    #[test]
    fn a_place_where_no_checkpoint_can_be_written_is_named_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let tried = |folder: PathBuf| Checkpoints { folder, most_bytes: 1 }.try_writing();
        tried(folder.path().join("not/there/yet")).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left");
        let file = folder.path().join("file");
        std::fs::write(&file, "in the way").unwrap();
        let trouble = Some(tried(file.clone()).unwrap_err().to_string());
        let report = CheckpointReport { folder: file, most_bytes: 1, usage: Usage::default(), trouble };
        assert!(report.advice().unwrap().contains("file (Not a directory"), "{:?}", report.advice());
    }

    #[test]
    fn another_libtorch_is_not_good_enough() {
        let other = Inspection { libtorch: "2.12.1".to_owned(), ..inspection(CudaHalf::Absent, true) };
        let report = examine(other, None);
        assert!(
            !report.can_train && report.advice[0].contains("install torch==2.13.0"),
            "{:?}",
            report.advice
        );
    }
}
