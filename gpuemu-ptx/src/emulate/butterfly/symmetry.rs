//! Whether what two lanes make of what they exchanged is the same in both.

use rustc_hash::FxHashMap;

use super::{Search, varies};
use crate::emulate::demand::is_pure;
use crate::program::{Compare, Form, Opcode, Operand, RegisterId, ScalarType, Word};

/// Instructions of one combination, at most.
const MOST: usize = 64;
/// Arguments that a combination is tried on.
const TRIALS: u64 = 6;
/// How far both orders may be apart in float64, relative to the largest argument and to the result.
const AGREEMENT: f64 = 1e-9;

/// An operand of a combination.
#[derive(Clone, Copy)]
enum Term {
    /// A constant.
    Constant(f64),
    /// A term before this one.
    Node(usize),
    /// The opposite of a predicate before this one.
    Not(usize),
}

/// A value of a combination, as a lane and its partner have it.
enum Node {
    /// Both have the same.
    Shared,
    /// Each has its own.
    Own,
    /// A value that is exchanged, as its own lane has it, by register.
    Mine(RegisterId),
    /// The same from the partner.
    Partner(RegisterId),
    /// Computed from others.
    Computed(u32, Vec<Term>),
}

/// The instructions from what lanes exchanged to what they make of it.
pub struct Combination<'a> {
    search: &'a Search<'a>,
    /// The last of them.
    at: u32,
    stride: u8,
    nodes: Vec<Node>,
    /// Whether what was exchanged is part of each.
    tied: Vec<bool>,
    places: FxHashMap<RegisterId, usize>,
}

impl<'a> Combination<'a> {
    /// What the instruction `at` makes of what lanes `stride` apart exchanged; `None` where that is nothing, or too much.
    pub fn new(search: &'a Search<'a>, at: u32, stride: u8) -> Option<Self> {
        let mut combination =
            Self { search, at, stride, nodes: Vec::new(), tied: Vec::new(), places: FxHashMap::default() };
        combination.compute(at)?;
        combination.nodes.iter().any(|node| matches!(node, Node::Partner(_))).then_some(combination)
    }

    fn push(&mut self, node: Node) -> Option<usize> {
        self.tied.push(match &node {
            Node::Shared | Node::Own => false,
            Node::Mine(_) | Node::Partner(_) => true,
            Node::Computed(_, terms) => {
                terms.iter().any(|term| matches!(term, Term::Node(place) | Term::Not(place) if self.tied[*place]))
            }
        });
        self.nodes.push(node);
        (self.nodes.len() <= MOST).then(|| self.nodes.len() - 1)
    }

    /// An instruction that computes; `None` where it is not understood or there are too many.
    fn compute(&mut self, at: u32) -> Option<usize> {
        let function = self.search.function;
        let instruction = &function.instructions[at as usize];
        let operands = function.operands_of(instruction);
        if instruction.writes != 1 || !matches!(operands.first(), Some(Operand::Register(_))) {
            return None;
        }
        let mut terms = Vec::with_capacity(3);
        for operand in &operands[1..] {
            terms.push(match operand {
                Operand::Register(register) => Term::Node(self.value(at, *register)?),
                Operand::Negated(register) => Term::Not(self.value(at, *register)?),
                Operand::Integer(value) => Term::Constant(*value as i64 as f64),
                Operand::Float32(bits) => Term::Constant(f32::from_bits(*bits).into()),
                Operand::Float64(bits) => Term::Constant(f64::from_bits(*bits)),
                _ => return None,
            });
        }
        self.push(Node::Computed(at, terms))
    }

    fn value(&mut self, at: u32, register: RegisterId) -> Option<usize> {
        if let Some(&place) = self.places.get(&register) {
            return Some(place);
        }
        let search = self.search;
        let stride = self.stride;
        let shared = |register| varies(&search.register(at, register)) & stride == 0;
        let exchanged = |register| {
            let readers = search.uses.readers(register).iter();
            let mut exchanges = readers.filter_map(|&reader| search.exchange(reader));
            exchanges.any(|exchange| exchange == (register, stride))
        };
        let writer = search.writer(register);
        let node = match writer.and_then(|writer| search.exchange(writer)) {
            Some((source, stride)) if stride == self.stride => Node::Partner(source),
            _ if exchanged(register) => Node::Mine(register),
            _ => match writer {
                Some(writer) if is_pure(search.function.instructions[writer as usize].opcode) && writer < at => {
                    let known = self.nodes.len();
                    let place = self.compute(writer);
                    if let Some(place) = place.filter(|&place| self.tied[place] || !shared(register)) {
                        self.places.insert(register, place);
                        return Some(place);
                    }
                    if !shared(register) {
                        return None;
                    }
                    // How it came about makes no difference.
                    self.nodes.truncate(known);
                    self.tied.truncate(known);
                    self.places.retain(|_, place| *place < known);
                    Node::Shared
                }
                _ if shared(register) => Node::Shared,
                _ => Node::Own,
            },
        };
        let place = self.push(node)?;
        self.places.insert(register, place);
        Some(place)
    }

    /// The bits in which what it begins with may vary.
    pub fn varies(&self) -> u8 {
        let leaves = self.places.iter().filter(|(_, place)| !matches!(self.nodes[**place], Node::Computed(..)));
        leaves.fold(0, |all, (register, _)| all | varies(&self.search.register(self.at, *register)))
    }

    /// Whether a lane and its partner get the same, but for rounding.
    pub fn is_symmetric(&self) -> bool {
        let mut tried = false;
        let agree = (1..=TRIALS).all(|trial| {
            // Counts and sums of exponentials have no sign.
            let mut random = Random { state: trial, signed: trial % 2 == 0 };
            let mut pairs: FxHashMap<RegisterId, (f64, f64)> = FxHashMap::default();
            let mut values: Vec<(f64, f64)> = Vec::with_capacity(self.nodes.len());
            for node in &self.nodes {
                let value = match node {
                    Node::Shared => {
                        let value = random.next();
                        (value, value)
                    }
                    Node::Own => (random.next(), random.next()),
                    Node::Mine(register) | Node::Partner(register) => {
                        let shared = varies(&self.search.register(self.at, *register)) & self.stride == 0;
                        let own = *pairs.entry(*register).or_insert_with(|| {
                            let mine = random.next();
                            (mine, if shared { mine } else { random.next() })
                        });
                        if matches!(node, Node::Mine(_)) { own } else { (own.1, own.0) }
                    }
                    Node::Computed(at, terms) => {
                        let form = self.search.program.form(self.search.function.instructions[*at as usize].form);
                        let of = |which: fn(&(f64, f64)) -> f64| {
                            let term = |term: &Term| match term {
                                Term::Constant(value) => *value,
                                Term::Node(place) => which(&values[*place]),
                                Term::Not(place) => 1.0 - which(&values[*place]),
                            };
                            evaluate(form, &terms.iter().map(term).collect::<Vec<_>>())
                        };
                        match (of(|both| both.0), of(|both| both.1)) {
                            (Some(mine), Some(theirs)) => (mine, theirs),
                            _ => return false,
                        }
                    }
                };
                values.push(value);
            }
            values.last().is_some_and(|(mine, theirs)| {
                let size = mine.abs().max(theirs.abs()).max(1.0);
                tried |= mine.is_finite();
                (mine - theirs).abs() <= AGREEMENT * size || !mine.is_finite() && !theirs.is_finite()
            })
        });
        agree && tried
    }
}

/// What an instruction computes, without rounding; `None` where that is not known here.
fn evaluate(form: &Form, x: &[f64]) -> Option<f64> {
    let ty = *form.types.first()?;
    let truth = |is: bool| Some(f64::from(u8::from(is)));
    if ty == ScalarType::Predicate {
        return match (form.opcode, x) {
            (Opcode::And, [a, b]) => Some(a * b),
            (Opcode::Or, [a, b]) => Some(a.max(*b)),
            (Opcode::Xor, [a, b]) => Some((a - b).abs()),
            (Opcode::Not, [a]) => Some(1.0 - a),
            _ => None,
        };
    }
    if ty.lanes() != 1 {
        return None;
    }
    Some(match (form.opcode, x) {
        (Opcode::Mov | Opcode::Cvt, [a]) => match form.types.get(1) {
            Some(from) if from.is_float() && !ty.is_float() => a.trunc(),
            _ => *a,
        },
        (Opcode::Add, [a, b]) => a + b,
        (Opcode::Sub, [a, b]) => a - b,
        (Opcode::Mul, [a, b]) if !form.has(Word::Hi) => a * b,
        (Opcode::Fma | Opcode::Mad, [a, b, c]) if !form.has(Word::Hi) => a * b + c,
        (Opcode::Div, [a, b]) if ty.is_float() => a / b,
        (Opcode::Min, [a, b]) => a.min(*b),
        (Opcode::Max, [a, b]) => a.max(*b),
        (Opcode::Neg, [a]) => -a,
        (Opcode::Abs, [a]) => a.abs(),
        (Opcode::Rcp, [a]) => 1.0 / a,
        (Opcode::Sqrt, [a]) => a.sqrt(),
        (Opcode::Rsqrt, [a]) => 1.0 / a.sqrt(),
        (Opcode::Ex2, [a]) => a.exp2(),
        (Opcode::Lg2, [a]) => a.log2(),
        (Opcode::Tanh, [a]) => a.tanh(),
        (Opcode::Selp, [a, b, predicate]) => {
            if *predicate != 0.0 {
                *a
            } else {
                *b
            }
        }
        (Opcode::Setp, [a, b]) => {
            use Compare::*;
            let unordered = a.is_nan() || b.is_nan();
            return match form.compare? {
                Equal => truth(a == b),
                NotEqual => truth(a != b && !unordered),
                Less | Lower => truth(a < b),
                LessEqual | LowerSame => truth(a <= b),
                Greater | Higher => truth(a > b),
                GreaterEqual | HigherSame => truth(a >= b),
                EqualUnordered => truth(a == b || unordered),
                NotEqualUnordered => truth(a != b),
                LessUnordered => truth(a < b || unordered),
                LessEqualUnordered => truth(a <= b || unordered),
                GreaterUnordered => truth(a > b || unordered),
                GreaterEqualUnordered => truth(a >= b || unordered),
                Ordered => truth(!unordered),
                Unordered => truth(unordered),
            };
        }
        _ => return None,
    })
}

/// Numbers from 0.5 to 2 (xorshift64*).
struct Random {
    state: u64,
    signed: bool,
}

impl Random {
    fn next(&mut self) -> f64 {
        let mut x = self.state.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.state = x;
        let bits = x.wrapping_mul(0x2545_f491_4f6c_dd1d);
        let size = 0.5 + 1.5 * (bits >> 12) as f64 / (1_u64 << 52) as f64;
        if self.signed && bits & 1 == 1 { -size } else { size }
    }
}
