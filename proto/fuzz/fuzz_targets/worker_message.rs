//! Arbitrary bytes through the conversions that `hostile::worker_message` stands for.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    togl_proto::hostile::worker_message(bytes);
});
