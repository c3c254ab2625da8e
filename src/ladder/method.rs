//! Rung 3: the HTTP method. MCP 2026-07-28 is POST only.

use crate::refusal::{Reason, Refusal, Rung};

use super::{Head, Kind, Server};

/// Refuses everything but a plain POST on an MCP server, and a change of protocol on any.
///
/// # Errors
/// `method.not_allowed`.
pub fn check(server: &Server, head: &Head) -> Result<(), Refusal> {
    let allowed = match server.kind {
        Kind::Mcp => head.method() == "POST" && !head.upgrades(),
        Kind::Http => !head.method().is_empty() && !head.upgrades(),
    };
    if allowed {
        return Ok(());
    }
    let text = if head.upgrades() {
        "Only plain POST requests are allowed here, not Upgrade or CONNECT.".to_owned()
    } else {
        format!("Only POST is allowed here, not {}.", printable(head.method()))
    };
    Err(Refusal::new(Reason::MethodNotAllowed, Rung::Method).message(text))
}

fn printable(method: &str) -> &str {
    if method.len() <= 32 && method.bytes().all(|byte| byte.is_ascii_graphic()) { method } else { "this method" }
}
