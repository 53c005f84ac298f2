//! Where the wrong elements are.

use super::Facts;

/// Sentences about the places of the wrong elements; none where everything is wrong or nothing stands out.
pub(super) fn sentences(facts: &Facts<'_>) -> Vec<String> {
    if facts.numbers.len() == facts.got.len() {
        return Vec::new();
    }
    let mut sentences: Vec<String> = wrapped(facts).into_iter().collect();
    sentences.extend((0..facts.shape.len()).rev().filter_map(|axis| along(facts, axis)));
    if sentences.is_empty() {
        sentences.extend(border(facts).or_else(|| diagonal(facts)));
    }
    sentences.extend(magnitude(facts));
    sentences.extend(sign(facts));
    sentences.truncate(3);
    sentences
}

/// All that lies past a power of two in row-major order, from 2^15 on, where a tile is no likelier reason than an index
/// of too few bits.
fn wrapped(facts: &Facts<'_>) -> Option<String> {
    let first = facts.numbers[0];
    let right = facts.wrong[first..].iter().filter(|wrong| !**wrong).count();
    // One value in ten may be right by chance.
    if first < 1 << 15 || !first.is_power_of_two() || right * 10 > facts.wrong.len() - first {
        return None;
    }
    let bits = first.trailing_zeros();
    Some(format!("only from element 2^{bits} = {first} on in row-major order: an index of {bits} bits wraps there"))
}

/// Which indices along one axis have wrong elements.
fn along(facts: &Facts<'_>, axis: usize) -> Option<String> {
    let size = facts.shape[axis];
    if size < 2 {
        return None;
    }
    let mut counts = vec![0usize; size];
    for &number in &facts.numbers {
        counts[facts.index(number, axis)] += 1;
    }
    let marked: Vec<usize> = (0..size).filter(|&index| counts[index] > 0).collect();
    let (first, last) = (marked[0], marked[marked.len() - 1]);
    let name = facts.name(axis);
    if marked.len() == size {
        return None;
    }
    // The last partial tile: known, or a power of two that the data suggest.
    if let Some(tile) = facts.tile(axis) {
        let start = size / tile * tile;
        if !size.is_multiple_of(tile) && first >= start && size > tile {
            return Some(format!("only in the last partial tile along {name} (from {start} of {size}, tile {tile})"));
        }
        if !size.is_multiple_of(tile) && first >= start {
            return Some(format!("only in the partial tile along {name}, from {first} of {size}"));
        }
        if first > 0 && first % tile == 0 && first / tile == last / tile && size > tile {
            return Some(format!("only in tile {} along {name} ({first} to {last} of {size})", first / tile));
        }
        if first > 0 && first % tile == 0 && last == size - 1 {
            return Some(format!("only past the first {} along {name} (from {first} of {size})", tiles(first / tile)));
        }
    }
    if marked.len() == 1 {
        return Some(match first {
            0 => format!("only at the first index along {name} (of {size})"),
            first if first == size - 1 => format!("only at the last index along {name} ({first} of {size})"),
            first => format!("only at index {first} along {name} (of {size})"),
        });
    }
    if let Some(step) = progression(&marked, size) {
        let which = match (step, first) {
            (2, 0) => "every second index, the even ones,".to_string(),
            (2, _) => "every second index, the odd ones,".to_string(),
            _ => format!("every {step}th index from {first} on"),
        };
        return Some(format!("only at {which} along {name}"));
    }
    if first > 0 && last == size - 1 {
        if first == 1 {
            return Some(format!("only past the first index along {name}; index 0 is right"));
        }
        // A whole number of tiles is right and less than one is left.
        let tile = 1usize << first.trailing_zeros();
        let guess = if tile >= 4 && size - first < tile {
            format!(" (a partial tile, if the tile is {tile} or a divisor of it that leaves a rest)")
        } else {
            String::new()
        };
        return Some(format!("only from index {first} on along {name} (of {size}){guess}"));
    }
    if first == 0 && last < size - 1 && marked.len() == last + 1 {
        return Some(format!("only up to index {last} along {name} (of {size})"));
    }
    if marked.len() == last - first + 1 {
        return Some(format!("only from index {first} to {last} along {name} (of {size})"));
    }
    None
}

fn tiles(count: usize) -> String {
    if count == 1 { "tile".to_string() } else { format!("{count} tiles") }
}

/// The step of an arithmetic progression that the marked indices are, from one end of the axis to the other.
fn progression(marked: &[usize], size: usize) -> Option<usize> {
    let step = marked.get(1)? - marked[0];
    let regular = marked.windows(2).all(|pair| pair[1] - pair[0] == step);
    let whole = marked[0] < step && marked[marked.len() - 1] + step >= size;
    (step >= 2 && regular && whole && marked.len() >= 3).then_some(step)
}

/// Only at the ends of the last two axes, at all four of them.
fn border(facts: &Facts<'_>) -> Option<String> {
    let rank = facts.shape.len();
    if rank < 2 || facts.shape[rank - 1] < 3 || facts.shape[rank - 2] < 3 {
        return None;
    }
    let axes = [rank - 2, rank - 1];
    let at = |number: usize, axis: usize, end: usize| facts.index(number, axis) == end;
    let ends = axes.map(|axis| [0, facts.shape[axis] - 1]);
    let outside = |number: usize| (0..2).any(|i| ends[i].iter().any(|&end| at(number, axes[i], end)));
    let all_sides = (0..2).all(|i| ends[i].iter().all(|&end| facts.numbers.iter().any(|&n| at(n, axes[i], end))));
    // Corners alone touch all sides.
    let more = facts.numbers.len() > 4;
    (more && all_sides && facts.numbers.iter().all(|&number| outside(number)))
        .then(|| format!("only on the border of {} and {}", facts.name(axes[0]), facts.name(axes[1])))
}

/// Above, below or on the diagonal of the last two axes.
fn diagonal(facts: &Facts<'_>) -> Option<String> {
    let rank = facts.shape.len();
    if rank < 2 || facts.shape[rank - 1] < 2 || facts.shape[rank - 2] < 2 {
        return None;
    }
    let (rows, columns) = (rank - 2, rank - 1);
    let offset = |number: usize| facts.index(number, columns) as isize - facts.index(number, rows) as isize;
    let side = |test: fn(isize) -> bool| {
        facts.numbers.iter().all(|&number| test(offset(number)))
            && (0..facts.got.len()).any(|number| !test(offset(number)))
    };
    let (rows, columns) = (facts.name(rows), facts.name(columns));
    let only = |what: &str| Some(format!("only {what} the diagonal of {rows} and {columns}"));
    if side(|offset| offset == 0) {
        return only("on");
    }
    // A side must be wrong in more than one place to be told from chance.
    if facts.numbers.len() < 3 {
        return None;
    }
    if side(|offset| offset > 0) {
        return only("above");
    }
    if side(|offset| offset < 0) {
        return only("below");
    }
    None
}

/// Only large, or only small, expected values are wrong.
fn magnitude(facts: &Facts<'_>) -> Option<String> {
    let (mut wrong, mut right) = ((f64::INFINITY, 0.0f64), (f64::INFINITY, 0.0f64));
    let mut count = 0;
    for (number, expected) in facts.expected.iter().map(|value| value.abs()).enumerate() {
        if expected.is_nan() {
            continue;
        }
        let range = if facts.wrong[number] { &mut wrong } else { &mut right };
        *range = (range.0.min(expected), range.1.max(expected));
        count += usize::from(!facts.wrong[number]);
    }
    // Few elements fall into two ranges by chance.
    if facts.numbers.len() < 4 || count < 4 {
        return None;
    }
    if wrong.0 > right.1 {
        return Some(format!("only where the expected magnitude is {:.4e} or more", wrong.0));
    }
    if wrong.1 < right.0 {
        return Some(format!("only where the expected magnitude is {:.4e} or less", wrong.1));
    }
    None
}

/// Only negative, or only positive, expected values are wrong.
fn sign(facts: &Facts<'_>) -> Option<String> {
    let all = |negative: bool| {
        let of_sign = |number: usize| (facts.expected[number] < 0.0) == negative && facts.expected[number] != 0.0;
        let others = (0..facts.got.len()).filter(|&number| !facts.wrong[number] && !of_sign(number)).count();
        facts.numbers.len() >= 4 && others >= 4 && facts.numbers.iter().all(|&number| of_sign(number))
    };
    if all(true) {
        return Some("only where the expected value is negative".to_string());
    }
    all(false).then(|| "only where the expected value is positive".to_string())
}
