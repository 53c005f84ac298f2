//! Any bytes give a module, which comes back from its own print, or an error with words.
//!
//! In the folder of `gpuemu-ptx`: `cargo +nightly fuzz run parse fuzz/corpus/parse tests/parse`.

#![no_main]

use gpuemu_ptx::parse::{parse, parse_bytes};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match parse_bytes(bytes) {
        Ok(module) => {
            let text = module.to_string();
            let again = parse(&text).unwrap_or_else(|error| panic!("{error}"));
            assert!(again.same_but_for_offsets(&module), "{text}");
        }
        Err(error) => assert!(error.to_string().len() < 4096),
    }
});
