//! Local memory: the stacks of the threads of one block.

use super::LANES;
use super::access::{self, Alone, Element, Problem, View};
use super::backing::Backing;
use super::shadow::bits::Bits;

/// What a thread reads where it wrote nothing, little-endian: NaN in binary32, binary16 (its upper half) and bfloat16,
/// and far from any sensible number as an integer.
const POISON: [u8; 4] = 0x7fc0_dead_u32.to_le_bytes();

/// Local memory of the threads of a block, the same number of bytes for each. Addresses are those of the local space,
/// from 0 for every thread; nothing is taken from the host until it is touched.
#[derive(Debug)]
pub struct Local {
    backing: Backing,
    bytes: u64,
    /// From one thread's memory to the next one's.
    stride: u64,
    threads: u32,
    /// While sanitizers are on: the bytes that something wrote.
    written: Option<Bits>,
}

impl Local {
    /// So many bytes for each of so many threads, rounded up to whole warps. `None` where the host has no room.
    pub fn new(bytes: u32, threads: u32) -> Option<Self> {
        let stride = u64::from(bytes).next_multiple_of(16);
        let threads = threads.next_multiple_of(LANES as u32);
        let backing = Backing::zeroed(stride * u64::from(threads))?;
        Some(Self { backing, bytes: bytes.into(), stride, threads, written: None })
    }

    /// Remembers from now on which bytes threads write. `None` where the host has no room.
    pub fn watch(&mut self) -> Option<()> {
        self.written = Some(Bits::new(self.stride * u64::from(self.threads))?);
        Some(())
    }

    fn thread(&self, warp: u32, lane: usize) -> u64 {
        (u64::from(warp) * LANES as u64 + lane as u64) * self.stride
    }

    /// A frame of so many bytes begins at an address, for lanes of a warp: nothing is written there.
    pub fn enter(&mut self, warp: u32, mask: u32, from: u64, bytes: u64) {
        let from = from.min(self.bytes);
        let bytes = bytes.min(self.bytes - from);
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            let start = self.thread(warp, lane);
            if let Some(written) = &mut self.written {
                written.remove(start + from, bytes);
            }
        }
    }

    /// A block begins: nothing is written anywhere.
    pub fn reset(&mut self) {
        if let Some(written) = &mut self.written {
            written.remove(0, self.stride * u64::from(self.threads));
        }
    }

    /// Puts [`POISON`] in the place of bytes that the lanes' threads did not write, while that is watched.
    #[inline(never)]
    fn poison<T: Element, const N: usize>(
        &self,
        written: &Bits,
        places: &[u64; LANES],
        mask: u32,
        out: &mut [[T; LANES]; N],
    ) {
        let size = size_of::<T>();
        for lane in (0..LANES).filter(|lane| mask >> lane & 1 != 0) {
            for (element, row) in out.iter_mut().enumerate() {
                let at = places[lane] + (element * size) as u64;
                let missing = !written.among(at, size as u32);
                for byte in (0..size).filter(|byte| missing >> byte & 1 != 0) {
                    // SAFETY: within an element, whose every pattern of bytes is one.
                    unsafe { (&raw mut row[lane]).cast::<u8>().add(byte).write(POISON[(at as usize + byte) % 4]) };
                }
            }
        }
    }

    /// Bytes of one thread.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The places of lanes in one view of the whole, and the lanes that do not fit their own thread's memory.
    #[inline(always)]
    fn places(&self, warp: u32, addresses: &[u64; LANES], mask: u32, width: u64) -> Option<[u64; LANES]> {
        assert!((warp + 1) * LANES as u32 <= self.threads, "a warp of another block");
        let view = View { base: 0, bytes: self.bytes, host: std::ptr::null_mut() };
        if !access::fits(view, addresses, mask, width) {
            return None;
        }
        let first = u64::from(warp) * LANES as u64 * self.stride;
        Some(std::array::from_fn(|lane| addresses[lane].wrapping_add(first + lane as u64 * self.stride)))
    }

    #[inline(always)]
    fn view(&self) -> View {
        View { base: 0, bytes: self.stride * u64::from(self.threads), host: self.backing.start().as_ptr() }
    }

    #[cold]
    #[inline(never)]
    fn problem(&self, addresses: &[u64; LANES], mask: u32, width: u64) -> Problem {
        let view = View { base: 0, bytes: self.bytes, host: std::ptr::null_mut() };
        access::blame(view, addresses, mask, width).expect("some lane does not fit")
    }

    /// Loads `N` elements of every lane of a warp that takes part; the other lanes of `out` stay.
    ///
    /// # Errors
    ///
    /// The first lane past the end, or not aligned to all its bytes. Nothing is loaded then.
    #[inline(always)]
    pub fn load<T: Element, const N: usize>(
        &self,
        warp: u32,
        addresses: &[u64; LANES],
        mask: u32,
        out: &mut [[T; LANES]; N],
    ) -> Result<(), Problem> {
        let width = (size_of::<T>() * N) as u64;
        match self.places(warp, addresses, mask, width) {
            // SAFETY: the view is all of this memory, and `self` keeps writers out.
            Some(places) if unsafe { access::load::<T, N, Alone>(self.view(), &places, mask, out) } => {
                if let Some(written) = &self.written {
                    self.poison(written, &places, mask, out);
                }
                Ok(())
            }
            _ => Err(self.problem(addresses, mask, width)),
        }
    }

    /// Stores `N` elements of every lane of a warp that takes part.
    ///
    /// # Errors
    ///
    /// As for a load. Nothing is stored then.
    #[inline(always)]
    pub fn store<T: Element, const N: usize>(
        &mut self,
        warp: u32,
        addresses: &[u64; LANES],
        mask: u32,
        values: &[[T; LANES]; N],
    ) -> Result<(), Problem> {
        let width = (size_of::<T>() * N) as u64;
        match self.places(warp, addresses, mask, width) {
            // SAFETY: the view is all of this memory, and `self` is borrowed alone.
            Some(places) if unsafe { access::store::<T, N, Alone>(self.view(), &places, mask, values) } => {
                if let Some(written) = &self.written {
                    let lanes = (0..LANES).filter(|lane| mask >> lane & 1 != 0);
                    lanes.for_each(|lane| written.insert(places[lane], width));
                }
                Ok(())
            }
            _ => Err(self.problem(addresses, mask, width)),
        }
    }
}
