//! Filling tensors.

fn main() {}
