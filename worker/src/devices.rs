//! Which device each slot trains on: from what the user asked for and what the machine has.

use std::process::Command;

use anyhow::Context;
use togl_learning::Device;

use crate::{Usage, host};

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

/// The device of each slot. Default: one slot per GPU; without a GPU one per CPU core, because two one-thread
/// trainers beat one two-thread trainer by far on graphs of this size.
pub fn choose(asked: Option<&str>, slots: Option<u32>) -> anyhow::Result<Vec<String>> {
    let gpus = if asked == Some("cpu") { 0 } else { count_gpus()? };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(plan(asked, slots, gpus, cores)?)
}

/// Memory of a device in bytes, as the coordinator needs it to place folds; 0 where it cannot be known. Slots on the CPU
/// share the machine's.
pub fn memory(device: &str) -> u64 {
    match parse(device) {
        Ok(Device::Cpu) => host::total_memory(),
        Ok(Device::Cuda(index)) => gpu_memory(index).unwrap_or(0),
        _ => 0,
    }
}

/// As the driver's own program says it; libtorch does not tell.
fn gpu_memory(index: usize) -> Option<u64> {
    let question = ["--query-gpu=memory.total", "--format=csv,noheader,nounits", "-i"];
    let output = Command::new("nvidia-smi").args(question).arg(index.to_string()).output().ok()?;
    let mebibytes: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().ok()?;
    Some(mebibytes << 20)
}

/// Asks a child process: a broken driver may take the child, but not the agent.
fn count_gpus() -> anyhow::Result<usize> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let output = Command::new(program).args(["doctor", "--format", "json"]).output()?;
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    Ok(report.get("cuda_devices").and_then(serde_json::Value::as_u64).unwrap_or(0) as usize)
}

fn plan(asked: Option<&str>, slots: Option<u32>, gpus: usize, cores: usize) -> Result<Vec<String>, Usage> {
    let kind = asked.unwrap_or(if gpus > 0 { "cuda" } else { "cpu" });
    if let Device::Cuda(index) = parse(kind).map_err(Usage::new)?
        && index >= gpus
    {
        let found =
            if gpus == 0 { "libtorch sees no GPU".to_owned() } else { format!("libtorch sees {gpus}") };
        return Err(
            Usage::new(format!("device {kind} is not there: {found}")).hint("`togl-worker doctor` says why")
        );
    }
    let all = if kind == "cuda" {
        (0..gpus).map(|index| format!("cuda:{index}")).collect()
    } else {
        vec![kind.to_owned()]
    };
    let default = if kind == "cpu" { cores } else { all.len() };
    let count = slots.map_or(default, |n| n as usize);
    if count == 0 || count > 1024 {
        return Err(Usage::new(format!("{count} slots make no sense; use 1 to 1024")));
    }
    Ok(all.iter().cycle().take(count).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_follow_gpus_and_else_cores() {
        assert_eq!(plan(None, None, 2, 8).unwrap(), ["cuda:0", "cuda:1"]);
        assert_eq!(plan(None, Some(4), 2, 8).unwrap(), ["cuda:0", "cuda:1", "cuda:0", "cuda:1"]);
        assert_eq!(plan(None, None, 0, 2).unwrap(), ["cpu", "cpu"]);
        assert_eq!(plan(Some("cpu"), Some(1), 2, 8).unwrap(), ["cpu"]);
        assert_eq!(plan(Some("cuda:1"), None, 2, 8).unwrap(), ["cuda:1"]);
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

    #[cfg(target_os = "linux")]
    #[test]
    fn the_memory_of_a_slot_is_known_or_said_to_be_unknown() {
        assert!(memory("cpu") > 1 << 20);
        assert_eq!((memory("mps"), memory("cuda:999"), memory("tpu")), (0, 0, 0));
    }

    #[test]
    fn a_device_that_is_not_there_is_refused() {
        assert!(plan(Some("cuda:3"), None, 2, 8).unwrap_err().message.contains("libtorch sees 2"));
        assert!(plan(Some("cuda"), None, 0, 8).unwrap_err().message.contains("no GPU"));
        assert!(plan(Some("tpu"), None, 0, 8).unwrap_err().message.contains("not a device"));
        assert!(plan(None, Some(0), 0, 8).is_err());
    }
}
