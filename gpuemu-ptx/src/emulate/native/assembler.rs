//! The instructions of x86-64 that rows of lanes are worked on with: AVX2, and what little stands around it.
//!
//! Encodings after the Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.

/// A vector register: `ymm0` to `ymm15`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ymm(pub u8);

/// A register of 32 bits that predicates are put together in: `r9d` to `r11d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(pub u8);

/// A register that memory is addressed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// `rdi`: the first row of the frame.
    Frame = 7,
    /// `rsi`: one past the last constant.
    Constants = 6,
    /// `rdx`: the first predicate of the frame.
    Truths = 2,
}

/// How far a loop over parts of a row has come, in bytes of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Index {
    /// Not in a loop.
    None,
    /// `rax`: 32 bytes a part.
    Once,
    /// `2 * rax`: 64 bytes a part.
    Twice,
    /// `r8`: a byte a part.
    Bytes,
}

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// What it is counted from.
    pub base: Base,
    /// What is added in a loop.
    pub index: Index,
    /// Bytes to add.
    pub offset: i32,
}

/// The last operand of most instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Register(Ymm),
    /// Memory, of any alignment.
    Memory(Memory),
    /// 32 bytes in the pool before the code, by their offset.
    Pool(u32),
}

impl From<Ymm> for Operand {
    fn from(register: Ymm) -> Self {
        Self::Register(register)
    }
}

/// An instruction in the VEX encoding: which table of opcodes, which prefix, the `W` bit, the opcode.
#[derive(Clone, Copy, Debug)]
pub struct Vex(u8, u8, u8, u8);

macro_rules! vex {
    ($($(#[$doc:meta])* $name:ident = $map:literal, $prefix:literal, $w:literal, $opcode:literal;)*) => {
        impl Vex {
            $($(#[$doc])* pub const $name: Self = Self($map, $prefix, $w, $opcode);)*
        }
    };
}

// Tables: 1 is 0F, 2 is 0F38, 3 is 0F3A. Prefixes: 1 is 66.
vex! {
    /// `vmovups`, from memory.
    LOAD = 1, 0, 0, 0x10;
    /// `vmovups`, to memory.
    STORE = 1, 0, 0, 0x11;
    /// `vmovaps`, between registers.
    MOVE = 1, 0, 0, 0x28;
    /// `vmovmskps`.
    SIGNS = 1, 0, 0, 0x50;
    /// `vandps`.
    AND_FLOAT = 1, 0, 0, 0x54;
    /// `vorps`.
    OR_FLOAT = 1, 0, 0, 0x56;
    /// `vxorps`.
    XOR_FLOAT = 1, 0, 0, 0x57;
    /// `vaddps`.
    ADD_FLOAT = 1, 0, 0, 0x58;
    /// `vmulps`.
    MULTIPLY_FLOAT = 1, 0, 0, 0x59;
    /// `vcvtdq2ps`.
    TO_FLOAT = 1, 0, 0, 0x5b;
    /// `vsubps`.
    SUBTRACT_FLOAT = 1, 0, 0, 0x5c;
    /// `vminps`.
    MIN_FLOAT = 1, 0, 0, 0x5d;
    /// `vmaxps`.
    MAX_FLOAT = 1, 0, 0, 0x5f;
    /// `vcmpps`, with a predicate.
    COMPARE_FLOAT = 1, 0, 0, 0xc2;
    /// `vshufps`, with a selector.
    SHUFFLE_FLOAT = 1, 0, 0, 0xc6;
    /// `vfmadd213ps`: d = b * d + c.
    FMA = 2, 1, 0, 0xa8;
    /// `vblendvps`, with the register of the mask in the high half of the last byte: the third where it is set.
    BLEND = 3, 1, 0, 0x4a;
    /// `vpcmpgtd`.
    GREATER = 1, 1, 0, 0x66;
    /// `vpcmpeqd`.
    EQUAL = 1, 1, 0, 0x76;
    /// `vpand`.
    AND = 1, 1, 0, 0xdb;
    /// `vpor`.
    OR = 1, 1, 0, 0xeb;
    /// `vpxor`.
    XOR = 1, 1, 0, 0xef;
    /// `vpaddd`.
    ADD = 1, 1, 0, 0xfe;
    /// `vpsubd`.
    SUBTRACT = 1, 1, 0, 0xfa;
    /// `vpaddq`.
    ADD_WIDE = 1, 1, 0, 0xd4;
    /// `vpsubq`.
    SUBTRACT_WIDE = 1, 1, 0, 0xfb;
    /// `vpmuludq`.
    MULTIPLY_UNSIGNED = 1, 1, 0, 0xf4;
    /// `vpmuldq`.
    MULTIPLY_SIGNED = 2, 1, 0, 0x28;
    /// `vpmovsxdq`.
    EXTEND_SIGNED = 2, 1, 0, 0x25;
    /// `vpmovzxdq`.
    EXTEND_UNSIGNED = 2, 1, 0, 0x35;
    /// `vpminsd`.
    MIN_SIGNED = 2, 1, 0, 0x39;
    /// `vpminud`.
    MIN_UNSIGNED = 2, 1, 0, 0x3b;
    /// `vpmaxsd`.
    MAX_SIGNED = 2, 1, 0, 0x3d;
    /// `vpmaxud`.
    MAX_UNSIGNED = 2, 1, 0, 0x3f;
    /// `vpmulld`.
    MULTIPLY = 2, 1, 0, 0x40;
    /// `vpsrlvd`: zero for 32 bits and more.
    SHIFT_RIGHT = 2, 1, 0, 0x45;
    /// `vpsravd`: the sign for 32 bits and more.
    SHIFT_SIGNED = 2, 1, 0, 0x46;
    /// `vpsllvd`.
    SHIFT_LEFT = 2, 1, 0, 0x47;
    /// `vpsrlvq`.
    SHIFT_RIGHT_WIDE = 2, 1, 1, 0x45;
    /// `vpsllvq`.
    SHIFT_LEFT_WIDE = 2, 1, 1, 0x47;
    /// `vpbroadcastb`.
    BROADCAST_BYTE = 2, 1, 0, 0x78;
    /// `vpermilps`, with a selector: within halves.
    PERMUTE_INSIDE = 3, 1, 0, 0x04;
    /// `vpermq`, with a selector.
    PERMUTE_WIDE = 3, 1, 1, 0x00;
    /// `vextracti128`, with the half; the result is the last operand.
    HALF = 3, 1, 0, 0x39;
}

/// Code being written, behind its pool of constants.
pub struct Assembler {
    code: Vec<u8>,
}

impl Assembler {
    /// Behind a pool of vectors, each a word eight times or eight words.
    pub fn new(pool: &[[u32; 8]]) -> Self {
        Self { code: pool.iter().flatten().flat_map(|word| word.to_le_bytes()).collect() }
    }

    /// Where the next instruction begins.
    pub fn place(&self) -> usize {
        self.code.len()
    }

    /// What was written.
    pub fn finish(self) -> Vec<u8> {
        self.code
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.code.extend_from_slice(bytes);
    }

    /// Writes the byte that names registers and the place in memory, as far as `SIB` and displacement. `behind` is how many
    /// bytes of the instruction follow.
    fn place_of(&mut self, register: u8, operand: Operand, behind: i32) {
        let register = (register & 7) << 3;
        match operand {
            Operand::Register(Ymm(other)) => self.bytes(&[0xc0 | register | other & 7]),
            Operand::Pool(offset) => {
                self.bytes(&[register | 5]);
                let next = self.code.len() as i32 + 4 + behind;
                self.bytes(&(offset as i32 - next).to_le_bytes());
            }
            Operand::Memory(Memory { base, index, offset }) => {
                let scaled = match index {
                    Index::None => None,
                    // The bit that makes it r8 stands in the prefix.
                    Index::Once | Index::Bytes => Some(0x00),
                    Index::Twice => Some(0x40),
                };
                let short = i8::try_from(offset).ok();
                let form = if short.is_some() { 0x40 } else { 0x80 };
                match scaled {
                    None => self.bytes(&[form | register | base as u8]),
                    Some(scale) => self.bytes(&[form | register | 4, scale | base as u8]),
                }
                match short {
                    Some(short) => self.bytes(&short.to_le_bytes()),
                    None => self.bytes(&offset.to_le_bytes()),
                }
            }
        }
    }

    fn encode(&mut self, Vex(map, prefix, w, opcode): Vex, d: u8, a: u8, b: Operand, last: Option<u8>) {
        let high = match b {
            Operand::Register(Ymm(register)) => register >> 3,
            _ => 0,
        };
        let indexed = match b {
            Operand::Memory(memory) => u8::from(memory.index == Index::Bytes),
            _ => 0,
        };
        // R, X and B stand inverted, and so does the register in the middle.
        let first = (!(d >> 3) & 1) << 7 | (!indexed & 1) << 6 | (!high & 1) << 5 | map;
        let second = w << 7 | (!a & 15) << 3 | 1 << 2 | prefix;
        if indexed | high | w == 0 && map == 1 {
            self.bytes(&[0xc5, first & 0x80 | second & 0x7f, opcode]);
        } else {
            self.bytes(&[0xc4, first, second, opcode]);
        }
        self.place_of(d, b, i32::from(last.is_some()));
        self.code.extend(last);
    }

    /// `d = b`, or `b = d` of a store.
    pub fn one(&mut self, vex: Vex, Ymm(d): Ymm, b: impl Into<Operand>) {
        self.encode(vex, d, 0, b.into(), None);
    }

    /// As `one`, with a selector.
    pub fn one_by(&mut self, vex: Vex, Ymm(d): Ymm, b: impl Into<Operand>, selector: u8) {
        self.encode(vex, d, 0, b.into(), Some(selector));
    }

    /// `d = a, b`.
    pub fn two(&mut self, vex: Vex, Ymm(d): Ymm, Ymm(a): Ymm, b: impl Into<Operand>) {
        self.encode(vex, d, a, b.into(), None);
    }

    /// As `two`, with a selector.
    pub fn two_by(&mut self, vex: Vex, Ymm(d): Ymm, Ymm(a): Ymm, b: impl Into<Operand>, selector: u8) {
        self.encode(vex, d, a, b.into(), Some(selector));
    }

    /// `d = mask ? b : a`.
    pub fn blend(&mut self, d: Ymm, a: Ymm, b: impl Into<Operand>, Ymm(mask): Ymm) {
        self.two_by(Vex::BLEND, d, a, b, mask << 4);
    }

    /// `movmskps ecx, a`.
    pub fn signs(&mut self, a: Ymm, inverted: bool) {
        self.encode(Vex::SIGNS, 1, 0, a.into(), None);
        if inverted {
            // not ecx
            self.bytes(&[0xf7, 0xd1]);
        }
    }

    /// `mov memory, cl`.
    pub fn store_byte(&mut self, memory: Memory) {
        if memory.index == Index::Bytes {
            self.bytes(&[0x42]);
        }
        self.bytes(&[0x88]);
        self.place_of(1, Operand::Memory(memory), 0);
    }

    /// Shifts a word to the right by a byte and puts the low byte of `ecx` on top, which is lost.
    pub fn push_byte(&mut self, Word(word): Word) {
        // shr word, 8; shl ecx, 24; or word, ecx
        self.bytes(&[0x41, 0xc1, 0xe8 | word & 7, 8, 0xc1, 0xe1, 24, 0x41, 0x09, 0xc8 | word & 7]);
    }

    /// `mov memory, word`.
    pub fn store_bytes(&mut self, Word(word): Word, memory: Memory) {
        self.bytes(&[0x44, 0x89]);
        self.place_of(word, Operand::Memory(memory), 0);
    }

    /// `mov eax, memory`, or `ecx`.
    pub fn load_word(&mut self, second: bool, memory: Memory, inverted: bool) {
        self.bytes(&[0x8b]);
        self.place_of(u8::from(second), Operand::Memory(memory), 0);
        if inverted {
            self.bytes(&[0xf7, 0xd0 | u8::from(second)]);
        }
    }

    /// `eax = eax op ecx`: 0x21 and, 0x09 or, 0x31 exclusive or.
    pub fn combine_words(&mut self, opcode: u8) {
        self.bytes(&[opcode, 0xc8]);
    }

    /// `mov memory, eax`.
    pub fn store_word(&mut self, memory: Memory) {
        self.bytes(&[0x89]);
        self.place_of(0, Operand::Memory(memory), 0);
    }

    /// Begins a loop over the four parts of a row: `rax` and `r8` count. Gives the place that it comes back to.
    pub fn begin_loop(&mut self) -> usize {
        // xor eax, eax; xor r8d, r8d
        self.bytes(&[0x31, 0xc0, 0x45, 0x31, 0xc0]);
        self.place()
    }

    /// Ends it.
    pub fn end_loop(&mut self, begin: usize) {
        // add eax, 32; inc r8d; cmp r8d, 4; jne begin
        self.bytes(&[0x83, 0xc0, 0x20, 0x41, 0xff, 0xc0, 0x41, 0x83, 0xf8, 0x04, 0x0f, 0x85]);
        let back = begin as i32 - (self.place() as i32 + 4);
        self.bytes(&back.to_le_bytes());
    }

    /// Ends a function.
    pub fn end(&mut self) {
        // vzeroupper; ret
        self.bytes(&[0xc5, 0xf8, 0x77, 0xc3]);
    }
}
