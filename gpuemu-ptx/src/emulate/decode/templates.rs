//! Operations around closures of scalars, on the instruction's operands or on rows given by number.

use super::{Decoded, Decoder};
use crate::emulate::op::{Binary, Body, Op, Quaternary, Ternary, Unary};
use crate::emulate::registers::Lane;

impl Decoder<'_> {
    /// Emits `d = f(imm, a)` on the instruction's operands.
    pub fn unary<D: Lane, A: Lane, F: Fn(u64, A) -> D + Copy>(&mut self, imm: u64, _: F) -> Decoded {
        let a = self.source::<A>(1)?;
        let d = self.destination::<D>(0, self.signed())?;
        self.emit(Op { d, a, imm, ..self.op_of::<Unary<F, D, A>>() });
        Ok(())
    }

    /// Emits `d = f(imm, a, b)`.
    pub fn binary<D: Lane, A: Lane, B: Lane, F: Fn(u64, A, B) -> D + Copy>(&mut self, imm: u64, _: F) -> Decoded {
        let (a, b) = (self.source::<A>(1)?, self.source::<B>(2)?);
        let d = self.destination::<D>(0, self.signed())?;
        self.emit(Op { d, a, b, imm, ..self.op_of::<Binary<F, D, A, B>>() });
        Ok(())
    }

    /// Emits `d = f(imm, a, b, c)`.
    pub fn ternary<D: Lane, A: Lane, B: Lane, C: Lane, F: Fn(u64, A, B, C) -> D + Copy>(
        &mut self,
        imm: u64,
        _: F,
    ) -> Decoded {
        let (a, b, c) = (self.source::<A>(1)?, self.source::<B>(2)?, self.source::<C>(3)?);
        let d = self.destination::<D>(0, self.signed())?;
        self.emit(Op { d, a, b, c, imm, ..self.op_of::<Ternary<F, D, A, B, C>>() });
        Ok(())
    }

    /// Emits `d = f(imm, a, b, c, e)`.
    pub fn quaternary<D: Lane, A: Lane, B: Lane, C: Lane, E: Lane, F: Fn(u64, A, B, C, E) -> D + Copy>(
        &mut self,
        imm: u64,
        _: F,
    ) -> Decoded {
        let (a, b) = (self.source::<A>(1)?, self.source::<B>(2)?);
        let (c, e) = (self.source::<C>(3)?, self.source::<E>(4)?);
        let d = self.destination::<D>(0, self.signed())?;
        self.emit(Op { d, a, b, c, e, imm, ..self.op_of::<Quaternary<F, D, A, B, C, E>>() });
        Ok(())
    }

    /// Emits `d = B(a, b)` on words of 32 bits.
    pub fn binary_by<B: Body>(&mut self) -> Decoded {
        let (a, b) = (self.source::<u32>(1)?, self.source::<u32>(2)?);
        let d = self.destination::<u32>(0, false)?;
        self.emit(Op { d, a, b, ..self.op_of::<B>() });
        Ok(())
    }

    /// Emits `d = B(a, b, c)` on words of 32 bits.
    pub fn ternary_by<B: Body>(&mut self) -> Decoded {
        let (a, b, c) = (self.source::<u32>(1)?, self.source::<u32>(2)?, self.source::<u32>(3)?);
        let d = self.destination::<u32>(0, false)?;
        self.emit(Op { d, a, b, c, ..self.op_of::<B>() });
        Ok(())
    }

    /// Emits `f` on registers given by number, to a register given by number.
    pub fn apply1<D: Lane, A: Lane, F: Fn(u64, A) -> D + Copy>(&mut self, d: i32, a: i32, imm: u64, _: F) {
        self.emit(Op { d, a, imm, ..self.op_of::<Unary<F, D, A>>() });
    }

    /// As `apply1`, of two operands.
    pub fn apply2<D: Lane, A: Lane, B: Lane, F: Fn(u64, A, B) -> D + Copy>(
        &mut self,
        d: i32,
        (a, b): (i32, i32),
        imm: u64,
        _: F,
    ) {
        self.emit(Op { d, a, b, imm, ..self.op_of::<Binary<F, D, A, B>>() });
    }

    /// Copies a row.
    pub fn copy<L: Lane>(&mut self, d: i32, a: i32) {
        self.apply1(d, a, 0, |_, x: L| x);
    }
}
