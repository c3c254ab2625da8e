//! Rung 4: the headers that decide something must be there once and within their grammar.
//!
//! Envoy joins repeats of `authorization` and `content-type` with a comma and hands over the others one by one, so
//! both forms are looked for: two readers that pick different values are how a decision is bypassed. For the same reason
//! `mcp_name` is refused beside or without `mcp-name`: servers behind CGI-like gateways read both as `MCP_NAME`.

use crate::message::headers::HeaderRef;
use crate::refusal::reason::HEADER_MISMATCH;
use crate::refusal::{Reason, Refusal, Rung};

use super::Head;

/// Most bytes of a bearer credential.
const AUTHORIZATION_CAP: usize = 16 * 1024;
/// Most bytes of `mcp-name` and `mcp-param-*`.
const NAME_CAP: usize = 8 * 1024;
/// Most bytes of the short ones.
const SHORT_CAP: usize = 256;

struct Rule {
    cap: usize,
    /// Whether a value may hold a comma; where it may not, one means that Envoy joined repeats.
    comma: bool,
}

fn rule(name: &[u8]) -> Option<Rule> {
    Some(match name {
        b"authorization" => Rule { cap: AUTHORIZATION_CAP, comma: false },
        b"content-type" | b"mcp-method" | b"mcp-protocol-version" => Rule { cap: SHORT_CAP, comma: false },
        b"mcp-name" => Rule { cap: NAME_CAP, comma: true },
        _ if name.starts_with(b"mcp-param-") => Rule { cap: NAME_CAP, comma: true },
        _ => return None,
    })
}

/// Checks every security header of a request.
///
/// # Errors
/// `headers.malformed`, naming the header.
pub fn check(head: &Head) -> Result<(), Refusal> {
    for header in head.headers.iter() {
        let Some(rule) = rule(header.name) else {
            if header.name.contains(&b'_') && self::rule(&dashed(header.name)).is_some() {
                return Err(malformed(header.name(), "it has an underscore where the header's name has a dash"));
            }
            continue;
        };
        if head.headers.all(header.name()).nth(1).is_some() {
            return Err(malformed(header.name(), "it appears more than once"));
        }
        value(header, &rule).map_err(|what| malformed(header.name(), what))?;
    }
    Ok(())
}

/// The name as a reader sees it that takes `_` and `-` for the same.
pub(super) fn dashed(name: &[u8]) -> Vec<u8> {
    name.iter().map(|byte| if *byte == b'_' { b'-' } else { *byte }).collect()
}

fn value(header: HeaderRef<'_>, rule: &Rule) -> Result<(), &'static str> {
    if header.value.len() > rule.cap {
        return Err("it is too long");
    }
    // Without an early exit, so that a long token is looked at many bytes at a time.
    if header.value.iter().fold(false, |bad, byte| bad | !matches!(byte, b'\t' | 0x20..=0x7E)) {
        return Err("it holds bytes outside printable ASCII");
    }
    if !rule.comma && header.value.contains(&b',') {
        return Err("it appears more than once, or holds a comma");
    }
    Ok(())
}

/// A refusal that names the header; values are not repeated, one of them is a token.
pub(super) fn malformed(name: &str, what: &str) -> Refusal {
    let mut refusal = Refusal::new(Reason::HeadersMalformed, Rung::Headers)
        .message(format!("The request header {} is malformed: {what}.", shown(name)));
    if name.starts_with("mcp-") || name.starts_with("mcp_") {
        refusal.code = Some(HEADER_MISMATCH);
    }
    refusal
}

fn shown(name: &str) -> &str {
    if name.len() <= 64 { name } else { "mcp-param-*" }
}
