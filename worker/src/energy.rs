//! What NVIDIA's driver knows about the device of a fold: its model, and how much energy the fold took by counters before
//! and after it. Owns the rule of when a difference is the fold's own; says nothing and costs nothing where there is no
//! such device or no driver.
//!
//! libtorch counts devices in another order than the driver does, and may be shown only some of them. So the device is
//! found by what it runs: it is the one with this process on it, and with no other.

use std::ffi::OsStr;

use nvml_wrapper::Nvml;
use nvml_wrapper::structs::device::CudaComputeCapability;
use togl_learning::Device;

/// The name that drivers install; the plain `.so` comes with development files only.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// What one device says at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct EnergyReading {
    /// Model and compute capability, such as `NVIDIA A100 8.0`: what decides the last digits.
    model: Option<String>,
    /// Joules since the driver was loaded, if the device counts them.
    joules: Option<f64>,
    /// The processes that compute on it.
    processes: Vec<u32>,
}

/// Somebody who can read the counters of all devices, in an order that does not change.
pub trait Meter {
    /// One reading for each device.
    fn read(&self) -> Vec<EnergyReading>;
}

/// A meter for a device, if it can have one.
pub fn meter(device: Device) -> Option<Box<dyn Meter>> {
    match device {
        Device::Cuda(_) => Some(Box::new(nvml()?)),
        Device::Cpu | Device::Mps => None,
    }
}

/// NVIDIA's own view of its devices; nothing where there is no driver.
pub fn nvml() -> Option<Nvml> {
    Nvml::builder().lib_path(OsStr::new(LIBRARY)).init().ok()
}

impl Meter for Nvml {
    fn read(&self) -> Vec<EnergyReading> {
        let reading = |index| {
            let device = self.device_by_index(index).ok()?;
            let processes = device.running_compute_processes().ok()?;
            let capability = |c: CudaComputeCapability| format!("{}.{}", c.major, c.minor);
            let model = device.name().ok().zip(device.cuda_compute_capability().ok().map(capability));
            Some(EnergyReading {
                model: model.map(|(name, capability)| format!("{name} {capability}")),
                joules: device.total_energy_consumption().ok().map(|millijoules| millijoules as f64 / 1e3),
                processes: processes.into_iter().map(|process| process.pid).collect(),
            })
        };
        let unknown = EnergyReading { model: None, joules: None, processes: Vec::new() };
        let count = self.device_count().unwrap_or(0);
        (0..count).map(|index| reading(index).unwrap_or_else(|| unknown.clone())).collect()
    }
}

/// Watches one fold from its start to its end.
pub struct EnergyWatch {
    meter: Option<Box<dyn Meter>>,
    before: Vec<EnergyReading>,
    process: u32,
}

impl EnergyWatch {
    /// Starts; `process` is the one that trains.
    pub fn start(meter: Option<Box<dyn Meter>>, process: u32) -> Self {
        let before = meter.as_ref().map(|meter| meter.read()).unwrap_or_default();
        Self { meter, before, process }
    }

    /// What was taken since, where that is known to be the work of this process alone.
    pub fn joules(&self) -> Option<f64> {
        let after = self.meter.as_ref()?.read();
        taken(&self.before, &after, self.process)
    }

    /// The model of the device that it runs on.
    pub fn gpu(&self) -> Option<String> {
        model(&self.meter.as_ref()?.read(), self.process)
    }
}

/// The model of the devices that this process is on. Process numbers differ within containers: where it is on none, all
/// devices have to be of one model.
fn model(readings: &[EnergyReading], process: u32) -> Option<String> {
    let is_here = |reading: &&EnergyReading| reading.processes.contains(&process);
    let here: Vec<&EnergyReading> = readings.iter().filter(is_here).collect();
    let candidates = if here.is_empty() { readings.iter().collect() } else { here };
    let first = candidates.first()?.model.clone()?;
    candidates.iter().all(|reading| reading.model.as_ref() == Some(&first)).then_some(first)
}

fn taken(before: &[EnergyReading], after: &[EnergyReading], process: u32) -> Option<f64> {
    let alone = |reading: &EnergyReading| reading.processes.iter().all(|id| *id == process);
    let mut mine = before.iter().zip(after).filter(|(_, after)| after.processes.contains(&process));
    let (Some((before, after)), None) = (mine.next(), mine.next()) else { return None };
    let joules = after.joules? - before.joules?;
    (alone(before) && alone(after) && joules >= 0.0).then_some(joules)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const ME: u32 = 7;
    const OTHER: u32 = 8;

    fn reading(joules: f64, processes: &[u32]) -> EnergyReading {
        EnergyReading { model: None, joules: Some(joules), processes: processes.to_vec() }
    }

    /// Plays what devices say, reading by reading.
    struct Played(RefCell<Vec<Vec<EnergyReading>>>);

    impl Meter for Played {
        fn read(&self) -> Vec<EnergyReading> {
            self.0.borrow_mut().remove(0)
        }
    }

    fn watched(before: &[EnergyReading], after: &[EnergyReading]) -> Option<f64> {
        let played = Played(RefCell::new(vec![before.to_vec(), after.to_vec()]));
        EnergyWatch::start(Some(Box::new(played)), ME).joules()
    }

    #[test]
    fn a_fold_took_what_the_device_it_ran_on_alone_counted() {
        // The first fold of a trainer finds its device without any process; later folds find the trainer itself there.
        let elsewhere = [reading(5.0, &[OTHER]), reading(905.0, &[OTHER])];
        for at_start in [&[][..], &[ME]] {
            let before = [elsewhere[0].clone(), reading(100.0, at_start)];
            let after = [elsewhere[1].clone(), reading(350.5, &[ME])];
            assert_eq!(watched(&before, &after), Some(250.5));
        }
    }

    #[test]
    fn a_shared_device_says_nothing_about_one_fold() {
        assert_eq!(watched(&[reading(1.0, &[OTHER])], &[reading(2.0, &[ME])]), None, "shared at the start");
        assert_eq!(watched(&[reading(1.0, &[])], &[reading(2.0, &[ME, OTHER])]), None, "shared at the end");
        let both = [reading(1.0, &[ME]), reading(1.0, &[ME])];
        assert_eq!(watched(&both, &both), None, "which one?");
    }

    #[test]
    fn where_it_cannot_be_known_nothing_is_said() {
        let silent = [EnergyReading { model: None, joules: None, processes: vec![ME] }];
        assert_eq!(watched(&silent, &silent), None, "the device does not count");
        assert_eq!(watched(&[reading(9.0, &[])], &[reading(1.0, &[ME])]), None, "the driver was loaded anew");
        assert_eq!(watched(&[reading(1.0, &[])], &[reading(2.0, &[])]), None, "trained elsewhere");
        assert_eq!(EnergyWatch::start(None, ME).joules(), None);
        assert!(meter(Device::Cpu).is_none() && meter(Device::Mps).is_none());
    }
    #[test]
    fn the_model_is_that_of_the_device_it_ran_on_and_nothing_where_that_is_not_known() {
        let of = |name: &str, processes: &[u32]| EnergyReading {
            model: Some(name.to_owned()),
            ..reading(1.0, processes)
        };
        let mixed = [of("A100 8.0", &[OTHER]), of("H100 9.0", &[ME])];
        assert_eq!(model(&mixed, ME).as_deref(), Some("H100 9.0"));
        assert_eq!(model(&mixed, 99), None, "in a container, with two models");
        let alike = [of("A100 8.0", &[OTHER]), of("A100 8.0", &[])];
        assert_eq!(model(&alike, 99).as_deref(), Some("A100 8.0"), "in a container, with one model");
        assert_eq!(model(&[], ME), None);
    }
}
