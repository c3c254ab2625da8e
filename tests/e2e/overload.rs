//! More than there is room for is refused by an answer, never by a gRPC error, and never waits in a queue without an end.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
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

/// Requests that a stranger begins and resets in one go, on one connection: Envoy cuts a connection off at 500.
const RESETS: u32 = 120;

#[test]
fn requests_that_are_reset_as_soon_as_they_begin_end_nobody_elses() {
    let stack = Stack::start();
    stack.upstream.script(|seen| {
        let found = json!({"count": 1, "cases": []});
        let result = json!({"resultType": "complete", "content": [], "structuredContent": found});
        let body = json!({"jsonrpc": "2.0", "id": seen.json()["id"], "result": result}).to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        Answer::raw(Vec::new()).wait(Duration::from_secs(2)).then(head.into_bytes()).then(body.into_bytes())
    });
    let (request, port) = (stack.request(&fixture::search()), stack.envoy.port);
    stack.allows(&request);
    std::thread::scope(|scope| {
        let under_way = scope.spawn(|| request.send(port));
        wait_for(Duration::from_secs(10), || (stack.upstream.count() == 2).then_some(())).expect("forwarded");
        // More than Portcullis can look at one by one, and all of it known before its exchange began.
        stack.portcullis.stop();
        let strangers: Vec<TcpStream> = (0..4).map(|_| reset_at_once(port)).collect();
        let streams = || stack.envoy.stat("cluster.portcullis.upstream_rq_total");
        wait_for(Duration::from_secs(10), || (streams() >= u64::from(4 * RESETS)).then_some(()))
            .unwrap_or_else(|| panic!("expected Envoy to ask about every one, it asked {} times", streams()));
        stack.portcullis.go_on();
        let reply = under_way.join().expect("a reply");
        assert_eq!((reply.status, reply.json()["result"]["resultType"].as_str()), (200, Some("complete")), "{reply}");
        drop(strangers);
    });
    stack.allows(&request);
    assert_eq!(stack.envoy.stat("cluster.portcullis.upstream_cx_total"), 1, "no connection was lost");
}

/// A connection on which every request is reset right behind its head.
fn reset_at_once(port: u16) -> TcpStream {
    let frame = |kind: u8, flags: u8, stream: u32, payload: &[u8]| {
        let length = u32::try_from(payload.len()).expect("a short frame").to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
    };
    let text = |text: &str| [&[u8::try_from(text.len()).expect("a short text")], text.as_bytes()].concat();
    // HPACK (RFC 7541): `:method: POST` and `:scheme: http` by their numbers, the rest literally.
    let mut head = vec![0x83, 0x86, 0x04];
    head.extend(text("/mcp"));
    head.push(0x01);
    head.extend(text("mcp.test"));
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    for stream in (1..).step_by(2).take(RESETS as usize) {
        bytes.extend(frame(1, 0x4, stream, &head));
        bytes.extend(frame(3, 0, stream, &8_u32.to_be_bytes()));
    }
    let mut socket = TcpStream::connect(("127.0.0.1", port)).expect("Envoy takes the connection");
    socket.write_all(&bytes).expect("Envoy reads");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket option");
    let read = socket.read(&mut [0; 64]).expect("Envoy speaks HTTP/2");
    assert!(read > 0, "expected Envoy's settings, it closed the connection");
    socket
}
