//! What one check may cost: a count of looks at the instance, and how far the stack may grow.
//!
//! Known attacks and the defence against each:
//!
//! - **Branching that doubles** (`$ref`s that name each other twice, `anyOf` that recurs): every look at the instance is
//!   counted, and without a look there is no work.
//! - **Long strings against costly patterns**: each reading of a string costs its length, times what the schema's patterns
//!   cost for each byte ([`Budget::text`]).
//! - **Recursion** deeper than the stack: every look compares the stack with where it was when the check began.
//!
//! A check that runs out is stopped by unwinding, because a validator has no other way out of the middle. That is no panic:
//! no hook runs, and [`within`] turns it into a value. It needs `panic = "unwind"`, which a test holds the build to.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// How many bytes the stack may grow during a check: half of what a thread of the service has.
const STACK: usize = 1 << 20;

/// The check was stopped before it had an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// What a check may spend, and what it pays.
#[derive(Clone, Copy)]
pub(super) struct Budget {
    /// Looks at the instance.
    pub(super) looks: u64,
    /// What reading strings may cost in total.
    pub(super) reading: u64,
    /// What reading one byte of a string costs.
    pub(super) text: u64,
    /// What reading one byte of a member's name costs.
    pub(super) names: u64,
}

/// What is left, in a cell each: a look writes one number.
struct State {
    looks: Cell<u64>,
    reading: Cell<u64>,
    text: Cell<u64>,
    names: Cell<u64>,
    /// The address that the stack must not grow past; stacks grow downwards wherever this builds.
    lowest: Cell<usize>,
}

impl State {
    fn replace(&self, Budget { looks, reading, text, names }: Budget, lowest: usize) -> (Budget, usize) {
        let before = Budget {
            looks: self.looks.replace(looks),
            reading: self.reading.replace(reading),
            text: self.text.replace(text),
            names: self.names.replace(names),
        };
        (before, self.lowest.replace(lowest))
    }
}

thread_local! {
    static STATE: State = const {
        State {
            looks: Cell::new(u64::MAX),
            reading: Cell::new(u64::MAX),
            text: Cell::new(0),
            names: Cell::new(0),
            lowest: Cell::new(0),
        }
    };
}

/// Runs `work` within `budget`. A budget that is already running goes on when it ends.
///
/// # Errors
/// [`Exhausted`]: it was stopped.
pub(super) fn within<T>(budget: Budget, work: impl FnOnce() -> T) -> Result<T, Exhausted> {
    let (before, lowest) = STATE.with(|state| state.replace(budget, here().saturating_sub(STACK)));
    // The validator keeps no state between checks, and what this one built is dropped by the unwinding.
    let outcome = catch_unwind(AssertUnwindSafe(work));
    STATE.with(|state| state.replace(before, lowest));
    outcome.map_err(|payload| match payload.downcast::<Exhausted>() {
        Ok(exhausted) => *exhausted,
        // A true panic stays one; the front door refuses for it.
        Err(payload) => resume_unwind(payload),
    })
}

/// One look at the instance.
#[inline]
pub(super) fn look() {
    looks(0);
}

/// A look that costs as much as `more` others on top.
#[inline]
pub(super) fn looks(more: usize) {
    let enough = STATE.with(|state| match state.looks.get().checked_sub(count(more).saturating_add(1)) {
        Some(left) if here() >= state.lowest.get() => {
            state.looks.set(left);
            true
        }
        _ => false,
    });
    if !enough {
        give_up();
    }
}

/// The reading of a string of so many bytes.
#[inline]
pub(super) fn text(bytes: usize) {
    read(bytes, |state| state.text.get());
}

/// The reading of a member's name of so many bytes.
#[inline]
pub(super) fn name(bytes: usize) {
    look();
    read(bytes, |state| state.names.get());
}

fn read(bytes: usize, each: impl FnOnce(&State) -> u64) {
    let enough = STATE.with(|state| {
        let cost = count(bytes).saturating_mul(each(state));
        state.reading.get().checked_sub(cost).map(|left| state.reading.set(left)).is_some()
    });
    if !enough {
        give_up();
    }
}

fn count(units: usize) -> u64 {
    u64::try_from(units).unwrap_or(u64::MAX)
}

/// Ends the check without an answer.
#[cold]
pub(super) fn give_up() -> ! {
    resume_unwind(Box::new(Exhausted))
}

/// Where the stack is.
#[inline(never)]
fn here() -> usize {
    let marker = 0_u8;
    std::ptr::from_ref(std::hint::black_box(&marker)).addr()
}
