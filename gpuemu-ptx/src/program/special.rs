//! Special registers.

use super::types::{ScalarType, words};

words! {
    /// A register that the machine fills in.
    Special {
        TidX "%tid.x", TidY "%tid.y", TidZ "%tid.z", TidW "%tid.w",
        NtidX "%ntid.x", NtidY "%ntid.y", NtidZ "%ntid.z", NtidW "%ntid.w",
        CtaidX "%ctaid.x", CtaidY "%ctaid.y", CtaidZ "%ctaid.z", CtaidW "%ctaid.w",
        NctaidX "%nctaid.x", NctaidY "%nctaid.y", NctaidZ "%nctaid.z", NctaidW "%nctaid.w",
        Laneid "%laneid", Warpid "%warpid", Nwarpid "%nwarpid", Smid "%smid", Nsmid "%nsmid", Gridid "%gridid",
        IsExplicitCluster "%is_explicit_cluster",
        ClusteridX "%clusterid.x", ClusteridY "%clusterid.y", ClusteridZ "%clusterid.z",
        ClusteridW "%clusterid.w",
        NclusteridX "%nclusterid.x", NclusteridY "%nclusterid.y", NclusteridZ "%nclusterid.z",
        NclusteridW "%nclusterid.w",
        ClusterCtaidX "%cluster_ctaid.x", ClusterCtaidY "%cluster_ctaid.y", ClusterCtaidZ "%cluster_ctaid.z",
        ClusterCtaidW "%cluster_ctaid.w",
        ClusterNctaidX "%cluster_nctaid.x", ClusterNctaidY "%cluster_nctaid.y",
        ClusterNctaidZ "%cluster_nctaid.z", ClusterNctaidW "%cluster_nctaid.w",
        ClusterCtarank "%cluster_ctarank", ClusterNctarank "%cluster_nctarank",
        LanemaskEq "%lanemask_eq", LanemaskLe "%lanemask_le", LanemaskLt "%lanemask_lt", LanemaskGe "%lanemask_ge",
        LanemaskGt "%lanemask_gt",
        Clock "%clock", ClockHi "%clock_hi", Clock64 "%clock64",
        Globaltimer "%globaltimer", GlobaltimerLo "%globaltimer_lo", GlobaltimerHi "%globaltimer_hi",
        TotalSmemSize "%total_smem_size", AggrSmemSize "%aggr_smem_size", DynamicSmemSize "%dynamic_smem_size",
        ReservedSmemOffsetBegin "%reserved_smem_offset_begin", ReservedSmemOffsetEnd "%reserved_smem_offset_end",
        ReservedSmemOffsetCap "%reserved_smem_offset_cap", ReservedSmemOffset0 "%reserved_smem_offset_0",
        ReservedSmemOffset1 "%reserved_smem_offset_1",
        CurrentGraphExec "%current_graph_exec",
        Pm0 "%pm0", Pm1 "%pm1", Pm2 "%pm2", Pm3 "%pm3", Pm4 "%pm4", Pm5 "%pm5", Pm6 "%pm6", Pm7 "%pm7",
        Pm0L "%pm0_64", Pm1L "%pm1_64", Pm2L "%pm2_64", Pm3L "%pm3_64", Pm4L "%pm4_64", Pm5L "%pm5_64",
        Pm6L "%pm6_64", Pm7L "%pm7_64",
    }
}

/// A special register with a number: `%envreg0` to `%envreg31`.
pub(crate) fn environment_register(name: &str) -> Option<u8> {
    let digits = name.strip_prefix("%envreg")?;
    digits.parse().ok().filter(|&number: &u8| number < 32 && number.to_string() == digits)
}

impl Special {
    /// Its type.
    pub fn ty(self) -> ScalarType {
        match self {
            Self::Gridid | Self::Clock64 | Self::Globaltimer | Self::CurrentGraphExec => ScalarType::U64,
            Self::Pm0L | Self::Pm1L | Self::Pm2L | Self::Pm3L => ScalarType::U64,
            Self::Pm4L | Self::Pm5L | Self::Pm6L | Self::Pm7L => ScalarType::U64,
            Self::IsExplicitCluster => ScalarType::Predicate,
            _ => ScalarType::U32,
        }
    }
}
