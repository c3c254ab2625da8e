//! A real browser, with pages of an origin that may call and of one that may not.

use std::process::Command;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::clients::said;
use crate::support::{Stack, free_port, root, substitute};

/// What script in a page may read of one answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    status: u16,
    /// `cors`: read across origins. `opaque`: sent, and nothing of the answer may be read.
    r#type: String,
    headers: Value,
    body: String,
}

impl Answer {
    #[track_caller]
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|fault| panic!("expected JSON, got {fault}: {self:?}"))
    }
}

/// The whole visit (cors.mjs).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    listing: Answer,
    called: Answer,
    refused: Answer,
    challenged: Answer,
    metadata: Answer,
    /// The browser's own error; the page learns nothing else.
    foreign: Value,
    unasked: Answer,
}

/// The shipped configurations, with the page's origin in the place of the example's.
fn stack(page: u16) -> Stack {
    let origin = format!("http://127.0.0.1:{page}");
    let edit = |text: String| substitute(&text, &[("https://app.example.com", &origin)]);
    Stack::made(None, |config, _| edit(config), |edge, _| edit(edge))
}

fn visit(stack: &Stack, page: u16) -> Seen {
    let mut command = Command::new(root().join(".tools/node"));
    command
        .arg(root().join("tests/clients/browser/cors.mjs"))
        .arg(format!("http://127.0.0.1:{}/mcp", stack.envoy.port))
        .args([stack.reader(), page.to_string()])
        .env("TOOLS_DIR", root().join(".tools"))
        .env("TMPDIR", stack.dir.path());
    serde_json::from_value(said("browser", command, stack.dir.path())).expect("a visit")
}

#[test]
fn a_page_of_an_allowed_origin_reads_listings_and_refusals_and_another_is_blocked_twice() {
    let page = free_port();
    let stack = stack(page);
    let seen = visit(&stack, page);
    for answer in [&seen.listing, &seen.called, &seen.refused, &seen.challenged, &seen.metadata] {
        assert_eq!(answer.r#type, "cors", "{answer:?}");
    }
    let tools: Vec<_> = seen.listing.json()["result"]["tools"].as_array().expect("a listing").clone();
    assert_eq!((seen.listing.status, tools.len(), &tools[0]["name"]), (200, 1, &json!("search_cases")));
    assert_eq!(seen.called.json()["result"]["structuredContent"]["count"], 1);
    let refusal = seen.refused.json();
    assert_eq!((seen.refused.status, &refusal["id"], &refusal["error"]["code"]), (200, &json!("p1"), &json!(-32000)));
    assert_eq!(refusal["error"]["data"]["error"], "policy.unpriced", "{refusal}");
    // The client finds out where to get a token, across origins.
    assert_eq!(seen.challenged.status, 401);
    let challenge = seen.challenged.headers["www-authenticate"].as_str().unwrap_or_default();
    assert!(challenge.starts_with("Bearer ") && challenge.contains("resource_metadata="), "{:?}", seen.challenged);
    assert_eq!((seen.metadata.status, &seen.metadata.json()["resource"]), (200, &json!("https://mcp.test/mcp")));
    // The other page: its preflight has no answer that allows it, and what needs no preflight is refused by its origin.
    assert_eq!(seen.foreign, json!({"blocked": "TypeError"}));
    assert_eq!((seen.unasked.r#type.as_str(), seen.unasked.status), ("opaque", 0));
    stack.portcullis.audit_of("method.not_allowed", 0);
    stack.portcullis.audit_of("origin.refused", 0);
    let decided = |line: &Value| (line["method"].clone(), line["details"].clone());
    let log: Vec<_> = stack.envoy.access_log(8).iter().map(decided).collect();
    for (method, details) in [
        ("OPTIONS", "cors_response"),
        ("OPTIONS", "portcullis_method.not_allowed"),
        ("POST", "portcullis_origin.refused"),
    ] {
        let times = log.iter().filter(|line| **line == (json!(method), json!(details))).count();
        assert!(times > 0, "expected {method} {details} in {log:?}");
    }
    // One listing and one call are all that the server saw.
    assert_eq!(stack.upstream.count(), 2, "{:#?}", stack.upstream.seen());
}
