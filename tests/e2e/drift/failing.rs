//! When our own listing fails nothing is known, and so nothing is allowed; once it works, calls run.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{details, listed};
use crate::support::{Answer, Seen, Stack, fixture, mcp, wait_for};

/// A server that answers its callers but lists like `script` to us.
fn refuses_until_it_lists(script: impl Fn(&Seen) -> Answer + Send + Sync + 'static) {
    let bearer = "    credential: {bearer";
    let stack = Stack::with(&[(bearer, &format!("    timeout: 1s\n{bearer}"))], &[]);
    stack.upstream.script_own(script);
    let (search, start) = (stack.request(&fixture::search()), Instant::now());
    let reply = stack.refuses(&search, "definition.unverified");
    assert!(start.elapsed() < Duration::from_secs(5), "it took {:?}", start.elapsed());
    let seconds = details(&reply, "definition.unverified")["retry_after_seconds"].clone();
    assert!(seconds.as_u64().is_some_and(|seconds| (1..=5).contains(&seconds)), "{reply}");
    assert!(stack.portcullis.log().contains("the server's definitions cannot be listed"), "{}", stack.portcullis.log());
    // Remembered for five seconds: the next ones are refused without another listing.
    for _ in 0..20 {
        details(&stack.refuses(&search, "definition.unverified"), "definition.unverified");
    }
    let (count, spent) = (listed(&stack), start.elapsed());
    let most = 1 + spent.as_secs() / 5;
    assert!(count >= 1 && count as u64 <= most, "expected at most {most} listings in {spent:?}, got {count}");
    // What costs no listing still works.
    stack.allows(&stack.request(&fixture::rpc("server/discover", json!({}))));
    // And it recovers by itself.
    stack.upstream.script_own(mcp::answer);
    let runs = wait_for(Duration::from_secs(15), || stack.send(&search).json().get("result").cloned());
    assert!(runs.is_some(), "expected calls to run once the server lists again:\n{}", stack.portcullis.log());
}

#[test]
fn an_error_status() {
    refuses_until_it_lists(|_| Answer::http(500, &[], "no"));
}

#[test]
fn a_listing_that_never_comes() {
    refuses_until_it_lists(|_| Answer::default().until_gone());
}

#[test]
fn a_listing_for_somebody_else() {
    refuses_until_it_lists(|seen| {
        let message = seen.json();
        let result = mcp::result(message["method"].as_str().unwrap_or_default(), &json!({}));
        Answer::json(&json!({"jsonrpc": "2.0", "id": "another", "result": result}))
    });
}

#[test]
fn half_a_listing() {
    refuses_until_it_lists(|_| {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{\"jsonrpc\":\"2.0\",";
        Answer::raw(head).close()
    });
}
