//! Prints the JSON Schema of `gpuemu.toml`: `cargo run -p gpuemu-contract --example schema > gpuemu.schema.json`.

fn main() {
    print!("{}", gpuemu_contract::key_docs::json_schema());
}
