//! Losses.

use crate::block;
use crate::scalar::{Number, Real, RealScalar};
use crate::softmax::Running;
use crate::strided::{Strided, StridedMut};

/// `-ln softmax(logits)[target]` for each row of [N, C]; a row whose target is `ignored` has loss 0.
pub fn cross_entropy<T: RealScalar>(logits: Strided<T>, targets: Strided<i64>, mut out: StridedMut<T>, ignored: i64) {
    for row in 0..logits.shape()[0] {
        let loss = row_loss(logits, targets.at([row]), row, ignored);
        out.set([row], T::store(loss.unwrap_or(T::Acc::ZERO)));
    }
}

/// The mean of [`cross_entropy`] over the rows that count.
pub fn cross_entropy_mean<T: RealScalar>(
    logits: Strided<T>,
    targets: Strided<i64>,
    mut out: StridedMut<T>,
    ignored: i64,
) {
    let rows = logits.shape()[0];
    let losses: Vec<Option<T::Acc>> = (0..rows).map(|row| row_loss(logits, targets.at([row]), row, ignored)).collect();
    let sum = block::sum(rows, |row| losses[row].unwrap_or(T::Acc::ZERO));
    let counted = losses.iter().flatten().count();
    *out.element(0) = T::store(sum / T::Acc::count(counted));
}

fn row_loss<T: RealScalar>(logits: Strided<T>, target: i64, row: usize, ignored: i64) -> Option<T::Acc> {
    if target == ignored {
        return None;
    }
    let running = Running::over(logits.line(1, row));
    Some(running.sum.ln() - (logits.at([row, target as usize]).load() - running.max))
}
