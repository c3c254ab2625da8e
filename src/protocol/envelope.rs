//! What a request says of itself in `params._meta` (MCP 2026-07-28, Base protocol, "Request metadata").

use crate::message::json::{Kind, Value};

/// `_meta` key of the revision.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// `_meta` key of the client's capabilities.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// The revision that the body claims: `None` when there is no such member, whatever its type.
#[must_use]
pub fn claim(params: Option<Value<'_>>) -> Option<Value<'_>> {
    params?.get("_meta")?.get(PROTOCOL_VERSION)
}

/// The first required member of `_meta` that is missing or malformed, with what was expected.
#[must_use]
pub fn missing(params: Option<Value<'_>>) -> Option<(&'static str, &'static str)> {
    let Some(params) = params else { return Some(("params", "expected an object")) };
    let Some(meta) = params.get("_meta").filter(|meta| meta.kind() == Kind::Object) else {
        return Some(("_meta", "expected an object"));
    };
    if meta.get(PROTOCOL_VERSION).and_then(|claim| claim.as_str()).is_none() {
        return Some((PROTOCOL_VERSION, "expected a string"));
    }
    if meta.get(CLIENT_CAPABILITIES).map(|capabilities| capabilities.kind()) != Some(Kind::Object) {
        return Some((CLIENT_CAPABILITIES, "expected an object"));
    }
    None
}
