//! The module itself: what it declares, then the bodies of its functions.

use rustc_hash::FxHashMap;

use super::body::resolve_body;
use super::initial::initialise;
use super::locations::Locations;
use super::parameters::{layout, size_of};
use crate::error::Error;
use crate::flow::Flow;
use crate::parse::{self, Item, LineIndex, Linkage, Module, plain_opcode};
use crate::program::form::{Form, FormError, FormId};
use crate::program::function::{Function, FunctionId, Symbol};
use crate::program::modifier::Word;
use crate::program::module::{Program, SourceFile, Variable, VariableId};
use crate::program::opcode::Opcode;
use crate::program::problem::{Problem, ProgramError};
use crate::program::types::ScalarType;

/// Registers of a module, however its functions share them.
pub(super) const MAXIMUM_REGISTERS: u32 = 1 << 22;
/// The longest part of a statement that a message shows, in characters.
const EXCERPT: usize = 120;

impl Program {
    /// Reads and resolves a module.
    ///
    /// # Errors
    ///
    /// Where the text is not PTX, or names what is not there: [`Program::resolve`].
    pub fn read(text: &str) -> Result<Self, Error> {
        Self::resolve(&parse::parse(text)?, text)
    }

    /// Resolves every name of a module; `text` is what it was parsed from.
    ///
    /// # Errors
    ///
    /// The first place that means nothing: an unknown opcode or modifier, a name that is not declared or twice, a label
    /// that is not there, operands that an opcode does not take.
    pub fn resolve(module: &Module, text: &str) -> Result<Self, Error> {
        let mut context = Context::new(module, text);
        match context.resolve(module) {
            Ok(()) => Ok(context.finish(module)),
            Err(fault) => Err(Error::Program(Box::new(fault.explain(text)))),
        }
    }
}

/// A problem and where it is.
#[derive(Debug)]
pub(super) struct Fault {
    pub offset: u32,
    pub problem: Problem,
}

impl Fault {
    #[cold]
    fn explain(self, text: &str) -> ProgramError {
        let position = LineIndex::new(text).position(self.offset);
        let rest = text.get(self.offset as usize..).unwrap_or_default();
        let statement = &rest[..rest.find(['\n', '\r', ';']).map_or(rest.len(), |end| end + 1)];
        let visible = |c: char| if c.is_control() { ' ' } else { c };
        let excerpt = statement.trim_end().chars().take(EXCERPT).map(visible).collect();
        ProgramError { line: position.line, column: position.column, excerpt, problem: self.problem }
    }
}

/// The outcome of resolving a part.
pub(super) type Resolved<T> = Result<T, Fault>;

/// What is known of the module while it is resolved.
pub(super) struct Context<'a> {
    pub text: &'a str,
    pub symbols: FxHashMap<&'a str, Symbol>,
    pub variables: Vec<Variable>,
    pub functions: Vec<Function>,
    pub locations: Locations<'a>,
    /// Registers that the module may still declare.
    pub registers_left: u32,
    forms: Vec<Form>,
    form_ids: FxHashMap<&'a str, FormId>,
    lines: Lines,
}

/// Lines of offsets that are asked for in order.
#[derive(Default)]
struct Lines {
    offset: u32,
    line: u32,
    /// Where the line begins.
    start: u32,
}

impl<'a> Context<'a> {
    fn new(module: &Module<'a>, text: &'a str) -> Self {
        Self {
            text,
            symbols: FxHashMap::default(),
            variables: Vec::new(),
            functions: Vec::new(),
            locations: Locations::new(module),
            registers_left: MAXIMUM_REGISTERS,
            forms: Vec::new(),
            form_ids: FxHashMap::default(),
            lines: Lines { offset: 0, line: 1, start: 0 },
        }
    }

    fn resolve(&mut self, module: &Module<'a>) -> Resolved<()> {
        for item in &module.items {
            match item {
                Item::Variable(variable) => self.declare_variable(variable)?,
                Item::Function(function) => self.declare_function(function)?,
                Item::Alias { name, target } => match self.symbols.get(target) {
                    Some(&symbol @ Symbol::Function(_)) => drop(self.symbols.insert(name, symbol)),
                    _ => return Err(Fault { offset: self.offset_of(name), problem: self.no_function(target) }),
                },
                Item::File(_) | Item::Section(_) | Item::Pragma(_) => {}
            }
        }
        for item in &module.items {
            match item {
                Item::Variable(variable) if variable.initial.is_some() => initialise(self, variable)?,
                Item::Function(function) if function.body.is_some() => resolve_body(self, function)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn finish(self, module: &Module) -> Program {
        let file = |item: &Item| match item {
            Item::File(file) => Some(SourceFile { index: file.index, path: file.path.into() }),
            _ => None,
        };
        Program {
            version: module.version,
            targets: module.targets.iter().map(|target| (*target).into()).collect(),
            address_size: module.address_size,
            files: module.items.iter().filter_map(file).collect(),
            variables: self.variables,
            functions: self.functions,
            forms: self.forms,
            locations: self.locations.finish(),
        }
    }

    /// The number of a form, decoded at its first use.
    pub fn form(&mut self, text: &'a str, offset: u32) -> Resolved<FormId> {
        if let Some(&id) = self.form_ids.get(text) {
            return Ok(id);
        }
        let plain = plain_opcode(text);
        let form = Form::decode(&plain).map_err(|error| Fault { offset, problem: form_problem(&plain, error) })?;
        let id = FormId(self.forms.len() as u32);
        self.forms.push(form);
        self.form_ids.insert(text, id);
        Ok(id)
    }

    pub fn decoded(&self, id: FormId) -> &Form {
        &self.forms[id.0 as usize]
    }

    /// The line of an offset; fast where it is after the last one asked for.
    pub fn line(&mut self, offset: u32) -> u32 {
        if offset < self.lines.offset {
            self.lines = Lines { offset: 0, line: 1, start: 0 };
        }
        let between = &self.text.as_bytes()[self.lines.offset as usize..(offset as usize).min(self.text.len())];
        if let Some(last) = memchr::memrchr(b'\n', between) {
            self.lines.start = self.lines.offset + last as u32 + 1;
        }
        self.lines.line += memchr::memchr_iter(b'\n', between).count() as u32;
        self.lines.offset += between.len() as u32;
        self.lines.line
    }

    /// The column of the offset whose line was asked for last, in bytes.
    pub fn column(&self) -> u32 {
        self.lines.offset - self.lines.start + 1
    }

    /// Where a name that borrows from the text stands in it.
    fn offset_of(&self, name: &str) -> u32 {
        (name.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize) as u32
    }

    fn declare_variable(&mut self, variable: &parse::Variable<'a>) -> Resolved<()> {
        for number in 0..variable.count.unwrap_or(1) {
            // `.global .u32 x<3>` makes three variables; their names are not in the text, and nothing prints it.
            if variable.count.is_some() {
                let problem = Problem::TooLarge { name: format!("{}{number}", variable.name) };
                return Err(Fault { offset: variable.offset, problem });
            }
            let resolved = memory_variable(variable)?;
            let symbol = Symbol::Variable(VariableId(self.variables.len() as u32));
            match self.symbols.get(variable.name).copied() {
                None => {
                    self.symbols.insert(variable.name, symbol);
                    self.variables.push(resolved);
                }
                // A declaration elsewhere and a definition here are one variable.
                Some(Symbol::Variable(earlier)) => {
                    let earlier = &mut self.variables[earlier.0 as usize];
                    let outside = |linkage| matches!(linkage, Linkage::Extern | Linkage::Weak | Linkage::Common);
                    if outside(earlier.linkage) {
                        *earlier = resolved;
                    } else if !outside(variable.linkage) {
                        let offset = earlier.offset;
                        return Err(self.twice(variable.name, variable.offset, offset));
                    }
                }
                Some(_) => return Err(self.twice(variable.name, variable.offset, 0)),
            }
        }
        Ok(())
    }

    fn declare_function(&mut self, function: &parse::Function<'a>) -> Resolved<()> {
        let line = self.line(function.offset);
        let resolved = head(function, line)?;
        match self.symbols.get(function.name).copied() {
            None => {
                let id = FunctionId(self.functions.len() as u32);
                self.symbols.insert(function.name, Symbol::Function(id));
                self.functions.push(resolved);
            }
            Some(Symbol::Function(earlier)) => {
                let earlier = &mut self.functions[earlier.0 as usize];
                if earlier.defined && resolved.defined {
                    let offset = earlier.offset;
                    return Err(self.twice(function.name, function.offset, offset));
                }
                if resolved.defined {
                    *earlier = resolved;
                }
            }
            Some(_) => return Err(self.twice(function.name, function.offset, 0)),
        }
        Ok(())
    }

    #[cold]
    pub fn twice(&mut self, name: &str, offset: u32, earlier: u32) -> Fault {
        Fault { offset, problem: Problem::Twice { name: name.to_owned(), line: self.line(earlier) } }
    }

    #[cold]
    pub fn no_function(&self, name: &str) -> Problem {
        let functions = self.functions.iter().map(|function| &*function.name);
        Problem::NoFunction { name: name.to_owned(), nearest: crate::error::nearest(name, functions) }
    }
}

/// A variable in memory, without its initial value.
pub(super) fn memory_variable(variable: &parse::Variable) -> Resolved<Variable> {
    let (size, natural) = size_of(variable)?;
    Ok(Variable {
        name: variable.name.into(),
        offset: variable.offset,
        linkage: variable.linkage,
        space: variable.space,
        ty: variable.ty,
        vector: variable.vector,
        size,
        align: variable.align.unwrap_or(natural).max(1),
        initial: Vec::new(),
        relocations: Vec::new(),
    })
}

/// A function without its body.
fn head(function: &parse::Function, line: u32) -> Resolved<Function> {
    let (parameters, parameter_bytes) = layout(&function.parameters)?;
    let (returns, _) = layout(&function.returns)?;
    let numbers = |name: &str| {
        let directive = function.directives.iter().find(|directive| directive.name == name)?;
        let number = |index: usize| directive.numbers.get(index).map_or(1, |&n| n.min(u64::from(u32::MAX)) as u32);
        Some([number(0), number(1), number(2)])
    };
    Ok(Function {
        name: function.name.into(),
        offset: function.offset,
        line,
        linkage: function.linkage,
        entry: function.entry,
        defined: function.body.is_some(),
        returns,
        parameters,
        parameter_bytes,
        required_threads: numbers("reqntid"),
        maximum_threads: numbers("maxntid"),
        minimum_blocks: numbers("minnctapersm").map(|[count, ..]| count),
        maximum_registers: numbers("maxnreg").map(|[count, ..]| count),
        required_cluster: numbers("reqnctapercluster"),
        no_return: function.directives.iter().any(|directive| directive.name == "noreturn"),
        registers: Vec::new(),
        register_names: Vec::new(),
        variables: Vec::new(),
        prototypes: Vec::new(),
        branch_targets: Vec::new(),
        call_targets: Vec::new(),
        instructions: Vec::new(),
        operands: Vec::new(),
        flow: Flow::default(),
    })
}

#[cold]
fn form_problem(text: &str, error: FormError) -> Problem {
    let opcode = text.split('.').next().unwrap_or_default().to_owned();
    match error {
        FormError::Opcode(word) => Problem::UnknownOpcode {
            opcode: word.to_owned(),
            nearest: crate::error::nearest(word, Opcode::ALL.iter().map(|opcode| opcode.text())),
        },
        FormError::Modifier(word) => {
            let words = Word::ALL.iter().map(|word| word.text());
            let types = ScalarType::ALL.iter().map(|ty| ty.text());
            let nearest = crate::error::nearest(word, words.chain(types).chain(["v2", "v4", "v8"]));
            Problem::UnknownModifier { opcode, modifier: word.to_owned(), nearest }
        }
        FormError::Misplaced(word) => Problem::MisplacedModifier { opcode, modifier: word.to_owned() },
        FormError::NoType => Problem::MissingType { opcode },
    }
}
