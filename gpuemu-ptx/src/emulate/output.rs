//! What kernels print.

/// One call of `printf` by one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The block.
    pub block: [u32; 3],
    /// The thread.
    pub thread: [u32; 3],
    /// What it printed.
    pub text: String,
}

/// Bytes of what is printed that are kept of a launch: sixteen times what CUDA keeps by default.
const KEPT: usize = 16 << 20;

/// What was printed, the first of it: what comes later than there is room for is lost, as it is on a GPU.
#[derive(Debug)]
pub struct Output {
    printed: Vec<Printed>,
    room: usize,
}

impl Output {
    /// Room for all that is kept of a launch.
    pub fn new() -> Self {
        Self { printed: Vec::new(), room: KEPT }
    }

    /// Keeps a call, unless the room is used up.
    pub fn push(&mut self, printed: Printed) {
        match self.room.checked_sub(size_of::<Printed>() + printed.text.len()) {
            Some(room) => {
                self.room = room;
                self.printed.push(printed);
            }
            None => self.room = 0,
        }
    }

    /// What was kept since it was last taken.
    pub fn take(&mut self) -> Vec<Printed> {
        std::mem::take(&mut self.printed)
    }

    /// What is kept of the output of several workers, in the order of their turns: none of them has kept less of what came
    /// first.
    pub fn first(all: impl Iterator<Item = Printed>) -> Vec<Printed> {
        let mut kept = Self::new();
        all.for_each(|printed| kept.push(printed));
        kept.printed
    }
}

/// A part of what `printf` writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// As it is.
    Text(String),
    /// The string at an address, cut to a precision and padded to a width, to the left if so asked.
    String {
        /// Its address.
        address: u64,
        /// The least characters.
        width: usize,
        /// The most characters.
        precision: Option<usize>,
        /// Whether the padding follows.
        left: bool,
    },
}

impl Part {
    /// The text, strings read by `read`.
    ///
    /// # Errors
    ///
    /// Those of `read`.
    pub fn resolve<E>(self, read: impl FnOnce(u64) -> Result<String, E>) -> Result<String, E> {
        match self {
            Self::Text(text) => Ok(text),
            Self::String { address, width, precision, left } => {
                let text = read(address)?;
                let text: String = text.chars().take(precision.unwrap_or(usize::MAX)).collect();
                Ok(padded(&text, width, left))
            }
        }
    }
}

fn padded(text: &str, width: usize, left: bool) -> String {
    // No kernel needs a line longer than this.
    let width = width.min(1 << 12);
    if left { format!("{text:<width$}") } else { format!("{text:>width$}") }
}

/// What C's `printf` makes of a format; `byte` gives the arguments' memory, each aligned to its size. `%n` writes
/// nothing.
///
/// # Errors
///
/// Those of `byte`.
pub fn formatted<E>(format: &str, mut byte: impl FnMut(u64) -> Result<u8, E>) -> Result<Vec<Part>, E> {
    let mut at = 0u64;
    let mut number = |bytes: u64| -> Result<u64, E> {
        at = at.next_multiple_of(bytes);
        let mut value = 0;
        for index in 0..bytes {
            value |= u64::from(byte(at + index)?) << (8 * index);
        }
        at += bytes;
        Ok(value)
    };
    let (mut parts, mut text) = (Vec::new(), String::new());
    let mut rest = format.chars().peekable();
    while let Some(c) = rest.next() {
        if c != '%' {
            text.push(c);
            continue;
        }
        let (mut left, mut plus, mut space, mut zero, mut alternate) = (false, false, false, false, false);
        while let Some(flag) = rest.next_if(|c| "-+ 0#".contains(*c)) {
            match flag {
                '-' => left = true,
                '+' => plus = true,
                ' ' => space = true,
                '0' => zero = true,
                _ => alternate = true,
            }
        }
        let mut count = |rest: &mut std::iter::Peekable<std::str::Chars<'_>>| -> Result<Option<i64>, E> {
            if rest.next_if_eq(&'*').is_some() {
                return Ok(Some(i64::from(number(4)? as i32)));
            }
            let mut value = None;
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                value = Some(value.unwrap_or(0i64).saturating_mul(10) + i64::from(digit as u32 - '0' as u32));
            }
            Ok(value)
        };
        let width = count(&mut rest)?.unwrap_or(0);
        left |= width < 0;
        let width = width.unsigned_abs() as usize;
        let precision = match rest.next_if_eq(&'.') {
            Some(_) => Some(count(&mut rest)?.unwrap_or(0).max(0) as usize),
            None => None,
        };
        let mut long = 0;
        while let Some(letter) = rest.next_if(|c| "hlLqjzt".contains(*c)) {
            long += match letter {
                'l' => 1,
                'h' => 0,
                _ => 2,
            };
        }
        let conversion = rest.next().unwrap_or('%');
        let mut wide = || if long > 0 { number(8) } else { number(4) };
        let (sign, body, numeric) = match conversion {
            '%' => {
                text.push('%');
                continue;
            }
            'd' | 'i' => {
                let value = wide()?;
                let value = if long > 0 { value as i64 } else { i64::from(value as i32) };
                (sign(value < 0, plus, space), digits(value.unsigned_abs().to_string(), precision), true)
            }
            'u' => (String::new(), digits(wide()?.to_string(), precision), true),
            'x' | 'X' | 'o' => {
                let value = wide()?;
                let body = match conversion {
                    'x' => format!("{value:x}"),
                    'X' => format!("{value:X}"),
                    _ => format!("{value:o}"),
                };
                let prefix = match (alternate && value != 0, conversion) {
                    (false, _) => "",
                    (true, 'x') => "0x",
                    (true, 'X') => "0X",
                    (true, _) => "0",
                };
                (prefix.to_owned(), digits(body, precision), true)
            }
            'p' => ("0x".to_owned(), format!("{:x}", number(8)?), true),
            'c' => (String::new(), char::from(number(4)? as u8).to_string(), false),
            's' => {
                let address = number(8)?;
                parts.push(Part::Text(std::mem::take(&mut text)));
                parts.push(Part::String { address, width, precision, left });
                continue;
            }
            'f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'a' | 'A' => {
                let value = f64::from_bits(number(8)?);
                let finite = value.is_finite();
                zero &= finite;
                let body = float(value.abs(), conversion, precision, alternate);
                (sign(value.is_sign_negative(), plus, space), body, finite)
            }
            'n' => {
                number(8)?;
                continue;
            }
            other => {
                text.push('%');
                text.push(other);
                continue;
            }
        };
        let zeros = zero && numeric && !left && (precision.is_none() || "fFeEgGaA".contains(conversion));
        let length = sign.chars().count() + body.chars().count();
        if zeros && length < width {
            text += &sign;
            text.extend(std::iter::repeat_n('0', width.min(1 << 12).saturating_sub(length)));
            text += &body;
        } else {
            text += &padded(&format!("{sign}{body}"), width, left);
        }
    }
    parts.push(Part::Text(text));
    Ok(parts)
}

fn sign(negative: bool, plus: bool, space: bool) -> String {
    match (negative, plus, space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (.., true) => " ",
        _ => "",
    }
    .to_owned()
}

fn digits(digits: String, precision: Option<usize>) -> String {
    match precision {
        Some(0) if digits == "0" => String::new(),
        Some(least) => format!("{digits:0>width$}", width = least.min(1 << 12)),
        None => digits,
    }
}

/// A float of no sign as `%f`, `%e` or `%g` writes it.
fn float(value: f64, conversion: char, precision: Option<usize>, alternate: bool) -> String {
    let upper = conversion.is_ascii_uppercase();
    let cased = |text: String| if upper { text.to_uppercase() } else { text };
    if value.is_nan() {
        return cased("nan".to_owned());
    }
    if value.is_infinite() {
        return cased("inf".to_owned());
    }
    let precision = precision.unwrap_or(6).min(1 << 10);
    match conversion.to_ascii_lowercase() {
        'f' => format!("{value:.precision$}"),
        'e' => cased(scientific(value, precision)),
        'a' => cased(hexadecimal(value)),
        _ => {
            let precision = precision.max(1);
            let written = scientific(value, precision - 1);
            let exponent: i32 = written.split_once('e').and_then(|(_, digits)| digits.parse().ok()).unwrap_or(0);
            let text = if exponent < -4 || exponent >= precision as i32 {
                match (alternate, written.split_once('e')) {
                    (false, Some((mantissa, exponent))) => format!("{}e{exponent}", trimmed(mantissa)),
                    _ => written,
                }
            } else {
                let places = (precision as i32 - 1 - exponent).max(0) as usize;
                let text = format!("{value:.places$}");
                if alternate { text } else { trimmed(&text).to_owned() }
            };
            cased(text)
        }
    }
}

fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// `1.5e+00`: an exponent of a sign and two digits at least, as C writes it.
fn scientific(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, digits) = match exponent.strip_prefix('-') {
                Some(digits) => ('-', digits),
                None => ('+', exponent),
            };
            format!("{mantissa}e{sign}{digits:0>2}")
        }
        None => text,
    }
}

fn hexadecimal(value: f64) -> String {
    let bits = value.to_bits();
    let (field, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
    let (lead, exponent) = match (field, fraction) {
        (0, 0) => (0, 0),
        (0, _) => (0, -1022),
        (field, _) => (1, field as i64 - 1023),
    };
    let digits = format!("{fraction:013x}");
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{lead}{point}{digits}p{exponent:+}")
}
