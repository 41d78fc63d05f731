//! What has to be done on a host: from what the user wants, what was seen there and what can be sent. Pure: opens nothing, sends
//! nothing, and a refusal means that the host was not touched.

use super::bundle::{BundlePart, Contents, PartKind};
use super::file::{HostDevice, HostEntry, is_plain};
use super::looked::{Looked, Torch};
use super::scripts;

/// The version of torch whose libraries the worker works with.
pub const TORCH: &str = "2.13.0";

/// The oldest NVIDIA driver that the CUDA of that torch works with.
pub const OLDEST_DRIVER: u32 = 580;

/// Bytes that stay free beside what is sent.
const RESERVE: u64 = 64 << 20;

/// What all hosts of a file have in common.
#[derive(Debug, Clone)]
pub struct Common {
    /// The coordinator as the hosts reach it.
    pub join: String,
    /// SHA-256 of the token file that a host should have.
    pub token_digest: String,
}

/// Where the libtorch of an installation is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Libtorch {
    /// The one of the bundle.
    Sent,
    /// A torch folder of the host.
    Found(String),
}

/// One thing to do, in the order in which it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Copy a part of the bundle.
    Send(PartKind),
    /// Put program and libtorch together and try them.
    Install(Libtorch),
    /// Let the worker that runs leave.
    Stop,
    /// Start the worker, kept by systemd or on its own.
    Start {
        /// Whether systemd keeps it.
        systemd: bool,
    },
}

/// What follows for one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPlan {
    /// What to do; nothing if all is as it should be.
    pub steps: Vec<Step>,
    /// The name of the installation.
    pub key: String,
    /// The text of the file that starts the worker.
    pub start: String,
    /// What the user may want to know.
    pub notes: Vec<String>,
}

/// A reason why nothing is done, and what helps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRefusal {
    /// The reason.
    pub reason: String,
    /// What to do.
    pub hint: String,
}

fn refuse<T>(reason: impl Into<String>, hint: impl Into<String>) -> Result<T, HostRefusal> {
    Err(HostRefusal { reason: reason.into(), hint: hint.into() })
}

/// What to do on a host.
pub fn decide(
    wish: &HostEntry,
    looked: &Looked,
    bundle: &Contents,
    common: &Common,
) -> Result<HostPlan, HostRefusal> {
    check_machine(looked, bundle)?;
    let on_gpu = trains_on_gpu(wish, looked)?;
    let libtorch = choose_libtorch(wish, looked, bundle, on_gpu)?;
    let key = scripts::installation(&bundle.programs, bundle.libtorch.as_ref(), &libtorch);
    let start = scripts::start_file(wish, &looked.folder, &common.join, on_gpu);
    let is_installed = looked.installed.as_deref() == Some(key.as_str());
    let missing = missing_parts(looked, bundle, &libtorch, is_installed);
    check_disk(looked, &missing)?;
    let mut steps: Vec<Step> = missing.iter().map(|part| Step::Send(part.kind)).collect();
    if !is_installed {
        steps.push(Step::Install(libtorch));
    }
    let is_same = looked.start.as_deref() == Some(&scripts::sha256(start.as_bytes()))
        && looked.token.as_deref() == Some(&common.token_digest);
    let systemd = looked.systemd && looked.linger;
    if !is_installed || !is_same || !looked.running {
        // Also where none seems to run: what an earlier attempt left must not stay.
        steps.extend([Step::Stop, Step::Start { systemd }]);
    }
    let mut notes = Vec::new();
    if looked.systemd && !looked.linger {
        notes.push(
            "`loginctl enable-linger` there would let systemd keep the worker, also after a restart"
                .to_owned(),
        );
    }
    Ok(HostPlan { steps, key, start, notes })
}

fn check_machine(looked: &Looked, bundle: &Contents) -> Result<(), HostRefusal> {
    let Looked { system, arch, folder, .. } = looked;
    if system != "Linux" || *arch != bundle.arch {
        let hint = "workers run on hosts of the architecture of the bundle; name another with --bundle";
        return refuse(
            format!("it is {system} on {arch}, and the bundle is for Linux on {}", bundle.arch),
            hint,
        );
    }
    let (major, minor) = bundle.glibc;
    match looked.glibc {
        Some(there) if there >= bundle.glibc => {}
        Some((a, b)) => {
            let hint = "use a host with a newer system, or a bundle that was built on an older one";
            return refuse(format!("its glibc is {a}.{b}, and the worker needs {major}.{minor}"), hint);
        }
        None => {
            return refuse(
                format!("it has no glibc, and the worker needs {major}.{minor}"),
                "use a host with a glibc, such as Debian, Ubuntu or Fedora",
            );
        }
    }
    if !looked.lacks.is_empty() {
        return refuse(format!("it lacks {}", looked.lacks.join(", ")), "install that there");
    }
    if !is_plain(folder) || !folder.starts_with('/') {
        return refuse(format!("the folder `{folder}` has unusual letters"), "name another with `folder:`");
    }
    if !looked.writable {
        return refuse(format!("{folder} cannot be written"), "name another with `folder:`");
    }
    Ok(())
}

/// A host with a GPU trains on it, unless the user says otherwise.
fn trains_on_gpu(wish: &HostEntry, looked: &Looked) -> Result<bool, HostRefusal> {
    match (wish.device, &looked.driver) {
        (HostDevice::Cpu, _) => Ok(false),
        (HostDevice::Auto, None) if !wish.devices.is_empty() => no_driver("devices"),
        (HostDevice::Auto, None) => Ok(false),
        (HostDevice::Auto | HostDevice::Cuda, Some(driver)) => is_new_enough(driver),
        (HostDevice::Cuda, None) => no_driver("device: cuda"),
    }
}

/// A driver that does not say its version may do.
fn is_new_enough(driver: &str) -> Result<bool, HostRefusal> {
    match driver.split('.').next().and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major < OLDEST_DRIVER => refuse(
            format!("its NVIDIA driver is {driver}, and the worker's CUDA needs {OLDEST_DRIVER} or newer"),
            "update the driver there, or say `device: cpu`",
        ),
        _ => Ok(true),
    }
}

fn no_driver(asked: &str) -> Result<bool, HostRefusal> {
    refuse(
        format!("the file says `{asked}`, and there is no NVIDIA driver"),
        "install the driver there, or say `device: cpu`",
    )
}

fn choose_libtorch(
    wish: &HostEntry,
    looked: &Looked,
    bundle: &Contents,
    on_gpu: bool,
) -> Result<Libtorch, HostRefusal> {
    let with_cuda = if on_gpu { " with CUDA" } else { "" };
    let fits = |torch: &&Torch| is_right_version(&torch.version) && (torch.cuda || !on_gpu);
    let mut candidates = looked.torches.iter().filter(|torch| torch.asked || wish.torch.is_none());
    if let Some(torch) = candidates.clone().find(fits) {
        return Ok(Libtorch::Found(torch.path.clone()));
    }
    let install = format!("install torch=={TORCH}{with_cuda} there");
    let other = candidates.next();
    let found = other.map(|Torch { version, path, cuda, .. }| {
        let half = if is_right_version(version) && !cuda { " without CUDA" } else { "" };
        format!("torch {version}{half} is in {path}")
    });
    if let Some(asked) = &wish.torch {
        let found = found.unwrap_or_else(|| format!("there is no torch in {asked}"));
        return refuse(format!("{found}, and the worker needs {TORCH}{with_cuda}"), install);
    }
    if bundle.libtorch.is_some() && (bundle.cuda || !on_gpu) {
        return Ok(Libtorch::Sent);
    }
    let hint = format!("{install} and name its environment with `torch:`");
    let found = found.unwrap_or_else(|| "no torch was found".to_owned());
    match &looked.driver {
        Some(driver) if on_gpu => refuse(
            format!(
                "it has an NVIDIA driver ({driver}) and would train on its CPU: {found}, the worker needs {TORCH} with \
                 CUDA, and the bundle has none to send"
            ),
            format!("{hint}, or say `device: cpu`"),
        ),
        _ => refuse(format!("{found}, the worker needs {TORCH}, and the bundle has none to send"), hint),
    }
}

/// `2.13.0`, also of a build such as `2.13.0+cu130`.
fn is_right_version(version: &str) -> bool {
    version.split('+').next() == Some(TORCH)
}

fn missing_parts<'a>(
    looked: &Looked,
    bundle: &'a Contents,
    libtorch: &Libtorch,
    is_installed: bool,
) -> Vec<&'a BundlePart> {
    let sent = bundle.libtorch.as_ref().filter(|_| *libtorch == Libtorch::Sent);
    // A found torch is only linked, so an installation that is there lacks nothing but a part that somebody removed.
    let needed = Some(&bundle.programs).filter(|_| !is_installed).into_iter().chain(sent);
    needed.filter(|part| !looked.parts.contains(&part.name())).collect()
}

/// A part lies there twice for a moment: as it was sent, which is never larger, and unpacked.
fn check_disk(looked: &Looked, missing: &[&BundlePart]) -> Result<(), HostRefusal> {
    let needed = missing.iter().map(|part| part.bytes.saturating_mul(2)).sum::<u64>() + RESERVE;
    if missing.is_empty() || looked.free >= needed {
        return Ok(());
    }
    let (free, needed) = (looked.free >> 20, needed >> 20);
    refuse(
        format!("not enough disk: {} has {free} MB free, {needed} are needed", looked.folder),
        "make room there, or name a folder on another disk with `folder:`",
    )
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
