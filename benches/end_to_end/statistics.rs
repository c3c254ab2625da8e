//! Medians and how sure they are.

/// A median and the interval that holds it in 95 of 100 resamplings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Estimate {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The value below which `share` of the sorted values lie.
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) && half > 0 {
        f64::midpoint(sorted[half - 1], sorted[half])
    } else {
        quantile(&sorted, 0.5)
    }
}

/// The median of paired ratios with its percentile bootstrap interval.
pub(crate) fn ratio(ours: &[f64], theirs: &[f64]) -> Estimate {
    estimate(&ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect::<Vec<_>>())
}

/// The median of paired differences, likewise.
pub(crate) fn difference(ours: &[f64], theirs: &[f64]) -> Estimate {
    estimate(&ours.iter().zip(theirs).map(|(ours, theirs)| ours - theirs).collect::<Vec<_>>())
}

fn estimate(pairs: &[f64]) -> Estimate {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let resample = |_| {
        let drawn: Vec<f64> = pairs.iter().map(|_| pairs[random.below(pairs.len())]).collect();
        median(&drawn)
    };
    let mut medians: Vec<f64> = (0..4000).map(resample).collect();
    medians.sort_by(f64::total_cmp);
    Estimate { median: median(pairs), low: quantile(&medians, 0.025), high: quantile(&medians, 0.975) }
}

/// xorshift64: the same figures for the same samples.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
