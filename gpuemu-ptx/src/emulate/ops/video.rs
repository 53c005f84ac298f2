//! Video instructions.

use crate::emulate::decode::{Decoded, Decoder, refuse};

/// Decodes one.
pub fn decode(_: &mut Decoder<'_>) -> Decoded {
    refuse("video instructions are not executed yet")
}
