//! Every event in every state.

use super::{Event, JSON, Play, SSE, answer, piece, shown};
use crate::ladder::testing::{World, head, headers, message, post, world};

const EVENTS: [&str; 14] = [
    "request",
    "body",
    "rsh json",
    "rsh sse",
    "rsh 404",
    "rsh ends",
    "rsb",
    "rsb.",
    "rst",
    "identity",
    "refreshed",
    "deadline",
    "overloaded",
    "fault",
];

fn event(world: &World, name: &str) -> Event {
    match name {
        "request" => Event::RequestHeaders(post("tools/list", None)),
        "body" => Event::RequestBody(message(Some("1"), "tools/list", "").into_bytes()),
        "rsh json" => answer("200", JSON, false),
        "rsh sse" => answer("200", SSE, false),
        "rsh 404" => answer("404", "text/plain", false),
        "rsh ends" => answer("413", "text/plain", true),
        "rsb" => piece(" ", false),
        "rsb." => piece(r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#, true),
        "rst" => Event::ResponseTrailers,
        "identity" => Event::Identity(Ok(world.reader())),
        "refreshed" => Event::Refreshed(Ok(())),
        "deadline" => Event::Deadline,
        "overloaded" => Event::Overloaded,
        "fault" => Event::Fault("a test's"),
        _ => unreachable!("{name}"),
    }
}

/// States, the events that lead there, what every event that is not named does there, and what the named ones do.
type Row<'a> = (&'a str, &'a [&'a str], &'a str, &'a [(&'a str, &'a str)]);

const REFUSED: &str = "503 internal > finish";
const STATES: &[Row<'_>] = &[
    (
        "fresh",
        &[],
        REFUSED,
        &[
            ("request", "> identify"),
            ("rsh json", "rsh > wait"),
            ("rsh sse", "rsh > wait"),
            ("rsh 404", "rsh > wait"),
            ("rsh ends", "rsh > finish"),
            ("overloaded", "503 overloaded > finish"),
        ],
    ),
    (
        "identifying",
        &["request"],
        REFUSED,
        &[
            ("identity", "rqh(no) > wait"),
            ("rsh json", "rsh > wait"),
            ("rsh sse", "rsh > wait"),
            ("rsh 404", "rsh > wait"),
            ("rsh ends", "rsh > finish"),
        ],
    ),
    (
        "awaiting the body",
        &["request", "identity"],
        REFUSED,
        &[
            ("body", "rqb(yes) > wait"),
            ("deadline", "408 body.timeout > finish"),
            ("rsh json", "rsh > wait"),
            ("rsh sse", "rsh > wait"),
            ("rsh 404", "rsh > wait"),
            ("rsh ends", "rsh > finish"),
        ],
    ),
    // The id is known from here on: what cannot go on is told in a frame at 200.
    (
        "awaiting the answer",
        &["request", "identity", "body"],
        "200 internal > finish",
        &[
            ("rsh json", "> wait"),
            ("rsh sse", "rsh > wait"),
            ("rsh 404", "rsh > wait"),
            ("rsh ends", "502 answer.unreadable > finish"),
            ("deadline", "502 answer.unreadable > finish"),
        ],
    ),
    (
        "holding",
        &["request", "identity", "body", "rsh json"],
        "200 internal > finish",
        &[
            ("rsb", "> wait"),
            ("rsb.", "rsh rsb. > finish"),
            ("rst", "502 answer.unreadable > finish"),
            ("deadline", "502 answer.unreadable > finish"),
        ],
    ),
    (
        "streaming",
        &["request", "identity", "body", "rsh sse"],
        "> fail",
        &[
            ("rsb", "> wait"),
            // No event is complete in it, so the stream ends without an answer.
            ("rsb.", "rsb. > finish"),
            ("rst", "rsb rst > finish"),
            ("deadline", "> wait"),
        ],
    ),
    (
        "echoing a 404",
        &["request", "identity", "body", "rsh 404"],
        "> fail",
        &[("rsb", "rsb > wait"), ("rsb.", "rsb. > finish"), ("rst", "rst > finish")],
    ),
    (
        "echoing Envoy's own reply",
        &["request", "identity", "rsh json"],
        "> fail",
        &[("rsb", "rsb > wait"), ("rsb.", "rsb. > finish"), ("rst", "rst > finish")],
    ),
    ("refused", &["fault"], "> fail", &[]),
    ("over", &["request", "identity", "body", "rsh json", "rsb."], "> fail", &[]),
];

#[test]
fn every_event_in_every_state() {
    let world = world(&[]);
    for (state, path, otherwise, named) in STATES {
        for name in EVENTS {
            let mut play = Play::new(&world);
            for step in *path {
                play.step(event(&world, step));
            }
            let expected = named.iter().find(|(known, _)| *known == name).map_or(*otherwise, |(_, shown)| shown);
            let step = play.step(event(&world, name));
            assert_eq!(shown(&step), expected, "{name} while {state}");
            play.record();
        }
    }
}

#[test]
fn what_comes_after_the_answer_of_a_stream_is_ignored_until_envoy_closes() {
    let world = world(&[]);
    let drained = || {
        let mut play = Play::listing(&world);
        play.step(answer("200", SSE, false));
        let step = play.step(piece("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[]}}\n\n", false));
        // The stream does not end with OK while the server may still send: Envoy would let that through unread.
        assert_eq!(shown(&step), "rsb. > wait");
        play
    };
    for (name, expected) in EVENTS.map(|name| match name {
        "rsb" | "rsb." | "rst" | "deadline" => (name, "> wait"),
        _ => (name, "> fail"),
    }) {
        let mut play = drained();
        let event = event(&world, name);
        assert_eq!(play.shown(event), expected, "{name}");
        assert_eq!(play.record().outcome.as_str(), "allow");
    }
}

#[test]
fn only_what_is_not_ours_to_read_ends_at_the_verdict() {
    let read = world(&[]);
    let unread = world(&[("  limits:", "  screen: off\n  limits:")]);
    let call = message(Some("1"), "tools/call", r#""name":"search","#);
    let cases = [
        ("tools/call", Some("search"), call, "rqb(yes) > finish"),
        ("tools/list", None, message(Some("1"), "tools/list", ""), "rqb(yes) > wait"),
        ("server/discover", None, message(Some("1"), "server/discover", ""), "rqb(yes) > wait"),
        ("notifications/progress", None, message(None, "notifications/progress", ""), "rqb(yes) > finish"),
    ];
    for (method, name, text, unscreened) in cases {
        let (_, step) = Play::asked(&unread, unread.reader(), &text, method, name);
        assert_eq!(shown(&step), unscreened, "{method}");
        let screened = if method.starts_with("notifications/") { unscreened } else { "rqb(yes) > wait" };
        let (_, step) = Play::asked(&read, read.reader(), &text, method, name);
        assert_eq!(shown(&step), screened, "{method}");
    }
}

#[test]
fn plain_http_is_decided_by_its_head() {
    // `kind: http` takes none of the keys of MCP.
    let world = world(&[
        ("  kind: mcp\n", "  kind: http\n"),
        ("upstream: {url: https://vendor.example.com/mcp, credential", "upstream: {credential"),
        ("  policy: {file: policy.yaml}\n", ""),
        ("  record: {file: cases.yaml}\n", ""),
        ("  capability_scopes: {\"tool:update\": [cases:write]}\n", ""),
        ("  limits: {request: 64KiB, listing: 64KiB, answer: 128KiB, depth: 16}\n", ""),
        ("  timeouts: {body: 10s, answer: 60s}\n", ""),
        ("  denials: {disclose: explicit, step_up: challenge}\n", ""),
    ]);
    for (method, path) in [("GET", "/v1/things?x=1"), ("DELETE", "/"), ("PUT", "/v1/things")] {
        let mut play = Play::new(&world);
        assert_eq!(play.shown(Event::RequestHeaders(head(method, path, &[]))), "> identify");
        assert_eq!(play.shown(Event::Identity(Ok(world.reader()))), "rqh(yes) > finish", "{method}");
        let record = play.record();
        assert_eq!((record.outcome.as_str(), record.wire_status), ("allow", None));
    }
    let mut play = Play::new(&world);
    let upgrade = head("GET", "/", &[("upgrade", "websocket")]);
    assert_eq!(play.shown(Event::RequestHeaders(upgrade)), "405 method.not_allowed > finish");
    let mut play = Play::new(&world);
    play.step(Event::RequestHeaders(head("GET", "/", &[])));
    assert_eq!(play.shown(Event::Identity(Ok(world.caller("{}", &[], None)))), "403 scope.insufficient > finish");
}

#[test]
fn unmatched_traffic_that_may_pass_is_decided_by_its_head_and_for_no_server() {
    let world = world(&[("unmatched: deny", "unmatched: pass")]);
    let mut play = Play::new(&world);
    let mut elsewhere = head("POST", "/upload", &[]);
    elsewhere.attributes.route = Some("elsewhere".into());
    elsewhere.headers = headers(&[(":method", "POST"), (":path", "/upload"), (":authority", "files.example.com")]);
    let step = play.step(Event::RequestHeaders(elsewhere));
    assert_eq!(shown(&step), "rqh(yes) > finish");
    let Some(super::Reply::RequestHeaders { edits, verdict }) = step.replies.iter().next() else { panic!("{step:?}") };
    assert_eq!((verdict.server.clone(), verdict.decision), (None, "pass"));
    assert!(edits.set.is_empty() && edits.remove.is_empty(), "untouched: {edits:?}");
    assert_eq!(play.record().outcome.as_str(), "pass");
}

#[test]
fn metadata_leaves_no_record() {
    let world = world(&[]);
    let mut play = Play::new(&world);
    let path = "/.well-known/oauth-protected-resource/mcp";
    assert_eq!(play.shown(Event::RequestHeaders(head("GET", path, &[]))), "200 none > finish");
    assert!(play.records.is_empty() && play.exchange.abandon(play.now).is_none());
    // Whoever wants something else of it is refused, and recorded.
    for (method, ends) in [("GET", false), ("POST", false), ("POST", true), ("DELETE", true)] {
        let mut play = Play::new(&world);
        let mut head = head(method, path, &[]);
        head.ends = ends;
        assert_eq!(play.shown(Event::RequestHeaders(head)), "405 method.not_allowed > finish", "{method}");
        play.record();
    }
}
