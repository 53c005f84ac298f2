//! The emulator: small kernels with the right values beside them, the example kernels, faults, launches that are
//! refused.

mod bench;
mod examples;
mod faults;
mod forms;
mod instructions;
mod launches;
mod mutants;
mod sanitizers;
mod warps;
