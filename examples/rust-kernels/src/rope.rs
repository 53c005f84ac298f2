//! Rotary position embedding.

use crate::scalar::RealScalar;
use crate::strided::{Strided, StridedMut};

/// Turns every pair of x [B, H, S, D] by the angle of its position: elements i and i + D/2, or 2i and 2i + 1 when
/// `interleaved`. cos and sin are [S, D/2].
pub fn rope<T: RealScalar>(x: Strided<T>, cos: Strided<T>, sin: Strided<T>, mut out: StridedMut<T>, interleaved: bool) {
    let &[batches, heads, positions, depth] = x.shape() else { panic!("rope of a tensor that is not [B, H, S, D]") };
    for block in 0..batches * heads * positions {
        let (batch, head, position) = (block / positions / heads, block / positions % heads, block % positions);
        for pair in 0..depth / 2 {
            let (i, j) = if interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + depth / 2) };
            let (cos, sin) = (cos.at([position, pair]).load(), sin.at([position, pair]).load());
            let (first, second) = (x.at([batch, head, position, i]).load(), x.at([batch, head, position, j]).load());
            out.set([batch, head, position, i], T::store(first * cos - second * sin));
            out.set([batch, head, position, j], T::store(second * cos + first * sin));
        }
    }
}
