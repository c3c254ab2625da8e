//! Rung 8: there is a body, and it is one we can read.

use crate::message::headers::essence_is;
use crate::refusal::{Reason, Refusal, Rung};

use super::head::Modes;
use super::{Head, Server};

/// Judges the body by the headers that announce it.
///
/// # Errors
/// `body.unsupported_type`, `body.encoded`, `body.too_large`, `body.missing`, in this order.
pub fn check(server: &Server, head: &Head) -> Result<(), Refusal> {
    let refuse = |reason| Err(Refusal::new(reason, Rung::Body));
    if !head.headers.text("content-type").is_some_and(|value| essence_is(value, "application/json")) {
        return refuse(Reason::BodyUnsupportedType);
    }
    if head.headers.has("content-encoding") {
        return refuse(Reason::BodyEncoded);
    }
    let declared = head.headers.text("content-length").map(str::parse::<u64>);
    if let Some(Ok(length)) = declared
        && length > server.limits.request as u64
    {
        return Err(too_large(server));
    }
    if head.ends || declared == Some(Ok(0)) {
        return refuse(Reason::BodyMissing);
    }
    Ok(())
}

/// Refuses where Envoy shows less than all of the body before it forwards it, or less than all of the answer: what was
/// judged would not be what passes. `BUFFERED_PARTIAL`, say, hands over the first bytes and forwards the rest unseen.
///
/// # Errors
/// `internal`; the log says what to configure.
pub fn modes(head: &Head) -> Result<(), Refusal> {
    let found = match head.modes {
        Modes::Whole => return Ok(()),
        Modes::Unknown => "Envoy did not say its processing mode (protocol_config)",
        Modes::Other => "Envoy's processing mode shows only a part",
    };
    Err(Refusal::new(Reason::Internal, Rung::Service).log(format!(
        "{found}: this route needs request_body_mode: BUFFERED and response_body_mode: FULL_DUPLEX_STREAMED"
    )))
}

/// The refusal of a body over the cap, declared or found.
#[must_use]
pub fn too_large(server: &Server) -> Refusal {
    Refusal::new(Reason::BodyTooLarge, Rung::Body)
        .message(format!("The request body is larger than the {} bytes that are accepted here.", server.limits.request))
}
