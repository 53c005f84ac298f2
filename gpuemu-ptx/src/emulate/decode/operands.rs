//! Where operands lie: registers, constants, special registers, addresses.

use super::{Decoded, Decoder, Place};
use crate::emulate::op::{Op, Unary};
use crate::emulate::ops;
use crate::emulate::registers::Lane;
use crate::emulate::spaces;
use crate::program::{Base, Operand, RegisterId, ScalarType, Space, Special, Symbol};

/// An address as written.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    /// The register it is counted from, and its bits.
    pub register: Option<(i32, u32)>,
    /// Bytes to add.
    pub offset: u64,
    /// The symbol it is counted from.
    pub symbol: Option<Symbol>,
}

impl Address {
    fn fixed(offset: u64) -> Self {
        Self { register: None, offset, symbol: None }
    }
}

impl<'a> Decoder<'a> {
    /// An operand by number.
    pub fn operand(&self, index: usize) -> Decoded<&'a Operand> {
        self.operands.get(index).ok_or_else(|| format!("it has no operand {}", index + 1))
    }

    /// Whether there is an operand of this number.
    pub fn has_operand(&self, index: usize) -> bool {
        index < self.operands.len()
    }

    /// Where an operand that is read lies, as a value of type `L`.
    pub fn source<L: Lane>(&mut self, index: usize) -> Decoded<i32> {
        let operand = self.operand(index)?;
        self.source_of::<L>(operand)
    }

    /// Where an operand that is read lies.
    pub fn source_of<L: Lane>(&mut self, operand: &Operand) -> Decoded<i32> {
        let wide = L::ROWS == 2;
        Ok(match operand {
            Operand::Register(register) => {
                let ty = self.function.register(*register).ty;
                let slot = self.slot(*register);
                match (ty.bits(), L::ROWS) {
                    (1, _) => return Err("a predicate stands where a number should".to_owned()),
                    (..=32, 1) | (64, 2) | (128, 4) => slot,
                    (64, 1) => self.converted(slot, |_, x: u64| x as u32),
                    (..=32, 2) => self.converted(slot, |_, x: u32| u64::from(x)),
                    (64, 4) => self.converted(slot, |_, x: u64| u128::from(x)),
                    (bits, _) => return Err(format!("a register of {bits} bits does not fit")),
                }
            }
            Operand::Integer(bits) => self.constants.get::<L>(u128::from(*bits)),
            Operand::Float32(bits) if wide => self.constant::<u64>(f64::from(f32::from_bits(*bits)).to_bits()),
            Operand::Float32(bits) => self.constant::<u32>(u64::from(*bits)),
            Operand::Float64(bits) if wide => self.constant::<u64>(*bits),
            Operand::Float64(bits) => self.constant::<u32>(u64::from((f64::from_bits(*bits) as f32).to_bits())),
            Operand::Special(special) => self.special::<L>(*special)?,
            Operand::Environment(_) => self.constant::<u32>(0),
            Operand::Symbol(symbol, addend) => self.address_of::<L>(*symbol, *addend)?,
            Operand::Discard => self.constant::<L>(0),
            _ => return Err("an operand is of a kind that it cannot have".to_owned()),
        })
    }

    /// A copy of a row, converted.
    fn converted<A: Lane, D: Lane, F: Fn(u64, A) -> D + Copy>(&mut self, from: i32, _: F) -> i32 {
        let d = self.temporary::<D>();
        let op = Op { d, a: from, ..self.op_of::<Unary<F, D, A>>() };
        self.emit(op);
        d
    }

    fn special<L: Lane>(&mut self, special: Special) -> Decoded<i32> {
        ops::special::check(special)?;
        let wide = special.ty().bits() == 64;
        let d = if wide { self.temporary::<u64>() } else { self.temporary::<u32>() };
        let op = Op { d, imm: special as u64, ..self.op_of::<ops::special::Read>() };
        self.emit(op);
        Ok(match (wide, L::ROWS) {
            (true, 2) | (false, 1) => d,
            (true, _) => self.converted(d, |_, x: u64| x as u32),
            (false, _) => self.converted(d, |_, x: u32| u64::from(x)),
        })
    }

    /// The address of a symbol in its own space.
    fn address_of<L: Lane>(&mut self, symbol: Symbol, addend: i64) -> Decoded<i32> {
        if let Symbol::Local(id) = symbol
            && self.function.variables[id.0 as usize].space == Space::Local
        {
            // Where it is depends on the calls that are open.
            let offset = self.layout.variables[id.0 as usize].offset as i64 + addend;
            let d = self.temporary::<u64>();
            let op = Op { d, imm: offset as u64, ..self.op_of::<ops::special::LocalAddress>() };
            self.emit(op);
            return Ok(if L::ROWS == 2 { d } else { self.converted(d, |_, x: u64| x as u32) });
        }
        let address = self.symbol_address(symbol)?.wrapping_add(addend as u64);
        Ok(self.constants.get::<L>(u128::from(address)))
    }

    /// The address of a symbol whose place does not change: in its own space.
    pub fn symbol_address(&self, symbol: Symbol) -> Decoded<u64> {
        let name = |space: Space, name: &str| format!("`{name}` has no address in {space:?} memory");
        match symbol {
            Symbol::Variable(id) => {
                let variable = self.program.variable(id);
                match variable.space {
                    Space::Shared => Ok(u64::from(self.shared[&Place::Module(id)])),
                    space => self.settings.addresses.get(&id).copied().ok_or_else(|| name(space, &variable.name)),
                }
            }
            Symbol::Local(id) => {
                let variable = &self.function.variables[id.0 as usize];
                let place = Place::Function(self.origin.function, id.0);
                match variable.space {
                    Space::Shared => Ok(u64::from(self.shared[&place])),
                    space => Err(name(space, &variable.name)),
                }
            }
            Symbol::Parameter(index) if self.function.entry => {
                Ok(u64::from(self.function.parameters[index as usize].offset))
            }
            Symbol::Parameter(_) | Symbol::Return(_) => {
                Err("the address of a function's parameter is taken".to_owned())
            }
            Symbol::Function(id) => Ok(spaces::function_address(id)),
        }
    }

    /// Where the operand that is written lies. Where the register is wider than the value, the value is widened
    /// afterwards, by its sign if `signed`.
    pub fn destination<L: Lane>(&mut self, index: usize, signed: bool) -> Decoded<i32> {
        let operand = self.operand(index)?;
        self.destination_of::<L>(operand, signed)
    }

    /// As `destination`.
    pub fn destination_of<L: Lane>(&mut self, operand: &Operand, signed: bool) -> Decoded<i32> {
        match operand {
            Operand::Register(register) => {
                let bits = self.function.register(*register).ty.bits();
                let slot = self.slot(*register);
                match (bits, L::ROWS) {
                    (1, _) => Err("a predicate stands where a register should".to_owned()),
                    (..=32, 1) | (64, 2) | (128, 4) => Ok(slot),
                    (64, 1) => {
                        let d = self.temporary::<u32>();
                        let op = match signed {
                            true => self.widening(|_, x: i32| i64::from(x)),
                            false => self.widening(|_, x: u32| u64::from(x)),
                        };
                        self.after.push(Op { d: slot, a: d, ..op });
                        Ok(d)
                    }
                    (128, 2) => {
                        let d = self.temporary::<u64>();
                        let op = self.widening(|_, x: u64| u128::from(x));
                        self.after.push(Op { d: slot, a: d, ..op });
                        Ok(d)
                    }
                    (bits, _) => Err(format!("a register of {bits} bits is too small")),
                }
            }
            Operand::Discard => Ok(self.temporary::<L>()),
            _ => Err("its result goes to something that is no register".to_owned()),
        }
    }

    fn widening<A: Lane, D: Lane, F: Fn(u64, A) -> D + Copy>(&self, _: F) -> Op {
        self.op_of::<Unary<F, D, A>>()
    }

    /// A predicate that is read: the number, or its complement for a negation.
    pub fn truth(&self, operand: &Operand) -> Decoded<i32> {
        match operand {
            Operand::Register(register) | Operand::Negated(register)
                if self.function.register(*register).ty != ScalarType::Predicate =>
            {
                Err(format!("{} is no predicate", self.function.register_name(*register)))
            }
            Operand::Register(register) => Ok(self.slot(*register)),
            Operand::Negated(register) => Ok(!self.slot(*register)),
            Operand::Integer(bits) => Ok(if *bits == 0 { !0 } else { 0 }),
            _ => Err("an operand should be a predicate".to_owned()),
        }
    }

    /// A predicate that is written; 0 for `_`.
    pub fn truth_destination(&self, operand: &Operand) -> Decoded<i32> {
        match operand {
            Operand::Discard => Ok(0),
            Operand::Register(register) if self.function.register(*register).ty == ScalarType::Predicate => {
                Ok(self.slot(*register))
            }
            _ => Err("its result should be a predicate".to_owned()),
        }
    }

    /// An address: the register it is counted from, and the bytes to add.
    pub fn address(&mut self, index: usize) -> Decoded<Address> {
        let operand = self.operand(index)?;
        self.address_operand(operand)
    }

    /// As `address`.
    pub fn address_operand(&mut self, operand: &Operand) -> Decoded<Address> {
        Ok(match operand {
            Operand::Address(Base::Register(register), offset) => self.register_address(*register, *offset),
            Operand::Register(register) => self.register_address(*register, 0),
            Operand::Address(Base::Absolute, offset) => Address::fixed(*offset as u64),
            Operand::Integer(bits) => Address::fixed(*bits),
            Operand::Address(Base::Symbol(symbol), offset) | Operand::Symbol(symbol, offset) => {
                if let Symbol::Local(id) = symbol
                    && self.function.variables[id.0 as usize].space == Space::Local
                {
                    let register = self.address_of::<u64>(*symbol, *offset)?;
                    return Ok(Address { register: Some((register, 64)), offset: 0, symbol: Some(*symbol) });
                }
                if self.parameter_row(*symbol).is_some() {
                    return Ok(Address { register: None, offset: *offset as u64, symbol: Some(*symbol) });
                }
                let address = self.symbol_address(*symbol)?.wrapping_add(*offset as u64);
                Address { register: None, offset: address, symbol: Some(*symbol) }
            }
            _ => return Err("its address is of a kind that it cannot have".to_owned()),
        })
    }

    fn register_address(&self, register: RegisterId, offset: i64) -> Address {
        let bits = self.function.register(register).ty.bits();
        Address { register: Some((self.slot(register), bits)), offset: offset as u64, symbol: None }
    }

    /// The register of an address as 64 bits, sums of 32 bits wrapping there; and the bytes to add.
    pub fn wide_address(&mut self, address: Address) -> (i32, u64) {
        match address.register {
            Some((register, 64)) => (register, address.offset),
            Some((register, _)) => {
                let d = self.temporary::<u64>();
                let op = self.widening(|k, x: u32| u64::from(x.wrapping_add(k as u32)));
                self.emit(Op { d, a: register, imm: address.offset, ..op });
                (d, 0)
            }
            None => (self.constant::<u64>(0), address.offset),
        }
    }
}
