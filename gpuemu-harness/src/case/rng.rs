//! Streams of random words: how a seed becomes the bits that fill a tensor.
//!
//! Everything is written down so far that another implementation can regenerate the same bits:
//!
//! - **Stream seeds.** [`derive()`]: the 8-byte BLAKE2b digest (unkeyed, RFC 7693) of the parent seed's eight
//!   little-endian bytes followed by the stream's name in UTF-8, read as a little-endian number.
//! - **Case seed**: `derive(seed, "op/dtype/strategy/index")`, the index in decimal.
//! - **Input seed**: `derive(case seed, input name)`.
//! - **SplitMix64** (Steele, Lea and Flood 2014, constants of Vigna's public-domain code): output `i`, counted from 0, of
//!   seed `s` mixes `s + (i + 1) * 0x9e3779b97f4a7c15`.
//! - **xorshift128+** (Vigna, "Further scramblings of Marsaglia's xorshift generators", shifts 23, 17, 26, the sum taken
//!   after the step). Its two state words are filled by two successive SplitMix64 outputs.
//! - **Block words.** A tensor is filled in blocks of 4,096 elements, in row-major order. Block `k` has the seed
//!   `derive(input seed, "block k")`, `k` in decimal. Eight xorshift128+ generators stand side by side: lane `j` has the
//!   SplitMix64 outputs `2j` and `2j + 1` of that seed as its state, and word `i` of the block is the next output of lane
//!   `i % 8`.
//! - A draw of at most 32 bits takes half a word: element `e` of the block takes the low half of word `e / 2` when `e` is
//!   even, the high half when it is odd. A wider draw takes word `e`. Which draws are wide is said in [`super::values`].

use blake2::digest::consts::U8;
use blake2::{Blake2b, Digest};

/// Elements in a block.
pub const BLOCK: usize = 4096;
/// Generators side by side in a block.
pub const LANES: usize = 8;

/// The seed of the stream `name` below `parent`.
pub fn derive(parent: u64, name: &str) -> u64 {
    let digest = Blake2b::<U8>::new().chain_update(parent.to_le_bytes()).chain_update(name).finalize();
    u64::from_le_bytes(digest.into())
}

/// The seed of block `number` of an input.
pub fn block_seed(input: u64, number: usize) -> u64 {
    derive(input, &format!("block {number}"))
}

/// Output `i` (from 0) of SplitMix64 seeded with `seed`.
#[inline]
pub fn splitmix(seed: u64, i: u64) -> u64 {
    let mut z = seed.wrapping_add(i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// SplitMix64 as a sequence.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    seed: u64,
    next: u64,
}

impl SplitMix64 {
    /// The sequence of `seed`, from its first output.
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64 { seed, next: 0 }
    }

    /// The next output.
    pub fn next_word(&mut self) -> u64 {
        let word = splitmix(self.seed, self.next);
        self.next += 1;
        word
    }

    /// The next output, scaled to `0..bound` (see [`scale`]). `bound` is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        scale(self.next_word(), bound)
    }
}

/// The high 64 bits of `word * bound`: a number in `0..bound`.
#[inline]
pub fn scale(word: u64, bound: u64) -> u64 {
    ((u128::from(word) * u128::from(bound)) >> 64) as u64
}

/// One xorshift128+ generator.
#[derive(Clone, Debug)]
pub struct XorShift128Plus {
    state: [u64; 2],
}

impl XorShift128Plus {
    /// A generator whose state is filled by SplitMix64 from `seed`.
    pub fn new(seed: u64) -> XorShift128Plus {
        XorShift128Plus { state: [splitmix(seed, 0), splitmix(seed, 1)] }
    }

    /// The next output.
    #[inline]
    pub fn next_word(&mut self) -> u64 {
        let [low, high] = &mut self.state;
        step(low, high)
    }
}

#[inline(always)]
fn step(low: &mut u64, high: &mut u64) -> u64 {
    let mut s1 = *low;
    let s0 = *high;
    *low = s0;
    s1 ^= s1 << 23;
    *high = s1 ^ s0 ^ (s1 >> 17) ^ (s0 >> 26);
    high.wrapping_add(s0)
}

/// Eight xorshift128+ generators side by side: the words of one block.
#[derive(Clone, Debug)]
pub struct Lanes {
    low: [u64; LANES],
    high: [u64; LANES],
}

impl Lanes {
    /// The lanes of the block with this seed.
    pub fn new(block_seed: u64) -> Lanes {
        let mut lanes = Lanes { low: [0; LANES], high: [0; LANES] };
        for lane in 0..LANES {
            lanes.low[lane] = splitmix(block_seed, 2 * lane as u64);
            lanes.high[lane] = splitmix(block_seed, 2 * lane as u64 + 1);
        }
        lanes
    }

    /// The next word of every lane.
    #[inline(always)]
    pub fn next_words(&mut self) -> [u64; LANES] {
        let mut words = [0; LANES];
        for ((word, low), high) in words.iter_mut().zip(&mut self.low).zip(&mut self.high) {
            *word = step(low, high);
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix64_gives_the_published_outputs() {
        // Seed 1234567: the reference outputs listed with the algorithm on Rosetta Code ("Pseudo-random numbers/Splitmix64").
        let expected =
            [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821];
        let mut stream = SplitMix64::new(1234567);
        assert_eq!(expected.map(|_| stream.next_word()), expected);
        // Seed 0, from the test suites of several libraries.
        assert_eq!(splitmix(0, 0), 0xe220a8397b1dcdaf);
        assert_eq!(splitmix(0, 1), 0x6e789e6aa1b965f4);
    }

    #[test]
    fn xorshift128plus_gives_the_outputs_of_the_published_text() {
        // Computed outside of this code from the published C text; the first of state (1, 2) by hand:
        // s1 = 1 ^ 1 << 23 = 0x800001; 0x800001 ^ 2 ^ 0x40 ^ 0 = 0x800043; plus 2 is 8388677.
        let expected = [8388677, 33554692, 70368777736387, 211106267148357, 281509366091972, 360777324180299];
        let mut generator = XorShift128Plus { state: [1, 2] };
        assert_eq!(expected.map(|_| generator.next_word()), expected);
        let expected = [12618900322348487378, 13639555000553200875, 10127226059668577270, 6068671050346012240];
        let mut generator = XorShift128Plus::new(42);
        assert_eq!(expected.map(|_| generator.next_word()), expected);
    }

    #[test]
    fn stream_seeds_are_blake2b_digests() {
        // Python: int.from_bytes(hashlib.blake2b(parent.to_bytes(8, "little") + name, digest_size=8).digest(), "little")
        let table = [
            (42, "softmax/float32/boundary/0", 0x3efb38782705d113),
            (0, "", 0x18cc49ca5bea08ca),
            (u64::MAX, "x", 0xf270f1322a9954dd),
        ];
        for (parent, name, seed) in table {
            assert_eq!(derive(parent, name), seed, "{parent} {name}");
        }
        let plain = Blake2b::<U8>::digest(b"abc");
        assert_eq!(u64::from_le_bytes(plain.into()), 0x5995d533d814bbd8);
    }

    #[test]
    fn lanes_are_generators_side_by_side() {
        let mut lanes = Lanes::new(7);
        let words: Vec<u64> = (0..3).flat_map(|_| lanes.next_words()).collect();
        for lane in 0..LANES {
            let state = [splitmix(7, 2 * lane as u64), splitmix(7, 2 * lane as u64 + 1)];
            let mut alone = XorShift128Plus { state };
            for round in 0..3 {
                assert_eq!(words[round * LANES + lane], alone.next_word(), "lane {lane}, round {round}");
            }
        }
    }

    #[test]
    fn scaling_reaches_both_ends() {
        assert_eq!((scale(0, 10), scale(u64::MAX, 10), scale(1 << 63, 10)), (0, 9, 5));
    }
}
