//! What the wrong elements are.

use super::{Facts, same};
use crate::tensor::round_to_dtype;
use crate::validate::honesty::Poison;
use gpuemu_contract::DType;

/// Sentences about the values of the wrong elements, the most telling first.
pub(super) fn sentences(facts: &Facts<'_>) -> Vec<String> {
    // Where one of these explains every wrong element, the weaker ones behind it say nothing new.
    let whole: [fn(&Facts<'_>) -> Option<String>; 15] = [
        poison,
        not_finite,
        one_value,
        wrapped,
        by_one,
        copied,
        factor,
        offset,
        input_off,
        transposed,
        moved,
        reordered_rows,
        slices,
        reordered,
        lines,
    ];
    // Rounding errors look like anything: like a factor near 1, like a difference.
    let rounding = by_the_norm(facts);
    let mut sentences: Vec<String> =
        rounding.or_else(|| whole.iter().find_map(|rule| rule(facts))).into_iter().collect();
    if sentences.is_empty() {
        sentences.extend(coarse(facts));
    }
    sentences.extend(growing(facts));
    sentences
}

/// Errors up to this many roundoffs of the largest element are what an algorithm that errs by the norm may show, such as
/// a transform of a few thousand points.
const BY_THE_NORM: f64 = 64.0;

/// A sum of n equal terms, one after the other, errs by up to n/4 roundoffs or so: every partial sum of a binade is rounded
/// the same way. Beyond this many terms, and this part of the largest element, nothing is said.
const SUMMED: f64 = 4096.0;
const LARGEST_PART: f64 = 1e-3;

/// Errors that are small beside the output's largest element. Where the algorithm is not known, the bound takes every
/// element for itself: it does not see that a kernel works on all of them together, or sums term after term.
fn by_the_norm(facts: &Facts<'_>) -> Option<String> {
    let tested = facts.scene.unknown_algorithm.filter(|_| facts.dtype.is_float())?;
    let largest = facts.expected.iter().map(|value| value.abs()).filter(|value| value.is_finite()).fold(0.0, f64::max);
    let grid = super::Grid::of(facts.dtype);
    // What rounding to the output's dtype takes is not the algorithm's.
    let error = |&number: &usize| {
        let expected = facts.expected[number];
        (facts.got[number] - expected).abs() - grid.step(expected) / 2.0
    };
    if !facts.numbers.iter().all(|number| error(number).is_finite()) {
        return None;
    }
    let worst = facts.numbers.iter().map(error).fold(0.0, f64::max);
    let unit = facts.scene.unit_roundoff * largest;
    let terms = facts.scene.inputs.iter().map(|(_, input)| input.shape().iter().product::<usize>()).max().unwrap_or(0);
    let most = ((terms as f64).min(SUMMED) / 4.0).max(BY_THE_NORM).min(LARGEST_PART / facts.scene.unit_roundoff);
    if unit == 0.0 || worst > most * unit {
        return None;
    }
    // Another case of this size may err by more than a lucky one.
    let (absolute, relative) = ((2.0 * worst).max(4.0 * unit), BY_THE_NORM / 2.0 * facts.scene.unit_roundoff);
    Some(format!(
        "no error is above {:.1} roundoffs of the output's largest element ({largest:.3e}): an algorithm that errs by \
         the norm (FFT, Winograd, a long sum one term after the other) may be right, and needs a tolerance of its own; \
         for values of this size, in [[ops]]: tolerances = {{ {tested} = {{ absolute = {absolute:.0e}, relative = \
         {relative:.0e} }} }}",
        worst / unit
    ))
}

/// Elements that still are what the output's memory was filled with.
fn poison(facts: &Facts<'_>) -> Option<String> {
    [Poison::First, Poison::Second].into_iter().find_map(|poison| {
        let marks = poison.suspects(facts.scene.got)?;
        let all = facts.numbers.iter().all(|&number| marks[number]);
        all.then(|| format!("{} still is what its memory was filled with: never written", facts.wrong_ones()))
    })
}

fn not_finite(facts: &Facts<'_>) -> Option<String> {
    let kinds: [(&str, fn(f64, f64) -> bool); 5] = [
        ("is NaN where the mirror is finite", |got, expected| got.is_nan() && expected.is_finite()),
        ("is infinite where the mirror is finite", |got, expected| got.is_infinite() && expected.is_finite()),
        ("is a number where the mirror is NaN", |got, expected| got.is_finite() && expected.is_nan()),
        ("is a number where the mirror is infinite", |got, expected| got.is_finite() && expected.is_infinite()),
        ("is NaN where the mirror is infinite", |got, expected| got.is_nan() && expected.is_infinite()),
    ];
    kinds.into_iter().find_map(|(what, is)| {
        let all = facts.numbers.iter().all(|&number| is(facts.got[number], facts.expected[number]));
        all.then(|| format!("{} {what}", facts.wrong_ones()))
    })
}

/// All wrong elements are one value: zero, the end of the dtype's range, something else.
fn one_value(facts: &Facts<'_>) -> Option<String> {
    let value = facts.got[facts.numbers[0]];
    if !value.is_finite() || facts.numbers.iter().any(|&number| facts.got[number] != value) {
        return None;
    }
    let subject = facts.wrong_ones();
    if value == 0.0 {
        let everywhere = facts.got.iter().all(|&got| got == 0.0) && facts.got.len() > 1;
        return Some(if everywhere { "the whole output is zero".to_string() } else { format!("{subject} is zero") });
    }
    let (least, most) = match facts.dtype.integer_range() {
        Some((least, most)) => (least as f64, most as f64),
        None => facts.dtype.max_finite().map_or((0.0, 0.0), |largest| (-largest, largest)),
    };
    if (value == least || value == most) && facts.dtype != DType::Bool {
        return Some(format!("{subject} is saturated at {value}, the end of {}'s range", facts.dtype));
    }
    let distinct = facts.numbers.len() >= 2 && facts.varied(&facts.numbers);
    distinct.then(|| format!("{subject} is {value}, whatever it should be"))
}

/// Integers that lost their upper bits.
fn wrapped(facts: &Facts<'_>) -> Option<String> {
    if facts.dtype.is_float() {
        return None;
    }
    [32, 16, 8].into_iter().find_map(|bits| {
        let range = 2f64.powi(bits);
        let all = facts.numbers.iter().all(|&number| {
            let difference = facts.got[number] - facts.expected[number];
            difference != 0.0 && difference % range == 0.0 && difference.abs() < 2f64.powi(53)
        });
        all.then(|| format!("{} is off by a multiple of 2^{bits}: wrapped to {bits} bits", facts.wrong_ones()))
    })
}

/// Integers next to the right one.
fn by_one(facts: &Facts<'_>) -> Option<String> {
    if facts.dtype.is_float() || facts.dtype == DType::Bool || facts.numbers.len() < 2 {
        return None;
    }
    // Expected values of rounded answers need not be whole.
    let difference = |number: usize| facts.got[number] - facts.expected[number].round_ties_even();
    if !facts.numbers.iter().all(|&number| difference(number).abs() == 1.0) {
        return None;
    }
    let signs = || facts.numbers.iter().map(|&number| difference(number) * facts.expected[number]);
    let both = facts.numbers.iter().any(|&number| facts.expected[number] > 0.0)
        && facts.numbers.iter().any(|&number| facts.expected[number] < 0.0);
    let way = match both {
        true if signs().all(|sign| sign < 0.0) => ", towards zero",
        true if signs().all(|sign| sign > 0.0) => ", away from zero",
        _ => "",
    };
    Some(format!("{} is off by one{way}", facts.wrong_ones()))
}

/// The difference is an input: a summand taken twice, or left out.
fn input_off(facts: &Facts<'_>) -> Option<String> {
    if facts.numbers.len() < 2 || !facts.varied(&facts.numbers) {
        return None;
    }
    facts.scene.inputs.iter().find_map(|(name, input)| {
        if input.shape() != facts.shape {
            return None;
        }
        let input = input.to_array();
        let first = input.at(facts.numbers[0]);
        if !facts.numbers.iter().any(|&number| input.at(number) != first && input.at(number).is_finite()) {
            return None;
        }
        // Two sums are rounded, the answer's to a coarser step than the expected value's where that cancels.
        let grid = super::Grid::of(facts.dtype);
        let tolerance = |number: usize| 2.0 * facts.allowed[number] + grid.step(facts.got[number]);
        let shown = facts.numbers.iter().filter(|&&number| input.at(number).abs() > 4.0 * tolerance(number)).count();
        if shown < 2 || shown * 2 < facts.numbers.len() {
            return None;
        }
        let is = |sign: f64| {
            facts.numbers.iter().all(|&number| {
                let difference = facts.got[number] - facts.expected[number];
                (difference - sign * input.at(number)).abs() <= tolerance(number)
            })
        };
        if is(1.0) {
            return Some(format!("{} is off by input {name}: it is in there once too often", facts.wrong_ones()));
        }
        is(-1.0).then(|| format!("{} is off by minus input {name}: it is missing", facts.wrong_ones()))
    })
}

/// The answer is an input.
fn copied(facts: &Facts<'_>) -> Option<String> {
    if facts.numbers.len() < 2 {
        return None;
    }
    facts.scene.inputs.iter().find_map(|(name, input)| {
        if input.shape() != facts.shape {
            return None;
        }
        let input = input.to_array();
        let all = facts.numbers.iter().all(|&number| {
            let value = round_to_dtype(input.at(number), facts.dtype);
            same(facts.got[number], value, 0.0)
        });
        let first = input.at(facts.numbers[0]);
        let varied = facts.numbers.iter().any(|&number| input.at(number) != first && !input.at(number).is_nan());
        (all && varied).then(|| format!("{} is input {name}, copied", facts.wrong_ones()))
    })
}

/// A factor that all wrong elements share.
fn factor(facts: &Facts<'_>) -> Option<String> {
    let (factor, slack) = common_factor(facts, &facts.numbers)?;
    let subject = facts.wrong_ones();
    if (factor + 1.0).abs() <= slack {
        return Some(format!("{subject} has its sign flipped"));
    }
    Some(format!("{subject} is {} times what it should be", number(facts, factor, slack)))
}

/// `c` with got = c * expected at every one of these places, and how far it may be off; `None` for 1 and 0, for fewer
/// than two places or where the expected values are one.
fn common_factor(facts: &Facts<'_>, numbers: &[usize]) -> Option<(f64, f64)> {
    if numbers.len() < 2 || !facts.varied(numbers) {
        return None;
    }
    // The place where the ratio is best known.
    let certainty = |number: usize| facts.expected[number].abs() / facts.allowed[number].max(f64::MIN_POSITIVE);
    let best = numbers.iter().copied().max_by(|a, b| certainty(*a).total_cmp(&certainty(*b)))?;
    let factor = facts.got[best] / facts.expected[best];
    let slack = (1.0 + factor.abs()) * facts.allowed[best] / facts.expected[best].abs();
    if !factor.is_finite() || factor.abs() < 1e-6 || (factor - 1.0).abs() <= slack || slack > 0.05 * factor.abs() {
        return None;
    }
    let told = numbers.iter().all(|&number| {
        let (got, expected) = (facts.got[number], facts.expected[number]);
        let tolerance = (1.0 + factor.abs()) * facts.allowed[number] + slack * expected.abs();
        got.is_finite() && expected.is_finite() && (got - factor * expected).abs() <= tolerance
    });
    // Enough places where the factor shows: not only values too small to tell.
    let shown = numbers.iter().filter(|&&number| certainty(number) > 20.0).count();
    (told && shown >= 2).then_some((factor, slack))
}

/// A factor in words: a size it comes from, a constant, or its digits.
fn number(facts: &Facts<'_>, factor: f64, slack: f64) -> String {
    let near = |value: f64| (factor.abs() - value).abs() <= slack.max(1e-9 * value);
    let sign = if factor < 0.0 { "-" } else { "" };
    let constants = [
        (std::f64::consts::LOG2_E, "1.4427 (log2 e)"),
        (std::f64::consts::LN_2, "0.6931 (ln 2)"),
        (2.0, "2"),
        (0.5, "0.5"),
    ];
    for (name, size) in facts.scene.dims.iter().filter(|dim| dim.1 > 2) {
        let size = *size as f64;
        let forms = [
            (size, format!("{size} ({name})")),
            (1.0 / size, format!("{:.4} (1/{name})", 1.0 / size)),
            (size.sqrt(), format!("{:.4} (sqrt({name}))", size.sqrt())),
            (1.0 / size.sqrt(), format!("{:.4} (1/sqrt({name}))", 1.0 / size.sqrt())),
            (size / (size - 1.0), format!("{:.4} ({name}/({name}-1))", size / (size - 1.0))),
            ((size - 1.0) / size, format!("{:.4} (({name}-1)/{name})", (size - 1.0) / size)),
        ];
        if let Some((_, text)) = forms.into_iter().find(|(value, _)| near(*value)) {
            return format!("{sign}{text}");
        }
    }
    match constants.into_iter().find(|(value, _)| near(*value)) {
        Some((_, text)) => format!("{sign}{text}"),
        // As many digits as tell it from 1.
        None if (factor.abs() - 1.0).abs() < 1e-3 => format!("{factor:.7}"),
        None => format!("{factor:.4}"),
    }
}

/// A difference that all wrong elements share.
fn offset(facts: &Facts<'_>) -> Option<String> {
    let offset = common_offset(facts, &facts.numbers)?;
    Some(format!("{} is off by {offset:+.4e}, whatever it should be", facts.wrong_ones()))
}

fn common_offset(facts: &Facts<'_>, numbers: &[usize]) -> Option<f64> {
    if numbers.len() < 2 || !facts.varied(numbers) {
        return None;
    }
    let best = numbers.iter().copied().min_by(|a, b| facts.allowed[*a].total_cmp(&facts.allowed[*b]))?;
    let offset = facts.got[best] - facts.expected[best];
    let told = numbers.iter().all(|&number| {
        let difference = facts.got[number] - facts.expected[number];
        let tolerance = facts.allowed[number] + facts.allowed[best];
        (difference - offset).abs() <= tolerance && difference.abs() > 4.0 * tolerance
    });
    (told && offset.is_finite()).then_some(offset)
}

/// The expected values with two axes exchanged, read in memory order.
fn transposed(facts: &Facts<'_>) -> Option<String> {
    let rank = facts.shape.len();
    for b in (1..rank).rev() {
        for a in (0..b).rev() {
            let (rows, columns) = (facts.shape[a], facts.shape[b]);
            if rows < 2 || columns < 2 {
                continue;
            }
            // Shape and strides of the expected values with both axes exchanged.
            let mut axes: Vec<(usize, usize)> = (0..rank).map(|axis| (facts.shape[axis], facts.stride(axis))).collect();
            axes.swap(a, b);
            let source = |mut number: usize| {
                let mut at = 0;
                for &(size, stride) in axes.iter().rev() {
                    at += number % size * stride;
                    number /= size;
                }
                at
            };
            if facts.varied(&facts.numbers) && (0..facts.got.len()).all(|n| facts.is_value_of(n, source(n))) {
                return Some(format!("the output is transposed: {} and {} exchanged", facts.name(a), facts.name(b)));
            }
        }
    }
    None
}

/// Shifted, or reversed, along an axis.
fn moved(facts: &Facts<'_>) -> Option<String> {
    if facts.numbers.len() < 2 || !facts.varied(&facts.numbers) {
        return None;
    }
    for axis in (0..facts.shape.len()).rev() {
        let (size, stride) = (facts.shape[axis], facts.stride(axis));
        if size < 2 {
            continue;
        }
        let name = facts.name(axis);
        let mut shifts = vec![1isize, -1];
        shifts.extend(facts.tile(axis).into_iter().flat_map(|tile| [tile as isize, -(tile as isize)]));
        let indices = || facts.numbers.iter().map(|&number| facts.index(number, axis));
        let (first, last) = (indices().min().unwrap_or(0), indices().max().unwrap_or(0));
        for shift in shifts {
            // Every element from the first wrong index to the last, right by chance or not.
            let inside = (first..=last).filter(|&index| (0..size as isize).contains(&(index as isize - shift))).count();
            // What comes in from beyond the end has no source; nearly everything else must have.
            let beyond = last + 1 - first - inside;
            let from_neighbour = (0..facts.got.len()).all(|number| {
                let index = facts.index(number, axis);
                let from = index as isize - shift;
                let judged = (first..=last).contains(&index) && (0..size as isize).contains(&from);
                !judged || facts.is_value_of(number, (number as isize - shift * stride as isize) as usize)
            });
            if inside >= 2 && inside >= beyond && beyond <= shift.unsigned_abs() && from_neighbour {
                let to = if shift > 0 { "up" } else { "down" };
                let count = shift.unsigned_abs();
                return Some(format!(
                    "{} is its neighbour's: shifted {to} by {count} along {name}",
                    facts.wrong_ones()
                ));
            }
        }
        let mirrored = |number: usize| {
            let index = facts.index(number, axis);
            number + (size - 1) * stride - 2 * index * stride
        };
        if size > 2 && (0..facts.got.len()).all(|number| facts.is_value_of(number, mirrored(number))) {
            return Some(format!("the output is reversed along {name}"));
        }
    }
    None
}

/// Slices along an axis that hold the values of another slice.
fn slices(facts: &Facts<'_>) -> Option<String> {
    for axis in 0..facts.shape.len() {
        let (size, stride) = (facts.shape[axis], facts.stride(axis));
        // A slice of one element is like another by chance.
        if !(2..=64).contains(&size) || facts.got.len() / size < 2 {
            continue;
        }
        let members = |slice: usize| (0..facts.got.len()).filter(move |&number| number / stride % size == slice);
        let is_slice = |slice: usize, other: usize| {
            members(slice).all(|number| facts.is_value_of(number, number + other * stride - slice * stride))
        };
        let wrong: Vec<usize> = (0..size).filter(|&slice| members(slice).any(|number| facts.wrong[number])).collect();
        let mut found = Vec::new();
        for &slice in &wrong {
            let numbers: Vec<usize> = members(slice).collect();
            match (0..size).find(|&other| other != slice && is_slice(slice, other)) {
                Some(other) if facts.varied(&numbers) => found.push((slice, other)),
                _ => break,
            }
        }
        if found.len() == wrong.len() {
            let pairs: Vec<String> =
                found.iter().take(3).map(|(slice, other)| format!("{slice} those of {other}")).collect();
            let more = if found.len() > 3 { ", and so on" } else { "" };
            return Some(format!(
                "slices along {} hold another one's values: slice {}{more}",
                facts.name(axis),
                pairs.join(", slice ")
            ));
        }
    }
    None
}

/// The right values in another order along the last axis: more telling there than slices of single elements.
fn reordered_rows(facts: &Facts<'_>) -> Option<String> {
    reordered_along(facts, facts.shape.len().checked_sub(1)?..facts.shape.len())
}

/// The right values in another order along an axis.
fn reordered(facts: &Facts<'_>) -> Option<String> {
    reordered_along(facts, 0..facts.shape.len())
}

fn reordered_along(facts: &Facts<'_>, axes: std::ops::Range<usize>) -> Option<String> {
    for axis in axes.rev() {
        let size = facts.shape[axis];
        if size < 3 || !facts.varied(&facts.numbers) {
            continue;
        }
        let all = lines_along(facts, axis).all(|line| {
            let mut got: Vec<f64> = line.iter().map(|&number| facts.got[number]).collect();
            let mut expected: Vec<usize> = line.clone();
            got.sort_by(f64::total_cmp);
            expected.sort_by(|a, b| facts.expected[*a].total_cmp(&facts.expected[*b]));
            got.iter().zip(expected).all(|(&got, at)| same(got, facts.expected[at], facts.allowed[at]))
        });
        if all {
            return Some(format!("every line along {} has the right values in another order", facts.name(axis)));
        }
    }
    None
}

/// A factor, or an offset, of its own for every line along an axis.
fn lines(facts: &Facts<'_>) -> Option<String> {
    for axis in (0..facts.shape.len()).rev() {
        if facts.shape[axis] < 3 || facts.got.len() == facts.shape[axis] {
            continue;
        }
        let wrong: Vec<Vec<usize>> = lines_along(facts, axis)
            .map(|line| line.into_iter().filter(|&number| facts.wrong[number]).collect::<Vec<_>>())
            .filter(|line| !line.is_empty())
            .collect();
        if wrong.len() < 2 || wrong.iter().any(|line| line.len() < 3) {
            continue;
        }
        let name = facts.name(axis);
        if wrong.iter().all(|line| common_factor(facts, line).is_some()) {
            return Some(format!("every wrong line along {name} is off by a factor of its own"));
        }
        if wrong.iter().all(|line| common_offset(facts, line).is_some()) {
            return Some(format!("every wrong line along {name} is off by a constant of its own"));
        }
    }
    None
}

/// Row-major numbers of the elements of every line along an axis.
fn lines_along<'f>(facts: &'f Facts<'_>, axis: usize) -> impl Iterator<Item = Vec<usize>> + 'f {
    let (size, stride) = (facts.shape[axis], facts.stride(axis));
    let starts = (0..facts.got.len()).filter(move |number| number / stride % size == 0);
    starts.map(move |start| (0..size).map(|index| start + index * stride).collect())
}

/// Errors as large as a narrower format leaves.
fn coarse(facts: &Facts<'_>) -> Option<String> {
    let formats: &[(&str, DType, i32)] = match facts.dtype {
        DType::Float64 => &[("float32", DType::Float32, -24)],
        DType::Float32 => &[("float16 or tf32", DType::Float16, -11), ("bfloat16", DType::BFloat16, -8)],
        DType::Float16 => &[("bfloat16", DType::BFloat16, -8)],
        _ => return None,
    };
    let finite = |number: &&usize| facts.got[**number].is_finite() && facts.expected[**number].is_finite();
    if facts.numbers.len() < 4 || !facts.numbers.iter().all(|number| finite(&number)) {
        return None;
    }
    // Every answer a number of the narrower format, and the expected value rounded to it at that.
    for &(name, format, _) in formats.iter().rev() {
        let bits = format.fraction_bits()?;
        let grid = super::Grid::of(format);
        let all = facts.numbers.iter().all(|&number| {
            let (got, expected) = (facts.got[number], facts.expected[number]);
            let kept = got.to_bits().trailing_zeros() >= 52 - bits;
            kept && (got - expected).abs() <= grid.step(expected) / 2.0 + facts.allowed[number]
        });
        if all {
            return Some(format!("{} is rounded to {name}", facts.wrong_ones()));
        }
    }
    // The typical error, against the largest expected value: that of sums in the narrower format. Both signs occur, and
    // no element is far beyond the others.
    let largest = facts.expected.iter().filter(|value| value.is_finite()).fold(0.0f64, |old, new| old.max(new.abs()));
    let mut errors: Vec<f64> = facts.numbers.iter().map(|&n| (facts.got[n] - facts.expected[n]).abs()).collect();
    let above = facts.numbers.iter().filter(|&&n| facts.got[n] > facts.expected[n]).count();
    if facts.numbers.len() < 8 || above < errors.len() / 5 || above > errors.len() - errors.len() / 5 {
        return None;
    }
    errors.sort_by(f64::total_cmp);
    let typical = errors[errors.len() / 2] / largest;
    let within = errors[errors.len() - 1] / largest;
    formats.iter().find_map(|&(name, _, exponent)| {
        let unit = 2f64.powi(exponent);
        let like = typical >= unit / 8.0 && typical <= 2.0 * unit && within <= 16.0 * unit;
        like.then(|| {
            format!("errors are as large as those of {name} arithmetic, about 2^{exponent} of the largest value")
        })
    })
}

/// The error grows along an axis.
fn growing(facts: &Facts<'_>) -> Option<String> {
    for axis in (0..facts.shape.len()).rev() {
        let size = facts.shape[axis];
        if size < 8 {
            continue;
        }
        let mut sums = vec![0.0; size];
        for (number, (&got, &expected)) in facts.got.iter().zip(&facts.expected).enumerate() {
            let error = (got - expected).abs();
            if !error.is_finite() {
                return None;
            }
            sums[facts.index(number, axis)] += error;
        }
        // Quarters of the axis, each worse than the one before, the last far worse than the first; and no jump, which
        // would be a matter of place.
        let quarter = |which: usize| {
            let range = which * size / 4..(which + 1) * size / 4;
            let count = range.len() as f64;
            sums[range].iter().sum::<f64>() / count
        };
        let quarters = [quarter(0), quarter(1), quarter(2), quarter(3)];
        let rising = quarters.windows(2).all(|pair| pair[1] > 1.2 * pair[0]);
        let steps = sums.windows(2).filter(|pair| pair[1] >= pair[0]).count();
        if quarters[0] > 0.0 && rising && quarters[3] > 3.0 * quarters[0] && steps * 10 >= (size - 1) * 7 {
            return Some(format!("the error grows along {}", facts.name(axis)));
        }
    }
    None
}
