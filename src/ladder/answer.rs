//! Rung 18: an answer that is read must be readable, and must answer this request.

use crate::message::headers::{Headers, essence_is, utf8_is};
use crate::message::json::{Document, Kind as JsonKind, Limits, Value};
use crate::protocol::rpc::IdKey;
use crate::protocol::{Method, keys, method};
use crate::refusal::{Reason, Refusal, Rung};
use crate::upstream::Credential;

use super::Server;
use super::budget::Exhausted;

/// Values in an answer: a 16 MiB answer of small values stays below it.
const NODES: usize = 1 << 22;

/// The media types of answers that can be read.
const READ: [&str; 2] = ["application/json", "text/event-stream"];

/// Seconds after which an answer may find room again.
const RETRY_AFTER: u32 = 1;

/// How an answer is to be handled, by its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Passed on without a look.
    Untouched,
    /// One JSON document, to be held until it is whole.
    Json,
    /// A stream of events, each judged when it is whole.
    Stream,
    /// Nothing in it, and nothing expected.
    Empty,
}

/// What the answer belongs to.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The method of the request.
    pub method: Method,
    /// Its id; `None` for a request method that was sent without one: then nothing may come back.
    pub id: Option<IdKey>,
}

/// Judges the head of an answer that is read.
///
/// # Errors
/// `upstream.unauthorized`, `answer.unreadable`, `answer.too_large`.
pub fn head(server: &Server, asked: &Asked, headers: &Headers, ends: bool) -> Result<Form, Refusal> {
    let status = headers.text(":status").and_then(|status| status.parse::<u16>().ok()).unwrap_or(0);
    let json = headers.text("content-type").is_some_and(|value| essence_is(value, "application/json"));
    // The shipped routes remove the challenge before it gets here. A 401 had one in any case (RFC 9110 §15.5.2); a 403
    // that is no JSON-RPC answer is not about this call either.
    let challenged = status == 401 || (status == 403 && (headers.has("www-authenticate") || !json));
    match status {
        404 => return Ok(Form::Untouched),
        401 | 403 if challenged && matches!(server.credential, Credential::Passthrough) => return Ok(Form::Untouched),
        401 | 403 if challenged => return Err(Refusal::new(Reason::UpstreamUnauthorized, Rung::Answer)),
        300..400 => return Err(unreadable("the server answered with a redirect")),
        200..300 | 400..600 => {}
        _ => return Err(unreadable("the server answered with an unknown status")),
    }
    if asked.id.is_none() && ends && status < 300 {
        return Ok(Form::Empty);
    }
    let encoded = headers.all("content-encoding").any(|value| !value.eq_ignore_ascii_case(b"identity"));
    if encoded {
        return Err(unreadable("the server compressed its answer although identity was asked for"));
    }
    let media_type = headers.text("content-type");
    // Clients that believe it would read another answer than the one that is judged here.
    if media_type.is_some_and(|value| READ.iter().any(|known| essence_is(value, known) && !utf8_is(value, known))) {
        return Err(unreadable("the server's answer names a charset other than UTF-8"));
    }
    let declared = headers.text("content-length").and_then(|length| length.parse::<u64>().ok()).unwrap_or(0);
    match media_type {
        Some(value) if essence_is(value, "application/json") => {
            if declared > cap(server, asked.method) as u64 {
                Err(too_large())
            } else {
                Ok(Form::Json)
            }
        }
        Some(value) if essence_is(value, "text/event-stream") && (200..300).contains(&status) => Ok(Form::Stream),
        // A server that only takes note need not say so in JSON; whatever comes all the same is read as such.
        None if asked.id.is_none() && (200..300).contains(&status) => Ok(Form::Json),
        _ if status >= 500 => Err(unreachable()),
        _ => Err(unreadable("the server's answer is neither application/json nor text/event-stream")),
    }
}

/// Most bytes of one answer, or of one event of a stream.
#[must_use]
pub fn cap(server: &Server, method: Method) -> usize {
    if method.listed_member().is_some() || method == Method::Discover {
        server.limits.listing
    } else {
        server.limits.answer.max(server.limits.listing)
    }
}

/// Reads the bytes of an answer or of an event's data.
///
/// # Errors
/// `answer.unreadable`.
pub fn read(server: &Server, bytes: Vec<u8>) -> Result<Document, Refusal> {
    let limits = Limits { depth: server.limits.depth, nodes: NODES };
    let document = Document::read(bytes, limits)
        .map_err(|fault| unreadable("the server's answer is not acceptable JSON").log(fault.to_string()))?;
    if let Some(key) = keys::answer_variant(document.root()) {
        return Err(unreadable("the server's answer has a key that differs from a protocol key only by case")
            .log(format!("key {key:?}")));
    }
    Ok(document)
}

/// A message inside an answer.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// The result of the request.
    Result(Value<'a>),
    /// An error, and what it says.
    Error(Value<'a>),
    /// A notification that may pass, with its method and params.
    Notification(&'a str, Option<Value<'a>>),
    /// A notification that nobody knows: dropped.
    Unknown,
}

/// Judges one message of an answer.
///
/// # Errors
/// `answer.unreadable` for what is no JSON-RPC message of a server, `answer.mismatched` for another id.
pub fn content<'a>(asked: &Asked, document: &'a Document, status: u16, streamed: bool) -> Result<Content<'a>, Refusal> {
    let root = document.root();
    if root.kind() != JsonKind::Object || root.get("jsonrpc").and_then(|version| version.as_str()) != Some("2.0") {
        return Err(unreadable("the server's answer is not one JSON-RPC message"));
    }
    if let Some(name) = root.get("method") {
        return notification(root, name, streamed);
    }
    match (root.get("result"), root.get("error")) {
        (Some(result), None) => {
            answers(asked, root)?;
            result_type(asked.method, result)?;
            Ok(Content::Result(result))
        }
        (None, Some(error)) if error.kind() == JsonKind::Object => {
            let unaddressed = root.get("id").is_none_or(|id| id.is_null());
            if !unaddressed || (200..300).contains(&status) {
                answers(asked, root)?;
            }
            Ok(Content::Error(error))
        }
        _ => Err(unreadable("the server's answer has neither a result nor an error")),
    }
}

fn notification<'a>(root: Value<'a>, name: Value<'a>, streamed: bool) -> Result<Content<'a>, Refusal> {
    let name = name.as_str().unwrap_or_default();
    if root.get("id").is_some() || root.get("result").is_some() || root.get("error").is_some() || !streamed {
        return Err(unreadable("the server sent a request of its own instead of an answer"));
    }
    if method::server_may_notify(name) {
        Ok(Content::Notification(name, root.get("params")))
    } else {
        Ok(Content::Unknown)
    }
}

fn answers(asked: &Asked, root: Value<'_>) -> Result<(), Refusal> {
    match (&asked.id, root.get("id")) {
        (Some(own), Some(id)) if own.matches(id) => Ok(()),
        _ => Err(Refusal::new(Reason::AnswerMismatched, Rung::Answer)),
    }
}

/// An unknown `resultType` is a shape that we do not know how to read; absent means complete (older servers).
fn result_type(method: Method, result: Value<'_>) -> Result<(), Refusal> {
    if result.kind() != JsonKind::Object {
        return Err(unreadable("the server's result is not an object"));
    }
    match result.get("resultType").map(|kind| kind.as_str()) {
        None | Some(Some("complete")) => Ok(()),
        Some(Some("input_required")) if method.may_ask_for_input() => Ok(()),
        _ => Err(unreadable("the server's result is of a type that is not known here")),
    }
}

/// Whether a result asks for input instead of completing.
#[must_use]
pub fn asks_for_input(result: Value<'_>) -> bool {
    result.get("resultType").and_then(|kind| kind.as_str()) == Some("input_required")
}

/// `answer.unreadable`, with what is wrong for the log.
#[must_use]
pub fn unreadable(what: &'static str) -> Refusal {
    Refusal::new(Reason::AnswerUnreadable, Rung::Answer)
        .message(format!("The server's answer could not be checked, so it was withheld: {what}."))
}

/// `answer.unreadable`, where Envoy or the server answered for want of an answer.
#[must_use]
pub fn unreachable() -> Refusal {
    unreadable("the server could not be reached, or failed")
}

/// `answer.too_large`.
#[must_use]
pub fn too_large() -> Refusal {
    Refusal::new(Reason::AnswerTooLarge, Rung::Answer)
}

/// `overloaded`: answers that are held already take all there is for them.
#[must_use]
pub fn overloaded(exhausted: Exhausted) -> Refusal {
    let mut refusal = Refusal::new(Reason::Overloaded, Rung::Service).log(exhausted.to_string());
    refusal.retry_after = Some(RETRY_AFTER);
    refusal
}
