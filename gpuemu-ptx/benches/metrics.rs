//! Pace of what follows the parser, on a module of one megabyte in the style of nvcc and Triton: entries with a loop
//! each, guarded loads, address arithmetic, shared memory and matrix products.

use std::fmt::Write;

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher, black_box};
use gpuemu_ptx::lint::check;
use gpuemu_ptx::metrics::measure;
use gpuemu_ptx::parse::parse;
use gpuemu_ptx::program::Program;

/// Memory is part of what is measured.
#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// Entries of some 600 instructions, as often as makes a megabyte.
fn module() -> String {
    let mut text = String::from(
        ".version 8.8\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 smem[];\n.file 1 \"kernel.py\"\n",
    );
    let mut entry = 0;
    while text.len() < 1_000_000 {
        let _ = write!(
            text,
            ".visible .entry kernel_{entry}(\n\t.param .u64 kernel_{entry}_param_0,\n\t.param .u32 \
             kernel_{entry}_param_1\n)\n.reqntid 128\n{{\n\t.reg .pred \t%p<64>;\n\t.reg .b32 \t%r<600>;\n\t.reg .f32 \
             \t%f<600>;\n\t.reg .b64 \t%rd<300>;\n\tld.param.u64 \t%rd0, [kernel_{entry}_param_0];\n\tld.param.u32 \t%r0, \
             [kernel_{entry}_param_1];\n\tmov.u32 \t%r1, %tid.x;\n\tmov.u32 \t%r2, %ctaid.x;\n\tmov.u32 \t%r3, \
             smem;\n\tmov.u32 \t%r4, 0;\n\tmov.f32 \t%f0, \
             0f3F800000;\n$L__BB{entry}_1:\n"
        );
        for group in 1..40_u32 {
            let (r, d, f, p) = (group * 10, group * 4, group * 8, group);
            let _ = write!(
                text,
                "\t.loc\t1 {group} 12\n\tmad.lo.s32 \t%r{r}, %r2, %r0, %r1;\n\tadd.s32 \t%r{}, %r{r}, {group};\n\tmul.wide.s32 \
                 \t%rd{d}, %r{}, 4;\n\tadd.s64 \t%rd{}, %rd0, %rd{d};\n\tsetp.lt.s32 \t%p{p}, %r{}, %r0;\n\tmov.u32 %r{}, \
                 0x0;\n\t@%p{p} ld.global.b32 {{ %r{} }}, [ %rd{} + 0 ];\n\tshl.b32 \t%r{}, %r1, 4;\n\tadd.s32 \t%r{}, %r3, \
                 %r{};\n\tst.shared.u32 \t[%r{}+{}], %r{};\n\tfma.rn.f32 \t%f{f}, %f{}, %f{}, %f0;\n\t@%p{p} bra \
                 \t$L__BB{entry}_{};\n\tmul.f32 \t%f{}, %f{f}, 0f3F000000;\n$L__BB{entry}_{}:\n",
                r + 1,
                r + 1,
                d + 1,
                r + 1,
                r + 2,
                r + 2,
                d + 1,
                r + 3,
                r + 4,
                r + 3,
                r + 4,
                group * 4,
                r + 2,
                f - 8,
                f - 8,
                group + 1,
                f + 1,
                group + 1,
            );
        }
        let _ = write!(
            text,
            "\tbar.sync \t0;\n\tld.shared.u32 \t%r5, [%r14+64];\n\tadd.s32 \t%r4, %r4, 32;\n\tsetp.lt.s32 \t%p0, %r4, \
             %r0;\n\t@%p0 bra \t$L__BB{entry}_1;\n\tst.global.u32 \t[%rd0], %r5;\n\tret;\n}}\n"
        );
        entry += 1;
    }
    text
}

/// From the syntax tree to the program.
#[divan::bench]
fn resolve(bencher: Bencher<'_, '_>) {
    let text = module();
    let tree = parse(&text).unwrap();
    bencher.counter(BytesCount::of_str(&text)).bench_local(|| Program::resolve(black_box(&tree), &text).unwrap());
}

/// The metrics of every entry.
#[divan::bench]
fn weigh(bencher: Bencher<'_, '_>) {
    let text = module();
    let program = Program::read(&text).unwrap();
    bencher.counter(BytesCount::of_str(&text)).bench_local(|| {
        program.entries().map(|(id, _)| measure(black_box(&program), id).instructions.weighted).sum::<u64>()
    });
}

/// From the text to the metrics of every entry.
#[divan::bench]
fn whole(bencher: Bencher<'_, '_>) {
    let text = module();
    bencher.counter(BytesCount::of_str(&text)).bench_local(|| {
        let program = Program::read(black_box(&text)).unwrap();
        program.entries().map(|(id, _)| measure(&program, id).instructions.weighted).sum::<u64>()
    });
}

/// All rules on every entry.
#[divan::bench]
fn lint(bencher: Bencher<'_, '_>) {
    let text = module();
    let program = Program::read(&text).unwrap();
    let metrics: Vec<_> = program.entries().map(|(id, _)| (id, measure(&program, id))).collect();
    bencher.counter(BytesCount::of_str(&text)).bench_local(|| {
        metrics.iter().map(|(id, metrics)| check(black_box(&program), *id, metrics).len()).sum::<usize>()
    });
}
