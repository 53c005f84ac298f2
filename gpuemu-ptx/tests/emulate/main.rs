//! The emulator: small kernels with the right values beside them, the example kernels, faults, launches that are
//! refused.

mod bench;
mod counters;
mod examples;
mod faults;
mod forms;
mod hostile;
mod indices;
mod instructions;
mod launches;
mod mutants;
mod sanitizers;
mod stack;
mod waits;
mod warps;
