//! Health: a test that cannot fail is reported as one, judged over all its cases.

use super::compare::{Bound, Rules, plain};
use super::grid::Grid;
use super::verdict::{Check, Failure};
use crate::tensor::{Array, Tensor, Values, round_to_dtype};
use gpuemu_contract::DType;

/// Cases that must have been compared before an answer that passes everywhere says something about the test.
const ENOUGH: u64 = 3;

/// Elements that must have been compared before an integer that never varied says something: a flag that is up as often
/// as down is the same 16 times over once in 32,768 tests.
const ENOUGH_INTEGERS: u64 = 16;

/// What one passed case shows about one output.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// Name of the output.
    pub output: &'a str,
    /// The expected values.
    pub expected: &'a Array,
    /// The bound that judged the case: the full one while [`Health::undecided`] says so. A cheap bound rejects a lazy
    /// answer that the full one would accept.
    pub bound: Bound<'a>,
    /// The rules that judged it.
    pub rules: Rules<'a>,
    /// The inputs, as the subject got them.
    pub inputs: &'a [(String, Tensor)],
    /// Elements that were compared.
    pub compared: u64,
}

/// What the cases of one test have shown so far.
#[derive(Clone, Debug, Default)]
pub struct Health {
    outputs: Vec<Output>,
    cases: u64,
    indeterminate: Option<String>,
}

#[derive(Clone, Debug)]
struct Output {
    name: String,
    dtype: DType,
    /// Cases with elements.
    cases: u64,
    compared: u64,
    /// The mirror answered something other than NaN.
    answered: bool,
    zeros: bool,
    /// The constants that every case so far would have accepted; `None` where no number of the dtype is among them.
    constants: Option<(f64, f64)>,
    /// The expected values, all of them.
    expected: Seen<f64>,
    /// Inputs whose copy every case so far would have accepted; `None` before the first case.
    copies: Option<Vec<Copied>>,
    /// The tensor is a counter, a flag or a lock of the kernel's own, which may well end as it began.
    state: Seen<i64>,
}

/// Values of all cases: none yet, always the same, or more than one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen<T> {
    Nothing,
    Always(T),
    Varied,
}

#[derive(Clone, Debug)]
struct Copied {
    input: String,
    /// The mirror's answer was not that input itself, if only by less than the bound.
    differs: bool,
}

impl Health {
    /// No case seen.
    pub fn new() -> Health {
        Health::default()
    }

    /// Whether a lazy answer would still pass everywhere, so that [`Observation::bound`] must be the full one.
    pub fn undecided(&self, output: &str) -> bool {
        self.outputs.iter().find(|known| known.name == output).is_none_or(Output::undecided)
    }

    /// Takes in one output of one passed case. Cheap once every lazy answer has been rejected.
    pub fn observe(&mut self, seen: &Observation<'_>) {
        let at = self.outputs.iter().position(|output| output.name == seen.output).unwrap_or_else(|| {
            self.outputs.push(Output::new(seen.output, seen.expected.dtype));
            self.outputs.len() - 1
        });
        self.cases += 1;
        self.outputs[at].observe(seen);
    }

    /// Takes in two answers of the reference to one question.
    pub fn reference_repeated(&mut self, output: &str, first: &Array, again: &Array) {
        let same = match (&first.values, &again.values) {
            (Values::Float(a), Values::Float(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || a.is_nan() && b.is_nan())
            }
            (a, b) => a == b,
        };
        if !(same && first.shape == again.shape) {
            self.indeterminate.get_or_insert_with(|| output.to_string());
        }
    }

    /// What is wrong with the test, if anything. Meaningless after a replay of single cases.
    pub fn verdict(&self) -> Option<Failure> {
        if let Some(output) = &self.indeterminate {
            let message = format!(
                "the reference gives two answers for {output} to the same inputs; fix its seed, or take away whatever \
                 it depends on besides its inputs"
            );
            return Some(plain(Check::Health, output, message));
        }
        self.outputs.iter().enumerate().find_map(|(at, output)| {
            let others = || self.outputs.iter().enumerate().filter(|(other, _)| *other != at);
            output.verdict(others().any(|(_, other)| other.cases >= ENOUGH && !other.undecided()))
        })
    }
}

impl Output {
    fn new(name: &str, dtype: DType) -> Output {
        Output {
            name: name.to_string(),
            dtype,
            cases: 0,
            compared: 0,
            answered: false,
            zeros: true,
            constants: Some((f64::NEG_INFINITY, f64::INFINITY)),
            expected: Seen::Nothing,
            copies: None,
            state: Seen::Nothing,
        }
    }

    fn undecided(&self) -> bool {
        self.zeros || self.constants.is_some() || self.copies.as_ref().is_none_or(|copies| !copies.is_empty())
    }

    fn observe(&mut self, seen: &Observation<'_>) {
        self.compared += seen.compared;
        let expected = seen.expected;
        if expected.is_empty() {
            return;
        }
        self.cases += 1;
        self.answered = self.answered || (0..expected.len()).any(|number| !expected.at(number).is_nan());
        if seen.compared == 0 || !self.undecided() {
            return;
        }
        self.expected = self.expected.and((0..expected.len()).map(|number| expected.at(number)));
        let input = seen.inputs.iter().find(|(name, _)| name == seen.output).map(|(_, input)| input.to_array());
        self.state = match input.as_ref().and_then(Array::integers) {
            Some(values) => self.state.and(values.iter().copied()),
            None => Seen::Varied,
        };
        let accepted = Accepted { seen, grid: Grid::of(expected.dtype) };
        self.zeros = self.zeros && (0..expected.len()).all(|number| accepted.takes(number, 0.0));
        if let Some((mut low, mut high)) = self.constants {
            for number in 0..expected.len() {
                let (least, most) = accepted.interval(number);
                (low, high) = (low.max(least), high.min(most));
                if low > high {
                    break;
                }
            }
            self.constants = accepted.grid.number_between(low, high).map(|_| (low, high));
        }
        let copies = self.copies.take().unwrap_or_else(|| {
            seen.inputs.iter().map(|(name, _)| Copied { input: name.clone(), differs: false }).collect()
        });
        self.copies = Some(copies.into_iter().filter_map(|copied| accepted.copy(copied)).collect());
    }

    /// `others_tell`: of another output of the op, every lazy answer would have failed.
    fn verdict(&self, others_tell: bool) -> Option<Failure> {
        let name = &self.name;
        let fail = |message: String| Some(plain(Check::Health, name, message));
        if self.compared == 0 {
            return fail(if self.cases > 0 && !self.answered {
                format!(
                    "the mirror is NaN in every element of {name} in all {} cases; give the inputs a domain on which \
                     the op is defined",
                    self.cases
                )
            } else {
                format!(
                    "no element of {name} was compared in any case; check that its dimensions may be larger than 0 \
                     and that check_nan and check_inf leave something to compare"
                )
            });
        }
        if !self.answered {
            return fail(format!(
                "the mirror is NaN in every element of {name} in all {} cases; give the inputs a domain on which the \
                 op is defined",
                self.cases
            ));
        }
        if self.cases < ENOUGH {
            return None;
        }
        if matches!(self.state, Seen::Always(_)) {
            return None;
        }
        // Integers are exact: no bound hides anything. A count, a status or a mask beside an output that tells a lazy
        // kernel from a right one may well be one number; alone, and often enough, it shows that the inputs never vary it.
        let always = matches!(self.expected, Seen::Always(_));
        if always && !self.dtype.is_float() && (others_tell || self.compared < ENOUGH_INTEGERS) {
            return None;
        }
        // Only a bound that has room can be tightened.
        let tighten = if self.dtype.is_float() && !always { "tighten its tolerance, or " } else { "" };
        if self.zeros {
            let remedy = match (always, self.dtype.is_float()) {
                (true, _) => "give the inputs values for which the right answer is something else now and then",
                (false, true) => "give the inputs values that make it larger",
                (false, false) => "give the inputs values that it does not round to 0",
            };
            return fail(format!(
                "an output of zeros would have passed for {name} in all {} cases; {tighten}{remedy}",
                self.cases
            ));
        }
        if let Some((low, high)) = self.constants
            && let Some(constant) = Grid::of(self.dtype).number_between(low, high)
        {
            let shown = match constant.abs() {
                _ if !self.dtype.is_float() => format!("{constant}"),
                magnitude if (1e-3..1e6).contains(&magnitude) => format!("{constant:.4}"),
                _ => format!("{constant:.4e}"),
            };
            let tighten = if tighten.is_empty() { "" } else { "tighten its tolerance, " };
            return fail(format!(
                "an output that is {shown} everywhere would have passed for {name} in all {} cases; {tighten}add larger \
                 dimensions, or give the inputs values that tell answers apart",
                self.cases
            ));
        }
        let copied = self.copies.iter().flatten().find(|copied| copied.differs)?;
        fail(format!(
            "a copy of input {} would have passed for {name} in all {} cases; {tighten}give the inputs values that the \
             op changes by more",
            copied.input, self.cases
        ))
    }
}

impl<T: Copy + PartialEq> Seen<T> {
    /// With values more.
    fn and(self, values: impl IntoIterator<Item = T>) -> Seen<T> {
        values.into_iter().fold(self, |seen, value| match seen {
            Seen::Nothing => Seen::Always(value),
            Seen::Always(known) if known == value => seen,
            _ => Seen::Varied,
        })
    }
}

/// What a case would have accepted.
struct Accepted<'a> {
    seen: &'a Observation<'a>,
    grid: Grid,
}

impl Accepted<'_> {
    /// The finite values that one element accepts; every value where it is not compared, none where a number is wrong.
    fn interval(&self, number: usize) -> (f64, f64) {
        let (expected, rules) = (self.seen.expected.at(number), &self.seen.rules);
        let either = rules.either_right.is_some_and(|mask| mask[number]);
        let compared = if expected.is_nan() { rules.check_nan } else { rules.check_inf || expected.is_finite() };
        if !expected.is_finite() {
            let free = !compared || either;
            return if free { (f64::NEG_INFINITY, f64::INFINITY) } else { (f64::INFINITY, f64::NEG_INFINITY) };
        }
        let allowed = self.seen.bound.at(number, expected, &self.grid);
        (expected - allowed, expected + allowed)
    }

    fn takes(&self, number: usize, value: f64) -> bool {
        let (low, high) = self.interval(number);
        let expected = self.seen.expected.at(number);
        low <= value && value <= high || value == expected || value.is_nan() && expected.is_nan()
    }

    fn copy(&self, mut copied: Copied) -> Option<Copied> {
        let expected = self.seen.expected;
        let (_, input) = self.seen.inputs.iter().find(|(name, _)| *name == copied.input)?;
        if input.shape() != expected.shape {
            return None;
        }
        let input = input.to_array();
        for number in 0..expected.len() {
            let (value, wanted) = (input.at(number), expected.at(number));
            // What the output's dtype makes of it: an integer has no room for the fraction, and none for NaN.
            let value = match expected.dtype.is_float() {
                _ if input.dtype == expected.dtype => value,
                false if !value.is_finite() => return None,
                _ => round_to_dtype(value, expected.dtype),
            };
            if !self.takes(number, value) {
                return None;
            }
            // Where the op is that conversion, its right answers are rounded as well.
            let wanted = match input.dtype == expected.dtype || !expected.dtype.is_float() {
                true => wanted,
                false => round_to_dtype(wanted, expected.dtype),
            };
            copied.differs |= value != wanted && !(value.is_nan() && wanted.is_nan());
        }
        Some(copied)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validate::compare::compare;

    /// Cases of one output: input and expected values, and an absolute tolerance.
    fn verdict(cases: &[(&[f32], &[f64])], absolute: f64) -> Option<String> {
        let mut health = Health::new();
        for (input, expected) in cases {
            let inputs = [("x".to_string(), Tensor::from_slice(&[input.len()], input))];
            let expected = Array::float(DType::Float32, &[expected.len()], expected.to_vec());
            let compared = expected.len() as u64;
            health.observe(&Observation {
                output: "out",
                expected: &expected,
                bound: Bound::cheap(0.0, absolute),
                rules: Rules::default(),
                inputs: &inputs,
                compared,
            });
        }
        health.verdict().map(|failure| failure.message)
    }

    #[test]
    fn tests_that_cannot_fail_are_told_from_those_that_can() {
        const NAN: f64 = f64::NAN;
        let table: [(&str, Vec<(&[f32], &[f64])>, f64, Option<&str>); 12] = [
            ("ordinary", vec![(&[1.0, 2.0], &[2.0, 4.0]), (&[3.0], &[6.0]), (&[4.0], &[8.0])], 1e-3, None),
            ("softmax over one column", vec![(&[5.0], &[1.0]); 4], 1e-3, Some("an output that is 1.0000 everywhere")),
            (
                "one column among others",
                vec![(&[5.0], &[1.0]), (&[5.0], &[1.0]), (&[1.0, 1.5], &[0.4, 0.6])],
                1e-3,
                None,
            ),
            ("scalars", vec![(&[1.0, 2.0], &[3.0]), (&[2.0, 5.0], &[7.0]), (&[0.0, 5.0], &[5.0])], 1e-3, None),
            (
                "small outputs",
                vec![(&[1.0, 2.0], &[1e-3, 2e-3]); 3],
                1e-2,
                Some("an output of zeros would have passed"),
            ),
            ("few cases", vec![(&[5.0], &[0.0]); 2], 1e-3, None),
            (
                "nearly a copy",
                vec![(&[1.0, 2.0], &[1.001, 2.001]), (&[7.0], &[7.0]), (&[9.0], &[9.0])],
                1e-2,
                Some("a copy of input x"),
            ),
            ("truly a copy", vec![(&[1.0, 2.0], &[1.0, 2.0]), (&[7.0], &[7.0]), (&[9.0], &[9.0])], 1e-2, None),
            ("empty", vec![(&[], &[]); 5], 1e-3, Some("no element of out was compared")),
            ("NaN throughout", vec![(&[1.0], &[NAN]); 3], 1e-3, Some("the mirror is NaN in every element")),
            ("NaN in places", vec![(&[1.0], &[NAN]), (&[1.0], &[2.0]), (&[3.0], &[4.0])], 1e-3, None),
            ("zeros where NaN", vec![(&[1.0], &[NAN]), (&[1.0], &[0.0]), (&[3.0], &[0.0])], 1e-3, None),
        ];
        for (what, cases, absolute, message) in table {
            let found = verdict(&cases, absolute);
            match message {
                None => assert_eq!(found, None, "{what}"),
                Some(start) => {
                    assert!(found.as_deref().is_some_and(|found| found.starts_with(start)), "{what}: {found:?}")
                }
            }
        }
    }

    /// Outputs of one op: name, dtype, and the right answers of each case, which the bound of the dtype judges.
    fn verdict_of(outputs: &[(&str, DType, &[&[f64]])]) -> Option<String> {
        let mut health = Health::new();
        let cases = outputs[0].2.len();
        for case in 0..cases {
            for (name, dtype, answers) in outputs {
                let values = answers[case];
                let expected = match dtype.is_float() {
                    true => Array::float(*dtype, &[values.len()], values.to_vec()),
                    false => {
                        Array::integer(*dtype, &[values.len()], values.iter().map(|&value| value as i64).collect())
                    }
                };
                let x: Vec<f32> = (0..values.len()).map(|number| (number + case) as f32 + 0.25).collect();
                health.observe(&Observation {
                    output: name,
                    expected: &expected,
                    bound: Bound::ROUNDED,
                    rules: Rules::default(),
                    inputs: &[("x".to_string(), Tensor::from_slice(&[x.len()], &x))],
                    compared: values.len() as u64,
                });
            }
        }
        health.verdict().map(|failure| failure.message)
    }

    #[test]
    fn only_numbers_that_the_dtype_holds_would_have_passed() {
        const ONES: &[f64] = &[1.0; 8];
        let ones: &[&[f64]] = &[ONES; 3];
        const ZEROS: &[f64] = &[0.0; 8];
        let zeros: &[&[f64]] = &[ZEROS; 3];
        let small = DType::Float8E4M3;
        let table: [(&str, Vec<(&str, DType, &[&[f64]])>, Option<&str>); 16] = [
            ("a mask", vec![("m", DType::Int32, &[&[0.0, 1.0], &[1.0], &[0.0]])], None),
            ("a predicate", vec![("m", DType::Bool, &[&[0.0, 1.0], &[1.0], &[0.0]])], None),
            ("parity", vec![("m", DType::UInt32, &[&[1.0], &[0.0], &[0.0]])], None),
            ("neighbours", vec![("m", DType::Int64, &[&[41.0], &[42.0], &[42.0, 41.0]])], None),
            ("signs", vec![("m", DType::Int8, &[&[-1.0, 1.0], &[0.0], &[1.0]])], None),
            ("fp8 neighbours", vec![("m", small, &[&[1.0], &[1.125], &[1.0]])], None),
            ("float16 neighbours", vec![("m", DType::Float16, &[&[2048.0], &[2050.0], &[2050.0]])], None),
            ("bfloat16 neighbours", vec![("m", DType::BFloat16, &[&[256.0], &[258.0], &[258.0]])], None),
            ("float32 neighbours", vec![("m", DType::Float32, &[&[1.0], &[1.0 + f32::EPSILON as f64], &[1.0]])], None),
            ("between fp8 numbers", vec![("m", small, &[&[1.07], &[1.12], &[1.08]])], Some("an output that is 1.1250")),
            ("argmax of one column", vec![("m", DType::Int64, &[&[0.0], &[0.0], &[0.0, 0.0]])], None),
            (
                "all true, many times",
                vec![("m", DType::Bool, ones)],
                Some("an output that is 1 everywhere would have passed for m in all 3 cases; add larger dimensions"),
            ),
            (
                "nothing but zeros",
                vec![("m", DType::Int32, zeros)],
                Some("an output of zeros would have passed for m in all 3 cases; give the inputs values for which"),
            ),
            (
                "a count beside what is counted",
                vec![("count", DType::Int32, ones), ("y", DType::Float32, &[&[3.0, 9.0], &[4.0], &[7.0]])],
                None,
            ),
            (
                "a mask beside a constant",
                vec![("m", DType::Int32, ones), ("y", DType::Float32, ones)],
                Some("an output that is 1 everywhere would have passed for m"),
            ),
            (
                "a float constant",
                vec![("y", DType::Float32, ones)],
                Some("an output that is 1.0000 everywhere would have passed for y in all 3 cases; add larger"),
            ),
        ];
        for (what, outputs, message) in table {
            let found = verdict_of(&outputs);
            match message {
                None => assert_eq!(found, None, "{what}"),
                Some(start) => {
                    assert!(found.as_deref().is_some_and(|found| found.starts_with(start)), "{what}: {found:?}")
                }
            }
        }
    }

    #[test]
    fn a_copy_is_what_the_dtype_makes_of_it() {
        // x is 0.25, 1.25, ... moved up by one from case to case; an answer rounded down is x, converted.
        const EXACT: &[&[f64]] = &[&[0.25, 1.25, 2.25, 3.25, 4.25, 5.25], &[1.25, 2.25], &[2.25]];
        let table: [(&str, DType, &[&[f64]]); 4] = [
            ("rounded down", DType::Int32, &[&[0.0, 1.0, 2.0], &[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0]]),
            ("rounded up", DType::Int32, &[&[1.0, 2.0, 3.0], &[2.0, 3.0, 4.0], &[3.0, 4.0, 5.0]]),
            // 4.25 lies between two numbers of the dtype: a conversion is no copy that passes by mistake.
            ("converted to fp8", DType::Float8E4M3, EXACT),
            ("converted to bfloat16", DType::BFloat16, EXACT),
        ];
        for (what, dtype, answers) in table {
            assert_eq!(verdict_of(&[("n", dtype, answers)]), None, "{what}");
        }
    }

    #[test]
    fn an_integer_off_by_one_is_wrong_wherever_it_lies() {
        fn off<T: crate::tensor::Element>(right: T, got: T, exact: i64) {
            let expected = Array::integer(T::DTYPE, &[1], vec![exact]);
            let agrees = |value: T| {
                let tensor = Tensor::from_slice(&[1], &[value]);
                compare(&tensor, &expected, Bound::ROUNDED, &Rules::default()).agrees()
            };
            assert!(agrees(right) && !agrees(got), "{} at {exact}", T::DTYPE);
        }
        off(0i8, 1, 0);
        off(127i8, 126, 127);
        off(i16::MIN, i16::MIN + 1, i64::from(i16::MIN));
        off(i32::MAX, i32::MAX - 1, i64::from(i32::MAX));
        off(i64::MAX, i64::MAX - 1, i64::MAX);
        off(i64::MIN, i64::MIN + 1, i64::MIN);
        off(1u8, 0, 1);
        off(65_535u16, 65_534, 65_535);
        off(u32::MAX, u32::MAX - 1, i64::from(u32::MAX));
        off(u64::MAX, u64::MAX - 1, -1);
        off(crate::tensor::Bool(1), crate::tensor::Bool(0), 1);
    }

    #[test]
    fn a_counter_may_end_as_it_began() {
        let told = |name: &str, before: [i32; 4], after: i64| {
            let mut health = Health::new();
            for value in before {
                health.observe(&Observation {
                    output: "counter",
                    expected: &Array::integer(DType::Int32, &[8], vec![after; 8]),
                    bound: Bound::cheap(0.0, 0.0),
                    rules: Rules::default(),
                    inputs: &[(name.to_string(), Tensor::from_slice(&[8], &[value; 8]))],
                    compared: 8,
                });
            }
            health.verdict().is_some()
        };
        let table = [
            ("reset", "counter", [0; 4], 0, false),
            ("a lock that is let go", "counter", [7; 4], 7, false),
            ("a flag that is set", "counter", [0; 4], 2, false),
            ("an input of another name", "x", [0; 4], 0, true),
            ("values that the op throws away", "counter", [0, 1, 2, 3], 0, true),
        ];
        for (what, name, before, after, expected) in table {
            assert_eq!(told(name, before, after), expected, "{what}");
        }
    }

    #[test]
    fn a_reference_that_answers_twice_in_two_ways() {
        let mut health = Health::new();
        let of = |values: &[f64]| Array::float(DType::Float32, &[values.len()], values.to_vec());
        health.reference_repeated("out", &of(&[1.0, f64::NAN]), &of(&[1.0, f64::NAN]));
        assert!(health.verdict().is_none());
        health.reference_repeated("out", &of(&[1.0]), &of(&[1.0 + 1e-16, 2.0]));
        assert!(health.verdict().unwrap().message.starts_with("the reference gives two answers for out"));
    }

    #[test]
    fn nothing_is_undecided_once_every_lazy_answer_failed() {
        let mut health = Health::new();
        assert!(health.undecided("out"));
        let inputs = [("x".to_string(), Tensor::from_slice(&[2], &[1.0f32, 2.0]))];
        let expected = Array::float(DType::Float32, &[2], vec![3.0, 5.0]);
        health.observe(&Observation {
            output: "out",
            expected: &expected,
            bound: Bound::ROUNDED,
            rules: Rules::default(),
            inputs: &inputs,
            compared: 2,
        });
        assert!(!health.undecided("out"));
    }
}
