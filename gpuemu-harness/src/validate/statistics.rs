//! Error statistics: a histogram of absolute errors, and sums that can be put together over blocks and cases.

use super::scan::{BUCKETS, Sums, bucket};
use super::verdict::Statistics;

/// Absolute errors by size. A bucket spans a quarter of a power of two, so that a percentile is right within 12 percent;
/// errors below 2^-128 count as 0, errors beyond the largest float32 as that. Of comparisons of more than 65,536
/// elements it holds every fourth, weighing four: a percentile's rank is then right within half a percent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Bucket and count, ascending, empty buckets left out.
    buckets: Vec<(u16, u64)>,
}

impl Histogram {
    /// Errors counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|bucket| bucket.1).sum()
    }

    /// The error that a fraction of all errors does not exceed: the middle of the bucket it lies in; 0 when there is
    /// none.
    pub fn percentile(&self, fraction: f64) -> f64 {
        let count = self.count();
        // The smallest value with at least this many values at or below it (nearest rank).
        let rank = ((fraction * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut below = 0;
        for &(bucket, count) in &self.buckets {
            below += count;
            if below >= rank {
                return middle(bucket);
            }
        }
        0.0
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        let mut merged = Vec::with_capacity(self.buckets.len() + other.buckets.len());
        let (mut a, mut b) = (self.buckets.iter().peekable(), other.buckets.iter().peekable());
        loop {
            let next = match (a.peek(), b.peek()) {
                (Some(x), Some(y)) if x.0 == y.0 => (x.0, a.next().map_or(0, |e| e.1) + b.next().map_or(0, |e| e.1)),
                (Some(x), Some(y)) if x.0 < y.0 => *a.next().expect("peeked"),
                (Some(_), None) => *a.next().expect("peeked"),
                (_, Some(_)) => *b.next().expect("peeked"),
                (None, None) => break,
            };
            merged.push(next);
        }
        self.buckets = merged;
    }
}

/// The middle of a bucket; 0 for the one that holds zero.
fn middle(bucket: u16) -> f64 {
    if bucket == 0 {
        return 0.0;
    }
    let edge = |bucket: u32| f64::from(f32::from_bits((bucket << 21).min(f32::MAX.to_bits())));
    (edge(u32::from(bucket)) + edge(u32::from(bucket) + 1)) / 2.0
}

/// Tables of the histogram.
const TABLES: usize = 4;
/// Elements beyond which a comparison counts only some of them in the histogram.
const MANY: usize = 1 << 16;
/// One element in so many is counted then, and weighs as many.
const SAMPLED: usize = 4;

/// What a comparison gathers as it goes.
pub(super) struct Gathered {
    pub(super) count: u64,
    pub(super) finite: u64,
    pub(super) exceeding: u64,
    sums: Sums,
    /// Elements that are exactly right, and not in the tables: most blocks of many kernels.
    exact: u64,
    /// Whether there are so many elements that one in `SAMPLED` of a block tells enough.
    sampled: bool,
    blocks: u64,
    /// Several tables, so that equal neighbours do not wait for each other's store.
    tables: Box<[[u32; BUCKETS]; TABLES]>,
    /// Counts moved out of the tables before they could overflow.
    histogram: Histogram,
    in_tables: u64,
}

impl Gathered {
    pub(super) fn new(elements: usize) -> Gathered {
        Gathered {
            sampled: elements > MANY,
            blocks: 0,
            count: 0,
            finite: 0,
            exceeding: 0,
            sums: Sums::default(),
            exact: 0,
            tables: Box::new([[0; BUCKETS]; TABLES]),
            histogram: Histogram::default(),
            in_tables: 0,
        }
    }

    /// A block of elements that are all finite and within their bound.
    pub(super) fn block(&mut self, sums: &Sums, buckets: &[u32]) {
        let count = buckets.len() as u64;
        self.blocks += 1;
        self.count += count;
        self.finite += count;
        if sums.max_abs == 0.0 {
            self.exact += count;
            return;
        }
        self.sums.add(sums);
        let [a, b, c, d] = &mut *self.tables;
        if self.sampled && buckets.len().is_multiple_of(SAMPLED * TABLES) {
            // Another phase in every block, so that no pattern of the data is always, or never, seen.
            let phase = (self.blocks.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % SAMPLED;
            for group in buckets.as_chunks::<{ SAMPLED * TABLES }>().0 {
                a[group[phase] as usize % BUCKETS] += SAMPLED as u32;
                b[group[phase + SAMPLED] as usize % BUCKETS] += SAMPLED as u32;
                c[group[phase + 2 * SAMPLED] as usize % BUCKETS] += SAMPLED as u32;
                d[group[phase + 3 * SAMPLED] as usize % BUCKETS] += SAMPLED as u32;
            }
        } else {
            let (quads, rest) = buckets.as_chunks::<TABLES>();
            for quad in quads {
                a[quad[0] as usize % BUCKETS] += 1;
                b[quad[1] as usize % BUCKETS] += 1;
                c[quad[2] as usize % BUCKETS] += 1;
                d[quad[3] as usize % BUCKETS] += 1;
            }
            for &bucket in rest {
                a[bucket as usize % BUCKETS] += 1;
            }
        }
        self.tabled(count);
    }

    /// One element with finite values on both sides.
    pub(super) fn element(&mut self, sums: &Sums) {
        self.finite += 1;
        self.sums.add(sums);
        self.tables[0][bucket(sums.abs) as usize % BUCKETS] += 1;
        self.tabled(1);
    }

    /// Many finite elements that are exactly right.
    pub(super) fn exact(&mut self, count: u64) {
        self.count += count;
        self.finite += count;
        self.exact += count;
    }

    fn tabled(&mut self, count: u64) {
        self.in_tables += count;
        if self.in_tables > 1 << 31 {
            self.spill();
        }
    }

    fn spill(&mut self) {
        let buckets = (0..BUCKETS)
            .map(|bucket| (bucket as u16, self.tables.iter().map(|table| u64::from(table[bucket])).sum()))
            .filter(|bucket| bucket.1 > 0)
            .collect();
        self.histogram.merge(&Histogram { buckets });
        self.tables.iter_mut().for_each(|table| table.fill(0));
        self.in_tables = 0;
    }

    pub(super) fn finish(mut self) -> (Statistics, Histogram) {
        if self.in_tables > 0 {
            self.spill();
        }
        if self.exact > 0 {
            self.histogram.merge(&Histogram { buckets: vec![(0, self.exact)] });
        }
        let mean = |sum: f64| if self.finite == 0 { 0.0 } else { sum / self.finite as f64 };
        let percentile = |fraction| self.histogram.percentile(fraction).min(self.sums.max_abs);
        let statistics = Statistics {
            count: self.count,
            finite: self.finite,
            exceeding: self.exceeding,
            max_abs: self.sums.max_abs,
            mean_abs: mean(self.sums.abs),
            p50_abs: percentile(0.5),
            p90_abs: percentile(0.9),
            p99_abs: percentile(0.99),
            max_rel: self.sums.max_rel,
            mean_rel: mean(self.sums.rel),
            max_ulp: self.sums.max_ulp,
            mean_ulp: mean(self.sums.ulp),
            worst_of_bound: self.sums.of_bound,
        };
        (statistics, self.histogram)
    }
}

/// Statistics of many cases put together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Total {
    /// Cases added.
    pub cases: u64,
    /// Statistics over all their elements.
    pub statistics: Statistics,
    histogram: Histogram,
}

impl Total {
    /// Adds one case.
    pub fn add(&mut self, case: &Statistics, histogram: &Histogram) {
        self.cases += 1;
        self.histogram.merge(histogram);
        let total = &mut self.statistics;
        let finite = total.finite + case.finite;
        let mean = |old: f64, new: f64| {
            if finite == 0 { 0.0 } else { (old * total.finite as f64 + new * case.finite as f64) / finite as f64 }
        };
        let max_abs = total.max_abs.max(case.max_abs);
        *total = Statistics {
            count: total.count + case.count,
            finite,
            exceeding: total.exceeding + case.exceeding,
            max_abs,
            mean_abs: mean(total.mean_abs, case.mean_abs),
            p50_abs: self.histogram.percentile(0.5).min(max_abs),
            p90_abs: self.histogram.percentile(0.9).min(max_abs),
            p99_abs: self.histogram.percentile(0.99).min(max_abs),
            max_rel: total.max_rel.max(case.max_rel),
            mean_rel: mean(total.mean_rel, case.mean_rel),
            max_ulp: total.max_ulp.max(case.max_ulp),
            mean_ulp: mean(total.mean_ulp, case.mean_ulp),
            worst_of_bound: total.worst_of_bound.max(case.worst_of_bound),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(errors: &[f64]) -> Histogram {
        let mut gathered = Gathered::new(0);
        for &error in errors {
            gathered.element(&Sums { abs: error, max_abs: error, ..Sums::default() });
        }
        gathered.finish().1
    }

    #[test]
    fn percentiles_are_right_within_a_bucket() {
        let errors: Vec<f64> = (1..=1000).map(|i| f64::from(i) * 1e-6).collect();
        let histogram = histogram(&errors);
        for (fraction, value) in [(0.5, 500e-6), (0.9, 900e-6), (0.99, 990e-6), (1.0, 1000e-6), (0.001, 1e-6)] {
            let got = histogram.percentile(fraction);
            assert!((got / value - 1.0).abs() < 0.125, "{fraction}: {got} for {value}");
        }
    }

    #[test]
    fn sampled_percentiles_do_not_depend_on_a_pattern_of_the_data() {
        // Every fourth element errs by 1, all others by 1/16: three quarters of the errors are small, whatever the
        // phase; and errors that take every value.
        let patterned: Vec<f64> = (0..1 << 18).map(|i| if i % 4 == 1 { 1.0 } else { 0.0625 }).collect();
        let uniform: Vec<f64> = (0..1 << 18).map(|i| (f64::from(i) * 0.618_033_988_749_895).fract()).collect();
        for (errors, percentiles) in [(patterned, [0.0625, 1.0, 1.0]), (uniform, [0.5, 0.9, 0.99])] {
            let mut gathered = Gathered::new(errors.len());
            for block in errors.chunks(1024) {
                let buckets: Vec<u32> = block.iter().map(|&error| bucket(error)).collect();
                gathered.block(&Sums { abs: 1.0, max_abs: 1.0, ..Sums::default() }, &buckets);
            }
            let histogram = gathered.finish().1;
            assert_eq!(histogram.count(), errors.len() as u64);
            for (fraction, value) in [0.5, 0.9, 0.99].into_iter().zip(percentiles) {
                let got = histogram.percentile(fraction).min(1.0);
                assert!((got / value - 1.0).abs() < 0.14, "{fraction}: {got} for {value}");
            }
        }
    }

    #[test]
    fn odd_values_have_a_bucket() {
        let table = [(&[][..], 0.0, 0), (&[0.0; 3], 0.0, 3), (&[1e-300], 0.0, 1), (&[1e300], f64::from(f32::MAX), 1)];
        for (errors, median, count) in table {
            let histogram = histogram(errors);
            assert_eq!((histogram.percentile(0.5), histogram.count()), (median, count), "{errors:?}");
        }
    }

    #[test]
    fn totals_weigh_cases_by_their_elements() {
        let mut total = Total::default();
        for (errors, exceeding) in [(&[1.0, 3.0][..], 1), (&[8.0; 6], 0), (&[], 0)] {
            let mut gathered = Gathered::new(0);
            for &error in errors {
                gathered.count += 1;
                gathered.element(&Sums { abs: error, max_abs: error, ..Sums::default() });
            }
            gathered.exceeding = exceeding;
            let (statistics, histogram) = gathered.finish();
            total.add(&statistics, &histogram);
        }
        let statistics = &total.statistics;
        assert_eq!((total.cases, statistics.count, statistics.exceeding), (3, 8, 1));
        assert_eq!((statistics.max_abs, statistics.mean_abs), (8.0, 52.0 / 8.0));
        assert_eq!((statistics.p50_abs, statistics.p99_abs), (8.0, 8.0));
    }
}
