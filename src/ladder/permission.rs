//! Rung 13: the caller holds the permission of everything that the call reaches.

use crate::policy::{Capability, Principal};
use crate::protocol::target::Target;
use crate::refusal::{Detail, Hidden, Reason, Refusal, Rung};

use super::Server;

/// Finds and checks every capability that a call reaches, and returns them.
///
/// # Errors
/// `policy.unnamed`, `policy.unpriced`, `policy.not_permitted`.
pub fn check<'s>(
    server: &'s Server,
    principal: &Principal,
    target: &Target<'_>,
) -> Result<Vec<&'s Capability>, Refusal> {
    match target {
        Target::Baseline => Ok(Vec::new()),
        Target::Unnamed(what) => {
            Err(unnamed(format!("The call does not name what it wants in a way that can be decided ({what}).")))
        }
        Target::Priceless(what) => Err(Refusal::new(Reason::PolicyUnpriced, Rung::Permission)
            .message(format!("Nothing of the kind '{what}' has been approved for use here."))),
        Target::Tool(name) => {
            one(server.prices.tool(name), principal, "tool", name, || Hidden::Tool((*name).to_owned()))
        }
        Target::Prompt(name) => {
            one(server.prices.prompt(name), principal, "prompt", name, || Hidden::Prompt((*name).to_owned()))
        }
        Target::Resources(uris) => resources(server, principal, uris),
    }
}

/// The capabilities that a call reaches, held or not, for whoever goes on after a refusal in shadow mode.
#[must_use]
pub fn reached<'s>(server: &'s Server, target: &Target<'_>) -> Vec<&'s Capability> {
    match target {
        Target::Baseline | Target::Unnamed(_) | Target::Priceless(_) => Vec::new(),
        Target::Tool(name) => server.prices.tool(name).into_iter().collect(),
        Target::Prompt(name) => server.prices.prompt(name).into_iter().collect(),
        Target::Resources(uris) => uris.iter().filter_map(|uri| server.prices.covering(uri).ok()).flatten().collect(),
    }
}

fn one<'s>(
    priced: Option<&'s Capability>,
    principal: &Principal,
    kind: &str,
    name: &str,
    hidden: impl Fn() -> Hidden,
) -> Result<Vec<&'s Capability>, Refusal> {
    let Some(capability) = priced else { return Err(unpriced(kind, name, hidden())) };
    if principal.permissions.contains(capability.permission) {
        return Ok(vec![capability]);
    }
    Err(not_permitted(principal, capability, kind, name, hidden()))
}

/// Every URI must be priced, and every entry that covers it must be held: the broad one and the narrow one.
fn resources<'s>(server: &'s Server, principal: &Principal, uris: &[&str]) -> Result<Vec<&'s Capability>, Refusal> {
    let mut reached = Vec::with_capacity(uris.len());
    for text in uris {
        let covering = server.prices.covering(text).map_err(|fault| {
            unnamed(format!("The resource URI is not in normal form: {fault}. Send it in normal form."))
                .detail("uri_not_normal", Detail::Text(fault.to_string()))
        })?;
        let hidden = || Hidden::Resource((*text).to_owned());
        if covering.is_empty() {
            return Err(unpriced("resource", text, hidden()));
        }
        for capability in covering {
            if !principal.permissions.contains(capability.permission) {
                return Err(not_permitted(principal, capability, "resource", text, hidden()));
            }
            reached.push(capability);
        }
    }
    Ok(reached)
}

fn unnamed(text: String) -> Refusal {
    Refusal::new(Reason::PolicyUnnamed, Rung::Permission).message(text)
}

fn unpriced(kind: &str, name: &str, hidden: Hidden) -> Refusal {
    let mut refusal = Refusal::new(Reason::PolicyUnpriced, Rung::Permission)
        .message(format!("The {kind} '{name}' has not been approved for use here. Trying again will not help."));
    refusal.hidden = Some(hidden);
    refusal
}

fn not_permitted(principal: &Principal, capability: &Capability, kind: &str, name: &str, hidden: Hidden) -> Refusal {
    let permission = &capability.permission_name;
    let mut refusal = Refusal::new(Reason::PolicyNotPermitted, Rung::Permission)
        .message(format!(
            "You may not use the {kind} '{name}': it needs the permission '{permission}'. Trying again will not help; \
             ask an administrator for access."
        ))
        .description(format!("{principal} does not hold '{permission}', which '{}' costs.", capability.text))
        .detail("permission", Detail::Text(permission.to_string()));
    refusal.hidden = Some(hidden);
    refusal
}
