//! A program: a module with every name resolved and its control flow known.
//!
//! It owns all it has, so that the text can go. What runs or weighs it follows dense numbers; names are there for
//! people.

mod form;
mod function;
mod modifier;
mod module;
mod opcode;
mod pointers;
mod problem;
mod resolve;
mod signature;
mod special;
mod types;
mod uses;
mod variance;
mod webs;

pub use form::{Form, FormId};
pub use function::{
    Base, Call, Callee, Function, FunctionId, Guard, Instruction, LocalId, Operand, Parameter, Prototype, PrototypeId,
    Register, RegisterId, Selector, Symbol, Targets,
};
pub use modifier::{Modifier, Word};
pub use module::{Location, LocationId, Program, Relocation, SourceFile, Variable, VariableId};
pub use opcode::Opcode;
pub use pointers::{PointerAccess, pointer_accesses};
pub use problem::{Problem, ProgramError};
pub use special::Special;
pub use types::{Compare, Linkage, Operation, Order, Rounding, ScalarType, Scope, Shape, Space, Type};
pub use uses::Uses;
pub use variance::{Variance, Variances};
