//! Reads expressions and conditions: recursive descent, one token of look-ahead, bounded depth and length.

use crate::expression::{Comparison, Condition, Expression, ExpressionError, Function};

/// How deep parentheses, calls and signs may nest.
const MAX_DEPTH: usize = 64;
/// How many tokens a text may have, which bounds the tree and so the recursion of everything that walks it.
const MAX_TOKENS: usize = 1_000;
/// Words that cannot name a dimension or a parameter.
const RESERVED: [&str; 9] = ["and", "or", "not", "true", "false", "ceil_div", "next_pow2", "min", "max"];

impl Expression {
    /// Reads an expression such as `ceil_div(H, 128)`.
    ///
    /// # Errors
    ///
    /// Text that is no expression, with the byte where reading stopped.
    pub fn parse(text: &str) -> Result<Expression, ExpressionError> {
        let mut parser = Parser::new(text)?;
        let expression = parser.sum(0)?;
        parser.end("an operator or the end")?;
        Ok(expression)
    }
}

impl Condition {
    /// Reads a condition such as `H % 2 == 0 and K <= 4096`.
    ///
    /// # Errors
    ///
    /// Text that is no condition, with the byte where reading stopped.
    pub fn parse(text: &str) -> Result<Condition, ExpressionError> {
        let mut parser = Parser::new(text)?;
        let condition = parser.any_of(0)?;
        parser.end("`and`, `or` or the end")?;
        Ok(condition)
    }
}

/// Whether a word may not name a dimension or a parameter, because expressions give it a meaning of its own.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Number(u64),
    Word(&'a str),
    Symbol(&'a str),
    End,
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(usize, Token<'a>)>,
    next: usize,
}

type Parsed<T> = Result<T, ExpressionError>;

fn fail<T>(at: usize, message: impl Into<String>) -> Parsed<T> {
    Err(ExpressionError { at, message: message.into() })
}

fn tokenize(text: &str) -> Parsed<Vec<(usize, Token<'_>)>> {
    const SYMBOLS: [&str; 15] = ["==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "(", ")", ",", "="];
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let length = if first.is_whitespace() {
            at += first.len_utf8();
            continue;
        } else if first.is_ascii_digit() {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').unwrap_or(rest.len());
            let Ok(value) = rest[..length].parse() else {
                return fail(at, format!("`{}` is no 64-bit integer", &rest[..length]));
            };
            tokens.push((at, Token::Number(value)));
            length
        } else if first.is_ascii_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            tokens.push((at, Token::Word(&rest[..length])));
            length
        } else if let Some(symbol) = SYMBOLS.into_iter().find(|symbol| rest.starts_with(symbol)) {
            tokens.push((at, Token::Symbol(symbol)));
            symbol.len()
        } else {
            return match first {
                '&' => fail(at, "`&` is no operator, write `and`"),
                '|' => fail(at, "`|` is no operator, write `or`"),
                '!' => fail(at, "`!` is no operator, write `!=`"),
                _ => fail(at, format!("`{first}` has no meaning in an expression")),
            };
        };
        if tokens.len() > MAX_TOKENS {
            return fail(at, format!("the text has more than {MAX_TOKENS} words and signs"));
        }
        at += length;
    }
    tokens.push((text.len(), Token::End));
    Ok(tokens)
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parsed<Self> {
        Ok(Parser { text, tokens: tokenize(text)?, next: 0 })
    }

    fn peek(&self) -> Token<'a> {
        self.tokens[self.next].1
    }

    fn at(&self) -> usize {
        self.tokens[self.next].0
    }

    fn advance(&mut self) {
        // The last token is `End`, which nothing passes.
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = self.peek() == Token::Symbol(symbol);
        if found {
            self.advance();
        }
        found
    }

    fn take_word(&mut self, word: &str) -> bool {
        let found = self.peek() == Token::Word(word);
        if found {
            self.advance();
        }
        found
    }

    fn unexpected<T>(&self, expected: &str) -> Parsed<T> {
        match self.peek() {
            Token::End if self.text.trim().is_empty() => fail(0, format!("the text is empty, expected {expected}")),
            Token::End => fail(self.at(), format!("`{}` ends too early, expected {expected}", self.text)),
            Token::Symbol("=") => fail(self.at(), "`=` compares nothing, write `==`"),
            Token::Number(value) => fail(self.at(), format!("`{value}` is out of place, expected {expected}")),
            Token::Word(found) | Token::Symbol(found) => {
                fail(self.at(), format!("`{found}` is out of place, expected {expected}"))
            }
        }
    }

    fn end(&self, expected: &str) -> Parsed<()> {
        if self.peek() == Token::End { Ok(()) } else { self.unexpected(expected) }
    }

    fn any_of(&mut self, depth: usize) -> Parsed<Condition> {
        let mut condition = self.all_of(depth)?;
        while self.take_word("or") {
            condition = Condition::Or(Box::new(condition), Box::new(self.all_of(depth)?));
        }
        Ok(condition)
    }

    fn all_of(&mut self, depth: usize) -> Parsed<Condition> {
        let mut condition = self.comparison(depth)?;
        while self.take_word("and") {
            condition = Condition::And(Box::new(condition), Box::new(self.comparison(depth)?));
        }
        Ok(condition)
    }

    fn comparison(&mut self, depth: usize) -> Parsed<Condition> {
        // A parenthesis opens an operand or a whole condition: an operand is tried first.
        let start = self.next;
        let compared = self.compared(depth);
        match compared {
            Err(error) if self.tokens[start].1 == Token::Symbol("(") && depth < MAX_DEPTH => {
                self.next = start + 1;
                let condition = match self.any_of(depth + 1) {
                    Ok(condition) => condition,
                    // The attempt that came further knows better what is wrong.
                    Err(later) => return Err(if later.at > error.at { later } else { error }),
                };
                if self.take(")") { Ok(condition) } else { self.unexpected("`and`, `or` or `)`") }
            }
            other => other,
        }
    }

    fn compared(&mut self, depth: usize) -> Parsed<Condition> {
        let left = self.sum(depth)?;
        let Some(comparison) = self.comparison_operator() else {
            return self.unexpected("a comparison such as `==` or `<=`");
        };
        let right = self.sum(depth)?;
        let at = self.at();
        if self.comparison_operator().is_some() {
            return fail(at, "comparisons cannot be chained, join them with `and`");
        }
        Ok(Condition::Compare(left, comparison, right))
    }

    fn comparison_operator(&mut self) -> Option<Comparison> {
        Comparison::ALL.into_iter().find(|comparison| self.take(comparison.symbol()))
    }

    fn sum(&mut self, depth: usize) -> Parsed<Expression> {
        let mut left = self.product(depth)?;
        loop {
            let operator = match self.peek() {
                Token::Symbol("+") => '+',
                Token::Symbol("-") => '-',
                _ => return Ok(left),
            };
            self.advance();
            left = Expression::Binary(operator, Box::new(left), Box::new(self.product(depth)?));
        }
    }

    fn product(&mut self, depth: usize) -> Parsed<Expression> {
        let mut left = self.signed(depth)?;
        loop {
            let operator = match self.peek() {
                Token::Symbol("*") => '*',
                Token::Symbol("/") => '/',
                Token::Symbol("%") => '%',
                _ => return Ok(left),
            };
            self.advance();
            left = Expression::Binary(operator, Box::new(left), Box::new(self.signed(depth)?));
        }
    }

    fn signed(&mut self, depth: usize) -> Parsed<Expression> {
        let at = self.at();
        if depth >= MAX_DEPTH {
            return fail(at, format!("the text nests more than {MAX_DEPTH} deep"));
        }
        if !self.take("-") {
            return self.operand(depth);
        }
        if let Token::Number(value) = self.peek() {
            self.advance();
            return match 0i64.checked_sub_unsigned(value) {
                Some(value) => Ok(Expression::Literal(value)),
                None => fail(at, format!("`-{value}` is no 64-bit integer")),
            };
        }
        Ok(Expression::Negate(Box::new(self.signed(depth + 1)?)))
    }

    fn operand(&mut self, depth: usize) -> Parsed<Expression> {
        let at = self.at();
        match self.peek() {
            Token::Number(value) => {
                self.advance();
                match i64::try_from(value) {
                    Ok(value) => Ok(Expression::Literal(value)),
                    Err(_) => fail(at, format!("`{value}` is no 64-bit integer")),
                }
            }
            Token::Symbol("(") => {
                self.advance();
                let inner = self.sum(depth + 1)?;
                if self.take(")") { Ok(inner) } else { self.unexpected("`)`") }
            }
            Token::Word("and" | "or" | "not") => self.unexpected("a number, a name or `(`"),
            Token::Word("true") => {
                self.advance();
                Ok(Expression::Literal(1))
            }
            Token::Word("false") => {
                self.advance();
                Ok(Expression::Literal(0))
            }
            Token::Word(word) => {
                self.advance();
                if self.take("(") { self.call(word, at, depth) } else { Ok(Expression::Name(word.to_owned())) }
            }
            _ => self.unexpected("a number, a name or `(`"),
        }
    }

    fn call(&mut self, word: &str, at: usize, depth: usize) -> Parsed<Expression> {
        let Some(function) = Function::ALL.into_iter().find(|function| function.name() == word) else {
            return fail(at, format!("`{word}` is no function, expected ceil_div, next_pow2, min or max"));
        };
        let mut arguments = Vec::new();
        loop {
            arguments.push(self.sum(depth + 1)?);
            if self.take(")") {
                break;
            }
            if !self.take(",") {
                return self.unexpected("`,` or `)`");
            }
        }
        let (least, most) = function.arity();
        if arguments.len() < least || arguments.len() > most {
            let given = arguments.len();
            return fail(
                at,
                format!("`{word}` takes {least} argument{}, not {given}", if least == 1 { "" } else { "s" }),
            );
        }
        Ok(Expression::Call(function, arguments))
    }
}
