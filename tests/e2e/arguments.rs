//! Rung 16 on the wire: arguments against the approved schema, and the headers that repeat some of them.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::rungs::assert_frame;
use crate::support::{Request, Stack, fixture};

/// A tool of this name whose arguments must fit `schema`.
fn tool(name: &str, schema: Value) -> Value {
    json!({"name": name, "inputSchema": schema})
}

/// The reader's call of a tool with arguments spelled exactly like this.
fn call(stack: &Stack, name: &str, arguments: &str) -> Request {
    let body = fixture::call(name, json!("@")).to_string().replace("\"@\"", arguments);
    stack.request(&fixture::call(name, json!({}))).body(body)
}

#[test]
fn arguments_invalid() {
    let stack = Stack::start();
    for (arguments, pointer, rule) in [
        (r#"{"query": "printer", "limit": 0}"#, "/limit", "minimum"),
        (r#"{"query": 7}"#, "/query", "type"),
        (r#"{"query": "printer", "secret": "s3cr3t"}"#, "", "additionalProperties"),
        ("{}", "", "required"),
        ("[]", "", "type"),
        ("null", "", "type"),
    ] {
        let reply = stack.refuses(&call(&stack, "search_cases", arguments), "arguments.invalid");
        let body = assert_frame(&reply, 200, -32602, Some(&json!(1)));
        let data = &body["error"]["data"];
        assert_eq!((&data["error"], &data["plugin"]), (&json!("arguments.invalid"), &json!("arguments")), "{reply}");
        let error = &data["details"]["errors"][0];
        assert_eq!((&error["pointer"], &error["rule"]), (&json!(pointer), &json!(rule)), "{reply}");
        let message = body["error"]["message"].as_str().expect("a message");
        assert!(message.contains("'search_cases'") && message.contains(pointer) && message.contains(rule), "{reply}");
        assert!(!reply.text().contains("s3cr3t"), "{reply}");
    }
    // Corrected, on the same server; and `arguments` left out where none is required.
    stack.allows(&call(&stack, "search_cases", r#"{"query": "printer", "limit": 1}"#));
}

#[test]
fn arguments_are_judged_and_forwarded_to_the_last_digit() {
    let schema =
        json!({"type": "object", "properties": {"amount": {"type": "integer", "maximum": 9_007_199_254_740_992_u64}}});
    let stack = Stack::recording(&[tool("transfer", schema)], &[], &[]);
    for above in ["9007199254740993", "9007199254740993e0", "90071992547409930e-1", "9007199254740992.0000000000000001"]
    {
        let request = call(&stack, "transfer", &format!(r#"{{"amount": {above}}}"#));
        assert_frame(&stack.refuses(&request, "arguments.invalid"), 200, -32602, Some(&json!(1)));
    }
    for within in ["9007199254740992", "9007199254740992.0", "9.007199254740992e15", "-90071992547409930"] {
        let request = call(&stack, "transfer", &format!(r#"{{"amount": {within}, "note": 12345678901234567890.12}}"#));
        stack.allows(&request);
        let forwarded = String::from_utf8(stack.upstream.last().body).expect("UTF-8");
        let expected = format!(r#""arguments":{{"amount": {within}, "note": 12345678901234567890.12}}"#);
        assert!(forwarded.contains(&expected), "{forwarded}");
    }
}

#[test]
fn arguments_uncheckable() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a listener that does not wait");
    let port = listener.local_addr().expect("its address").port();
    let remote =
        json!({"type": "object", "properties": {"a": {"$ref": format!("http://127.0.0.1:{port}/schema.json")}}});
    let stack = Stack::recording(&[tool("remote", remote), tool("__proto__", json!({"required": ["a"]}))], &[], &[]);
    for arguments in ["{}", r#"{"a": 1}"#] {
        let reply = stack.refuses(&call(&stack, "remote", arguments), "arguments.uncheckable");
        let body = assert_frame(&reply, 200, -32602, Some(&json!(1)));
        assert_eq!(body["error"]["data"]["error"], "arguments.uncheckable");
        assert!(!reply.text().contains("127.0.0.1"), "{reply}");
    }
    assert!(listener.accept().is_err(), "somebody fetched the schema");
    // No other tool suffers; one with an odd name behaves like any other.
    stack.allows(&stack.request(&fixture::search()));
    stack.allows(&call(&stack, "__proto__", r#"{"a": 1}"#));
    stack.refuses(&call(&stack, "__proto__", r#"{"__proto__": {"a": 1}}"#), "arguments.invalid");
    let log = stack.portcullis.log();
    assert!(log.contains("tool:remote: its inputSchema cannot be checked"), "{log}");
}

#[test]
fn a_costly_check_ends_and_refuses_one_call() {
    let double = |n: usize| json!({"allOf": [{"$ref": format!("#/$defs/d{n}")}, {"$ref": format!("#/$defs/d{n}")}]});
    let mut defs = json!({"d0": {"type": "string"}});
    for n in 1..60 {
        defs[format!("d{n}")] = double(n - 1);
    }
    let schema = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d59"}}, "$defs": defs});
    let stack = Stack::recording(&[tool("bomb", schema)], &[], &[]);
    stack.refuses(&call(&stack, "bomb", r#"{"a": "x"}"#), "arguments.uncheckable");
    stack.allows(&call(&stack, "bomb", "{}"));
    stack.allows(&stack.request(&fixture::search()));
}

#[test]
fn headers_mismatch_of_a_mirrored_argument() {
    let schema = json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "limit": {"type": "integer", "x-mcp-header": "Limit"},
        "zone": {"x-mcp-header": "Zone"},
    }});
    let stack = Stack::recording(&[tool("route", schema)], &[], &[]);
    let with = |arguments: &str, headers: &[(&str, &str)]| {
        headers.iter().fold(call(&stack, "route", arguments), |request, (name, value)| request.add(name, value))
    };
    for (arguments, headers) in [
        (r#"{"region": "us-west1"}"#, &[("mcp-param-region", "us-west1")][..]),
        (r#"{"region": "Hello, \u4e16界"}"#, &[("mcp-param-region", "=?base64?SGVsbG8sIOS4lueVjA==?=")]),
        (r#"{"region": "us west, 1"}"#, &[("mcp-param-region", "us west, 1")]),
        (r#"{"region": ""}"#, &[("mcp-param-region", "")]),
        (r#"{"limit": 42}"#, &[("mcp-param-limit", "42.0")]),
        (r#"{"zone": null}"#, &[]),
        ("{}", &[("mcp-param-other", "not one that is known here")]),
    ] {
        stack.allows(&with(arguments, headers));
    }
    for (arguments, headers) in [
        (r#"{"region": "us-west1"}"#, &[][..]),
        (r#"{"region": "us-west1"}"#, &[("mcp-param-region", "us-west2")]),
        (r#"{"region": "Hello"}"#, &[("mcp-param-region", "=?base64?SGVsbG8?=")]),
        (r#"{"limit": 42}"#, &[("mcp-param-limit", "43")]),
        (r#"{"zone": null}"#, &[("mcp-param-zone", "us-west1")]),
        ("{}", &[("mcp-param-region", "us-west1")]),
    ] {
        let reply = stack.refuses(&with(arguments, headers), "headers.mismatch");
        assert_frame(&reply, 400, -32020, Some(&json!(1)));
        assert!(!reply.text().contains("us-west"), "{reply}");
    }
}
