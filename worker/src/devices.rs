//! Which device each slot trains on and how much memory it may count on: from what the user asked for and what the
//! machine has. Opens no device itself.

use std::process::Command;

use anyhow::Context;
use nvml_wrapper::Nvml;
use togl_learning::Device;

use crate::{Usage, energy, host};

/// Reads `cpu`, `cuda:N` or `mps`.
pub fn parse(text: &str) -> Result<Device, String> {
    match text.split_once(':') {
        None if text == "cpu" => Ok(Device::Cpu),
        None if text == "cuda" => Ok(Device::Cuda(0)),
        None if text == "mps" => Ok(Device::Mps),
        Some(("cuda", index)) if index.parse::<usize>().is_ok() => {
            Ok(Device::Cuda(index.parse().unwrap_or(0)))
        }
        _ => Err(format!("`{text}` is not a device; use cpu, cuda, cuda:N or mps")),
    }
}

/// What the user asked for.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct DeviceRequest {
    /// Folds to train at the same time; the default is one per GPU, or one per CPU core
    #[arg(long, value_name = "N")]
    slots: Option<u32>,
    /// Folds to train at the same time on each GPU: small graphs leave most of a GPU idle
    #[arg(long, value_name = "N", conflicts_with = "slots")]
    slots_per_gpu: Option<u32>,
    /// Device of the slots: `cpu`, `cuda`, `cuda:N` or `mps`; the default is CUDA where it works, else CPU
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// The GPUs to use, such as 0,2, counted among those that CUDA_VISIBLE_DEVICES shows [default: all]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', conflicts_with = "device")]
    devices: Vec<usize>,
}

/// What the machine has.
#[derive(Debug, Clone)]
struct Machine {
    gpus: usize,
    cores: usize,
    /// Whether CUDA can be used and, if not, why.
    cuda: String,
}

impl DeviceRequest {
    /// The device of each slot.
    pub fn choose(&self) -> anyhow::Result<Vec<String>> {
        let cores = host::cores();
        let machine = match self.device.as_deref() {
            Some("cpu") => Machine { gpus: 0, cores, cuda: "not asked for".to_owned() },
            _ => look(cores)?,
        };
        tracing::info!(cores, gpus = machine.gpus, cuda = %machine.cuda, "this machine");
        Ok(self.plan(&machine)?)
    }

    /// Default: one slot per GPU; without a GPU one per CPU core, because two one-thread trainers beat one two-thread
    /// trainer by far on graphs of this size.
    fn plan(&self, machine: &Machine) -> Result<Vec<String>, Usage> {
        let all = self.all(machine)?;
        let default = if all == ["cpu"] { machine.cores } else { all.len() };
        let count = match (self.slots, self.slots_per_gpu) {
            (Some(slots), _) => slots as usize,
            (None, Some(_)) if all == ["cpu"] => {
                let why = format!("--slots-per-gpu, but no GPU is used ({})", machine.cuda);
                return Err(Usage::new(why).hint("use --slots for folds on the CPU"));
            }
            (None, Some(each)) => all.len().saturating_mul(each as usize),
            (None, None) => default,
        };
        if count == 0 || count > 1024 {
            return Err(Usage::new(format!("{count} slots make no sense; use 1 to 1024")));
        }
        Ok(all.iter().cycle().take(count).cloned().collect())
    }

    /// Every device that slots may be on, once.
    fn all(&self, machine: &Machine) -> Result<Vec<String>, Usage> {
        let gpus = machine.gpus;
        let kind = match self.device.as_deref() {
            Some(device) => device,
            None if gpus > 0 || !self.devices.is_empty() => "cuda",
            None => "cpu",
        };
        let asked = match parse(kind).map_err(Usage::new)? {
            Device::Cpu | Device::Mps => return Ok(vec![kind.to_owned()]),
            Device::Cuda(_) if kind == "cuda" && self.devices.is_empty() && gpus > 0 => (0..gpus).collect(),
            Device::Cuda(_) if !self.devices.is_empty() => self.devices.clone(),
            Device::Cuda(index) => vec![index],
        };
        if let Some(index) = asked.iter().find(|index| **index >= gpus) {
            let found = if gpus == 0 { "no GPU".to_owned() } else { gpus.to_string() };
            let why = format!("device cuda:{index} is not there: libtorch sees {found} ({})", machine.cuda);
            return Err(Usage::new(why).hint("`togl-worker doctor` says why"));
        }
        let mut once = Vec::with_capacity(asked.len());
        asked.into_iter().for_each(|index| {
            if !once.contains(&index) {
                once.push(index)
            }
        });
        Ok(once.into_iter().map(|index| format!("cuda:{index}")).collect())
    }
}

/// Memory in bytes that each slot may count on, as the coordinator needs it to place folds; 0 where it cannot be known.
/// Slots on the CPU share the machine's. Slots on a GPU share what is free there: others may be using it.
pub fn memories(slots: &[String]) -> Vec<u64> {
    let nvml = slots.iter().any(|slot| slot.starts_with("cuda")).then(energy::nvml).flatten();
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    let free = |index| free_memory(nvml.as_ref()?, index, visible.as_deref());
    slots.iter().map(|slot| share(slot, slots, free)).collect()
}

fn share(slot: &str, slots: &[String], free: impl Fn(usize) -> Option<u64>) -> u64 {
    let sharers = slots.iter().filter(|other| *other == slot).count().max(1) as u64;
    match parse(slot) {
        Ok(Device::Cpu) => host::total_memory(),
        Ok(Device::Cuda(index)) => free(index).unwrap_or(0) / sharers,
        _ => 0,
    }
}

fn free_memory(nvml: &Nvml, index: usize, visible: Option<&str>) -> Option<u64> {
    let device = match physical(index, visible)? {
        Physical::Number(number) => nvml.device_by_index(number).ok()?,
        Physical::Name(name) => nvml.device_by_uuid(name).ok()?,
    };
    device.memory_info().ok().map(|memory| memory.free)
}

/// How the driver knows a device.
#[derive(Debug, PartialEq, Eq)]
enum Physical<'a> {
    Number(u32),
    Name(&'a str),
}

/// The driver's view of libtorch's device `index`: CUDA_VISIBLE_DEVICES chooses and orders. (Trainers are told to count
/// as the driver does, by bus.)
fn physical(index: usize, visible: Option<&str>) -> Option<Physical<'_>> {
    let Some(visible) = visible else { return u32::try_from(index).ok().map(Physical::Number) };
    let name = visible.split(',').nth(index)?.trim();
    Some(name.parse().map_or(Physical::Name(name), Physical::Number))
}

/// What `CUDA_VISIBLE_DEVICES` is for a process that is to see a device of ours alone, by what the variable is here; empty for
/// a device that is no GPU, or that is not there.
pub fn alone(device: &str, visible: Option<&str>) -> String {
    let index = device.strip_prefix("cuda:").and_then(|index| index.parse().ok());
    match index.and_then(|index| physical(index, visible)) {
        Some(Physical::Number(number)) => number.to_string(),
        Some(Physical::Name(name)) => name.to_owned(),
        None => String::new(),
    }
}

/// Asks a child process: a broken driver may take the child, but not the agent.
fn look(cores: usize) -> anyhow::Result<Machine> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let output = Command::new(program).args(["doctor", "--format", "json"]).output()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let gpus = report["cuda_devices"].as_u64().unwrap_or(0) as usize;
    let cuda = report["cuda"].as_str().unwrap_or("`togl-worker doctor` did not end well").to_owned();
    Ok(Machine { gpus, cores, cuda })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(wish: DeviceRequest, gpus: usize, cores: usize) -> Result<Vec<String>, Usage> {
        wish.plan(&Machine { gpus, cores, cuda: "for a reason".to_owned() })
    }

    fn wish(device: Option<&str>, slots: Option<u32>) -> DeviceRequest {
        DeviceRequest { device: device.map(str::to_owned), slots, ..DeviceRequest::default() }
    }

    #[test]
    fn slots_follow_gpus_and_else_cores() {
        assert_eq!(planned(wish(None, None), 2, 8).unwrap(), ["cuda:0", "cuda:1"]);
        assert_eq!(planned(wish(None, Some(3)), 2, 8).unwrap(), ["cuda:0", "cuda:1", "cuda:0"]);
        assert_eq!(planned(wish(None, None), 0, 2).unwrap(), ["cpu", "cpu"]);
        assert_eq!(planned(wish(Some("cpu"), Some(1)), 2, 8).unwrap(), ["cpu"]);
        assert_eq!(planned(wish(Some("cuda:1"), None), 2, 8).unwrap(), ["cuda:1"]);
    }

    #[test]
    fn a_program_sees_the_device_of_its_fold_alone_also_where_the_worker_sees_only_some() {
        assert_eq!([alone("cuda:1", None), alone("cuda:0", None)], ["1", "0"]);
        assert_eq!([alone("cuda:0", Some("3,1")), alone("cuda:1", Some("3, 1"))], ["3", "1"]);
        assert_eq!(alone("cuda:1", Some("0,GPU-8a2b,2")), "GPU-8a2b");
        assert_eq!(
            [alone("cpu", Some("3,1")), alone("cuda:2", Some("3,1")), alone("mps", None)],
            ["", "", ""]
        );
    }

    #[test]
    fn several_slots_share_each_gpu_and_only_the_chosen_ones() {
        let each = |devices: &[usize], each| DeviceRequest {
            slots_per_gpu: Some(each),
            devices: devices.into(),
            ..DeviceRequest::default()
        };
        assert_eq!(planned(each(&[], 2), 2, 8).unwrap(), ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]);
        assert_eq!(planned(each(&[2, 0, 2], 2), 3, 8).unwrap(), ["cuda:2", "cuda:0", "cuda:2", "cuda:0"]);
        let only = DeviceRequest { devices: vec![0, 2], ..DeviceRequest::default() };
        assert_eq!(planned(only, 3, 8).unwrap(), ["cuda:0", "cuda:2"]);
        for (wish, gpus, says) in [
            (each(&[], 2), 0, "no GPU is used (for a reason)"),
            (each(&[3], 2), 2, "cuda:3 is not there: libtorch sees 2"),
            (each(&[0], 1), 0, "cuda:0 is not there: libtorch sees no GPU (for a reason)"),
            (each(&[], 0), 1, "0 slots make no sense"),
            (each(&[], u32::MAX), 2, "make no sense"),
        ] {
            let said = planned(wish, gpus, 8).unwrap_err().message;
            assert!(said.contains(says), "{said}");
        }
    }

    #[test]
    fn slots_of_one_gpu_share_what_is_free_there() {
        let slots = ["cuda:0", "cuda:1", "cuda:0", "mps", "tpu"].map(str::to_owned);
        let free = |index| [Some(8 << 30), None].get(index).copied().flatten();
        let shares = slots.each_ref().map(|slot| share(slot, &slots, free));
        assert_eq!(shares, [4 << 30, 0, 4 << 30, 0, 0], "what is not known is 0");
        assert!(cfg!(not(target_os = "linux")) || share("cpu", &slots, free) > 1 << 20);
    }

    #[test]
    fn a_device_is_the_one_that_cuda_is_shown() {
        assert_eq!(physical(1, None), Some(Physical::Number(1)));
        assert_eq!(physical(0, Some("2, 0")), Some(Physical::Number(2)));
        assert_eq!(physical(1, Some("0,GPU-4ac7")), Some(Physical::Name("GPU-4ac7")));
        assert_eq!(physical(1, Some("3")), None);
    }

    #[test]
    fn devices_are_read_as_people_write_them() {
        assert_eq!(parse("cpu").unwrap(), Device::Cpu);
        assert_eq!(parse("cuda").unwrap(), Device::Cuda(0));
        assert_eq!(parse("cuda:3").unwrap(), Device::Cuda(3));
        assert_eq!(parse("mps").unwrap(), Device::Mps);
        for text in
            ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "cpu:0", "mps:1", "CUDA", "cuda:99999999999999999999"]
        {
            let message = parse(text).unwrap_err();
            assert!(message.contains("use cpu, cuda, cuda:N or mps"), "{message}");
        }
    }

    #[test]
    fn a_device_that_is_not_there_is_refused() {
        let refused = |device, gpus| planned(wish(Some(device), None), gpus, 8).unwrap_err().message;
        assert!(refused("cuda:3", 2).contains("libtorch sees 2"));
        assert!(refused("cuda", 0).contains("no GPU"));
        assert!(refused("tpu", 0).contains("not a device"));
        assert!(planned(wish(None, Some(0)), 0, 8).is_err());
    }
}
