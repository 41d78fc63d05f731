//! Compiles the played device once for all tests, and preloads it into programs. Must not know what they train.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "tests/gpu/device.cpp";

/// A library that gives a program played devices.
pub struct Played(PathBuf);

/// Whose devices are played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// Two devices, `cuda:0` and `cuda:1`.
    Nvidia,
    /// One device, `mps`.
    Apple,
}

impl Played {
    /// The library; nothing, with a word about it, where libtorch has real devices.
    pub fn by(maker: Maker) -> Option<Self> {
        let libtorch = Path::new(env!("TOGL_LIBTORCH_LIB"));
        if libtorch.join("libtorch_cuda.so").exists() {
            eprintln!("skipped: this libtorch has a CUDA half, so no device is played");
            return None;
        }
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let library = folder.join(format!("libplayed_{maker:?}.so"));
        // Every test is a process of its own; the first one compiles.
        let lock = File::create(folder.join("played_gpu.lock")).unwrap();
        lock.lock().unwrap();
        if !is_newer(&library, Path::new(SOURCE)) {
            compile(maker, libtorch, &library);
        }
        Some(Self(library))
    }

    /// Gives `command` the played devices.
    pub fn preload<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("LD_PRELOAD", &self.0)
    }
}

fn is_newer(made: &Path, source: &Path) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|about| about.modified());
    time(made).is_ok_and(|made| made > time(source).unwrap())
}

fn compile(maker: Maker, libtorch: &Path, library: &Path) {
    let include = libtorch.with_file_name("include");
    let partial = library.with_extension("partial");
    let mut search = OsString::from("-Wl,-rpath,");
    search.push(libtorch);
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let mut command = Command::new(compiler);
    command.args(["-std=c++20", "-O1", "-fPIC", "-shared", "-w", "-DNDEBUG", SOURCE]);
    command.args((maker == Maker::Apple).then_some("-DPLAYED_MPS"));
    command.arg("-I").arg(&include).arg("-I").arg(include.join("torch/csrc/api/include"));
    command.arg("-L").arg(libtorch).args(["-ltorch_cpu", "-lc10"]).arg(search).arg("-o").arg(&partial);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    fs::rename(partial, library).unwrap();
}
