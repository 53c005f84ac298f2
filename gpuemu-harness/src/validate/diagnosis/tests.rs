//! Every rule where it must speak and where it must be silent.

use super::*;
use crate::validate::honesty::Poison;
use gpuemu_contract::DType;

/// Expected values without any pattern: fractions of multiples of the golden ratio, in -2..2.
fn plain(count: usize) -> Vec<f64> {
    (1..=count).map(|i| (i as f64 * 0.618_033_988_749_895).fract() * 4.0 - 2.0).collect()
}

struct Setting {
    shape: Vec<usize>,
    axes: Vec<Axis>,
    dims: Vec<(String, u64)>,
    inputs: Vec<(String, Tensor)>,
    dtype: DType,
    unknown_algorithm: Option<DType>,
}

fn setting(shape: &[usize]) -> Setting {
    let names = ["B", "S", "H"];
    let axes =
        (0..shape.len()).map(|axis| Axis { name: names[3 - shape.len() + axis].to_string(), tile: None }).collect();
    let dims = vec![("D".into(), 64)];
    Setting { shape: shape.to_vec(), axes, dims, inputs: vec![], dtype: DType::Float32, unknown_algorithm: None }
}

impl Setting {
    fn tile(mut self, tile: usize) -> Setting {
        self.axes.last_mut().unwrap().tile = Some(tile);
        self
    }

    fn run(&self, expected: &[f64], got: &[f64]) -> Vec<String> {
        let expected = Array::float(self.dtype, &self.shape, expected.to_vec());
        let got = Tensor::from_array(&Array::float(self.dtype, &self.shape, got.to_vec()), self.dtype);
        self.tensor(&expected, &got)
    }

    fn tensor(&self, expected: &Array, got: &Tensor) -> Vec<String> {
        diagnose(&Scene {
            got,
            expected,
            bound: Bound::cheap(1e-6, 1e-7),
            rules: Rules::default(),
            axes: &self.axes,
            dims: &self.dims,
            inputs: &self.inputs,
            unit_roundoff: 2f64.powi(-24),
            unknown_algorithm: self.unknown_algorithm,
        })
    }

    /// Expected values from `plain`, answers from a function of the expected values and the element's number.
    fn each(&self, answer: impl Fn(&[f64], usize) -> f64) -> Vec<String> {
        let expected = plain(self.shape.iter().product());
        let got: Vec<f64> = (0..expected.len()).map(|number| answer(&expected, number)).collect();
        self.run(&expected, &got)
    }
}

#[track_caller]
fn says(sentences: &[String], wanted: &str) {
    assert!(sentences.iter().any(|sentence| sentence == wanted), "wanted {wanted:?}, got {sentences:#?}");
}

#[track_caller]
fn silent(sentences: &[String], unwanted: &str) {
    assert!(!sentences.iter().any(|sentence| sentence.contains(unwanted)), "unwanted {unwanted:?} in {sentences:#?}");
}

#[test]
fn nothing_wrong_nothing_said() {
    assert!(setting(&[2, 8]).each(|e, n| e[n]).is_empty());
}

#[test]
fn factors() {
    let table: [(f64, &str); 7] = [
        (0.5, "every element is 0.5 times what it should be"),
        (8.0, "every element is 8.0000 (sqrt(D)) times what it should be"),
        (0.125, "every element is 0.1250 (1/sqrt(D)) times what it should be"),
        (64.0 / 63.0, "every element is 1.0159 (D/(D-1)) times what it should be"),
        (std::f64::consts::LOG2_E, "every element is 1.4427 (log2 e) times what it should be"),
        (0.9, "every element is 0.9000 times what it should be"),
        (-1.0, "every element has its sign flipped"),
    ];
    for (factor, wanted) in table {
        says(&setting(&[4, 8]).each(|e, n| factor * e[n]), wanted);
    }
    let some = setting(&[4, 8]).each(|e, n| if n % 3 == 0 { 2.0 * e[n] } else { e[n] });
    says(&some, "every wrong element is 2 times what it should be");
    // One element has a factor with anything; two with different factors have none.
    silent(&setting(&[4, 8]).each(|e, n| if n == 3 { 2.0 * e[n] } else { e[n] }), "times");
    silent(&setting(&[4, 8]).each(|e, n| if n == 3 { 2.0 } else { 1.5 } * e[n]), "times what it should be");
    // One expected value only: a factor, an offset and another constant look alike.
    silent(&setting(&[4]).run(&[1.0; 4], &[2.0; 4]), "times");
}

#[test]
fn lines_with_a_factor_or_offset_of_their_own() {
    let rows = setting(&[4, 8]).each(|e, n| e[n] * (1.5 + (n / 8) as f64));
    says(&rows, "every wrong line along H is off by a factor of its own");
    let columns = setting(&[8, 4]).each(|e, n| e[n] * (1.5 + (n % 4) as f64));
    says(&columns, "every wrong line along S is off by a factor of its own");
    let rows = setting(&[4, 8]).each(|e, n| e[n] + 1.0 + (n / 8) as f64);
    says(&rows, "every wrong line along H is off by a constant of its own");
    silent(&setting(&[4, 8]).each(|e, n| e[n] * (1.5 + (n * n % 7) as f64)), "of its own");
}

#[test]
fn offsets() {
    says(&setting(&[4, 8]).each(|e, n| e[n] + 0.25), "every element is off by +2.5000e-1, whatever it should be");
    silent(&setting(&[4, 8]).each(|e, n| e[n] + 0.25 * (n as f64 + 1.0)), "off by");
    silent(&setting(&[4, 8]).each(|e, n| e[n] + if n == 9 { 0.25 } else { 0.0 }), "off by");
}

#[test]
fn single_values() {
    says(&setting(&[4, 8]).each(|_, _| 0.0), "the whole output is zero");
    says(&setting(&[4, 8]).each(|e, n| if n < 5 { 0.0 } else { e[n] }), "every wrong element is zero");
    says(&setting(&[4, 8]).each(|_, _| 0.75), "every element is 0.75, whatever it should be");
    silent(&setting(&[4, 8]).each(|e, n| if n == 3 { 0.75 } else { e[n] }), "whatever");
    let mut half = setting(&[3]);
    half.dtype = DType::Float16;
    let saturated = half.run(&[70000.0, 1.0, 90000.0], &[65504.0, 1.0, 65504.0]);
    says(&saturated, "every wrong element is saturated at 65504, the end of float16's range");
}

#[test]
fn values_that_are_not_finite() {
    let nan = f64::NAN;
    let mut expected = plain(6);
    let mut got = expected.clone();
    (got[1], got[4]) = (nan, nan);
    says(&setting(&[2, 3]).run(&expected, &got), "every wrong element is NaN where the mirror is finite");
    (expected[1], expected[4], got[1], got[4]) = (nan, nan, 1.0, 2.0);
    says(&setting(&[2, 3]).run(&expected, &got), "every wrong element is a number where the mirror is NaN");
    got[2] = nan;
    silent(&setting(&[2, 3]).run(&expected, &got), "NaN");
    (expected[1], expected[4]) = (f64::INFINITY, 1.0);
    let got = [expected[0], nan, expected[2], expected[3], 1.0, expected[5]];
    says(&setting(&[2, 3]).run(&expected, &got), "the wrong element is NaN where the mirror is infinite");
}

#[test]
fn poison_shows() {
    for poison in [Poison::First, Poison::Second] {
        let setting = setting(&[2, 4]);
        let expected = Array::float(DType::Float32, &[2, 4], plain(8));
        let mut got = Tensor::zeros(DType::Float32, crate::Layout::contiguous(&[2, 4]));
        poison.fill(&mut got);
        for number in 0..6 {
            got.data_mut::<f32>()[number] = expected.at(number) as f32;
        }
        let sentences = setting.tensor(&expected, &got);
        says(&sentences, "every wrong element still is what its memory was filled with: never written");
        got.data_mut::<f32>()[6] = 5.0;
        silent(&setting.tensor(&expected, &got), "never written");
    }
}

#[test]
fn copies_of_an_input() {
    let mut copy = setting(&[2, 4]);
    let input: Vec<f32> = plain(20)[12..].iter().map(|&value| value as f32).collect();
    copy.inputs = vec![("x".into(), Tensor::from_slice(&[2, 4], &input))];
    says(&copy.each(|_, n| f64::from(input[n])), "every element is input x, copied");
    silent(&copy.each(|_, n| f64::from(input[n]) + if n == 7 { 0.1 } else { 0.0 }), "copied");
}

#[test]
fn integers_that_wrapped() {
    let setting = setting(&[4]);
    let expected = Array::integer(DType::Int32, &[4], vec![300, 5, 1000, 70]);
    let run = |got: &[i32]| setting.tensor(&expected, &Tensor::from_slice(&[4], got));
    says(&run(&[44, 5, 232, 70]), "every wrong element is off by a multiple of 2^8: wrapped to 8 bits");
    silent(&run(&[44, 5, 233, 70]), "wrapped");
}

#[test]
fn orders() {
    let square = setting(&[4, 4]).each(|e, n| e[n % 4 * 4 + n / 4]);
    says(&square, "the output is transposed: S and H exchanged");
    // Written in the order of the other axis: 3 x 5 read as 5 x 3.
    let flat = setting(&[3, 5]).each(|e, n| e[n % 3 * 5 + n / 3]);
    says(&flat, "the output is transposed: S and H exchanged");
    let heads = setting(&[2, 3, 4]).each(|e, n| e[n / 12 * 12 + n % 12 % 3 * 4 + n % 12 / 3]);
    says(&heads, "the output is transposed: S and H exchanged");
    let up = setting(&[3, 6]).each(|e, n| if n % 6 == 0 { 0.0 } else { e[n - 1] });
    says(&up, "every element is its neighbour's: shifted up by 1 along H");
    let down = setting(&[3, 6]).each(|e, n| if n % 6 == 5 { 9.0 } else { e[n + 1] });
    says(&down, "every element is its neighbour's: shifted down by 1 along H");
    let reversed = setting(&[3, 6]).each(|e, n| e[n / 6 * 6 + 5 - n % 6]);
    says(&reversed, "the output is reversed along H");
    let pairs = setting(&[2, 8]).each(|e, n| e[n / 8 * 8 + [0, 2, 4, 6, 1, 3, 5, 7][n % 8]]);
    says(&pairs, "every line along H has the right values in another order");
    let noise = setting(&[4, 4]).each(|e, n| e[n] + 0.1 * (n * n % 5) as f64);
    for unwanted in ["transposed", "shifted", "reversed", "order"] {
        silent(&noise, unwanted);
    }
}

#[test]
fn one_heads_values_in_another() {
    let heads = setting(&[2, 4, 3]).each(|e, n| e[n - (n / 3 % 4 % 2) * 3]);
    says(&heads, "slices along S hold another one's values: slice 1 those of 0, slice 3 those of 2");
    silent(&setting(&[2, 4, 3]).each(|e, n| if n / 3 % 4 == 1 { e[n] + 1.0 + (n % 2) as f64 } else { e[n] }), "slices");
}

#[test]
fn places_along_an_axis() {
    let off = |wrong: bool, e: f64, n: usize| if wrong { e + 1.0 + (n * n % 7) as f64 } else { e };
    let table: [(Setting, fn(usize) -> bool, &str); 12] = [
        (setting(&[2, 20]).tile(8), |n| n % 20 >= 16, "only in the last partial tile along H (from 16 of 20, tile 8)"),
        (setting(&[2, 20]).tile(8), |n| n % 20 >= 18, "only in the last partial tile along H (from 16 of 20, tile 8)"),
        (setting(&[2, 20]).tile(8), |n| n % 20 >= 8, "only past the first tile along H (from 8 of 20)"),
        (setting(&[2, 24]).tile(8), |n| (8..16).contains(&(n % 24)), "only in tile 1 along H (8 to 15 of 24)"),
        (
            setting(&[2, 20]),
            |n| n % 20 >= 16,
            "only from index 16 on along H (of 20) (a partial tile, if the tile is 16 or a divisor of it that leaves a rest)",
        ),
        (setting(&[2, 20]), |n| n % 20 >= 7, "only from index 7 on along H (of 20)"),
        (setting(&[3, 5]), |n| n / 5 >= 1, "only past the first index along S; index 0 is right"),
        (setting(&[3, 5]), |n| n / 5 == 1, "only at index 1 along S (of 3)"),
        (setting(&[3, 5]), |n| n % 5 == 4, "only at the last index along H (4 of 5)"),
        (setting(&[2, 9]), |n| n % 9 % 2 == 1, "only at every second index, the odd ones, along H"),
        (setting(&[2, 12]), |n| n % 12 % 4 == 3, "only at every 4th index from 3 on along H"),
        (setting(&[2, 9]), |n| n % 9 < 4, "only up to index 3 along H (of 9)"),
    ];
    for (setting, wrong, wanted) in table {
        says(&setting.each(|e, n| off(wrong(n), e[n], n)), wanted);
    }
    // Everything wrong, or wrong here and there: no place.
    silent(&setting(&[4, 8]).each(|e, n| off(true, e[n], n)), "only");
    silent(&setting(&[4, 8]).each(|e, n| off(n * n % 5 == 1, e[n], n)), "only");
}

#[test]
fn diagonals() {
    let off = |wrong: bool, e: f64, n: usize| if wrong { e + 1.0 + (n * n % 7) as f64 } else { e };
    let above = setting(&[5, 5]).each(|e, n| off(n % 5 > n / 5 && n != 4, e[n], n));
    // Row 4 and column 0 are right as well, and that is said first.
    assert!(above.iter().any(|s| s.starts_with("only up to index 3 along S")), "{above:?}");
    let both = setting(&[5, 5]).each(|e, n| off(n % 5 == n / 5, e[n], n));
    says(&both, "only on the diagonal of S and H");
    silent(&setting(&[5, 5]).each(|e, n| off(n % 3 == 0, e[n], n)), "diagonal");
}

#[test]
fn magnitudes_and_signs() {
    let large = setting(&[4, 8]).each(|e, n| if e[n].abs() > 1.5 { e[n] * 1.1 + 0.3 * (n % 3) as f64 } else { e[n] });
    assert!(large.iter().any(|s| s.starts_with("only where the expected magnitude is 1.5")), "{large:?}");
    let negative = setting(&[4, 8]).each(|e, n| if e[n] < 0.0 { e[n] * 0.3 } else { e[n] });
    says(&negative, "only where the expected value is negative");
    silent(&setting(&[4, 8]).each(|e, n| if n % 2 == 0 { e[n] + 1.0 } else { e[n] }), "magnitude");
    silent(&setting(&[4, 8]).each(|e, n| if n % 2 == 0 { e[n] + 1.0 } else { e[n] }), "negative");
}

#[test]
fn coarse_rounding() {
    let round = |dtype| move |e: &[f64], n: usize| crate::tensor::round_to_dtype(e[n], dtype);
    says(&setting(&[8, 8]).each(round(DType::BFloat16)), "every element is rounded to bfloat16");
    // One of the values is a float16 number nearly enough to be right.
    says(&setting(&[8, 8]).each(round(DType::Float16)), "every wrong element is rounded to float16 or tf32");
    // Sums in a narrow format: errors of both signs, not numbers of the format.
    let noisy = |unit: f64| move |e: &[f64], n: usize| e[n] + unit * 2.0 * ((n as f64 * 0.7548).fract() - 0.5);
    says(
        &setting(&[8, 8]).each(noisy(2f64.powi(-10))),
        "errors are as large as those of float16 or tf32 arithmetic, about 2^-11 of the largest value",
    );
    silent(&setting(&[8, 8]).each(noisy(0.5)), "arithmetic");
    silent(&setting(&[8, 8]).each(noisy(2f64.powi(-18))), "arithmetic");
    silent(&setting(&[8, 8]).each(|e, n| e[n] + 2f64.powi(-11) * (1.0 + (n % 3) as f64)), "arithmetic");
}

#[test]
fn growing_errors() {
    let growing = setting(&[2, 32]).each(|e, n| e[n] + 1e-3 * (n % 32 + 1) as f64);
    says(&growing, "the error grows along H");
    silent(&setting(&[2, 32]).each(|e, n| e[n] + 1e-3 * (1.0 + (n * n % 7) as f64)), "grows");
    silent(&setting(&[2, 32]).each(|e, n| if n % 32 > 15 { e[n] + 1.0 } else { e[n] }), "grows");
}

#[test]
fn explain_adds_the_picture() {
    let setting = setting(&[2, 10]).tile(4);
    let expected = Array::float(DType::Float32, &[2, 10], plain(20));
    let mut got = Tensor::from_array(&expected, DType::Float32);
    got.data_mut::<f32>()[8] = 9.0;
    got.data_mut::<f32>()[19] = 9.0;
    let scene = Scene {
        got: &got,
        expected: &expected,
        bound: Bound::ROUNDED,
        rules: Rules::default(),
        axes: &setting.axes,
        dims: &[],
        inputs: &[],
        unit_roundoff: 2f64.powi(-24),
        unknown_algorithm: None,
    };
    let mut failure =
        super::super::compare::compare(&got, &expected, Bound::ROUNDED, &Rules::default()).failure("out").unwrap();
    explain(&mut failure, &scene);
    assert_eq!(failure.diagnosis[1], "only in the last partial tile along H (from 8 of 10, tile 4)");
    assert_eq!(failure.picture[1..], ["....|....|#.", "....|....|.#"]);
}

#[test]
fn errors_by_the_norm() {
    let u = 2f64.powi(-24);
    // Cosines of 64 angles, of which two are 1 and half are below 0.7; the bound is 1e-6 of each plus 1e-7.
    let wave: Vec<f64> = (0..64).map(|n| (n as f64 * std::f64::consts::TAU / 32.0).cos() * 8.0).collect();
    let told = |unknown: Option<DType>, dtype: DType, size: f64| {
        let setting = Setting { unknown_algorithm: unknown, dtype, ..setting(&[64]) };
        let got: Vec<f64> =
            wave.iter().enumerate().map(|(n, value)| value + if n % 3 == 0 { size } else { -size }).collect();
        setting.run(&wave, &got)
    };
    // Twenty roundoffs of 8: 9.5e-6; twice that, and 32 roundoffs, are the tolerance.
    let size = 20.0 * u * 8.0;
    let float = Some(DType::Float32);
    let contains = |said: &[String], part: &str| {
        assert!(said.iter().any(|sentence| sentence.contains(part)), "wanted {part:?}, got {said:#?}");
    };
    let said = told(float, DType::Float32, size);
    contains(&said, "roundoffs of the output's largest element (8.000e0): an algorithm that errs by the norm");
    contains(&said, "in [[ops]]: tolerances = { float32 = { absolute = 2e-5, relative = 2e-6 } }");
    // The line names the dtype of the test, whatever the output's.
    contains(&told(Some(DType::Float16), DType::Float32, size), "tolerances = { float16 = {");
    silent(&told(None, DType::Float32, size), "by the norm");
    // Errors of rounding that a factor near 1 would describe as well.
    let setting = Setting { unknown_algorithm: float, ..setting(&[8, 8]) };
    let factor = setting.each(|e, n| e[n] * (1.0 + 2.5e-6));
    contains(&factor, "by the norm");
    silent(&factor, "times what it should be");
    silent(&told(float, DType::Float32, 80.0 * u * 8.0), "by the norm");
    silent(&told(float, DType::Float32, f64::NAN), "by the norm");
    // 1024 equal terms summed one by one err by up to 256 roundoffs of the sum, 100 terms by 25.
    let summed = |terms: usize, roundoffs: f64| {
        let inputs = vec![("x".into(), Tensor::from_slice(&[terms], &vec![1.0f32; terms]))];
        let setting = Setting { unknown_algorithm: float, inputs, ..self::setting(&[1]) };
        setting.run(&[1024.0], &[1024.0 * (1.0 + roundoffs * u)])
    };
    contains(&summed(1024, 250.0), "by the norm");
    silent(&summed(1024, 270.0), "by the norm");
    silent(&summed(100, 70.0), "by the norm");
    silent(&summed(1 << 20, 1100.0), "by the norm");
}

#[test]
fn factors_near_one() {
    let said = setting(&[8, 8]).each(|e, n| e[n] * (1.0 + 2f64.powi(-12)));
    // 2^-12 is 0.000244140625; float32 keeps 1.5 of it around 1.
    assert!(said[0].contains("is 1.000244") && said[0].ends_with("times what it should be"), "{said:#?}");
}

#[test]
fn an_index_of_16_bits() {
    let wraps = |bits: u32| move |expected: &[f64], number: usize| expected[number % (1 << bits)];
    let wanted = "only from element 2^16 = 65536 on in row-major order: an index of 16 bits wraps there";
    says(&setting(&[257, 256]).each(wraps(16)), wanted);
    says(&setting(&[200, 331]).each(wraps(16)), wanted);
    silent(&setting(&[2, 256]).each(wraps(8)), "row-major");
}

#[test]
fn an_input_too_often_or_not_at_all() {
    let bias = [0.5, -0.25, 2.0, 1.0, -1.5, 0.75, 3.0, -2.0];
    let with = |dtype| {
        let mut setting = setting(&[2, 4]);
        let values = Array::float(DType::Float32, &[2, 4], bias.to_vec());
        setting.inputs = vec![("bias".into(), Tensor::from_array(&values, dtype))];
        setting
    };
    let setting = with(DType::Float32);
    says(&setting.each(|e, n| e[n] + bias[n]), "every element is off by input bias: it is in there once too often");
    says(&setting.each(|e, n| e[n] - bias[n]), "every element is off by minus input bias: it is missing");
    silent(&setting.each(|e, n| e[n] + bias[n] * (1.0 + n as f64)), "input bias");
    silent(&setting.each(|e, n| e[n] + 0.5), "input bias");
}

#[test]
fn integers_off_by_one() {
    let mut setting = setting(&[8]);
    setting.dtype = DType::Int32;
    let expected = [3i64, -4, 5, -6, 7, -8, 9, 0];
    let answer = |change: fn(i64) -> i64| {
        let numbers = |values: Vec<i64>| Array::integer(DType::Int32, &[8], values);
        let got = Tensor::from_array(&numbers(expected.iter().map(|&value| change(value)).collect()), DType::Int32);
        setting.tensor(&numbers(expected.to_vec()), &got)
    };
    says(&answer(|value| value - value.signum()), "every wrong element is off by one, towards zero");
    says(&answer(|value| value + value.signum()), "every wrong element is off by one, away from zero");
    says(&answer(|value| value + 1 - 2 * (value & 1)), "every element is off by one");
    silent(&answer(|value| value * 2), "off by one");
}

#[test]
fn the_border() {
    let border = |n: usize| n / 6 == 0 || n / 6 == 4 || n.is_multiple_of(6) || n % 6 == 5;
    let wrong = setting(&[5, 6]).each(|e, n| if border(n) { e[n] * 1.1 + 0.3 } else { e[n] });
    says(&wrong, "only on the border of S and H");
    silent(&setting(&[5, 6]).each(|e, n| if border(n) || n == 8 { e[n] + 0.3 } else { e[n] }), "border");
    silent(&setting(&[5, 6]).each(|e, n| if n / 6 == 0 { e[n] + 0.3 } else { e[n] }), "border");
}
