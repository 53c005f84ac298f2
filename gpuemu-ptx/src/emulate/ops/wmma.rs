//! `wmma`: fragments whose layout only the machine knows.

use crate::emulate::decode::{Decoded, Decoder, refuse};

/// Decodes one.
pub fn decode(_: &mut Decoder<'_>) -> Decoded {
    refuse("`wmma` is not executed yet")
}
