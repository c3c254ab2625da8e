//! Rungs 7 and 14: the token's scopes. 7 asks for the baseline before a body is looked at, 14 for what the call needs.

use crate::identity::Caller;
use crate::identity::challenge::{Challenge, ChallengeError};
use crate::policy::{Capability, ScopeSet};
use crate::refusal::{Detail, Reason, Refusal, Rung, StepUp};

use super::Server;

/// Rung 7: the baseline scopes.
///
/// # Errors
/// `scope.insufficient`.
pub fn baseline(server: &Server, caller: &Caller) -> Result<(), Refusal> {
    check(server, caller, server.scopes.required())
}

/// Rung 14: the baseline and the scopes of every capability that the call reaches, all in one challenge.
///
/// # Errors
/// `scope.insufficient`.
pub fn capabilities(server: &Server, caller: &Caller, reached: &[&Capability]) -> Result<(), Refusal> {
    if reached.iter().all(|capability| capability.scopes.is_empty()) {
        return Ok(());
    }
    let mut needed = server.scopes.required().clone();
    for capability in reached {
        needed.union(&capability.scopes);
    }
    check(server, caller, &needed)
}

fn check(server: &Server, caller: &Caller, needed: &ScopeSet) -> Result<(), Refusal> {
    if server.scopes.missing(needed, &caller.scopes).is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = server.scopes.names(needed).collect();
    let text = format!("The bearer token lacks a scope that this operation needs. Needed: {}.", names.join(" "));
    let mut refusal = Refusal::new(Reason::ScopeInsufficient, Rung::Scope).message(text);
    if server.authenticator.challenges() && server.denials.step_up == StepUp::Challenge {
        let error = Some((ChallengeError::InsufficientScope, refusal.message.as_ref()));
        let challenge = Challenge { error, scopes: &names, resource_metadata: server.metadata.url() };
        refusal.challenge = Some(challenge.header_value());
    }
    Err(refusal.detail("scopes", Detail::Texts(names.into_iter().map(str::to_owned).collect())))
}
