//! Rung 15: what the call reaches is still what was approved. Trust is bound to the definition, not to the name.

use std::time::Instant;

use crate::policy::{Capability, Kind};
use crate::protocol::target::Target;
use crate::refusal::{Detail, Hidden, Reason, Refusal, Rung};
use crate::upstream::book::{NEGATIVE, Verdict};

use super::Server;

#[cfg(test)]
mod tests;

/// How much is known of everything that a call reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// All of it matched lately.
    Fresh,
    /// Some of it has not been seen lately: the server must be listed before the call may go on.
    Stale,
}

/// Judges every capability that a call reaches by what the server listed lately. Known faults come before unknowns.
///
/// A server whose definitions nobody watches is one of which nothing is known: [`Standing::Stale`], which no listing can
/// mend. (Plain HTTP, which has none, never comes here.)
///
/// # Errors
/// `definition.changed`, `definition.gone`.
pub fn check(server: &Server, target: &Target<'_>, reached: &[&Capability], now: Instant) -> Result<Standing, Refusal> {
    let mut standing = Standing::Fresh;
    for capability in reached {
        let verdict = server.freshness.as_ref().map_or(Verdict::Stale, |own| own.verdict(&capability.label, now));
        match verdict {
            Verdict::Fresh => {}
            Verdict::Stale => standing = Standing::Stale,
            Verdict::Changed(fields) => return Err(changed(capability, &fields)),
            Verdict::Gone => return Err(gone(server, target, capability)),
        }
    }
    Ok(standing)
}

/// Takes note of a notification that passes: after `list_changed` the next call of that kind lists the server first.
pub fn mark_stale(server: &Server, notification: &str) {
    let kind = match notification {
        "notifications/tools/list_changed" => Kind::Tool,
        "notifications/prompts/list_changed" => Kind::Prompt,
        "notifications/resources/list_changed" => Kind::Resource,
        _ => return,
    };
    if let Some(freshness) = &server.freshness {
        freshness.mark_stale(kind);
    }
}

/// The refusal of a call whose definitions could not be checked. `why` is for the log.
///
/// It is worth another try once the failed listing is forgotten; before that it would be answered from memory.
#[must_use]
pub fn unverified(why: String) -> Refusal {
    Refusal::new(Reason::DefinitionUnverified, Rung::Definition)
        .detail("retry_after_seconds", Detail::Number(NEGATIVE.as_secs()))
        .log(why)
}

fn changed(capability: &Capability, fields: &[String]) -> Refusal {
    Refusal::new(Reason::DefinitionChanged, Rung::Definition)
        .message(format!(
            "The definition of '{}' changed since it was approved ({}), so it cannot be used until it is approved again. \
             Trying again will not help.",
            capability.text,
            fields.join(", ")
        ))
        .detail("fields", Detail::Texts(fields.to_vec()))
}

fn gone(server: &Server, target: &Target<'_>, capability: &Capability) -> Refusal {
    let mut refusal = Refusal::new(Reason::DefinitionGone, Rung::Definition)
        .message(format!("The server no longer offers '{}'. Trying again will not help.", capability.text));
    refusal.hidden = hidden(server, target, capability);
    refusal
}

/// As the refusal of a name that does not exist would say: of several URIs the one that is gone, not the first.
fn hidden(server: &Server, target: &Target<'_>, gone: &Capability) -> Option<Hidden> {
    let covered = |uri: &&&str| {
        let covering = server.prices.covering(uri).unwrap_or_default();
        covering.iter().any(|capability| capability.label == gone.label)
    };
    match target {
        Target::Tool(name) => Some(Hidden::Tool((*name).to_owned())),
        Target::Prompt(name) => Some(Hidden::Prompt((*name).to_owned())),
        Target::Resources(uris) => uris.iter().find(covered).map(|uri| Hidden::Resource((*uri).to_owned())),
        Target::Baseline | Target::Priceless(_) | Target::Unnamed(_) => None,
    }
}
