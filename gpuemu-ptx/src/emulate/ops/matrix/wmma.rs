//! `wmma`: fragments whose layout only the machine knows.
//!
//! PTX leaves open which lane holds which element, and promises no more than that fragments of one kind are alike. Here
//! the elements of a matrix, row by row, are dealt to the lanes in turn, so many to a lane as its registers hold; where
//! there are more places than elements, as on the first of these machines, elements come again.

use std::marker::PhantomData;

use super::fragments::registers;
use super::mma::{float_format, rule};
use crate::arch::MatrixInstruction;
use crate::emulate::context::Context;
use crate::emulate::decode::{Decoded, Decoder, refuse};
use crate::emulate::op::{Body, Op, Signal};
use crate::emulate::ops::memory::{Access, Generic, InGlobal, InShared, Memory};
use crate::emulate::ops::warp::assembled;
use crate::emulate::problem::Trouble;
use crate::emulate::registers::{FULL, LANES};
use crate::emulate::warp::Warp;
use crate::memory::Element as Bits;
use crate::numerics::tensor_core::{
    Accumulator, Element, SumRule, multiply_add, multiply_add_bits, multiply_add_f64, multiply_add_int,
};
use crate::program::{ScalarType, Shape, Space, Word};

/// One of the matrices of a product.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    A,
    B,
    /// The accumulator or the result.
    C,
}

/// Numbers of a type in one element of a fragment.
fn together(ty: ScalarType) -> usize {
    if ty.bits() < 8 { 32 / ty.bits() as usize } else { 1 }
}

/// A fragment: the extents of its matrix, and how elements lie in registers.
#[derive(Clone, Copy, Debug)]
struct Fragment {
    rows: usize,
    columns: usize,
    /// Bits of an element.
    bits: usize,
    /// Registers of a lane, of 32 bits, or of 64 for binary64.
    registers: usize,
}

impl Fragment {
    /// Elements of less than a byte go along k in words of 32 bits, each of which is one element of the fragment.
    fn new(which: Which, shape: Shape, ty: ScalarType, registers: usize) -> Self {
        let together = together(ty);
        let k = usize::from(shape.k) / together;
        let (rows, columns) = match which {
            Which::A => (shape.m.into(), k),
            Which::B => (k, shape.n.into()),
            Which::C => (shape.m.into(), shape.n.into()),
        };
        Self { rows, columns, bits: ty.bits() as usize * together, registers }
    }

    fn elements(&self) -> usize {
        self.rows * self.columns
    }

    /// Elements in one register.
    fn packed(&self) -> usize {
        if self.bits >= 32 { 1 } else { 32 / self.bits }
    }

    /// Whether the registers of all lanes hold the whole matrix.
    fn is_whole(&self) -> bool {
        self.elements() != 0 && (LANES * self.registers * self.packed()).is_multiple_of(self.elements())
    }

    /// The number of the element at a place.
    fn element(&self, lane: usize, register: usize, place: usize) -> usize {
        ((lane * self.registers + register) * self.packed() + place) % self.elements()
    }

    /// The matrix, row by row.
    fn gather(&self, warp: &Warp, list: &[i32]) -> Vec<u64> {
        let mut matrix = vec![0; self.elements()];
        for (register, &row) in list.iter().enumerate() {
            for lane in 0..LANES {
                let word = match self.bits {
                    64 => warp.registers.lane::<u64>(row, lane),
                    _ => u64::from(warp.registers.lane::<u32>(row, lane)),
                };
                for place in 0..self.packed() {
                    let mask = if self.bits == 64 { u64::MAX } else { (1 << self.bits) - 1 };
                    matrix[self.element(lane, register, place)] = word >> (place * self.bits) & mask;
                }
            }
        }
        matrix
    }

    /// Writes the registers.
    fn spread(&self, warp: &mut Warp, list: &[i32], matrix: &[u64], mask: u32) {
        for (register, &row) in list.iter().enumerate() {
            let mut words = [0u64; LANES];
            for (lane, word) in words.iter_mut().enumerate() {
                for place in 0..self.packed() {
                    *word |= matrix[self.element(lane, register, place)] << (place * self.bits);
                }
            }
            match self.bits {
                64 => warp.registers.write::<u64>(row, &words, mask),
                _ => warp.registers.write::<u32>(row, &words.map(|word| word as u32), mask),
            }
        }
    }
}

/// Which lane accesses which element in memory: the one that holds it in the fragments of `mma.sync` (see
/// [`crate::numerics::fragment`]), as on machines whose `wmma` is made of those. Kernels may not count on any lane, so it
/// matters only to who is told of races: four lanes to a row, each with so many neighbours.
struct Dealt {
    rows: usize,
    columns: usize,
    neighbours: usize,
    /// Whether neighbours are of one column: in the second factor, which has k by row.
    by_k: bool,
}

impl Dealt {
    /// Whether all lanes have as many elements.
    fn is_even(&self) -> bool {
        let (across, along) = if self.by_k { (self.columns, self.rows) } else { (self.rows, self.columns) };
        across.is_multiple_of(8) && along.is_multiple_of(4 * self.neighbours)
    }

    /// The number of a lane's element at a place: the first of so many neighbours.
    fn element(&self, lane: usize, group: usize, place: usize) -> usize {
        let along = if self.by_k { self.rows } else { self.columns } / (4 * self.neighbours);
        let x = group / along * 8 + lane / 4;
        let y = (group % along * 4 + lane % 4) * self.neighbours + place;
        if self.by_k { y * self.columns + x } else { x * self.columns + y }
    }

    /// Moves all elements, `N` neighbours at a time.
    fn transfer<M: Memory, T: Bits + Into<u64> + TryFrom<u64>, const STORE: bool, const N: usize>(
        &self,
        context: &mut Context<'_>,
        who: Access,
        address: impl Fn(usize) -> u64,
        matrix: &mut [u64],
    ) -> Result<(), Trouble> {
        for group in 0..matrix.len() / (LANES * self.neighbours) {
            for first in (0..self.neighbours).step_by(N) {
                let addresses = std::array::from_fn(|lane| address(self.element(lane, group, first)));
                let at = |lane, place| self.element(lane, group, first + place);
                let mut values = [[T::default(); LANES]; N];
                if STORE {
                    for (place, row) in values.iter_mut().enumerate() {
                        for (lane, value) in row.iter_mut().enumerate() {
                            *value = T::try_from(matrix[at(lane, place)]).unwrap_or_default();
                        }
                    }
                    M::store(context, who, &addresses, FULL, &values)?;
                } else {
                    M::load(context, who, &addresses, FULL, &mut values)?;
                    for (place, row) in values.iter().enumerate() {
                        for (lane, &value) in row.iter().enumerate() {
                            matrix[at(lane, place)] = value.into();
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Numbers in a list before the registers of a transfer.
const HEAD_OF_TRANSFER: usize = 7;

/// `wmma.load`, `wmma.store`: `a + imm` is the matrix, `b` its stride in elements; the list that `e` begins has the
/// cache, rows, columns, bits, whether columns lie together, how the elements are dealt ([`Dealt`]), and the registers,
/// `c` of them.
pub struct Transfer<M, T, const STORE: bool>(PhantomData<(M, T)>);

impl<M: Memory, T: Bits + Into<u64> + TryFrom<u64>, const STORE: bool> Body for Transfer<M, T, STORE> {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        assembled!(warp, context, FULL, mask);
        let code = context.code;
        let list = &code.lists[op.e as usize..][..HEAD_OF_TRANSFER + op.c as usize];
        let Some(head) = list.first_chunk::<HEAD_OF_TRANSFER>() else { return Signal::Fault };
        let [cache, rows, columns, bits, by_column, neighbours, by_k] = *head;
        let (list, by_k) = (&list[HEAD_OF_TRANSFER..], by_k != 0);
        let fragment =
            Fragment { rows: rows as usize, columns: columns as usize, bits: bits as usize, registers: list.len() };
        let lane = mask.trailing_zeros() as usize % LANES;
        let base = warp.registers.lane::<u64>(op.a, lane).wrapping_add(op.imm);
        let stride = u64::from(warp.registers.lane::<u32>(op.b, lane));
        let size = size_of::<T>() as u64;
        let address = |element: usize| {
            let (row, column) = (element as u64 / columns as u64, element as u64 % columns as u64);
            let (major, minor) = if by_column != 0 { (column, row) } else { (row, column) };
            base.wrapping_add((major.wrapping_mul(stride).wrapping_add(minor)).wrapping_mul(size))
        };
        let who = Access::of(warp.index, cache, 0);
        let dealt = Dealt { rows: fragment.rows, columns: fragment.columns, neighbours: neighbours as usize, by_k };
        let mut matrix = if STORE { fragment.gather(warp, list) } else { vec![0; fragment.elements()] };
        // Neighbours that lie together are accessed together.
        let together = (by_column != 0) == by_k
            && base.is_multiple_of(size * neighbours as u64)
            && stride.is_multiple_of(neighbours as u64);
        let done = match (together, neighbours) {
            (true, 2) => dealt.transfer::<M, T, STORE, 2>(context, who, address, &mut matrix),
            (true, 4) => dealt.transfer::<M, T, STORE, 4>(context, who, address, &mut matrix),
            _ => dealt.transfer::<M, T, STORE, 1>(context, who, address, &mut matrix),
        };
        if let Err(trouble) = done {
            context.trouble = Some(trouble);
            return Signal::Fault;
        }
        if !STORE {
            fragment.spread(warp, list, &matrix, mask);
        }
        Signal::Next
    }
}

/// `wmma.mma`: the list that `e` begins has m, n, k, the number of the element's type and of the two accumulators', the
/// rule's three numbers, whether sums are clamped (or bits combined by `and`), how many registers each operand has, and the registers of d, a, b, c.
pub struct Multiply;

/// The types by number.
const TYPES: [ScalarType; 11] = [
    ScalarType::F16,
    ScalarType::Bf16,
    ScalarType::Tf32,
    ScalarType::F64,
    ScalarType::S8,
    ScalarType::U8,
    ScalarType::S4,
    ScalarType::U4,
    ScalarType::B1,
    ScalarType::F32,
    ScalarType::S32,
];

const HEAD: usize = 13;

impl Body for Multiply {
    fn run(warp: &mut Warp, context: &mut Context<'_>, op: &Op, mask: u32) -> Signal {
        assembled!(warp, context, FULL, mask);
        let code = context.code;
        let Some(head) = code.lists[op.e as usize..].first_chunk::<HEAD>() else { return Signal::Fault };
        let [m, n, k, ab, c, d, fraction, group, result, satfinite, in_d, in_a, in_b] = head.map(|x| x as usize);
        let list = &code.lists[op.e as usize + HEAD..][..2 * in_d.max(op.c as usize) + in_a + in_b];
        let (to, list) = list.split_at(in_d);
        let (from_a, list) = list.split_at(in_a);
        let (from_b, list) = list.split_at(in_b);
        let from_c = &list[..op.c as usize];
        let shape = Shape { m: m as u16, n: n as u16, k: k as u16 };
        let (ab, tc, td) = (TYPES[ab], TYPES[c], TYPES[d]);
        let a = Fragment::new(Which::A, shape, ab, in_a).gather(warp, from_a);
        let b = Fragment::new(Which::B, shape, ab, in_b).gather(warp, from_b);
        let c = Fragment::new(Which::C, shape, tc, from_c.len()).gather(warp, from_c);
        let rule = SumRule { fraction_bits: fraction as u32, group: group as u32, result_bits: result as u32 };
        let mut out = vec![0; m * n];
        // Eight rows and eight columns at a time.
        for row in (0..m).step_by(8) {
            for column in (0..n).step_by(8) {
                // In elements of fragments: words, for numbers of less than a byte.
                let k = k / together(ab);
                let parts = Parts { a: &a, b: &b, c: &c, k, n, row, column };
                let tile = match k {
                    4 => parts.multiply::<4>(ab, tc, td, rule, satfinite != 0),
                    8 => parts.multiply::<8>(ab, tc, td, rule, satfinite != 0),
                    16 => parts.multiply::<16>(ab, tc, td, rule, satfinite != 0),
                    _ => parts.multiply::<32>(ab, tc, td, rule, satfinite != 0),
                };
                for (x, values) in tile.iter().enumerate() {
                    out[(row + x) * n + column..][..8].copy_from_slice(values);
                }
            }
        }
        Fragment::new(Which::C, shape, td, in_d).spread(warp, to, &out, mask);
        Signal::Next
    }
}

/// A tile of a product.
struct Parts<'a> {
    a: &'a [u64],
    b: &'a [u64],
    c: &'a [u64],
    k: usize,
    n: usize,
    row: usize,
    column: usize,
}

impl Parts<'_> {
    fn multiply<const K: usize>(
        &self,
        ab: ScalarType,
        tc: ScalarType,
        td: ScalarType,
        rule: SumRule,
        satfinite: bool,
    ) -> [[u64; 8]; 8] {
        let a: [[u64; K]; 8] = std::array::from_fn(|m| std::array::from_fn(|k| self.a[(self.row + m) * self.k + k]));
        let b: [[u64; 8]; K] = std::array::from_fn(|k| std::array::from_fn(|n| self.b[k * self.n + self.column + n]));
        let c: [[u64; 8]; 8] =
            std::array::from_fn(|m| std::array::from_fn(|n| self.c[(self.row + m) * self.n + self.column + n]));
        if ab == ScalarType::F64 {
            return multiply_add_f64(&a, &b, &c);
        }
        let narrow = |rows: [[u64; 8]; 8]| rows.map(|row| row.map(|x| x as u32));
        if let Some((element, _)) = float_format(ab) {
            let (a, b) = (a.map(|row| row.map(|x| x as u32)), b.map(|row| row.map(|x| x as u32)));
            // The accumulator is widened or narrowed to the result's format, which for a sum is the format of both.
            let c = match (tc, td) {
                (ScalarType::F16, ScalarType::F32) => {
                    c.map(|row| row.map(|x| crate::numerics::half::f16_to_f32(x as u16)))
                }
                (ScalarType::F32, ScalarType::F16) => {
                    c.map(|row| row.map(|x| u32::from(crate::numerics::half::f32_to_f16(x as u32))))
                }
                _ => narrow(c),
            };
            let d = match (element, td) {
                (Element::F16, ScalarType::F16) => {
                    multiply_add(rule, (Element::F16, Element::F16), Accumulator::F16, &a, &b, &c)
                }
                (element, _) => multiply_add(rule, (element, element), Accumulator::F32, &a, &b, &c),
            };
            return d.map(|row| row.map(u64::from));
        }
        if ab == ScalarType::B1 {
            let narrow = |x: [u64; 8]| x.map(|x| x as u32);
            let (a, b) = (a.map(|row| row.map(|x| x as u32)), b.map(narrow));
            return multiply_add_bits(satfinite, &a, &b, &c.map(narrow)).map(|row| row.map(u64::from));
        }
        if ab.bits() == 4 {
            return self.nibbles(ab.is_signed(), satfinite, &narrow(c));
        }
        let up = 32 - ab.bits();
        let value = |x: u64| match ab.is_signed() {
            true => (x as u32) << up,
            false => x as u32,
        };
        let signed = |x: u64| if ab.is_signed() { value(x) as i32 >> up } else { value(x) as i32 };
        let (a, b) = (a.map(|row| row.map(signed)), b.map(|row| row.map(signed)));
        multiply_add_int(satfinite, &a, &b, &narrow(c)).map(|row| row.map(u64::from))
    }
}

impl Parts<'_> {
    /// The product of 32 numbers of four bits, eight to a word.
    fn nibbles(&self, signed: bool, satfinite: bool, c: &[[u32; 8]; 8]) -> [[u64; 8]; 8] {
        let number = |word: u64, place: usize| {
            let up = (word as u32 >> (4 * place)) << 28;
            if signed { up as i32 >> 28 } else { (up >> 28) as i32 }
        };
        let a: [[i32; 32]; 8] =
            std::array::from_fn(|m| std::array::from_fn(|k| number(self.a[(self.row + m) * self.k + k / 8], k % 8)));
        let b: [[i32; 8]; 32] =
            std::array::from_fn(|k| std::array::from_fn(|n| number(self.b[k / 8 * self.n + self.column + n], k % 8)));
        multiply_add_int(satfinite, &a, &b, c).map(|row| row.map(u64::from))
    }
}

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    let has = |word| d.form.has(word);
    let Some(shape) = d.form.shape else { return refuse("it has no shape") };
    let which = match () {
        () if has(Word::A) => Which::A,
        () if has(Word::B) => Which::B,
        () => Which::C,
    };
    match () {
        () if has(Word::Load) => transfer(d, which, shape, false),
        () if has(Word::Store) => transfer(d, which, shape, true),
        () => multiply(d, shape),
    }
}

fn transfer(d: &mut Decoder<'_>, which: Which, shape: Shape, store: bool) -> Decoded {
    let ty = d.ty()?;
    let wide = ty.bits() == 64;
    let list = registers(d, usize::from(store), !store, wide)?;
    let fragment = Fragment::new(which, shape, ty, list.len());
    if !fragment.is_whole() {
        return refuse("fragments of this shape and type are not executed");
    }
    let neighbours = match which {
        Which::C => 2,
        Which::A | Which::B => fragment.packed(),
    };
    let by_k = which == Which::B;
    let dealt = Dealt { rows: fragment.rows, columns: fragment.columns, neighbours, by_k };
    if !dealt.is_even() {
        return refuse("fragments of this shape and type are not executed");
    }
    let address = d.address(usize::from(!store))?;
    let (a, imm) = d.wide_address(address);
    let by_column = d.form.has(Word::Col);
    let natural = if by_column { fragment.rows } else { fragment.columns };
    let b = match d.has_operand(2) {
        true => {
            let stride = d.source::<u32>(2)?;
            let words = d.temporary::<u32>();
            d.apply1(words, stride, together(ty) as u64, |k, stride: u32| stride / k.max(1) as u32);
            words
        }
        false => d.constant::<u32>(natural as u64),
    };
    let cache = d.cache();
    let head: [i32; HEAD_OF_TRANSFER] = [
        cache,
        fragment.rows as i32,
        fragment.columns as i32,
        fragment.bits as i32,
        i32::from(by_column),
        neighbours as i32,
        i32::from(by_k),
    ];
    let c = list.len() as i32;
    let e = d.list(head.into_iter().chain(list));
    macro_rules! of {
        ($memory:ty, $store:literal) => {
            match fragment.bits {
                8 => d.op_of::<Transfer<$memory, u8, $store>>(),
                16 => d.op_of::<Transfer<$memory, u16, $store>>(),
                32 => d.op_of::<Transfer<$memory, u32, $store>>(),
                _ => d.op_of::<Transfer<$memory, u64, $store>>(),
            }
        };
    }
    let op = match (d.form.space, store) {
        (Some(Space::Global), false) => of!(InGlobal, false),
        (Some(Space::Global), true) => of!(InGlobal, true),
        (Some(Space::Shared), false) => of!(InShared, false),
        (Some(Space::Shared), true) => of!(InShared, true),
        (None, false) => of!(Generic, false),
        (None, true) => of!(Generic, true),
        _ => return refuse("matrices are in global or shared memory"),
    };
    d.emit(Op { a, b, c, e, imm, ..op });
    Ok(())
}

fn multiply(d: &mut Decoder<'_>, shape: Shape) -> Decoded {
    // `f32.f32` leaves out binary16 factors; others are written whole: d, a, b, c.
    let (td, ab, tc) = match *d.form.types.as_slice() {
        [td, tc] => (td, ScalarType::F16, tc),
        [td, ta, tb, tc] if ta == tb => (td, ta, tc),
        _ => return refuse("products of these types are not executed"),
    };
    let number = |ty: ScalarType| TYPES.iter().position(|one| *one == ty);
    let (Some(nd), Some(nab), Some(nc)) = (number(td), number(ab), number(tc)) else {
        return refuse("products of these types are not executed");
    };
    let known = match ab.bits() {
        1 => shape.k == 128,
        4 => shape.k == 32,
        _ => matches!(shape.k, 4 | 8 | 16 | 32),
    };
    if !known || !shape.m.is_multiple_of(8) || !shape.n.is_multiple_of(8) {
        return refuse("products of this shape are not executed");
    }
    let rule = match float_format(ab) {
        Some((_, format)) => match rule(d.settings.arch, MatrixInstruction::Wmma, format) {
            Some(rule) => rule,
            None => return Err(format!("how {} adds such products is not known", d.settings.arch.name)),
        },
        None => SumRule { fraction_bits: 0, group: 1, result_bits: 23 },
    };
    let wide = ab == ScalarType::F64;
    let to = registers(d, 0, true, wide)?;
    let (a, b) = (registers(d, 1, false, wide)?, registers(d, 2, false, wide)?);
    let c = registers(d, 3, false, wide)?;
    let fits = |which, ty, registers: &[i32]| Fragment::new(which, shape, ty, registers.len()).is_whole();
    if !fits(Which::A, ab, &a) || !fits(Which::B, ab, &b) || !fits(Which::C, tc, &c) || !fits(Which::C, td, &to) {
        return refuse("its fragments have another number of registers");
    }
    let head = [
        i32::from(shape.m),
        i32::from(shape.n),
        i32::from(shape.k),
        nab as i32,
        nc as i32,
        nd as i32,
        rule.fraction_bits as i32,
        rule.group as i32,
        rule.result_bits as i32,
        // Single bits are clamped never, and counted under `and` or exclusive or.
        i32::from(d.form.has(Word::Satfinite) || d.form.has(Word::And)),
        to.len() as i32,
        a.len() as i32,
        b.len() as i32,
    ];
    let in_c = c.len() as i32;
    // A list at least as long as its reader takes.
    let spare = to.len().max(c.len()) * 2 - to.len() - c.len();
    let e = d.list(head.into_iter().chain(to).chain(a).chain(b).chain(c).chain(std::iter::repeat_n(0, spare)));
    d.emit(Op { c: in_c, e, ..d.op_of::<Multiply>() });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Dealt, LANES};
    use crate::numerics::fragment;

    /// The lane of each element, which one lane has and no other.
    fn lanes(dealt: &Dealt) -> Vec<usize> {
        let mut lanes = vec![None; dealt.rows * dealt.columns];
        for group in 0..lanes.len() / (LANES * dealt.neighbours) {
            for (lane, place) in (0..LANES).flat_map(|lane| (0..dealt.neighbours).map(move |place| (lane, place))) {
                let before = lanes[dealt.element(lane, group, place)].replace(lane);
                assert_eq!(before, None, "twice: {lane}, {group}, {place}");
            }
        }
        lanes.into_iter().map(|lane| lane.expect("a lane")).collect()
    }

    #[test]
    fn elements_are_with_the_lanes_that_mma_has_them_in() {
        for neighbours in [1, 2, 4] {
            let k = 8 * neighbours;
            let a = lanes(&Dealt { rows: 16, columns: k, neighbours, by_k: false });
            let b = lanes(&Dealt { rows: k, columns: 8, neighbours, by_k: true });
            for (lane, place) in (0..LANES).flat_map(|lane| (0..neighbours).map(move |place| (lane, place))) {
                for register in 0..4 {
                    let (row, column) = fragment::a(lane, register, place, neighbours, 16);
                    assert_eq!(a[row * k + column], lane);
                }
                for register in 0..2 {
                    let (row, column) = fragment::b(lane, register, place, neighbours);
                    assert_eq!(b[row * 8 + column], lane);
                }
            }
        }
        let c = lanes(&Dealt { rows: 16, columns: 16, neighbours: 2, by_k: false });
        for (lane, index) in (0..LANES).flat_map(|lane| (0..4).map(move |index| (lane, index))) {
            let (row, column) = fragment::c(lane, index);
            assert_eq!([c[row * 16 + column], c[row * 16 + column + 8]], [lane; 2]);
        }
        for (rows, columns) in [(32, 8), (8, 32), (8, 8)] {
            lanes(&Dealt { rows, columns, neighbours: 2, by_k: false });
        }
    }
}
