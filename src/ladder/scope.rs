//! Rungs 7 and 14: the token's scopes. 7 asks for the baseline before a body is looked at, 14 for what the call needs.

use crate::identity::Caller;
use crate::policy::{Capability, ScopeSet};
use crate::refusal::{Detail, Reason, Refusal, Rung, StepUp};

use super::Server;

/// Rung 7: the baseline scopes.
///
/// # Errors
/// `scope.insufficient`.
pub fn baseline(server: &Server, caller: &Caller) -> Result<(), Refusal> {
    check(server, caller, &server.baseline)
}

/// Rung 14: the baseline and the scopes of every capability that the call reaches, all in one challenge.
///
/// # Errors
/// `scope.insufficient`.
pub fn capabilities(server: &Server, caller: &Caller, reached: &[&Capability]) -> Result<(), Refusal> {
    if reached.iter().all(|capability| capability.scopes.is_empty()) {
        return Ok(());
    }
    let mut needed = server.baseline.clone();
    for capability in reached {
        needed.union(&capability.scopes);
    }
    check(server, caller, &needed)
}

fn check(server: &Server, caller: &Caller, needed: &ScopeSet) -> Result<(), Refusal> {
    if caller.scopes.contains_all(needed) {
        return Ok(());
    }
    let names = names(server, needed);
    let text = format!("The bearer token lacks a scope that this operation needs. Needed: {}.", names.join(" "));
    let mut refusal = Refusal::new(Reason::ScopeInsufficient, Rung::Scope).message(text);
    if server.authenticator.has_challenge() && server.denials.step_up == StepUp::Challenge {
        let description = Some(refusal.message.as_ref());
        refusal.challenge = Some(server.metadata.challenge(Some("insufficient_scope"), description, &names));
    }
    Err(refusal.detail("scopes", Detail::Texts(names.into_iter().map(str::to_owned).collect())))
}

/// The names of a set of scopes, in configuration order.
#[must_use]
pub fn names<'a>(server: &'a Server, set: &'a ScopeSet) -> Vec<&'a str> {
    server.scopes.names(set).collect()
}
