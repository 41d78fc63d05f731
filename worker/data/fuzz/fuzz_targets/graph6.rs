//! Arbitrary bytes through the reader that `hostile::graph6` stands for; the corpus is in `corpus/graph6`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    togl_data::hostile::graph6(bytes);
});
