//! Rung 9: the body is one JSON-RPC message that everybody reads the same way.

use crate::message::json::{Document, Fault, FaultKind, Limits};
use crate::protocol::rpc::{Fault as RpcFault, Id, Message};
use crate::protocol::{keys, method};
use crate::refusal::{Detail, Reason, Refusal, Rung};

use super::{Server, body};

/// Values in a request; far more than any honest one, and a bound on what the tape costs.
const NODES: usize = 1 << 18;

/// Reads the body.
///
/// # Errors
/// `body.too_large`, then the `json.*` reasons.
pub fn read(server: &Server, bytes: Vec<u8>) -> Result<Document, Refusal> {
    if bytes.len() > server.limits.request {
        return Err(body::too_large(server));
    }
    if bytes.is_empty() {
        return Err(Refusal::new(Reason::BodyMissing, Rung::Body));
    }
    Document::read(bytes, Limits { depth: server.limits.depth, nodes: NODES }).map_err(refusal)
}

/// Reads the message out of the document.
///
/// # Errors
/// `json.case_variant_key`, `rpc.batch`, `rpc.invalid`.
pub fn message(document: &Document) -> Result<Message<'_>, Refusal> {
    if let Some(key) = keys::request_variant(document.root()) {
        return Err(Refusal::new(Reason::JsonCaseVariantKey, Rung::Message).detail("key", Detail::Text(key.to_owned())));
    }
    let message = Message::read(document.root()).map_err(|fault| match fault {
        RpcFault::Batch => Refusal::new(Reason::RpcBatch, Rung::Message),
        RpcFault::Invalid(what) => invalid(what),
    })?;
    // It would be judged as a notification, whose answer nobody reads, and might be answered as a request.
    if message.id.is_some() && method::is_notification(message.method) {
        return Err(invalid("expected no \"id\" on a notification"));
    }
    Ok(message)
}

fn invalid(what: &str) -> Refusal {
    Refusal::new(Reason::RpcInvalid, Rung::Message)
        .message(format!("The request body is not a JSON-RPC request or notification: {what}."))
}

/// The id of a message that may be refused for another reason, so that its frame can still be matched.
#[must_use]
pub fn id(document: &Document) -> Option<Id<'_>> {
    document.root().get("id").and_then(Id::read)
}

fn refusal(fault: Fault) -> Refusal {
    let reason = match fault.kind {
        FaultKind::Depth => Reason::JsonTooDeep,
        FaultKind::DuplicateKey => Reason::JsonDuplicateKey,
        FaultKind::TooMany => Reason::BodyTooLarge,
        _ => Reason::JsonInvalid,
    };
    Refusal::new(reason, Rung::Message).detail("byte", Detail::Number(fault.at as u64)).log(fault.to_string())
}
