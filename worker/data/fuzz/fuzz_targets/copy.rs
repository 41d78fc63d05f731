//! Arbitrary bytes through the reader that `hostile::copy` stands for; the corpus is in `corpus/copy`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    togl_data::hostile::copy(bytes);
});
