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
    // `make install` puts the libraries beside the binaries; that copy is tried first.
    println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/../lib/togl/torch/lib");
    let Ok(folder) = env::var("DEP_TCH_LIBTORCH_LIB") else { return };
    let folder = fs::canonicalize(&folder).unwrap_or_else(|_| PathBuf::from(folder));
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", folder.display());
    // Only for tests, which compile against it.
    println!("cargo:rustc-env=TOGL_LIBTORCH_LIB={}", folder.display());
    if folder.join("libtorch_cuda.so").exists() {
        // Nothing names a symbol of it, so the linker would drop it and CUDA would look absent at run time.
        println!("cargo:rustc-link-arg=-Wl,--no-as-needed");
        println!("cargo:rustc-link-arg=-L{}", folder.display());
        println!("cargo:rustc-link-arg=-ltorch_cuda");
        println!("cargo:rustc-link-arg=-Wl,--as-needed");
    }
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
