//! More than there is room for is refused by an answer, never by a gRPC error, and never waits in a queue without an end.

use std::time::Duration;

use serde_json::json;

use crate::support::{Answer, Stack, fixture, mcp, wait_for};

#[test]
fn calls_that_wait_for_a_listing_are_bounded_in_bytes() {
    let stack = Stack::with(&[("unmatched: deny", "unmatched: deny\nheld_answers: 512B")], &[]);
    stack.upstream.script_own(|seen| {
        let message = seen.json();
        let method = message["method"].as_str().unwrap_or_default();
        let result = mcp::result(method, &message["params"]).unwrap_or_default();
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        Answer::raw(Vec::new()).wait(Duration::from_millis(1_500)).then(head.into_bytes()).then(body.into_bytes())
    });
    let (request, port) = (stack.request(&fixture::search()), stack.envoy.port);
    std::thread::scope(|scope| {
        // The first one waits while the server is listed, and takes all there is.
        let first = scope.spawn(|| request.send(port));
        wait_for(Duration::from_secs(10), || (stack.upstream.own_count("tools/list") > 0).then_some(()))
            .expect("listed");
        let second = request.send(port);
        assert_eq!(
            (second.status, second.json()["error"]["data"]["error"].as_str()),
            (200, Some("overloaded")),
            "{second}"
        );
        assert_eq!(second.json()["id"], 1);
        assert!(second.json()["error"]["data"]["details"]["retry_after_seconds"].is_u64(), "{second}");
        assert_eq!(stack.upstream.count(), 0, "neither has reached the server");
        assert_eq!(first.join().expect("a reply").status, 200);
    });
    // What waited is given back.
    stack.allows(&request);
}
