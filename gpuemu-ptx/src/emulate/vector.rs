//! The commonest instructions of binary32 in vectors of the host, for hosts with AVX2 and FMA: straight from row to row,
//! with nothing between them that a compiler may or may not see through.

use super::context::Context;
use super::op::{Body, Op, Signal};
use super::registers::LANES;
use super::warp::Warp;
use crate::numerics::exact::Rounding;
use crate::numerics::float as fl;

macro_rules! in_vectors {
    ($($(#[$doc:meta])* $name:ident($($x:ident: $field:ident),*) = $one:expr, $vector:expr;)*) => {$(
        $(#[$doc])*
        pub struct $name;

        impl Body for $name {
            #[cfg(target_arch = "x86_64")]
            const WIDE: Option<super::op::Run> = Some(wide::$name);

            #[inline(always)]
            fn run(warp: &mut Warp, _: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
                $(let $x = warp.registers.stored::<u32>(op.$field);)*
                let mut out = [0; LANES];
                for lane in 0..LANES {
                    $(let $x = $x[lane];)*
                    out[lane] = $one;
                }
                warp.registers.write::<u32>(op.d, &out, mask);
                Signal::Next
            }
        }
    )*

        #[cfg(target_arch = "x86_64")]
        #[allow(non_snake_case, reason = "each is of the type of its name")]
        mod wide {
            use std::arch::x86_64::*;
            use std::mem::MaybeUninit;

            use super::*;
            use crate::emulate::registers::FULL;

            $(
                #[target_feature(enable = "avx2,fma")]
                pub(super) unsafe fn $name(warp: &mut Warp, _: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
                    on::$name(&mut warp.registers, op, mask);
                    Signal::Next
                }
            )*

            /// What they do to registers.
            pub(super) mod on {
                use super::*;
                use crate::emulate::registers::Registers;
            $(
                #[target_feature(enable = "avx2,fma")]
                #[inline]
                pub fn $name(registers: &mut Registers, op: &Op, mask: u32) {
                    $(let $x = registers.stored::<u32>(op.$field).as_ptr();)*
                    let row = registers.row_mut::<u32>(op.d).as_mut_ptr();
                    let mut beside = MaybeUninit::<[u32; LANES]>::uninit();
                    // A register that is both read and written is so in the same lanes: registers share a row or none.
                    let to = if mask == FULL { row } else { beside.as_mut_ptr().cast() };
                    for part in 0..LANES / 8 {
                        // SAFETY: rows of 32 words, and the same of `beside`.
                        unsafe {
                            $(let $x = _mm256_loadu_ps($x.cast::<f32>().add(8 * part));)*
                            _mm256_storeu_ps(to.cast::<f32>().add(8 * part), $vector);
                        }
                    }
                    if mask != FULL {
                        // SAFETY: written just now.
                        registers.write::<u32>(op.d, unsafe { beside.assume_init_ref() }, mask);
                    }
                }
            )*
            }

            /// NaNs as the hardware gives them.
            #[target_feature(enable = "avx2")]
            #[inline]
            fn canonical(x: __m256) -> __m256 {
                let nan = _mm256_castsi256_ps(_mm256_set1_epi32(fl::NAN32 as i32));
                _mm256_blendv_ps(x, nan, _mm256_cmp_ps::<_CMP_UNORD_Q>(x, x))
            }

            /// Of two numbers that are no NaNs both answers agree but for zeros of two signs, of which `zero` picks. The
            /// host gives its second operand where one is a NaN; the other one it is to be.
            #[target_feature(enable = "avx2")]
            #[inline]
            fn extremum(a: __m256, b: __m256, first: __m256, second: __m256, zero: __m256) -> __m256 {
                let picked = _mm256_blendv_ps(zero, first, _mm256_cmp_ps::<_CMP_UNORD_Q>(a, a));
                canonical(_mm256_blendv_ps(picked, second, _mm256_cmp_ps::<_CMP_UNORD_Q>(b, b)))
            }

            #[target_feature(enable = "avx2")]
            #[inline]
            fn min(a: __m256, b: __m256) -> __m256 {
                let (first, second) = (_mm256_min_ps(a, b), _mm256_min_ps(b, a));
                extremum(a, b, first, second, _mm256_or_ps(first, second))
            }

            #[target_feature(enable = "avx2")]
            #[inline]
            fn max(a: __m256, b: __m256) -> __m256 {
                let (first, second) = (_mm256_max_ps(a, b), _mm256_max_ps(b, a));
                extremum(a, b, first, second, _mm256_and_ps(first, second))
            }
        }
    };
}

in_vectors! {
    /// `add.f32`.
    Add(a: a, b: b) = fl::add32(a, b, Rounding::Nearest), canonical(_mm256_add_ps(a, b));
    /// `sub.f32`.
    Sub(a: a, b: b) = fl::sub32(a, b, Rounding::Nearest), canonical(_mm256_sub_ps(a, b));
    /// `mul.f32`.
    Mul(a: a, b: b) = fl::mul32(a, b, Rounding::Nearest), canonical(_mm256_mul_ps(a, b));
    /// `fma.rn.f32`.
    Fma(a: a, b: b, c: c) = fl::fma32(a, b, c, Rounding::Nearest), canonical(_mm256_fmadd_ps(a, b, c));
    /// `min.f32`.
    Min(a: a, b: b) = fl::min32(a, b, fl::Extremum::default()), min(a, b);
    /// `max.f32`.
    Max(a: a, b: b) = fl::max32(a, b, fl::Extremum::default()), max(a, b);
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::emulate::op::{host_is_wide, pick};
    use crate::emulate::registers::{FULL, Frame, Registers};

    /// Numbers of every kind, and both sides of where rounding and ranges end.
    pub const NUMBERS: [u32; 32] = [
        0,
        0x8000_0000,
        1,
        0x8000_0001,
        0x007f_ffff,
        0x807f_ffff,
        0x0080_0000,
        0x8080_0000,
        0x3f80_0000,
        0xbf80_0000,
        0x3f80_0001,
        0x3f7f_ffff,
        0x4000_0000,
        0xc000_0000,
        0x4b80_0000,
        0x4b80_0001,
        0xcb80_0001,
        0x7f7f_ffff,
        0xff7f_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0xffc0_0000,
        0x7f80_0001,
        0xff80_0001,
        0x7fff_ffff,
        0x3eaa_aaab,
        0xbeaa_aaab,
        0x1e3c_e508,
        0x5f80_0000,
        0x2000_0000,
        0xa000_0001,
    ];

    #[cfg(target_arch = "x86_64")]
    fn agrees(vectors: unsafe fn(&mut Registers, &Op, u32), one: impl Fn(u32, u32, u32) -> u32) {
        if !host_is_wide() {
            return;
        }
        let mut registers = Registers::new(&[]);
        registers.enter(Frame::default(), 4, 1);
        let op = Op { run: pick::<Add>(false), imm: 0, d: 0, a: 0, b: 1, c: 2, e: 0, guard: 0 };
        for turn in 0..32 * 32 {
            let rows = [0, turn % 32, turn / 32].map(|by| std::array::from_fn(|lane| NUMBERS[(lane + by) % 32]));
            for mask in [FULL, 0x8000_0001, 0x00ff_ff00] {
                // Into a row of its own, and into that of an operand.
                for d in [3, 0, 1, 2] {
                    for (register, row) in (0..).zip(&rows) {
                        registers.write::<u32>(register, row, FULL);
                    }
                    registers.write::<u32>(3, &[7; LANES], FULL);
                    let before = *registers.stored::<u32>(d);
                    // SAFETY: the host has what the function needs, and there are four rows.
                    unsafe { vectors(&mut registers, &Op { d, ..op }, mask) };
                    for (lane, after) in registers.stored::<u32>(d).iter().enumerate() {
                        let [a, b, c] = rows.map(|row| row[lane]);
                        let right = if mask >> lane & 1 == 0 { before[lane] } else { one(a, b, c) };
                        assert_eq!(*after, right, "{a:#x} {b:#x} {c:#x}, lane {lane} of {mask:#x}");
                    }
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn vectors_agree_with_single_lanes() {
        const NEAREST: Rounding = Rounding::Nearest;
        agrees(wide::on::Add, |a, b, _| fl::add32(a, b, NEAREST));
        agrees(wide::on::Sub, |a, b, _| fl::sub32(a, b, NEAREST));
        agrees(wide::on::Mul, |a, b, _| fl::mul32(a, b, NEAREST));
        agrees(wide::on::Fma, |a, b, c| fl::fma32_through_f64(a, b, c, NEAREST));
        agrees(wide::on::Min, |a, b, _| fl::min32(a, b, fl::Extremum::default()));
        agrees(wide::on::Max, |a, b, _| fl::max32(a, b, fl::Extremum::default()));
    }
}
