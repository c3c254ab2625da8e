//! Rung 5: a browser's `Origin` must be the resource's own or an allowed one (DNS rebinding).

use crate::refusal::{Reason, Refusal, Rung};

use super::head::normal_authority;
use super::{Head, Server};

/// Checks `Origin` when there is one.
///
/// # Errors
/// `origin.refused` for a foreign, repeated or unreadable one, and for `null`.
pub fn check(server: &Server, head: &Head) -> Result<(), Refusal> {
    if !head.headers.has("origin") {
        return Ok(());
    }
    let origin = head.headers.text("origin").map(normal).unwrap_or_default();
    if !origin.is_empty() && (origin == server.resource.origin || server.allowed_origins.contains(&origin)) {
        return Ok(());
    }
    Err(Refusal::new(Reason::OriginRefused, Rung::Origin))
}

/// An origin as it compares: lower case, without its scheme's default port.
#[must_use]
pub fn normal(origin: &str) -> String {
    match origin.split_once("://") {
        Some((scheme, authority)) => {
            let scheme = scheme.to_ascii_lowercase();
            let authority = normal_authority(authority, &scheme);
            format!("{scheme}://{authority}")
        }
        None => origin.to_ascii_lowercase(),
    }
}
