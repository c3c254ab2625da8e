//! Rung 11: the method is one we know.

use crate::protocol::Method;
use crate::refusal::{Reason, Refusal, Rung};

/// The listed method of this name.
///
/// # Errors
/// `method.unlisted`.
pub fn check(method: &str) -> Result<Method, Refusal> {
    Method::parse(method).ok_or_else(|| {
        Refusal::new(Reason::MethodUnlisted, Rung::Listed).message(format!("Method not found: {method}"))
    })
}
