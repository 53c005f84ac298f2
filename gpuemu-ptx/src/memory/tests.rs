//! Accesses against a model of bytes, atomics against values worked out by hand, and regions by address.
#![allow(clippy::needless_range_loop, reason = "lanes and elements index several arrays at once")]

use proptest::prelude::*;

use super::*;
use crate::memory::atomic::{Number, Rule, Update};

const FULL: u32 = u32::MAX;

fn consecutive(base: u64, width: u64) -> [u64; LANES] {
    std::array::from_fn(|lane| base + lane as u64 * width)
}

/// Three regions of bytes that count up, the last one of constants.
fn three() -> (Global, [u64; 3]) {
    let mut global = Global::default();
    let bases = ["a", "b", "c"].map(|name| global.allocate(512, 4, name).unwrap());
    for base in bases {
        global.write(base, &(0..512).map(|byte| byte as u8).collect::<Vec<_>>()).unwrap();
    }
    global.declare(bases[2], Role::Constant, 4).unwrap();
    (global, bases)
}

fn check<T: Element + Into<u128> + TryFrom<u128>, const N: usize>(
    seeds: &[(u8, i16); LANES],
    mask: u32,
    pattern: u8,
    write: bool,
) -> Result<(), TestCaseError>
where
    <T as TryFrom<u128>>::Error: std::fmt::Debug,
{
    let (mut global, bases) = three();
    let width = (size_of::<T>() * N) as u64;
    let mut addresses: [u64; LANES] = std::array::from_fn(|lane| {
        let (region, offset) = seeds[lane];
        match pattern {
            // Anywhere, often aligned; in one region; consecutive; all the same.
            0 => bases[usize::from(region) % 3].wrapping_add_signed(i64::from(offset) % 600),
            1 => bases[usize::from(region) % 2] + offset.unsigned_abs() as u64 % 500 / width * width,
            2 => bases[0] + seeds[0].1.unsigned_abs() as u64 % 8 * 4 + lane as u64 * width,
            _ => bases[1] + seeds[0].1.unsigned_abs() as u64 % 100 * 4,
        }
    });
    if pattern == 1 {
        addresses
            .iter_mut()
            .for_each(|address| *address = *address / width * width + if *address % 256 < 4 { width } else { 0 });
    }
    // The model: bytes by address.
    let inside =
        |address: u64, bases: &[u64]| bases.iter().any(|base| address >= *base && address + width <= base + 512);
    let wrong = (0..LANES).filter(|lane| mask >> lane & 1 != 0).find_map(|lane| {
        let address = addresses[lane];
        let kind = match () {
            () if !address.is_multiple_of(width) => ProblemKind::Misaligned,
            () if write && inside(address, &bases[2..]) => ProblemKind::ReadOnly,
            () if !inside(address, &bases) => ProblemKind::Unmapped,
            () => return None,
        };
        Some((lane as u8, kind))
    });
    let mut image: Vec<Vec<u8>> = vec![(0..512).map(|byte| byte as u8).collect(); 3];
    let value = |lane: usize, element: usize| {
        (lane as u128 * 0x0123_4567_89ab_cdef_1357 + element as u128 * 77 + 5)
            & (u128::MAX >> (128 - 8 * size_of::<T>()))
    };
    let values: [[T; LANES]; N] =
        std::array::from_fn(|element| std::array::from_fn(|lane| T::try_from(value(lane, element)).unwrap()));
    let mut cache = Cache::default();
    let global_ref = &global;
    let mut out = values;
    let outcome = match write {
        true => global_ref.store(&mut cache, &addresses, mask, &values),
        false => global_ref.load(&mut cache, &addresses, mask, &mut out),
    };
    prop_assert_eq!(outcome.err().map(|problem| (problem.lane, problem.kind)), wrong);
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0 && wrong.is_none()) {
        let region = bases.iter().position(|base| inside(addresses[lane], &[*base])).unwrap();
        for (element, row) in out.iter().enumerate() {
            let from = (addresses[lane] - bases[region]) as usize + element * size_of::<T>();
            let bytes = &mut image[region][from..from + size_of::<T>()];
            if write {
                bytes.copy_from_slice(&value(lane, element).to_le_bytes()[..size_of::<T>()]);
            } else {
                let expected = bytes.iter().rev().fold(0_u128, |value, &byte| value << 8 | u128::from(byte));
                prop_assert_eq!(row[lane].into(), expected);
            }
        }
    }
    for lane in (0..LANES).filter(|lane| mask >> lane & 1 == 0 || wrong.is_some()) {
        for (element, row) in out.iter().enumerate() {
            prop_assert_eq!(row[lane].into(), value(lane, element));
        }
    }
    for (base, image) in bases.into_iter().zip(image) {
        let mut bytes = vec![0; 512];
        global.read(base, &mut bytes).unwrap();
        prop_assert_eq!(bytes, image);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]
    #[test]
    fn accesses_agree_with_bytes(
        seeds in prop::array::uniform32((0_u8..3, -200_i16..700)),
        mask in prop_oneof![Just(FULL), Just(0), any::<u32>(), (0..32).prop_map(|lane| 1_u32 << lane)],
        pattern in 0_u8..4,
        write: bool,
        kind in 0..10,
    ) {
        match kind {
            0 => check::<u8, 1>(&seeds, mask, pattern, write)?,
            1 => check::<u16, 1>(&seeds, mask, pattern, write)?,
            2 => check::<u32, 1>(&seeds, mask, pattern, write)?,
            3 => check::<u64, 1>(&seeds, mask, pattern, write)?,
            4 => check::<u128, 1>(&seeds, mask, pattern, write)?,
            5 => check::<u8, 4>(&seeds, mask, pattern, write)?,
            6 => check::<u16, 2>(&seeds, mask, pattern, write)?,
            7 => check::<u32, 4>(&seeds, mask, pattern, write)?,
            8 => check::<u64, 2>(&seeds, mask, pattern, write)?,
            _ => check::<u32, 8>(&seeds, mask, pattern, write)?,
        }
    }
}

#[test]
fn an_allocation_is_aligned_as_asked_and_no_better() {
    let global = Global::default();
    for (align, remainder) in [(1, 1), (2, 2), (4, 4), (16, 16), (128, 128), (256, 0), (4096, 0)] {
        let base = global.allocate(64, align, "x").unwrap();
        assert_eq!(base % 256, remainder, "{align}");
        assert_eq!(base % align, 0, "{align}");
    }
    assert!(global.allocate(64, 3, "x").is_err());
    assert!(global.allocate(u64::MAX, 256, "x").unwrap_err().to_string().contains("out of memory"));
}

#[test]
fn addresses_do_not_depend_on_the_run() {
    let addresses = || {
        let global = Global::default();
        [1_u64 << 20, 12, 1 << 34, 100].map(|bytes| global.allocate(bytes, 256, "x").unwrap())
    };
    assert_eq!(addresses(), addresses());
    assert_eq!(addresses()[0], 0x7f00_0000_0000);
}

#[test]
fn an_element_past_two_to_the_31() {
    let mut global = Global::new(Addressing::Virtual, true);
    let base = global.allocate(3 << 32, 256, "huge").unwrap();
    let at = base + 4 * ((1 << 31) + 5);
    let mut cache = Cache::default();
    global.store(&mut cache, &[at; LANES], 1, &[[7_u32; LANES]]).unwrap();
    // The index in 32 bits wraps to before the tensor, where nothing else lies.
    let wrapped = base.wrapping_add_signed(4 * i64::from(i32::MIN + 5));
    let problem = global.load(&mut cache, &[wrapped; LANES], 1, &mut [[0_u32; LANES]]).unwrap_err();
    assert_eq!((problem.lane, problem.kind, problem.address), (0, ProblemKind::Unmapped, wrapped));
    let mut bytes = [0; 4];
    global.read(at, &mut bytes).unwrap();
    assert_eq!(bytes, [7, 0, 0, 0]);
}

#[test]
fn places_in_words() {
    let mut global = Global::default();
    let x = global.allocate(4000, 256, "x").unwrap();
    let y = global.allocate(12, 256, "y").unwrap();
    let z = global.allocate(64, 256, "z").unwrap();
    global.declare(x, Role::Input, 4).unwrap();
    global.free(z).unwrap();
    let table = [
        (0, "null"),
        (12, "null plus 12 bytes"),
        (u64::MAX - 3, "null minus 4 bytes"),
        (x, "0 bytes into x, of 4000 bytes (1000 elements)"),
        (x + 4, "4 bytes (1 element) into x, of 4000 bytes (1000 elements)"),
        (x + 4000, "at the end of x, of 4000 bytes (1000 elements)"),
        (x + 4004, "4 bytes (1 element) past the end of x, of 4000 bytes (1000 elements)"),
        (x + 4002, "2 bytes past the end of x, of 4000 bytes (1000 elements)"),
        (x - 8, "8 bytes (2 elements) before the start of x, of 4000 bytes (1000 elements)"),
        (y + 13, "1 byte past the end of y, of 12 bytes"),
        (y - 1, "1 byte before the start of y, of 12 bytes"),
        (z + 4, "4 bytes into z, of 64 bytes, which was freed"),
        (0xdead_beef_dead_beef, "in no region, nor near one"),
    ];
    for (address, text) in table {
        assert_eq!(global.place(address, 4).to_string(), text, "{address:#x}");
    }
}

#[test]
fn memory_that_is_free_answers_no_more() {
    let mut global = Global::default();
    let x = global.allocate(256, 256, "x").unwrap();
    {
        let global = &global;
        let mut cache = Cache::default();
        let mut out = [[0_u32; LANES]];
        global.load(&mut cache, &consecutive(x, 4), FULL, &mut out).unwrap();
        // As a kernel frees it, while the region is in the cache.
        global.release(x).unwrap();
        let problem = global.load(&mut cache, &consecutive(x, 4), FULL, &mut out).unwrap_err();
        assert_eq!(problem, Problem { lane: 0, kind: ProblemKind::Unmapped, address: x, bytes: 4 });
        assert_eq!(global.release(x).unwrap_err().to_string(), "x was freed before");
    }
    global.free(x).unwrap();
    assert_eq!(global.free(x).unwrap_err().to_string(), "x was freed before");
    let y = global.allocate(256, 256, "y").unwrap();
    assert_ne!(x, y);
    let error = global.read(x, &mut [0]).unwrap_err().to_string();
    assert!(error.ends_with("0 bytes into x, of 256 bytes, which was freed"), "{error}");
}

#[test]
fn memory_of_the_caller() {
    let mut lent = [0_u32; 40];
    let pointer = lent.as_mut_ptr().cast::<u8>();
    for addressing in [Addressing::Virtual, Addressing::Host] {
        let mut global = Global::new(addressing, false);
        // SAFETY: the array outlives the memory, and is not touched meanwhile.
        let base = unsafe { global.borrow(pointer, 128, "lent") }.unwrap();
        assert_eq!(base % 256, pointer as u64 % 256);
        assert_eq!(base == pointer as u64, addressing == Addressing::Host);
        let values = [std::array::from_fn(|lane| lane as u32)];
        global.store(&mut Cache::default(), &consecutive(base, 4), FULL, &values).unwrap();
        let beyond = global.store(&mut Cache::default(), &consecutive(base + 4, 4), FULL, &values).unwrap_err();
        assert_eq!((beyond.lane, beyond.kind), (31, ProblemKind::Unmapped));
        if addressing == Addressing::Host {
            // SAFETY: as above.
            let twice = unsafe { global.borrow(pointer.wrapping_add(64), 64, "again") }.unwrap_err();
            assert!(twice.to_string().contains("overlap lent's 128"), "{twice}");
            let own = global.allocate(64, 256, "own").unwrap();
            global.write(own, &[1; 64]).unwrap();
        }
        global.free(base).unwrap();
    }
    assert_eq!(lent[..32], std::array::from_fn::<u32, 32, _>(|lane| lane as u32));
    assert_eq!(lent[32..], [0; 8]);
}

/// Three rows of two elements, and two elements of nothing after each but the last.
#[test]
fn gaps_that_strides_leave() {
    let mut global = Global::default();
    let base = global.allocate(40, 256, "x").unwrap();
    global.declare(base, Role::InOut, 4).unwrap();
    for row in 0..2 {
        global.exclude(base, row * 16 + 8, 8).unwrap();
    }
    let mut cache = Cache::default();
    let values = [[1_u32; LANES]];
    let table =
        [(0, 4, true), (4, 4, true), (8, 4, false), (12, 4, false), (16, 4, true), (36, 4, true), (40, 4, false)];
    for (offset, bytes, right) in table {
        let outcome = global.store(&mut cache, &[base + offset; LANES], 0b10, &values);
        let problem = Problem { lane: 1, kind: ProblemKind::Unmapped, address: base + offset, bytes };
        assert_eq!(outcome, if right { Ok(()) } else { Err(problem) }, "{offset}");
    }
    let wide = global.load(&mut cache, &[base; LANES], 1, &mut [[0_u32; LANES]; 4]).unwrap_err();
    assert_eq!((wide.kind, wide.bytes), (ProblemKind::Unmapped, 16));
    let text = "8 bytes (2 elements) into x, in a gap between its elements, of 40 bytes (10 elements)";
    assert_eq!(global.place(base + 8, 4).to_string(), text);
    global.write(base, &[7; 40]).unwrap();
    assert!(global.exclude(base, 36, 5).is_err());
}

#[test]
fn generic_addresses() {
    let table = [
        (0, Window::Global, 0),
        (0x7f00_0000_0010, Window::Global, 0x7f00_0000_0010),
        (SHARED_WINDOW, Window::Shared, 0),
        (SHARED_WINDOW + 0x1234, Window::Shared, 0x1234),
        (LOCAL_WINDOW + 8, Window::Local, 8),
        (SHARED_WINDOW - 1, Window::Global, SHARED_WINDOW - 1),
        (SHARED_WINDOW + WINDOW_BYTES, Window::Global, SHARED_WINDOW + WINDOW_BYTES),
    ];
    for (address, window, offset) in table {
        assert_eq!(Window::of(address), window, "{address:#x}");
        assert_eq!(window.offset(address), offset, "{address:#x}");
        assert_eq!(window.generic(offset), address, "{address:#x}");
    }
    let mut addresses = [LOCAL_WINDOW; LANES];
    addresses[0] = 5;
    addresses[31] = SHARED_WINDOW + 5;
    assert_eq!(Window::split(&addresses, 0xf000_0003), [1, 0x8000_0000, 0x7000_0002]);
}

#[test]
fn shared_memory_ends() {
    let mut shared = Shared::new(100);
    let values = [[1_u32; LANES]];
    assert_eq!(shared.contents(), [shared::POISON; 100]);
    let problem = shared.store(&consecutive(0, 4), FULL, &values).unwrap_err();
    assert_eq!(problem, Problem { lane: 25, kind: ProblemKind::Unmapped, address: 100, bytes: 4 });
    let problem = shared.store(&consecutive(2, 4), FULL, &values).unwrap_err();
    assert_eq!(problem, Problem { lane: 0, kind: ProblemKind::Misaligned, address: 2, bytes: 4 });
    assert_eq!(shared.contents(), [shared::POISON; 100]);
    shared.store(&consecutive(0, 4), 0x01ff_ffff, &values).unwrap();
    let mut out = [[0_u64; LANES]];
    shared.load(&consecutive(0, 8), 0xfff, &mut out).unwrap();
    assert_eq!(out[0][11], 0x1_0000_0001);
    assert_eq!(out[0][12], 0);
}

#[test]
fn every_thread_has_its_own_local_memory() {
    let mut local = Local::new(24, 40).unwrap();
    let values = [std::array::from_fn(|lane| lane as u64)];
    local.store(0, &[8; LANES], FULL, &values).unwrap();
    local.store(1, &[8; LANES], FULL, &[values[0].map(|value| value + 100)]).unwrap();
    let mut out = [[0_u64; LANES]];
    local.load(0, &[8; LANES], FULL, &mut out).unwrap();
    assert_eq!(out, values);
    local.load(1, &[8; LANES], FULL, &mut out).unwrap();
    assert_eq!(out[0][5], 105);
    local.load(1, &[16; LANES], FULL, &mut out).unwrap();
    assert_eq!(out[0], [0; LANES]);
    let problem = local.load(0, &[24; LANES], 0b100, &mut out).unwrap_err();
    assert_eq!(problem, Problem { lane: 2, kind: ProblemKind::Unmapped, address: 24, bytes: 8 });
}

#[test]
fn local_memory_that_a_thread_did_not_write() {
    const POISON: u32 = 0x7fc0_dead;
    let mut local = Local::new(24, 32).unwrap();
    let words = |local: &Local, address: u64| {
        let mut out = [[5_u32; LANES]];
        local.load(0, &[address; LANES], 0b111, &mut out).unwrap();
        [out[0][0], out[0][1], out[0][2], out[0][3]]
    };
    local.store(0, &[8; LANES], 0b010, &[[9_u32; LANES]]).unwrap();
    assert_eq!(words(&local, 8), [0, 9, 0, 5], "nobody watches");
    local.watch().unwrap();
    local.store(0, &[8; LANES], 0b101, &[[1_u32; LANES]]).unwrap();
    local.store(0, &[14; LANES], 0b001, &[[0x1234_u16; LANES]]).unwrap();
    assert_eq!(words(&local, 8), [1, POISON, 1, 5]);
    assert_eq!(words(&local, 12), [0x1234_dead, POISON, POISON, 5]);
    let mut wide = [[0_u64; LANES]];
    local.load(0, &[8; LANES], 0b100, &mut wide).unwrap();
    assert_eq!(wide[0][2], u64::from(POISON) << 32 | 1);
    local.enter(0, 0b100, 0, 12);
    assert_eq!(words(&local, 8), [1, POISON, POISON, 5], "a frame begins");
    local.reset();
    assert_eq!(words(&local, 8), [POISON, POISON, POISON, 5], "a block begins");
}

#[test]
fn atomics_on_values() {
    let f32 = |value: f32| u64::from(value.to_bits());
    use Number::*;
    use Update::*;
    let table: &[(Update, Number, u64, u64, u64, u64)] = &[
        (And, U32, 0b1100, 0b1010, 0, 0b1000),
        (Or, U64, 1 << 63, 1, 0, 1 << 63 | 1),
        (Xor, U32, 0b1100, 0b1010, 0, 0b0110),
        (Exchange, U64, 5, 6, 0, 6),
        (CompareAndSwap, U16, 5, 5, 9, 9),
        (CompareAndSwap, U16, 5, 4, 9, 5),
        (CompareAndSwap, U64, 5 << 40, 5 << 40, 9, 9),
        (Add, U32, 0xffff_ffff, 2, 0, 1),
        (Add, U64, u64::MAX, 2, 0, 1),
        (Add, S64, 5, (-7_i64) as u64, 0, (-2_i64) as u64),
        (Add, F32, f32(1.5), f32(2.25), 0, f32(3.75)),
        (Add, F64, 1.5_f64.to_bits(), 2.25_f64.to_bits(), 0, 3.75_f64.to_bits()),
        // 1 + 2 in half, 1 + 1 in bfloat16; both halves of the packed forms.
        (Add, F16, 0x3c00, 0x4000, 0, 0x4200),
        (Add, Bf16, 0x3f80, 0x3f80, 0, 0x4000),
        (Add, F16x2, 0x3c00_4000, 0x4000_3c00, 0, 0x4200_4200),
        (Add, Bf16x2, 0x3f80_0000, 0x3f80_4000, 0, 0x4000_4000),
        // PTX ISA, atom: inc wraps at the operand, dec to it.
        (Increment, U32, 6, 7, 0, 7),
        (Increment, U32, 7, 7, 0, 0),
        (Increment, U32, 9, 7, 0, 0),
        (Decrement, U32, 6, 7, 0, 5),
        (Decrement, U32, 0, 7, 0, 7),
        (Decrement, U32, 9, 7, 0, 7),
        (Minimum, S32, 0xffff_ffff, 1, 0, 0xffff_ffff),
        (Minimum, U32, 0xffff_ffff, 1, 0, 1),
        (Maximum, S64, (-3_i64) as u64, 2, 0, 2),
        (Maximum, U64, (-3_i64) as u64, 2, 0, (-3_i64) as u64),
        (Minimum, F16, 0x3c00, 0xbc00, 0, 0xbc00),
        (Maximum, Bf16x2, 0x3f80_bf80, 0x4000_0000, 0, 0x4000_0000),
    ];
    for &(update, number, old, operand, second, new) in table {
        let mut global = Global::default();
        let base = global.allocate(16, 256, "x").unwrap();
        let bytes = number.bytes() as usize;
        global.write(base, &old.to_le_bytes()[..bytes]).unwrap();
        let rule = Rule::new(update, number, false).unwrap();
        let mut before = [0; LANES];
        let (operands, seconds) = ([operand; LANES], [second; LANES]);
        let mut cache = Cache::default();
        global.atomic(&mut cache, &rule, &[base; LANES], 1 << 7, &operands, &seconds, &mut before).unwrap();
        let mut after = [0; 8];
        global.read(base, &mut after[..bytes]).unwrap();
        assert_eq!((before[7], u64::from_le_bytes(after)), (old, new), "{update:?} {number:?}");
    }
    for (update, number) in [(And, F32), (Minimum, F32), (Increment, U64), (Add, U16), (Exchange, U16), (Xor, F16)] {
        assert!(Rule::new(update, number, false).is_none(), "{update:?} {number:?}");
    }
}

#[test]
fn subnormal_sums_are_flushed_in_global_memory_only() {
    for (shared, sum) in [(false, 0), (true, 3)] {
        assert_eq!(Rule::new(Update::Add, Number::F32, shared).unwrap().apply(1, 2, 0), sum);
    }
}

#[test]
fn lanes_take_turns() {
    let mut global = Global::default();
    let base = global.allocate(32, 256, "x").unwrap();
    global.fill(base, 32, &[0]).unwrap();
    let rule = Rule::new(Update::Add, Number::U32, false).unwrap();
    let mut cache = Cache::default();
    let mut old = [9; LANES];
    let operands = std::array::from_fn(|lane| lane as u64);
    global.atomic(&mut cache, &rule, &[base; LANES], 0xff0, &operands, &[0; LANES], &mut old).unwrap();
    // 4 + 5 + 6 + ... before each lane; lanes that take no part keep what they had.
    assert_eq!(old[..13], [9, 9, 9, 9, 0, 4, 9, 15, 22, 30, 39, 49, 9]);
    let mut wide = [0; LANES];
    let new = std::array::from_fn(|lane| 1 << 100 | lane as u128);
    global.atomic128(&mut cache, &[base + 16; LANES], 0b111, None, &new, &mut wide).unwrap();
    assert_eq!(wide[..4], [0, 1 << 100, 1 << 100 | 1, 0]);
    let expected = [1 << 100 | 2; LANES];
    global.atomic128(&mut cache, &[base + 16; LANES], 0b11, Some(&expected), &[5; LANES], &mut wide).unwrap();
    assert_eq!(wide[..2], [1 << 100 | 2, 5]);
    let odd = global.atomic128(&mut cache, &[base + 8; LANES], 1, None, &new, &mut wide).unwrap_err();
    assert_eq!(odd.kind, ProblemKind::Misaligned);
}

#[test]
fn what_a_launch_borrows_goes_with_it() {
    let mut global = Global::new(Addressing::Virtual, true);
    let kept = global.allocate(64, 256, "kept").unwrap();
    let mark = global.mark();
    let mut host = [1_u8; 32];
    // SAFETY: `host` outlives the region, and nothing runs.
    let first = unsafe { global.borrow(host.as_mut_ptr(), 32, "x") }.unwrap();
    global.forget_part(first, 8, 4).unwrap();
    global.forget_part(first, 30, 2).unwrap();
    assert_eq!(global.find(first).unwrap().written().unwrap().missing(), [(8, 12), (30, 32)]);
    assert!(global.forget_part(first, 31, 2).is_err());
    assert!(global.forget_part(first + 1, 0, 1).is_err());
    let mut other = [2_u8; 16];
    let fixed = other.as_mut_ptr() as u64;
    // SAFETY: as above.
    unsafe { global.borrow_in_place(other.as_mut_ptr(), 16, "z") }.unwrap();
    assert_eq!(global.find(fixed + 15).map(|region| region.base()), Some(fixed));
    // SAFETY: as above.
    assert!(unsafe { global.borrow_in_place(other.as_mut_ptr(), 16, "twice") }.is_err());
    global.free(fixed).unwrap();
    global.rewind(mark);
    assert!(global.find(first).is_none());
    assert!(global.find(kept).is_some());
    // SAFETY: as above.
    let again = unsafe { global.borrow(host.as_mut_ptr(), 16, "y") }.unwrap();
    assert_eq!(again, first);
}
