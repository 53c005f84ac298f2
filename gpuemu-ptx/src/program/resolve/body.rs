//! The body of a function: declarations, labels, instructions in order.

use super::module::{Context, Fault, MAXIMUM_REGISTERS, Resolved, memory_variable};
use super::names::{Meaning, Names};
use super::operands;
use super::parameters::layout;
use crate::flow::{Flow, Jump};
use crate::parse::{self, Body, Statement};
use crate::program::function::{
    Function, FunctionId, Guard, Instruction, LocalId, Operand, Prototype, PrototypeId, Register, RegisterId, Symbol,
    Targets,
};
use crate::program::module::LocationId;
use crate::program::opcode::Opcode;
use crate::program::problem::Problem;
use crate::program::types::{ScalarType, Space};

/// A function while its body is resolved.
pub(super) struct Resolver<'c, 'a> {
    pub context: &'c mut Context<'a>,
    pub names: Names<'a>,
    pub function: Function,
    pub body: &'c Body<'a>,
    /// Room for the operands of one instruction.
    pub own: Vec<Operand>,
    location: Option<LocationId>,
    /// The next list of branch targets.
    next_list: usize,
}

/// A label, or what stands behind one, of a scope.
struct Labelled<'a> {
    scope: u32,
    name: &'a str,
    offset: u32,
    meaning: Meaning,
}

/// Resolves the body of a function that is declared.
pub(super) fn resolve_body<'a>(context: &mut Context<'a>, source: &parse::Function<'a>) -> Resolved<()> {
    let Some(body) = &source.body else { return Ok(()) };
    let Some(Symbol::Function(id)) = context.symbols.get(source.name).copied() else { return Ok(()) };
    // The head stays for calls to itself.
    let function = context.functions[id.0 as usize].clone();
    let mut resolver =
        Resolver { context, names: Names::default(), function, body, own: Vec::new(), location: None, next_list: 0 };
    resolver.parameters(source)?;
    resolver.statements()?;
    let function = resolver.finish();
    context.functions[id.0 as usize] = function;
    Ok(())
}

impl<'a> Resolver<'_, 'a> {
    fn parameters(&mut self, source: &parse::Function<'a>) -> Resolved<()> {
        let lists = [(&source.returns, true), (&source.parameters, false)];
        for (variables, returned) in lists {
            for (index, variable) in (0..).zip(variables) {
                if variable.name == "_" {
                    continue;
                }
                if variable.space == Space::Register {
                    let register = self.declare_registers(variable)?;
                    let list = if returned { &mut self.function.returns } else { &mut self.function.parameters };
                    list[index as usize].register = register;
                } else {
                    let symbol = if returned { Symbol::Return(index) } else { Symbol::Parameter(index) };
                    self.declare(variable.name, Meaning::Symbol(symbol), variable.offset)?;
                }
            }
        }
        Ok(())
    }

    fn declare(&mut self, name: &'a str, meaning: Meaning, offset: u32) -> Resolved<()> {
        self.names.declare(name, meaning, offset).map_err(|earlier| self.context.twice(name, offset, earlier))
    }

    /// Declares registers; the first of them.
    fn declare_registers(&mut self, variable: &parse::Variable<'a>) -> Resolved<Option<RegisterId>> {
        let vector = variable.vector.max(1);
        let count = variable.count.unwrap_or(1);
        let total = count.saturating_mul(u32::from(vector));
        let Some(left) = self.context.registers_left.checked_sub(total) else {
            let problem = Problem::TooManyRegisters { name: variable.name.to_owned(), limit: MAXIMUM_REGISTERS };
            return Err(Fault { offset: variable.offset, problem });
        };
        self.context.registers_left = left;
        let function = &mut self.function;
        let first = RegisterId(function.registers.len() as u32);
        let name = function.register_names.len() as u32;
        function.register_names.push(variable.name.into());
        let ty = ScalarType::from(variable.ty);
        for number in 0..count {
            for element in 0..vector {
                function.registers.push(Register {
                    ty,
                    name,
                    number: variable.count.map(|_| number),
                    element: (vector > 1).then_some(element),
                });
            }
        }
        if variable.count.is_some() {
            self.names
                .declare_group(variable.name, first, count, vector, variable.offset)
                .map_err(|earlier| self.context.twice(variable.name, variable.offset, earlier))?;
        } else if variable.name != "_" {
            let meaning = if vector == 1 { Meaning::Register(first) } else { Meaning::Vector(first, vector) };
            self.declare(variable.name, meaning, variable.offset)?;
        }
        Ok((total > 0).then_some(first))
    }

    fn statements(&mut self) -> Resolved<()> {
        let labelled = self.labelled()?;
        let mut labelled = labelled.into_iter().peekable();
        let mut scope = 0;
        let mut declare_scope = |resolver: &mut Self, scope: u32| -> Resolved<()> {
            while let Some(label) = labelled.next_if(|label| label.scope == scope) {
                resolver.declare(label.name, label.meaning, label.offset)?;
            }
            Ok(())
        };
        declare_scope(self, scope)?;
        let body = self.body;
        for statement in &body.statements {
            match statement {
                Statement::Instruction(instruction) => self.instruction(instruction)?,
                Statement::Variable(variable) => match variable.space {
                    Space::Register => drop(self.declare_registers(variable)?),
                    _ => self.declare_memory(variable)?,
                },
                Statement::Location(location) => self.location = self.context.locations.intern(location),
                Statement::Open => {
                    scope += 1;
                    self.names.open();
                    declare_scope(self, scope)?;
                }
                Statement::Close => self.names.close(),
                Statement::Label(_) | Statement::Pragma(_) => {}
                Statement::BranchTargets(targets) => self.branch_targets(targets)?,
                Statement::CallTargets(_) | Statement::CallPrototype(_) => {}
            }
        }
        Ok(())
    }

    fn declare_memory(&mut self, variable: &parse::Variable<'a>) -> Resolved<()> {
        if variable.count.is_some() {
            // `.param .b32 x<4>`: names that are not in the text, which nothing prints.
            let problem = Problem::NotARegister { name: variable.name.to_owned() };
            return Err(Fault { offset: variable.offset, problem });
        }
        let symbol = Symbol::Local(LocalId(self.function.variables.len() as u32));
        self.function.variables.push(memory_variable(variable)?);
        self.declare(variable.name, Meaning::Symbol(symbol), variable.offset)
    }

    /// Everything behind a label, by scope: labels can be used before they stand.
    fn labelled(&mut self) -> Resolved<Vec<Labelled<'a>>> {
        let body = self.body;
        let (mut scope, mut scopes, mut around) = (0, 0, Vec::new());
        let mut next = 0;
        let mut labelled = Vec::new();
        for (index, statement) in body.statements.iter().enumerate() {
            match statement {
                Statement::Instruction(_) => next += 1,
                Statement::Open => {
                    around.push(scope);
                    scopes += 1;
                    scope = scopes;
                }
                Statement::Close => scope = around.pop().unwrap_or(0),
                Statement::Label(label) => {
                    let meaning = match body.statements.get(index + 1) {
                        Some(Statement::BranchTargets(_)) => {
                            self.function.branch_targets.push(Vec::new());
                            Meaning::BranchTargets(Targets(self.function.branch_targets.len() as u32 - 1))
                        }
                        Some(Statement::CallTargets(targets)) => {
                            let functions = self.functions(targets, label.offset)?;
                            self.function.call_targets.push(functions);
                            Meaning::CallTargets(Targets(self.function.call_targets.len() as u32 - 1))
                        }
                        Some(Statement::CallPrototype(prototype)) => {
                            let (returns, _) = layout(&prototype.returns)?;
                            let (parameters, _) = layout(&prototype.parameters)?;
                            let no_return = prototype.directives.iter().any(|directive| directive.name == "noreturn");
                            self.function.prototypes.push(Prototype { returns, parameters, no_return });
                            Meaning::Prototype(PrototypeId(self.function.prototypes.len() as u32 - 1))
                        }
                        _ => Meaning::Label(next),
                    };
                    labelled.push(Labelled { scope, name: label.name, offset: label.offset, meaning });
                }
                _ => {}
            }
        }
        labelled.sort_by_key(|label| label.scope);
        Ok(labelled)
    }

    fn functions(&self, names: &[&str], offset: u32) -> Resolved<Vec<FunctionId>> {
        let function = |name: &&str| match self.context.symbols.get(*name) {
            Some(Symbol::Function(id)) => Ok(*id),
            _ => Err(Fault { offset, problem: self.context.no_function(name) }),
        };
        names.iter().map(function).collect()
    }

    /// Targets are resolved where the list stands: they are labels of its scope.
    fn branch_targets(&mut self, names: &[&'a str]) -> Resolved<()> {
        let mut targets = Vec::with_capacity(names.len());
        for name in names {
            match self.names.find(name) {
                Some(Meaning::Label(target)) => targets.push(target),
                _ => {
                    let offset = (name.as_ptr() as usize).saturating_sub(self.context.text.as_ptr() as usize) as u32;
                    return Err(Fault { offset, problem: self.no_label(name) });
                }
            }
        }
        // Lists stand in the order their labels were seen, which is how they were numbered. One without a label is of
        // no use to anyone.
        if let Some(list) = self.function.branch_targets.get_mut(self.next_list) {
            *list = targets;
        }
        self.next_list += 1;
        Ok(())
    }

    fn instruction(&mut self, source: &parse::Instruction<'a>) -> Resolved<()> {
        let form = self.context.form(source.opcode, source.offset)?;
        let guard = match source.guard {
            Some(guard) => Some(Guard { register: self.predicate(guard.register, source)?, negated: guard.negated }),
            None => None,
        };
        let resolved = operands::resolve(self, source, form)?;
        let line = self.context.line(source.offset);
        let column = self.context.column();
        let opcode = self.context.decoded(form).opcode;
        self.function.instructions.push(Instruction {
            opcode,
            writes: resolved.writes,
            accumulates: resolved.accumulates,
            form,
            guard,
            first: resolved.first,
            count: resolved.count,
            offset: source.offset,
            line,
            column,
            location: self.location,
        });
        Ok(())
    }

    fn predicate(&mut self, name: &'a str, source: &parse::Instruction) -> Resolved<RegisterId> {
        let problem = match self.names.find(name) {
            Some(Meaning::Register(register)) => match self.function.register(register).ty {
                ScalarType::Predicate => return Ok(register),
                ty => Problem::NotAPredicate { name: name.to_owned(), ty: ty.text() },
            },
            Some(_) => Problem::NotARegister { name: name.to_owned() },
            None => self.undeclared(name),
        };
        Err(Fault { offset: source.offset, problem })
    }

    #[cold]
    pub fn undeclared(&self, name: &str) -> Problem {
        let symbols: Vec<String> =
            self.names.all().chain(self.context.symbols.keys().map(|name| (*name).to_owned())).collect();
        let nearest = crate::error::nearest(name, symbols.iter().map(String::as_str));
        Problem::Undeclared { name: name.to_owned(), nearest }
    }

    #[cold]
    pub fn no_label(&self, name: &str) -> Problem {
        let labels = self.body.statements.iter().filter_map(|statement| match statement {
            Statement::Label(label) => Some(label.name),
            _ => None,
        });
        Problem::NoLabel { name: name.to_owned(), nearest: crate::error::nearest(name, labels) }
    }

    fn finish(self) -> Function {
        let mut function = self.function;
        let jumps = jumps(&function, &self.context.functions);
        function.flow = Flow::new(function.instructions.len() as u32, &jumps);
        function.instructions.shrink_to_fit();
        function.operands.shrink_to_fit();
        function
    }
}

/// The instructions that do not simply lead to the next.
fn jumps(function: &Function, functions: &[Function]) -> Vec<Jump> {
    let mut jumps = Vec::new();
    for (at, instruction) in (0..).zip(&function.instructions) {
        let (targets, leaves, falls_through) = match instruction.opcode {
            Opcode::Bra => match function.operands_of(instruction) {
                [Operand::Label(target)] => (vec![*target], false, false),
                _ => continue,
            },
            Opcode::Brx => match function.operands_of(instruction) {
                [_, Operand::BranchTargets(list)] => (function.branch_targets[list.0 as usize].clone(), false, false),
                _ => continue,
            },
            Opcode::Ret | Opcode::Exit | Opcode::Trap => (Vec::new(), true, false),
            Opcode::Call => match function.operands_of(instruction) {
                [_, Operand::Symbol(Symbol::Function(callee), _), ..] if functions[callee.0 as usize].no_return => {
                    (Vec::new(), true, false)
                }
                _ => continue,
            },
            _ => continue,
        };
        jumps.push(Jump { at, targets, leaves, falls_through: falls_through || instruction.guard.is_some() });
    }
    jumps
}
