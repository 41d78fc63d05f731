//! Arbitrary bytes through the reader that `hostile::cifar` stands for; the corpus is in `corpus/cifar`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    togl_data::hostile::cifar(bytes);
});
