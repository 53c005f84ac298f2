//! Integer expressions over dimensions and parameters: shapes, launch grids and constraints.

use std::fmt;

/// Values of the names an expression may use, in declaration order (few: a linear search is quickest).
pub type Bindings = [(String, i64)];

/// An integer expression: `B*S`, `ceil_div(H, 128)`, `H - 1`.
///
/// Operators `+ - * / %` (division truncates toward zero), parentheses, `ceil_div(a,b)`, `next_pow2(a)`, `min`, `max`.
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
