//! Rung 8: there is a body, and it is one we can read.

use crate::message::headers::{essence_is, utf8_is};
use crate::refusal::{Reason, Refusal, Rung};

use super::head::Modes;
use super::{Head, Server};

/// Judges the body by the headers that announce it.
///
/// # Errors
/// `body.unsupported_type` (also for a `charset` other than UTF-8), `body.encoded`, `body.too_large`, `body.missing`, in this order.
pub fn check(server: &Server, head: &Head) -> Result<(), Refusal> {
    let refuse = |reason| Err(Refusal::new(reason, Rung::Body));
    let content_type = head.headers.text("content-type").unwrap_or_default();
    if !essence_is(content_type, "application/json") {
        return refuse(Reason::BodyUnsupportedType);
    }
    // Real servers decode by it: what is judged here as UTF-8 would be another call there.
    if !utf8_is(content_type, "application/json") {
        let text =
            "The request's Content-Type names a charset other than UTF-8, which is the only one of JSON: leave it out.";
        return Err(Refusal::new(Reason::BodyUnsupportedType, Rung::Body).message(text));
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
