//! Rungs 9 to 14, decided on the message.

use serde_json::{Value, json};

use super::{assert_challenge, assert_frame, assert_plain, assert_policy_frame};
use crate::support::{Request, Stack, fixture};

const CAP: usize = 1 << 20;

/// An allowed call whose JSON is exactly `size` bytes long.
fn sized(size: usize) -> Vec<u8> {
    let mut body = fixture::search().to_string().into_bytes();
    body.resize(size, b' ');
    body
}

#[test]
fn body_too_large() {
    let stack = Stack::start();
    let good = stack.request(&fixture::search());
    let (fits, over) = (sized(CAP), sized(CAP + 1));
    stack.allows(&good.clone().body(fits.clone()));
    stack.allows(&good.clone().pieces(&[&fits], &[]));
    assert_eq!(stack.upstream.last().body, fits);
    assert_eq!(good.clone().body(fits.clone()).send_h2(stack.envoy.port).status, 200);
    // The length that is declared is refused before the body; a body without one when it has come.
    for request in [good.clone().body(over.clone()), good.clone().pieces(&[&over], &[])] {
        assert_frame(&stack.refuses(&request, "body.too_large"), 413, -32600, None);
        let reply = stack.refused_by("body.too_large", 0, || request.send_h2(stack.envoy.port));
        assert_frame(&reply, 413, -32600, None);
    }
    // Far over the cap Envoy stops reading, in its own words.
    let reply = good.pieces(&[&sized(4 * CAP)], &[]).send(stack.envoy.port);
    assert_eq!(reply.status, 413, "{reply}");
    assert_eq!(stack.upstream.count(), 3);
}

/// The reader's POST of these bytes, with the headers of a search.
fn raw(stack: &Stack, body: impl Into<Vec<u8>>) -> Request {
    stack.request(&fixture::search()).body(body)
}

#[test]
fn json_invalid() {
    let stack = Stack::start();
    let search = fixture::search().to_string();
    let bodies: [Vec<u8>; 6] = [
        b"{".to_vec(),
        b"not json".to_vec(),
        format!("{search} {search}").into_bytes(),
        [search.as_bytes(), &[0xff]].concat(),
        search.replace("printer", "\\ud800").into_bytes(),
        [b"\xef\xbb\xbf", search.as_bytes()].concat(),
    ];
    for body in bodies {
        let reply = stack.refuses(&raw(&stack, body), "json.invalid");
        assert_frame(&reply, 400, -32700, None);
    }
}

#[test]
fn json_too_deep() {
    let stack = Stack::start();
    let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let body = fixture::search().to_string().replace("\"printer\"", &deep);
    let reply = stack.refuses(&raw(&stack, body), "json.too_deep");
    assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(-32600)), "{reply}");
}

#[test]
fn json_duplicate_key() {
    let stack = Stack::start();
    let search = fixture::search().to_string();
    let bodies = [
        search.replace("\"id\":1", "\"id\":1,\"id\":1"),
        search.replace("\"name\":\"search_cases\"", "\"name\":\"search_cases\",\"n\\u0061me\":\"update_case\""),
        search.replace("\"query\":\"printer\"", "\"query\":{\"a\":1,\"a\":2}"),
    ];
    for body in bodies {
        let reply = stack.refuses(&raw(&stack, body), "json.duplicate_key");
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(-32600)), "{reply}");
    }
}

#[test]
fn json_case_variant_key() {
    let stack = Stack::start();
    let search = fixture::search().to_string();
    for body in [
        search.replace("\"params\":", "\"Params\":1,\"params\":"),
        search.replace("\"name\":\"search", "\"NAME\":1,\"name\":\"search"),
    ] {
        let reply = stack.refuses(&raw(&stack, body), "json.case_variant_key");
        assert_eq!((reply.status, &reply.json()["error"]["code"]), (400, &json!(-32600)), "{reply}");
    }
}

#[test]
fn rpc_batch() {
    let stack = Stack::start();
    for body in [json!([fixture::search()]).to_string(), "[]".into()] {
        assert_frame(&stack.refuses(&raw(&stack, body), "rpc.batch"), 400, -32600, None);
    }
}

#[test]
fn rpc_invalid() {
    let stack = Stack::start();
    let with = |member: &str, value: Value| {
        let mut message = fixture::search();
        message[member] = value;
        message.to_string()
    };
    for id in [json!(1.5), json!(true), Value::Null, json!([1]), json!({"a": 1})] {
        let reply = stack.refuses(&raw(&stack, with("id", id)), "rpc.invalid");
        assert_frame(&reply, 400, -32600, None);
    }
    for body in [with("jsonrpc", json!("1.0")), with("extra", json!(1))] {
        let reply = stack.refuses(&raw(&stack, body), "rpc.invalid");
        assert_frame(&reply, 400, -32600, Some(&json!(1)));
    }
    let reply =
        stack.refuses(&raw(&stack, json!({"jsonrpc": "2.0", "id": 1, "result": {}}).to_string()), "rpc.invalid");
    assert_eq!(reply.status, 400, "{reply}");
}

#[test]
fn envelope_invalid() {
    let stack = Stack::start();
    let without = |key: &str| {
        let mut message = fixture::search();
        message["params"]["_meta"].as_object_mut().expect("an object").remove(key);
        message
    };
    let mut malformed = fixture::search();
    malformed["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!([]);
    for message in [
        without("io.modelcontextprotocol/clientCapabilities"),
        without("io.modelcontextprotocol/protocolVersion"),
        malformed,
    ] {
        let reply = stack.refuses(&stack.request(&message), "envelope.invalid");
        assert_frame(&reply, 400, -32602, Some(&json!(1)));
    }
}

#[test]
fn version_unsupported() {
    let stack = Stack::start();
    let mut future = fixture::search();
    future["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let reply = stack.refuses(&stack.request(&future).set("mcp-protocol-version", "2099-01-01"), "version.unsupported");
    let data = assert_frame(&reply, 400, -32022, Some(&json!(1)))["error"]["data"].clone();
    assert_eq!((&data["supported"], &data["requested"]), (&json!(["2026-07-28"]), &json!("2099-01-01")));
    // How a client of an older revision learns what is spoken here.
    let initialize = json!({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}});
    let request = stack.request(&initialize).without("mcp-protocol-version").without("mcp-method");
    let reply = stack.refuses(&request, "version.unsupported");
    let body = assert_frame(&reply, 400, -32022, Some(&json!("init")));
    assert_eq!(body["error"]["data"]["supported"], json!(["2026-07-28"]));
}

#[test]
fn headers_mismatch() {
    let stack = Stack::start();
    let good = stack.request(&fixture::search());
    let requests = [
        good.clone().set("mcp-name", "update_case"),
        good.clone().set("mcp-name", "SEARCH_CASES"),
        good.clone().set("mcp-name", "=?base64?dXBkYXRlX2Nhc2U=?="),
        good.clone().without("mcp-name"),
        good.clone().set("mcp-method", "tools/list"),
        good.clone().without("mcp-method"),
        good.clone().without("mcp-protocol-version"),
        good.clone().set("mcp-protocol-version", "2025-11-25"),
    ];
    for request in requests {
        let reply = stack.refuses(&request, "headers.mismatch");
        assert_frame(&reply, 400, -32020, Some(&json!(1)));
    }
    // The same name, wrapped, is equal.
    stack.allows(&good.set("mcp-name", "=?base64?c2VhcmNoX2Nhc2Vz?="));
}

#[test]
fn method_unlisted() {
    let stack = Stack::start();
    for method in
        ["ping", "initialize", "logging/setLevel", "resources/subscribe", "tasks/get", "tools/call2", "Tools/List"]
    {
        let reply = stack.refuses(&stack.request(&fixture::rpc(method, json!({}))), "method.unlisted");
        assert_frame(&reply, 404, -32601, Some(&json!(1)));
    }
}

#[test]
fn policy_no_permissions() {
    let stack = Stack::start();
    let stranger = stack.idp.token(&json!({"sub": "eve", "email": "eve@evil.example"}));
    let denied = stack.idp.token(&json!({"sub": "contractor-17"}));
    for token in [&stranger, &denied] {
        for message in [fixture::search(), fixture::rpc("tools/list", json!({}))] {
            let reply = stack.refuses(&fixture::post(&message).bearer(token), "policy.no_permissions");
            assert_policy_frame(&reply, &json!(1), "policy.no_permissions", "policy");
        }
        stack.allows(&fixture::post(&fixture::rpc("server/discover", json!({}))).bearer(token));
    }
    // Without an id there is nobody to send a frame to.
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let reply = stack.refuses(&fixture::post(&notification).bearer(&stranger), "policy.no_permissions");
    assert_plain(&reply, 403, "policy.no_permissions", "policy");
}

#[test]
fn policy_unnamed() {
    let stack = Stack::start();
    let unnamed = fixture::rpc("completion/complete", json!({"argument": {"name": "id", "value": "1"}}));
    let subscription =
        fixture::rpc("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": "cases://case/17"}}));
    for message in [unnamed, subscription] {
        let reply = stack.refuses(&stack.request(&message), "policy.unnamed");
        assert_policy_frame(&reply, &json!(1), "policy.unnamed", "permission");
    }
    for uri in ["cases://case/%31", "cases://case/../17", "CASES://case/17", "cases://case/%2f%2F/x"] {
        let reply = stack.refuses(&stack.request(&fixture::read(uri)), "policy.unnamed");
        assert_policy_frame(&reply, &json!(1), "policy.unnamed", "permission");
    }
}

#[test]
fn policy_unpriced() {
    let stack = Stack::start();
    let task = fixture::rpc("subscriptions/listen", json!({"notifications": {"taskIds": ["t"]}}));
    let prompt = fixture::rpc("prompts/get", json!({"name": "unknown"}));
    for message in [
        fixture::call("export_cases", json!({})),
        fixture::call("no_such_tool", json!({})),
        fixture::read("https://elsewhere/x"),
        prompt,
        task,
    ] {
        let reply = stack.refuses(&fixture::post(&message).bearer(&stack.editor()), "policy.unpriced");
        assert_policy_frame(&reply, &json!(1), "policy.unpriced", "permission");
    }
}

#[test]
fn policy_not_permitted() {
    let stack = Stack::start();
    let update = fixture::call("update_case", json!({"id": "17"}));
    let narrow = fixture::read("cases://case/17/internal");
    let completion = fixture::rpc(
        "completion/complete",
        json!({"ref": {"type": "ref/resource", "uri": "cases://case/{id}/internal"}, "argument": {"name": "id", "value": "1"}}),
    );
    let subscription = fixture::rpc(
        "subscriptions/listen",
        json!({"notifications": {"resourceSubscriptions": ["cases://case/1", "cases://case/17/internal"]}}),
    );
    for message in [update, narrow.clone(), completion, subscription] {
        let reply = stack.refuses(&stack.request(&message), "policy.not_permitted");
        assert_policy_frame(&reply, &json!(1), "policy.not_permitted", "permission");
    }
    // Covered by the broad patterns only; and by the narrow one, with its permission.
    stack.allows(&stack.request(&fixture::read("cases://case/17")));
    stack.allows(&fixture::post(&narrow).bearer(&stack.editor()));
}

#[test]
fn scope_insufficient_for_the_capability() {
    let stack = Stack::start();
    let update = fixture::call("update_case", json!({"id": "17"}));
    let token = stack.idp.token(&json!({"groups": ["case-editors"]}));
    let reply = stack.refuses(&fixture::post(&update).bearer(&token), "scope.insufficient");
    let challenge = assert_challenge(&reply, 403, Some("insufficient_scope"));
    // Every scope that the operation needs, in one go.
    let scopes = challenge.split("scope=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a scope");
    let mut scopes: Vec<_> = scopes.split(' ').collect();
    scopes.sort_unstable();
    assert_eq!(scopes, ["cases:write", "mcp"], "{challenge}");
    stack.allows(&fixture::post(&update).bearer(&stack.editor()));
}

#[test]
fn the_id_comes_back_byte_for_byte() {
    let stack = Stack::start();
    let refused = fixture::call("export_cases", json!({})).to_string();
    for id in ["1", "\"1\"", "9007199254740993", "\"a\\u0062\"", "\"\""] {
        let body = refused.replace("\"id\":1", &format!("\"id\":{id}"));
        let request = stack.request(&fixture::call("export_cases", json!({}))).body(body);
        let reply = stack.refuses(&request, "policy.unpriced");
        assert!(reply.text().contains(&format!("\"id\":{id},")), "{reply}");
    }
}

#[test]
fn hidden_refusals_look_like_the_protocols_own() {
    let stack = Stack::with(&[("disclose: explicit", "disclose: hidden")], &[]);
    let unknown = |tool: &str| json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": format!("Unknown tool: {tool}")}});
    for (tool, reason) in [
        ("no_such_tool", "policy.unpriced"),
        ("export_cases", "policy.unpriced"),
        ("update_case", "policy.not_permitted"),
    ] {
        let reply = stack.refuses(&stack.request(&fixture::call(tool, json!({"id": "1"}))), reason);
        assert_eq!((reply.status, reply.json()), (200, unknown(tool)), "{reply}");
    }
    let reply = stack.refuses(&stack.request(&fixture::read("cases://case/17/internal")), "policy.not_permitted");
    let error = &reply.json()["error"];
    assert_eq!(
        error,
        &json!({"code": -32602, "message": "Resource not found", "data": {"uri": "cases://case/17/internal"}})
    );
}

#[test]
fn policy_status_403_is_a_knob() {
    let stack = Stack::with(&[("policy_status: 200", "policy_status: 403")], &[]);
    let reply = stack.refuses(&stack.request(&fixture::call("export_cases", json!({}))), "policy.unpriced");
    assert_frame(&reply, 403, -32000, Some(&json!(1)));
}

#[test]
fn step_up_as_a_frame_is_a_knob() {
    let stack = Stack::with(&[("step_up: challenge", "step_up: frame")], &[]);
    let bare = stack.idp.token(&json!({"scope": "openid"}));
    let reply = stack.refuses(&fixture::post(&fixture::search()).bearer(&bare), "scope.insufficient");
    assert_policy_frame(&reply, &json!(1), "scope.insufficient", "scope");
}
