//! Matrices in fragments: `ldmatrix`, `stmatrix`, `movmatrix`, `mma`, `wmma`.

mod fragments;
mod mma;
mod product;
mod quad_pairs;
mod rows;
mod sparse;
mod wmma;

use crate::emulate::decode::{Decoded, Decoder};
use crate::program::Opcode;

/// Decodes one.
pub fn decode(d: &mut Decoder<'_>) -> Decoded {
    match d.opcode() {
        Opcode::Ldmatrix | Opcode::Stmatrix | Opcode::Movmatrix => rows::decode(d),
        Opcode::Mma => mma::decode(d),
        _ => wmma::decode(d),
    }
}
