//! The machine code (SASS) that a disassembler lists, counted by opcode and by class.

use std::collections::BTreeMap;
use std::fmt;

/// How often each instruction stands in one function's machine code: places, not executions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SassMix {
    /// The (mangled) name of the entry or function whose section it is; functions that ptxas kept local to an entry
    /// count with it.
    pub name: String,
    /// Instructions, without the branch to itself that ends a function and the padding behind it.
    pub instructions: u32,
    /// By opcode, the word before the first dot.
    pub by_opcode: BTreeMap<String, u32>,
    /// By class.
    pub by_class: BTreeMap<SassClass, u32>,
}

/// Sorts of machine instructions, after the tables of NVIDIA's "CUDA Binary Utilities".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SassClass {
    /// Integer arithmetic and logic, address arithmetic among it.
    Integer,
    /// float32 arithmetic.
    Float32,
    /// Arithmetic of float16 and bfloat16 pairs.
    Float16,
    /// float64 arithmetic.
    Float64,
    /// Approximate functions (`MUFU`).
    SpecialFunction,
    /// Conversions between types.
    Conversion,
    /// Matrix products.
    TensorCore,
    /// Moves, selections, permutations, reads of special registers.
    Move,
    /// Predicates made of predicates.
    Predicate,
    /// Loads and stores through generic addresses.
    GenericMemory,
    /// Loads and stores of global memory.
    GlobalMemory,
    /// Loads and stores of shared memory.
    SharedMemory,
    /// Loads and stores of local memory, spills among them.
    LocalMemory,
    /// Loads of constants.
    ConstantMemory,
    /// Copies from global to shared memory and back that do not pass through registers.
    AsyncCopy,
    /// Atomics and reductions in memory.
    Atomic,
    /// Textures and surfaces.
    Texture,
    /// Exchange between the lanes of a warp: shuffles, votes, matches.
    WarpExchange,
    /// Barriers, fences, waits.
    Synchronisation,
    /// Branches, calls, exits.
    Control,
    /// Instructions of the uniform datapath: one result a warp.
    Uniform,
    /// Anything else.
    Other,
}

impl fmt::Display for SassClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SassClass::Integer => "integer",
            SassClass::Float32 => "float32",
            SassClass::Float16 => "float16",
            SassClass::Float64 => "float64",
            SassClass::SpecialFunction => "special function",
            SassClass::Conversion => "conversion",
            SassClass::TensorCore => "tensor core",
            SassClass::Move => "move",
            SassClass::Predicate => "predicate",
            SassClass::GenericMemory => "generic memory",
            SassClass::GlobalMemory => "global memory",
            SassClass::SharedMemory => "shared memory",
            SassClass::LocalMemory => "local memory",
            SassClass::ConstantMemory => "constant memory",
            SassClass::AsyncCopy => "asynchronous copy",
            SassClass::Atomic => "atomic",
            SassClass::Texture => "texture",
            SassClass::WarpExchange => "warp exchange",
            SassClass::Synchronisation => "synchronisation",
            SassClass::Control => "control",
            SassClass::Uniform => "uniform",
            SassClass::Other => "other",
        })
    }
}

impl SassClass {
    /// The class of an opcode, without its modifiers.
    pub fn of(opcode: &str) -> SassClass {
        use SassClass::*;
        match opcode {
            "MUFU" => SpecialFunction,
            "HMMA" | "IMMA" | "BMMA" | "DMMA" | "QMMA" | "OMMA" | "HGMMA" | "IGMMA" | "BGMMA" | "QGMMA" | "UTCHMMA"
            | "UTCIMMA" | "UTCQMMA" | "UTCOMMA" | "UTCMXQMMA" => TensorCore,
            "LD" | "ST" => GenericMemory,
            "LDG" | "STG" | "LDGMC" => GlobalMemory,
            "LDS" | "STS" | "LDSM" | "STSM" | "LDTM" | "STTM" => SharedMemory,
            "LDL" | "STL" => LocalMemory,
            "LDC" | "LDCU" | "ULDC" => ConstantMemory,
            "LDGSTS" | "UBLKCP" | "UBLKPF" | "UTMALDG" | "UTMASTG" | "UTMAPF" | "UTCCP" => AsyncCopy,
            "ATOM" | "ATOMS" | "ATOMG" | "RED" | "REDG" | "REDAS" | "UBLKRED" | "UTMAREDG" | "STAS" => Atomic,
            "TEX" | "TLD" | "TLD4" | "TMML" | "TXD" | "TXQ" | "SULD" | "SUST" | "SUATOM" | "SURED" | "SUQUERY" => {
                Texture
            }
            "SHFL" | "VOTE" | "VOTEU" | "MATCH" | "REDUX" | "CREDUX" | "ELECT" | "MOVM" => WarpExchange,
            "BAR" | "DEPBAR" | "LDGDEPBAR" | "MEMBAR" | "ERRBAR" | "FENCE" | "SYNCS" | "WARPGROUP" | "ARRIVES"
            | "UCGABAR_ARV" | "UCGABAR_WAIT" | "CGAERRBAR" | "CCTL" | "CCTLL" | "UTMACMDFLUSH" | "UTMACCTL"
            | "UTCBAR" | "ACQBULK" | "B2R" | "R2B" | "WARPSYNC" | "NANOSLEEP" => Synchronisation,
            "BRA" | "BRX" | "BRXU" | "JMP" | "JMX" | "JMXU" | "CALL" | "RET" | "EXIT" | "BREAK" | "BSSY" | "BSYNC"
            | "BMOV" | "KILL" | "BPT" | "RPCMOV" | "RTT" | "YIELD" | "PREEXIT" | "ENDCOLLECTIVE" | "WARPSYNCALL"
            | "RET_CONV" => Control,
            "MOV" | "MOV32I" | "PRMT" | "SEL" | "FSEL" | "S2R" | "CS2R" | "S2UR" | "R2UR" | "UR2R" | "SGXT"
            | "LEPC" | "GETLMEMBASE" => Move,
            "PLOP3" | "PSETP" | "P2R" | "R2P" | "UPLOP3" | "UPSETP" => Predicate,
            "F2F" | "F2I" | "F2IP" | "F2FP" | "I2F" | "I2FP" | "I2I" | "I2IP" | "FRND" => Conversion,
            "NOP" => Other,
            _ => match opcode.as_bytes().first() {
                Some(b'F') => Float32,
                Some(b'H') => Float16,
                Some(b'D') => Float64,
                Some(b'U') => Uniform,
                Some(b'I' | b'L' | b'S' | b'V' | b'P' | b'B') => Integer,
                _ => Other,
            },
        }
    }
}

/// Counts what `nvdisasm -c` or `cuobjdump -sass` printed, by function, in their order.
pub fn read_sass(text: &str) -> Vec<SassMix> {
    let mut listings: Vec<Listing> = Vec::new();
    let mut label = "";
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = section(line) {
            listings.push(Listing { name, opcodes: Vec::new() });
        } else if let (Some((address, instruction)), Some(listing)) = (instruction(line), listings.last_mut()) {
            listing.opcodes.extend(opcode(instruction).map(|opcode| (opcode, loops(instruction, address, label))));
            label = "";
        } else if let Some(name) = line.strip_suffix(':') {
            label = name;
        }
    }
    listings.into_iter().filter(|listing| !listing.opcodes.is_empty()).map(Listing::count).collect()
}

struct Listing<'text> {
    name: &'text str,
    /// Every opcode, and whether it is a branch to itself.
    opcodes: Vec<(&'text str, bool)>,
}

impl Listing<'_> {
    fn count(mut self) -> SassMix {
        let code = self.opcodes.iter().rposition(|(opcode, _)| *opcode != "NOP").map_or(0, |last| last + 1);
        self.opcodes.truncate(code);
        if self.opcodes.last().is_some_and(|(_, to_itself)| *to_itself) {
            self.opcodes.pop();
        }
        let mut mix = SassMix { name: self.name.to_owned(), ..SassMix::default() };
        mix.instructions = u32::try_from(self.opcodes.len()).unwrap_or(u32::MAX);
        for (opcode, _) in self.opcodes {
            *mix.by_opcode.entry(opcode.to_owned()).or_default() += 1;
            *mix.by_class.entry(SassClass::of(opcode)).or_default() += 1;
        }
        mix
    }
}

/// The name in `.section .text.name,"ax",@progbits` (nvdisasm) or `Function : name` (cuobjdump).
fn section(line: &str) -> Option<&str> {
    if let Some(name) = line.strip_prefix("Function : ") {
        return Some(name.trim());
    }
    let rest = line.strip_prefix(".section")?.trim_start();
    rest.strip_prefix(".text.").and_then(|rest| rest.split(',').next())
}

/// The address and the text of `/*00a0*/  @P0 LDS R5, [R4] ;`.
fn instruction(line: &str) -> Option<(u64, &str)> {
    let (address, rest) = line.strip_prefix("/*")?.split_once("*/")?;
    let address = u64::from_str_radix(address.trim_start_matches("0x"), 16).ok()?;
    let text = rest.split(';').next()?.trim().trim_start_matches(['{', ' ']);
    (!text.is_empty()).then_some((address, text))
}

/// The word behind a predicate, up to its first dot.
fn opcode(instruction: &str) -> Option<&str> {
    let mut words = instruction.split_whitespace();
    let word = words.next()?;
    let word = if word.starts_with('@') { words.next()? } else { word };
    let opcode = word.split('.').next()?;
    let first = opcode.chars().next()?;
    (first.is_ascii_uppercase()).then_some(opcode)
}

/// Whether it branches to its own address, or to the label that stands right before it.
fn loops(instruction: &str, address: u64, label: &str) -> bool {
    let Some(target) = instruction.strip_prefix("BRA ") else { return false };
    let target = target.trim().trim_start_matches("`(").trim_end_matches(')');
    match target.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16) == Ok(address),
        None => !label.is_empty() && target == label,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NVDISASM: &str = "\
\t.target\tsm_80
//--------------------- .text.dyn                 --------------------------
\t.section\t.text.dyn,\"ax\",@progbits
        .type           dyn,@function
dyn:
.text.dyn:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   S2R R7, SR_TID.X ;
        /*0020*/                   HFMA2.MMA R2, -RZ, RZ, 0, 2.384185791015625e-07 ;
        /*0030*/                   ULDC.64 UR4, c[0x0][0x118] ;
        /*0040*/                   IMAD.WIDE.U32 R2, R7, R2, c[0x0][0x160] ;
        /*0050*/              @!P0 LDG.E R0, [R2.64] ;
        /*0060*/                   STS [R7.X4], R0 ;
        /*0070*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
.L_x_1:
        /*0080*/               @P0 BRA `(.L_x_1) ;
        /*0090*/                   EXIT ;
.L_x_0:
        /*00a0*/                   BRA `(.L_x_0);
        /*00b0*/                   NOP;
        /*00c0*/                   NOP;
.L_x_7:
\t.section\t.nv.info,\"\",@\"SHT_CUDA_INFO\"
\t.section\t.text.other,\"ax\",@progbits
        /*0000*/                   NOP;
        /*0010*/                   DFMA R2, R2, R4, R6 ;
";
    const CUOBJDUMP: &str = "
\tcode for sm_80
\t\tFunction : dyn
\t.headerflags\t@\"EF_CUDA_SM80\"
        /*0000*/                   STG.E [R2.64], R5 ;       /* 0x0000000502007986 */
                                                             /* 0x001fe2000c101904 */
        /*0010*/                   EXIT ;                    /* 0x000000000000794d */
        /*0020*/                   BRA 0x20;                 /* 0xfffffff000007947 */
        /*0030*/                   NOP;                      /* 0x0000000000007918 */
";

    fn words(mix: &SassMix) -> String {
        mix.by_opcode.iter().map(|(opcode, count)| format!("{opcode}={count}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn what_nvdisasm_prints() {
        let mixes = read_sass(NVDISASM);
        assert_eq!(
            mixes.iter().map(|mix| (mix.name.as_str(), mix.instructions)).collect::<Vec<_>>(),
            [("dyn", 10), ("other", 2)]
        );
        assert_eq!(words(&mixes[0]), "BAR=1 BRA=1 EXIT=1 HFMA2=1 IMAD=1 LDG=1 MOV=1 S2R=1 STS=1 ULDC=1");
        assert_eq!(mixes[0].by_class.get(&SassClass::Move), Some(&2));
        assert_eq!(mixes[0].by_class.get(&SassClass::Control), Some(&2));
        assert_eq!(words(&mixes[1]), "DFMA=1 NOP=1");
    }

    #[test]
    fn what_cuobjdump_prints() {
        let mixes = read_sass(CUOBJDUMP);
        assert_eq!((mixes.len(), mixes[0].instructions), (1, 2));
        assert_eq!(words(&mixes[0]), "EXIT=1 STG=1");
    }

    #[test]
    fn every_opcode_has_a_class() {
        for (opcode, class) in [
            ("FFMA", SassClass::Float32),
            ("FADD2", SassClass::Float32),
            ("HADD2", SassClass::Float16),
            ("DSETP", SassClass::Float64),
            ("IMAD", SassClass::Integer),
            ("LOP3", SassClass::Integer),
            ("LEA", SassClass::Integer),
            ("SHF", SassClass::Integer),
            ("POPC", SassClass::Integer),
            ("VIADD", SassClass::Integer),
            ("UIADD3", SassClass::Uniform),
            ("F2FP", SassClass::Conversion),
            ("HGMMA", SassClass::TensorCore),
            ("LDGSTS", SassClass::AsyncCopy),
            ("LDSM", SassClass::SharedMemory),
            ("ATOMG", SassClass::Atomic),
            ("SHFL", SassClass::WarpExchange),
            ("MUFU", SassClass::SpecialFunction),
            ("STL", SassClass::LocalMemory),
        ] {
            assert_eq!(SassClass::of(opcode), class, "{opcode}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn anything_is_read(text in "(/\\*|\\*/|[0-9a-f]{1,20}|@P0 |BRA |0x| ;|NOP|\\.section|\\.text\\.|Function : |,|\n| |`\\(|:|é)*") {
            read_sass(&text);
        }
    }
}
