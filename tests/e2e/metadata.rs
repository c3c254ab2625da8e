//! What the verdict's dynamic metadata says, and to the audit what Envoy says of a call.

use serde_json::{Value, json};

use crate::support::{Request, Stack, fixture};

/// The shipped access log's last line, and what is to be told beside it.
const SERVER: &str = r#"                  server: "%DYNAMIC_METADATA(portcullis:server)%""#;

/// The verdicts of an allowed and of a refused call, each as the whole namespace.
fn verdicts(config_edits: &[(&str, &str)]) -> [Value; 2] {
    let all = format!("{SERVER}\n                  all: \"%DYNAMIC_METADATA(portcullis)%\"");
    let stack = Stack::with(config_edits, &[(SERVER, &all)]);
    assert_eq!(stack.post(&fixture::search()).status, 200);
    stack.refuses(&stack.request(&fixture::call("update_case", json!({"id": "17"}))), "policy.not_permitted");
    let log = stack.envoy.access_log(2);
    [0, 1].map(|line: usize| {
        let mut said = log[line]["all"].clone();
        assert_eq!(said["id"], log[line]["id"]);
        said.as_object_mut().expect("metadata").remove("id");
        said
    })
}

#[test]
fn a_verdict_says_what_the_shipped_files_read_and_no_more() {
    assert_eq!(
        verdicts(&[]),
        [
            json!({"decided": true, "server": "cases", "decision": "allow"}),
            json!({"decided": true, "server": "cases", "decision": "refuse", "reason": "policy.not_permitted"}),
        ]
    );
}

#[test]
fn a_verdict_says_what_somebody_reads() {
    assert_eq!(
        verdicts(&[("servers:", "envoy: {metadata: [method, capability, principal]}\nservers:")]),
        [
            json!({
                "decided": true, "server": "cases", "decision": "allow",
                "method": "tools/call", "capability": "tool:search_cases", "principal": "ana@acme.com",
            }),
            json!({
                "decided": true, "server": "cases", "decision": "refuse", "reason": "policy.not_permitted",
                "method": "tools/call", "capability": "tool:update_case", "principal": "ana@acme.com",
            }),
        ]
    );
}

#[test]
fn the_audit_says_where_a_call_came_from_as_envoy_sees_it() {
    let stack = Stack::start();
    // An edge trusts no proxy in front of it.
    let request = stack.request(&fixture::search()).add("x-forwarded-for", "192.0.2.7");
    stack.allows(&request);
    stack.refuses(&Request::get("/mcp"), "method.not_allowed");
    for line in stack.portcullis.audit(2) {
        assert_eq!(line["client_address"], "127.0.0.1", "{line}");
    }
}

#[test]
fn the_audit_says_the_client_that_trusted_proxies_name() {
    let trusted = "use_remote_address: true\n          xff_num_trusted_hops: 1";
    let stack = Stack::with(&[], &[("use_remote_address: true", trusted)]);
    stack.allows(&stack.request(&fixture::search()).add("x-forwarded-for", "2001:db8::7"));
    assert_eq!(stack.portcullis.audit(1)[0]["client_address"], "2001:db8::7");
}
