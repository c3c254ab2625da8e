//! The keys that the protocol defines where a case variant would be read by some other implementation.
//!
//! Several servers match keys without case, one of them by Unicode folding; a body whose `Name` means something to the
//! server and nothing to us must not pass. `arguments` are the tool's own and never looked at.

use crate::message::fold::Known;
use crate::message::json::Value;

static MESSAGE: Known = Known::new(&["jsonrpc", "id", "method", "params", "result", "error"]);
static PARAMS: Known = Known::new(&[
    "_meta",
    "name",
    "arguments",
    "uri",
    "cursor",
    "ref",
    "argument",
    "context",
    "notifications",
    "inputResponses",
    "requestState",
    "taskId",
    "task",
    "requestId",
    "reason",
    "progressToken",
    "progress",
    "total",
    "message",
    "level",
    "logger",
    "data",
    "protocolVersion",
    "capabilities",
    "clientInfo",
]);
static META: Known = Known::new(&[
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/logLevel",
    "io.modelcontextprotocol/related-task",
    "io.modelcontextprotocol/subscriptionId",
    "progressToken",
    "traceparent",
    "tracestate",
    "baggage",
]);
static REF: Known = Known::new(&["type", "name", "uri", "title"]);
static NOTIFICATIONS: Known =
    Known::new(&["toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions", "taskIds"]);
static RESULT: Known = Known::new(&[
    "_meta",
    "resultType",
    "tools",
    "prompts",
    "resources",
    "resourceTemplates",
    "nextCursor",
    "ttlMs",
    "cacheScope",
    "supportedVersions",
    "capabilities",
    "instructions",
    "content",
    "structuredContent",
    "isError",
    "messages",
    "contents",
    "completion",
    "inputRequests",
    "requestState",
    "description",
]);
static ENTRY: Known = Known::new(&["name", "uri", "uriTemplate"]);

/// A key of a request that differs only by case from one that the protocol defines at its place.
#[must_use]
pub fn request_variant(message: Value<'_>) -> Option<&str> {
    variant(message, &MESSAGE).or_else(|| {
        let params = message.get("params")?;
        variant(params, &PARAMS)
            .or_else(|| variant(params.get("_meta")?, &META))
            .or_else(|| variant(params.get("ref")?, &REF))
            .or_else(|| variant(params.get("notifications")?, &NOTIFICATIONS))
    })
}

/// The same for an answer: a client that reads keys without case must not find a second, unfiltered list, nor another
/// URI in a notification.
#[must_use]
pub fn answer_variant(message: Value<'_>) -> Option<&str> {
    variant(message, &MESSAGE)
        .or_else(|| variant(message.get("result")?, &RESULT))
        .or_else(|| variant(message.get("params")?, &PARAMS))
}

/// The same for one entry of a listing.
#[must_use]
pub fn entry_variant(entry: Value<'_>) -> Option<&str> {
    variant(entry, &ENTRY)
}

fn variant<'a>(object: Value<'a>, known: &Known) -> Option<&'a str> {
    object.entries().filter_map(|(key, _)| key.as_str()).find(|key| known.case_variant(key).is_some())
}
