//! Rung 19: a listing shows what the caller may use, cut out of the original bytes.

use std::time::Instant;

use crate::message::json::{Document, Kind as JsonKind, Value};
use crate::message::splice::Edits;
use crate::policy::{Capability, Kind, Principal};
use crate::protocol::{Method, keys};
use crate::refusal::Refusal;
use crate::upstream::book::{Marks, Sighting};

use super::Server;
use super::answer::unreadable;

/// A filtered listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filtered {
    /// The answer's bytes; those of entries that stay are untouched.
    pub bytes: Vec<u8>,
    /// Entries that were left out.
    pub hidden: usize,
}

/// Filters the listing in `document`, whose result is `result`, and takes note of what it says about each definition.
///
/// A missing scope does not hide: the call will say how to get it. `nextCursor`, order and every remaining byte stay;
/// `cacheScope` becomes `private`, because what is listed depends on who asks (MCP 2026-07-28, Caching).
///
/// `since`: how often the server's kinds had been marked stale when the listing was asked for.
///
/// # Errors
/// `answer.unreadable` when there is no list of entries under the method's member.
pub fn filter(
    server: &Server,
    principal: &Principal,
    method: Method,
    document: &Document,
    result: Value<'_>,
    now: Instant,
    since: Option<&Marks>,
) -> Result<Filtered, Refusal> {
    let list = method
        .listed_member()
        .and_then(|member| result.get(member))
        .filter(|list| list.kind() == JsonKind::Array)
        .ok_or_else(|| unreadable("the server's listing holds no list"))?;
    let mut hidden = 0;
    let mut edits = Edits::new(document);
    edits.retain_items(list, |_, entry| {
        // Each entry is judged, also one that this caller may not see: what passes here tells of drift.
        let unchanged = unchanged(server, method, entry, now, since);
        let stays = unchanged && visible(server, principal, method, entry);
        hidden += usize::from(!stays);
        stays
    });
    if result.get("cacheScope").and_then(|scope| scope.as_str()) != Some("private") {
        edits.set_member(result, "cacheScope", br#""private""#);
    }
    let bytes =
        edits.apply().map_err(|fault| unreadable("the server's listing could not be cut").log(fault.to_string()))?;
    Ok(Filtered { bytes, hidden })
}

/// Whether an entry is still what was approved. Where nobody watches that, none is.
fn unchanged(server: &Server, method: Method, entry: Value<'_>, now: Instant, since: Option<&Marks>) -> bool {
    let Some(freshness) = &server.freshness else { return false };
    let kind = match method {
        Method::ToolsList => Kind::Tool,
        Method::PromptsList => Kind::Prompt,
        _ => Kind::Resource,
    };
    let Some(name) = entry.get("name").and_then(|name| name.as_str()) else { return false };
    freshness.observe_since(since, kind, name, entry, now) == Sighting::Matches
}

/// Whether the caller may see one entry. An entry that cannot be recognised is not shown.
fn visible(server: &Server, principal: &Principal, method: Method, entry: Value<'_>) -> bool {
    let text = |member: &str| entry.get(member).and_then(|value| value.as_str());
    let Some(name) = text("name") else { return false };
    if keys::entry_variant(entry).is_some() {
        return false;
    }
    let held = |capability: &Capability| principal.permissions.contains(capability.permission);
    match method {
        Method::ToolsList => server.prices.tool(name).is_some_and(held),
        Method::PromptsList => server.prices.prompt(name).is_some_and(held),
        Method::ResourcesList => resource(server, name, text("uri"), held),
        Method::TemplatesList => resource(server, name, text("uriTemplate"), held),
        _ => false,
    }
}

/// A resource must be priced under its label, stand at the recorded URI, and be held under every entry that covers it.
fn resource(server: &Server, name: &str, uri: Option<&str>, held: impl Fn(&Capability) -> bool) -> bool {
    let (Some(uri), Some(capability)) = (uri, server.prices.resource(name)) else { return false };
    capability.uri.as_deref() == Some(uri)
        && held(capability)
        && server.prices.covering(uri).is_ok_and(|covering| covering.into_iter().all(held))
}
