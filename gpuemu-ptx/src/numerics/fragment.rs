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

/// Elements of `a` in a chunk of a sparse matrix, half of them zeros, by the bits of an element.
#[inline]
pub fn chunk(bits: usize) -> usize {
    match bits {
        32 => 2,
        4 => 8,
        _ => 4,
    }
}

/// The k of element `index` of what a row of a sparse `a` passes; `places` has, of a chunk, the four bits that say where in
/// it elements stand: one of two, two of four, or two pairs of four.
#[inline]
pub fn place<const BITS: usize>(index: usize, places: impl Fn(usize) -> u32) -> usize {
    let place = |chunk, second| {
        let bits = places(chunk) as usize;
        if second { bits >> 2 } else { bits & 3 }
    };
    match BITS {
        32 => 2 * index + places(index) as usize / 8,
        4 => 8 * (index / 4) + 2 * place(index / 4, index % 4 >= 2) + index % 2,
        _ => 4 * (index / 2) + place(index / 2, index % 2 == 1),
    }
}

/// The lane and the lowest of the four bits that say where in a chunk the elements of `a` stand, of a row and a chunk
/// of so many chunks in a row. PTX ISA, "Matrix Fragments for sparse mma", metadata: the selector picks one thread of
/// four where rows have 4 chunks, two where they have 8; with 16 all have some.
#[inline]
pub fn places(row: usize, chunk: usize, chunks: usize, bits: usize, selector: usize) -> (usize, usize) {
    let (quad, upper) = (row % 8 * 4, row / 8);
    match chunks {
        4 => (quad + selector, 16 * upper + 4 * chunk),
        8 if bits >= 16 => (quad + 2 * selector + chunk / 4, 16 * upper + 4 * (chunk % 4)),
        8 => (quad + 2 * selector + upper, 4 * chunk),
        _ => (quad + chunk / 8 * 2 + upper, 4 * (chunk % 8)),
    }
}

/// Row and k of element `index` of `a` of the product of eight lanes, m8n8k4, by its layout.
#[inline]
pub fn quad_pair_a(lane: usize, index: usize, by_row: bool) -> (usize, usize) {
    if by_row { (half(lane) + lane % 4, index) } else { (half(lane) + index, lane % 4) }
}

/// k and column of element `index` of `b` of m8n8k4, by its layout.
#[inline]
pub fn quad_pair_b(lane: usize, index: usize, by_row: bool) -> (usize, usize) {
    if by_row { (lane % 4, half(lane) + index) } else { (index, half(lane) + lane % 4) }
}

/// Row and column of element `index` of `c` or `d` of m8n8k4, in 32 bits or 16.
#[inline]
pub fn quad_pair_c(lane: usize, index: usize, bits: usize) -> (usize, usize) {
    match bits {
        32 => (half(lane) + lane % 2 + index / 2 % 2 * 2, index / 4 * 4 + lane / 2 % 2 * 2 + index % 2),
        _ => (half(lane) + lane % 4, index),
    }
}

/// Lanes i..i + 4 and i + 16..i + 20 share a product: the second four have the other half of the matrix.
#[inline]
fn half(lane: usize) -> usize {
    lane / 16 * 4
}
