//! The words after the opcode.

use super::types::{Compare, Operation, Order, Rounding, ScalarType, Scope, Shape, Space, words};

words! {
    /// A word of an opcode that is neither a type, a vector width nor a shape.
    ///
    /// One word may mean several things (`lo` is half of a product and a comparison): [`super::Form`] has the meaning.
    Word {
        // Rounding and arithmetic.
        Rn "rn", Rz "rz", Rm "rm", Rp "rp", Rna "rna", Rs "rs", Rni "rni", Rzi "rzi", Rmi "rmi", Rpi "rpi",
        Ftz "ftz", Sat "sat", Satfinite "satfinite", Relu "relu", Approx "approx", Full "full", NoFtz "noftz",
        NaNResult "NaN", Xorsign "xorsign", Abs "abs", Oob "oob", Lo "lo", Hi "hi", Wide "wide", Cc "cc",
        ScaledN2Ue8m0 "scaled::n2::ue8m0",
        // Comparison and combination.
        Eq "eq", Ne "ne", Lt "lt", Le "le", Gt "gt", Ge "ge", Ls "ls", Hs "hs", Equ "equ", Neu "neu", Ltu "ltu",
        Leu "leu", Gtu "gtu", Geu "geu", Num "num", Nan "nan", And "and", Or "or", Xor "xor", Not "not",
        Finite "finite", Infinite "infinite", Number "number", NotANumber "notanumber", Normal "normal",
        Subnormal "subnormal",
        // Shifts, permutations, video.
        L "l", R "r", G "g", B "b", A "a", P "p", Clamp "clamp", Wrap "wrap", Shiftamt "shiftamt", F4e "f4e",
        B4e "b4e", Rc8 "rc8", Ecl "ecl", Ecr "ecr", Rc16 "rc16", Shr7 "shr7", Shr15 "shr15", Po "po",
        // Spaces.
        Const "const", Global "global", Local "local", Param "param", ParamEntry "param::entry",
        ParamFunc "param::func", Shared "shared", SharedCta "shared::cta", SharedCluster "shared::cluster", To "to",
        // Caches.
        Ca "ca", Cg "cg", Cs "cs", Lu "lu", Cv "cv", Wb "wb", Wt "wt", Nc "nc", Unified "unified", L1 "L1", L2 "L2",
        L1EvictNormal "L1::evict_normal", L1EvictUnchanged "L1::evict_unchanged", L1EvictFirst "L1::evict_first",
        L1EvictLast "L1::evict_last", L1NoAllocate "L1::no_allocate", L2EvictNormal "L2::evict_normal",
        L2EvictFirst "L2::evict_first", L2EvictLast "L2::evict_last", L2EvictUnchanged "L2::evict_unchanged",
        L2CacheHint "L2::cache_hint", L2Prefetch64 "L2::64B", L2Prefetch128 "L2::128B", L2Prefetch256 "L2::256B",
        Fractional "fractional", Range "range", Cvt "cvt",
        // Memory order and scope.
        Weak "weak", Volatile "volatile", Relaxed "relaxed", Acquire "acquire", Release "release", AcqRel "acq_rel",
        Sc "sc", Mmio "mmio", Cta "cta", Cluster "cluster", Gpu "gpu", Sys "sys", Gl "gl", Proxy "proxy",
        Alias "alias", AsyncGeneric "async::generic", TensormapGeneric "tensormap::generic", Tensormap "tensormap",
        MbarrierInit "mbarrier_init", SyncRestrictSharedCta "sync_restrict::shared::cta",
        SyncRestrictSharedCluster "sync_restrict::shared::cluster",
        // Atomics, reductions and warps.
        Add "add", Inc "inc", Dec "dec", Min "min", Max "max", Exch "exch", Cas "cas", Popc "popc", All "all",
        Any "any", Uni "uni", Ballot "ballot", Sync "sync", Aligned "aligned", Up "up", Down "down", Bfly "bfly",
        Idx "idx", Warp "warp", Arrive "arrive", Red "red", Wait "wait",
        // Asynchronous copies.
        Async "async", Bulk "bulk", Tensor "tensor", CommitGroup "commit_group", WaitGroup "wait_group",
        WaitAll "wait_all", Mbarrier "mbarrier", NoInc "noinc", BulkGroup "bulk_group", Read "read",
        MbarrierCompleteTxBytes "mbarrier::complete_tx::bytes", Prefetch "prefetch", Reduce "reduce", Tile "tile",
        TileGather4 "tile::gather4", TileScatter4 "tile::scatter4", Im2col "im2col", Im2colW "im2col::w",
        Im2colW128 "im2col::w::128", Im2colNoOffs "im2col_no_offs", MulticastCluster "multicast::cluster",
        MulticastClusterAll "multicast::cluster::all", CpMask "cp_mask", IgnoreOob "ignore_oob", Cp "cp", St "st", LdReduce "ld_reduce", AccF32 "acc::f32",
        AccF16 "acc::f16",
        // mbarrier and what follows it.
        Init "init", Inval "inval", ExpectTx "expect_tx", CompleteTx "complete_tx", ArriveDrop "arrive_drop",
        PendingCount "pending_count", TestWait "test_wait", TryWait "try_wait", Parity "parity",
        NoComplete "noComplete", LaunchDependents "launch_dependents", TryCancel "try_cancel",
        QueryCancel "query_cancel", IsCanceled "is_canceled", GetFirstCtaid "get_first_ctaid",
        GetFirstCtaidX "get_first_ctaid::x", GetFirstCtaidY "get_first_ctaid::y",
        GetFirstCtaidZ "get_first_ctaid::z",
        // Matrices.
        Row "row", Col "col", C "c", D "d", Load "load", Store "store", Mma "mma", Sp "sp",
        SpOrderedMetadata "sp::ordered_metadata", BlockScale "block_scale", ScaleVec1 "scale_vec::1X",
        ScaleVec2 "scale_vec::2X", ScaleVec4 "scale_vec::4X", Block16 "block16", Block32 "block32",
        KindF8f6f4 "kind::f8f6f4", KindMxf8f6f4 "kind::mxf8f6f4", KindMxf4 "kind::mxf4",
        KindMxf4nvf4 "kind::mxf4nvf4", KindTf32 "kind::tf32", KindF16 "kind::f16", KindI8 "kind::i8",
        Trans "trans", MmaAsync "mma_async", Fence "fence",
        // tcgen05.
        Alloc "alloc", Dealloc "dealloc", RelinquishAllocPermit "relinquish_alloc_permit", Ld "ld", Shift "shift",
        Commit "commit", WaitLd "wait::ld", WaitSt "wait::st", FenceBeforeThreadSync "fence::before_thread_sync",
        FenceAfterThreadSync "fence::after_thread_sync", CtaGroup1 "cta_group::1", CtaGroup2 "cta_group::2",
        Pack16 "pack::16b", Unpack16 "unpack::16b", Ws "ws", Ashift "ashift", CollectorAFill "collector::a::fill",
        CollectorAUse "collector::a::use", CollectorALastuse "collector::a::lastuse",
        CollectorADiscard "collector::a::discard", CollectorB0Fill "collector::b0::fill",
        CollectorB0Use "collector::b0::use", CollectorB0Lastuse "collector::b0::lastuse",
        CollectorB0Discard "collector::b0::discard", CollectorB1Fill "collector::b1::fill",
        CollectorB1Use "collector::b1::use", CollectorB1Lastuse "collector::b1::lastuse",
        CollectorB1Discard "collector::b1::discard", CollectorB2Fill "collector::b2::fill",
        CollectorB2Use "collector::b2::use", CollectorB2Lastuse "collector::b2::lastuse",
        CollectorB2Discard "collector::b2::discard", CollectorB3Fill "collector::b3::fill",
        CollectorB3Use "collector::b3::use", CollectorB3Lastuse "collector::b3::lastuse",
        CollectorB3Discard "collector::b3::discard", MbarrierArriveOne "mbarrier::arrive::one", Warpx4 "warpx4",
        Warpx2V0213 "warpx2::02_13", Warpx2V0123 "warpx2::01_23", T32x32 "32x32b", T16x64 "16x64b",
        T16x128 "16x128b", T16x256 "16x256b", T16x32x2 "16x32bx2", T128x256 "128x256b", T4x256 "4x256b",
        T128x128 "128x128b", T64x128 "64x128b", T32x128 "32x128b", X1 "x1", X2 "x2", X4 "x4", X8 "x8", X16 "x16",
        X32 "x32", X64 "x64", X128 "x128",
        // Tensor maps.
        Replace "replace", B1024 "b1024", CpFenceproxy "cp_fenceproxy", GlobalAddress "global_address", Rank "rank",
        BoxDim "box_dim", GlobalDim "global_dim", GlobalStride "global_stride", ElementStride "element_stride",
        Elemtype "elemtype", InterleaveLayout "interleave_layout", SwizzleMode "swizzle_mode",
        SwizzleAtomicity "swizzle_atomicity", FillMode "fill_mode",
        // Textures and surfaces.
        D1 "1d", D2 "2d", D3 "3d", D4 "4d", D5 "5d", A1d "a1d", A2d "a2d", Cube "cube", Acube "acube", D2ms "2dms",
        A2dms "a2dms", Level "level", Grad "grad", Base "base", Trap "trap", Zero "zero", Width "width",
        Height "height", Depth "depth", ChannelDataType "channel_data_type", ChannelOrder "channel_order",
        NormalizedCoords "normalized_coords", ForceUnnormalizedCoords "force_unnormalized_coords",
        FilterMode "filter_mode", AddrMode0 "addr_mode_0", AddrMode1 "addr_mode_1", AddrMode2 "addr_mode_2",
        ArraySize "array_size", NumMipmapLevels "num_mipmap_levels", NumSamples "num_samples",
        MemoryLayout "memory_layout",
        // The rest.
        Pack "pack", Mask "mask",
    }
}

/// One modifier of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Modifier {
    /// A type.
    Type(ScalarType),
    /// `v2`, `v4`, `v8`.
    Vector(u8),
    /// `m16n8k16`.
    Shape(Shape),
    /// The bank of `const[3]`.
    Bank(u8),
    /// Any other word.
    Word(Word),
}

impl Modifier {
    /// The modifier that PTX writes so, without its dot.
    pub fn from_text(text: &str) -> Option<Self> {
        if let Some(ty) = ScalarType::from_text(text) {
            return Some(Self::Type(ty));
        }
        if let Some(word) = Word::from_text(text) {
            return Some(Self::Word(word));
        }
        match text {
            "v2" => Some(Self::Vector(2)),
            "v4" => Some(Self::Vector(4)),
            "v8" => Some(Self::Vector(8)),
            _ => match text.strip_prefix("const[").and_then(|rest| rest.strip_suffix(']')) {
                Some(bank) => bank.parse().ok().map(Self::Bank),
                None => Shape::from_text(text).map(Self::Shape),
            },
        }
    }
}

impl Word {
    /// The rounding it names.
    pub fn rounding(self) -> Option<Rounding> {
        (self <= Self::Rpi).then(|| Rounding::from_text(self.text())).flatten()
    }

    /// The comparison it names in `set`, `setp` and `vset`.
    pub fn compare(self) -> Option<Compare> {
        Compare::from_text(self.text())
    }

    /// The state space it names, whatever its window.
    pub fn space(self) -> Option<Space> {
        match self {
            Self::Const => Some(Space::Constant),
            Self::Global => Some(Space::Global),
            Self::Local => Some(Space::Local),
            Self::Param | Self::ParamEntry | Self::ParamFunc => Some(Space::Parameter),
            Self::Shared | Self::SharedCta | Self::SharedCluster => Some(Space::Shared),
            _ => None,
        }
    }

    /// The scope it names.
    pub fn scope(self) -> Option<Scope> {
        match self {
            Self::Gl => Some(Scope::Device),
            _ => Scope::from_text(self.text()),
        }
    }

    /// The memory order it names.
    pub fn order(self) -> Option<Order> {
        Order::from_text(self.text())
    }

    /// The operation it names.
    pub fn operation(self) -> Option<Operation> {
        Operation::from_text(self.text())
    }
}
