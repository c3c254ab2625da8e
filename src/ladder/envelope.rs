//! Rung 10: revision and routing headers say what the body says (MCP 2026-07-28, Streamable HTTP, "Server validation").
//!
//! The order is the ladder's: an older client must learn what is spoken here before anything else is found wrong.
//! Presence is demanded of every request method, with an id or without; of notifications only equality is.

use std::borrow::Cow;

use crate::message::headers::Headers;
use crate::message::json::Value;
use crate::protocol::{Message, Method, envelope, method, routing, version};
use crate::refusal::{Detail, Reason, Refusal, Rung};

use super::headers::malformed;
use super::{Head, Server};

const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

/// Checks the envelope of one message.
///
/// # Errors
/// `version.unsupported`, `envelope.invalid`, `headers.mismatch`; `headers.malformed` for a value that cannot be decoded.
pub fn check(server: &Server, head: &Head, message: &Message<'_>) -> Result<(), Refusal> {
    let headers = &head.headers;
    let header = headers.text(VERSION);
    let claim = envelope::claim(message.params);
    if method::is_notification(message.method) {
        equal_version(header, claim)?;
    } else {
        revision(server, header, claim, message)?;
    }
    routing_method(headers, message)?;
    routing_name(headers, message)
}

/// The revision of a request: named twice, alike, and spoken here.
fn revision(
    server: &Server,
    header: Option<&str>,
    claim: Option<Value<'_>>,
    message: &Message<'_>,
) -> Result<(), Refusal> {
    if claim.is_none() && header.is_none_or(version::is_older) {
        return Err(unsupported(server, header));
    }
    if let Some((member, expected)) = envelope::missing(message.params) {
        return Err(Refusal::new(Reason::EnvelopeInvalid, Rung::Envelope)
            .message(format!("The request's {member} is missing or malformed: {expected}."))
            .detail("member", Detail::Text(member.to_owned())));
    }
    let claim = claim.and_then(|claim| claim.as_str()).unwrap_or_default();
    match header {
        Some(header) if header == claim => {}
        _ => return Err(mismatch(VERSION, header, Some(claim))),
    }
    if server.protocol.iter().any(|spoken| spoken == claim) { Ok(()) } else { Err(unsupported(server, Some(claim))) }
}

fn equal_version(header: Option<&str>, claim: Option<Value<'_>>) -> Result<(), Refusal> {
    match (header, claim) {
        (Some(header), Some(claim)) if claim.as_str() != Some(header) => {
            Err(mismatch(VERSION, Some(header), Some(claim.as_str().unwrap_or_default())))
        }
        _ => Ok(()),
    }
}

fn unsupported(server: &Server, requested: Option<&str>) -> Refusal {
    let mut refusal = Refusal::new(Reason::VersionUnsupported, Rung::Envelope);
    refusal.data.push(("supported", Detail::Texts(server.protocol.clone())));
    if let Some(requested) = requested {
        refusal.data.push(("requested", Detail::Text(requested.to_owned())));
    }
    refusal
}

fn routing_method(headers: &Headers, message: &Message<'_>) -> Result<(), Refusal> {
    match headers.text(METHOD) {
        Some(header) if header == message.method => Ok(()),
        None if method::is_notification(message.method) && !headers.has(METHOD) => Ok(()),
        header => Err(mismatch(METHOD, header, Some(message.method))),
    }
}

fn routing_name(headers: &Headers, message: &Message<'_>) -> Result<(), Refusal> {
    let mirrored = Method::parse(message.method).and_then(Method::named_by);
    let Some(value) = headers.single(NAME) else {
        return match mirrored {
            Some(member) => Err(mismatch(NAME, None, member_text(message, member))),
            None => Ok(()),
        };
    };
    let decoded: Cow<'_, str> = routing::decode(value).map_err(|fault| malformed(NAME, &fault.to_string()))?;
    // Where the specification defines no mirror the header must still not lie: something may route by it.
    let members: &[&str] = match mirrored {
        Some("uri") => &["uri"],
        Some(_) => &["name"],
        None => &["name", "uri", "taskId"],
    };
    if members.iter().any(|member| member_text(message, member) == Some(&decoded)) {
        return Ok(());
    }
    Err(mismatch(NAME, Some(&decoded), members.iter().find_map(|member| member_text(message, member))))
}

fn member_text<'a>(message: &Message<'a>, member: &str) -> Option<&'a str> {
    message.params?.get(member)?.as_str()
}

fn mismatch(name: &str, header: Option<&str>, body: Option<&str>) -> Refusal {
    let written = match name {
        VERSION => "MCP-Protocol-Version",
        METHOD => "Mcp-Method",
        _ => "Mcp-Name",
    };
    let text = match (header, body) {
        (None, _) => format!("Header mismatch: the header {written} is missing."),
        (Some(header), Some(body)) => {
            format!("Header mismatch: {written} header value '{header}' does not match body value '{body}'")
        }
        (Some(header), None) => {
            format!("Header mismatch: {written} header value '{header}' has no counterpart in the body")
        }
    };
    Refusal::new(Reason::HeadersMismatch, Rung::Envelope)
        .message(text)
        .detail("header", Detail::Text(written.to_owned()))
}
