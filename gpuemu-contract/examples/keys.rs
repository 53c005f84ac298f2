//! Prints the page of keys: `cargo run -p gpuemu-contract --example keys > gpuemu-contract/KEYS.md`.

fn main() {
    print!("{}", gpuemu_contract::key_docs::markdown());
}
