//! Honesty: outputs arrive filled with poison, so that what was never written, or was written beside them, shows.

use super::compare::plain;
use super::verdict::{Check, Failure};
use crate::tensor::{Layout, Tensor};
use gpuemu_contract::DType;

/// What an output's memory is filled with before the subject runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poison {
    /// A NaN with a payload of its own where the dtype has one: whatever is computed with it turns into NaN.
    First,
    /// A large finite number: it stays visible where NaN is ignored (a maximum into an output that was never cleared).
    Second,
}

impl Poison {
    /// The bytes of one element, little-endian; the first `dtype.size()` count.
    pub fn pattern(self, dtype: DType) -> [u8; 8] {
        let bits: u64 = match (dtype, self) {
            (DType::Float64, Poison::First) => 0x7ff5_a3c9_96e1_b45d,
            (DType::Float64, Poison::Second) => 0x7fd3_5ac6_69b1_e42d,
            (DType::Float32, Poison::First) => 0x7fa5_c3b9,
            (DType::Float32, Poison::Second) => 0x7e93_a6c5,
            (DType::Float16, Poison::First) => 0x7d5b,
            (DType::Float16, Poison::Second) => 0x7a97,
            (DType::BFloat16, Poison::First) => 0x7fa5,
            (DType::BFloat16, Poison::Second) => 0x7e93,
            (DType::Float8E4M3, Poison::First) => 0x7f,
            (DType::Float8E4M3, Poison::Second) => 0x7b,
            (DType::Float8E5M2, Poison::First) => 0x7d,
            (DType::Float8E5M2, Poison::Second) => 0x7a,
            (_, Poison::First) => 0x5a96_c35a_a53c_695a,
            (_, Poison::Second) => 0xa569_3ca5_5ac3_96a5,
        };
        bits.to_le_bytes()
    }

    /// The other one.
    pub fn other(self) -> Poison {
        match self {
            Poison::First => Poison::Second,
            Poison::Second => Poison::First,
        }
    }

    /// The pattern as a number of as many bits as an element has.
    fn bits(self, dtype: DType) -> u64 {
        let size = dtype.size();
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&self.pattern(dtype)[..size]);
        u64::from_le_bytes(bytes)
    }

    /// Fills the whole memory of a tensor, gaps included.
    pub fn fill(self, tensor: &mut Tensor) {
        let bits = self.bits(tensor.dtype());
        match tensor.dtype().size() {
            1 => tensor.bytes_mut().fill(bits as u8),
            2 => bytemuck::cast_slice_mut::<u8, u16>(tensor.bytes_mut()).fill(bits as u16),
            4 => bytemuck::cast_slice_mut::<u8, u32>(tensor.bytes_mut()).fill(bits as u32),
            _ => bytemuck::cast_slice_mut::<u8, u64>(tensor.bytes_mut()).fill(bits),
        }
    }

    /// Elements that still hold the poison, in row-major order; `None` when there is none. One that does may be
    /// unwritten, or its right value may be that very pattern: a second run with the other poison tells, see
    /// [`unwritten`].
    pub fn suspects(self, tensor: &Tensor) -> Option<Vec<bool>> {
        fn marks<T: Copy + PartialEq>(memory: &[T], layout: &Layout, poison: T) -> Option<Vec<bool>> {
            let found = if layout.is_contiguous() {
                memory[layout.offset..layout.offset + layout.len()].contains(&poison)
            } else {
                layout.positions().any(|position| memory[position] == poison)
            };
            found.then(|| layout.positions().map(|position| memory[position] == poison).collect())
        }
        if tensor.is_empty() {
            return None;
        }
        let (layout, bits) = (tensor.layout(), self.bits(tensor.dtype()));
        match tensor.dtype().size() {
            1 => marks(tensor.bytes(), layout, bits as u8),
            2 => marks::<u16>(bytemuck::cast_slice(tensor.bytes()), layout, bits as u16),
            4 => marks::<u32>(bytemuck::cast_slice(tensor.bytes()), layout, bits as u32),
            _ => marks::<u64>(bytemuck::cast_slice(tensor.bytes()), layout, bits),
        }
    }

    /// Position in memory of the first element outside the tensor's view that no longer holds the poison.
    pub fn gap_written(self, tensor: &Tensor) -> Option<usize> {
        let pattern = self.pattern(tensor.dtype());
        let written = |position: &usize| !holds(tensor, *position, &pattern);
        let layout = tensor.layout();
        if layout.is_contiguous() || layout.is_empty() {
            // The gaps are what lies before and behind.
            let (start, length) = if layout.is_empty() { (0, 0) } else { (layout.offset, layout.len()) };
            return (0..start).chain(start + length..tensor.capacity()).find(written);
        }
        let mut inside = vec![false; tensor.capacity()];
        layout.positions().for_each(|position| inside[position] = true);
        (0..tensor.capacity()).find(|position| !inside[*position] && written(position))
    }
}

fn holds(tensor: &Tensor, position: usize, pattern: &[u8; 8]) -> bool {
    let size = tensor.dtype().size();
    tensor.bytes()[position * size..(position + 1) * size] == pattern[..size]
}

/// Elements that held the poison in both runs, the second with the other one: nothing wrote them.
pub fn unwritten(first: &[bool], second: &[bool]) -> Option<Vec<bool>> {
    assert_eq!(first.len(), second.len(), "two runs of one case");
    let both: Vec<bool> = first.iter().zip(second).map(|(a, b)| *a && *b).collect();
    both.contains(&true).then_some(both)
}

/// The failure of an output with unwritten elements. Panics when none is marked.
pub fn unwritten_failure(output: &str, shape: &[usize], marks: &[bool]) -> Failure {
    let first = marks.iter().position(|&mark| mark).expect("an unwritten element");
    let count = marks.iter().filter(|&&mark| mark).count();
    let message = if count == marks.len() {
        format!("{output} was never written")
    } else {
        let index = Layout::index_of(shape, first);
        format!("{count} of {} elements of {output} were never written, the first at {index:?}", marks.len())
    };
    plain(Check::Unwritten, output, message)
}

/// The failure of a subject that wrote outside an output's view.
pub fn gap_failure(output: &str, tensor: &Tensor, position: usize) -> Failure {
    let message = format!(
        "memory outside of {output} was written, {position} elements from the start of its allocation (shape {:?}, \
         strides {:?}, offset {})",
        tensor.shape(),
        tensor.layout().strides,
        tensor.layout().offset
    );
    plain(Check::GapWritten, output, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, with_element};

    #[test]
    fn the_first_poison_is_nan_and_the_second_is_large() {
        for dtype in DType::ALL {
            let value = |poison: Poison| {
                let mut tensor = Tensor::zeros(dtype, Layout::contiguous(&[1]));
                poison.fill(&mut tensor);
                with_element!(dtype, T => tensor.data::<T>()[0].to_f64())
            };
            if let Some(largest) = dtype.max_finite() {
                assert!(value(Poison::First).is_nan(), "{dtype}");
                let second = value(Poison::Second);
                assert!(second.is_finite() && second > largest.sqrt(), "{dtype} {second}");
            }
            let size = dtype.size();
            let (a, b) = (Poison::First.pattern(dtype), Poison::Second.pattern(dtype));
            assert_ne!(a[..size], b[..size], "{dtype}");
        }
    }

    #[test]
    fn what_follows_the_poison_in_both_runs_is_unwritten() {
        // A kernel that leaves element 2 alone and answers with the first poison's pattern at element 0.
        let run = |poison: Poison| {
            let mut tensor = Tensor::zeros(DType::UInt8, Layout::contiguous(&[4]));
            poison.fill(&mut tensor);
            for at in [0, 1, 3] {
                tensor.bytes_mut()[at] = Poison::First.pattern(DType::UInt8)[0] + at as u8;
            }
            poison.suspects(&tensor)
        };
        let (first, second) = (run(Poison::First).unwrap(), run(Poison::Second).unwrap());
        assert_eq!(first, [true, false, true, false]);
        let marks = unwritten(&first, &second).unwrap();
        assert_eq!(marks, [false, false, true, false]);
        let failure = unwritten_failure("out", &[2, 2], &marks);
        assert_eq!(failure.message, "1 of 4 elements of out were never written, the first at [1, 0]");
        assert_eq!(unwritten(&first, &[false; 4]), None);
    }

    #[test]
    fn writes_into_gaps_are_seen() {
        let layout = Layout { shape: vec![2, 2], strides: vec![3, 1], offset: 1 };
        let mut tensor = Tensor::with_capacity(DType::Float16, layout, 8);
        Poison::First.fill(&mut tensor);
        for position in [1, 2, 4, 5] {
            tensor.bytes_mut()[2 * position..2 * position + 2].fill(0);
        }
        assert_eq!((Poison::First.gap_written(&tensor), Poison::First.suspects(&tensor)), (None, None));
        tensor.bytes_mut()[2 * 3] = 0;
        assert_eq!(Poison::First.gap_written(&tensor), Some(3));
        let failure = gap_failure("out", &tensor, 3);
        assert!(failure.message.starts_with("memory outside of out was written, 3 elements from the start"));
        let dense = Tensor::zeros(DType::Float16, Layout::contiguous(&[3]));
        assert_eq!(Poison::First.gap_written(&dense), None);
    }
}
