//! A form: an opcode with its modifiers, decoded. All instructions written alike share one.

use super::modifier::{Modifier, Word};
use super::opcode::Opcode;
use super::signature::{self, Slot};
use super::types::{Compare, Operation, Order, Rounding, ScalarType, Scope, Shape, Space};

/// Number of a [`Form`] in [`super::Program::forms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FormId(pub u32);

/// An opcode with its modifiers, as every instruction that spells them so shares it.
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    /// As written: `ld.global.L1::no_allocate.v4.b32`.
    pub text: Box<str>,
    /// Its first word.
    pub opcode: Opcode,
    /// Every modifier, in the order written, the types and what else the fields below hold among them.
    pub modifiers: Vec<Modifier>,
    /// Its types, in the order written: result before operands.
    pub types: Vec<ScalarType>,
    /// The first state space named; `None` for a generic address, or where there is no address.
    pub space: Option<Space>,
    /// Elements of a vector access; 1 without.
    pub vector: u8,
    /// How results are rounded.
    pub rounding: Option<Rounding>,
    /// The comparison of `set`, `setp`, `vset`.
    pub compare: Option<Compare>,
    /// What `atom`, `red`, `redux`, `vote`, `cp.reduce`, `bar.red` do, or how `setp` combines its result with a predicate.
    pub operation: Option<Operation>,
    /// The scope of a memory operation. A word `cta` or `cluster` of another meaning (`barrier.cluster`) counts too.
    pub scope: Option<Scope>,
    /// The order of a memory operation.
    pub order: Option<Order>,
    /// The extents of a matrix operation.
    pub shape: Option<Shape>,
    /// What its operands are.
    pub(crate) slots: &'static [Slot],
}

/// Why an opcode is none.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FormError<'a> {
    /// Its first word is unknown.
    Opcode(&'a str),
    /// No instruction has this word.
    Modifier(&'a str),
    /// Other instructions have this word.
    Misplaced(&'a str),
    /// It takes a type, and has none.
    NoType,
}

impl Form {
    /// Decodes `ld.global.v4.b32`, as [`crate::parse::plain_opcode`] gives it.
    pub(crate) fn decode(text: &str) -> Result<Self, FormError<'_>> {
        let mut words = text.split('.');
        let first = words.next().unwrap_or_default();
        let opcode = Opcode::from_text(first).ok_or(FormError::Opcode(first))?;
        let mut modifiers = Vec::new();
        for word in words.clone() {
            modifiers.push(Modifier::from_text(word).ok_or(FormError::Modifier(word))?);
        }
        let signature = signature::of(opcode, &modifiers);
        if let Some((word, _)) = words.zip(&modifiers).find(|(_, modifier)| !signature.allows(**modifier)) {
            return Err(FormError::Misplaced(word));
        }
        let word = |find: fn(Word) -> bool| {
            modifiers.iter().find_map(|modifier| match modifier {
                Modifier::Word(word) if find(*word) => Some(*word),
                _ => None,
            })
        };
        let types: Vec<_> = modifiers
            .iter()
            .filter_map(|modifier| match modifier {
                Modifier::Type(ty) => Some(*ty),
                _ => None,
            })
            .collect();
        if types.is_empty() && signature.slots.iter().any(Slot::needs_type) {
            return Err(FormError::NoType);
        }
        let bank = modifiers.iter().any(|modifier| matches!(modifier, Modifier::Bank(_))).then_some(Space::Constant);
        Ok(Self {
            text: text.into(),
            opcode,
            types,
            space: word(|word| word.space().is_some()).and_then(Word::space).or(bank),
            vector: modifiers
                .iter()
                .find_map(|modifier| match modifier {
                    Modifier::Vector(count) => Some(*count),
                    _ => None,
                })
                .unwrap_or(1),
            rounding: word(|word| word.rounding().is_some()).and_then(Word::rounding),
            compare: opcode.compares().then(|| word(|word| word.compare().is_some()).and_then(Word::compare)).flatten(),
            operation: word(|word| word.operation().is_some()).and_then(Word::operation),
            scope: word(|word| word.scope().is_some()).and_then(Word::scope),
            order: word(|word| word.order().is_some()).and_then(Word::order),
            shape: modifiers.iter().find_map(|modifier| match modifier {
                Modifier::Shape(shape) => Some(*shape),
                _ => None,
            }),
            modifiers,
            slots: signature.slots,
        })
    }

    /// Whether it has this word.
    pub fn has(&self, word: Word) -> bool {
        self.modifiers.contains(&Modifier::Word(word))
    }

    /// Its first type: that of the result where there are several.
    ///
    /// # Panics
    ///
    /// Where there is none; every form of arithmetic, loads and stores has one.
    pub fn ty(&self) -> ScalarType {
        self.types[0]
    }
}

impl Opcode {
    fn compares(self) -> bool {
        matches!(self, Self::Set | Self::Setp | Self::Vset | Self::Vset2 | Self::Vset4)
    }
}
