//! Integer expressions over dimensions and parameters: shapes, launch grids and constraints.

use std::fmt;

/// Values of the names an expression may use, in declaration order (few: a linear search is quickest).
pub type Bindings = [(String, i64)];

/// An integer expression: `B*S`, `ceil_div(H, 128)`, `H - 1`.
///
/// Operators `+ - * / %` (division truncates toward zero, as in Rust and C), parentheses, `ceil_div(a,b)`,
/// `next_pow2(a)`, `min`, `max`; `true` and `false` read as 1 and 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expression {
    /// An integer literal.
    Literal(i64),
    /// A dimension or an integer parameter.
    Name(String),
    /// A negated expression.
    Negate(Box<Expression>),
    /// Two operands and an operator, one of `+ - * / %`.
    Binary(char, Box<Expression>, Box<Expression>),
    /// A function call.
    Call(Function, Vec<Expression>),
}

/// Functions an expression may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// `ceil_div(a, b)`.
    CeilDiv,
    /// `next_pow2(a)`: the smallest power of two that is at least a; 1 for a <= 1.
    NextPow2,
    /// `min(a, b, ...)`.
    Min,
    /// `max(a, b, ...)`.
    Max,
}

/// A comparison of two expressions, or comparisons joined by `and` / `or`: `H % 2 == 0`, `K <= 4096`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Two expressions compared by one of `== != < <= > >=`.
    Compare(Expression, Comparison, Expression),
    /// Both hold.
    And(Box<Condition>, Box<Condition>),
    /// At least one holds.
    Or(Box<Condition>, Box<Condition>),
}

/// A comparison operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterEqual,
}

/// Why an expression could not be read or evaluated; fit to follow "failed: ".
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionError {
    /// Byte offset in the expression's text where reading stopped; 0 for evaluation.
    pub at: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ExpressionError {}

impl Function {
    /// Every function.
    pub const ALL: [Function; 4] = [Function::CeilDiv, Function::NextPow2, Function::Min, Function::Max];

    /// The name an expression calls it by.
    pub const fn name(self) -> &'static str {
        match self {
            Function::CeilDiv => "ceil_div",
            Function::NextPow2 => "next_pow2",
            Function::Min => "min",
            Function::Max => "max",
        }
    }

    /// How few and how many arguments it takes.
    pub const fn arity(self) -> (usize, usize) {
        match self {
            Function::CeilDiv => (2, 2),
            Function::NextPow2 => (1, 1),
            Function::Min | Function::Max => (1, usize::MAX),
        }
    }
}

impl Comparison {
    /// Every comparison.
    pub const ALL: [Comparison; 6] = [
        Comparison::Equal,
        Comparison::NotEqual,
        Comparison::LessEqual,
        Comparison::Less,
        Comparison::GreaterEqual,
        Comparison::Greater,
    ];

    /// The operator as written.
    pub const fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "==",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterEqual => ">=",
        }
    }

    fn holds(self, left: i64, right: i64) -> bool {
        match self {
            Comparison::Equal => left == right,
            Comparison::NotEqual => left != right,
            Comparison::Less => left < right,
            Comparison::LessEqual => left <= right,
            Comparison::Greater => left > right,
            Comparison::GreaterEqual => left >= right,
        }
    }
}

impl Expression {
    /// The value, with every name taken from `bindings`.
    ///
    /// # Errors
    ///
    /// An unknown name, a division by zero, a value outside 64 signed bits.
    pub fn evaluate(&self, bindings: &Bindings) -> Result<i64, ExpressionError> {
        let fail = |message: String| ExpressionError { at: 0, message };
        let overflow = || fail(format!("`{self}` does not fit in 64 bits"));
        match self {
            Expression::Literal(value) => Ok(*value),
            Expression::Name(name) => bindings
                .iter()
                .find(|(bound, _)| bound == name)
                .map(|(_, value)| *value)
                .ok_or_else(|| fail(format!("`{name}` is no dimension and no integer parameter"))),
            Expression::Negate(operand) => operand.evaluate(bindings)?.checked_neg().ok_or_else(overflow),
            Expression::Binary(operator, left, right) => {
                let (left, right) = (left.evaluate(bindings)?, right.evaluate(bindings)?);
                if matches!(operator, '/' | '%') && right == 0 {
                    return Err(fail(format!("`{self}` divides by zero")));
                }
                match operator {
                    '+' => left.checked_add(right),
                    '-' => left.checked_sub(right),
                    '*' => left.checked_mul(right),
                    '/' => left.checked_div(right),
                    '%' => left.checked_rem(right),
                    other => return Err(fail(format!("`{other}` is no operator"))),
                }
                .ok_or_else(overflow)
            }
            Expression::Call(function, arguments) => {
                let values =
                    arguments.iter().map(|argument| argument.evaluate(bindings)).collect::<Result<Vec<i64>, _>>()?;
                match (function, values.as_slice()) {
                    (Function::CeilDiv, [_, 0]) => Err(fail(format!("`{self}` divides by zero"))),
                    (Function::CeilDiv, [a, b]) => {
                        let quotient = a.checked_div(*b).ok_or_else(overflow)?;
                        // Truncation rounds up already when the signs differ.
                        Ok(if a % b != 0 && (*a < 0) == (*b < 0) { quotient + 1 } else { quotient })
                    }
                    (Function::NextPow2, [a]) => {
                        let power = u64::try_from(*a).unwrap_or(0).max(1).checked_next_power_of_two();
                        power.and_then(|power| i64::try_from(power).ok()).ok_or_else(overflow)
                    }
                    (Function::Min, [first, rest @ ..]) => {
                        Ok(rest.iter().fold(*first, |least, &value| least.min(value)))
                    }
                    (Function::Max, [first, rest @ ..]) => Ok(rest.iter().fold(*first, |most, &value| most.max(value))),
                    _ => Err(fail(format!("`{self}` has the wrong number of arguments"))),
                }
            }
        }
    }

    /// The names it uses, each once, in the order of the text.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.collect_names(&mut names);
        names
    }

    fn collect_names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Expression::Literal(_) => {}
            Expression::Name(name) if names.contains(&name.as_str()) => {}
            Expression::Name(name) => names.push(name),
            Expression::Negate(operand) => operand.collect_names(names),
            Expression::Binary(_, left, right) => {
                left.collect_names(names);
                right.collect_names(names);
            }
            Expression::Call(_, arguments) => arguments.iter().for_each(|argument| argument.collect_names(names)),
        }
    }

    /// How tightly the outermost operator binds: the larger, the tighter.
    fn precedence(&self) -> u8 {
        match self {
            Expression::Binary('+' | '-', ..) => 1,
            Expression::Binary(..) => 2,
            _ => 3,
        }
    }

    fn write_operand(&self, f: &mut fmt::Formatter<'_>, least: u8) -> fmt::Result {
        if self.precedence() < least { write!(f, "({self})") } else { write!(f, "{self}") }
    }
}

impl fmt::Display for Expression {
    /// With the fewest parentheses that read back as the same tree.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Expression::Literal(value) => write!(f, "{value}"),
            Expression::Name(name) => f.write_str(name),
            // A minus before a bare number belongs to the number, so one that does not is kept apart.
            Expression::Negate(operand) if matches!(**operand, Expression::Literal(0..)) => write!(f, "-({operand})"),
            Expression::Negate(operand) => {
                f.write_str("-")?;
                operand.write_operand(f, 3)
            }
            Expression::Binary(operator, left, right) => {
                left.write_operand(f, self.precedence())?;
                write!(f, " {operator} ")?;
                right.write_operand(f, self.precedence() + 1)
            }
            Expression::Call(function, arguments) => {
                write!(f, "{}(", function.name())?;
                for (position, argument) in arguments.iter().enumerate() {
                    write!(f, "{}{argument}", if position == 0 { "" } else { ", " })?;
                }
                f.write_str(")")
            }
        }
    }
}

impl Condition {
    /// Whether it holds; boolean parameters are bound as 0 and 1.
    ///
    /// # Errors
    ///
    /// Those of [`Expression::evaluate`], on the sides that decide the answer.
    pub fn holds(&self, bindings: &Bindings) -> Result<bool, ExpressionError> {
        Ok(match self {
            Condition::Compare(left, comparison, right) => {
                comparison.holds(left.evaluate(bindings)?, right.evaluate(bindings)?)
            }
            Condition::And(left, right) => left.holds(bindings)? && right.holds(bindings)?,
            Condition::Or(left, right) => left.holds(bindings)? || right.holds(bindings)?,
        })
    }

    /// The names it uses, each once, in the order of the text.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.collect_names(&mut names);
        names
    }

    fn collect_names<'a>(&'a self, names: &mut Vec<&'a str>) {
        match self {
            Condition::Compare(left, _, right) => {
                left.collect_names(names);
                right.collect_names(names);
            }
            Condition::And(left, right) | Condition::Or(left, right) => {
                left.collect_names(names);
                right.collect_names(names);
            }
        }
    }
}

impl fmt::Display for Condition {
    /// With the fewest parentheses that read back as the same tree.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Compare(left, comparison, right) => write!(f, "{left} {} {right}", comparison.symbol()),
            Condition::And(left, right) => {
                match **left {
                    Condition::Or(..) => write!(f, "({left}) and ")?,
                    _ => write!(f, "{left} and ")?,
                }
                match **right {
                    Condition::Compare(..) => write!(f, "{right}"),
                    _ => write!(f, "({right})"),
                }
            }
            Condition::Or(left, right) => match **right {
                Condition::Or(..) => write!(f, "{left} or ({right})"),
                _ => write!(f, "{left} or {right}"),
            },
        }
    }
}
