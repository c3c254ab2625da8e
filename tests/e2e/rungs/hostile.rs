//! Messages that are half, late, twice, huge or out of place, from callers and from upstreams.

use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{assert_frame, assert_plain};
use crate::support::client::Connection;
use crate::support::{Answer, Request, Stack, fixture, wait_for};

fn list() -> Value {
    fixture::rpc("tools/list", json!({}))
}

fn listing() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "tools": []}})
}

fn progress() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}})
}

fn quick() -> (&'static str, &'static str) {
    ("  limits: {request", "  timeouts: {body: 1s, answer: 1s}\n  limits: {request")
}

/// One more audit record than `before`, and no second one; that record.
#[track_caller]
fn one_record(stack: &Stack, before: usize) -> Value {
    stack.portcullis.audit(before + 1);
    std::thread::sleep(Duration::from_millis(100));
    stack.portcullis.audit(before + 1).pop().expect("a record")
}

/// The one event of a stream that was refused.
#[track_caller]
fn assert_refused_inside(reply: &crate::support::Reply) {
    let last = reply.events().pop().unwrap_or_else(|| panic!("expected the error event, got {reply}"));
    assert_eq!((reply.status, reply.cut, &last["id"]), (200, false, &json!(1)), "{reply}");
    assert_eq!(last["error"]["code"], -32010, "{reply}");
}

#[test]
fn a_stream_that_is_all_head_is_refused_with_its_own_status() {
    let stack = Stack::start();
    stack.upstream.answer(Answer::http(200, &["content-type: text/event-stream"], ""));
    let reply = stack.refuses_answer(&stack.request(&list()), "answer.unreadable");
    assert_frame(&reply, 502, -32010, Some(&json!(1)));
}

#[test]
fn a_stream_without_an_answer_ends_with_the_error_event() {
    let stack = Stack::start();
    let whole = format!("data: {}\n\n", listing());
    let streams = [
        Answer::sse().end(&[]),
        Answer::sse().end(&["x-trailer: 1"]),
        Answer::sse().piece(format!("data: {}\n\n", progress())).end(&["x-trailer: 1"]),
        Answer::sse().piece(": hello\n\n").end(&[]),
        Answer::sse().piece("data:\n\nevent: message\ndata\n\n").end(&[]),
        // The last event is never completed: nobody may dispatch it.
        Answer::sse().piece(&whole[..whole.len() - 1]).end(&[]),
        Answer::sse().piece(&whole[..whole.len() - 2]).end(&[]),
        Answer::sse().piece(&whole[..20]).end(&["x-trailer: 1"]),
    ];
    for stream in streams {
        stack.upstream.answer(stream);
        let before = stack.portcullis.audited();
        assert_refused_inside(&stack.post(&list()));
        assert_eq!(one_record(&stack, before)["reason"], "answer.unreadable");
    }
}

#[test]
fn nothing_follows_the_answer_in_a_stream() {
    let stack = Stack::start();
    let answer = format!("data: {}\n\n", listing());
    let mut second = listing();
    second["result"]["tools"] = json!([{"name": "export_cases"}]);
    let second = format!("data: {second}\n\n");
    let streams = [
        Answer::sse().piece(format!("{answer}{second}")).end(&[]),
        Answer::sse().piece(&answer).wait(Duration::from_millis(100)).piece(&second).end(&["x-trailer: 1"]),
        Answer::sse().piece(format!("{answer}{}", progress())).end(&[]),
    ];
    for stream in streams {
        stack.upstream.answer(stream);
        let before = stack.portcullis.audited();
        let reply = stack.post(&list());
        assert_eq!((reply.cut, reply.events().len()), (false, 1), "{reply}");
        assert!(!reply.text().contains("export_cases"), "{reply}");
        assert_eq!(one_record(&stack, before)["decision"], "allow");
    }
}

#[test]
fn a_line_or_an_event_over_the_cap_ends_the_stream() {
    let stack = Stack::start();
    let filler = "x".repeat(2 << 20);
    for stream in [format!(": {filler}\n\n"), format!("data: {filler}\n\n"), format!(": {filler}"), filler.clone()] {
        stack.upstream.answer(Answer::sse().piece(stream).wait(Duration::from_millis(200)).end(&[]));
        let before = stack.portcullis.audited();
        assert_refused_inside(&stack.post(&list()));
        assert_eq!(one_record(&stack, before)["reason"], "answer.too_large");
    }
}

#[test]
fn listings_that_are_none_are_refused() {
    let stack = Stack::start();
    for result in [
        json!([]),
        json!("tools"),
        json!({}),
        json!({"tools": {}}),
        json!({"tools": null}),
        json!({"prompts": []}),
        json!({"tools": [], "Tools": [{"name": "export_cases"}]}),
        json!({"tools": [], "resultType": "input_required"}),
    ] {
        stack.upstream.answer(Answer::json(&json!({"jsonrpc": "2.0", "id": 1, "result": result})));
        let reply = stack.refuses_answer(&stack.request(&list()), "answer.unreadable");
        assert_frame(&reply, 502, -32010, Some(&json!(1)));
    }
    let one = fixture::definitions("tool:")[0].clone();
    let (mut lower, mut other) = (one.clone(), one.clone());
    lower["Name"] = json!("export_cases");
    other["name"] = json!(1);
    let tools = json!([one, lower, other, 7, null, one]);
    stack.upstream.answer(Answer::json(&json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}})));
    let result = stack.allows(&stack.request(&list())).json()["result"].clone();
    assert_eq!(result, json!({"tools": [one, one], "cacheScope": "private"}));
}

#[test]
fn statuses_without_a_body_are_no_answers() {
    let stack = Stack::start();
    let answers = [
        Answer::raw("HTTP/1.1 204 No Content\r\n\r\n"),
        Answer::raw("HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\n\r\n"),
        Answer::http(202, &[], ""),
        Answer::chunked(202, &[]).end(&[]),
        Answer::http(500, &[], ""),
        Answer::http(503, &["content-type: text/plain"], "busy"),
    ];
    for answer in answers {
        stack.upstream.answer(answer);
        let reply = stack.refuses_answer(&stack.request(&fixture::search()), "answer.unreadable");
        assert_frame(&reply, 502, -32010, Some(&json!(1)));
    }
    let early = Answer::raw("HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n").then({
        let body = listing().to_string();
        format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
            .into_bytes()
    });
    stack.upstream.answer(early);
    assert_eq!(stack.allows(&stack.request(&list())).json()["result"]["tools"], json!([]));
}

#[test]
fn body_timeout() {
    let stack = Stack::with(&[quick()], &[]);
    let bytes = stack.request(&fixture::search()).bytes();
    let mut connection = Connection::open(stack.envoy.port).expect("a connection");
    let before = stack.portcullis.audited();
    let began = Instant::now();
    let reply = connection.send_raw(&bytes[..bytes.len() - 5], false).expect("a reply");
    assert!(began.elapsed() < Duration::from_secs(5), "after {:?}", began.elapsed());
    assert_frame(&reply, 408, -32600, None);
    let record = one_record(&stack, before);
    assert_eq!((&record["reason"], &record["wire_status"]), (&json!("body.timeout"), &json!("408")), "{record}");
    assert_eq!(stack.upstream.count(), 0);
}

#[test]
fn an_answer_that_does_not_end_is_refused_in_time() {
    let stack = Stack::with(&[quick()], &[]);
    let slow = Duration::from_secs(6);
    let whole = listing().to_string();
    stack.upstream.answer(Answer::chunked(200, &["content-type: application/json"]).piece(&whole[..20]).wait(slow));
    let began = Instant::now();
    let reply = stack.refuses_answer(&stack.request(&list()), "answer.unreadable");
    assert_frame(&reply, 502, -32010, Some(&json!(1)));
    stack.upstream.answer(Answer::sse().piece(format!("data: {}", &whole[..20])).wait(slow));
    let before = stack.portcullis.audited();
    assert_refused_inside(&stack.post(&list()));
    stack.portcullis.audit_of("answer.unreadable", before);
    // One byte at a time, each in time, is no more in time.
    let dripping = whole.bytes().fold(Answer::chunked(200, &["content-type: application/json"]), |answer, byte| {
        answer.piece([byte]).wait(Duration::from_millis(100))
    });
    stack.upstream.answer(dripping.end(&[]));
    stack.refuses_answer(&stack.request(&list()), "answer.unreadable");
    assert!(began.elapsed() < slow, "after {:?}", began.elapsed());
}

#[test]
fn overloaded() {
    let stack = Stack::with(&[("unmatched: deny", "unmatched: deny\nmax_streams: 1")], &[]);
    stack.upstream.answer(Answer::sse().piece(": wait\n\n").wait(Duration::from_secs(10)));
    let mut holder = Connection::open(stack.envoy.port).expect("a connection");
    holder.stream.write_all(&stack.request(&list()).bytes()).expect("it is sent");
    wait_for(Duration::from_secs(5), || (stack.upstream.count() == 1).then_some(())).expect("the first call");
    for request in [stack.request(&fixture::search()), Request::get("/mcp"), Request::get("/elsewhere")] {
        let reply = stack.refuses(&request, "overloaded");
        assert_frame(&reply, 503, -32000, None);
        assert_eq!(reply.header("retry-after"), Some("1"), "{reply}");
    }
    drop(holder);
    stack.upstream.behave();
    let free = wait_for(Duration::from_secs(5), || (stack.post(&fixture::search()).status == 200).then_some(()));
    assert!(free.is_some(), "expected the place to be free once its holder has left");
}

#[test]
fn a_request_without_an_id_gets_no_answer() {
    let stack = Stack::start();
    let mut message = fixture::search();
    message.as_object_mut().expect("an object").remove("id");
    for accepted in [Answer::http(202, &[], ""), Answer::http(200, &["content-type: text/event-stream"], "")] {
        stack.upstream.answer(accepted);
        let reply = stack.post(&message);
        assert!((200..300).contains(&reply.status) && reply.body.is_empty() && !reply.cut, "{reply}");
    }
    stack.upstream.answer(Answer::json(&listing()));
    assert_frame(&stack.refuses_answer(&stack.request(&message), "answer.mismatched"), 502, -32010, None);
    // It climbs the whole ladder all the same.
    let mut refused = fixture::call("export_cases", json!({}));
    refused.as_object_mut().expect("an object").remove("id");
    assert_plain(&stack.refuses(&stack.request(&refused), "policy.unpriced"), 403, "policy.unpriced", "permission");
    assert_frame(&stack.refuses(&stack.request(&message).without("mcp-name"), "headers.mismatch"), 400, -32020, None);
}

#[test]
fn a_notification_with_an_id_is_no_message() {
    let stack = Stack::start();
    let mut message = progress();
    message["id"] = json!(1);
    let reply = stack.refuses(&stack.request(&message), "rpc.invalid");
    assert_frame(&reply, 400, -32600, Some(&json!(1)));
}

#[test]
fn ids_of_any_length_come_back() {
    let stack = Stack::start();
    let digits = "9".repeat(1000);
    let long = format!("\"{}\"", "i".repeat(700_000));
    for id in [digits.as_str(), long.as_str()] {
        let body = |message: Value| message.to_string().replace("\"id\":1,", &format!("\"id\":{id},"));
        let refused = fixture::call("export_cases", json!({}));
        let reply = stack.refuses(&stack.request(&refused).body(body(refused.clone())), "policy.unpriced");
        assert!(reply.status == 200 && reply.text().contains(id), "{}", reply.status);
        let answer = listing().to_string().replace("\"id\":1", &format!("\"id\":{id}"));
        stack.upstream.answer(Answer::text("application/json", &answer));
        let reply = stack.send(&stack.request(&list()).body(body(list())));
        assert!(reply.status == 200 && reply.text().contains(id), "{}", reply.status);
    }
}

#[test]
fn routing_headers_do_not_lie_where_no_mirror_is_defined() {
    let stack = Stack::start();
    for request in [
        stack.request(&list()).add("mcp-name", "search_cases"),
        stack.request(&list()).add("mcp-name", ""),
        stack.request(&fixture::search()).set("mcp-name", "=?base64?!!?="),
    ] {
        let reply = stack.send(&request);
        assert_eq!((reply.status, reply.json()["error"]["code"].as_i64()), (400, Some(-32020)), "{reply}");
    }
    let notification = stack.request(&progress()).set("mcp-method", "tools/call");
    assert_frame(&stack.refuses(&notification, "headers.mismatch"), 400, -32020, None);
    assert_eq!(stack.upstream.count(), 0);
}

#[test]
fn repeated_headers_over_http_2() {
    let stack = Stack::start();
    let good = stack.request(&fixture::search());
    for name in ["mcp-method", "mcp-name", "mcp-protocol-version", "authorization", "content-type"] {
        let value = good.headers.iter().find(|(known, _)| known == name).expect("it is there").1.clone();
        let request = good.clone().add(name, &value);
        let reply = stack.refused_by("headers.malformed", 0, || request.send_h2(stack.envoy.port));
        assert_eq!(reply.status, 400, "{name}: {reply}");
    }
}

#[test]
fn metadata_is_read_only() {
    let stack = Stack::start();
    let path = "/.well-known/oauth-protected-resource/mcp";
    for request in [
        Request::new("POST", path).body("{}"),
        Request::new("DELETE", path),
        Request::get(path).body("{}"),
        stack.request(&fixture::search()).path(path),
    ] {
        let reply = stack.refuses(&request, "method.not_allowed");
        assert_frame(&reply, 405, -32000, None);
        assert_eq!(reply.header("allow"), Some("GET, HEAD, OPTIONS"), "{reply}");
    }
}

#[test]
fn connection_cannot_name_what_is_no_header() {
    let stack = Stack::start();
    for named in ["foo bar, x-private", "(x), x-private", "transfer-encoding, x-private"] {
        let body = fixture::search().to_string();
        let request = stack.request(&fixture::search()).add("connection", named).add("x-private", "1");
        for request in [request.clone(), request.pieces(&[body.as_bytes()], &[])] {
            stack.allows(&request);
            let seen = stack.upstream.last();
            assert_eq!((seen.header("x-private").len(), seen.body.as_slice()), (0, body.as_bytes()), "{named}");
            assert_eq!(seen.header("mcp-name"), ["search_cases"], "{named}");
        }
    }
}

#[test]
fn callers_that_go_away_at_any_time_leave_one_record() {
    let stack = Stack::start();
    stack.upstream.answer(Answer::sse().piece(": wait\n\n").wait(Duration::from_secs(2)).end(&[]));
    let bytes = stack.request(&list()).bytes();
    for (sent, decision) in [(bytes.len() - 5, "abort"), (bytes.len(), "allow")] {
        let (before, reached) = (stack.portcullis.audited(), stack.upstream.count());
        let mut connection = Connection::open(stack.envoy.port).expect("a connection");
        connection.stream.write_all(&bytes[..sent]).expect("it is sent");
        if decision == "allow" {
            wait_for(Duration::from_secs(5), || (stack.upstream.count() > reached).then_some(())).expect("the call");
        } else {
            std::thread::sleep(Duration::from_millis(300));
        }
        drop(connection);
        let record = one_record(&stack, before);
        assert_eq!(record["decision"], decision, "{record}");
    }
}

#[test]
fn envoys_own_replies_leave_one_record_and_no_verdict() {
    let stack = Stack::start();
    let before = stack.portcullis.audited();
    let huge = vec![b' '; 4 << 20];
    let reply = stack.send(&stack.request(&fixture::search()).pieces(&[&huge], &[]));
    assert_eq!(reply.status, 413, "{reply}");
    let record = one_record(&stack, before);
    assert_eq!((&record["decision"], &record["wire_status"]), (&json!("abort"), &json!("413")), "{record}");
    assert_eq!(stack.upstream.count(), 0);
    // Of an upstream that is not there Envoy speaks after the verdict: in its place a frame that knows the id.
    stack.upstream.answer(Answer::raw("").close());
    let reply = stack.refuses_answer(&stack.request(&fixture::search()), "answer.unreadable");
    assert_frame(&reply, 502, -32010, Some(&json!(1)));
}

#[test]
fn an_upstream_that_answers_before_it_read_the_request() {
    let stack = Stack::start();
    let mut body = fixture::search().to_string().into_bytes();
    body.resize(1 << 20, b' ');
    let refusal = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "no"}});
    stack.upstream.answer(
        Answer::http(400, &["content-type: application/json", "connection: close"], refusal.to_string()).close(),
    );
    let reply = stack.send(&stack.request(&fixture::search()).body(body));
    assert_eq!((reply.status, reply.json()), (400, refusal), "{reply}");
}

#[test]
fn unscreened_answers_pass_and_listings_do_not() {
    let stack = Stack::with(&[("  limits: {request", "  screen: off\n  limits: {request")], &[]);
    stack.upstream.answer(Answer::text("text/html", "<html>"));
    let before = stack.portcullis.audited();
    let reply = stack.post(&fixture::search());
    assert_eq!((reply.status, reply.text().as_str()), (200, "<html>"), "{reply}");
    assert_eq!(one_record(&stack, before)["wire_status"], "unknown");
    assert_frame(&stack.refuses_answer(&stack.request(&list()), "answer.unreadable"), 502, -32010, Some(&json!(1)));
    stack.upstream.answer(Answer::http(401, &["www-authenticate: Bearer", "set-cookie: a=b"], "no"));
    let reply = stack.post(&fixture::search());
    assert_eq!(
        (reply.status, reply.header("www-authenticate"), reply.header("set-cookie")),
        (401, None, None),
        "{reply}"
    );
}

#[test]
fn trailers_are_no_body() {
    let stack = Stack::start();
    let trailers = [("x-trailer", "1"), ("mcp-method", "tools/list")];
    for pieces in [&[][..], &[b"".as_slice()], &[b"".as_slice(), b"".as_slice()]] {
        let request = stack.request(&fixture::search()).pieces(pieces, &trailers);
        for reply in [request.send_h2(stack.envoy.port), stack.send(&request)] {
            assert!((400..500).contains(&reply.status), "{} pieces: {reply}", pieces.len());
        }
    }
    assert_eq!(stack.upstream.count(), 0);
}

/// Plain HTTP beside MCP on the same shipped routes.
fn plain() -> Stack {
    Stack::with(
        &[
            ("kind: mcp", "kind: http"),
            ("  protocol: [\"2026-07-28\"]\n  mode: enforce\n", ""),
            ("  policy: {file: policy.yaml}\n  record: {file: records/cases.yaml}\n", ""),
            ("  capability_scopes: {\"tool:update_case\": [cases:write]}\n", ""),
            ("    url: http", "    # http"),
            ("  limits: {", "  # {"),
            ("  denials: {", "  # {"),
        ],
        &[],
    )
}

#[test]
fn plain_http_is_judged_by_identity_and_nothing_else() {
    let stack = plain();
    stack.upstream.answer(Answer::http(401, &["x-private: 1"], "anything"));
    let token = stack.reader();
    let huge = vec![b'x'; 900_000];
    for request in [
        Request::get("/mcp?x=1"),
        Request::new("DELETE", "/mcp"),
        Request::new("PUT", "/mcp").body("text"),
        Request::new("POST", "/mcp").pieces(&[&huge], &[]),
        Request::new("POST", "/mcp").add("content-type", "text/plain").body(huge.clone()),
    ] {
        let (before, reached) = (stack.portcullis.audited(), stack.upstream.count());
        let request = request.add("cookie", "a=b");
        let refused = stack.send(&request);
        assert_eq!((refused.status, stack.upstream.count()), (401, reached), "{refused}");
        assert!(refused.header("www-authenticate").is_some(), "{refused}");
        let reply = stack.send(&request.bearer(&token));
        assert_eq!((reply.text().as_str(), stack.upstream.count()), ("anything", reached + 1), "{reply}");
        let seen = stack.upstream.last();
        assert_eq!(seen.header("authorization"), [format!("Bearer {}", fixture::CREDENTIAL)]);
        assert!(seen.header("cookie").is_empty());
        let records = stack.portcullis.audit(before + 2);
        assert_eq!(
            (&records[before]["reason"], &records[before + 1]["decision"]),
            (&json!("token.missing"), &json!("allow"))
        );
        assert_eq!(records[before + 1]["wire_status"], "unknown");
    }
    let upgrade = Request::get("/mcp").bearer(&token).add("connection", "upgrade").add("upgrade", "websocket");
    let reply = stack.send(&upgrade);
    assert!((400..500).contains(&reply.status), "{reply}");
}
