//! Rung 1: which server a request is for.

use std::sync::Arc;

use crate::refusal::{Reason, Refusal, Rung};

use super::{Head, Server, Snapshot, Unmatched};

/// What rung 1 found.
pub enum Route {
    /// A guarded server.
    Guarded(Arc<Server>),
    /// No server, and the configuration lets such traffic pass.
    Pass,
}

/// Finds the server that a request is for.
///
/// Envoy's own names come first, because a caller cannot spoof them; then authority and path; then the well-known
/// paths of a server's resource.
///
/// # Errors
/// `route.undecidable` when a matcher needs an attribute that Envoy did not send; `route.unmatched` when nothing
/// matches and either `unmatched: deny` holds or the authority is one that a server names.
pub fn find(snapshot: &Snapshot, head: &Head) -> Result<Route, Refusal> {
    let attributes = &head.attributes;
    for (needed, present, name) in [
        (snapshot.needs_route(), attributes.route.is_some(), "xds.route_name"),
        (snapshot.needs_cluster(), attributes.cluster.is_some(), "xds.cluster_name"),
    ] {
        if needed && !present {
            return Err(Refusal::new(Reason::RouteUndecidable, Rung::Route).log(format!(
                "a server is matched by {name}, and Envoy did not send it: add it to ext_proc's request_attributes"
            )));
        }
    }
    let found = attributes.route.as_deref().and_then(|name| snapshot.by_route(name));
    let found = found.or_else(|| attributes.cluster.as_deref().and_then(|name| snapshot.by_cluster(name)));
    if let Some(server) = found {
        return Ok(Route::Guarded(Arc::clone(server)));
    }
    let authority = head.authority();
    if let Some(server) = snapshot.by_address(&authority, head.path()) {
        return Ok(Route::Guarded(Arc::clone(server)));
    }
    match snapshot.on_authority(&authority) {
        Some(servers) => well_known(servers, head.path()).map(Route::Guarded).ok_or_else(unmatched),
        None if snapshot.unmatched() == Unmatched::Deny => Err(unmatched()),
        // A tunnel is opaque, and its port proves nothing about what stands behind it: none to a guarded host.
        None if head.method() == "CONNECT" && snapshot.on_host(&authority) => Err(unmatched()),
        None => Ok(Route::Pass),
    }
}

/// The server whose metadata document stands at a well-known path. Several servers on one authority share the root
/// forms; those are answered only where they would all say the same.
fn well_known<'a>(servers: impl Iterator<Item = &'a Arc<Server>>, path: &str) -> Option<Arc<Server>> {
    let mut owners = servers.filter_map(|server| Some((server, server.metadata.document(path)?))).peekable();
    let first = *owners.peek()?;
    owners.all(|(_, document)| document == first.1).then(|| Arc::clone(first.0))
}

fn unmatched() -> Refusal {
    Refusal::new(Reason::RouteUnmatched, Rung::Route)
}
