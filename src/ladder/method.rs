//! Rung 3: the HTTP method. MCP 2026-07-28 is POST only.

use crate::refusal::{Reason, Refusal, Rung};

use super::{Head, Kind, Server, metadata};

/// Refuses everything but a plain POST on an MCP server, and a change of protocol on any.
///
/// # Errors
/// `method.not_allowed`.
pub fn check(server: &Server, head: &Head) -> Result<(), Refusal> {
    let document = server.metadata.document(head.path()).is_some();
    let allowed = match server.kind {
        _ if document || head.upgrades() => false,
        Kind::Mcp => head.method() == "POST",
        Kind::Http => !head.method().is_empty(),
    };
    if allowed {
        return Ok(());
    }
    let allow = match server.kind {
        _ if document => metadata::METHODS,
        Kind::Mcp => "POST",
        Kind::Http => "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
    };
    let text = if head.upgrades() {
        format!("Upgrade and CONNECT are not allowed here, only: {allow}.")
    } else if document {
        format!("This document can only be read: {allow} without a body, not {}.", printable(head.method()))
    } else {
        format!("Only {allow} is allowed here, not {}.", printable(head.method()))
    };
    let mut refusal = Refusal::new(Reason::MethodNotAllowed, Rung::Method).message(text);
    refusal.allow = allow;
    Err(refusal)
}

fn printable(method: &str) -> &str {
    if method.len() <= 32 && method.bytes().all(|byte| byte.is_ascii_graphic()) { method } else { "this method" }
}
