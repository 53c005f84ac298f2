//! Constants in all lanes.

use rustc_hash::FxHashMap;

use crate::emulate::registers::{LANES, Lane, Row};

/// Constants, each once.
#[derive(Default)]
pub(super) struct Constants {
    /// In reverse: row -1 is the first.
    pub(super) rows: Vec<Row>,
    known: FxHashMap<(u32, u128), i32>,
}

impl Constants {
    pub(super) fn get<L: Lane>(&mut self, bits: u128) -> i32 {
        let rows = L::ROWS as u32;
        let next = -(self.rows.len() as i32) - rows as i32;
        // As the register holds it: -1 of 16 bits is another constant than -1 of 32.
        let bits: u128 = L::stored(bits).into();
        *self.known.entry((rows, bits)).or_insert_with(|| {
            let mut made = [Row([0; LANES]); 4];
            // SAFETY: four rows are room for 32 lanes of up to 128 bits, and aligned enough.
            let lanes = unsafe { &mut *made.as_mut_ptr().cast::<[L::Store; LANES]>() };
            *lanes = [L::stored(bits); LANES];
            self.rows.extend(made[..rows as usize].iter().rev());
            next
        })
    }
}
