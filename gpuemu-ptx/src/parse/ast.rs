//! The syntax tree of a PTX module: what was written, in the order it was written, with nothing resolved.
//!
//! It borrows every name from the text. Statements and operands of a function lie in flat vectors, so that a module of
//! a megabyte costs a few allocations a function rather than several an instruction.

use std::ops::Range;

/// Byte offset into the text of the module: [`super::LineIndex`] gives its line and column.
pub type Offset = u32;

/// One PTX module.
#[derive(Clone, Debug, PartialEq)]
pub struct Module<'a> {
    /// `.version major.minor`.
    pub version: (u16, u16),
    /// `.target` and what follows it: the architecture first (`sm_90a`), then options (`debug`, `texmode_unified`).
    pub targets: Vec<&'a str>,
    /// `.address_size`, 32 or 64; 32 where the module does not say.
    pub address_size: u8,
    /// Everything after that, in order.
    pub items: Vec<Item<'a>>,
}

/// Something at the top level of a module.
#[derive(Clone, Debug, PartialEq)]
pub enum Item<'a> {
    /// `.file 1 "path"[, timestamp, size]`.
    File(File<'a>),
    /// `.section name { ... }`: debug information, kept as written.
    Section(Section<'a>),
    /// `.pragma "a", "b";`: the strings, without quotes.
    Pragma(Vec<&'a str>),
    /// A variable of the module.
    Variable(Variable<'a>),
    /// `.entry` or `.func`, defined or declared.
    Function(Function<'a>),
    /// `.alias name, target;`.
    Alias {
        /// The new name.
        name: &'a str,
        /// The function it stands for.
        target: &'a str,
    },
}

/// `.file`.
#[derive(Clone, Debug, PartialEq)]
pub struct File<'a> {
    /// The number that `.loc` refers to.
    pub index: u32,
    /// The path as written, without quotes.
    pub path: &'a str,
    /// Modification time and size, where written.
    pub stamp: Option<(u64, u64)>,
}

/// `.section`.
#[derive(Clone, Debug, PartialEq)]
pub struct Section<'a> {
    /// Its name, `.debug_info`.
    pub name: &'a str,
    /// What stands between its braces, as written.
    pub body: &'a str,
}

/// `.visible`, `.extern`, `.weak`, `.common`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    /// None written: local to the module.
    #[default]
    Local,
    /// `.visible`.
    Visible,
    /// `.extern`.
    Extern,
    /// `.weak`.
    Weak,
    /// `.common`.
    Common,
}

/// A state space of variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// `.reg`.
    Register,
    /// `.sreg`.
    Special,
    /// `.const`, `.const[bank]`.
    Constant,
    /// `.global`.
    Global,
    /// `.local`.
    Local,
    /// `.param`.
    Parameter,
    /// `.shared`.
    Shared,
    /// `.tex`, deprecated.
    Texture,
}

/// A fundamental or opaque type of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the names are PTX's own")]
pub enum Type {
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    F32,
    F64,
    /// `.pred`.
    Predicate,
    /// `.texref`.
    TextureReference,
    /// `.samplerref`.
    SamplerReference,
    /// `.surfref`.
    SurfaceReference,
}

/// A variable in any state space, or a parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable<'a> {
    /// Where its declaration begins.
    pub offset: Offset,
    /// Who sees it.
    pub linkage: Linkage,
    /// Its state space.
    pub space: Space,
    /// The bank of `.const[bank]`.
    pub bank: Option<u32>,
    /// `.align`, in bytes.
    pub align: Option<u32>,
    /// Elements of `.v2`, `.v4`, `.v8`; 1 without.
    pub vector: u8,
    /// The type of an element.
    pub ty: Type,
    /// `.ptr [.space] [.align n]` of a kernel parameter.
    pub pointer: Option<Pointer>,
    /// `.attribute(...)`, `.unified(...)`, `.managed`: what stands between the parentheses, as written.
    pub attributes: Option<&'a str>,
    /// Its name. `_` is a name here.
    pub name: &'a str,
    /// `name<count>`: as many variables, `name0` to `name{count-1}`.
    pub count: Option<u32>,
    /// Extents of an array, outermost first; `None` for `[]`.
    pub extents: Vec<Option<u64>>,
    /// What follows `=`.
    pub initial: Option<Initial<'a>>,
}

/// `.ptr` of a kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The state space pointed to; `None`: generic.
    pub space: Option<Space>,
    /// What the address is aligned to, in bytes.
    pub align: Option<u32>,
}

/// An initial value.
#[derive(Clone, Debug, PartialEq)]
pub enum Initial<'a> {
    /// A number.
    Value(Operand<'a>),
    /// The address of a symbol, plus bytes: `name`, `name+8`, `generic(name)+8`.
    Address {
        /// The variable or function.
        symbol: &'a str,
        /// Bytes added.
        addend: i64,
        /// Whether `generic()` is around it.
        generic: bool,
        /// The byte of the address that `mask(m)(...)` or `m(...)` picks, as its mask.
        mask: Option<u64>,
    },
    /// `{a, b, ...}`.
    List(Vec<Initial<'a>>),
    /// `filter_mode = nearest`: a property of a `.texref`, `.samplerref` or `.surfref`, an element of its list.
    Property {
        /// The property.
        name: &'a str,
        /// Its value: a number, or a word as an [`Operand::Name`].
        value: Operand<'a>,
    },
}

/// `.entry` or `.func`.
#[derive(Clone, Debug, PartialEq)]
pub struct Function<'a> {
    /// Where its directive begins.
    pub offset: Offset,
    /// Who sees it.
    pub linkage: Linkage,
    /// Whether it is an `.entry`, which a host can launch.
    pub entry: bool,
    /// Its name.
    pub name: &'a str,
    /// What a `.func` returns.
    pub returns: Vec<Variable<'a>>,
    /// Its parameters.
    pub parameters: Vec<Variable<'a>>,
    /// `.maxntid`, `.reqntid`, `.minnctapersm`, `.maxnreg`, `.noreturn`, `.attribute(...)`, `.pragma` before the body, in
    /// order.
    pub directives: Vec<Directive<'a>>,
    /// Its body; `None` for a declaration.
    pub body: Option<Body<'a>>,
}

/// A directive between the parameters of a function and its body.
#[derive(Clone, Debug, PartialEq)]
pub struct Directive<'a> {
    /// Its name without the dot: `reqntid`, `pragma`, `abi_preserve`.
    pub name: &'a str,
    /// Its numbers: `.reqntid 128, 1, 1`.
    pub numbers: Vec<u64>,
    /// Its text: the string of a pragma without quotes, what `.attribute(...)` has between its parentheses.
    pub text: Option<&'a str>,
}

/// The body of a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Body<'a> {
    /// Everything in the body, in order. A block `{ ... }` is its braces as two statements.
    pub statements: Vec<Statement<'a>>,
    /// The operands of all instructions; an instruction holds a range of them.
    pub operands: Vec<Operand<'a>>,
}

/// One statement of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement<'a> {
    /// An instruction.
    Instruction(Instruction<'a>),
    /// `name:`.
    Label(Label<'a>),
    /// A variable or registers.
    Variable(Box<Variable<'a>>),
    /// `.loc`.
    Location(Box<Location<'a>>),
    /// `{`: a scope of names begins.
    Open,
    /// `}`: it ends.
    Close,
    /// `.pragma "nounroll";`.
    Pragma(Vec<&'a str>),
    /// `name: .branchtargets a, b;` (the label stands before it, as a statement of its own). `a<3>` stands for `a0`, `a1`
    /// and `a2`.
    BranchTargets(Vec<&'a str>),
    /// `name: .calltargets f, g;`.
    CallTargets(Vec<&'a str>),
    /// `name: .callprototype (returns) _ (parameters) attributes;`.
    CallPrototype(Box<Prototype<'a>>),
}

/// `name:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// Where it stands.
    pub offset: Offset,
    /// Its name.
    pub name: &'a str,
}

/// `.loc file line column[, function_name label[+n], inlined_at file line column]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Location<'a> {
    /// Number of a `.file`.
    pub file: u32,
    /// One-based line; 0 where the compiler knew none.
    pub line: u32,
    /// One-based column; 0 for none.
    pub column: u32,
    /// Where the function that holds this line was inlined.
    pub inlined: Option<Inlined<'a>>,
}

/// The second half of a `.loc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inlined<'a> {
    /// Label in a debug section that names the inlined function.
    pub function: &'a str,
    /// Bytes added to the label.
    pub addend: u32,
    /// Number of a `.file`.
    pub file: u32,
    /// One-based line of the call.
    pub line: u32,
    /// One-based column of the call.
    pub column: u32,
}

/// `.callprototype`.
#[derive(Clone, Debug, PartialEq)]
pub struct Prototype<'a> {
    /// What a callee returns.
    pub returns: Vec<Variable<'a>>,
    /// Its parameters.
    pub parameters: Vec<Variable<'a>>,
    /// `.noreturn` and the like.
    pub directives: Vec<Directive<'a>>,
}

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction<'a> {
    /// Where it begins (its guard, if it has one).
    pub offset: Offset,
    /// `@p` or `@!p`.
    pub guard: Option<Guard<'a>>,
    /// Its opcode with every modifier, as written: `ld.global.L1::no_allocate.v4.b32`. A hand may have left blanks
    /// or comments before a dot (`ld.global .u32`): [`super::plain_opcode`] takes them out.
    pub opcode: &'a str,
    /// Its operands, in the order written, a range of [`Body::operands`]. A call's are, in this order: its returned
    /// values as [`Operand::List`] (empty where none are written), the callee, its arguments as [`Operand::List`] (empty
    /// likewise), and the prototype or targets where written.
    pub operands: Range<u32>,
}

/// The predicate of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard<'a> {
    /// Its register.
    pub register: &'a str,
    /// Whether it is `@!p`.
    pub negated: bool,
}

/// One operand.
///
/// Operands inside others (vectors, lists, addresses) lie in [`Body::operands`] before the instruction's own range.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand<'a> {
    /// A register, special register, variable, function or label: `%r1`, `%tid.x`, `smem`, `$L__BB0_2`, `_`, `%v.x`.
    Name(&'a str),
    /// `!p`.
    Negated(&'a str),
    /// `-r`: a source of a video instruction (`vmad`).
    Minus(&'a str),
    /// An integer of up to 64 bits, as the two's complement bits.
    Integer {
        /// Its bits.
        bits: u64,
        /// Whether it was written with `U`, or needs all 64 bits.
        unsigned: bool,
    },
    /// `0f3F800000`: bits of a float32.
    Float32(u32),
    /// `0d3FF0000000000000` or a decimal number: bits of a float64.
    Float64(u64),
    /// `a|b`: two destinations, a predicate beside a result.
    Pair(&'a str, &'a str),
    /// `{a, b, c, d}`.
    Vector(Range<u32>),
    /// `{a, b, c, d}|p`: the texels of a texture and whether they are resident.
    VectorPair(Range<u32>, &'a str),
    /// `(a, b)`: values or arguments of a call.
    List(Range<u32>),
    /// `[base+offset]`.
    Address {
        /// A register, a variable, or `None` for an absolute address.
        base: Option<&'a str>,
        /// Bytes added.
        offset: i64,
    },
    /// `[base+offset].unified`: an address that every processor of the system can use as it is.
    Unified {
        /// A register or a variable.
        base: &'a str,
        /// Bytes added.
        offset: i64,
    },
    /// `[base, {x, y}]` and longer: an address followed by coordinates or more, as textures and tensor copies take. The
    /// first is an [`Operand::Address`].
    Indexed(Range<u32>),
    /// `name[4]`, `name[%r1]`, `name[%r1+4]`: an element of an array. Two operands: its [`Operand::Name`], and the index
    /// as an integer, a name or a sum.
    Element(Range<u32>),
    /// `name+4`: the address of a variable, plus bytes.
    Sum {
        /// The variable.
        symbol: &'a str,
        /// Bytes added.
        addend: i64,
    },
}
