//! Rung 12: the caller holds any permission at all.

use crate::policy::Principal;
use crate::protocol::Method;
use crate::refusal::{Reason, Refusal, Rung};

/// Refuses a caller without permissions, except for `server/discover`: clients mistake its refusal for an older server.
///
/// # Errors
/// `policy.no_permissions`.
pub fn check(method: Method, principal: &Principal) -> Result<(), Refusal> {
    if method == Method::Discover || !principal.permissions.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(Reason::PolicyNoPermissions, Rung::Policy)
        .description(format!("{principal} holds no role on this server.")))
}
