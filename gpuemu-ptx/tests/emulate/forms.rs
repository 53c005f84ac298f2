//! Every form of every instruction loads, but for those that are refused.

use gpuemu_ptx::arch::Arch;
use gpuemu_ptx::emulate::{Device, Options};

#[test]
fn every_form_loads() {
    let mut wrong = Vec::new();
    let lines = include_str!("forms.ptx").lines().filter(|line| !line.starts_with("//"));
    for line in lines {
        let (body, refused) = line.strip_prefix('!').map_or((line, false), |body| (body, true));
        let (body, target) = body.split_once('@').map_or((body, "sm_80"), |(body, target)| (body, target.trim()));
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
        match device.load(&text) {
            Ok(_) if refused => wrong.push(format!("{line} loads")),
            Err(error) if !refused => wrong.push(format!("{line} {error}")),
            // A refusal names the line and says what it is that is missing.
            Err(error) => assert!(error.to_string().starts_with("line 12: "), "{error}"),
            Ok(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{} forms:\n{}", wrong.len(), wrong.join("\n"));
}
