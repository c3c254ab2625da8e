//! Bodies that come slowly, in pieces, with trailers or not at all; callers that go away or do not listen.

use std::io::{Read as _, Write as _};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::client::Connection;
use crate::support::{Answer, Request, Stack, fixture, wait_for};

fn list() -> Value {
    fixture::rpc("tools/list", json!({}))
}

#[test]
fn body_timeout() {
    let stack = Stack::with(&[("  limits: {request", "  timeouts: {body: 200ms}\n  limits: {request")], &[]);
    let good = stack.request(&fixture::search());
    let half = &fixture::search().to_string().into_bytes()[..40];
    for request in [good.clone().stalled(half), good.clone().stalled(b"")] {
        for h2 in [false, true] {
            let send = || if h2 { request.send_h2(stack.envoy.port) } else { request.send(stack.envoy.port) };
            let reply = stack.refused_by("body.timeout", 0, send);
            assert_eq!((reply.status, &reply.json()["error"]["code"]), (408, &json!(-32600)), "{reply}");
        }
    }
    stack.allows(&good);
}

#[test]
fn overloaded() {
    let stack = Stack::with(&[("unmatched: deny", "unmatched: deny\nmax_streams: 1")], &[]);
    let good = stack.request(&fixture::search());
    let mut held = Connection::open(stack.envoy.port).expect("a connection");
    held.stream.write_all(&good.clone().stalled(b"{").bytes()).expect("it is sent");
    let open = || (stack.envoy.stat("cluster.portcullis.upstream_rq_active") == 1).then_some(());
    wait_for(Duration::from_secs(5), open).expect("the first call is open");
    let reply = stack.refuses(&good, "overloaded");
    assert!(reply.status == 503 && reply.header("retry-after").is_some(), "{reply}");
    drop(held);
    let free = wait_for(Duration::from_secs(5), || (stack.post(&fixture::search()).status == 200).then_some(()));
    assert!(free.is_some(), "expected the place to be free once its caller left");
}

#[test]
fn a_refused_call_is_refused_however_its_body_arrives() {
    let stack = Stack::start();
    let message = fixture::call("export_cases", json!({}));
    let (bytes, request) = (message.to_string().into_bytes(), stack.request(&message));
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    let forms = [
        request.clone().pieces(&[&bytes], &[]),
        request.clone().pieces(&single, &[]),
        request.clone().pieces(&[&bytes], &[("x-trailer", "1"), ("mcp-name", "search_cases")]),
        request.clone().pieces(&[&bytes, b""], &[]),
        request.clone().add("expect", "100-continue"),
    ];
    for form in forms {
        for reply in [stack.send(&form), form.send_h2(stack.envoy.port)] {
            let error = &reply.json()["error"]["data"]["error"];
            assert_eq!((reply.status, error), (200, &json!("policy.unpriced")), "{form:?}: {reply}");
        }
    }
    assert_eq!(stack.upstream.count(), 0);
}

#[test]
fn a_body_that_ends_early_is_never_forwarded() {
    let stack = Stack::start();
    let request = stack.request(&fixture::search());
    let whole = fixture::search().to_string().into_bytes();
    for _ in 0..10 {
        let mut connection = Connection::open(stack.envoy.port).expect("a connection");
        connection.stream.write_all(&request.clone().stalled(&whole).bytes()).expect("it is sent");
        drop(connection);
    }
    let idle = || (stack.envoy.stat("cluster.portcullis.upstream_rq_active") == 0).then_some(());
    wait_for(Duration::from_secs(5), idle).expect("no call stays open");
    // The last of them has come through Envoy when a call behind it has.
    stack.allows(&request);
    assert_eq!(stack.upstream.count(), 1);
}

/// The upstream's connection ends when the caller of its answer is gone.
fn leaves(stack: &Stack, answer: Answer, message: &Value, until: Option<&[u8]>) {
    let left = stack.upstream.left();
    stack.upstream.answer(answer.until_gone());
    let count = stack.upstream.count();
    let mut caller = Connection::open(stack.envoy.port).expect("a connection").stream;
    caller.write_all(&stack.request(message).bytes()).expect("it is sent");
    wait_for(Duration::from_secs(10), || (stack.upstream.count() > count).then_some(())).expect("the call arrives");
    let mut seen = Vec::new();
    while until.is_some_and(|until| !seen.windows(until.len()).any(|window| window == until)) {
        let mut buffer = [0; 4096];
        let read = caller.read(&mut buffer).expect("the answer goes on");
        assert!(read > 0, "expected the answer to go on, it ended: {}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&buffer[..read]);
    }
    drop(caller);
    let gone = wait_for(Duration::from_secs(10), || (stack.upstream.left() > left).then_some(()));
    assert!(gone.is_some(), "expected the upstream's connection to end with its caller's, it is still open");
}

#[test]
fn a_caller_that_leaves_mid_answer_ends_the_upstreams_too() {
    let stack = Stack::start();
    let progress =
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}});
    let events = Answer::sse().piece(format!("data: {progress}\n\n"));
    leaves(&stack, events.clone(), &fixture::search(), Some(b"notifications/progress"));
    leaves(&stack, events, &list(), Some(b"notifications/progress"));
    // Held back until it is whole: the caller has seen nothing of it.
    let half = Answer::chunked(200, &["content-type: application/json"]).piece("{\"jsonrpc\":");
    leaves(&stack, half, &fixture::search(), None);
    leaves(&stack, Answer::raw(""), &fixture::search(), None);
    stack.upstream.behave();
    stack.allows(&stack.request(&fixture::search()));
}

#[test]
fn an_answers_trailers_come_through() {
    let cluster = "  - name: cases\n    type: STATIC\n";
    let with_trailers = format!(
        "{cluster}    typed_extension_protocol_options:\n      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:\n        \"@type\": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions\n        explicit_http_config: {{http_protocol_options: {{enable_trailers: true}}}}\n"
    );
    let stack = Stack::with(&[], &[(cluster, &with_trailers)]);
    let result = json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "content": [], "tools": []}})
        .to_string();
    let in_pieces = Answer::chunked(200, &["content-type: application/json"]).piece(&result[..20]).piece(&result[20..]);
    let as_event = Answer::sse().piece(format!("data: {result}\n\n"));
    for message in [fixture::search(), list()] {
        for (answer, expected) in [(&in_pieces, &[("x-checksum", "1")][..]), (&as_event, &[])] {
            stack.upstream.answer(answer.clone().end(&["x-checksum: 1"]));
            let reply = stack.request(&message).send_h2(stack.envoy.port);
            assert!(reply.status == 200 && !reply.cut && reply.text().contains("\"complete\""), "{message}: {reply}");
            let trailers: Vec<_> = reply.trailers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            // A stream is over with its answer: whatever the server sends behind it goes nowhere.
            assert_eq!(trailers, expected, "{message}: {reply}");
        }
    }
}

/// So many callers ask for `answer`, over 5 MB of it, and read nothing; other calls are served all the same. The windows of
/// the cluster `portcullis` in edge.yaml are what this rests on: with Envoy's own, the fifth call or so is never answered.
/// The number of calls that then still wait.
fn unread(callers: usize, answer: Answer) -> u64 {
    // Small buffers towards the callers: the answers stand still between Portcullis and Envoy, not in the kernel.
    let listener = "    address: {socket_address: {address: 0.0.0.0, port_value: 8080}}\n";
    let small = format!(
        "{listener}    per_connection_buffer_limit_bytes: 32768\n    socket_options: [{{level: 1, name: 7, int_value: 8192, state: STATE_PREBIND}}]\n"
    );
    let stack = Stack::with(&[], &[(listener, &small)]);
    stack.upstream.script(move |seen| {
        if seen.header("x-big").is_empty() { crate::support::mcp::answer(seen) } else { answer.clone() }
    });
    let request = stack.request(&fixture::search());
    let greedy = request.clone().add("x-big", "1");
    let unread: Vec<_> = (0..callers)
        .map(|_| {
            let mut caller = Connection::open_narrow(stack.envoy.port).expect("a connection");
            caller.stream.write_all(&greedy.bytes()).expect("it is sent");
            caller
        })
        .collect();
    let arrived = wait_for(Duration::from_secs(30), || (stack.upstream.count() >= callers).then_some(()));
    assert!(arrived.is_some(), "expected {callers} calls at the upstream, {} came", stack.upstream.count());
    for _ in 0..8 {
        assert_eq!(stack.send(&request).status, 200);
    }
    assert_eq!(stack.request(&list()).send_h2(stack.envoy.port).status, 200);
    // So is one who asks for as much and reads it.
    let reply = stack.send(&greedy);
    assert!(reply.status == 200 && !reply.cut && reply.body.len() > 5_000_000, "{} bytes", reply.body.len());
    let waiting = stack.envoy.stat("http.edge.downstream_rq_active");
    drop(unread);
    waiting
}

#[test]
fn a_hundred_unread_streams_do_not_hold_up_a_call() {
    // Comments: what is passed on, not how it is judged, is the matter here.
    let comment = format!(": {}\n\n", "x".repeat(20_000));
    let result = json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "content": [], "structuredContent": {"count": 1}}});
    let events = (0..255).fold(Answer::sse(), |answer, _| answer.piece(&comment));
    assert_eq!(unread(100, events.piece(format!("data: {result}\n\n")).end(&[])), 100);
}

/// Fewer of them, because each must be read to its end before any of it goes down; then all of it goes to Envoy at once.
#[test]
fn six_unread_documents_do_not_hold_up_a_call() {
    let text = "x".repeat(5_000_000);
    let result = json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "content": [{"type": "text", "text": text}], "structuredContent": {"count": 1}}});
    unread(6, Answer::json(&result));
}

#[test]
fn requests_without_a_body_are_decided_on_their_headers() {
    let stack = Stack::start();
    let options = Request::new("OPTIONS", "/mcp").bearer(&stack.reader());
    for (request, reason) in [
        (options.clone(), "method.not_allowed"),
        (Request::new("HEAD", "/mcp").bearer(&stack.reader()), "method.not_allowed"),
        (Request::new("HEAD", "/elsewhere"), "route.unmatched"),
        (options.path("/elsewhere"), "route.unmatched"),
    ] {
        stack.refuses(&request, reason);
        stack.refused_by(reason, 0, || request.send_h2(stack.envoy.port));
    }
}
