//! Every instruction that an architecture's file lists assembles for it, and every other one does not.

use super::{errors_of, settings};
use gpuemu_ptx::arch::{Arch, Feature};
use gpuemu_ptx::vendor::{Job, Toolbox};
use std::collections::BTreeSet;

/// Instructions of each feature. Operands are in range of the registers of [`module`].
const PROBES: &[(Feature, &[&str])] = &[
    (Feature::AccessB128, &["ld.global.b128 %q1, [%d1];"]),
    (Feature::AsyncProxy, &["fence.proxy.async;"]),
    (Feature::AtomicB128, &["atom.global.cas.b128 %q1, [%d1], %q2, %q3;"]),
    (Feature::AtomicBf16, &["atom.global.add.noftz.bf16x2 %r1, [%d1], %r2;"]),
    (Feature::AtomicF16x2, &["atom.global.add.noftz.f16x2 %r1, [%d1], %r2;"]),
    (Feature::AtomicVector, &["atom.global.v4.f32.add {%f1, %f2, %f3, %f4}, [%d1], {%f1, %f2, %f3, %f4};"]),
    (Feature::Bf16, &["fma.rn.bf16x2 %r1, %r2, %r3, %r4;", "cvt.rn.bf16x2.f32 %r1, %f1, %f2;"]),
    (Feature::Bf16Arithmetic, &["add.rn.bf16x2 %r1, %r2, %r3;"]),
    (Feature::Bf16Transcendental, &["ex2.approx.ftz.bf16 %h1, %h2;", "tanh.approx.bf16 %h1, %h2;"]),
    (
        Feature::BulkCopy,
        &["cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1], %r2, [%r3];"],
    ),
    (Feature::CachePolicy, &["createpolicy.fractional.L2::evict_last.b64 %d1, 1.0;", "discard.global.L2 [%d1], 128;"]),
    (
        Feature::Cluster,
        &["barrier.cluster.arrive;", "barrier.cluster.wait;", "mapa.shared::cluster.u32 %r1, %r2, %r3;"],
    ),
    (
        Feature::ClusterLaunchControl,
        &["clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%r1], [%r2];"],
    ),
    (Feature::CpAsync, &["cp.async.ca.shared.global [%r1], [%d1], 16;"]),
    (Feature::Elect, &["elect.sync %r1|%p1, 0xffffffff;"]),
    (Feature::Fp8, &["cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2;"]),
    (Feature::GridDependency, &["griddepcontrol.wait;"]),
    (
        Feature::HalfMinMax,
        &["min.f16 %h1, %h2, %h3;", "max.NaN.f32 %f1, %f2, %f3;", "fma.rn.relu.f16 %h1, %h2, %h3, %h4;"],
    ),
    (Feature::HalfTranscendental, &["ex2.approx.f16 %h1, %h2;", "tanh.approx.f16 %h1, %h2;"]),
    (Feature::Ldmatrix, &["ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];"]),
    (
        Feature::LdmatrixB8,
        &[
            "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r5];",
            "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r5], {%r1};",
        ],
    ),
    (Feature::Mbarrier, &["mbarrier.arrive.shared.b64 %d1, [%r1];"]),
    (
        Feature::MbarrierTransactions,
        &["mbarrier.try_wait.shared.b64 %p1, [%r1], %d1;", "mbarrier.arrive.expect_tx.shared.b64 %d1, [%r1], %r2;"],
    ),
    (Feature::MinMaxThree, &["max.f32 %f1, %f2, %f3, %f4;"]),
    (Feature::MinMaxXorsign, &["min.xorsign.abs.f32 %f1, %f2, %f3;"]),
    (Feature::MixedPrecisionAdd, &["add.rn.f32.f16 %f1, %h1, %f2;"]),
    (
        Feature::MmaB1,
        &["mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc {%r1, %r2}, {%r3}, {%r4}, {%r5, %r6};"],
    ),
    (
        Feature::MmaB1K256,
        &[
            "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, {%r1, %r2, %r3, %r4};",
            "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, {%r1, %r2, %r3, %r4};",
        ],
    ),
    (
        Feature::MmaBf16,
        &[
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};",
        ],
    ),
    (
        Feature::MmaBlockScale,
        &[
            "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8}, {%r1}, {0, 0}, {%r2}, {0, 0};",
        ],
    ),
    (
        Feature::MmaF16,
        &[
            "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {%f5, %f6, %f7, %f8};",
        ],
    ),
    (
        Feature::MmaF16K16,
        &[
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};",
        ],
    ),
    (Feature::MmaF64, &["mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1, %fd2}, {%fd3}, {%fd4}, {%fd5, %fd6};"]),
    (
        Feature::MmaF64K16,
        &[
            "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%fd1, %fd2, %fd3, %fd4}, {%fd3, %fd4}, {%fd4}, {%fd1, %fd2, %fd3, %fd4};",
        ],
    ),
    (
        Feature::MmaFp8,
        &[
            "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};",
            "mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e5m2.f16 {%r1, %r2}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%r7, %r8};",
        ],
    ),
    (Feature::MmaInt4, &["mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32 {%r1, %r2}, {%r3}, {%r4}, {%r5, %r6};"]),
    (
        Feature::MmaInt4K64,
        &[
            "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, {%r1, %r2, %r3, %r4};",
        ],
    ),
    (Feature::MmaInt8, &["mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r1, %r2}, {%r3}, {%r4}, {%r5, %r6};"]),
    (
        Feature::MmaInt8K32,
        &[
            "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%r9, %r10}, {%r1, %r2, %r3, %r4};",
        ],
    ),
    (
        Feature::MmaNarrowFloats,
        &[
            "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e2m1.e3m2.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};",
        ],
    ),
    (
        Feature::MmaSparse,
        &[
            "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6, %r7, %r8}, {%f5, %f6, %f7, %f8}, %r9, 0x0;",
        ],
    ),
    (
        Feature::MmaTf32,
        &[
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f5, %f6, %f7, %f8};",
        ],
    ),
    (Feature::Movmatrix, &["movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;"]),
    (Feature::Multimem, &["multimem.ld_reduce.relaxed.gpu.global.add.u32 %r1, [%d1];"]),
    (
        Feature::NarrowFloats,
        &[
            "{ .reg .b8 t; cvt.rn.satfinite.e2m1x2.f32 t, %f1, %f2; } cvt.rn.satfinite.e2m3x2.f32 %h1, %f1, %f2;",
            "cvt.rz.satfinite.ue8m0x2.f32 %h1, %f1, %f2;",
        ],
    ),
    (Feature::PackedF32, &["add.rn.f32x2 %d1, %d2, %d3;"]),
    (Feature::Redux, &["redux.sync.add.s32 %r1, %r2, 0xffffffff;"]),
    (Feature::ReduxF32, &["redux.sync.min.f32 %f1, %f2, 0xffffffff;"]),
    (Feature::SetMaxRegisters, &["setmaxnreg.dec.sync.aligned.u32 40;"]),
    (Feature::Stmatrix, &["stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r5], {%r1, %r2, %r3, %r4};"]),
    (Feature::StochasticRounding, &["cvt.rs.f16x2.f32 %r1, %f1, %f2, %r2;"]),
    (Feature::StoreAsync, &["st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3];"]),
    (Feature::Tcgen05, &["tcgen05.wait::ld.sync.aligned;"]),
    (
        Feature::TensorCopy,
        &[
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%d1, {%r2, %r3}], [%r4];",
        ],
    ),
    (Feature::TensormapReplace, &["tensormap.replace.tile.global_address.global.b1024.b64 [%d1], %d2;"]),
    (Feature::Tf32, &["cvt.rna.tf32.f32 %r1, %f1;"]),
    (
        Feature::Wgmma,
        &["wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"],
    ),
    (Feature::WideGlobalAccess, &["ld.global.v8.b32 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%d1];"]),
    (Feature::WmmaBf16, &["wmma.load.a.sync.aligned.m16n16k16.global.row.bf16 {%r1, %r2, %r3, %r4}, [%d1];"]),
    (
        Feature::WmmaF16,
        &[
            "wmma.load.c.sync.aligned.m16n16k16.global.row.f32 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, [%d1];",
            "wmma.load.a.sync.aligned.m16n16k16.global.row.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%d1];",
        ],
    ),
    (Feature::WmmaF64, &["wmma.load.a.sync.aligned.m8n8k4.global.row.f64 {%fd1}, [%d1];"]),
    (
        Feature::WmmaInt4B1,
        &[
            "wmma.load.a.sync.aligned.m8n8k32.global.row.s4 {%r1}, [%d1];",
            "wmma.load.a.sync.aligned.m8n8k128.global.row.b1 {%r1}, [%d1];",
        ],
    ),
    (Feature::WmmaInt8, &["wmma.load.a.sync.aligned.m16n16k16.global.row.s8 {%r1, %r2}, [%d1];"]),
    (Feature::WmmaTf32, &["wmma.load.a.sync.aligned.m16n16k8.global.row.tf32 {%r1, %r2, %r3, %r4}, [%d1];"]),
];

const REGISTERS: &str = ".reg .b16 %h<8>; .reg .b32 %r<40>; .reg .b64 %d<12>; .reg .f32 %f<40>; .reg .f64 %fd<8>; \
                         .reg .pred %p<4>; .reg .b128 %q<4>;";

/// One entry a probe, each on three lines: a probe's instructions stand on the second.
fn module(target: &str, probes: &[&(Feature, &[&str])]) -> String {
    let mut text = format!(".version 9.0\n.target {target}\n.address_size 64\n");
    for (at, (_, instructions)) in probes.iter().enumerate() {
        text.push_str(&format!(".visible .entry probe{at}() {{ {REGISTERS}\n{}\nret; }}\n", instructions.join(" ")));
    }
    text
}

#[test]
fn there_is_a_probe_of_every_feature() {
    let probed: BTreeSet<Feature> = PROBES.iter().map(|(feature, _)| *feature).collect();
    let listed: BTreeSet<Feature> = Arch::all().iter().flat_map(Arch::features).collect();
    assert_eq!(probed, listed);
    assert_eq!(probed.len(), PROBES.len());
}

#[test]
fn architectures_have_the_instructions_that_their_files_list() {
    // The one that takes this version knows every target of the files.
    let toolbox = Toolbox::new(settings());
    let tiny = ".version 9.0\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n";
    let assembly = toolbox.assemble(Job { ptx: tiny, target: "sm_121f", flags: &[] });
    let ptxas = assembly.unwrap_or_else(|error| panic!("{error}")).path;
    for arch in Arch::all() {
        let (with, without): (Vec<_>, Vec<_>) = PROBES.iter().partition(|(feature, _)| arch.supports(*feature));
        let failed: Vec<Feature> = errors_of(&ptxas, &module(&arch.name, &with), &arch.name)
            .iter()
            .map(|line| with[(*line as usize - 4) / 3].0)
            .collect();
        assert!(failed.is_empty(), "{} lists {failed:?} and has not", arch.name);

        // ptxas checks in passes, and a later one sees nothing where an earlier one objects: what went through is tried
        // on its own.
        let lines: BTreeSet<usize> =
            errors_of(&ptxas, &module(&arch.name, &without), &arch.name).iter().map(|line| *line as usize).collect();
        for (at, probe) in without.iter().enumerate() {
            if !lines.contains(&(5 + 3 * at)) {
                let errors = errors_of(&ptxas, &module(&arch.name, &[probe]), &arch.name);
                assert!(!errors.is_empty(), "{} has {:?} and does not list it", arch.name, probe.0);
            }
        }
    }
}
