//! One table per rung: what it refuses and why, and what it lets by.

mod answer;
mod body;
mod envelope;
mod forward;
mod head;
mod listing;
mod route;

use crate::refusal::{Reason, Refusal};

/// The reason of a refusal, or `passed`.
fn reason<T>(outcome: &Result<T, Refusal>) -> &'static str {
    match outcome {
        Ok(_) => "passed",
        Err(refusal) => Reason::as_str(refusal.reason),
    }
}
