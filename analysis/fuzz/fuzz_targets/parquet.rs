//! Arbitrary bytes as folds saved as Parquet; the corpus is in `corpus/parquet`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = togl_analysis::FoldFrame::read_bytes(bytes.to_vec(), std::path::Path::new("folds.parquet"));
});
