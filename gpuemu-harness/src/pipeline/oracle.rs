//! The oracle of one op and dtype: its mirror asked in every precision that a judgement needs, and bounds from that.

use super::session::Session;
use crate::calibrate::Sampler;
use crate::case::rng::{self, XorShift128Plus};
use crate::case::{Case, Generate};
use crate::error::{Error, Result};
use crate::mirror::{Mirror, Question};
use crate::tensor::{Array, Tensor, Values};
use crate::validate::compare::{self, Bound, Closer, Comparison, Rules};
use crate::validate::diagnosis::Axis;
use crate::validate::grid::Grid;
use crate::validate::health::{Health, Observation};
use crate::validate::tolerance::{self, Bounds, Envelope, Evidence, Sample};
use gpuemu_contract::{Compute, DType, Expression, Op, OutputShape, Reference, Shape, TensorDecl, Tolerance};
use std::cell::OnceCell;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// How many evaluations with random signs estimate an element's natural error; the last gives neighbours opposite ones.
/// One more moves every input up, whatever its sign: sums that group equal signs before they cancel err by the sum of
/// magnitudes, which random signs miss by the square root of their number.
const RANDOM_PERTURBATIONS: u64 = 3;

/// The same where an output is a quantised number of the user's reference: at a tie each of them falls to one side or the
/// other, and all to the same by chance once in as many times as there are halves.
const QUANTISED_PERTURBATIONS: u64 = 20;

/// A case is fit for judging large magnitudes while the mirror in working precision, and on perturbed inputs, is closer
/// to the answer than this part of the largest answer. Beyond, the bounds allow anything.
const USEFUL: f64 = 1.0 / 64.0;

/// Knows what is right for one op and dtype.
pub struct Oracle<'s> {
    session: &'s Session,
    op: &'s Op,
    dtype: DType,
    mirror: Arc<dyn Mirror>,
    envelope: OnceLock<Result<Envelope>>,
}

impl<'s> Oracle<'s> {
    /// The oracle of an op for tests of `dtype`.
    pub fn new(session: &'s Session, op: &'s Op, dtype: DType) -> Result<Oracle<'s>> {
        let mirror = session.mirror(op)?;
        Ok(Oracle { session, op, dtype, mirror, envelope: OnceLock::new() })
    }

    /// The op.
    pub fn op(&self) -> &'s Op {
        self.op
    }

    /// The dtype of its tests.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// What fills inputs that have a generator of their own.
    pub fn generator(&self) -> Option<&dyn Generate> {
        Some(self.session.generator())
    }

    /// The calibrated envelope.
    pub fn envelope(&self) -> Result<Envelope> {
        self.envelope.get_or_init(|| self.session.envelopes().of(self.op, self.dtype, self)).clone()
    }

    /// Remarks of the mirror on its answers so far.
    pub fn notes(&self) -> Vec<String> {
        self.mirror.notes()
    }

    fn compute(&self) -> Compute {
        self.op.compute_for(self.dtype)
    }

    /// The precision in which the error of a right kernel is estimated: its own, one step down for float64.
    fn working(&self) -> Compute {
        match self.compute() {
            Compute::Float64 => Compute::Float32,
            compute => compute,
        }
    }

    /// Whether the reference is the user's own.
    fn is_of_the_user(&self) -> bool {
        !matches!(self.op.reference, Reference::Builtin(_))
    }

    fn tolerance(&self) -> Option<&'s Tolerance> {
        self.op.tolerances.get(&self.dtype)
    }

    fn results(&self) -> Vec<(String, DType)> {
        self.op.schema.results().map(|tensor| (tensor.name.clone(), tensor.dtype.resolve(self.dtype))).collect()
    }

    fn ask(&self, case: &Case, inputs: &[(String, Array)], precision: Compute) -> Result<Vec<Array>> {
        let outputs = self.results();
        let question = Question { inputs, params: &case.params, outputs: &outputs, precision, edges: self.op.edges };
        let answers = self.mirror.answer(&question)?;
        if answers.len() != outputs.len() {
            return Err(Error::ReferenceFailed(format!(
                "reference {} answered {} outputs, op `{}` declares {}",
                self.op.reference,
                answers.len(),
                self.op.name,
                outputs.len()
            )));
        }
        for ((answer, (name, _)), declared) in answers.iter().zip(&outputs).zip(self.op.schema.results()) {
            let wanted = match case.outputs.iter().find(|(output, ..)| output == name) {
                Some((_, _, shape)) => shape.as_deref(),
                None if declared.inout => {
                    inputs.iter().find(|(input, _)| input == name).map(|(_, array)| array.shape.as_slice())
                }
                None => None,
            };
            if let Some(wanted) = wanted
                && answer.shape != wanted
            {
                return Err(Error::ReferenceFailed(format!(
                    "reference {} answered {name} of shape {:?}, op `{}` declares {wanted:?}",
                    self.op.reference, answer.shape, self.op.name
                )));
            }
        }
        Ok(answers.into_iter().zip(outputs).map(|(answer, (_, dtype))| Array { dtype, ..answer }).collect())
    }

    /// The right answer of a case.
    pub fn answer<'c>(&'c self, case: &'c Case) -> Result<Answer<'c>> {
        let inputs: Vec<(String, Array)> =
            case.inputs.iter().map(|(name, tensor)| (name.clone(), tensor.to_array())).collect();
        let expected = self.ask(case, &inputs, Compute::Float64)?;
        let full = expected.iter().map(|_| OnceCell::new()).collect();
        let (largest_input, working, perturbed) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Ok(Answer { oracle: self, case, inputs, expected, largest_input, working, perturbed, full })
    }

    /// Whether a right kernel would stay finite on a case, and near enough to the answer to be told from a wrong one.
    pub fn stays_finite(&self, case: &Case) -> Result<bool> {
        let answer = self.answer(case)?;
        let own;
        let working: Option<&[Array]> = match answer.working()? {
            // A float64 kernel does not overflow where float32 does.
            Some(_) if self.compute() == Compute::Float64 => {
                own = self.ask(case, &answer.inputs, Compute::Float64)?;
                Some(&own)
            }
            working => working,
        };
        let perturbed = match self.compute() {
            Compute::Float64 => &[][..],
            _ => answer.perturbed()?,
        };
        let terms =
            case.inputs.iter().flat_map(|(_, tensor)| tensor.shape()).fold(1, |most, &size| most.max(size)) as f64;
        for (place, expected) in answer.expected.iter().enumerate() {
            let Some(expected_values) = expected.floats() else { continue };
            // A weighted mean may be divided by the sum of its weights last: its accumulator is as many times larger as it
            // has terms, which an axis of an input is.
            let limit = Grid::of(expected.dtype).largest() / terms;
            let largest = expected_values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
            // `max` passes over NaN.
            if !(largest <= limit && expected_values.iter().all(|value| value.is_finite())) {
                return Ok(false);
            }
            let perturbed = perturbed.get(place).map_or(&[][..], Vec::as_slice);
            let others = perturbed.iter().chain(working.map(|answers| &answers[place]));
            for other in others {
                let Some(values) = other.floats() else { continue };
                let near = |(value, expected): (&f64, &f64)| (value - expected).abs() <= USEFUL * largest;
                if !(values.iter().all(|value| value.abs() <= limit) && values.iter().zip(expected_values).all(near)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Names and tiles of the axes of an output (or an `inout` input), for messages.
    pub fn axes_of(&self, name: &str, rank: usize) -> Vec<Axis> {
        let declared = self.op.schema.results().find(|tensor| tensor.name == name);
        axes(self.op, declared, rank)
    }
}

impl Sampler for Oracle<'_> {
    fn generator(&self) -> Option<&dyn Generate> {
        Oracle::generator(self)
    }

    fn sample(&self, case: &Case, samples: &mut Vec<Sample>) -> Result<()> {
        let answer = self.answer(case)?;
        for place in 0..answer.expected.len() {
            if answer.expected[place].floats().is_some() {
                answer.with_evidence(place, |evidence| samples.extend(tolerance::samples(evidence)))?;
            }
        }
        Ok(())
    }
}

/// Names and tiles of a tensor's axes: the text of the schema's expressions.
fn axes(op: &Op, declared: Option<&TensorDecl>, rank: usize) -> Vec<Axis> {
    let expressions: &[Expression] = match declared.map(|tensor| &tensor.shape) {
        Some(OutputShape::Declared(Shape::Fixed(axes) | Shape::AnyRank(axes))) => axes,
        _ => &[],
    };
    let unnamed = rank.saturating_sub(expressions.len());
    let mut named: Vec<_> = (0..unnamed).map(|axis| Axis { name: format!("axis {axis}"), tile: None }).collect();
    named.extend(expressions.iter().take(rank).map(|expression| {
        let tile = match expression {
            Expression::Name(name) => op.schema.dims.iter().find(|(dim, _)| dim == name).and_then(|(_, dim)| dim.tile),
            _ => None,
        };
        Axis { name: expression.to_string(), tile: tile.map(|tile| tile as usize) }
    }));
    named
}

/// The right answer of one case; closer looks are taken when they are asked for.
pub struct Answer<'c> {
    oracle: &'c Oracle<'c>,
    case: &'c Case,
    /// The inputs, exact.
    pub inputs: Vec<(String, Array)>,
    /// The float64 answers, in the order of the schema's results.
    pub expected: Vec<Array>,
    largest_input: OnceCell<f64>,
    working: OnceCell<Result<Option<Vec<Array>>>>,
    /// Of each output, its answers to perturbed inputs.
    perturbed: OnceCell<Result<Vec<Vec<Array>>>>,
    full: Vec<OnceCell<Result<Bounds>>>,
}

impl Answer<'_> {
    /// Compares an output with the answer: by the cheap bound first, and closely where that does not clear it.
    pub fn compare(&self, place: usize, got: &Tensor) -> Result<Comparison> {
        let expected = &self.expected[place];
        let rules = self.rules(place);
        if let Some(bound) = self.fixed_bound(place) {
            return Ok(compare::compare(got, expected, bound, &rules));
        }
        if expected.floats().is_none() {
            let exact = compare::compare(got, expected, Bound::ROUNDED, &rules);
            if exact.agrees() {
                return Ok(exact);
            }
            return self.with_bounds(place, |bounds| {
                compare::compare(got, expected, Bound::PerElement(&bounds.allowed), &rules)
            });
        }
        let envelope = self.oracle.envelope()?;
        let unit = self.oracle.compute().unit_roundoff();
        let cheap = tolerance::cheap(&envelope, unit, got.dtype(), 0.0);
        let mut close = self.close_look(place, &envelope);
        let comparison = compare::compare_closely(got, expected, cheap, &rules, &mut |elements| close.bounds(elements));
        if let Some(error) = close.error {
            return Err(error);
        }
        if comparison.agrees() {
            return Ok(comparison);
        }
        self.with_bounds(place, |bounds| {
            let rules = Rules { either_right: bounds.either_right.as_deref(), ..rules };
            compare::compare(got, expected, Bound::PerElement(&bounds.allowed), &rules)
        })
    }

    fn close_look(&self, place: usize, envelope: &Envelope) -> CloseLook<'_> {
        let expected = &self.expected[place];
        let (axes, pooled) = self.question(&self.oracle.results(), |question| {
            let mirror = &self.oracle.mirror;
            (mirror.separable_axes(question, place), mirror.pooled_axes(question, place))
        });
        let first_is_float = self.inputs.first().is_some_and(|(_, array)| array.floats().is_some());
        let axes = if first_is_float && expected.floats().is_some() { axes } else { 0 };
        let slice = expected.shape[axes..].iter().product::<usize>().max(1);
        CloseLook { answer: self, place, envelope: *envelope, axes, slice, pooled, last: None, error: None }
    }

    /// What is demanded of values of an output that are not finite. An integer dtype has no answer to a NaN of an
    /// unrounded mirror: any value is right there.
    pub fn rules(&self, place: usize) -> Rules<'static> {
        let op = self.oracle.op;
        let unrounded = !self.expected[place].dtype.is_float();
        Rules { check_nan: op.check_nan && !unrounded, check_inf: op.check_inf, either_right: None }
    }

    /// Bound of every element of an output, and where either of two answers is right.
    pub fn allowed<T>(&self, place: usize, then: impl FnOnce(&[f64], Option<&[bool]>) -> T) -> Result<T> {
        let expected = &self.expected[place];
        match self.fixed_bound(place) {
            Some(bound) => Ok(then(&each(bound, expected), None)),
            None => self.with_bounds(place, |bounds| then(&bounds.allowed, bounds.either_right.as_deref())),
        }
    }

    /// Shows a passed output to the health checks; closely only while they need it.
    pub fn observe(&self, place: usize, name: &str, health: &mut Health) -> Result<()> {
        let rules = self.rules(place);
        let expected = &self.expected[place];
        let compared = expected.len() as u64;
        let undecided = health.undecided(name);
        let mut show = |bound: Bound<'_>, rules: Rules<'_>| {
            let inputs = &self.case.inputs;
            health.observe(&Observation { output: name, expected, bound, rules, inputs, compared });
        };
        match self.fixed_bound(place) {
            Some(bound) => show(bound, rules),
            None if !undecided || expected.floats().is_none() => show(Bound::ROUNDED, rules),
            None => self.with_bounds(place, |bounds| {
                show(
                    Bound::PerElement(&bounds.allowed),
                    Rules { either_right: bounds.either_right.as_deref(), ..rules },
                );
            })?,
        }
        Ok(())
    }

    /// The bound that no evidence changes: an explicit tolerance, or exactness for values that are integers throughout. What
    /// a reference of the user's makes of floats may have been rounded to an integer.
    fn fixed_bound(&self, place: usize) -> Option<Bound<'static>> {
        let expected = &self.expected[place];
        let tolerance = match expected.dtype.is_float() {
            true => self.oracle.tolerance(),
            false => self.oracle.op.tolerances.get(&expected.dtype),
        };
        if let Some(tolerance) = tolerance {
            return Some(Bound::tolerance(tolerance, expected.dtype));
        }
        let rounds = || self.oracle.is_of_the_user() && self.inputs.iter().any(|(_, array)| array.floats().is_some());
        (matches!(expected.values, Values::Integer(_)) && !rounds()).then_some(Bound::ROUNDED)
    }

    /// Whether the bounds of an output are calibrated on a reference of the user's, which says nothing of how it computes.
    pub fn has_unknown_algorithm(&self, place: usize) -> bool {
        self.oracle.is_of_the_user() && self.expected[place].floats().is_some() && self.fixed_bound(place).is_none()
    }

    /// The full bounds of an output.
    pub fn with_bounds<T>(&self, place: usize, then: impl FnOnce(&Bounds) -> T) -> Result<T> {
        let bounds = self.full[place].get_or_init(|| {
            // Integers need none, and calibrating one takes its time.
            let envelope = match self.expected[place].floats() {
                Some(_) => self.oracle.envelope()?,
                None => Envelope { rho: 0.0, alpha: 0.0 },
            };
            self.with_evidence(place, |evidence| tolerance::bounds(&envelope, evidence))
        });
        bounds.as_ref().map(then).map_err(Clone::clone)
    }

    /// Everything that is known about an output.
    fn with_evidence<T>(&self, place: usize, then: impl FnOnce(&Evidence<'_>) -> T) -> Result<T> {
        let working = self.working()?.map(|answers| &answers[place]);
        let pooled = self.question(&self.oracle.results(), |question| self.oracle.mirror.pooled_axes(question, place));
        Ok(then(&self.evidence(place, &self.expected[place], &self.perturbed()?[place], working, &pooled)))
    }

    /// What is known about an output, or about slices of it.
    fn evidence<'e>(
        &self,
        place: usize,
        expected: &'e Array,
        perturbed: &'e [Array],
        working: Option<&'e Array>,
        pooled_axes: &'e [usize],
    ) -> Evidence<'e> {
        let oracle = self.oracle;
        let roundoff = oracle.working().unit_roundoff();
        Evidence {
            expected,
            perturbed,
            perturbation: roundoff,
            working: working.map(|answer| (answer, roundoff)),
            unit_roundoff: oracle.compute().unit_roundoff(),
            largest_input: self.largest_input(),
            pooled_axes,
            dtype: oracle.results()[place].1,
            extra: 0.0,
            underflow: tolerance::underflow(oracle.compute()),
        }
    }

    /// What the mirror is asked for the expected values.
    fn question<T>(&self, outputs: &[(String, DType)], then: impl FnOnce(&Question<'_>) -> T) -> T {
        then(&Question {
            inputs: &self.inputs,
            params: &self.case.params,
            outputs,
            precision: Compute::Float64,
            edges: self.oracle.op.edges,
        })
    }

    /// The answers in working precision; `None` where the mirror has none.
    fn working(&self) -> Result<Option<&[Array]>> {
        let working = self.working.get_or_init(|| match self.oracle.mirror.has_working_precision() {
            true => self.oracle.ask(self.case, &self.inputs, self.oracle.working()).map(Some),
            false => Ok(None),
        });
        working.as_ref().map(|answers| answers.as_deref()).map_err(Clone::clone)
    }

    /// Of each output, its float64 answers to perturbed inputs.
    fn perturbed(&self) -> Result<&[Vec<Array>]> {
        self.perturbed.get_or_init(|| self.perturb()).as_deref().map_err(Clone::clone)
    }

    fn perturb(&self) -> Result<Vec<Vec<Array>>> {
        let unit = self.oracle.working().unit_roundoff();
        let mut answers: Vec<Vec<Array>> = self.expected.iter().map(|_| Vec::new()).collect();
        let is_quantised = |array: &Array| array.floats().is_none() && tolerance::is_quantised(array.dtype);
        let count = match self.expected.iter().any(is_quantised) {
            true => QUANTISED_PERTURBATIONS,
            false => RANDOM_PERTURBATIONS,
        };
        for number in 0..=count {
            let moved = |(name, array): &(String, Array)| {
                let moved = if number == 0 {
                    raise(array, unit)
                } else {
                    let seed = rng::derive(self.case.spec.seed, &format!("perturbation {number} of {name}"));
                    perturb(array, unit, seed, number == RANDOM_PERTURBATIONS)
                };
                (name.clone(), moved)
            };
            let inputs: Vec<(String, Array)> = self.inputs.iter().map(moved).collect();
            let moved = self.oracle.ask(self.case, &inputs, Compute::Float64)?;
            answers.iter_mut().zip(moved).for_each(|(answers, answer)| answers.push(answer));
        }
        Ok(answers)
    }

    /// The largest finite magnitude among the float inputs.
    fn largest_input(&self) -> f64 {
        *self.largest_input.get_or_init(|| {
            let magnitude = |value: &f64| if value.abs() < f64::INFINITY { value.abs() } else { 0.0 };
            let larger = |a: f64, b: f64| if b > a { b } else { a };
            // Eight maxima side by side, so that none waits for the last.
            let mut largest = [0.0; 8];
            for chunk in self.inputs.iter().filter_map(|(_, array)| array.floats()).flat_map(|values| values.chunks(8))
            {
                largest
                    .iter_mut()
                    .zip(chunk)
                    .for_each(|(largest, value)| *largest = larger(*largest, magnitude(value)));
            }
            largest.into_iter().fold(0.0, larger)
        })
    }
}

/// Bounds with the working-precision mirror's error, for those slices of an output that a cheap bound does not clear:
/// where the op lets slices be asked alone, a few wrong rows cost a few rows.
struct CloseLook<'c> {
    answer: &'c Answer<'c>,
    place: usize,
    envelope: Envelope,
    /// How many leading axes are separable.
    axes: usize,
    /// Elements of a slice along them.
    slice: usize,
    pooled: Vec<usize>,
    /// The bounds looked up last, and the elements they are for.
    last: Option<(Range<usize>, Bounds)>,
    /// Why there is no bound.
    error: Option<Error>,
}

impl CloseLook<'_> {
    /// The bounds of a run of elements, in row-major order; `None` where the mirror has no working precision.
    fn bounds(&mut self, elements: Range<usize>) -> Option<Closer> {
        if self.error.is_some() || !self.answer.oracle.mirror.has_working_precision() {
            return None;
        }
        let known =
            self.last.as_ref().is_some_and(|(known, _)| known.start <= elements.start && elements.end <= known.end);
        if !known {
            let slices = elements.start / self.slice..elements.end.div_ceil(self.slice);
            match self.look(slices.clone()) {
                Ok(bounds) => self.last = Some((slices.start * self.slice..slices.end * self.slice, bounds)),
                Err(error) => {
                    self.error = Some(error);
                    return None;
                }
            }
        }
        let (known, bounds) = self.last.as_ref()?;
        let run = elements.start - known.start..elements.end - known.start;
        let either_right = bounds.either_right.as_ref().map(|mask| mask[run.clone()].to_vec());
        Some(Closer { allowed: bounds.allowed[run].to_vec(), either_right })
    }

    fn look(&self, slices: Range<usize>) -> Result<Bounds> {
        let (answer, place) = (self.answer, self.place);
        let (oracle, expected) = (answer.oracle, &answer.expected[place]);
        if slices.len() * self.slice == expected.len() {
            let working = answer.working()?.map(|answers| &answers[place]);
            let evidence = answer.evidence(place, expected, &[], working, &self.pooled);
            return Ok(tolerance::bounds(&self.envelope, &evidence));
        }
        let cut = |array: &Array| {
            let mut shape = array.shape.clone();
            shape[..self.axes].fill(1);
            shape[self.axes - 1] = slices.len();
            let values = array.floats().expect("float answers of a float input");
            Array::float(array.dtype, &shape, values[slices.start * self.slice..slices.end * self.slice].to_vec())
        };
        let mut inputs: Vec<(String, Array)> = vec![(answer.inputs[0].0.clone(), cut(&answer.inputs[0].1))];
        inputs.extend_from_slice(&answer.inputs[1..]);
        let outputs = oracle.results();
        let working = answer.question(&outputs, |question| {
            oracle.mirror.answer(&Question { inputs: &inputs, precision: oracle.working(), ..*question })
        })?;
        let expected = cut(expected);
        let evidence = answer.evidence(place, &expected, &[], Some(&working[place]), &self.pooled);
        Ok(tolerance::bounds(&self.envelope, &evidence))
    }
}

/// A bound that is a formula, element by element.
fn each(bound: Bound<'_>, expected: &Array) -> Vec<f64> {
    match bound {
        Bound::PerElement(each) => each.to_vec(),
        Bound::Formula { steps, relative, absolute } => {
            let grid = Grid::of(expected.dtype);
            let allowed = |value: f64| steps * grid.step(value) + relative * value.abs() + absolute;
            (0..expected.len()).map(|number| allowed(expected.at(number))).collect()
        }
    }
}

/// Float values moved up by one relative unit.
fn raise(array: &Array, unit: f64) -> Array {
    let Values::Float(values) = &array.values else { return array.clone() };
    let raised = values.iter().map(|value| value + unit * value.abs());
    Array { values: Values::Float(raised.collect()), ..array.clone() }
}

/// Float values moved by one relative unit, each up or down at random; in pairs, of two neighbours one up and one down:
/// where all elements of a short row move together, as random signs now and then have it, what cancels among them is
/// not touched.
fn perturb(array: &Array, unit: f64, seed: u64, pairs: bool) -> Array {
    let Values::Float(values) = &array.values else { return array.clone() };
    let mut stream = XorShift128Plus::new(seed);
    let moved =
        values.chunks(64).flat_map(|chunk| {
            let random = stream.next_word();
            // Bit 2k + 1 is the opposite of bit 2k.
            let even = random & 0x5555_5555_5555_5555;
            let signs = if pairs { even | (!random & 0x5555_5555_5555_5555) << 1 } else { random };
            chunk.iter().enumerate().map(move |(bit, value)| {
                if signs >> bit & 1 == 0 { value * (1.0 + unit) } else { value * (1.0 - unit) }
            })
        });
    Array { values: Values::Float(moved.collect()), ..array.clone() }
}
