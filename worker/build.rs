//! Link flags that let the binaries find libtorch without LD_LIBRARY_PATH, here and after `make install`, and
//! the commit that this program is built from.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    link_libtorch();
    remember_commit();
}

fn link_libtorch() {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    // What is installed brings its libraries along, beside `bin`, or has those of the Python package `torch` two folders
    // up; these are tried first.
    println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/../lib/togl/torch/lib");
    println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/../../torch/lib");
    let Ok(folder) = env::var("DEP_TCH_LIBTORCH_LIB") else { return };
    let folder = fs::canonicalize(&folder).unwrap_or_else(|_| PathBuf::from(folder));
    // What is packed for other machines must not know this one.
    println!("cargo:rerun-if-env-changed=TOGL_DIST");
    if env::var_os("TOGL_DIST").is_none() {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
    }
    // Only for tests, which compile against it.
    println!("cargo:rustc-env=TOGL_LIBTORCH_LIB={}", folder.display());
}

fn remember_commit() {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // The sources too: an edit that no commit holds must show in the provenance of what it computes.
    let sources = [
        "src",
        "agent/src",
        "data/src",
        "learning/src",
        "learning/native",
        "topology/src",
        "../durable/src",
        "../sweeps/src",
        "../proto/src",
    ];
    // Not the index, which git writes anew whenever somebody looks at the status.
    for path in ["../.git/HEAD", "../.git/logs/HEAD"].iter().chain(&sources) {
        if Path::new(path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    let status = ["--no-optional-locks", "status", "--porcelain", "--untracked-files=no", "--"];
    let dirty = git(&[&status[..], &sources].concat()).is_some_and(|text| !text.is_empty());
    println!("cargo:rustc-env=TOGL_COMMIT={commit}");
    println!("cargo:rustc-env=TOGL_DIRTY={dirty}");
}
