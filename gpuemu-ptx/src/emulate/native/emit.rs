//! Machine code of one run of operations: registers of the host handed out, parts of rows looped over.
//!
//! What works lane by lane does so for eight lanes at a time: a group of such operations is one loop over the four parts
//! of a row, whose values stay in registers of the host from one operation to the next and reach memory only where
//! something behind the group reads them.

use rustc_hash::FxHashMap;

use super::assembler::{Assembler, Base, Index, Memory, Operand, Vex, Word, Ymm};
use super::step::{Float, Integer, Kind, Logic, Relation, Width};
use crate::numerics::float::NAN32;

/// One operation, and until when its result is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// What it computes.
    pub kind: Kind,
    /// Where the result goes: a row, or a predicate.
    pub d: i32,
    /// The operands: rows, constants or predicates.
    pub operands: [i32; 3],
    /// The instruction.
    pub instruction: u32,
    /// The last instruction that reads the result; `u32::MAX` where others may read it, 0 where none does.
    pub until: u32,
}

/// The constants that code refers to, in the order of [`POOL`], by their offset.
const NAN: Operand = Operand::Pool(0);
const SIGN: Operand = Operand::Pool(32);
const MAGNITUDE: Operand = Operand::Pool(64);
const ONES: Operand = Operand::Pool(96);
const BITS: Operand = Operand::Pool(128);

/// The constants themselves.
pub const POOL: [[u32; 8]; 5] =
    [[NAN32; 8], [1 << 31; 8], [!(1 << 31); 8], [u32::MAX; 8], [1, 2, 4, 8, 16, 32, 64, 128]];

/// Registers for values: the others are for what an operation needs in between.
const VALUES: u8 = 12;
const FIRST: Ymm = Ymm(12);
const SECOND: Ymm = Ymm(13);
const THIRD: Ymm = Ymm(14);
/// Predicates that a group can put together, from the first on.
const WORDS: usize = 3;
const FIRST_WORD: u8 = 9;
/// Holds `NAN`.
const CANONICAL: Ymm = Ymm(15);

/// Which eight or four lanes of a register: of a row, or of the lower or upper four of a part of two rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    Whole,
    Lower,
    Upper,
}

/// A value in a register of the host.
#[derive(Clone, Copy, Debug)]
struct Held {
    row: i32,
    half: Half,
    /// Whether memory has it not yet, and until which instruction it is wanted.
    unsaved: Option<u32>,
    used: u32,
}

/// The parts of a row that are worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// That of the loop's turn.
    Turn,
    /// One of four.
    Number(i32),
}

/// Writes the code of one run.
pub struct Emitter<'a> {
    code: &'a mut Assembler,
    part: Part,
    held: [Option<Held>; VALUES as usize],
    /// Registers that the operation being written needs.
    pinned: u16,
    /// The predicates that the group writes.
    truths: Vec<i32>,
    /// Those of them that it reads itself.
    read: Vec<i32>,
    clock: u32,
}

/// Groups of steps that are one loop, or alone.
fn groups(steps: &[Step]) -> Vec<&[Step]> {
    let mut groups = Vec::new();
    let (mut start, mut so_far) = (0, Group::default());
    for (at, step) in steps.iter().enumerate() {
        if at > start && !so_far.takes(step) {
            groups.push(&steps[start..at]);
            (start, so_far) = (at, Group::default());
        }
        so_far.add(step);
    }
    groups.push(&steps[start..]);
    groups
}

/// What decides whether one more step belongs to a group.
#[derive(Default)]
struct Group {
    /// Whether its step stands alone.
    alone: bool,
    /// The predicates that it writes.
    truths: Vec<i32>,
    /// For every row the register that it is of, by its first row, and how that lies.
    rows: FxHashMap<i32, (i32, Width)>,
}

impl Group {
    fn takes(&self, step: &Step) -> bool {
        // There is a register to put together each predicate that is written, once.
        let has_room = |truth| self.truths.len() < WORDS && !self.truths.contains(&truth);
        // A part of one row holds other lanes than one of two: what one step leaves there, the other sees in another turn.
        let fits = |(row, register)| self.rows.get(&row).is_none_or(|other| *other == register);
        !self.alone && !is_alone(step) && written(step).is_none_or(has_room) && rows(step).all(fits)
    }

    fn add(&mut self, step: &Step) {
        self.alone = is_alone(step);
        self.truths.extend(written(step));
        self.rows.extend(rows(step));
    }
}

/// Whether a step is no loop over parts.
fn is_alone(step: &Step) -> bool {
    matches!(step.kind, Kind::Truths(_) | Kind::Butterfly(_))
}

/// The predicate that a step writes.
fn written(step: &Step) -> Option<i32> {
    matches!(step.kind, Kind::Compare { .. } | Kind::CompareFloat(_)).then_some(step.d)
}

/// The rows that a step touches, each with the register that it is of.
fn rows(step: &Step) -> impl Iterator<Item = (i32, (i32, Width))> + '_ {
    let registers = std::iter::once(step.d).chain(step.operands).zip(step.kind.widths());
    registers.filter(|(row, _)| *row >= 0).flat_map(|(first, width)| {
        let count = match width {
            Width::None => 0,
            Width::Narrow => 1,
            Width::Wide => 2,
        };
        (first..first + count).map(move |row| (row, (first, width)))
    })
}

/// The predicate, whether it is read as it is or negated.
fn plain(predicate: i32) -> i32 {
    predicate ^ predicate >> 31
}

/// Writes a function that does what the steps do: of the first row of the frame, the end of the constants and the first
/// predicate.
pub fn emit(code: &mut Assembler, steps: &[Step]) {
    let mut emitter = Emitter {
        code,
        part: Part::Turn,
        held: [None; VALUES as usize],
        pinned: 0,
        truths: Vec::new(),
        read: Vec::new(),
        clock: 0,
    };
    let canonical =
        |step: &Step| matches!(step.kind, Kind::Float(_) | Kind::Fma | Kind::NegateFloat | Kind::AbsoluteFloat);
    if steps.iter().any(canonical) {
        emitter.code.one(Vex::LOAD, CANONICAL, NAN);
    }
    for group in groups(steps) {
        emitter.group(group);
    }
    emitter.code.end();
}

impl Emitter<'_> {
    fn group(&mut self, steps: &[Step]) {
        self.truths = steps.iter().filter_map(written).collect();
        let chooses = |step: &Step| matches!(step.kind, Kind::Select | Kind::SelectWide);
        self.read = steps.iter().filter(|step| chooses(step)).map(|step| plain(step.operands[2])).collect();
        match steps[0].kind {
            Kind::Truths(how) => self.truths(how, &steps[0]),
            Kind::Butterfly(by) => self.butterfly(by, &steps[0]),
            // Written out four times, one or two are shorter than a loop.
            _ if steps.len() <= 2 => {
                for part in 0..4 {
                    self.part = Part::Number(part);
                    self.parts(steps);
                }
            }
            _ => {
                self.part = Part::Turn;
                let begin = self.code.begin_loop();
                self.parts(steps);
                self.code.end_loop(begin);
            }
        }
        for (word, &truth) in (FIRST_WORD..).map(Word).zip(&self.truths) {
            self.code.store_bytes(word, Memory { base: Base::Truths, index: Index::None, offset: 4 * truth });
        }
    }

    /// Writes the predicate of a comparison: one bit of each lane of `FIRST`. It goes to memory as a word once all parts
    /// are there, since the host waits where it reads a word that was written in parts.
    fn truth_of_first(&mut self, step: &Step, inverted: bool) {
        self.code.signs(FIRST, inverted);
        if self.read.contains(&step.d) {
            let memory = self.truth(step.d);
            self.code.store_byte(memory);
        }
        if let Some(index) = self.truths.iter().position(|&truth| truth == step.d) {
            self.code.push_byte(Word(FIRST_WORD + index as u8));
        }
    }

    /// One part of every row.
    fn parts(&mut self, steps: &[Step]) {
        self.held = [None; VALUES as usize];
        for step in steps {
            self.pinned = 0;
            self.step(step);
            for held in &mut self.held {
                if held.is_some_and(|held| held.unsaved.is_some_and(|until| until <= step.instruction)) {
                    *held = None;
                }
            }
        }
        let last = steps[steps.len() - 1].instruction;
        for register in 0..VALUES {
            if let Some(held) = self.held[usize::from(register)]
                && held.unsaved.is_some_and(|until| until > last)
            {
                self.store(Ymm(register), held);
            }
        }
    }

    fn memory(&self, row: i32, half: Half) -> Memory {
        let base = if row >= 0 { Base::Frame } else { Base::Constants };
        let inside = if half == Half::Upper { 32 } else { 0 };
        let bytes = if half == Half::Whole { 32 } else { 64 };
        let (index, part) = match self.part {
            Part::Turn => (if half == Half::Whole { Index::Once } else { Index::Twice }, 0),
            Part::Number(part) => (Index::None, part * bytes),
        };
        Memory { base, index, offset: row * 128 + part + inside }
    }

    /// The byte of a predicate that belongs to the part.
    fn truth(&self, predicate: i32) -> Memory {
        let (index, part) = match self.part {
            Part::Turn => (Index::Bytes, 0),
            Part::Number(part) => (Index::None, part),
        };
        Memory { base: Base::Truths, index, offset: predicate * 4 + part }
    }

    fn store(&mut self, register: Ymm, held: Held) {
        let memory = self.memory(held.row, held.half);
        self.code.one(Vex::STORE, register, Operand::Memory(memory));
    }

    fn find(&mut self, row: i32, half: Half) -> Option<Ymm> {
        let is = |held: &Option<Held>| held.is_some_and(|held| (held.row, held.half) == (row, half));
        let register = self.held.iter().position(is)?;
        self.clock += 1;
        if let Some(held) = &mut self.held[register] {
            held.used = self.clock;
        }
        self.pinned |= 1 << register;
        Some(Ymm(register as u8))
    }

    /// A register for a value, that of the value that was used longest ago where all are taken.
    fn take(&mut self, row: i32, half: Half, unsaved: Option<u32>) -> Ymm {
        let free = (0..usize::from(VALUES))
            .find(|&register| self.held[register].is_none() && self.pinned >> register & 1 == 0);
        let register = free.unwrap_or_else(|| {
            // An operation pins fewer than there are.
            let unpinned = (0..usize::from(VALUES)).filter(|register| self.pinned >> register & 1 == 0);
            unpinned.min_by_key(|&register| self.held[register].map_or(0, |held| held.used)).unwrap_or(0)
        });
        if let Some(held) = self.held[register]
            && held.unsaved.is_some()
        {
            self.store(Ymm(register as u8), held);
        }
        self.clock += 1;
        self.held[register] = Some(Held { row, half, unsaved, used: self.clock });
        self.pinned |= 1 << register;
        Ymm(register as u8)
    }

    /// An operand in a register.
    fn register(&mut self, row: i32, half: Half) -> Ymm {
        if let Some(register) = self.find(row, half) {
            return register;
        }
        let memory = self.memory(row, half);
        let register = self.take(row, half, None);
        self.code.one(Vex::LOAD, register, Operand::Memory(memory));
        register
    }

    /// An operand where it is.
    fn operand(&mut self, row: i32, half: Half) -> Operand {
        match self.find(row, half) {
            Some(register) => register.into(),
            None => Operand::Memory(self.memory(row, half)),
        }
    }

    /// The register that a result goes to. What was held of the row before is gone.
    fn result(&mut self, step: &Step, half: Half) -> Ymm {
        for held in &mut self.held {
            // Its register stays pinned: it may be an operand.
            if held.is_some_and(|held| (held.row, held.half) == (step.d, half)) {
                *held = None;
            }
        }
        self.take(step.d, half, Some(step.until))
    }

    /// Four lanes of a part of one row, extended.
    fn extended(&mut self, to: Ymm, row: i32, half: Half, vex: Vex) {
        match (self.find(row, Half::Whole), half) {
            (Some(register), Half::Upper) => {
                // The result is the last operand of this one.
                self.code.one_by(Vex::HALF, register, to, 1);
                self.code.one(vex, to, to);
            }
            (Some(register), _) => self.code.one(vex, to, register),
            (None, _) => {
                let Memory { base, index, offset } = self.memory(row, Half::Whole);
                let inside = if half == Half::Upper { 16 } else { 0 };
                self.code.one(vex, to, Operand::Memory(Memory { base, index, offset: offset + inside }));
            }
        }
    }

    /// `d = a`, NaNs as the hardware gives them; `beside` is overwritten.
    fn canonical(&mut self, d: Ymm, a: Ymm, beside: Ymm) {
        self.code.two_by(Vex::COMPARE_FLOAT, beside, a, a, UNORDERED);
        self.code.blend(d, a, CANONICAL, beside);
    }

    /// `FIRST` = all ones in the lanes where a predicate, not its negation, holds.
    fn lanes_of(&mut self, predicate: i32) {
        let memory = self.truth(predicate);
        self.code.one(Vex::BROADCAST_BYTE, FIRST, Operand::Memory(memory));
        self.code.two(Vex::AND, FIRST, FIRST, BITS);
        self.code.two(Vex::EQUAL, FIRST, FIRST, BITS);
    }

    fn step(&mut self, step: &Step) {
        let [a, b, c] = step.operands;
        match step.kind {
            Kind::Float(Float::Min) => self.extremum(step, Vex::MIN_FLOAT, Vex::OR_FLOAT),
            Kind::Float(Float::Max) => self.extremum(step, Vex::MAX_FLOAT, Vex::AND_FLOAT),
            Kind::Float(how) => {
                let vex = match how {
                    Float::Add => Vex::ADD_FLOAT,
                    Float::Subtract => Vex::SUBTRACT_FLOAT,
                    _ => Vex::MULTIPLY_FLOAT,
                };
                let (a, b) = (self.register(a, Half::Whole), self.operand(b, Half::Whole));
                self.code.two(vex, FIRST, a, b);
                let d = self.result(step, Half::Whole);
                self.canonical(d, FIRST, SECOND);
            }
            Kind::Fma => {
                match self.operand(a, Half::Whole) {
                    Operand::Register(a) => self.code.one(Vex::MOVE, FIRST, a),
                    memory => self.code.one(Vex::LOAD, FIRST, memory),
                }
                let (b, c) = (self.register(b, Half::Whole), self.operand(c, Half::Whole));
                self.code.two(Vex::FMA, FIRST, b, c);
                let d = self.result(step, Half::Whole);
                self.canonical(d, FIRST, SECOND);
            }
            Kind::NegateFloat | Kind::AbsoluteFloat => {
                let a = self.register(a, Half::Whole);
                match step.kind {
                    Kind::NegateFloat => self.code.two(Vex::XOR_FLOAT, FIRST, a, SIGN),
                    _ => self.code.two(Vex::AND_FLOAT, FIRST, a, MAGNITUDE),
                }
                let d = self.result(step, Half::Whole);
                self.canonical(d, FIRST, SECOND);
            }
            Kind::ToFloat => {
                let a = self.operand(a, Half::Whole);
                let d = self.result(step, Half::Whole);
                self.code.one(Vex::TO_FLOAT, d, a);
            }
            Kind::Integer(how) => {
                let (a, b) = (self.register(a, Half::Whole), self.operand(b, Half::Whole));
                let d = self.result(step, Half::Whole);
                self.code.two(narrow(how), d, a, b);
            }
            Kind::MultiplyAdd => {
                let (a, b) = (self.register(a, Half::Whole), self.operand(b, Half::Whole));
                self.code.two(Vex::MULTIPLY, FIRST, a, b);
                let c = self.operand(c, Half::Whole);
                let d = self.result(step, Half::Whole);
                self.code.two(Vex::ADD, d, FIRST, c);
            }
            Kind::Not => {
                let a = self.register(a, Half::Whole);
                let d = self.result(step, Half::Whole);
                self.code.two(Vex::XOR, d, a, ONES);
            }
            Kind::Copy => self.copy(step, &[Half::Whole]),
            Kind::CopyWide => self.copy(step, &[Half::Lower, Half::Upper]),
            Kind::Wide(how) => {
                for half in [Half::Lower, Half::Upper] {
                    let (a, b) = (self.register(a, half), self.operand(b, half));
                    let d = self.result(step, half);
                    self.code.two(wide(how), d, a, b);
                }
            }
            Kind::ShiftWide { left } => {
                let vex = if left { Vex::SHIFT_LEFT_WIDE } else { Vex::SHIFT_RIGHT_WIDE };
                for half in [Half::Lower, Half::Upper] {
                    self.extended(FIRST, b, half, Vex::EXTEND_UNSIGNED);
                    let a = self.register(a, half);
                    let d = self.result(step, half);
                    self.code.two(vex, d, a, FIRST);
                }
            }
            Kind::Product { signed, sum } => {
                // Of each 64 bits the lower 32 are multiplied.
                let vex = if signed { Vex::MULTIPLY_SIGNED } else { Vex::MULTIPLY_UNSIGNED };
                for half in [Half::Lower, Half::Upper] {
                    self.extended(FIRST, a, half, Vex::EXTEND_UNSIGNED);
                    self.extended(SECOND, b, half, Vex::EXTEND_UNSIGNED);
                    if sum {
                        self.code.two(vex, FIRST, FIRST, SECOND);
                        let c = self.operand(c, half);
                        let d = self.result(step, half);
                        self.code.two(Vex::ADD_WIDE, d, FIRST, c);
                    } else {
                        let d = self.result(step, half);
                        self.code.two(vex, d, FIRST, SECOND);
                    }
                }
            }
            Kind::Extend { signed } => {
                let vex = if signed { Vex::EXTEND_SIGNED } else { Vex::EXTEND_UNSIGNED };
                for half in [Half::Lower, Half::Upper] {
                    let d = self.result(step, half);
                    self.extended(d, a, half, vex);
                }
            }
            Kind::Cut => {
                let (lower, upper) = (self.register(a, Half::Lower), self.operand(a, Half::Upper));
                // The lower words of each half, then the halves side by side.
                self.code.two_by(Vex::SHUFFLE_FLOAT, FIRST, lower, upper, 0x88);
                let d = self.result(step, Half::Whole);
                self.code.one_by(Vex::PERMUTE_WIDE, d, FIRST, 0xd8);
            }
            Kind::CompareFloat(how) => {
                let (a, b) = (self.register(a, Half::Whole), self.operand(b, Half::Whole));
                self.code.two_by(Vex::COMPARE_FLOAT, FIRST, a, b, how);
                self.truth_of_first(step, false);
            }
            Kind::Compare { how, signed } => self.compare(step, how, signed),
            Kind::Select => {
                self.lanes_of(plain(c));
                let (first, second) = if c >= 0 { (a, b) } else { (b, a) };
                let (second, first) = (self.register(second, Half::Whole), self.operand(first, Half::Whole));
                let d = self.result(step, Half::Whole);
                self.code.blend(d, second, first, FIRST);
            }
            Kind::SelectWide => {
                self.lanes_of(plain(c));
                let (first, second) = if c >= 0 { (a, b) } else { (b, a) };
                for half in [Half::Lower, Half::Upper] {
                    match half {
                        Half::Upper => {
                            self.code.one_by(Vex::HALF, FIRST, SECOND, 1);
                            self.code.one(Vex::EXTEND_SIGNED, SECOND, SECOND);
                        }
                        _ => self.code.one(Vex::EXTEND_SIGNED, SECOND, FIRST),
                    }
                    let (second, first) = (self.register(second, half), self.operand(first, half));
                    let d = self.result(step, half);
                    self.code.blend(d, second, first, SECOND);
                }
            }
            Kind::Truths(_) | Kind::Butterfly(_) => {}
        }
    }

    /// Of two numbers that are no NaNs both answers agree but for zeros of two signs, of which `zero` picks. The host gives
    /// its second operand where one is a NaN; the other one it is to be.
    fn extremum(&mut self, step: &Step, vex: Vex, zero: Vex) {
        let [a, b, _] = step.operands;
        let (a, b) = (self.register(a, Half::Whole), self.register(b, Half::Whole));
        self.code.two(vex, FIRST, a, b);
        self.code.two(vex, SECOND, b, a);
        self.code.two(zero, THIRD, FIRST, SECOND);
        let d = self.result(step, Half::Whole);
        self.code.two_by(Vex::COMPARE_FLOAT, d, a, a, UNORDERED);
        self.code.blend(THIRD, THIRD, FIRST, d);
        self.code.two_by(Vex::COMPARE_FLOAT, d, b, b, UNORDERED);
        self.code.blend(THIRD, THIRD, SECOND, d);
        self.canonical(d, THIRD, FIRST);
    }

    fn copy(&mut self, step: &Step, halves: &[Half]) {
        for &half in halves {
            let a = self.operand(step.operands[0], half);
            let d = self.result(step, half);
            match a {
                Operand::Register(a) => self.code.one(Vex::MOVE, d, a),
                memory => self.code.one(Vex::LOAD, d, memory),
            }
        }
    }

    fn compare(&mut self, step: &Step, how: Relation, signed: bool) {
        let [a, b, _] = step.operands;
        let a = self.register(a, Half::Whole);
        // Greater, or a difference of both, is what there is; the rest is its opposite.
        let inverted = match (how, signed) {
            (Relation::Equal | Relation::NotEqual, _) => {
                let b = self.operand(b, Half::Whole);
                self.code.two(Vex::EQUAL, FIRST, a, b);
                how == Relation::NotEqual
            }
            (Relation::Greater | Relation::LessEqual, true) => {
                let b = self.operand(b, Half::Whole);
                self.code.two(Vex::GREATER, FIRST, a, b);
                how == Relation::LessEqual
            }
            (_, true) => {
                let b = self.register(b, Half::Whole);
                self.code.two(Vex::GREATER, FIRST, b, a);
                how == Relation::GreaterEqual
            }
            (Relation::Greater | Relation::LessEqual, false) => {
                let b = self.operand(b, Half::Whole);
                self.code.two(Vex::MIN_UNSIGNED, FIRST, a, b);
                self.code.two(Vex::EQUAL, FIRST, FIRST, a);
                how == Relation::Greater
            }
            (_, false) => {
                let b = self.operand(b, Half::Whole);
                self.code.two(Vex::MAX_UNSIGNED, FIRST, a, b);
                self.code.two(Vex::EQUAL, FIRST, FIRST, a);
                how == Relation::Less
            }
        };
        self.truth_of_first(step, inverted);
    }

    fn truths(&mut self, how: Logic, step: &Step) {
        let word = |predicate: i32| Memory { base: Base::Truths, index: Index::None, offset: 4 * predicate };
        let [a, b, _] = step.operands;
        self.code.load_word(false, word(plain(a)), (a < 0) != (how == Logic::Not));
        let opcode = match how {
            Logic::And => Some(0x21),
            Logic::Or => Some(0x09),
            Logic::Xor => Some(0x31),
            Logic::Not | Logic::Copy => None,
        };
        if let Some(opcode) = opcode {
            self.code.load_word(true, word(plain(b)), b < 0);
            self.code.combine_words(opcode);
        }
        self.code.store_word(word(step.d));
    }

    fn butterfly(&mut self, by: u32, step: &Step) {
        let row = |row: i32, part: i32| {
            let base = if row >= 0 { Base::Frame } else { Base::Constants };
            Operand::Memory(Memory { base, index: Index::None, offset: 128 * row + 32 * part })
        };
        // All are read before any is written: the row may be the same.
        for part in 0..4 {
            let from = row(step.operands[0], part ^ (by / 8) as i32);
            let to = Ymm(part as u8);
            match by {
                1 => self.code.one_by(Vex::PERMUTE_INSIDE, to, from, 0xb1),
                2 => self.code.one_by(Vex::PERMUTE_INSIDE, to, from, 0x4e),
                4 => self.code.one_by(Vex::PERMUTE_WIDE, to, from, 0x4e),
                _ => self.code.one(Vex::LOAD, to, from),
            }
        }
        for part in 0..4 {
            self.code.one(Vex::STORE, Ymm(part as u8), row(step.d, part));
        }
    }
}

/// The predicate of `vcmpps` that holds of NaNs.
const UNORDERED: u8 = 3;

fn narrow(how: Integer) -> Vex {
    match how {
        Integer::Add => Vex::ADD,
        Integer::Subtract => Vex::SUBTRACT,
        Integer::Multiply => Vex::MULTIPLY,
        Integer::And => Vex::AND,
        Integer::Or => Vex::OR,
        Integer::Xor => Vex::XOR,
        Integer::ShiftLeft => Vex::SHIFT_LEFT,
        Integer::ShiftRight => Vex::SHIFT_RIGHT,
        Integer::ShiftSigned => Vex::SHIFT_SIGNED,
        Integer::MinSigned => Vex::MIN_SIGNED,
        Integer::MaxSigned => Vex::MAX_SIGNED,
        Integer::MinUnsigned => Vex::MIN_UNSIGNED,
        Integer::MaxUnsigned => Vex::MAX_UNSIGNED,
    }
}

fn wide(how: Integer) -> Vex {
    match how {
        Integer::Add => Vex::ADD_WIDE,
        Integer::Subtract => Vex::SUBTRACT_WIDE,
        other => narrow(other),
    }
}
