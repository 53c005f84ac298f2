//! Which element of a matrix lies where in the registers of `mma.sync`: rows and columns by lane, register, place.
//!
//! PTX ISA, "Matrix Fragments for mma": one rule covers every shape but Volta's m8n8k4. A register holds `packed`
//! neighbours in k: 1 for tf32 and f64, 2 for 16 bits, 4 for 8, 8 for 4, 32 for single bits.

/// Row and k of an element of `a`. Registers go through the rows eight at a time when the matrix has 16, then along k.
#[inline]
pub fn a(lane: usize, register: usize, place: usize, packed: usize, rows: usize) -> (usize, usize) {
    let blocks = rows / 8;
    let row = lane / 4 + 8 * (register % blocks);
    (row, register / blocks * 4 * packed + lane % 4 * packed + place)
}

/// k and column of an element of `b`.
#[inline]
pub fn b(lane: usize, register: usize, place: usize, packed: usize) -> (usize, usize) {
    (register * 4 * packed + lane % 4 * packed + place, lane / 4)
}

/// Row and column of element `index` of `c` or `d` (two to a row of eight; two binary16 share a register).
#[inline]
pub fn c(lane: usize, index: usize) -> (usize, usize) {
    (lane / 4 + index / 2 * 8, lane % 4 * 2 + index % 2)
}
