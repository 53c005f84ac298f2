//! From an instruction's name to the function that computes it.

use gpuemu_ptx::numerics::convert::{self as cv, Finish, Integer, TfRounding};
use gpuemu_ptx::numerics::exact::Rounding;
use gpuemu_ptx::numerics::float::{self as fl, Comparison, Extremum, Property};
use gpuemu_ptx::numerics::{half as hf, integer as int, special as sp};

pub type Answer = Box<dyn Fn(&[u64; 4]) -> u64>;

fn rounding(name: &[&str]) -> Rounding {
    for part in name {
        match *part {
            "rz" | "rzi" => return Rounding::Zero,
            "rm" | "rmi" => return Rounding::Down,
            "rp" | "rpi" => return Rounding::Up,
            _ => {}
        }
    }
    Rounding::Nearest
}

fn integer(name: &str) -> Option<Integer> {
    let signed = name.starts_with('s');
    let bits = name[1..].parse().ok()?;
    (signed || name.starts_with('u')).then_some(Integer { bits, signed })
}

fn comparison(name: &str) -> Comparison {
    match name {
        "eq" => Comparison::Eq,
        "ne" => Comparison::Ne,
        "lt" => Comparison::Lt,
        "le" => Comparison::Le,
        "gt" => Comparison::Gt,
        "ge" => Comparison::Ge,
        "equ" => Comparison::Equ,
        "neu" => Comparison::Neu,
        "ltu" => Comparison::Ltu,
        "leu" => Comparison::Leu,
        "gtu" => Comparison::Gtu,
        "geu" => Comparison::Geu,
        "num" => Comparison::Num,
        "nan" => Comparison::Nan,
        other => panic!("unknown comparison {other}"),
    }
}

/// The function of an instruction; `None` where there is none.
pub fn answer(name: &str) -> Option<Answer> {
    let p: Vec<&str> = name.split('.').collect();
    let has = |m: &str| p.contains(&m);
    let last = *p.last()?;
    let r = rounding(&p);
    let ftz = has("ftz");
    let sat = has("sat");
    let relu = has("relu");
    let mode = Extremum { nan: has("NaN"), xorsign_abs: has("xorsign") };
    let flush = move |a: u32| if ftz { fl::flush32(a) } else { a };
    let finish32 = move |a: u32| {
        let a = flush(a);
        u64::from(if sat { fl::saturate32(a) } else { a })
    };
    macro_rules! f32x1 {
        ($f:expr) => {{
            let f = $f;
            Some(Box::new(move |x: &[u64; 4]| finish32(f(flush(x[0] as u32)))) as Answer)
        }};
    }
    macro_rules! f32x2 {
        ($f:expr) => {{
            let f = $f;
            Some(Box::new(move |x: &[u64; 4]| finish32(f(flush(x[0] as u32), flush(x[1] as u32)))) as Answer)
        }};
    }
    macro_rules! f32x3 {
        ($f:expr) => {{
            let f = $f;
            Some(Box::new(move |x: &[u64; 4]| finish32(f(flush(x[0] as u32), flush(x[1] as u32), flush(x[2] as u32))))
                as Answer)
        }};
    }
    macro_rules! d1 {
        ($f:expr) => {{
            let f = $f;
            Some(Box::new(move |x: &[u64; 4]| f(x[0])) as Answer)
        }};
    }
    macro_rules! d2 {
        ($f:expr) => {{
            let f = $f;
            Some(Box::new(move |x: &[u64; 4]| f(x[0], x[1])) as Answer)
        }};
    }
    macro_rules! d3 {
        ($f:expr) => {{
            let f = $f;
            Some(Box::new(move |x: &[u64; 4]| f(x[0], x[1], x[2])) as Answer)
        }};
    }
    macro_rules! w1 {
        ($f:expr) => {{
            let f = $f;
            Some(Box::new(move |x: &[u64; 4]| f(x[0] as u32) as u64) as Answer)
        }};
    }
    macro_rules! w2 {
        ($f:expr) => {{
            let f = $f;
            Some(Box::new(move |x: &[u64; 4]| f(x[0] as u32, x[1] as u32) as u64) as Answer)
        }};
    }
    macro_rules! w3 {
        ($f:expr) => {{
            let f = $f;
            Some(Box::new(move |x: &[u64; 4]| f(x[0] as u32, x[1] as u32, x[2] as u32) as u64) as Answer)
        }};
    }
    macro_rules! h1 {
        ($f:expr) => {{
            let f = $f;
            Some(Box::new(move |x: &[u64; 4]| u64::from(f(x[0] as u16))) as Answer)
        }};
    }
    macro_rules! h2 {
        ($f:expr) => {{
            let f = $f;
            Some(Box::new(move |x: &[u64; 4]| u64::from(f(x[0] as u16, x[1] as u16))) as Answer)
        }};
    }
    macro_rules! h3 {
        ($f:expr) => {{
            let f = $f;
            Some(Box::new(move |x: &[u64; 4]| u64::from(f(x[0] as u16, x[1] as u16, x[2] as u16))) as Answer)
        }};
    }
    // Half arithmetic with its modifiers.
    let hflush = move |a: u16| if ftz { hf::flush_f16(a) } else { a };
    let hdone = move |a: u16| {
        let a = hflush(a);
        let a = if sat { hf::saturate_f16(a) } else { a };
        if relu { hf::relu_f16(a) } else { a }
    };
    let bdone = move |a: u16| if relu { hf::relu_bf16(a) } else { a };
    match (p[0], last) {
        ("add", "f32") => f32x2!(move |a, b| fl::add32(a, b, r)),
        ("sub", "f32") => f32x2!(move |a, b| fl::sub32(a, b, r)),
        ("mul", "f32") if ftz => f32x2!(move |a, b| fl::mul32_ftz(a, b, r)),
        ("mul", "f32") => f32x2!(move |a, b| fl::mul32(a, b, r)),
        ("fma", "f32") if ftz => f32x3!(move |a, b, c| fl::fma32_ftz(a, b, c, r)),
        ("fma", "f32") => f32x3!(move |a, b, c| fl::fma32(a, b, c, r)),
        ("div", "f32") if has("approx") => w2!(move |a, b| sp::div_approx(a, b, ftz)),
        ("div", "f32") if has("full") => w2!(move |a, b| sp::div_full(a, b, ftz)),
        ("div", "f32") if ftz => f32x2!(move |a, b| fl::div32_ftz(a, b, r)),
        ("div", "f32") => f32x2!(move |a, b| fl::div32(a, b, r)),
        ("rcp", "f32") if !has("approx") => f32x1!(move |a| fl::rcp32(a, r)),
        ("sqrt", "f32") if !has("approx") => f32x1!(move |a| fl::sqrt32(a, r)),
        ("ex2", "f32") => w1!(move |a| sp::ex2(a, ftz)),
        ("lg2", "f32") => w1!(move |a| sp::lg2(a, ftz)),
        ("rcp", "f32") => w1!(move |a| sp::rcp(a, ftz)),
        ("rsqrt", "f32") => w1!(move |a| sp::rsqrt(a, ftz)),
        ("sqrt", "f32") => w1!(move |a| sp::sqrt(a, ftz)),
        ("sin", "f32") => w1!(move |a| sp::sin(a, ftz)),
        ("cos", "f32") => w1!(move |a| sp::cos(a, ftz)),
        ("tanh", "f32") => w1!(sp::tanh),
        ("ex2", "f16") => h1!(sp::ex2_f16),
        ("ex2", "f16x2") => w1!(|a: u32| int::halves(a, 0, |x, _| sp::ex2_f16(x))),
        ("ex2", "bf16") => h1!(sp::ex2_bf16),
        ("tanh", "f16") => h1!(sp::tanh_f16),
        ("tanh", "bf16") => h1!(sp::tanh_bf16),
        ("rcp", "f64") if has("approx") => d1!(sp::rcp_f64),
        ("rsqrt", "f64") => d1!(move |a| sp::rsqrt_f64(a, ftz)),
        ("min", "f32") => f32x2!(move |a, b| fl::min32(a, b, mode)),
        ("max", "f32") => f32x2!(move |a, b| fl::max32(a, b, mode)),
        ("abs", "f32") => f32x1!(fl::abs32),
        ("neg", "f32") => f32x1!(fl::neg32),
        ("copysign", "f32") => w2!(fl::copysign32),
        ("copysign", "f64") => d2!(fl::copysign64),
        ("min", "f64") => d2!(fl::min64),
        ("max", "f64") => d2!(fl::max64),
        ("abs", "f64") => d1!(fl::abs64),
        ("neg", "f64") => d1!(fl::neg64),
        ("add", "f64") => d2!(move |a, b| fl::add64(a, b, r)),
        ("sub", "f64") => d2!(move |a, b| fl::sub64(a, b, r)),
        ("mul", "f64") => d2!(move |a, b| fl::mul64(a, b, r)),
        ("fma", "f64") => d3!(move |a, b, c| fl::fma64(a, b, c, r)),
        ("div", "f64") => d2!(move |a, b| fl::div64(a, b, r)),
        ("rcp", "f64") => d1!(move |a| fl::rcp64(a, r)),
        ("sqrt", "f64") => d1!(move |a| fl::sqrt64(a, r)),
        ("testp", t) => {
            let property = match p[1] {
                "finite" => Property::Finite,
                "infinite" => Property::Infinite,
                "number" => Property::Number,
                "notanumber" => Property::NotANumber,
                "normal" => Property::Normal,
                _ => Property::Subnormal,
            };
            if t == "f32" {
                w1!(move |a| fl::testp32(a, property))
            } else {
                d1!(move |a| u64::from(fl::testp64(a, property)))
            }
        }
        ("setp", t) => {
            let c = comparison(p[1]);
            match t {
                "f32" => w2!(move |a, b| fl::compare32(flush(a), flush(b), c)),
                "f64" => d2!(move |a, b| u64::from(fl::compare64(a, b, c))),
                "f16" => h2!(move |a, b| fl::compare32(hf::f16_to_f32(hflush(a)), hf::f16_to_f32(hflush(b)), c)),
                _ => h2!(move |a, b| fl::compare32(hf::bf16_to_f32(a), hf::bf16_to_f32(b), c)),
            }
        }
        ("set", t) => {
            let c = comparison(p[1]);
            match (p[2], t) {
                ("f32", _) => w2!(move |a, b| if fl::compare32(a, b, c) { 0x3f80_0000 } else { 0u32 }),
                ("u32", _) => w2!(move |a, b| if fl::compare32(a, b, c) { u32::MAX } else { 0 }),
                _ => {
                    h2!(move |a, b| if fl::compare32(hf::f16_to_f32(a), hf::f16_to_f32(b), c) { 0x3c00u16 } else { 0 })
                }
            }
        }
        ("slct", "s32") => w3!(|a, b, c: u32| if c as i32 >= 0 { a } else { b }),
        ("slct", "f32") => w3!(move |a, b, c| if fl::compare32(flush(c), 0, Comparison::Ge) { a } else { b }),
        (op @ ("add" | "sub" | "mul"), t @ ("f16" | "f16x2")) => {
            let f = match op {
                "add" => hf::add_f16,
                "sub" => hf::sub_f16,
                _ if ftz => hf::mul_f16_ftz,
                _ => hf::mul_f16,
            };
            let g = move |a, b| hdone(f(hflush(a), hflush(b)));
            if t == "f16" { h2!(g) } else { w2!(move |a, b| int::halves(a, b, g)) }
        }
        (op @ ("add" | "sub" | "mul"), t @ ("bf16" | "bf16x2")) => {
            let f = match op {
                "add" => hf::add_bf16,
                "sub" => hf::sub_bf16,
                _ => hf::mul_bf16,
            };
            if t == "bf16" { h2!(f) } else { w2!(move |a, b| int::halves(a, b, f)) }
        }
        ("fma", t @ ("f16" | "f16x2")) => {
            let f = if ftz { hf::fma_f16_ftz } else { hf::fma_f16 };
            let g = move |a, b, c| hdone(f(a, b, c));
            if t == "f16" { h3!(g) } else { w3!(move |a, b, c| hf::halves3(a, b, c, g)) }
        }
        ("fma", t @ ("bf16" | "bf16x2")) => {
            let g = move |a, b, c| bdone(hf::fma_bf16(a, b, c));
            if t == "bf16" { h3!(g) } else { w3!(move |a, b, c| hf::halves3(a, b, c, g)) }
        }
        (op @ ("min" | "max"), t @ ("f16" | "f16x2")) => {
            let f = if op == "min" { fl::min_f16 } else { fl::max_f16 };
            let g = move |a, b| hflush(f(hflush(a), hflush(b), mode));
            if t == "f16" { h2!(g) } else { w2!(move |a, b| int::halves(a, b, g)) }
        }
        (op @ ("min" | "max"), t @ ("bf16" | "bf16x2")) => {
            let f = if op == "min" { fl::min_bf16 } else { fl::max_bf16 };
            let g = move |a, b| f(a, b, mode);
            if t == "bf16" { h2!(g) } else { w2!(move |a, b| int::halves(a, b, g)) }
        }
        ("abs", "f16") => h1!(move |a| hf::abs_f16(hflush(a))),
        ("neg", "f16") => h1!(move |a| hf::neg_f16(hflush(a))),
        ("abs", "bf16") => h1!(hf::abs_bf16),
        ("neg", "bf16") => h1!(hf::neg_bf16),
        ("cvt", _) => conversion(&p, r, ftz),
        _ => integers(&p, name),
    }
}

fn conversion(p: &[&str], r: Rounding, ftz: bool) -> Option<Answer> {
    let has = |m: &str| p.contains(&m);
    let (to, from) = (p[p.len() - 2], p[p.len() - 1]);
    let sat = has("sat");
    let integral = p[1].ends_with('i');
    let finish = Finish { relu: has("relu"), satfinite: has("satfinite") };
    let flush = move |a: u32| if ftz { fl::flush32(a) } else { a };
    macro_rules! f {
        ($x:ident, $e:expr) => {
            Some(Box::new(move |x: &[u64; 4]| {
                let $x = x;
                ($e) as u64
            }) as Answer)
        };
    }
    if p[1] == "pack" {
        return match p[3] {
            "s16" | "u16" => {
                let to = integer(p[3])?;
                f!(x, cv::pack_16(x[0] as u32, x[1] as u32, to))
            }
            t => {
                let to = integer(t)?;
                f!(x, cv::pack_small(x[0] as u32, x[1] as u32, x[2] as u32, to))
            }
        };
    }
    let s32 = move |a: u32| if sat { fl::saturate32(a) } else { a };
    match (to, from) {
        ("f16x2", "f32") => f!(
            x,
            u64::from(cv::f32_to_f16_finish(x[0] as u32, r, finish)) << 16
                | u64::from(cv::f32_to_f16_finish(x[1] as u32, r, finish))
        ),
        ("bf16x2", "f32") => f!(
            x,
            u64::from(cv::f32_to_bf16_finish(x[0] as u32, r, finish)) << 16
                | u64::from(cv::f32_to_bf16_finish(x[1] as u32, r, finish))
        ),
        ("f16", "f32") => f!(x, {
            let h = cv::f32_to_f16_finish(x[0] as u32, r, finish);
            if sat { hf::saturate_f16(h) } else { h }
        }),
        ("bf16", "f32") => f!(x, cv::f32_to_bf16_finish(x[0] as u32, r, finish)),
        ("tf32", "f32") => {
            let mode = match p[1] {
                "rna" => TfRounding::NearestAway,
                "rn" => TfRounding::Nearest,
                _ => TfRounding::Zero,
            };
            f!(x, cv::f32_to_tf32(x[0] as u32, mode, finish))
        }
        ("e4m3x2" | "e5m2x2", _) => {
            let small = if to == "e4m3x2" { cv::E4M3 } else { cv::E5M2 };
            let relu = finish.relu;
            if from == "f32" {
                f!(x, cv::f32_to_small_x2(x[0] as u32, x[1] as u32, small, relu))
            } else {
                f!(x, cv::f16x2_to_small_x2(x[0] as u32, small, relu))
            }
        }
        ("f16x2", _) => {
            let small = if from == "e4m3x2" { cv::E4M3 } else { cv::E5M2 };
            let relu = finish.relu;
            f!(x, cv::small_x2_to_f16x2(x[0] as u16, small, relu))
        }
        ("f32", "f32") if integral => f!(x, s32(cv::f32_to_integral(flush(x[0] as u32), r))),
        ("f32", "f32") if ftz => f!(x, cv::f32_to_f32_ftz(x[0] as u32, sat)),
        ("f32", "f32") => f!(x, s32(x[0] as u32)),
        ("f64", "f64") if integral => f!(x, cv::f64_to_integral(x[0], r)),
        ("f64", "f64") => f!(x, fl::saturate64(x[0])),
        ("f16", "f16") if integral => f!(x, cv::f16_to_integral(x[0] as u16, r)),
        ("f16", "f16") => f!(x, hf::saturate_f16(x[0] as u16)),
        ("bf16", "bf16") => f!(x, cv::bf16_to_integral(x[0] as u16, r)),
        ("f32", "f64") => f!(x, s32(flush(cv::f64_to_f32(x[0], r)))),
        ("f16", "f64") => f!(x, cv::f64_to_f16(x[0], r)),
        ("bf16", "f64") => f!(x, cv::f64_to_bf16(x[0], r)),
        ("f32", "f16") => f!(x, s32(flush(hf::f16_to_f32(x[0] as u16)))),
        ("f64", "f16") => f!(x, cv::f16_to_f64(x[0] as u16)),
        ("f32", "bf16") => f!(x, hf::bf16_to_f32(x[0] as u16)),
        ("f64", "bf16") => f!(x, cv::bf16_to_f64(x[0] as u16)),
        ("f64", "f32") => f!(x, cv::f32_to_f64(if ftz { cv::f32_to_f32_ftz(x[0] as u32, false) } else { x[0] as u32 })),
        ("bf16", "f16") => f!(x, cv::f16_to_bf16(x[0] as u16, r)),
        ("f16", "bf16") => f!(x, cv::bf16_to_f16(x[0] as u16, r)),
        (to, from) => match (integer(to), integer(from)) {
            (Some(to), Some(from)) => f!(x, cv::int_to_int(x[0], from, to, sat)),
            (Some(to), None) => match from {
                "f32" => f!(x, cv::f32_to_int(flush(x[0] as u32), to, r)),
                "f64" => f!(x, cv::f64_to_int(x[0], to, r)),
                "f16" => f!(x, cv::f16_to_int(x[0] as u16, to, r)),
                _ => f!(x, cv::bf16_to_int(x[0] as u16, to, r)),
            },
            (None, Some(from)) => match to {
                "f32" => f!(x, s32(cv::int_to_f32(x[0], from, r))),
                "f64" => f!(x, cv::int_to_f64(x[0], from, r)),
                "f16" => f!(x, cv::int_to_f16(x[0], from, r)),
                _ => f!(x, cv::int_to_bf16(x[0], from, r)),
            },
            _ => None,
        },
    }
}

fn integers(p: &[&str], name: &str) -> Option<Answer> {
    let has = |m: &str| p.contains(&m);
    let last = *p.last()?;
    macro_rules! f {
        ($x:ident, $e:expr) => {
            Some(Box::new(move |x: &[u64; 4]| {
                let $x = x;
                ($e) as u64
            }) as Answer)
        };
    }
    macro_rules! two {
        ($f:ident) => {
            f!(x, int::$f(x[0] as _, x[1] as _))
        };
    }
    macro_rules! three {
        ($f:ident) => {
            f!(x, int::$f(x[0] as _, x[1] as _, x[2] as _))
        };
    }
    let clamp = has("clamp");
    let amount = has("shiftamt");
    match name {
        "addc.u32" | "subc.u32" | "addc.u32.sub" | "subc.u32.add" => {
            let first_sub = matches!(name, "subc.u32" | "addc.u32.sub");
            let second_sub = name.starts_with("subc");
            return f!(x, {
                let [a, b, c, e] = x.map(|v| v as u32);
                let (low, flag) = if first_sub { int::sub_carry32(a, b, true) } else { int::add_carry32(a, b, false) };
                let (high, _) = if second_sub { int::sub_carry32(c, e, flag) } else { int::add_carry32(c, e, flag) };
                u64::from(high) << 32 | u64::from(low)
            });
        }
        "madc.u32" => {
            return f!(x, {
                let [a, b, c, e] = x.map(|v| v as u32);
                let (low, flag) = int::add_carry32(a.wrapping_mul(b), c, false);
                let (high, _) = int::add_carry32(int::mul_hi_u32(a, b), e, flag);
                u64::from(high) << 32 | u64::from(low)
            });
        }
        _ => {}
    }
    match (p[0], last) {
        ("mul", _) if has("lo") => f!(x, x[0].wrapping_mul(x[1])),
        ("mad", _) if has("lo") => f!(x, x[0].wrapping_mul(x[1]).wrapping_add(x[2])),
        ("mad", _) if has("sat") => three!(mad_hi_sat_s32),
        ("mad24", _) if has("sat") => three!(mad24_hi_sat_s32),
        ("mul", "u16") if has("hi") => two!(mul_hi_u16),
        ("mul", "s16") if has("hi") => two!(mul_hi_s16),
        ("mul", "u32") if has("hi") => two!(mul_hi_u32),
        ("mul", "s32") if has("hi") => two!(mul_hi_s32),
        ("mul", "u64") => two!(mul_hi_u64),
        ("mul", "s64") => two!(mul_hi_s64),
        ("mul", "u16") => two!(mul_wide_u16),
        ("mul", "s16") => two!(mul_wide_s16),
        ("mul", "u32") => two!(mul_wide_u32),
        ("mul", "s32") => two!(mul_wide_s32),
        ("mad" | "mad24", _) => {
            let product = answer(&name.replacen("mad", "mul", 1))?;
            Some(Box::new(move |x: &[u64; 4]| product(x).wrapping_add(x[2])))
        }
        ("mul24", "u32") if has("lo") => two!(mul24_lo_u32),
        ("mul24", "s32") if has("lo") => two!(mul24_lo_s32),
        ("mul24", "u32") => two!(mul24_hi_u32),
        ("mul24", "s32") => two!(mul24_hi_s32),
        ("sad", "u16") => three!(sad_u16),
        ("sad", "s16") => three!(sad_s16),
        ("sad", "u32") => three!(sad_u32),
        ("sad", "s32") => three!(sad_s32),
        ("sad", "u64") => three!(sad_u64),
        ("sad", "s64") => three!(sad_s64),
        ("div", "u16") => two!(div_u16),
        ("div", "s16") => two!(div_s16),
        ("div", "u32") => two!(div_u32),
        ("div", "s32") => two!(div_s32),
        ("div", "u64") => two!(div_u64),
        ("div", "s64") => two!(div_s64),
        ("rem", "u16") => two!(rem_u16),
        ("rem", "s16") => two!(rem_s16),
        ("rem", "u32") => two!(rem_u32),
        ("rem", "s32") => two!(rem_s32),
        ("rem", "u64") => two!(rem_u64),
        ("rem", "s64") => two!(rem_s64),
        ("add", "s32") => two!(add_sat_s32),
        ("sub", "s32") => two!(sub_sat_s32),
        ("min", "s32") if has("relu") => two!(min_relu_s32),
        ("max", "s32") if has("relu") => two!(max_relu_s32),
        ("add" | "min" | "max", "s16x2" | "u16x2") => {
            let (op, signed, relu) = (p[0].to_owned(), last == "s16x2", has("relu"));
            f!(
                x,
                int::halves(x[0] as u32, x[1] as u32, |a, b| match (op.as_str(), signed, relu) {
                    ("add", ..) => a.wrapping_add(b),
                    ("min", true, true) => (a as i16).min(b as i16).max(0) as u16,
                    ("max", true, true) => (a as i16).max(b as i16).max(0) as u16,
                    ("min", true, _) => (a as i16).min(b as i16) as u16,
                    ("max", true, _) => (a as i16).max(b as i16) as u16,
                    ("min", ..) => a.min(b),
                    _ => a.max(b),
                })
            )
        }
        ("min" | "max", t) => {
            let (to, min) = (integer(t)?, p[0] == "min");
            f!(x, {
                let (a, b) = (to.extend(x[0]), to.extend(x[1]));
                let less = if to.signed { (a as i64) < b as i64 } else { a < b };
                if less == min { a } else { b }
            })
        }
        ("shr", "u16") => two!(shr_u16),
        ("shr", "s16") => two!(shr_s16),
        ("shr", "u32") => two!(shr_u32),
        ("shr", "s32") => two!(shr_s32),
        ("shr", "u64") => two!(shr_u64),
        ("shr", "s64") => two!(shr_s64),
        ("shl", "b16") => two!(shl_b16),
        ("shl", "b32") => two!(shl_b32),
        ("shl", "b64") => two!(shl_b64),
        ("abs", "s16") => f!(x, int::abs_s16(x[0] as u16)),
        ("abs", "s32") => f!(x, int::abs_s32(x[0] as u32)),
        ("abs", "s64") => f!(x, int::abs_s64(x[0])),
        ("neg", _) => f!(x, x[0].wrapping_neg()),
        ("cnot", "b16") => f!(x, int::cnot_b16(x[0] as u16)),
        ("cnot", "b32") => f!(x, int::cnot_b32(x[0] as u32)),
        ("cnot", "b64") => f!(x, int::cnot_b64(x[0])),
        ("bfe", "u32") => three!(bfe_u32),
        ("bfe", "s32") => three!(bfe_s32),
        ("bfe", "u64") => three!(bfe_u64),
        ("bfe", "s64") => three!(bfe_s64),
        ("bfi", "b32") => f!(x, int::bfi_b32(x[0] as u32, x[1] as u32, x[2] as u32, x[3] as u32)),
        ("bfi", "b64") => f!(x, int::bfi_b64(x[0], x[1], x[2] as u32, x[3] as u32)),
        ("bfind", "u32") => f!(x, int::bfind_u32(x[0] as u32, amount)),
        ("bfind", "s32") => f!(x, int::bfind_s32(x[0] as u32, amount)),
        ("bfind", "u64") => f!(x, int::bfind_u64(x[0], amount)),
        ("bfind", "s64") => f!(x, int::bfind_s64(x[0], amount)),
        ("brev", "b32") => f!(x, (x[0] as u32).reverse_bits()),
        ("brev", "b64") => f!(x, x[0].reverse_bits()),
        ("popc", _) => f!(x, x[0].count_ones()),
        ("clz", "b32") => f!(x, (x[0] as u32).leading_zeros()),
        ("clz", "b64") => f!(x, x[0].leading_zeros()),
        ("fns", _) => f!(x, int::fns_b32(x[0] as u32, x[1] as u32, x[2] as i32)),
        ("lop3", t) => {
            let table = u8::from_str_radix(&t[2..], 16).ok()?;
            f!(x, int::lop3(x[0] as u32, x[1] as u32, x[2] as u32, table))
        }
        ("prmt", t) => {
            let mode = match t {
                "f4e" => int::Permute::Forward,
                "b4e" => int::Permute::Backward,
                "rc8" => int::Permute::Replicate8,
                "ecl" => int::Permute::EdgeLeft,
                "ecr" => int::Permute::EdgeRight,
                "rc16" => int::Permute::Replicate16,
                _ => int::Permute::Generic,
            };
            f!(x, int::prmt(x[0] as u32, x[1] as u32, x[2] as u32, mode))
        }
        ("shf", _) => {
            let left = has("l");
            f!(x, {
                let [a, b, c, _] = x.map(|v| v as u32);
                if left { int::shf_l(a, b, c, clamp) } else { int::shf_r(a, b, c, clamp) }
            })
        }
        ("dp4a", _) => {
            let (s, t) = (p[1] == "s32", p[2] == "s32");
            f!(x, int::dp4a(x[0] as u32, x[1] as u32, x[2] as u32, s, t))
        }
        ("dp2a", _) => {
            let (s, t, high) = (p[2] == "s32", p[3] == "s32", p[1] == "hi");
            f!(x, int::dp2a(x[0] as u32, x[1] as u32, x[2] as u32, s, t, high))
        }
        ("szext", t) => {
            let signed = t == "s32";
            f!(x, int::szext(x[0] as u32, x[1] as u32, signed, clamp))
        }
        ("bmsk", _) => f!(x, int::bmsk(x[0] as u32, x[1] as u32, clamp)),
        ("slct", _) => unreachable!("matched above"),
        _ => None,
    }
}
