//! What a user reads when a binding is wrong: each file of `ui/` beside the compiler's output for it.

#[test]
fn messages() {
    let contract = concat!(env!("CARGO_MANIFEST_DIR"), "/gpuemu.toml");
    // SAFETY: this is the only test of its binary, and nothing else reads the environment meanwhile.
    unsafe { std::env::set_var("GPUEMU_CONFIG", contract) };
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}
