//! Which modifiers an opcode takes and what its operands are, as a table.
//!
//! The table is generous: a combination that PTX would not have is accepted where the words are the opcode's own, since
//! compilers are ahead of their manuals. What cannot be executed is refused when it is to be.

use std::sync::OnceLock;

use super::modifier::{Modifier, Word};
use super::opcode::Opcode;

/// What one operand of an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Whether and how its registers are accessed.
    pub role: Role,
    /// How wide it is.
    pub width: Width,
    /// Whether a wider register will do.
    pub wider: bool,
    /// Whether it may be left out.
    pub optional: bool,
    /// Whether any number of operands of its kind follow.
    pub repeated: bool,
}

/// What happens to the registers of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Written.
    Destination,
    /// Read and written.
    Accumulator,
    /// Read.
    Source,
    /// An address in brackets.
    Address,
    /// A label.
    Label,
    /// A list of labels.
    Targets,
}

/// The width an operand should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// Not known from the form.
    Any,
    /// That of the first type.
    First,
    /// That of the last type.
    Last,
    /// That of the first type, twice with `.wide`.
    Product,
    /// A predicate.
    Predicate,
    /// So many bits.
    Bits(u32),
}

impl Slot {
    /// `dt`, `sU?`, `s.*`: role, width, and whether it is optional or repeated.
    fn from_text(text: &str) -> Self {
        let mut letters = text.bytes();
        let role = match letters.next() {
            Some(b'd') => Role::Destination,
            Some(b'D') => Role::Accumulator,
            Some(b's') => Role::Source,
            Some(b'a') => Role::Address,
            Some(b'l') => Role::Label,
            Some(b'T') => Role::Targets,
            _ => unreachable!("a role in {text}"),
        };
        let letter = letters.next().unwrap_or(b'.');
        let width = match letter.to_ascii_lowercase() {
            b'.' => Width::Any,
            b't' => Width::First,
            b'u' => Width::Last,
            b'w' => Width::Product,
            b'p' => Width::Predicate,
            b'i' => Width::Bits(32),
            _ => unreachable!("a width in {text}"),
        };
        let suffix = letters.next();
        Self {
            role,
            width,
            wider: letter.is_ascii_uppercase(),
            optional: suffix == Some(b'?') || suffix == Some(b'*'),
            repeated: suffix == Some(b'*'),
        }
    }

    /// Whether its width comes from a type of the form.
    pub fn needs_type(&self) -> bool {
        matches!(self.width, Width::First | Width::Last | Width::Product)
    }
}

/// One line of the table, ready for use.
pub(crate) struct Signature {
    /// Words that must be there for this line to hold.
    required: Vec<Word>,
    /// `None`: any.
    allowed: Option<Vec<Modifier>>,
    types: bool,
    vectors: bool,
    shapes: bool,
    /// Its operands, in order.
    pub slots: &'static [Slot],
}

impl Signature {
    /// Whether the opcode has this modifier.
    pub fn allows(&self, modifier: Modifier) -> bool {
        let Some(allowed) = &self.allowed else { return true };
        match modifier {
            Modifier::Type(_) => self.types,
            Modifier::Vector(_) => self.vectors,
            Modifier::Shape(_) => self.shapes,
            Modifier::Bank(_) => allowed.contains(&Modifier::Word(Word::Const)),
            Modifier::Word(_) => allowed.contains(&modifier),
        }
    }
}

/// The signature of an opcode with these modifiers: the first line of the table whose required words are all there.
pub(crate) fn of(opcode: Opcode, modifiers: &[Modifier]) -> &'static Signature {
    static SIGNATURES: OnceLock<Vec<Vec<Signature>>> = OnceLock::new();
    let signatures = SIGNATURES.get_or_init(|| {
        let mut signatures: Vec<Vec<Signature>> = Opcode::ALL.iter().map(|_| Vec::new()).collect();
        for &(opcodes, required, allowed, slots) in TABLE {
            for opcode in opcodes {
                signatures[*opcode as usize].push(signature(required, allowed, slots));
            }
        }
        signatures
    });
    let lines = &signatures[opcode as usize];
    let fits = |line: &&Signature| line.required.iter().all(|word| modifiers.contains(&Modifier::Word(*word)));
    lines.iter().find(fits).unwrap_or(&lines[lines.len() - 1])
}

fn signature(required: &str, allowed: &str, slots: &str) -> Signature {
    let words = |text: &str| -> Vec<Word> {
        text.split_whitespace()
            .filter(|word| !word.starts_with('@'))
            .map(|word| Word::from_text(word).unwrap_or_else(|| unreachable!("{word} is a word")))
            .collect()
    };
    let mut modifiers: Vec<_> = words(required).into_iter().chain(words(allowed)).map(Modifier::Word).collect();
    for (group, members) in GROUPS {
        if allowed.contains(group) {
            modifiers.extend(words(members).into_iter().map(Modifier::Word));
        }
    }
    Signature {
        required: words(required),
        allowed: (allowed != "@any").then_some(modifiers),
        types: allowed.contains("@type"),
        vectors: allowed.contains("@vector"),
        shapes: allowed.contains("@shape"),
        slots: slots.split_whitespace().map(Slot::from_text).collect::<Vec<_>>().leak(),
    }
}

/// Names of groups of words, and their members.
const GROUPS: &[(&str, &str)] = &[
    ("@round", "rn rz rm rp rna rs rni rzi rmi rpi"),
    ("@float", "ftz sat satfinite relu approx full noftz NaN xorsign abs oob"),
    ("@space", "const global local param param::entry param::func shared shared::cta shared::cluster"),
    (
        "@cache",
        "ca cg cs lu cv wb wt nc L1 L2 L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last \
         L1::no_allocate L2::evict_normal L2::evict_first L2::evict_last L2::evict_unchanged L2::cache_hint L2::64B \
         L2::128B L2::256B unified",
    ),
    (
        "@memory",
        "weak volatile relaxed acquire release acq_rel sc mmio cta cluster gpu sys gl proxy alias async async::generic \
         tensormap::generic tensormap mbarrier_init sync_restrict::shared::cta sync_restrict::shared::cluster",
    ),
    ("@compare", "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"),
    ("@bool", "and or xor popc"),
    ("@operation", "and or xor add inc dec min max exch cas popc noftz"),
];

/// Opcodes; words that choose this line among several of one opcode; modifiers; operands.
///
/// An operand is a role (`d` destination, `D` read and written, `s` source, `a` address, `l` label, `T` branch targets),
/// a width (`t` the first type, `u` the last, `w` the first doubled by `.wide`, `p` a predicate, `i` 32 bits, `.` not
/// known; a capital where a wider register will do), and `?` where it may be missing or `*` where more may follow.
#[rustfmt::skip]
const TABLE: &[(&[Opcode], &str, &str, &str)] = {
    use Opcode::*;
    &[
        (&[Abs, Neg], "", "@type @float", "dt st"),
        (&[Not, Cnot, Brev], "", "@type", "dt st"),
        (&[Clz, Popc], "", "@type", "di st"),
        (&[Bfind], "", "@type shiftamt", "di st"),
        (&[Add, Sub, Addc, Subc], "", "@type @round @float cc", "dt su st"),
        (&[Mul], "", "@type @round @float lo hi wide", "dw st st"),
        (&[Mad, Madc], "", "@type @round @float lo hi wide cc", "dw st st sw"),
        (&[Mul24], "", "@type lo hi", "dt st st"),
        (&[Mad24], "", "@type lo hi sat", "dt st st st"),
        (&[Sad], "", "@type", "dt st st st"),
        (&[Div, Rem], "", "@type @round @float", "dt st st"),
        (&[Min, Max], "", "@type @float", "dt st st st?"),
        (&[Bfe], "", "@type", "dt st si si"),
        (&[Bfi], "", "@type", "dt st st si si"),
        (&[Bmsk], "", "@type clamp wrap", "dt si si"),
        (&[Szext], "", "@type clamp wrap", "dt st si"),
        (&[Fns], "", "@type", "di si si si"),
        (&[Dp4a, Dp2a], "", "@type lo hi", "di si si si"),
        (&[Fma], "", "@type @round @float", "dt su su st"),
        (&[Rcp, Sqrt, Rsqrt, Sin, Cos, Lg2, Ex2, Tanh], "", "@type @round @float", "dt st"),
        (&[Copysign], "", "@type", "dt st st"),
        (&[Testp], "", "@type finite infinite number notanumber normal subnormal", "dp st"),
        (&[Set], "", "@type @compare @bool ftz", "dt su su sp?"),
        (&[Setp], "", "@type @compare @bool ftz", "dp st st sp?"),
        (&[Selp], "", "@type", "dt st st sp"),
        (&[Slct], "", "@type ftz", "dt st st su"),
        (&[And, Or, Xor], "", "@type", "dt st st"),
        (&[Lop3], "", "@type and or xor", "dt st st st s. sp?"),
        (&[Shl, Shr], "", "@type", "dt st si"),
        (&[Shf], "", "@type l r clamp wrap", "dt st st si"),
        (&[Prmt], "", "@type f4e b4e rc8 ecl ecr rc16", "di si si si"),
        (&[Mov], "", "@type @vector", "dt st"),
        (&[Cvt], "pack", "@type sat", "d. s. s. s.?"),
        (&[Cvt], "", "@type @round @float scaled::n2::ue8m0", "dT sU s.? s.? s.?"),
        (&[Cvta], "", "@type @space to", "dt st"),
        (&[Isspacep], "", "@space", "dp s."),
        (&[Istypep], "", "@type", "dp s."),
        (&[Mapa], "", "@type @space", "d. s. si"),
        (&[Getctarank], "", "@type @space", "di s."),
        (&[Ld, Ldu], "", "@type @space @cache @memory @vector", "dT a s.?"),
        (&[St], "bulk", "@any", "a s.*"),
        (&[St], "async", "@any", "a s.*"),
        (&[St], "", "@type @space @cache @memory @vector", "a sT s.?"),
        (&[Multimem], "ld_reduce", "@any", "d. a"),
        (&[Multimem], "", "@any", "s.*"),
        (&[Atom], "", "@type @space @cache @memory @vector @operation", "dT a s. s.? s.?"),
        (&[Red], "async", "@any", "a s.*"),
        (&[Red], "", "@type @space @cache @memory @vector @operation", "a s. s.?"),
        (&[Prefetch, Prefetchu], "", "@space @cache tensormap", "a"),
        (&[Applypriority, Discard], "", "@space @cache", "a s."),
        (&[Createpolicy], "", "@type @space @cache fractional range cvt", "d. s.*"),
        (&[Cp, Tensormap], "", "@any", "s.*"),
        (&[Fence, Membar], "", "@any", "s.*"),
        (&[Mbarrier], "init", "@any", "a s."),
        (&[Mbarrier], "inval", "@any", "a"),
        (&[Mbarrier], "pending_count", "@any", "d. s."),
        (&[Mbarrier], "test_wait", "@any", "dp a s. s.?"),
        (&[Mbarrier], "try_wait", "@any", "dp a s. s.?"),
        (&[Mbarrier], "arrive", "@any", "d. a s.?"),
        (&[Mbarrier], "arrive_drop", "@any", "d. a s.?"),
        (&[Mbarrier], "", "@any", "a s.*"),
        (&[Bar, Barrier], "cluster", "cluster arrive wait acquire release relaxed aligned", ""),
        (&[Bar, Barrier], "warp", "sync", "si"),
        (&[Bar, Barrier], "red", "cta aligned popc and or xor @type", "d. s. s. s.?"),
        (&[Bar, Barrier], "arrive", "cta aligned", "s. s."),
        (&[Bar, Barrier], "", "cta sync aligned", "s. s.?"),
        (&[Shfl], "sync", "@type up down bfly idx", "di si si si si"),
        (&[Shfl], "", "@type up down bfly idx", "di si si si"),
        (&[Vote], "sync", "@type all any uni ballot", "d. sp si"),
        (&[Vote], "", "@type all any uni ballot", "d. sp"),
        (&[Match], "", "@type any all sync", "di st si"),
        (&[Redux], "", "@type @operation sync abs NaN", "di si si"),
        (&[Activemask], "", "@type", "di"),
        (&[Elect], "", "sync", "di si"),
        (&[Griddepcontrol], "", "launch_dependents wait", ""),
        (&[Clusterlaunchcontrol], "try_cancel", "@any", "a a"),
        (&[Clusterlaunchcontrol], "", "@any", "d. s."),
        (&[Setmaxnreg], "", "inc dec sync aligned @type", "s."),
        (&[Ldmatrix], "", "@any", "d. a"),
        (&[Stmatrix], "", "@any", "a s."),
        (&[Movmatrix], "", "@any", "di si"),
        (&[Mma], "", "@any", "d. s. s. s. s.*"),
        (&[Wmma], "load", "@any", "d. a s.?"),
        (&[Wmma], "store", "@any", "a s. s.?"),
        (&[Wmma], "", "@any", "d. s. s. s."),
        (&[Wgmma], "mma_async", "@any", "D. s.*"),
        (&[Wgmma], "", "@any", "s.*"),
        (&[Tcgen05], "ld red", "@any", "d. d. a s.*"),
        (&[Tcgen05], "ld", "@any", "d. a s.*"),
        (&[Tcgen05], "", "@any", "s.*"),
        (&[Tex, Tld4, Txq, Suld, Suq], "", "@any", "d. s.*"),
        (&[Sust, Sured], "", "@any", "s.*"),
        (&[Bra], "", "uni", "l"),
        (&[Brx], "", "idx uni", "si T"),
        (&[Call], "", "uni", "s.*"),
        (&[Ret, Exit], "", "uni", ""),
        (&[Brkpt, Trap], "", "", ""),
        (&[Nanosleep], "", "@type", "si"),
        (&[Pmevent], "", "mask", "s."),
        (&[Alloca], "", "@type", "d. s. s.?"),
        (&[Stacksave], "", "@type", "d."),
        (&[Stackrestore], "", "@type", "s."),
        (&[Vmad], "", "@any", "d. s. s. s."),
        (&[Vadd, Vsub, Vabsdiff, Vmin, Vmax, Vshl, Vshr, Vset], "", "@any", "d. s. s. s.?"),
        (&[Vadd2, Vsub2, Vavrg2, Vabsdiff2, Vmin2, Vmax2, Vset2], "", "@any", "d. s. s. s.?"),
        (&[Vadd4, Vsub4, Vavrg4, Vabsdiff4, Vmin4, Vmax4, Vset4], "", "@any", "d. s. s. s.?"),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_opcode_has_a_line_that_always_fits_and_comes_last() {
        for &opcode in Opcode::ALL {
            let lines: Vec<_> = TABLE.iter().filter(|line| line.0.contains(&opcode)).collect();
            assert!(!lines.is_empty(), "{opcode} has no signature");
            let last = lines.len() - 1;
            for (index, line) in lines.iter().enumerate() {
                assert_eq!(line.1.is_empty(), index == last, "{opcode}, line {index}");
            }
            of(opcode, &[]);
        }
    }
}
