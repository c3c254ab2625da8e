//! A breaker: a gate that fails again and again is not asked for a while, so that it costs a bounded time and not every
//! call its timeout.
//!
//! Closed until so many failures in a row; then open for a time; then one call tries (half open), and its outcome closes
//! or opens it again. Time comes in with each call, so that tests need no clock.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The breaker of one gate.
#[derive(Debug)]
pub struct Breaker {
    /// Failures in a row that open it.
    failures: u32,
    /// How long it stays open.
    open: Duration,
    state: Mutex<State>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Closed {
        failed: u32,
    },
    Open {
        until: Instant,
    },
    /// One call is trying.
    Trying {
        until: Instant,
    },
}

/// Leave to ask. Dropped without [`Leave::settle`] (the call was cancelled) it says nothing about the gate.
#[derive(Debug)]
pub struct Leave<'a> {
    breaker: &'a Breaker,
    trying: bool,
    settled: bool,
}

impl Breaker {
    /// A closed breaker that opens for `open` after `failures` in a row.
    #[must_use]
    pub fn new(failures: u32, open: Duration) -> Self {
        Self { failures: failures.max(1), open, state: Mutex::new(State::Closed { failed: 0 }) }
    }

    /// Leave to ask at `now`; `None` while it is open or another call is trying.
    pub fn admit(&self, now: Instant) -> Option<Leave<'_>> {
        let mut state = self.lock();
        let trying = match *state {
            State::Closed { .. } => false,
            State::Open { until } if until <= now => true,
            // Whoever tried was cancelled long ago, or hangs: another one may.
            State::Trying { until } if until <= now => true,
            State::Open { .. } | State::Trying { .. } => return None,
        };
        if trying {
            *state = State::Trying { until: now.checked_add(self.open).unwrap_or(now) };
        }
        Some(Leave { breaker: self, trying, settled: false })
    }

    /// Whether [`Breaker::admit`] would give leave at `now`.
    #[must_use]
    pub fn is_closed(&self, now: Instant) -> bool {
        match *self.lock() {
            State::Closed { .. } => true,
            State::Open { until } | State::Trying { until } => until <= now,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A panic elsewhere leaves a state that is whole all the same.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leave<'_> {
    /// Tells how it went. Returns whether the breaker just opened.
    pub fn settle(mut self, good: bool, now: Instant) -> bool {
        self.settled = true;
        let breaker = self.breaker;
        let mut state = breaker.lock();
        let open = State::Open { until: now.checked_add(breaker.open).unwrap_or(now) };
        match (*state, good) {
            // A call from before it opened does not close it; only the one that tries does.
            (State::Open { .. } | State::Trying { .. }, _) if !self.trying => false,
            (_, true) => {
                *state = State::Closed { failed: 0 };
                false
            }
            (State::Closed { failed }, false) if failed.saturating_add(1) < breaker.failures => {
                *state = State::Closed { failed: failed.saturating_add(1) };
                false
            }
            (_, false) => {
                *state = open;
                true
            }
        }
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if self.trying && !self.settled {
            let mut state = self.breaker.lock();
            if let State::Trying { until } = *state {
                // The next call tries at once: nothing was learned.
                let past = until.checked_sub(self.breaker.open).unwrap_or(until);
                *state = State::Open { until: past };
            }
        }
    }
}
