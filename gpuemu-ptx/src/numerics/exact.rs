//! One exact road for every binary float format: results as integers, rounded once in any direction.
//!
//! Slow and plain. `float`, `half` and `convert` take it for the rounding modes that the host lacks.

/// The direction of rounding: PTX's `.rn`, `.rz`, `.rm`, `.rp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Rounding {
    /// To nearest, ties to even (`.rn`).
    Nearest,
    /// Toward zero (`.rz`).
    Zero,
    /// Toward minus infinity (`.rm`).
    Down,
    /// Toward plus infinity (`.rp`).
    Up,
}

/// An IEEE 754 interchange format: a sign, `exponent` bits, `mantissa` bits; the largest exponent holds infinity and NaN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Bits of the exponent field.
    pub exponent: u32,
    /// Bits of the mantissa field.
    pub mantissa: u32,
}

/// binary16.
pub const F16: Format = Format { exponent: 5, mantissa: 10 };
/// bfloat16.
pub const BF16: Format = Format { exponent: 8, mantissa: 7 };
/// binary32.
pub const F32: Format = Format { exponent: 8, mantissa: 23 };
/// binary64.
pub const F64: Format = Format { exponent: 11, mantissa: 52 };

/// What a bit pattern stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Value {
    /// `(-1)^negative * significand * 2^exponent`, zero included.
    Finite {
        /// The sign bit.
        negative: bool,
        /// The power of two of the significand's last bit.
        exponent: i32,
        /// The integer significand.
        significand: u64,
    },
    /// Infinity with its sign bit.
    Infinite(bool),
    /// Any NaN.
    Nan,
}

impl Format {
    const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.mantissa
    }

    const fn sign(self) -> u64 {
        1 << (self.exponent + self.mantissa)
    }

    /// What an operation of this format answers where the result is not a number: all ones behind the sign in up to
    /// 32 bits (PTX ISA, "Floating Point Instructions"), the default NaN with its sign set in binary64, as GPUs give it.
    pub const fn nan(self) -> u64 {
        if self.mantissa == 52 { 0xfff8_0000_0000_0000 } else { self.sign() - 1 }
    }

    /// Splits a bit pattern.
    #[inline]
    pub fn value(self, bits: u64) -> Value {
        let negative = bits & self.sign() != 0;
        let field = (bits >> self.mantissa) as i32 & ((1 << self.exponent) - 1);
        let mantissa = bits & ((1 << self.mantissa) - 1);
        let smallest = 1 - self.bias() - self.mantissa as i32;
        if field == 0 {
            Value::Finite { negative, exponent: smallest, significand: mantissa }
        } else if field < (1 << self.exponent) - 1 {
            Value::Finite { negative, exponent: smallest + field - 1, significand: mantissa | 1 << self.mantissa }
        } else if mantissa == 0 {
            Value::Infinite(negative)
        } else {
            Value::Nan
        }
    }

    /// Rounds `(-1)^negative * significand * 2^exponent` to the format. A caller that dropped bits below the
    /// significand's last sets that bit, and then keeps at least two bits more than the format holds.
    #[inline]
    pub fn pack(self, negative: bool, exponent: i32, significand: u128, rounding: Rounding) -> u64 {
        let sign = if negative { self.sign() } else { 0 };
        if significand == 0 {
            return sign;
        }
        let smallest = 1 - self.bias() - self.mantissa as i32;
        let length = 128 - significand.leading_zeros() as i32;
        // The exponent of the result's last bit.
        let last = (exponent + length - 1 - self.mantissa as i32).max(smallest);
        let drop = last - exponent;
        let (mut kept, rest, half) = if drop <= 0 {
            ((significand << -drop) as u64, 0, 1)
        } else if drop < 128 {
            ((significand >> drop) as u64, significand & ((1 << drop) - 1), 1 << (drop - 1))
        } else {
            (0, 1, 2)
        };
        let away = match rounding {
            Rounding::Nearest => rest > half || (rest == half && kept & 1 == 1),
            Rounding::Zero => false,
            Rounding::Down => negative && rest != 0,
            Rounding::Up => !negative && rest != 0,
        };
        kept += u64::from(away);
        // A carry out of the mantissa and a subnormal that becomes normal both fall into place.
        let magnitude = if kept < 1 << self.mantissa {
            kept
        } else {
            let field = (last - smallest) as u64;
            kept + (field << self.mantissa)
        };
        if magnitude < self.infinity() {
            return sign | magnitude;
        }
        let to_infinity = match rounding {
            Rounding::Nearest => true,
            Rounding::Zero => false,
            Rounding::Down => negative,
            Rounding::Up => !negative,
        };
        sign | if to_infinity { self.infinity() } else { self.infinity() - 1 }
    }

    /// `a * b + c`, rounded once.
    pub fn fma(self, a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
        let (a, b, c) = (self.value(a), self.value(b), self.value(c));
        let (Value::Finite { .. }, Value::Finite { .. }, Value::Finite { .. }) = (a, b, c) else {
            return self.fma_special(a, b, c);
        };
        let (
            Value::Finite { negative: na, exponent: ea, significand: sa },
            Value::Finite { negative: nb, exponent: eb, significand: sb },
            Value::Finite { negative: nc, exponent: ec, significand: sc },
        ) = (a, b, c)
        else {
            unreachable!("checked above")
        };
        let np = na != nb;
        let product = u128::from(sa) * u128::from(sb);
        if product == 0 && sc == 0 {
            let negative = if np == nc { np } else { rounding == Rounding::Down };
            return if negative { self.sign() } else { 0 };
        }
        let (ep, product) = normal(ea + eb, product);
        let (ec, addend) = normal(ec, u128::from(sc));
        self.sum((np, ep, product), (nc, ec, addend), rounding)
    }

    /// The sum of two normalised terms, not both zero.
    fn sum(self, x: (bool, i32, u128), y: (bool, i32, u128), rounding: Rounding) -> u64 {
        let (large, small) = if (x.2 != 0 && x.1 >= y.1) || y.2 == 0 { (x, y) } else { (y, x) };
        let distance = if small.2 == 0 { 0 } else { large.1 - small.1 };
        let aligned = jam(small.2, distance as u32);
        if large.0 == small.0 {
            return self.pack(large.0, large.1, large.2 + aligned, rounding);
        }
        let (negative, magnitude) =
            if large.2 >= aligned { (large.0, large.2 - aligned) } else { (small.0, aligned - large.2) };
        let negative = if magnitude == 0 { rounding == Rounding::Down } else { negative };
        self.pack(negative, large.1, magnitude, rounding)
    }

    fn fma_special(self, a: Value, b: Value, c: Value) -> u64 {
        let zero = |v| matches!(v, Value::Finite { significand: 0, .. });
        let infinite = |v| matches!(v, Value::Infinite(_));
        let nan = [a, b, c].contains(&Value::Nan);
        if nan || (infinite(a) && zero(b)) || (zero(a) && infinite(b)) {
            return self.nan();
        }
        let product = negative(a) != negative(b);
        let sign = match (infinite(a) || infinite(b), c) {
            (true, Value::Infinite(s)) if s != product => return self.nan(),
            (true, _) => product,
            (false, other) => negative(other),
        };
        self.infinity() | if sign { self.sign() } else { 0 }
    }

    /// `a + b`.
    pub fn add(self, a: u64, b: u64, rounding: Rounding) -> u64 {
        self.fma(a, (self.bias() as u64) << self.mantissa, b, rounding)
    }

    /// `a * b`.
    pub fn mul(self, a: u64, b: u64, rounding: Rounding) -> u64 {
        // A zero of the product's own sign adds nothing.
        self.fma(a, b, (a ^ b) & self.sign(), rounding)
    }

    /// `a / b`.
    pub fn div(self, a: u64, b: u64, rounding: Rounding) -> u64 {
        let sign = (a ^ b) & self.sign();
        match (self.value(a), self.value(b)) {
            (Value::Nan, _) | (_, Value::Nan) | (Value::Infinite(_), Value::Infinite(_)) => self.nan(),
            (Value::Infinite(_), _) => sign | self.infinity(),
            (_, Value::Infinite(_)) => sign,
            (Value::Finite { significand: 0, .. }, Value::Finite { significand: 0, .. }) => self.nan(),
            (Value::Finite { significand: 0, .. }, _) => sign,
            (_, Value::Finite { significand: 0, .. }) => sign | self.infinity(),
            (
                Value::Finite { exponent: ea, significand: sa, .. },
                Value::Finite { exponent: eb, significand: sb, .. },
            ) => {
                let (ea, sa) = normal(ea, u128::from(sa));
                let sb = u128::from(sb);
                self.pack(sign != 0, ea - eb, (sa / sb) | u128::from(sa % sb != 0), rounding)
            }
        }
    }

    /// The square root.
    pub fn sqrt(self, a: u64, rounding: Rounding) -> u64 {
        match self.value(a) {
            Value::Finite { significand: 0, .. } => a,
            Value::Infinite(false) => a,
            Value::Finite { negative: false, exponent, significand } => {
                let (mut exponent, mut s) = normal(exponent, u128::from(significand));
                if exponent & 1 != 0 {
                    s >>= 1;
                    exponent += 1;
                }
                let root = s.isqrt();
                // 63 bits of root; one more place holds what is left.
                let inexact = root * root != s;
                self.pack(false, exponent / 2 - 1, root << 1 | u128::from(inexact), rounding)
            }
            _ => self.nan(),
        }
    }

    /// Rounds a value to this format; a NaN becomes the format's.
    #[inline]
    pub fn round(self, value: Value, rounding: Rounding) -> u64 {
        match value {
            Value::Finite { negative, exponent, significand } => {
                self.pack(negative, exponent, u128::from(significand), rounding)
            }
            Value::Infinite(negative) => self.infinity() | if negative { self.sign() } else { 0 },
            Value::Nan => self.nan(),
        }
    }
}

fn negative(value: Value) -> bool {
    match value {
        Value::Finite { negative, .. } | Value::Infinite(negative) => negative,
        Value::Nan => false,
    }
}

/// Shifts the significand up to 126 bits, so that a sum of two has room and quotients and roots keep their bits.
fn normal(exponent: i32, significand: u128) -> (i32, u128) {
    if significand == 0 {
        return (exponent, 0);
    }
    let up = significand.leading_zeros() as i32 - 2;
    (exponent - up, significand << up)
}

/// Shifts right; the last bit remembers whether anything was lost.
fn jam(x: u128, by: u32) -> u128 {
    if by == 0 {
        x
    } else if by < 128 {
        (x >> by) | u128::from(x << (128 - by) != 0)
    } else {
        u128::from(x != 0)
    }
}
