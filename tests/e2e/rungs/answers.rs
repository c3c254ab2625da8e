//! Rung 18: answers that must be read and cannot be trusted.

use std::time::Duration;

use serde_json::{Value, json};

use super::assert_frame;
use crate::support::client::Connection;
use crate::support::{Answer, Stack, fixture};

fn list() -> Value {
    fixture::rpc("tools/list", json!({}))
}

#[test]
fn answer_unreadable() {
    let stack = Stack::start();
    let result = json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"}});
    let strange = json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "surprise", "tools": []}});
    let json_type = "content-type: application/json";
    let answers = [
        Answer::http(200, &[json_type, "content-encoding: gzip"], [0x1f, 0x8b, 8, 0]),
        Answer::text("text/html", "<html>"),
        Answer::http(200, &[], result.to_string()),
        Answer::text("application/json", "not json"),
        Answer::text("application/json", "[]"),
        Answer::text("application/json", ""),
        Answer::text("application/json", &format!("{result}{result}")),
        Answer::json(&strange),
        Answer::http(302, &["location: https://evil.example/"], ""),
        Answer::http(307, &["location: https://evil.example/", json_type], result.to_string()),
        Answer::http(204, &[], ""),
    ];
    for answer in answers {
        stack.upstream.answer(answer);
        let reply = stack.refuses_answer(&stack.request(&list()), "answer.unreadable");
        assert_frame(&reply, 502, -32010, Some(&json!(1)));
        assert_eq!(reply.header("location"), None, "{reply}");
    }
    stack.upstream.behave();
    stack.allows(&stack.request(&list()));
}

#[test]
fn an_answer_that_does_not_begin_or_does_not_end_in_time_is_refused() {
    let knobs = "  denials: {policy_status";
    let stack = Stack::with(&[(knobs, &format!("  timeouts: {{wait: 300ms, answer: 300ms}}\n{knobs}"))], &[]);
    let long = Duration::from_secs(20);
    let never_begins = Answer::raw("").wait(long);
    let never_ends = Answer::chunked(200, &["content-type: application/json"]).piece("{\"jsonrpc\":").wait(long);
    for answer in [never_begins, never_ends] {
        stack.upstream.answer(answer);
        let reply = stack.refuses_answer(&stack.request(&list()), "answer.unreadable");
        assert_frame(&reply, 502, -32010, Some(&json!(1)));
        assert!(reply.json()["error"]["message"].as_str().unwrap().contains("in time"), "{reply}");
    }
    // Half an event of a running stream: the error event, then the end.
    stack.upstream.answer(Answer::sse().piece(": hello\n\ndata: {").wait(long));
    let reply = stack.post(&list());
    assert!(!reply.cut, "{reply}");
    let events = reply.events();
    let [event] = events.as_slice() else { panic!("expected the error event, got {reply}") };
    assert_eq!((&event["id"], &event["error"]["code"]), (&json!(1), &json!(-32010)), "{reply}");
}

#[test]
fn answer_too_large() {
    let stack = Stack::start();
    let big = json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "tools": [], "pad": "x".repeat(2 << 20)}});
    stack.upstream.answer(Answer::json(&big));
    let reply = stack.refuses_answer(&stack.request(&list()), "answer.too_large");
    assert_frame(&reply, 502, -32010, Some(&json!(1)));
}

#[test]
fn answer_mismatched() {
    let stack = Stack::start();
    for id in [json!(2), json!("1"), Value::Null] {
        stack.upstream.answer(Answer::json(
            &json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "tools": []}}),
        ));
        let reply = stack.refuses_answer(&stack.request(&list()), "answer.mismatched");
        assert_frame(&reply, 502, -32010, Some(&json!(1)));
    }
    // Ids compare by value; an error without one passes on a status that says so.
    stack.upstream.answer(Answer::text(
        "application/json",
        r#"{"jsonrpc":"2.0","id":"\u0061","result":{"resultType":"complete","tools":[]}}"#,
    ));
    let mut message = list();
    message["id"] = json!("a");
    stack.allows(&stack.request(&message));
    let error = json!({"jsonrpc": "2.0", "error": {"code": -32603, "message": "broken"}});
    stack.upstream.answer(Answer::http(400, &["content-type: application/json"], error.to_string()));
    let reply = stack.post(&list());
    assert_eq!((reply.status, reply.json()), (400, error), "{reply}");
}

#[test]
fn upstream_unauthorized() {
    let stack = Stack::start();
    for status in [401, 403] {
        stack.upstream.answer(Answer::http(
            status,
            &["www-authenticate: Bearer resource_metadata=\"https://evil.example\"", "set-cookie: a=b"],
            "no",
        ));
        let reply = stack.refuses_answer(&stack.request(&list()), "upstream.unauthorized");
        assert_frame(&reply, 502, -32010, Some(&json!(1)));
        assert_eq!((reply.header("www-authenticate"), reply.header("set-cookie")), (None, None), "{reply}");
    }
}

#[test]
fn a_request_in_a_stream_ends_it_with_the_error_event() {
    let stack = Stack::start();
    let progress =
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}});
    let request = json!({"jsonrpc": "2.0", "id": 9, "method": "sampling/createMessage", "params": {}});
    let unknown = json!({"jsonrpc": "2.0", "method": "notifications/strange", "params": {}});
    let result = json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "tools": []}});
    let stream = |events: &[&Value]| {
        events
            .iter()
            .fold(Answer::sse(), |answer, event| {
                answer.piece(format!("data: {event}\n\n")).wait(Duration::from_millis(50))
            })
            .end(&[])
    };
    stack.upstream.answer(stream(&[&progress, &request, &result]));
    let reply = stack.post(&list());
    let events = reply.events();
    assert_eq!((events.len(), reply.cut), (2, false), "{reply}");
    assert_eq!(
        (&events[0], &events[1]["id"], &events[1]["error"]["code"]),
        (&progress, &json!(1), &json!(-32010)),
        "{reply}"
    );
    // A notification of an unknown method is dropped, and nothing else.
    stack.upstream.answer(stream(&[&unknown, &result]));
    let events = stack.post(&list()).events();
    assert_eq!((events.len(), &events[0]["id"]), (1, &json!(1)), "{events:?}");
}

#[test]
fn an_unreadable_event_ends_the_stream_with_the_error_event() {
    let stack = Stack::start();
    let progress =
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}});
    let answer = Answer::sse()
        .piece(format!("data: {progress}\n\n"))
        .wait(Duration::from_millis(100))
        .piece("data: not json\n\n")
        .end(&[]);
    stack.upstream.answer(answer);
    let reply = stack.post(&list());
    let last = reply.events().pop().expect("an event");
    assert_eq!((reply.cut, &last["id"], &last["error"]["code"]), (false, &json!(1), &json!(-32010)), "{reply}");
}

#[test]
fn an_upstream_that_dies_half_way_is_never_a_whole_answer() {
    let stack = Stack::start();
    let whole =
        json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "tools": [], "ttlMs": 0}}).to_string();
    let short = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{whole}",
        whole.len() + 10
    );
    let answers = [
        Answer::raw(short).wait(Duration::from_millis(50)).close(),
        Answer::chunked(200, &["content-type: application/json"]).piece(&whole).wait(Duration::from_millis(50)).close(),
        Answer::sse().piece(&whole[..20]).wait(Duration::from_millis(50)).close(),
        Answer::raw("HTTP/1.1 2").close(),
        Answer::raw("").close(),
    ];
    for answer in answers {
        stack.upstream.answer(answer);
        let reply = Connection::open(stack.envoy.port).expect("a connection").send(&stack.request(&list()));
        if let Some(reply) = reply {
            assert!(
                reply.cut || reply.status >= 500 || reply.events().iter().all(|event| event.get("error").is_some()),
                "{reply}"
            );
        }
    }
    stack.upstream.behave();
    stack.allows(&stack.request(&list()));
}

#[test]
fn a_caller_that_goes_away_leaves_nothing_hanging() {
    let stack = Stack::start();
    stack
        .upstream
        .answer(Answer::sse().piece(": wait\n\n").wait(Duration::from_millis(500)).piece("data: {}\n\n").end(&[]));
    for _ in 0..10 {
        let mut connection = Connection::open(stack.envoy.port).expect("a connection");
        std::io::Write::write_all(&mut connection.stream, &stack.request(&list()).bytes()).expect("it is sent");
        crate::support::wait_for(Duration::from_secs(5), || (stack.upstream.count() > 0).then_some(()));
    }
    let idle = crate::support::wait_for(Duration::from_secs(5), || {
        (stack.envoy.stat("cluster.portcullis.upstream_rq_active") == 0).then_some(())
    });
    assert!(idle.is_some(), "expected no open ext_proc stream after the callers left");
    stack.upstream.behave();
    stack.allows(&stack.request(&list()));
}
