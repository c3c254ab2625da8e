//! What an allowed call looks like at the upstream.

use serde_json::{Value, json};

use crate::support::{Answer, Stack, fixture};

#[test]
fn the_body_is_forwarded_byte_for_byte() {
    let stack = Stack::start();
    let meta = fixture::search()["params"]["_meta"].to_string();
    let body = format!(
        " {{ \"id\":\"\\u0061\",\"method\":\"tools/call\",\n\"params\":{{\"arguments\":{{\"query\":\"caf\\u00e9 \u{1f600}\",\"limit\":1.0e0}},\"name\":\"search_cases\",\"_meta\":{meta}}},\"jsonrpc\":\"2.0\"}}\r\n"
    );
    let good = stack.request(&fixture::search());
    stack.allows(&good.clone().body(body.clone()));
    assert_eq!(stack.upstream.last().body, body.as_bytes());
    // However it arrives.
    let (one, two) = body.as_bytes().split_at(40);
    stack.allows(&good.clone().pieces(&[one, two], &[]));
    assert_eq!(stack.upstream.last().body, body.as_bytes());
    let reply = good.pieces(&[one, two], &[("x-trailer", "1")]).send_h2(stack.envoy.port);
    assert_eq!((reply.status, stack.upstream.last().body.as_slice()), (200, body.as_bytes()), "{reply}");
}

#[test]
fn credentials_and_connection_headers_are_exchanged_or_removed() {
    let stack = Stack::start();
    let request = stack
        .request(&fixture::search())
        .add("cookie", "session=1")
        .add("connection", "keep-alive, x-private")
        .add("x-private", "1")
        .add("x-http-method-override", "DELETE")
        .add("x-method-override", "DELETE")
        .add("accept-encoding", "gzip, br")
        .add("x-envoy-retry-on", "5xx")
        .add("x-anything", "kept")
        .add("mcp-param-region", "eu");
    stack.allows(&request);
    let seen = stack.upstream.last();
    assert_eq!(seen.header("authorization"), [format!("Bearer {}", fixture::CREDENTIAL)]);
    assert_eq!(seen.header("accept-encoding"), ["identity"]);
    for gone in ["cookie", "x-private", "x-http-method-override", "x-method-override", "x-envoy-retry-on"] {
        assert!(seen.header(gone).is_empty(), "{gone}: {:?}", seen.headers);
    }
    for (kept, value) in
        [("x-anything", "kept"), ("mcp-param-region", "eu"), ("mcp-method", "tools/call"), ("mcp-name", "search_cases")]
    {
        assert_eq!(seen.header(kept), [value]);
    }
}

#[test]
fn the_credential_follows_its_file() {
    let stack = Stack::start();
    stack.allows(&stack.request(&fixture::search()));
    std::fs::write(stack.dir.path().join("credential"), "rotated\n").expect("the file is written");
    let rotated = crate::support::wait_for(std::time::Duration::from_secs(10), || {
        stack.allows(&stack.request(&fixture::search()));
        (stack.upstream.last().header("authorization") == ["Bearer rotated"]).then_some(())
    });
    assert!(
        rotated.is_some(),
        "expected the new credential within 10 s, the upstream saw {:?}",
        stack.upstream.last().headers
    );
}

#[test]
fn without_a_credential_the_token_is_removed() {
    let stack = Stack::with(&[("credential: {bearer: {file: ", "# none: ")], &[]);
    stack.allows(&stack.request(&fixture::search()));
    assert!(stack.upstream.last().header("authorization").is_empty());
}

#[test]
fn every_method_of_the_revision_passes() {
    let stack = Stack::start();
    let completion = json!({"ref": {"type": "ref/prompt", "name": "triage"}, "argument": {"name": "id", "value": "1"}});
    let messages = [
        fixture::search(),
        fixture::rpc("prompts/get", json!({"name": "triage", "arguments": {"id": "17"}})),
        fixture::read("cases://case/17"),
        fixture::rpc("completion/complete", completion),
        fixture::rpc("server/discover", json!({})),
        fixture::rpc("tools/list", json!({})),
        fixture::rpc("prompts/list", json!({})),
        fixture::rpc("resources/list", json!({})),
        fixture::rpc("resources/templates/list", json!({})),
    ];
    for message in messages {
        let reply = stack.allows(&stack.request(&message));
        assert!(reply.json()["result"].is_object(), "{message}: {reply}");
        assert_eq!(reply.json()["id"], message["id"]);
        let reply = stack.request(&message).send_h2(stack.envoy.port);
        assert_eq!((reply.status, &reply.json()["id"]), (200, &message["id"]), "{reply}");
    }
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
    let reply = stack.post(&notification);
    assert_eq!((reply.status, reply.body.len()), (202, 0), "{reply}");
}

#[test]
fn an_allowed_call_leaves_one_audit_record_and_metadata_for_the_access_log() {
    let stack = Stack::start();
    stack.allows(&stack.request(&fixture::search()));
    let records = stack.portcullis.audit(1);
    let record = &records[0];
    assert_eq!((&record["server"], &record["method"]), (&json!("cases"), &json!("tools/call")), "{record}");
    assert_eq!(record["wire_status"], "200", "{record}");
    let text = record.to_string();
    for secret in [&stack.reader()[..40], fixture::CREDENTIAL, "printer", "Printer on fire"] {
        assert!(!text.contains(secret), "expected no {secret:?} in the audit: {text}");
    }
    let log = stack.envoy.access_log(1);
    assert_eq!(log[0]["server"], "cases", "{log:?}");
    assert_eq!(log[0]["decision"], "allow", "{log:?}");
    assert!(record["decision_id"].is_string() && log[0]["id"] == record["decision_id"], "{log:?} beside {record}");
}

#[test]
fn an_upstream_404_passes_untouched() {
    let stack = Stack::start();
    stack.upstream.answer(Answer::http(404, &["content-type: text/plain"], "no such thing"));
    let reply = stack.post(&fixture::search());
    assert_eq!((reply.status, reply.text().as_str()), (404, "no such thing"), "{reply}");
}

#[test]
fn an_accepted_notification_passes_without_cookies() {
    let stack = Stack::start();
    stack.upstream.answer(Answer::http(202, &["set-cookie: a=b"], ""));
    let notification: Value =
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}});
    let reply = stack.post(&notification);
    assert_eq!((reply.status, reply.header("set-cookie")), (202, None), "{reply}");
}
