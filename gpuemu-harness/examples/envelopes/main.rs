//! Prints the envelopes that ship with the built-in references:
//! `cargo run -p gpuemu-harness --example envelopes > envelopes.toml`, then put the file into `gpuemu-harness/src`.

mod measure;

use gpuemu_harness::calibrate;
use std::process::ExitCode;

fn main() -> ExitCode {
    match measure::table(|_| true) {
        Ok(table) => {
            print!("{}", calibrate::print_standard(&table));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
