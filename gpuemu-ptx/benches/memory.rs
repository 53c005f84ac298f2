//! What a warp instruction's access costs, with sanitizers off and on.
//!
//! Every benchmark goes over a working set of 64 KiB once an iteration: its time divided by the count of items is that
//! of one warp instruction of 32 lanes.

use std::hint::black_box;

use divan::Bencher;
use divan::counter::ItemsCount;
use gpuemu_ptx::memory::shadow::{Block, Grid, Instruction, Order};
use gpuemu_ptx::memory::{Addressing, Cache, Global, LANES, Number, Role, Rule, Shared, Update};

const BYTES: u64 = 1 << 16;
const FULL: u32 = u32::MAX;

fn main() {
    divan::main();
}

#[derive(Clone, Copy, Debug)]
enum Pattern {
    Consecutive,
    Unaligned,
    Strided,
    Uniform,
    Tail,
}

const PATTERNS: [Pattern; 5] =
    [Pattern::Consecutive, Pattern::Unaligned, Pattern::Strided, Pattern::Uniform, Pattern::Tail];

fn rows(pattern: Pattern, width: u64) -> (Vec<[u64; LANES]>, u32) {
    let count = BYTES / (width * LANES as u64);
    let row = |row: u64| -> [u64; LANES] {
        std::array::from_fn(|lane| {
            let lane = lane as u64;
            match pattern {
                Pattern::Consecutive | Pattern::Tail => (row * LANES as u64 + lane) * width,
                Pattern::Unaligned => ((row * LANES as u64 + lane) * width + 4).min(BYTES - width),
                Pattern::Strided => (lane * count + row) * width,
                Pattern::Uniform => row * width,
            }
        })
    };
    let mask = if matches!(pattern, Pattern::Tail) { 0x1fff_ffff } else { FULL };
    ((0..count).map(row).collect(), mask)
}

fn memory(checked: bool, role: Role) -> (Global, u64) {
    let mut global = Global::new(Addressing::Virtual, checked);
    let base = global.allocate(BYTES, 256, "x").unwrap();
    global.fill(base, BYTES, &[1]).unwrap();
    global.declare(base, role, 4).unwrap();
    (global, base)
}

fn at(rows: Vec<[u64; LANES]>, base: u64) -> Vec<[u64; LANES]> {
    rows.into_iter().map(|row| row.map(|offset| base + offset)).collect()
}

#[divan::bench(args = PATTERNS)]
fn global_load(bencher: Bencher, pattern: Pattern) {
    let (global, base) = memory(false, Role::Input);
    let (rows, mask) = rows(pattern, 4);
    let rows = at(rows, base);
    let mut cache = Cache::default();
    let mut out = [[0_u32; LANES]];
    bencher.counter(ItemsCount::new(rows.len())).bench_local(|| {
        for row in &rows {
            global.load(&mut cache, black_box(row), mask, &mut out).unwrap();
            black_box(&mut out);
        }
    });
}

#[divan::bench(args = PATTERNS)]
fn global_load_checked(bencher: Bencher, pattern: Pattern) {
    let (mut global, base) = memory(true, Role::Input);
    let grid = Grid::new(&mut global).unwrap();
    let mut block = Block::new(&global, &grid, 0).unwrap();
    block.start(0, 1);
    let (rows, mask) = rows(pattern, 4);
    let rows = at(rows, base);
    let mut cache = Cache::default();
    let mut out = [[0_u32; LANES]];
    let instruction = Instruction { warp: 0, site: 1, order: Order::Weak, alike: 0 };
    bencher.counter(ItemsCount::new(rows.len())).bench_local(|| {
        for row in &rows {
            assert!(block.load(&mut cache, instruction, black_box(row), mask, 4, u32::MAX).is_none());
            global.load(&mut cache, row, mask, &mut out).unwrap();
            black_box(&mut out);
        }
    });
}

#[divan::bench]
fn global_load_v4(bencher: Bencher) {
    let (global, base) = memory(false, Role::Input);
    let (rows, mask) = rows(Pattern::Consecutive, 16);
    let rows = at(rows, base);
    let mut cache = Cache::default();
    let mut out = [[0_u32; LANES]; 4];
    bencher.counter(ItemsCount::new(rows.len())).bench_local(|| {
        for row in &rows {
            global.load(&mut cache, black_box(row), mask, &mut out).unwrap();
            black_box(&mut out);
        }
    });
}

#[divan::bench(args = [Pattern::Consecutive, Pattern::Unaligned, Pattern::Strided, Pattern::Tail])]
fn global_store(bencher: Bencher, pattern: Pattern) {
    let (global, base) = memory(false, Role::Output);
    let (rows, mask) = rows(pattern, 4);
    let rows = at(rows, base);
    let mut cache = Cache::default();
    let values = [[7_u32; LANES]];
    bencher.counter(ItemsCount::new(rows.len())).bench_local(|| {
        for row in &rows {
            global.store(&mut cache, black_box(row), mask, black_box(&values)).unwrap();
        }
    });
}

#[divan::bench(args = [Pattern::Consecutive, Pattern::Strided, Pattern::Tail])]
fn global_store_checked(bencher: Bencher, pattern: Pattern) {
    let (mut global, base) = memory(true, Role::Output);
    let grid = Grid::new(&mut global).unwrap();
    let mut block = Block::new(&global, &grid, 0).unwrap();
    block.start(0, 1);
    let (rows, mask) = rows(pattern, 4);
    let rows = at(rows, base);
    let mut cache = Cache::default();
    let values = [[7_u32; LANES]];
    let instruction = Instruction { warp: 0, site: 1, order: Order::Weak, alike: 0 };
    bencher.counter(ItemsCount::new(rows.len())).bench_local(|| {
        for row in &rows {
            assert!(block.store(&mut cache, instruction, black_box(row), mask, &values).is_none());
            global.store(&mut cache, row, mask, black_box(&values)).unwrap();
        }
        block.barrier(u32::MAX);
    });
}

/// A tile written by one warp and read by another, a barrier before and after.
#[divan::bench(args = [false, true])]
fn shared_tile(bencher: Bencher, checked: bool) {
    let (mut global, _) = memory(true, Role::Input);
    let grid = Grid::new(&mut global).unwrap();
    let mut block = Block::new(&global, &grid, BYTES as u32).unwrap();
    block.start(0, 2);
    let mut shared = Shared::new(BYTES as u32);
    let (rows, mask) = rows(Pattern::Consecutive, 4);
    let values = [[7_u32; LANES]];
    let mut out = [[0_u32; LANES]];
    let by = |warp, site| Instruction { warp, site, order: Order::Weak, alike: 0 };
    bencher.counter(ItemsCount::new(2 * rows.len())).bench_local(|| {
        for row in &rows {
            if checked {
                assert!(block.store_shared(&shared, by(0, 1), row, mask, &values).is_none());
            }
            shared.store(black_box(row), mask, black_box(&values)).unwrap();
        }
        block.barrier(u32::MAX);
        for row in &rows {
            if checked {
                assert!(block.load_shared(by(1, 2), row, mask, 4, u32::MAX).is_none());
            }
            shared.load(black_box(row), mask, &mut out).unwrap();
            black_box(&mut out);
        }
        block.barrier(u32::MAX);
    });
}

#[divan::bench(args = [Pattern::Consecutive, Pattern::Uniform])]
fn atomic_add(bencher: Bencher, pattern: Pattern) {
    let (global, base) = memory(false, Role::InOut);
    let (rows, mask) = rows(pattern, 4);
    let rows = at(rows, base);
    let rule = Rule::new(Update::Add, Number::U32, false).unwrap();
    let mut cache = Cache::default();
    let mut old = [0; LANES];
    bencher.counter(ItemsCount::new(rows.len())).bench_local(|| {
        for row in &rows {
            global.atomic(&mut cache, &rule, black_box(row), mask, &[1; LANES], &[0; LANES], &mut old).unwrap();
        }
    });
}
