//! Every form of every instruction loads.

use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Device, Options};

#[test]
fn every_form_loads() {
    let mut refused = Vec::new();
    let lines = include_str!("forms.ptx").lines().filter(|line| !line.starts_with("//"));
    for line in lines {
        let (body, target) = line.split_once('@').map_or((line, "sm_80"), |(body, target)| (body, target.trim()));
        let text = format!(
            ".version 9.1
.target {target}
.address_size 64
.visible .entry k(.param .u64 out)
{{
    .reg .pred p, q, s;
    .reg .b16 h<4>;
    .reg .b32 r<10>;
    .reg .b64 d<4>;
    .reg .b128 x<2>;
    .shared .align 16 .b8 buffer[256];
    {body}
    ret;
}}
"
        );
        let mut device = Device::new(Arch::named(target).unwrap(), Options::default()).unwrap();
        if let Err(error) = device.load(&text) {
            refused.push(format!("{line} {error}"));
        }
    }
    assert!(refused.is_empty(), "{} forms:\n{}", refused.len(), refused.join("\n"));
}
