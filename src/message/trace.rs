//! The caller's trace context: W3C Trace Context, from HTTP headers and from `params._meta` (MCP SEP-414).
//!
//! It is a hint and never a credential: whatever does not follow the grammar is treated as absent, and nothing here is an
//! error. A `tracestate` that is too long or holds other bytes than the grammar's goes without its `traceparent` being
//! lost (W3C Trace Context Level 2, §3.3.1.5).

#[cfg(test)]
mod tests;

use std::fmt;

/// Most bytes of a `tracestate` that are taken over; the specification asks for at least 512.
const STATE_CAP: usize = 512;

/// Where the caller stands in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// Never zero.
    pub trace_id: u128,
    /// The caller's span; never zero.
    pub span_id: u64,
    /// Whether the caller records this trace.
    pub sampled: bool,
    /// Vendors' own members, passed on; empty when there are none.
    pub state: Box<str>,
}

impl TraceContext {
    /// Reads a `traceparent` and the `tracestate` beside it. `None` for whatever the specification calls invalid.
    #[must_use]
    pub fn read(parent: &str, state: Option<&str>) -> Option<Self> {
        let rest = parent.as_bytes();
        let (version, rest) = hex::<2>(rest)?;
        let (trace_id, rest) = hex::<32>(dash(rest)?)?;
        let (span_id, rest) = hex::<16>(dash(rest)?)?;
        let (flags, rest) = hex::<2>(dash(rest)?)?;
        // Version 00 ends here; a later one may go on behind a dash, and 0xff is none.
        let ends = if version == 0 { rest.is_empty() } else { rest.is_empty() || rest.first() == Some(&b'-') };
        if version == 0xff || !ends || trace_id == 0 || span_id == 0 {
            return None;
        }
        let state = state.filter(|state| is_state(state)).unwrap_or_default().into();
        Some(Self { trace_id, span_id: u64::try_from(span_id).ok()?, sampled: flags & 1 == 1, state })
    }

    /// The trace id as 32 lower-case hexadecimal digits.
    #[must_use]
    pub fn trace_hex(&self) -> String {
        format!("{:032x}", self.trace_id)
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, u8::from(self.sampled))
    }
}

/// `N` lower-case hexadecimal digits, at most 32, and what follows.
fn hex<const N: usize>(bytes: &[u8]) -> Option<(u128, &[u8])> {
    let (digits, rest) = bytes.split_first_chunk::<N>()?;
    let mut number = 0_u128;
    for digit in digits {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        number = number << 4 | u128::from(value);
    }
    Some((number, rest))
}

fn dash(bytes: &[u8]) -> Option<&[u8]> {
    bytes.strip_prefix(b"-")
}

/// Printable ASCII of a bearable length. Its members are not looked into: they are other vendors'.
fn is_state(text: &str) -> bool {
    text.len() <= STATE_CAP && text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
}
