//! A small well-behaved MCP 2026-07-28 server over [`super::fixture`]'s definitions.

use serde_json::{Value, json};

use super::fixture;
use super::upstream::{Answer, Seen};

/// Answers one request as such a server does.
pub(crate) fn answer(seen: &Seen) -> Answer {
    if seen.method != "POST" {
        return Answer::http(405, &["allow: POST"], "");
    }
    let message = seen.json();
    let Some(id) = message.get("id") else {
        return Answer::http(202, &[], "");
    };
    let method = message["method"].as_str().unwrap_or_default();
    if let Some(result) = result(method, &message["params"]) {
        return Answer::json(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }
    let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}});
    Answer::http(404, &["content-type: application/json"], error.to_string())
}

/// As [`answer`], with `more` tools in the listing.
pub(crate) fn answer_offering(seen: &Seen, more: &[Value]) -> Answer {
    let message = seen.json();
    if message["method"] != "tools/list" || more.is_empty() {
        return answer(seen);
    }
    let mut result = result("tools/list", &message["params"]).expect("a listing");
    result["tools"].as_array_mut().expect("a list").extend_from_slice(more);
    Answer::json(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

/// The result of a method; nothing when the server does not have it.
pub(crate) fn result(method: &str, params: &Value) -> Option<Value> {
    let cacheable = |member: &str, value: Value| json!({"resultType": "complete", member: value, "ttlMs": 60000, "cacheScope": "public"});
    Some(match method {
        "tools/list" => cacheable("tools", fixture::definitions("tool:")),
        "prompts/list" => cacheable("prompts", fixture::definitions("prompt:")),
        "resources/list" => cacheable("resources", json!([])),
        "resources/templates/list" => cacheable("resourceTemplates", fixture::definitions("resource:")),
        "server/discover" => {
            let mut result = cacheable("supportedVersions", json!(["2026-07-28", "2025-11-25"]));
            result["capabilities"] = json!({"tools": {}, "prompts": {}, "resources": {}, "completions": {}});
            result["instructions"] = json!(fixture::INSTRUCTIONS);
            result
        }
        "tools/call" => {
            let found = json!({"count": 1, "cases": [{"id": "17", "title": "Printer on fire"}]});
            let structured = (params["name"] == "search_cases").then_some(found);
            let mut result =
                json!({"resultType": "complete", "content": [{"type": "text", "text": "done"}], "isError": false});
            if let Some(structured) = structured {
                result["structuredContent"] = structured;
            }
            result
        }
        "prompts/get" => {
            json!({"resultType": "complete", "messages": [{"role": "user", "content": {"type": "text", "text": "Triage case 17."}}]})
        }
        "resources/read" => {
            cacheable("contents", json!([{"uri": params["uri"], "mimeType": "text/plain", "text": "case 17"}]))
        }
        "completion/complete" => {
            json!({"resultType": "complete", "completion": {"values": ["17", "18"]}})
        }
        _ => return None,
    })
}
