//! Arbitrary bytes through the conversions that `hostile::lease` stands for.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    togl_proto::hostile::lease(bytes);
});
