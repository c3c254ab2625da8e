//! The ladder on the wire: one test for each reason, named after it, and what an allowed call looks like on both sides.

mod answers;
mod body;
mod forwarding;
mod headers;
mod hostile;
mod listings;
mod locks;

use serde_json::{Value, json};

use crate::support::Reply;

/// A policy refusal: HTTP 200, the frame, the caller's id, never a challenge.
#[track_caller]
fn assert_policy_frame(reply: &Reply, id: &Value, reason: &str, rung: &str) {
    let body = assert_frame(reply, 200, -32000, Some(id));
    let data = &body["error"]["data"];
    assert_eq!((&data["error"], &data["plugin"]), (&json!(reason), &json!(rung)), "{reply}");
    assert!(data["decision"].as_str().is_some_and(|decision| !decision.is_empty()), "{reply}");
    assert_eq!(reply.header("www-authenticate"), None, "{reply}");
}

/// A refusal as a JSON-RPC error of this status and code, with this id or none at all; its body.
#[track_caller]
pub(crate) fn assert_frame(reply: &Reply, status: u16, code: i64, id: Option<&Value>) -> Value {
    assert_eq!(reply.status, status, "{reply}");
    assert_eq!(reply.header("content-type"), Some("application/json"), "{reply}");
    assert_eq!(reply.header("cache-control"), Some("no-store"), "{reply}");
    let body = reply.json();
    assert_eq!(
        (&body["jsonrpc"], &body["error"]["code"], body.get("id")),
        (&json!("2.0"), &json!(code), id),
        "{reply}"
    );
    assert!(body["error"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{reply}");
    assert_no_null_data(&body);
    body
}

/// `data` and its members are left out when empty.
#[track_caller]
fn assert_no_null_data(body: &Value) {
    if let Some(data) = body["error"].get("data") {
        let members = data.as_object().expect("data is an object");
        assert!(!members.is_empty() && members.values().all(|value| !value.is_null()), "{body}");
    }
}

/// A challenge of this status; its `WWW-Authenticate`.
#[track_caller]
fn assert_challenge(reply: &Reply, status: u16, error: Option<&str>) -> String {
    assert_eq!(reply.status, status, "{reply}");
    let challenge =
        reply.header("www-authenticate").unwrap_or_else(|| panic!("expected a challenge, got {reply}")).to_owned();
    assert!(challenge.starts_with("Bearer "), "{challenge}");
    match error {
        Some(error) => assert!(challenge.starts_with(&format!("Bearer error=\"{error}\"")), "{challenge}"),
        None => assert!(!challenge.contains("error="), "{challenge}"),
    }
    let metadata = "resource_metadata=\"https://mcp.test/.well-known/oauth-protected-resource/mcp\"";
    assert!(challenge.contains(metadata), "{challenge}");
    let body = reply.json();
    assert!(body["error"].is_string() && body["error_description"].is_string(), "{reply}");
    assert_eq!(reply.header("cache-control"), Some("no-store"), "{reply}");
    challenge
}

/// A refusal in plain JSON, for what is no MCP request with an id.
#[track_caller]
fn assert_plain(reply: &Reply, status: u16, reason: &str, rung: &str) {
    assert_eq!(reply.status, status, "{reply}");
    assert_eq!(reply.header("content-type"), Some("application/json"), "{reply}");
    let body = reply.json();
    assert_eq!((&body["error"], &body["plugin"]), (&json!(reason), &json!(rung)), "{reply}");
    assert!(body["message"].is_string() && body.get("jsonrpc").is_none(), "{reply}");
}
