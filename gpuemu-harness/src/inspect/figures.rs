//! The figures of an artifact, as its snapshot keeps them.

use crate::inspect::artifact::{Artifact, Assembled};
use crate::inspect::snapshot::{Judged, Metric};
use gpuemu_contract::Kernel;

/// The figures of one artifact, with what policy needs of them.
#[derive(Clone, Debug)]
pub struct Measured {
    /// In the order of the snapshot.
    pub metrics: Vec<Metric>,
    /// 32-bit registers live at the widest point of the PTX.
    pub live_registers: u32,
    /// Bytes of local memory that the PTX declares.
    pub declared_local: u64,
}

const LOWER: Judged = Judged::LowerIsBetter { resolution: 0.0 };

/// Weighs an artifact.
pub fn measure(artifact: &Artifact<'_>, kernel: &Kernel, assembled: Option<&Assembled>) -> Measured {
    let function = artifact.function();
    let mut metrics = vec![Metric::new("instructions", function.instructions.len() as f64, LOWER)];
    if let Some(assembled) = assembled {
        let report = &assembled.report;
        metrics.push(Metric::new("ptxas_registers", f64::from(report.registers), LOWER));
        metrics.push(Metric::new("ptxas_spill_stores", f64::from(report.spill_stores), LOWER));
        metrics.push(Metric::new("ptxas_spill_loads", f64::from(report.spill_loads), LOWER));
        metrics.push(Metric::new("ptxas_stack", f64::from(report.stack_frame), LOWER));
        metrics.push(Metric::new("ptxas_shared", f64::from(report.shared), LOWER));
        if let Ok(sass) = &assembled.sass {
            metrics.push(Metric::new("sass_instructions", f64::from(sass.instructions), LOWER));
        }
    }
    for metric in &mut metrics {
        metric.budget = kernel.budget.get(&metric.name).copied();
    }
    let declared_local = 0;
    Measured { metrics, live_registers: 0, declared_local }
}
