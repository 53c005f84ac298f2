//! What one GPU architecture allows: limits, instructions, how its tensor cores add. One TOML file each, in `arch/`.

use crate::error::{Error, Result};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// The files of `arch/`, oldest architecture first; one that names a `base` stands after it.
const FILES: &[&str] = &[
    include_str!("../arch/sm_75.toml"),
    include_str!("../arch/sm_80.toml"),
    include_str!("../arch/sm_86.toml"),
    include_str!("../arch/sm_87.toml"),
    include_str!("../arch/sm_88.toml"),
    include_str!("../arch/sm_89.toml"),
    include_str!("../arch/sm_90.toml"),
    include_str!("../arch/sm_90a.toml"),
    include_str!("../arch/sm_100.toml"),
    include_str!("../arch/sm_100a.toml"),
    include_str!("../arch/sm_100f.toml"),
    include_str!("../arch/sm_103.toml"),
    include_str!("../arch/sm_103a.toml"),
    include_str!("../arch/sm_103f.toml"),
    include_str!("../arch/sm_110.toml"),
    include_str!("../arch/sm_110a.toml"),
    include_str!("../arch/sm_110f.toml"),
    include_str!("../arch/sm_120.toml"),
    include_str!("../arch/sm_120a.toml"),
    include_str!("../arch/sm_120f.toml"),
    include_str!("../arch/sm_121.toml"),
    include_str!("../arch/sm_121a.toml"),
    include_str!("../arch/sm_121f.toml"),
];

/// One architecture, as PTX's `.target` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arch {
    /// `sm_90a`, say.
    pub name: String,
    /// Products that carry it, for messages; empty for those of which none is named.
    pub gpus: Vec<String>,
    /// What a launch may ask for and what a multiprocessor (SM) holds.
    pub limits: Limits,
    features: BTreeSet<Feature>,
    accumulation: Vec<Accumulation>,
}

/// Sizes and counts. Shared and constant memory in bytes, registers of 32 bits.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Threads that execute one instruction together.
    pub warp_size: u32,
    /// Threads of a block, whatever its shape.
    pub threads_per_block: u32,
    /// Threads of a block along x, y and z.
    pub block_dimensions: [u32; 3],
    /// Blocks of a grid along x, y and z.
    pub grid_dimensions: [u32; 3],
    /// Blocks of a cluster that every GPU of the architecture can hold; 1 where there are no clusters.
    pub blocks_per_cluster: u32,
    /// Registers of a thread.
    pub registers_per_thread: u32,
    /// Registers of all threads of a block.
    pub registers_per_block: u32,
    /// Registers of an SM.
    pub registers_per_sm: u32,
    /// Registers are given out by warp, in multiples of this.
    pub register_granularity: u32,
    /// Parts of an SM, each with its own registers and warps.
    pub partitions_per_sm: u32,
    /// Warps resident on an SM.
    pub warps_per_sm: u32,
    /// Blocks resident on an SM.
    pub blocks_per_sm: u32,
    /// Named barriers of a block.
    pub barriers_per_block: u32,
    /// Named barriers that the resident blocks share, where they limit how many blocks are resident.
    pub barriers_per_sm: Option<u32>,
    /// Shared memory of a block, static and dynamic together, without a kernel attribute; also the most that may be
    /// static.
    pub shared_per_block: u32,
    /// Shared memory of a block, static and dynamic together, with `cudaFuncAttributeMaxDynamicSharedMemorySize`.
    pub shared_per_block_optin: u32,
    /// Shared memory of an SM, that which the driver reserves among it.
    pub shared_per_sm: u32,
    /// Shared memory that the driver reserves in every resident block.
    pub shared_reserved_per_block: u32,
    /// Shared memory is given out in multiples of this.
    pub shared_granularity: u32,
    /// Memory for `.const` variables of a module.
    pub constant_bytes: u32,
    /// Parameters of a kernel.
    pub parameter_bytes: u32,
    /// Local memory of a thread: spills, stack and arrays that no register holds.
    pub local_bytes_per_thread: u32,
}

impl Limits {
    /// Dynamic shared memory that a launch may ask for beside this many bytes of static shared memory.
    pub fn max_dynamic_shared(&self, static_bytes: u32) -> u32 {
        self.shared_per_block_optin.saturating_sub(static_bytes)
    }
}

/// Instructions, or forms of instructions, that not every architecture has. Those that all of them have are not named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Feature {
    /// `ld.b128`, `st.b128`.
    #[serde(rename = "access-b128")]
    AccessB128,
    /// `fence.proxy.async`.
    AsyncProxy,
    /// `atom.cas.b128`, `atom.exch.b128`.
    #[serde(rename = "atomic-b128")]
    AtomicB128,
    /// `atom.add.noftz.bf16` and `.bf16x2`.
    #[serde(rename = "atomic-bf16")]
    AtomicBf16,
    /// `atom.add.noftz.f16` and `.f16x2`.
    #[serde(rename = "atomic-f16x2")]
    AtomicF16x2,
    /// `atom.v4.f32.add` and its like on global memory.
    AtomicVector,
    /// `fma.bf16`, `cvt.rn.bf16.f32` and their packed forms.
    Bf16,
    /// `add`, `sub`, `mul` of bfloat16.
    #[serde(rename = "bf16-arithmetic")]
    Bf16Arithmetic,
    /// `ex2.approx.ftz.bf16`, `tanh.approx.bf16`.
    #[serde(rename = "bf16-transcendental")]
    Bf16Transcendental,
    /// `cp.async.bulk` without a tensor map.
    BulkCopy,
    /// `createpolicy`, `discard`.
    CachePolicy,
    /// `barrier.cluster`, `mapa`, `.shared::cluster`.
    Cluster,
    /// `clusterlaunchcontrol`.
    ClusterLaunchControl,
    /// `cp.async` of 4, 8 or 16 bytes.
    CpAsync,
    /// `elect.sync`.
    Elect,
    /// Conversions between float32 and e4m3 or e5m2.
    Fp8,
    /// `griddepcontrol`.
    GridDependency,
    /// `min`, `max` of halves, `.NaN`, `fma.relu`.
    HalfMinMax,
    /// `ex2.approx.f16`, `tanh.approx.f16`.
    HalfTranscendental,
    /// `ldmatrix` of 16-bit elements.
    Ldmatrix,
    /// `ldmatrix` and `stmatrix` of 8-bit elements.
    #[serde(rename = "ldmatrix-b8")]
    LdmatrixB8,
    /// `mbarrier.init`, `.arrive`, `.test_wait`.
    Mbarrier,
    /// `mbarrier.try_wait`, `.arrive.expect_tx`.
    MbarrierTransactions,
    /// `min`, `max` of three floats.
    MinMaxThree,
    /// `min.xorsign.abs`.
    MinMaxXorsign,
    /// `add.f32.f16` and its like.
    MixedPrecisionAdd,
    /// `mma` m8n8k128 of single bits.
    #[serde(rename = "mma-b1")]
    MmaB1,
    /// `mma` m16n8k256 of single bits, `.and` as well as `.xor`.
    #[serde(rename = "mma-b1-k256")]
    MmaB1K256,
    /// `mma` of bfloat16.
    #[serde(rename = "mma-bf16")]
    MmaBf16,
    /// `mma` with `.block_scale`.
    MmaBlockScale,
    /// `mma` m16n8k8 of float16.
    #[serde(rename = "mma-f16")]
    MmaF16,
    /// `mma` m16n8k16 of float16.
    #[serde(rename = "mma-f16-k16")]
    MmaF16K16,
    /// `mma` m8n8k4 of float64.
    #[serde(rename = "mma-f64")]
    MmaF64,
    /// `mma` m16n8k4, k8 and k16 of float64.
    #[serde(rename = "mma-f64-k16")]
    MmaF64K16,
    /// `mma` of e4m3 and e5m2.
    #[serde(rename = "mma-fp8")]
    MmaFp8,
    /// `mma` m8n8k32 of 4-bit integers.
    #[serde(rename = "mma-int4")]
    MmaInt4,
    /// `mma` m16n8k64 of 4-bit integers.
    #[serde(rename = "mma-int4-k64")]
    MmaInt4K64,
    /// `mma` m8n8k16 of 8-bit integers.
    #[serde(rename = "mma-int8")]
    MmaInt8,
    /// `mma` m16n8k32 of 8-bit integers.
    #[serde(rename = "mma-int8-k32")]
    MmaInt8K32,
    /// `mma` of 6-bit and 4-bit floats.
    MmaNarrowFloats,
    /// `mma.sp`.
    MmaSparse,
    /// `mma` of tf32.
    #[serde(rename = "mma-tf32")]
    MmaTf32,
    /// `movmatrix`.
    Movmatrix,
    /// `multimem.ld_reduce` and its like.
    Multimem,
    /// Conversions of 6-bit and 4-bit floats and of scales (`ue8m0`).
    NarrowFloats,
    /// `add.f32x2` and its like.
    #[serde(rename = "packed-f32")]
    PackedF32,
    /// `redux.sync` of integers.
    Redux,
    /// `redux.sync` of float32.
    #[serde(rename = "redux-f32")]
    ReduxF32,
    /// `setmaxnreg`.
    SetMaxRegisters,
    /// `stmatrix` of 16-bit elements.
    Stmatrix,
    /// `cvt.rs`.
    StochasticRounding,
    /// `st.async`.
    StoreAsync,
    /// `tcgen05`.
    #[serde(rename = "tcgen05")]
    Tcgen05,
    /// `cp.async.bulk.tensor`.
    TensorCopy,
    /// `tensormap.replace`.
    TensormapReplace,
    /// `cvt.rna.tf32.f32`.
    #[serde(rename = "tf32")]
    Tf32,
    /// `wgmma`.
    Wgmma,
    /// `ld.global` and `st.global` of 32 bytes.
    WideGlobalAccess,
    /// `wmma` of bfloat16.
    #[serde(rename = "wmma-bf16")]
    WmmaBf16,
    /// `wmma` of float16.
    #[serde(rename = "wmma-f16")]
    WmmaF16,
    /// `wmma` of float64.
    #[serde(rename = "wmma-f64")]
    WmmaF64,
    /// `wmma` of 4-bit integers and single bits.
    #[serde(rename = "wmma-int4-b1")]
    WmmaInt4B1,
    /// `wmma` of 8-bit integers.
    #[serde(rename = "wmma-int8")]
    WmmaInt8,
    /// `wmma` of tf32.
    #[serde(rename = "wmma-tf32")]
    WmmaTf32,
}

/// Instructions that multiply matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatrixInstruction {
    /// `mma.sync`.
    Mma,
    /// `wmma.mma`.
    Wmma,
    /// `wgmma.mma_async`.
    Wgmma,
    /// `tcgen05.mma`.
    #[serde(rename = "tcgen05")]
    Tcgen05,
}

/// Float formats that tensor cores multiply with sums of their own kind. (float64 products add up as a chain of fused
/// multiply-adds in the order of k.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatrixFormat {
    /// IEEE half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// float32 with 10 fraction bits.
    Tf32,
    /// 8 bits, 4 of them exponent.
    E4m3,
    /// 8 bits, 5 of them exponent.
    E5m2,
    /// 6 bits, 2 of them exponent.
    E2m3,
    /// 6 bits, 3 of them exponent.
    E3m2,
    /// 4 bits, 2 of them exponent.
    E2m1,
}

/// How a tensor core adds. The accumulator and the exact products of one group are aligned to the largest exponent
/// among them, cut off toward zero behind `fraction_bits`, and summed as integers; the sum is rounded toward zero to
/// float32 (to nearest even where the result is float16). Groups follow one another in the order of k.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accumulation {
    /// For these instructions,
    pub instructions: Vec<MatrixInstruction>,
    /// and these formats of both factors.
    pub inputs: Vec<MatrixFormat>,
    /// Fraction bits that an aligned term keeps.
    pub fraction_bits: u32,
    /// Products of one group.
    pub terms: u32,
    /// Fraction bits that a float32 result keeps; the others are zero.
    #[serde(default = "float32_fraction_bits")]
    pub result_fraction_bits: u32,
    /// Where the figures come from.
    pub evidence: Evidence,
}

fn float32_fraction_bits() -> u32 {
    23
}

/// Where figures come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Published, from measurements of this architecture.
    Published,
    /// Taken over from a near relative.
    Inferred,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    base: Option<String>,
    #[serde(default)]
    gpus: Vec<String>,
    features: BTreeSet<Feature>,
    limits: Option<Limits>,
    #[serde(default)]
    accumulation: Vec<Accumulation>,
}

impl Arch {
    /// The architecture of that name: `sm_90a`, `90a`, `compute_90` or the compute capability, `9.0`. The error names
    /// the nearest one, or says that the target is newer than all that are known.
    pub fn named(name: &str) -> Result<&'static Arch> {
        let wanted = canonical(name);
        if let Some(arch) = Arch::all().iter().find(|arch| arch.name == wanted) {
            return Ok(arch);
        }
        let newest = Arch::all().iter().filter_map(Arch::number).max().unwrap_or(0);
        Err(Error::UnknownTarget(match number(&wanted) {
            Some(number) if number > newest => format!(
                "target {name:?} is newer than the architectures that are known here (up to sm_{newest}); an update of gpuemu may know it"
            ),
            wanted_number => {
                // Oldest first, so that of two as near the older one wins: what it allows, the newer one allows too.
                let distance = |arch: &&Arch| {
                    let apart = arch.number().zip(wanted_number).map(|(one, other)| one.abs_diff(other));
                    (apart, strsim::osa_distance(&arch.name, &wanted))
                };
                let nearest = Arch::all().iter().min_by_key(distance).map_or("", |arch| &arch.name);
                format!("no architecture {name:?} is known; the nearest is {nearest} (known: {})", Arch::names())
            }
        }))
    }

    /// Every architecture, oldest first.
    pub fn all() -> &'static [Arch] {
        static ALL: OnceLock<Vec<Arch>> = OnceLock::new();
        ALL.get_or_init(|| {
            let mut known = Vec::with_capacity(FILES.len());
            for text in FILES {
                // A test reads every file, so that this cannot happen to a user.
                let arch = Arch::read(text, &known).unwrap_or_else(|error| panic!("a file of arch/: {error}"));
                known.push(arch);
            }
            known
        })
    }

    /// An architecture in a file of one's own. It may name one that is known as its `base`.
    pub fn parse(text: &str) -> Result<Arch> {
        Arch::read(text, Arch::all())
    }

    /// The file's name, limits that are its own or its base's, and instructions and accumulation beside its base's.
    fn read(text: &str, known: &[Arch]) -> Result<Arch> {
        let file: File = toml::from_str(text).map_err(|error| Error::Arch(error.to_string().trim_end().to_owned()))?;
        let base =
            match &file.base {
                Some(name) => Some(known.iter().find(|arch| arch.name == *name).ok_or_else(|| {
                    Error::Arch(format!("{} names the base {name:?}, which is not known", file.name))
                })?),
                None => None,
            };
        let limits = file.limits.or_else(|| base.map(|base| base.limits.clone()));
        let limits = limits.ok_or_else(|| Error::Arch(format!("{} has neither limits nor a base", file.name)))?;
        let (mut features, mut accumulation, mut gpus) = (file.features, file.accumulation, file.gpus);
        if let Some(base) = base {
            features.extend(&base.features);
            accumulation.extend(base.accumulation.iter().cloned());
            gpus.extend(base.gpus.iter().cloned());
        }
        Ok(Arch { name: file.name, gpus, limits, features, accumulation })
    }

    /// Whether the architecture has these instructions.
    pub fn supports(&self, feature: Feature) -> bool {
        self.features.contains(&feature)
    }

    /// Everything that [`Arch::supports`].
    pub fn features(&self) -> impl Iterator<Item = Feature> + '_ {
        self.features.iter().copied()
    }

    /// How products of this format add up in this instruction; nothing where the architecture has no such product or
    /// where it is not known.
    pub fn accumulation(&self, instruction: MatrixInstruction, input: MatrixFormat) -> Option<&Accumulation> {
        let answers = |one: &&Accumulation| one.instructions.contains(&instruction) && one.inputs.contains(&input);
        self.accumulation.iter().find(answers)
    }

    /// Compute capability, major times ten and minor: 90 for `sm_90a`.
    pub fn number(&self) -> Option<u32> {
        number(&self.name)
    }

    /// Whether a module for the target `other` may be loaded on this architecture: a number without a suffix that is
    /// not newer, `f` of the same family that is not newer, or the very same name (PTX ISA, `.target`).
    pub fn runs(&self, other: &Arch) -> bool {
        let (Some(here), Some(there)) = (self.number(), other.number()) else { return self.name == other.name };
        match other.name.as_bytes().last() {
            Some(b'a') => self.name == other.name,
            Some(b'f') => here / 10 == there / 10 && here >= there,
            _ => here >= there,
        }
    }

    fn names() -> String {
        Arch::all().iter().map(|arch| arch.name.as_str()).collect::<Vec<_>>().join(", ")
    }
}

/// `sm_90a` out of `90a`, `SM90A`, `compute_90a` or `9.0a`.
fn canonical(name: &str) -> String {
    let lower = name.trim().to_ascii_lowercase();
    let digits = ["sm_", "compute_", "sm", "cc"].iter().find_map(|prefix| lower.strip_prefix(prefix)).unwrap_or(&lower);
    format!("sm_{}", digits.trim().replacen('.', "", 1))
}

fn number(canonical: &str) -> Option<u32> {
    canonical.strip_prefix("sm_")?.trim_end_matches(['a', 'f']).parse().ok()
}
