//! Arbitrary bytes through the reader that `hostile::tu` stands for; the corpus is in `corpus/tu`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    togl_data::hostile::tu(bytes);
});
