//! Functions, registers, instructions and operands.

use std::ops::Range;

use super::form::FormId;
use super::module::{LocationId, Variable, VariableId};
use super::opcode::Opcode;
use super::special::Special;
use super::types::{Linkage, ScalarType, Type};
use crate::flow::Flow;
use crate::parse::Pointer;

/// Number of a function in [`super::Program::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);

/// Number of a register in [`Function::registers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegisterId(pub u32);

/// Number of a variable in [`Function::variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalId(pub u32);

/// Number of a prototype in [`Function::prototypes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PrototypeId(pub u32);

/// An entry or a function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: Box<str>,
    /// Byte offset of its directive in the text.
    pub offset: u32,
    /// One-based line of its directive.
    pub line: u32,
    /// Who sees it.
    pub linkage: Linkage,
    /// Whether it is an `.entry`.
    pub entry: bool,
    /// Whether it has a body; without one it is a declaration, `vprintf` for instance.
    pub defined: bool,
    /// What it returns.
    pub returns: Vec<Parameter>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Bytes of all parameters together, each at its offset.
    pub parameter_bytes: u32,
    /// `.reqntid`: threads of a block in x, y and z.
    pub required_threads: Option<[u32; 3]>,
    /// `.maxntid`.
    pub maximum_threads: Option<[u32; 3]>,
    /// `.minnctapersm`.
    pub minimum_blocks: Option<u32>,
    /// `.maxnreg`.
    pub maximum_registers: Option<u32>,
    /// `.reqnctapercluster`.
    pub required_cluster: Option<[u32; 3]>,
    /// `.noreturn`.
    pub no_return: bool,
    /// Its registers. Elements of vector registers are registers here, as are the 100 of `%r<100>`.
    pub registers: Vec<Register>,
    /// The names that registers share: [`Register::name`].
    pub(crate) register_names: Vec<Box<str>>,
    /// Variables declared in it, of whatever scope: shared, local, param.
    pub variables: Vec<Variable>,
    /// Prototypes of indirect calls.
    pub prototypes: Vec<Prototype>,
    /// Lists of branch targets, as indices of instructions. An index may equal the number of instructions: the end.
    pub branch_targets: Vec<Vec<u32>>,
    /// Lists of call targets.
    pub call_targets: Vec<Vec<FunctionId>>,
    /// Its instructions, in order.
    pub instructions: Vec<Instruction>,
    /// The operands of all instructions. Those inside others (vectors, lists, addresses) lie before the range of the
    /// instruction that holds them.
    pub operands: Vec<Operand>,
    /// Its basic blocks and how they follow each other.
    pub flow: Flow,
}

/// A parameter, or a value that is returned.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its name; `_` for none.
    pub name: Box<str>,
    /// The type of an element.
    pub ty: Type,
    /// Bytes from the first parameter to this one.
    pub offset: u32,
    /// Its size in bytes.
    pub size: u32,
    /// Its alignment in bytes.
    pub align: u32,
    /// What a pointer points to, where `.ptr` says.
    pub pointer: Option<Pointer>,
    /// The register that it is, for the `.reg` parameters of a function.
    pub register: Option<RegisterId>,
}

/// A register of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// The type it is declared with.
    pub ty: ScalarType,
    /// Its name without number and element.
    pub(crate) name: u32,
    /// The number in its name, where it is one of many: 7 of `%r7`.
    pub(crate) number: Option<u32>,
    /// The element of a vector register.
    pub(crate) element: Option<u8>,
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Instruction {
    /// Its opcode: that of its form, here for quick decisions.
    pub opcode: Opcode,
    /// How many operands, from the first on, are written.
    pub writes: u8,
    /// Whether the written operands are read as well.
    pub accumulates: bool,
    /// Its opcode with modifiers, decoded: [`super::Program::form`].
    pub form: FormId,
    /// The predicate it is executed under.
    pub guard: Option<Guard>,
    /// First of its operands in [`Function::operands`].
    pub(crate) first: u32,
    /// How many there are.
    pub(crate) count: u32,
    /// Byte offset in the text.
    pub offset: u32,
    /// One-based line in the text.
    pub line: u32,
    /// One-based column in the text, in bytes.
    pub column: u32,
    /// Its place in the source, by the last `.loc`.
    pub location: Option<LocationId>,
}

/// `@p`, `@!p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Guard {
    /// The predicate.
    pub register: RegisterId,
    /// Whether the instruction is executed where it is false.
    pub negated: bool,
}

/// A part of a register, as video instructions select it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// `.b0` to `.b3`.
    Byte(u8),
    /// `.h0`, `.h1`.
    Half(u8),
    /// `.b1032`, `.h32`: bytes or halves of two registers, chosen by the digits.
    Mixed(u16),
}

/// Something in memory or code that has an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Symbol {
    /// A variable of the module.
    Variable(VariableId),
    /// A variable of the function.
    Local(LocalId),
    /// A parameter of the function.
    Parameter(u32),
    /// A value that the function returns.
    Return(u32),
    /// A function.
    Function(FunctionId),
}

/// What an address is counted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// Nothing: the address is absolute.
    Absolute,
    /// The value of a register.
    Register(RegisterId),
    /// A symbol.
    Symbol(Symbol),
}

/// A number of an element in [`Function::branch_targets`] or [`Function::call_targets`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Targets(pub u32);

/// One operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register.
    Register(RegisterId),
    /// `!p`.
    Negated(RegisterId),
    /// `-r` or `-r.h0`, a source of a video instruction.
    Minus(RegisterId, Option<Selector>),
    /// `r.b0`, a source or destination of a video instruction.
    Part(RegisterId, Selector),
    /// `a|b`; `None` for `_`.
    Pair(Option<RegisterId>, Option<RegisterId>),
    /// `_`.
    Discard,
    /// A special register.
    Special(Special),
    /// `%envreg3`.
    Environment(u8),
    /// An integer, as the two's complement bits.
    Integer(u64),
    /// Bits of a float32.
    Float32(u32),
    /// Bits of a float64.
    Float64(u64),
    /// The address of a symbol, plus bytes.
    Symbol(Symbol, i64),
    /// An address in brackets: a base plus bytes.
    Address(Base, i64),
    /// `{a, b}`: a range of [`Function::operands`].
    Vector(Range<u32>),
    /// `{a, b}|p`: a vector and a predicate beside it.
    VectorPair(Range<u32>, RegisterId),
    /// `(a, b)`, of a call.
    List(Range<u32>),
    /// `[base, {x, y}]` and longer: an address followed by coordinates or more.
    Indexed(Range<u32>),
    /// A label, as the index of the instruction that follows it; the number of instructions for the end.
    Label(u32),
    /// A list of labels: [`Function::branch_targets`].
    BranchTargets(Targets),
    /// A list of functions: [`Function::call_targets`].
    CallTargets(Targets),
    /// A prototype.
    Prototype(PrototypeId),
}

/// `.callprototype`.
#[derive(Clone, Debug, PartialEq)]
pub struct Prototype {
    /// What a callee returns.
    pub returns: Vec<Parameter>,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// `.noreturn`.
    pub no_return: bool,
}

/// Whom a call calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee<'a> {
    /// This function.
    Direct(FunctionId),
    /// One of these, by an address in a register.
    OneOf(RegisterId, &'a [FunctionId]),
    /// Any of this prototype, by an address in a register.
    Any(RegisterId, PrototypeId),
}

/// A call, its operands told apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Call<'a> {
    /// Where its results go.
    pub returns: &'a [Operand],
    /// Whom it calls.
    pub callee: Callee<'a>,
    /// What it passes.
    pub arguments: &'a [Operand],
}

impl Function {
    /// The operands of an instruction, in the order written.
    pub fn operands_of(&self, instruction: &Instruction) -> &[Operand] {
        &self.operands[instruction.first as usize..(instruction.first + instruction.count) as usize]
    }

    /// What is inside a vector, a list or an address.
    pub fn inside(&self, range: &Range<u32>) -> &[Operand] {
        &self.operands[range.start as usize..range.end as usize]
    }

    /// A register by number.
    pub fn register(&self, id: RegisterId) -> Register {
        self.registers[id.0 as usize]
    }

    /// The name of a register, as written.
    pub fn register_name(&self, id: RegisterId) -> String {
        let register = self.register(id);
        let mut name = self.register_names[register.name as usize].to_string();
        if let Some(number) = register.number {
            name.push_str(&number.to_string());
        }
        if let Some(element) = register.element {
            name.push_str([".x", ".y", ".z", ".w"][usize::from(element) % 4]);
        }
        name
    }

    /// A call's operands; `None` where the instruction is no call.
    pub fn call(&self, instruction: &Instruction) -> Option<Call<'_>> {
        if instruction.opcode != Opcode::Call {
            return None;
        }
        let operands = self.operands_of(instruction);
        let (returns, callee, arguments, rest) = match operands {
            [Operand::List(returns), callee, Operand::List(arguments), rest @ ..] => (returns, callee, arguments, rest),
            _ => return None,
        };
        let callee = match (callee, rest) {
            (Operand::Symbol(Symbol::Function(function), _), _) => Callee::Direct(*function),
            (Operand::Register(register), [Operand::Prototype(prototype)]) => Callee::Any(*register, *prototype),
            (Operand::Register(register), [Operand::CallTargets(targets)]) => {
                Callee::OneOf(*register, &self.call_targets[targets.0 as usize])
            }
            _ => return None,
        };
        Some(Call { returns: self.inside(returns), callee, arguments: self.inside(arguments) })
    }

    /// Calls `visit` with every register that an instruction reads, its guard included.
    pub fn reads(&self, instruction: &Instruction, mut visit: impl FnMut(RegisterId)) {
        if let Some(guard) = instruction.guard {
            visit(guard.register);
        }
        for (index, operand) in self.operands_of(instruction).iter().enumerate() {
            let written = index < usize::from(instruction.writes) && !instruction.accumulates;
            if !written {
                self.registers_in(operand, &mut visit);
            } else if let Operand::Address(..) | Operand::Indexed(_) = operand {
                self.registers_in(operand, &mut visit);
            }
        }
    }

    /// Calls `visit` with every register that an instruction writes.
    pub fn writes(&self, instruction: &Instruction, mut visit: impl FnMut(RegisterId)) {
        for operand in self.operands_of(instruction).iter().take(usize::from(instruction.writes)) {
            if !matches!(operand, Operand::Address(..) | Operand::Indexed(_)) {
                self.registers_in(operand, &mut visit);
            }
        }
    }

    /// Calls `visit` with every register in an operand. Operands nest two deep at most: an address with coordinates.
    fn registers_in(&self, operand: &Operand, visit: &mut impl FnMut(RegisterId)) {
        match operand {
            Operand::Register(register) | Operand::Negated(register) | Operand::Minus(register, _) => visit(*register),
            Operand::Part(register, _) | Operand::Address(Base::Register(register), _) => visit(*register),
            Operand::Pair(first, second) => [first, second].into_iter().flatten().for_each(|register| visit(*register)),
            Operand::Vector(range) | Operand::List(range) | Operand::Indexed(range) => {
                for operand in self.inside(range) {
                    self.registers_in(operand, visit);
                }
            }
            Operand::VectorPair(range, register) => {
                for operand in self.inside(range) {
                    self.registers_in(operand, visit);
                }
                visit(*register);
            }
            _ => {}
        }
    }
}
