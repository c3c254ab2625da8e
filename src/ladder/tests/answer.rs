//! Rung 18: the head of an answer, and its messages.

use std::sync::LazyLock;

use super::reason;
use crate::ladder::answer::{Asked, Content, Form, cap, content, head, read};
use crate::ladder::testing::{World, document, headers, world};
use crate::message::json::Document;
use crate::protocol::Method;
use crate::protocol::rpc::{Id, IdKey};

const PASSTHROUGH: (&str, &str) = ("credential: {bearer: {file: token}}", "credential: passthrough");
const JSON: (&str, &str) = ("content-type", "application/json");
const SSE: (&str, &str) = ("content-type", "text/event-stream");
/// Headers by name and value.
type Pairs<'a> = &'a [(&'a str, &'a str)];

const CHALLENGE: (&str, &str) = ("www-authenticate", "Bearer");

fn asked(method: Method, id: Option<&str>) -> Asked {
    let key = |id: &str| -> IdKey { Id::read(document(id).root()).expect("an id").key() };
    Asked { method, id: id.map(key) }
}

#[test]
fn an_answer_by_its_head() {
    let world = world(&[]);
    let rows: &[(&str, Pairs<'_>, Result<Form, &str>)] = &[
        ("200", &[JSON], Ok(Form::Json)),
        ("200", &[("content-type", "APPLICATION/json; charset=utf-8")], Ok(Form::Json)),
        ("200", &[SSE], Ok(Form::Stream)),
        ("200", &[("content-type", "text/event-stream;charset=utf-8")], Ok(Form::Stream)),
        ("200", &[("content-type", "application/json; charset=utf-7")], Err("answer.unreadable")),
        ("200", &[("content-type", "text/event-stream; charset=\"utf-7\"")], Err("answer.unreadable")),
        ("400", &[JSON], Ok(Form::Json)),
        ("500", &[JSON], Ok(Form::Json)),
        ("403", &[JSON], Ok(Form::Json)),
        ("404", &[], Ok(Form::Untouched)),
        ("404", &[CHALLENGE, ("content-encoding", "gzip")], Ok(Form::Untouched)),
        ("200", &[JSON, ("content-encoding", "identity")], Ok(Form::Json)),
        ("200", &[JSON, ("content-length", "65536")], Ok(Form::Json)),
        ("200", &[JSON, ("content-length", "65537")], Err("answer.too_large")),
        ("400", &[SSE], Err("answer.unreadable")),
        ("200", &[], Err("answer.unreadable")),
        ("204", &[], Err("answer.unreadable")),
        ("200", &[JSON, JSON], Err("answer.unreadable")),
        ("200", &[("content-type", "application/json, text/html")], Err("answer.unreadable")),
        ("200", &[("content-type", "application/jsonp")], Err("answer.unreadable")),
        ("200", &[JSON, ("content-encoding", "gzip")], Err("answer.unreadable")),
        ("200", &[SSE, ("content-encoding", "identity"), ("content-encoding", "br")], Err("answer.unreadable")),
        ("200", &[JSON, ("content-encoding", "")], Err("answer.unreadable")),
        ("302", &[JSON], Err("answer.unreadable")),
        ("304", &[], Err("answer.unreadable")),
        ("101", &[JSON], Err("answer.unreadable")),
        ("600", &[JSON], Err("answer.unreadable")),
        ("401", &[JSON], Err("upstream.unauthorized")),
        ("401", &[], Err("upstream.unauthorized")),
        ("403", &[JSON, CHALLENGE], Err("upstream.unauthorized")),
        ("403", &[("content-type", "text/html")], Err("upstream.unauthorized")),
    ];
    for (status, more, expected) in rows {
        let mut pairs = vec![(":status", *status)];
        pairs.extend_from_slice(more);
        let found = head(world.server(), &asked(Method::ToolsList, Some("1")), &headers(&pairs), false);
        let found = found.map_err(|refusal| refusal.reason.as_str());
        assert_eq!(&found, expected, "{pairs:?}");
    }
    // In pass-through mode the challenge is about the caller's own token.
    let world = crate::ladder::testing::world(&[PASSTHROUGH]);
    for (status, more) in [("401", JSON), ("403", CHALLENGE)] {
        let found =
            head(world.server(), &asked(Method::ToolsCall, Some("1")), &headers(&[(":status", status), more]), false);
        assert_eq!(found.ok(), Some(Form::Untouched));
    }
}

#[test]
fn nothing_is_a_good_answer_to_who_sent_no_id() {
    let world = world(&[]);
    let form = |id: Option<&str>, status: &str, ends: bool| {
        head(world.server(), &asked(Method::ToolsCall, id), &headers(&[(":status", status)]), ends).ok()
    };
    assert_eq!((form(None, "202", true), form(None, "204", true)), (Some(Form::Empty), Some(Form::Empty)));
    assert_eq!((form(None, "202", false), form(None, "500", true)), (Some(Form::Json), None));
    assert_eq!((form(Some("1"), "202", true), form(Some("1"), "202", false)), (None, None));
}

#[test]
fn caps_are_the_listings_or_the_answers() {
    let world = world(&[]);
    for method in [Method::ToolsList, Method::TemplatesList, Method::Discover] {
        assert_eq!(cap(world.server(), method), 64 * 1024);
    }
    for method in [Method::ToolsCall, Method::Listen, Method::Complete] {
        assert_eq!(cap(world.server(), method), 128 * 1024);
    }
}

/// What a message of an answer is to `tools/call` with id `"a"`: `streamed` in a stream, else a document of this status.
fn judged(text: &str, status: u16, streamed: bool) -> &'static str {
    static WORLD: LazyLock<World> = LazyLock::new(|| world(&[]));
    let outcome = read(WORLD.server(), text.as_bytes().to_vec());
    let document: Document = match outcome {
        Ok(document) => document,
        Err(refusal) => return refusal.reason.as_str(),
    };
    let outcome = content(&asked(Method::ToolsCall, Some(r#""a""#)), &document, status, streamed);
    match outcome {
        Ok(Content::Result(_)) => "result",
        Ok(Content::Error(_)) => "error",
        Ok(Content::Notification(..)) => "notification",
        Ok(Content::Unknown) => "unknown",
        Err(refusal) => refusal.reason.as_str(),
    }
}

#[test]
fn a_message_by_its_members() {
    let message = |members: &str| format!(r#"{{"jsonrpc":"2.0",{members}}}"#);
    let rows = [
        (message(r#""id":"a","result":{}"#), "result"),
        (message(r#""id":"\u0061","result":{"resultType":"complete"}"#), "result"),
        (message(r#""id":"a","result":{"resultType":"input_required"}"#), "result"),
        (message(r#""id":"a","error":{"code":1,"message":""}"#), "error"),
        (message(r#""id":"a","result":{"resultType":"task"}"#), "answer.unreadable"),
        (message(r#""id":"a","result":{"resultType":null}"#), "answer.unreadable"),
        (message(r#""id":"a","result":[]"#), "answer.unreadable"),
        (message(r#""id":"a","result":null"#), "answer.unreadable"),
        (message(r#""id":"a","result":{},"error":{}"#), "answer.unreadable"),
        (message(r#""id":"a","error":"no""#), "answer.unreadable"),
        (message(r#""id":"a""#), "answer.unreadable"),
        (message(r#""id":"a","Result":{},"result":{}"#), "answer.unreadable"),
        (message(r#""id":"a","result":{"Content":[]}"#), "answer.unreadable"),
        (message(r#""id":"A","result":{}"#), "answer.mismatched"),
        (message(r#""id":null,"result":{}"#), "answer.mismatched"),
        (message(r#""result":{}"#), "answer.mismatched"),
        (message(r#""id":1,"error":{"code":1,"message":""}"#), "answer.mismatched"),
        (message(r#""error":{"code":1,"message":""}"#), "answer.mismatched"),
        (message(r#""id":"a","method":"ping""#), "answer.unreadable"),
        (r#"{"id":"a","result":{}}"#.into(), "answer.unreadable"),
        (r#"{"jsonrpc":"1.0","id":"a","result":{}}"#.into(), "answer.unreadable"),
        ("[]".into(), "answer.unreadable"),
        ("\"x\"".into(), "answer.unreadable"),
        ("{\"a\":1,\"a\":1}".into(), "answer.unreadable"),
        (String::new(), "answer.unreadable"),
    ];
    for (text, expected) in rows {
        assert_eq!(judged(&text, 200, false), expected, "{text}");
        assert_eq!(judged(&text, 200, true), expected, "in a stream: {text}");
    }
    // An error without an id says enough where the status does.
    for id in ["", r#""id":null,"#] {
        assert_eq!(judged(&message(&format!(r#"{id}"error":{{"code":1,"message":""}}"#)), 400, false), "error");
    }
    assert_eq!(judged(&message(r#""id":"b","error":{"code":1,"message":""}"#), 400, false), "answer.mismatched");
}

#[test]
fn notifications_stand_in_streams_only_and_are_known() {
    let message = |method: &str| format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{}}}}"#);
    for (method, expected) in [
        ("notifications/progress", "notification"),
        ("notifications/resources/updated", "notification"),
        ("notifications/tasks/status", "unknown"),
        ("notifications/initialized", "unknown"),
        ("sampling/createMessage", "unknown"),
        ("", "unknown"),
    ] {
        assert_eq!(judged(&message(method), 200, true), expected, "{method}");
        assert_eq!(judged(&message(method), 200, false), "answer.unreadable", "{method}");
    }
    let more = r#"{"jsonrpc":"2.0","method":"notifications/progress","result":{}}"#;
    assert_eq!(judged(more, 200, true), "answer.unreadable");
}

#[test]
fn ids_compare_by_value() {
    for (own, other, same) in [
        ("1", "1", true),
        ("1", "1.0", true),
        ("1", "\"1\"", false),
        ("9007199254740993", "9007199254740992", false),
        ("-0", "0", true),
    ] {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{other},"result":{{}}}}"#);
        let document = document(&text);
        let outcome = content(&asked(Method::ToolsCall, Some(own)), &document, 200, false);
        assert_eq!(reason(&outcome), if same { "passed" } else { "answer.mismatched" }, "{own} {other}");
    }
}
