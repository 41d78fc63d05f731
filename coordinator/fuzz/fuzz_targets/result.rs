//! Arbitrary bytes as the text of a stored result; the corpus is in `corpus/result`.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    togl_coordinator::hostile::stored_result(bytes);
});
