//! Arbitrary bytes as a store file that is opened for reading; the corpus is in `corpus/store`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // In memory where there is such a folder: a run writes the file thousands of times.
    let shared = std::path::Path::new("/dev/shm");
    let folder = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    togl_coordinator::hostile::store(bytes, &folder.join(format!("togl-fuzz-{}", std::process::id())));
});
