//! The figures of an artifact, as its snapshot keeps them.
//!
//! `gpuemu_contract::artifact::METRICS` names those that may have a budget.

use crate::inspect::artifact::{Artifact, Assembled};
use crate::inspect::baseline::{Judged, Metric};
use crate::inspect::finding::shown;
use gpuemu_contract::{Expression, Kernel};
use gpuemu_ptx::emulate::Counters;
use gpuemu_ptx::metrics::{self, Access, Class, Direction, Metrics};
use gpuemu_ptx::occupancy::Footprint;
use gpuemu_ptx::program::{Opcode, Space};

/// What figures begin with that are parts of a whole, and not written where they are 0.
pub const PARTS: &[&str] = &["mix_", "sass_mix_", "launch_mix_"];

const LOWER: Judged = Judged::LowerIsBetter { resolution: 0.0 };
const HIGHER: Judged = Judged::HigherIsBetter;
/// What orders threads or keeps them apart: with less of it a kernel may be quicker, or wrong now and then.
const BARRIERS: Judged = Judged::Neither { fell: "a barrier went: is what it ordered still ordered?" };
const ATOMICS: Judged =
    Judged::Neither { fell: "an atomic went: does one thread at a time still come to its element?" };

/// Collects figures.
struct Figures<'a> {
    artifact: &'a Artifact<'a>,
    kernel: &'a Kernel,
    metrics: Vec<Metric>,
}

impl Figures<'_> {
    fn add(&mut self, name: impl Into<String>, value: impl Into<f64>, judged: Judged) {
        let mut metric = Metric::new(name, value.into(), judged);
        metric.budget = self.kernel.budget.get(&metric.name).copied();
        self.metrics.push(metric);
    }

    /// A figure, and where to look when it changed.
    fn placed(&mut self, name: &str, value: impl Into<f64>, judged: Judged, place: Option<metrics::Place>) {
        self.add(name, value, judged);
        let place = place.map(|place| shown(&self.artifact.place(place), self.artifact.root));
        self.metrics.last_mut().expect("one was added").place = place;
    }
}

/// The figures of an artifact: what its PTX tells, what its measured launch did, then what `ptxas` and a disassembler tell.
pub fn measure(
    artifact: &Artifact<'_>,
    kernel: &Kernel,
    metrics: &Metrics,
    assembled: Option<&Assembled>,
    counters: Option<&Counters>,
) -> Vec<Metric> {
    let mut figures = Figures { artifact, kernel, metrics: Vec::new() };
    // Counts of instructions are far below 2^53.
    let count = |count: u64| count as f64;
    figures.placed("live_registers", metrics.pressure.registers, LOWER, metrics.pressure.place);
    figures.add("instructions", count(metrics.instructions.instructions), LOWER);
    figures.add("weighted_instructions", count(metrics.instructions.weighted), LOWER);
    let local = artifact
        .first(metrics, |form| matches!(form.opcode, Opcode::Ld | Opcode::St) && form.space == Some(Space::Local));
    figures.placed("local_bytes", count(metrics.local_bytes), LOWER, local);
    let accesses = metrics.local_loads.instructions + metrics.local_stores.instructions;
    figures.placed("local_accesses", count(accesses), LOWER, local);
    figures.add("shared_bytes", count(metrics.shared_bytes), LOWER);
    for (name, direction) in [("load_bytes", Direction::Load), ("store_bytes", Direction::Store)] {
        let (mean, narrowest) = width(&metrics.accesses, direction);
        figures.placed(name, mean, HIGHER, narrowest);
    }
    figures.add("branches", count(metrics.branches.instructions), LOWER);
    let divergent = metrics.divergent.first().copied();
    figures.placed("divergent_branches", count(metrics.divergent_branches.instructions), LOWER, divergent);
    figures.add("barriers", count(metrics.barriers.instructions), BARRIERS);
    figures.add("global_atomics", count(metrics.global_atomics.instructions), ATOMICS);
    figures.add("shared_atomics", count(metrics.shared_atomics.instructions), ATOMICS);
    let double = artifact.first(metrics, |form| Class::of(form) == Class::Double);
    figures.placed("double_instructions", count(metrics.doubles.instructions), LOWER, double);
    let wrapping = metrics.wrapping.first().copied();
    figures.placed("wrapping_products", count(metrics.wrapping.len() as u64), LOWER, wrapping);
    for (class, parts) in &metrics.mix {
        figures.add(format!("mix_{}", class.name()), count(parts.instructions), Judged::Shown);
    }
    if let Some(counters) = counters {
        launched(&mut figures, counters);
    }
    if let Some(assembled) = assembled {
        assemble(&mut figures, assembled);
    }
    figures.metrics
}

/// What a launch did: lanes as a share of all, in percent, and sectors of 32 bytes a request of a warp.
fn launched(figures: &mut Figures<'_>, counters: &Counters) {
    let count = |count: u64| count as f64;
    let rounded = |value: f64| (value * 100.0).round() / 100.0;
    figures.add("launch_instructions", count(counters.instructions), LOWER);
    figures.add("launch_lanes", rounded(100.0 * counters.occupancy()), HIGHER);
    figures.add("launch_divergent_branches", count(counters.divergent_branches), LOWER);
    figures.add("launch_load_sectors", rounded(counters.global_loads.sectors_per_request()), LOWER);
    figures.add("launch_store_sectors", rounded(counters.global_stores.sectors_per_request()), LOWER);
    figures.add("launch_bank_conflicts", count(counters.bank_conflicts()), LOWER);
    figures.add("launch_barriers", count(counters.barriers), Judged::Neither { fell: "" });
    let atomics = count(counters.global_atomics + counters.shared_atomics);
    figures.add("launch_atomics", atomics, Judged::Neither { fell: "" });
    for (class, executed) in &counters.classes {
        figures.add(format!("launch_mix_{}", class.name()), count(*executed), Judged::Shown);
    }
}

fn assemble(figures: &mut Figures<'_>, assembled: &Assembled) {
    let report = &assembled.report;
    figures.add("ptxas_registers", report.registers, LOWER);
    figures.add("ptxas_spill_stores", report.spill_stores, LOWER);
    figures.add("ptxas_spill_loads", report.spill_loads, LOWER);
    figures.add("ptxas_stack", report.stack_frame, LOWER);
    figures.add("ptxas_shared", report.shared, LOWER);
    if let Some((threads, dynamic)) = launch(figures.artifact, figures.kernel) {
        let shared = report.shared.saturating_add(dynamic);
        let footprint = Footprint { registers: report.registers, shared, threads, barriers: report.barriers };
        let percent = 100.0 * figures.artifact.arch.occupancy(footprint).fraction;
        figures.add("ptxas_occupancy", percent, HIGHER);
    }
    if let Ok(sass) = &assembled.sass {
        figures.add("sass_instructions", sass.instructions, LOWER);
        for (class, count) in &sass.by_class {
            let name = format!("sass_mix_{}", class.to_string().replace(' ', "_"));
            figures.add(name, *count, Judged::Shown);
        }
    }
}

/// Mean bytes that a thread moves with one access of a direction, loops weighed, 0 without any; and the narrowest of
/// those in most loops.
fn width(accesses: &[Access], direction: Direction) -> (f64, Option<metrics::Place>) {
    let chosen = || accesses.iter().filter(|access| access.direction == direction);
    let weight = |access: &Access| metrics::TURNS.saturating_pow(access.depth) as f64;
    let moved: f64 = chosen().map(|access| f64::from(access.bytes) * weight(access)).sum();
    let number: f64 = chosen().map(weight).sum();
    let narrowest = chosen().min_by_key(|access| (std::cmp::Reverse(access.depth), access.bytes));
    (if number > 0.0 { moved / number } else { 0.0 }, narrowest.map(|access| access.place))
}

/// Threads of a block and bytes of dynamic shared memory, where neither depends on a case.
fn launch(artifact: &Artifact<'_>, kernel: &Kernel) -> Option<(u32, u32)> {
    let constant = |size: &Expression| u32::try_from(size.evaluate(&[]).ok()?).ok();
    let product = |sizes: [u32; 3]| sizes.iter().try_fold(1u32, |threads, size| threads.checked_mul(*size));
    match &kernel.launch {
        Some(launch) => {
            let threads = launch.block.iter().try_fold(1u32, |threads, size| threads.checked_mul(constant(size)?));
            Some((threads?, constant(&launch.shared)?))
        }
        None => Some((product(artifact.function().required_threads?)?, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpuemu_ptx::program::FunctionId;

    #[test]
    fn the_mean_width_weighs_loops() {
        let access = |instruction, direction, bytes, depth| Access {
            place: metrics::Place { function: FunctionId(0), instruction, line: 1, column: 1, location: None },
            direction,
            bytes,
            generic: false,
            depth,
        };
        let accesses = [
            access(0, Direction::Load, 4, 0),
            access(1, Direction::Load, 16, 1),
            access(2, Direction::Load, 16, 1),
            access(3, Direction::Store, 8, 0),
        ];
        // (4 + 160 + 160) / (1 + 10 + 10)
        let (mean, place) = width(&accesses, Direction::Load);
        assert!((mean - 324.0 / 21.0).abs() < 1e-12, "{mean}");
        assert_eq!(place.map(|place| place.instruction), Some(1));
        assert_eq!(width(&accesses, Direction::Store).0, 8.0);
        assert_eq!(width(&accesses, Direction::Atomic), (0.0, None));
    }

    #[test]
    fn the_contract_names_every_judged_figure() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::write(
            root.join("k.ptx"),
            ".version 7.0\n.target sm_80\n.visible .entry k()\n.reqntid 64\n{\nret;\n}\n",
        )
        .unwrap();
        let contract = "[[kernels]]\nname = \"k\"\nsource = \"k.ptx\"\n[kernels.artifact_checks]\ntargets = [\"sm_80\"]\n\
                        [kernels.budget]\nbranches = 0.25\n";
        let kernel = gpuemu_contract::Contract::parse(contract, &root.join("gpuemu.toml")).unwrap().kernels.remove(0);
        let artifact = Artifact::open(&kernel, "sm_80", root, "").unwrap();
        let weighed = metrics::measure(&artifact.program, artifact.entry);
        let assembled =
            Assembled { ptxas: "13.5".to_owned(), report: Default::default(), sass: Ok(Default::default()) };
        let figures = measure(&artifact, &kernel, &weighed, Some(&assembled), Some(&Counters::default()));
        let mut names: Vec<&str> =
            figures.iter().filter(|figure| figure.judged != Judged::Shown).map(|figure| figure.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, gpuemu_contract::artifact::METRICS);
        for figure in &figures {
            let part = PARTS.iter().any(|part| figure.name.starts_with(part));
            assert_eq!(part, figure.judged == Judged::Shown, "{}", figure.name);
            assert_eq!(figure.budget, (figure.name == "branches").then_some(0.25));
        }
    }
}
