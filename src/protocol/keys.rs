//! The keys that the protocol defines where a case variant would be read by some other implementation.
//!
//! Several servers match keys without case, one of them by Unicode folding; a body whose `Name` means something to the
//! server and nothing to us must not pass. `arguments` are the tool's own and never looked at.

use crate::message::fold;
use crate::message::json::Value;

const MESSAGE: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];
const PARAMS: &[&str] = &[
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
];
const META: &[&str] = &[
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
];
const REF: &[&str] = &["type", "name", "uri", "title"];
const NOTIFICATIONS: &[&str] =
    &["toolsListChanged", "promptsListChanged", "resourcesListChanged", "resourceSubscriptions", "taskIds"];
const RESULT: &[&str] = &[
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
];
const ENTRY: &[&str] = &["name", "uri", "uriTemplate"];

/// A key of a request that differs only by case from one that the protocol defines at its place.
#[must_use]
pub fn request_variant(message: Value<'_>) -> Option<&str> {
    variant(message, MESSAGE).or_else(|| {
        let params = message.get("params")?;
        variant(params, PARAMS)
            .or_else(|| variant(params.get("_meta")?, META))
            .or_else(|| variant(params.get("ref")?, REF))
            .or_else(|| variant(params.get("notifications")?, NOTIFICATIONS))
    })
}

/// The same for an answer: a client that reads keys without case must not find a second, unfiltered list, nor another
/// URI in a notification.
#[must_use]
pub fn answer_variant(message: Value<'_>) -> Option<&str> {
    variant(message, MESSAGE)
        .or_else(|| variant(message.get("result")?, RESULT))
        .or_else(|| variant(message.get("params")?, PARAMS))
}

/// The same for one entry of a listing.
#[must_use]
pub fn entry_variant(entry: Value<'_>) -> Option<&str> {
    variant(entry, ENTRY)
}

fn variant<'a>(object: Value<'a>, known: &[&str]) -> Option<&'a str> {
    object.entries().filter_map(|(key, _)| key.as_str()).find(|key| fold::case_variant_of(key, known).is_some())
}
