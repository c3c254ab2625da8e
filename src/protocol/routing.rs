//! The routing headers `Mcp-Method` and `Mcp-Name` (MCP 2026-07-28, Streamable HTTP, "Standard request headers").

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";

/// A header value that cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected plain ASCII text or the Base64 form =?base64?…?=")]
pub struct Undecodable;

/// Decodes a header value: the Base64 sentinel, else the text itself. Blanks and tabs around it do not belong to it.
///
/// # Errors
/// [`Undecodable`] for bytes outside printable ASCII and tab, for a sentinel whose Base64 is not canonical (RFC 4648
/// §4, padded, no spare bits) or not UTF-8, and for `=?base64?=`, which two SDKs read differently.
pub fn decode(value: &[u8]) -> Result<Cow<'_, str>, Undecodable> {
    if !value.iter().all(|byte| matches!(byte, b'\t' | 0x20..=0x7E)) {
        return Err(Undecodable);
    }
    let text = std::str::from_utf8(value).map_err(|_| Undecodable)?.trim_matches([' ', '\t']);
    let Some(inside) = text.strip_prefix(PREFIX) else { return Ok(Cow::Borrowed(text)) };
    if inside == "=" {
        return Err(Undecodable);
    }
    let Some(inside) = inside.strip_suffix(SUFFIX) else { return Ok(Cow::Borrowed(text)) };
    let bytes = STANDARD.decode(inside).map_err(|_| Undecodable)?;
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| Undecodable)
}

/// The header value that [`decode`] reads as `text`: the text itself where it can stand in a header, else the Base64
/// sentinel.
#[must_use]
pub fn encode(text: &str) -> String {
    let plain = text.bytes().all(|byte| matches!(byte, b'\t' | 0x20..=0x7E))
        && text.trim_matches([' ', '\t']) == text
        && !text.starts_with(PREFIX);
    if plain { text.to_owned() } else { format!("{PREFIX}{}{SUFFIX}", STANDARD.encode(text)) }
}
