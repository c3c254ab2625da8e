//! The breaker as a table of events.

use std::time::{Duration, Instant};

use crate::gates::breaker::Breaker;

const OPEN: Duration = Duration::from_secs(10);

/// Asks at a second and settles; `None` when there was no leave.
fn asked(breaker: &Breaker, start: Instant, second: u64, good: bool) -> Option<bool> {
    let now = start + Duration::from_secs(second);
    breaker.admit(now).map(|leave| leave.settle(good, now))
}

#[test]
fn it_opens_after_failures_in_a_row_and_one_call_tries() {
    let (breaker, start) = (Breaker::new(3, OPEN), Instant::now());
    for (second, good, expected) in [
        (0, false, Some(false)),
        (0, false, Some(false)),
        // A success in between starts the count again.
        (0, true, Some(false)),
        (0, false, Some(false)),
        (0, false, Some(false)),
        (1, false, Some(true)),
        (2, true, None),
        (10, true, None),
        // Half open: it fails, and the breaker opens anew.
        (11, false, Some(true)),
        (12, true, None),
        (21, true, Some(false)),
        (21, false, Some(false)),
        (21, true, Some(false)),
    ] {
        assert_eq!(asked(&breaker, start, second, good), expected, "second {second}");
    }
}

#[test]
fn only_one_call_tries() {
    let (breaker, start) = (Breaker::new(1, OPEN), Instant::now());
    assert_eq!(asked(&breaker, start, 0, false), Some(true));
    let later = start + OPEN;
    let trying = breaker.admit(later).expect("one may try");
    assert!(breaker.admit(later).is_none() && !breaker.is_closed(later));
    trying.settle(true, later);
    assert!(breaker.admit(later).is_some());
}

#[test]
fn a_cancelled_try_says_nothing() {
    let (breaker, start) = (Breaker::new(1, OPEN), Instant::now());
    assert_eq!(asked(&breaker, start, 0, false), Some(true));
    let later = start + OPEN;
    drop(breaker.admit(later).expect("one may try"));
    assert!(breaker.admit(later).is_some(), "the next call tries at once");
}

#[test]
fn a_call_from_before_it_opened_does_not_close_it() {
    let (breaker, start) = (Breaker::new(1, OPEN), Instant::now());
    let early = breaker.admit(start).expect("closed");
    assert_eq!(asked(&breaker, start, 0, false), Some(true));
    early.settle(true, start);
    assert!(breaker.admit(start).is_none());
}
