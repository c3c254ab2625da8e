use proptest::prelude::*;

use super::{Asked, Call, Explained, Outcome, Who, World, complete, explain, http, readable};
use crate::ladder::head::Attributes;
use crate::ladder::testing::{self, world};
use crate::message::json::{Document, Limits};
use crate::policy::Claims;
use crate::protocol::routing;

const READER: &str = r#"{"sub":"ana","email":"ana@acme.com","email_verified":true,"scope":"mcp"}"#;

/// What is explained to the bearer of these claims, completed.
fn explained(world: &testing::World, claims: &str, call: Call<'_>, gates: bool) -> Explained {
    let (head, body) = call.request(world.server()).expect("a request");
    let who = Who::Vouched(complete(world.server(), claims));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(explain(&world.snapshot, Asked { head, body, who }, World { live: false, gates }))
}

fn call(capability: &str) -> Call<'_> {
    Call { capability: Some(capability), ..Call::default() }
}

/// `6 pass, 7 refuse scope.insufficient`: rungs that are neither skipped nor a plain pass, and the last that passed.
fn told(explained: &Explained) -> Vec<String> {
    let last = explained.rungs.iter().rfind(|row| row.outcome == Outcome::Pass);
    let mut told: Vec<String> = last.map(|row| format!("to {}", row.number)).into_iter().collect();
    let spoken = explained.rungs.iter().filter(|row| row.reason.is_some());
    told.extend(spoken.map(|row| {
        format!("{} {} {} {}", row.number, row.rung, row.outcome.as_str(), row.reason.as_deref().unwrap_or_default())
    }));
    told
}

#[test]
fn the_refusing_rung_is_the_last_that_speaks() {
    let world = testing::unseen(&[]);
    let of = |claims: &str, capability: &str| told(&explained(&world, claims, call(capability), false));
    assert_eq!(of(READER, "tool:search"), ["to 16"]);
    assert_eq!(of(READER, "tool:update"), ["to 12", "13 permission refuse policy.not_permitted"]);
    assert_eq!(of(READER, "tool:other"), ["to 12", "13 permission refuse policy.unpriced"]);
    assert_eq!(
        of(r#"{"sub":"eve","email":"eve@x.org","email_verified":true,"scope":"mcp"}"#, "search"),
        ["to 11", "12 policy refuse policy.no_permissions"]
    );
    assert_eq!(
        of(r#"{"sub":"eve","email":"eve@x.org","email_verified":true}"#, "search"),
        ["to 6", "7 scope refuse scope.insufficient"]
    );
    assert_eq!(
        of(r#"{"sub":"eve","email":"eve@x.org","email_verified":true,"exp":1}"#, "search"),
        ["to 5", "6 token refuse token.expired"]
    );
    let editor = r#"{"sub":"bo","email":"bo@x.org","email_verified":true,"groups":"editors","scope":"mcp"}"#;
    assert_eq!(of(editor, "update"), ["to 13", "14 scope refuse scope.insufficient"]);
    assert_eq!(of(READER, "cases://case/7"), ["to 12", "13 permission refuse policy.not_permitted"]);
    assert_eq!(of(READER, "resource:index"), ["to 15"]);
    assert_eq!(of(READER, "prompt:triage"), ["to 15"]);
    let ping = explained(&world, READER, Call { method: Some("ping"), ..Call::default() }, false);
    assert_eq!(told(&ping), ["to 10", "11 listed refuse method.unlisted"]);
    let discover = explained(&world, READER, Call { method: Some("server/discover"), ..Call::default() }, false);
    assert_eq!((told(&discover), discover.answer), (vec!["to 15".to_owned()], None));
}

#[test]
fn a_baseline_scope_that_is_told_late_is_still_rung_seven() {
    let world = world(&[("step_up: challenge", "step_up: frame")]);
    let held = explained(&world, r#"{"sub":"eve","email":"eve@x.org","email_verified":true}"#, call("search"), false);
    assert_eq!(told(&held), ["to 10", "7 scope refuse scope.insufficient"]);
    assert_eq!(held.reason.as_deref(), Some("scope.insufficient"));
}

#[test]
fn shadow_mode_forwards_and_tells_what_it_would_have_refused() {
    let world = world(&[("kind: mcp", "kind: mcp\n  mode: shadow")]);
    let spared = explained(
        &world,
        r#"{"sub":"eve","email":"eve@x.org","email_verified":true,"scope":"mcp"}"#,
        call("update"),
        false,
    );
    assert_eq!(
        told(&spared),
        [
            "to 16",
            "12 policy refuse policy.no_permissions",
            "13 permission refuse policy.not_permitted",
            "14 scope refuse scope.insufficient"
        ]
    );
    assert_eq!(spared.would_refuse, ["policy.no_permissions", "policy.not_permitted", "scope.insufficient"]);
    assert!(spared.answer.is_none() && spared.reason.is_none());
}

#[test]
fn gates_are_asked_only_when_they_are_to_be() {
    let gate = "policy: {file: policy.yaml}\n  gates:\n  - {name: never, cel: \"false\"}";
    let world = world(&[("policy: {file: policy.yaml}", gate)]);
    let assumed = explained(&world, READER, call("search"), false);
    assert_eq!((told(&assumed), assumed.answer), (vec!["to 16".to_owned(), "17 gate skip not asked".to_owned()], None));
    let asked = explained(&world, READER, call("search"), true);
    assert_eq!(told(&asked), ["to 16", "17 gate refuse cel.denied"]);
}

#[test]
fn a_listing_shows_what_the_wire_would() {
    let world = testing::unseen(&[]);
    let shown = |method| {
        let listing = explained(&world, READER, Call { method: Some(method), ..Call::default() }, false);
        listing.visible.expect("a listing").iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(shown("tools/list"), ["tool:search"]);
    assert_eq!(shown("resources/list"), ["resource:index"]);
    assert_eq!(shown("resources/templates/list"), ["resource:case"]);
    assert_eq!(explained(&world, READER, call("search"), false).visible, None);
}

#[test]
fn metadata_is_answered_and_traffic_that_matches_nothing_is_told_so() {
    let world = world(&[]);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let get = |path: &str, server: bool| {
        let text = format!("GET {path} HTTP/1.1\nHost: mcp.acme.com\n\n");
        let attributes = super::attributes(server.then(|| &**world.server()));
        let (head, body) = http::read(text.as_bytes(), "https", attributes).expect("a request");
        let asked = Asked { head, body, who: Who::Presented };
        runtime.block_on(explain(&world.snapshot, asked, World::default()))
    };
    let document = get("/.well-known/oauth-protected-resource/mcp", true);
    assert_eq!((told(&document), document.answer.map(|answer| answer.status)), (vec!["to 2".to_owned()], Some(200)));
    let lost = get("/elsewhere", false);
    assert_eq!(told(&lost), ["1 route refuse route.unmatched"]);
    assert!(lost.server.is_none() && lost.answer.is_some());
    assert_eq!(told(&get("/mcp", true)), ["to 2", "3 method refuse method.not_allowed"]);
}

#[test]
fn methods_capabilities_and_arguments_must_go_together() {
    let world = world(&[]);
    let fault = |method: Option<&str>, capability: Option<&str>, arguments: Option<&str>| {
        let call = Call { method, capability, arguments };
        call.request(world.server()).expect_err("unaskable").to_string()
    };
    let cases = [
        (fault(None, None, None), "expected a method such as tools/list, or a capability such as tool:search"),
        (fault(Some("tools/call"), Some("prompt:triage"), None), "expected a tool for tools/call, got `prompt:triage`"),
        (fault(Some("tools/list"), Some("search"), None), "expected no capability for tools/list, got `search`"),
        (fault(Some("tools/list"), None, Some("{}")), "expected no arguments for tools/list"),
        (
            fault(None, Some("resource:case"), None),
            "expected the URI of a resource, got `resource:case`, which is the template cases://case/{id}",
        ),
        (
            fault(None, Some("search"), Some("{")),
            "expected the arguments as JSON, but the text ended inside a value at byte 1",
        ),
        (
            fault(None, Some("tool:"), None),
            "expected a capability such as tool:search, prompt:triage or resource:case, found no name in `tool:`",
        ),
        (fault(Some("\n"), None, None), "expected an MCP method such as tools/call"),
    ];
    for (told, expected) in cases {
        assert_eq!(told, expected);
    }
}

/// What is made is what a client makes: the envelope holds for every method and name, whatever its letters.
#[test]
fn every_request_that_is_made_climbs_to_the_permissions() {
    let world = world(&[]);
    for (method, capability) in [
        ("tools/call", "prüfen"),
        ("tools/call", "tool:prompt:x"),
        ("prompts/get", " blank "),
        ("resources/read", "cases://x"),
        ("completion/complete", "prompt:a:b"),
        ("completion/complete", "cases://x"),
        ("subscriptions/listen", "cases://x"),
    ] {
        let call = Call { method: Some(method), capability: Some(capability), arguments: None };
        let reason = explained(&world, READER, call, false).reason;
        assert_eq!(reason.as_deref(), Some("policy.unpriced"), "{method} {capability}");
    }
    let notification = Call { method: Some("notifications/cancelled"), ..Call::default() };
    assert!(explained(&world, READER, notification, false).answer.is_none());
}

#[test]
fn claims_are_completed_only_where_they_say_nothing() {
    let world = world(&[]);
    let now = super::now().unix;
    let of = |claims: &str| {
        let text = complete(world.server(), claims);
        let document = Document::read(text.clone().into_bytes(), Limits { depth: 8, nodes: 100 }).expect("JSON");
        let root = document.root();
        let exp: u64 = root.get("exp").and_then(|exp| exp.raw().parse().ok()).unwrap_or(0);
        (root.get("iss").map(|iss| iss.raw().to_owned()), root.len(), exp, text)
    };
    let (issuer, members, exp, _) = of("{}");
    assert_eq!((issuer.as_deref(), members), (Some(r#""https://auth.acme.com""#), 3));
    assert!(exp >= now + 3600);
    let full = r#"{"iss":"x","aud":[],"exp":null,"n":1.500000000000000000001}"#;
    assert_eq!(of(full).3, full);
    assert_eq!(complete(world.server(), "not JSON"), "not JSON");
    assert!(readable("[]").is_err() && readable(r#"{"a":1,"a":2}"#).is_err() && readable("{}").is_ok());
}

/// Claims without a token pass the same checks as a token's: what makes the caller is one and the same code.
#[test]
fn vouched_claims_are_checked_like_a_tokens() {
    let world = world(&[]);
    let caller = |claims: &str| world.server().authenticator.vouched(claims, 1000);
    let good = r#"{"iss":"https://auth.acme.com","aud":"https://mcp.acme.com/mcp","sub":"x","email":"x@acme.com","email_verified":true,"exp":2000}"#;
    let Claims { subject, .. } = &caller(good).expect("a caller").claims;
    assert_eq!(&**subject, "x");
    for (from, to) in [
        ("auth.acme", "evil"),
        ("mcp.acme.com/mcp", "mcp.acme.com/"),
        ("\"x\"", "\"\""),
        ("true", "1"),
        ("2000", "\"2000\""),
    ] {
        assert!(caller(&good.replace(from, to)).is_err(), "{to}");
    }
    assert!(caller("[]").is_err() && caller("").is_err());
}

fn read(text: &str) -> Result<(Vec<(String, String)>, String), String> {
    let (head, body) =
        http::read(text.as_bytes(), "https", Attributes::default()).map_err(|fault| fault.to_string())?;
    let header = |header: crate::message::headers::HeaderRef<'_>| {
        (header.name().to_owned(), String::from_utf8_lossy(header.value).into_owned())
    };
    assert_eq!(head.ends, body.is_empty());
    Ok((head.headers.iter().map(header).collect(), String::from_utf8_lossy(&body).into_owned()))
}

#[test]
fn a_request_is_read_as_envoy_hands_it_over() {
    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let expected = pairs(&[
        (":method", "POST"),
        (":authority", "h"),
        (":path", "/mcp?x"),
        (":scheme", "https"),
        ("content-type", "a,b"),
        ("x", "1"),
        ("x", "2"),
        ("content-length", "2"),
    ]);
    let text = "POST /mcp?x HTTP/1.1\nHost: h\nContent-Type: a\nX:1\nx: 2 \ncontent-type:b\n\n{}";
    assert_eq!(read(text), Ok((expected.clone(), "{}".to_owned())));
    assert_eq!(read(&text.replace('\n', "\r\n")), Ok((expected, "{}".to_owned())));
    let absolute = read("GET http://other/x HTTP/1.1\nhost: h\n\n").expect("a request");
    assert_eq!(absolute.0[..3], pairs(&[(":method", "GET"), (":authority", "other"), (":path", "/x")]));
    let declared = "POST / HTTP/1.1\nHost: h\nContent-Length: 2\n\n{}";
    assert_eq!(read(&format!("{declared}\n")).expect("a request").1, "{}");
}

#[test]
fn a_file_that_holds_no_request_says_where() {
    let post = "POST / HTTP/1.1\n";
    let cases = [
        (String::new(), "line 1: expected a request line"),
        ("POST /\n\n".to_owned(), "line 1: expected a request line"),
        ("POST / HTTP/2\n\n".to_owned(), "line 1: expected a request line"),
        ("PO\u{7}ST / HTTP/1.1\n\n".to_owned(), "line 1: expected a request line"),
        (format!("{post}\n"), "line 2: expected a Host header"),
        (format!("{post}Host: h\n folded\n\n"), "line 3: expected a header, found a line that begins with white space"),
        (format!("{post}Host: h\n{{}}"), "line 3: expected a header such as"),
        (format!("{post}Host: h\nbad name: x\n\n"), "line 3: expected a header such as"),
        (format!("{post}Host: h\nx: a\0b\n\n"), "line 3: expected a header's value without NUL"),
        (format!("{post}Host: h\nTransfer-Encoding: chunked\n\n0\n\n"), "line 3: expected the body as it is"),
        (format!("{post}Host: h\nContent-Length: x\n\n{{}}"), "line 4: expected Content-Length to be a number"),
        (format!("{post}Host: h\nContent-Length: 3\n\n{{}}"), "line 4: expected the 3 bytes"),
        (format!("{post}Host: h\nContent-Length: 1\n\n{{}}"), "line 4: expected nothing behind the 1 bytes"),
    ];
    for (text, expected) in cases {
        let fault = read(&text).expect_err(&text);
        assert!(fault.starts_with(expected), "{text:?}: {fault}");
    }
}

proptest! {
    #[test]
    fn any_name_can_stand_in_a_header(name in any::<String>()) {
        let value = routing::encode(&name);
        prop_assert!(value.bytes().all(|byte| matches!(byte, b'\t' | 0x20..=0x7E)));
        let decoded = routing::decode(value.as_bytes());
        prop_assert!(decoded.is_ok_and(|decoded| decoded == name));
    }

    #[test]
    fn no_file_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), head in any::<bool>()) {
        let mut text = if head { b"POST / HTTP/1.1\nHost: h\n".to_vec() } else { Vec::new() };
        text.extend_from_slice(&bytes);
        let _ = http::read(&text, "https", Attributes::default());
    }

    /// An explanation always comes to an end, and every rung is told once.
    #[test]
    fn every_body_is_explained(body in proptest::collection::vec(any::<u8>(), 0..80)) {
        let world = world(&[]);
        let (head, _) = call("search").request(world.server()).expect("a request");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let asked = Asked { head, body, who: Who::Vouched(complete(world.server(), READER)) };
        let explained = runtime.block_on(explain(&world.snapshot, asked, World::default()));
        prop_assert_eq!(explained.rungs.len(), 21);
        prop_assert!(explained.answer.is_some());
    }
}
