//! What the threads of one block do together.

use crate::scalar::Number;

/// Threads of a block.
pub const LANES: usize = 32;

/// Combines `load(0)`, `load(1)`, ... `load(len - 1)`: every lane strides over the elements, and a tree combines the lanes.
/// `combine` must not depend on the order of its operands; `identity` changes nothing.
pub fn reduce<A: Copy>(len: usize, identity: A, load: impl Fn(usize) -> A, combine: impl Fn(A, A) -> A) -> A {
    let mut lanes = [identity; LANES];
    for start in (0..len).step_by(LANES) {
        for (lane, own) in lanes.iter_mut().enumerate() {
            if start + lane < len {
                *own = combine(*own, load(start + lane));
            }
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = combine(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// The sum of `load(0)` to `load(len - 1)`.
pub fn sum<A: Number>(len: usize, load: impl Fn(usize) -> A) -> A {
    reduce(len, A::ZERO, load, |a, b| a + b)
}

/// The largest of `load(0)` to `load(len - 1)`; a NaN wins.
pub fn max<A: Number>(len: usize, load: impl Fn(usize) -> A) -> A {
    reduce(len, A::LOWEST, load, A::larger)
}
