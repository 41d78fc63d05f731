//! Arbitrary bytes through the reader that `hostile::idx` stands for; the corpus is in `corpus/idx`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    togl_data::hostile::idx(bytes);
});
