//! Compiles the native operations (`native/`) against libtorch's headers and links this crate's own tests to libtorch.
//! Packages with a binary need the same link arguments: cargo does not hand them on.

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo:rerun-if-changed=native");
    println!("cargo:rerun-if-env-changed=DEP_TCH_LIBTORCH_LIB");
    let Some(library) = std::env::var_os("DEP_TCH_LIBTORCH_LIB").map(PathBuf::from) else {
        println!("cargo:warning=torch-sys did not say where libtorch is; nothing is linked");
        return;
    };
    let library = library.canonicalize().unwrap_or(library);
    // The tests find libtorch where it is.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", library.display());
    compile(&library);
}

fn compile(library: &Path) {
    let include = library.with_file_name("include");
    cc::Build::new()
        .cpp(true)
        .std("c++20")
        .opt_level(3)
        .debug(false)
        .warnings(false)
        // As libtorch itself was compiled: some of its classes have other members without it.
        .define("NDEBUG", None)
        .flag_if_supported("-fno-math-errno")
        .flag_if_supported("-fno-trapping-math")
        .include(&include)
        .include(include.join("torch/csrc/api/include"))
        .files(
            ["count.cpp", "dense.cpp", "devices.cpp", "ops.cpp"].map(|file| Path::new("native").join(file)),
        )
        .compile("togl_ops");
}
