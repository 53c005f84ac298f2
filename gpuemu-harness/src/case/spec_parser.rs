//! Reading a spec line. Every error says where reading stopped, what was expected there and, for names, the nearest one.

use super::spec::{Distribution, Edit, InputSpec, Kind, LayoutKind, Line, Spec};
use crate::error::{Error, Result};
use gpuemu_contract::{DType, KERNEL, ParamValue, Strategy, TestName, nearest};
use std::str::FromStr;

impl FromStr for Spec {
    type Err = Error;

    /// Reads a spec line (not the `@path` form, see [`Line`]).
    fn from_str(text: &str) -> Result<Spec> {
        let mut reader = Reader { text, at: 0 };
        reader.spaces();
        let spec = reader.spec()?;
        reader.end()?;
        Ok(spec)
    }
}

impl FromStr for Line {
    type Err = Error;

    /// Reads a spec line or `@path`.
    fn from_str(text: &str) -> Result<Line> {
        let mut reader = Reader { text, at: 0 };
        reader.spaces();
        let line = match reader.peek() {
            Some('@') => Line::File(reader.path()?),
            _ => Line::Spec(reader.spec()?),
        };
        reader.end()?;
        Ok(line)
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// An error at byte `at`: the text around it and what was expected.
    fn fail_at<T>(&self, at: usize, expected: &str) -> Result<T> {
        let column = self.text[..at].chars().count() + 1;
        let found: String = self.text[at..].chars().take(24).collect();
        let found = if found.is_empty() { "the end".to_owned() } else { format!("`{found}`") };
        Err(Error::InvalidRequest(format!("spec, column {column}: expected {expected}, found {found}")))
    }

    fn fail<T>(&self, expected: &str) -> Result<T> {
        self.fail_at(self.at, expected)
    }

    fn eat(&mut self, token: &str) -> bool {
        let there = self.rest().starts_with(token);
        if there {
            self.at += token.len();
        }
        there
    }

    fn expect(&mut self, token: &str) -> Result<()> {
        if self.eat(token) { Ok(()) } else { self.fail(&format!("`{token}`")) }
    }

    /// The longest run of characters that `accept` takes.
    fn take(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|c| !accept(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn spaces(&mut self) {
        self.take(char::is_whitespace);
    }

    fn end(&mut self) -> Result<()> {
        self.spaces();
        if self.rest().is_empty() { Ok(()) } else { self.fail("the end of the spec") }
    }

    fn identifier(&mut self, what: &str) -> Result<String> {
        let start = self.at;
        let word = self.take(|c| c.is_alphanumeric() || c == '_');
        if word.is_empty() || word.starts_with(|c: char| c.is_numeric()) {
            return self.fail_at(start, what);
        }
        Ok(word.to_owned())
    }

    /// A word out of a fixed list.
    fn choice<T>(
        &mut self,
        what: &str,
        names: &mut dyn Iterator<Item = &'static str>,
        find: impl Fn(&str) -> Option<T>,
    ) -> Result<T> {
        let start = self.at;
        let word = self.take(|c| c.is_alphanumeric() || c == '_');
        if let Some(found) = find(word) {
            return Ok(found);
        }
        let names: Vec<&str> = names.collect();
        match nearest(word, names.iter().copied()) {
            Some(near) => self.fail_at(start, &format!("{what} (did you mean `{near}`?)")),
            None => self.fail_at(start, &format!("{what} (one of {})", names.join(", "))),
        }
    }

    fn unsigned(&mut self, what: &str) -> Result<u64> {
        let start = self.at;
        let digits = self.take(|c| c.is_ascii_digit());
        digits.parse().or_else(|_| self.fail_at(start, what))
    }

    fn spec(&mut self) -> Result<Spec> {
        let mut op = self.identifier("the name of an op")?;
        self.expect("::")?;
        if op == KERNEL {
            op = format!("{KERNEL}::{}", self.identifier("the name of a kernel")?);
            self.expect("::")?;
        }
        let dtype = self.choice("a dtype", &mut DType::ALL.iter().map(|dtype| dtype.name()), DType::from_name)?;
        self.expect("::")?;
        let strategy =
            self.choice("a strategy", &mut Strategy::ALL.iter().map(|strategy| strategy.name()), Strategy::from_name)?;
        let test = TestName { op, dtype, strategy };
        self.expect("{")?;
        let (mut dims, mut any_rank, mut params) = (Vec::new(), None, Vec::new());
        while !matches!(self.peek(), Some(';' | '}')) {
            if any_rank.is_none() && self.eat("...=") {
                any_rank = Some(self.shape()?);
            } else {
                let name = self.identifier("a dimension as in `B=1`, `;` or `}`")?;
                self.expect("=")?;
                dims.push((name, self.unsigned("a size")?));
            }
            if !self.eat(",") {
                break;
            }
        }
        if self.eat(";") {
            while self.peek() != Some('}') {
                let name = self.identifier("a parameter as in `axis=-1`, or `}`")?;
                self.expect("=")?;
                params.push((name, self.param()?));
                if !self.eat(",") {
                    break;
                }
            }
        }
        self.expect("}")?;

        let mut inputs: Vec<InputSpec> = Vec::new();
        let seed = loop {
            self.spaces();
            if self.eat("seed=") {
                break self.seed()?;
            }
            inputs.push(self.input()?);
        };
        let (mut edits, mut file) = (Vec::new(), None);
        loop {
            self.spaces();
            match self.peek() {
                None => break,
                Some('@') => {
                    file = Some(self.path()?);
                    break;
                }
                Some(_) => edits.push(self.edit(&inputs)?),
            }
        }
        Ok(Spec { test, dims, any_rank, params, inputs, seed, edits, file })
    }

    fn shape(&mut self) -> Result<Vec<u64>> {
        if self.eat("scalar") {
            return Ok(Vec::new());
        }
        let mut shape = vec![self.unsigned("a shape as in `2x3x4`, or `scalar`")?];
        while self.eat("x") {
            shape.push(self.unsigned("a size")?);
        }
        Ok(shape)
    }

    fn param(&mut self) -> Result<ParamValue> {
        const WHAT: &str =
            "a parameter's value: an integer, a float with a point or an exponent, true, false or \"text\"";
        if self.peek() == Some('"') {
            return Ok(ParamValue::Text(self.quoted()?));
        }
        let start = self.at;
        let word = self.take(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
        match word {
            "true" => return Ok(ParamValue::Bool(true)),
            "false" => return Ok(ParamValue::Bool(false)),
            _ => {}
        }
        if let Ok(value) = word.parse() {
            return Ok(ParamValue::Int(value));
        }
        match word.parse() {
            Ok(value) => Ok(ParamValue::Float(value)),
            Err(_) => self.fail_at(start, WHAT),
        }
    }

    /// A text in double quotes with the escapes of Rust's `Debug`.
    fn quoted(&mut self) -> Result<String> {
        self.expect("\"")?;
        let mut text = String::new();
        loop {
            let start = self.at;
            let Some(c) = self.peek() else { return self.fail("a closing `\"`") };
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(text),
                '\\' => {
                    let escaped = self.peek();
                    self.at += escaped.map_or(0, char::len_utf8);
                    match escaped {
                        Some('n') => text.push('\n'),
                        Some('r') => text.push('\r'),
                        Some('t') => text.push('\t'),
                        Some('0') => text.push('\0'),
                        Some(c @ ('\\' | '"' | '\'')) => text.push(c),
                        Some('u') => {
                            self.expect("{")?;
                            let digits = self.take(|c| c.is_ascii_hexdigit());
                            let code = u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
                            let Some(c) = code else { return self.fail_at(start, "an escape as in `\\u{7f}`") };
                            text.push(c);
                            self.expect("}")?;
                        }
                        _ => return self.fail_at(start, "an escape: \\n \\r \\t \\0 \\\\ \\\" \\' or \\u{...}"),
                    }
                }
                c => text.push(c),
            }
        }
    }

    fn input(&mut self) -> Result<InputSpec> {
        const WHAT: &str = "an input as in `x:row normal`, or `seed=`";
        let start = self.at;
        let name = self.identifier(WHAT)?;
        if self.peek() == Some('=') {
            return self.fail_at(start, WHAT);
        }
        self.expect(":")?;
        let layout =
            self.choice("a layout", &mut LayoutKind::ALL.iter().map(|layout| layout.name()), LayoutKind::from_name)?;
        self.spaces();
        let kind = self.choice("a distribution", &mut Kind::ALL.iter().map(|kind| kind.name()), Kind::from_name)?;
        let mut exponent = 0;
        if self.eat("@") {
            self.expect("2^")?;
            let start = self.at;
            let word = self.take(|c| c.is_ascii_digit() || c == '-');
            exponent = match word.parse() {
                Ok(exponent) if Distribution::EXPONENTS.contains(&exponent) => exponent,
                _ => return self.fail_at(start, "an exponent from -1074 to 1023"),
            };
        }
        Ok(InputSpec { name, layout, values: Distribution { kind, exponent } })
    }

    fn seed(&mut self) -> Result<u64> {
        let start = self.at;
        let digits = self.take(|c| c.is_ascii_hexdigit());
        u64::from_str_radix(digits, 16).or_else(|_| self.fail_at(start, "a seed of up to 16 hexadecimal digits"))
    }

    fn edit(&mut self, inputs: &[InputSpec]) -> Result<Edit> {
        let start = self.at;
        let input = self.identifier("an edit as in `x[0,2]=inf`, or `@` and a file")?;
        if !inputs.iter().any(|known| known.name == input) {
            let names = inputs.iter().map(|known| known.name.as_str());
            let expected = match nearest(&input, names) {
                Some(near) => format!("an edit of an input of this spec (did you mean `{near}`?)"),
                None => "an edit of an input of this spec".to_owned(),
            };
            return self.fail_at(start, &expected);
        }
        self.expect("[")?;
        let mut index = Vec::new();
        while self.peek() != Some(']') {
            index.push(self.unsigned("an index")?);
            if !self.eat(",") {
                break;
            }
        }
        self.expect("]=")?;
        let start = self.at;
        let word = self.take(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
        let value = word.parse().or_else(|_| self.fail_at(start, "a number, inf, -inf or NaN"))?;
        Ok(Edit { input, index, value })
    }

    fn path(&mut self) -> Result<String> {
        self.expect("@")?;
        if self.peek() == Some('"') {
            return self.quoted();
        }
        let path = self.take(|c| !c.is_whitespace() && c != '"');
        if path.is_empty() { self.fail("the path of a regression file") } else { Ok(path.to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Just, TestCaseError, any, prop, prop_assert_eq, prop_oneof, proptest};
    use proptest::sample::select;
    use proptest::strategy::Strategy as _;

    const LINE: &str =
        "softmax::float32::adversarial{B=1,S=7,H=3;axis=-1} x:row adversarial@2^40 seed=9f3c5a7700112233 x[0,0,2]=inf";

    #[test]
    fn the_documented_line_reads_as_it_says() {
        let spec: Spec = LINE.parse().expect("a spec");
        assert_eq!(spec.test, TestName::parse("softmax::float32::adversarial").expect("a test name"));
        assert_eq!(spec.dims, [("B".to_owned(), 1), ("S".to_owned(), 7), ("H".to_owned(), 3)]);
        assert_eq!(spec.params, [("axis".to_owned(), ParamValue::Int(-1))]);
        let values = Distribution { kind: Kind::Adversarial, exponent: 40 };
        assert_eq!(spec.inputs, [InputSpec { name: "x".to_owned(), layout: LayoutKind::Row, values }]);
        assert_eq!(spec.seed, 0x9f3c5a7700112233);
        assert_eq!(spec.edits, [Edit { input: "x".to_owned(), index: vec![0, 0, 2], value: f64::INFINITY }]);
        assert_eq!(spec.to_string(), LINE);
    }

    #[test]
    fn other_forms_round_trip() {
        for line in [
            "add::int8::default{} seed=0000000000000000",
            "add::bool::layout{;causal=true,eps=1e-5,mode=\"a \\\"b\\\"\"} x:padded zeros y:sliced one_hot seed=0000000000000001",
            "relu::bfloat16::edge{...=2x3x4,H=5} x:row edge@2^-3 seed=00000000000000ff x[1,2,3,4]=-0.0 x[]=NaN",
            "relu::float64::edge{...=scalar} x:row normal seed=00000000000000ff @some/file.toml",
        ] {
            assert_eq!(line.parse::<Spec>().unwrap_or_else(|error| panic!("{line}: {error}")).to_string(), line);
        }
        let file: Line = "@gpuemu-regressions/softmax/9f3c5a.toml".parse().expect("a file");
        assert_eq!(file, Line::File("gpuemu-regressions/softmax/9f3c5a.toml".to_owned()));
    }

    #[test]
    fn errors_name_the_place_and_the_nearest_spelling() {
        let table = [
            (
                LINE.replace("float32", "flaot32"),
                "spec, column 10: expected a dtype (did you mean `float32`?), found `flaot32::adversarial{B=1`",
            ),
            (
                LINE.replace("::adversarial", "::boundry"),
                "spec, column 19: expected a strategy (did you mean `boundary`?), found `boundry{B=1,S=7,H=3;axis`",
            ),
            (
                LINE.replace("x:row", "x:rwo"),
                "spec, column 54: expected a layout (did you mean `row`?), found `rwo adversarial@2^40 see`",
            ),
            (
                LINE.replace(" adversarial@", " adverserial@"),
                "spec, column 58: expected a distribution (did you mean `adversarial`?), found `adverserial@2^40 seed=9f`",
            ),
            (LINE.replace("B=1", "B=-1"), "spec, column 33: expected a size, found `-1,S=7,H=3;axis=-1} x:ro`"),
            (
                LINE.replace("2^40", "2^4000"),
                "spec, column 72: expected an exponent from -1074 to 1023, found `4000 seed=9f3c5a77001122`",
            ),
            (
                LINE.replace(" x[0", " y[0"),
                "spec, column 97: expected an edit of an input of this spec, found `y[0,0,2]=inf`",
            ),
            (
                LINE.replace("=inf", "=infinte"),
                "spec, column 106: expected a number, inf, -inf or NaN, found `infinte`",
            ),
            ("softmax".to_owned(), "spec, column 8: expected `::`, found the end"),
            (
                "softmax::float32::layout{B=1} x:row normal".to_owned(),
                "spec, column 43: expected an input as in `x:row normal`, or `seed=`, found the end",
            ),
        ];
        for (line, message) in table {
            assert_eq!(line.parse::<Spec>().expect_err(&line).to_string(), message);
        }
    }

    fn name() -> impl proptest::strategy::Strategy<Value = String> {
        "[a-zA-Z_][a-zA-Z0-9_]{0,8}"
    }

    fn param() -> impl proptest::strategy::Strategy<Value = ParamValue> {
        prop_oneof![
            any::<i64>().prop_map(ParamValue::Int),
            proptest::num::f64::NORMAL.prop_map(ParamValue::Float),
            select(vec![0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, 1e300, 5e-324]).prop_map(ParamValue::Float),
            any::<bool>().prop_map(ParamValue::Bool),
            any::<String>().prop_map(ParamValue::Text),
        ]
    }

    fn spec() -> impl proptest::strategy::Strategy<Value = Spec> {
        let test = (name(), select(&DType::ALL[..]), select(&Strategy::ALL[..]));
        let test = test.prop_map(|(op, dtype, strategy)| TestName { op, dtype, strategy });
        let values = (select(Kind::ALL), prop_oneof![Just(0), Distribution::EXPONENTS]);
        let values = values.prop_map(|(kind, exponent)| Distribution { kind, exponent });
        let input = (name(), select(&LayoutKind::ALL[..]), values);
        let input = input.prop_map(|(name, layout, values)| InputSpec { name, layout, values });
        let edits = proptest::collection::vec(
            (any::<prop::sample::Index>(), proptest::collection::vec(any::<u64>(), 0..4), any::<f64>()),
            0..3,
        );
        (
            test,
            proptest::collection::vec((name(), any::<u64>()), 0..4),
            proptest::option::of(proptest::collection::vec(any::<u64>(), 0..4)),
            proptest::collection::vec((name(), param()), 0..4),
            proptest::collection::vec(input, 0..4),
            any::<u64>(),
            edits,
            proptest::option::of(any::<String>()),
        )
            .prop_map(|(test, dims, any_rank, params, inputs, seed, edits, file)| {
                let edits = edits.into_iter().filter(|_| !inputs.is_empty()).map(|(input, index, value)| Edit {
                    input: input.get(&inputs).name.clone(),
                    index,
                    value,
                });
                // A NaN is not equal to itself; its line is.
                let edits = edits.filter(|edit| !edit.value.is_nan()).collect();
                Spec { test, dims, any_rank, params, inputs, seed, edits, file }
            })
    }

    proptest! {
        #[test]
        fn printing_and_reading_round_trip(spec in spec()) {
            let line = spec.to_string();
            let back: Spec = line.parse().map_err(|error| TestCaseError::fail(format!("{line}: {error}")))?;
            prop_assert_eq!(&back, &spec);
            prop_assert_eq!(back.to_string(), line);
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = text.parse::<Spec>();
            let _ = text.parse::<Line>();
        }

        #[test]
        fn no_damaged_line_panics(at in 0..LINE.len(), length in 0usize..5, patch in "[a-z0-9=:;,@^{}\\[\\]\" \\\\-]{0,3}") {
            let mut text = LINE.to_owned();
            text.replace_range(at..(at + length).min(LINE.len()), &patch);
            if let Ok(spec) = text.parse::<Spec>() {
                prop_assert_eq!(spec.to_string().parse::<Spec>().expect("what it prints").to_string(), spec.to_string());
            }
        }
    }
}
