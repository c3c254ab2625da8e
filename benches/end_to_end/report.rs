//! The tables.

use std::time::Duration;

use crate::arms::{Arm, Sample};
use crate::statistics::{Estimate, median, ratio};

/// A bound on a ratio of Portcullis to the no-op processor of the same phases.
enum Budget {
    AtLeast(f64),
    AtMost(f64),
    None,
}

/// Prints what one setting gave: per arm, then the ratios.
pub(crate) fn print(arms: &[Arm], bytes: usize, connections: usize, rounds: usize, slice: Duration) {
    println!("\n{bytes} B calls, {connections} connection(s), {rounds} rounds of {slice:?} per arm; medians");
    println!(
        "  {:<24} {:>9} {:>9} {:>9} {:>9} {:>14} {:>18}",
        "arm", "calls/s", "p50 us", "p99 us", "p999 us", "Envoy CPU us", "processor CPU us"
    );
    for arm in arms {
        let of = |figure: fn(&Sample) -> f64| median(&arm.figures(figure));
        println!(
            "  {:<24} {:>9.0} {:>9.0} {:>9.0} {:>9.0} {:>14.1} {:>18.1}",
            arm.name,
            of(|sample| sample.rate),
            of(|sample| sample.p50),
            of(|sample| sample.p99),
            of(|sample| sample.p999),
            of(|sample| sample.envoy),
            of(|sample| sample.processor),
        );
    }
    println!("  ratios of slices of one round: median [95 % interval]");
    for (ours, theirs) in [
        ("portcullis, screened", "no-op, screened"),
        ("portcullis, unscreened", "no-op, unscreened"),
        ("portcullis, telemetry", "no-op, screened"),
    ] {
        let (Some(ours), Some(theirs)) = (find(arms, ours), find(arms, theirs)) else { continue };
        compare(ours, theirs, "throughput", |sample| sample.rate, &Budget::AtLeast(0.90));
        compare(ours, theirs, "p50", |sample| sample.p50, &Budget::AtMost(1.10));
        compare(ours, theirs, "processor CPU per call", |sample| sample.processor, &Budget::AtMost(2.0));
        compare(ours, theirs, "Envoy CPU per call", |sample| sample.envoy, &Budget::None);
    }
    // What one asks who has Envoy alone, or another way of asking somebody; without budgets.
    for (ours, theirs) in [
        ("portcullis, screened", "envoy alone"),
        ("portcullis, unscreened", "ext_authz"),
        ("portcullis, telemetry", "portcullis, screened"),
        ("no-op, worded", "no-op, screened"),
        ("portcullis, screened", "no-op, worded"),
    ] {
        let (Some(ours), Some(theirs)) = (find(arms, ours), find(arms, theirs)) else { continue };
        compare(ours, theirs, "throughput", |sample| sample.rate, &Budget::None);
        compare(ours, theirs, "p50", |sample| sample.p50, &Budget::None);
        if theirs.name != "envoy alone" {
            compare(ours, theirs, "processor CPU per call", |sample| sample.processor, &Budget::None);
        }
    }
}

fn find<'a>(arms: &'a [Arm], name: &str) -> Option<&'a Arm> {
    arms.iter().find(|arm| arm.name == name)
}

fn compare(ours: &Arm, theirs: &Arm, what: &str, figure: fn(&Sample) -> f64, budget: &Budget) {
    let estimate = ratio(&ours.figures(figure), &theirs.figures(figure));
    let Estimate { median, low, high } = estimate;
    let names = format!("{} / {}", ours.name, theirs.name);
    println!("  {names:<46} {what:<24} {median:.3} [{low:.3}, {high:.3}]{}", verdict(estimate, budget));
}

/// A budget is missed only where the whole interval is on its wrong side.
fn verdict(estimate: Estimate, budget: &Budget) -> String {
    let (text, met, excluded) = match budget {
        Budget::None => return String::new(),
        Budget::AtLeast(bound) => (format!(">= {bound:.2}"), estimate.median >= *bound, estimate.high < *bound),
        Budget::AtMost(bound) => (format!("<= {bound:.2}"), estimate.median <= *bound, estimate.low > *bound),
    };
    let word = if met {
        "met"
    } else if excluded {
        "MISSED"
    } else {
        "not excluded"
    };
    format!("  budget {text}: {word}")
}
