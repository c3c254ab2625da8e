//! The wire forms of ladder.md §3, each against the bytes it must have.

mod gate;

use super::frame::{self, CONSTANT, Content, DATA_CAP, MESSAGE_CAP, Tier};
use super::reason::{Class, Reason, Rung};
use super::{Addressee, Denials, Detail, Disclose, Hidden, Refusal, render};
use crate::message::json::{Document, Limits};

const CALL: Addressee<'_> = Addressee { id: Some("7"), method: "tools/call" };

fn content(id: Option<&str>) -> Content<'_> {
    Content { id, code: -32000, message: "no", explain: true, decision: "d1" }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn header<'a>(rendered: &'a super::Rendered, name: &str) -> Option<&'a str> {
    rendered.headers.iter().find(|(own, _)| *own == name).map(|(_, value)| value.as_str())
}

#[test]
fn the_full_frame_has_exactly_these_bytes() {
    let refusal = Refusal::new(Reason::PolicyNotPermitted, Rung::Permission)
        .description("because")
        .detail("permission", Detail::Text("a\"b".into()));
    let (bytes, tier) = frame::write(&refusal, content(Some("\"a\\u0062\"")), 4096);
    assert_eq!(tier, Tier::Full);
    assert_eq!(
        text(&bytes),
        r#"{"jsonrpc":"2.0","id":"a\u0062","error":{"code":-32000,"message":"no","data":{"error":"policy.not_permitted","plugin":"permission","description":"because","details":{"permission":"a\"b"},"decision":"d1"}}}"#
    );
}

#[test]
fn an_id_comes_back_byte_for_byte() {
    for id in ["1", "\"1\"", "9007199254740993", "\"a\\u0062\"", "-0", "\"\""] {
        let refusal = Refusal::new(Reason::PolicyUnpriced, Rung::Permission);
        let rendered = render(&refusal, Denials::default(), Addressee { id: Some(id), method: "tools/call" }, "d");
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":"#);
        assert!(text(&rendered.body).starts_with(&start), "{}", text(&rendered.body));
        assert_eq!(rendered.status, 200);
    }
}

#[test]
fn empty_members_are_left_out() {
    let refusal = Refusal::new(Reason::PolicyUnnamed, Rung::Permission);
    let unexplained = Content { explain: false, ..content(Some("1")) };
    let (bytes, _) = frame::write(&refusal, unexplained, 4096);
    assert_eq!(text(&bytes), r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}"#);
    let undecided = Content { decision: "", ..content(Some("1")) };
    let (bytes, _) = frame::write(&refusal, undecided, 4096);
    assert!(text(&bytes).ends_with(r#""data":{"error":"policy.unnamed","plugin":"permission"}}}"#));
}

#[test]
fn details_that_are_no_json_fall_to_the_minimal_frame() {
    let refusal = Refusal::new(Reason::GateDenied, Rung::Gate).detail("x", Detail::Json("{\"a\":".into()));
    let (bytes, tier) = frame::write(&refusal, content(Some("1")), 4096);
    assert_eq!(tier, Tier::Minimal);
    assert_eq!(text(&bytes), r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}"#);
}

#[test]
fn details_that_repeat_a_member_fall_to_the_minimal_frame() {
    let refusal = Refusal::new(Reason::GateDenied, Rung::Gate).detail("x", Detail::Json("1,\"x\":2".into()));
    assert_eq!(frame::write(&refusal, content(Some("1")), 4096).1, Tier::Minimal);
}

#[test]
fn data_over_its_cap_falls_to_the_minimal_frame() {
    let refusal =
        Refusal::new(Reason::GateDenied, Rung::Gate).detail("x", Detail::Json(format!("\"{}\"", "y".repeat(DATA_CAP))));
    assert_eq!(frame::write(&refusal, content(Some("1")), 1 << 20).1, Tier::Minimal);
}

#[test]
fn an_id_that_is_the_problem_becomes_null() {
    let refusal = Refusal::new(Reason::PolicyUnpriced, Rung::Permission);
    for id in ["{", "[1]", "\"\\ud800\"", "1,\"id\":2"] {
        let (bytes, tier) = frame::write(&refusal, content(Some(id)), 4096);
        assert_eq!(tier, Tier::Minimal, "{id}");
        assert_eq!(text(&bytes), r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}"#);
    }
}

#[test]
fn when_nothing_fits_the_constant_is_sent() {
    let refusal = Refusal::new(Reason::PolicyUnpriced, Rung::Permission);
    let (bytes, tier) = frame::write(&refusal, content(Some("1")), 10);
    assert_eq!((text(&bytes), tier), (CONSTANT, Tier::Constant));
    let document = Document::read(CONSTANT.into(), Limits { depth: 4, nodes: 64 }).unwrap();
    assert!(document.root().get("id").unwrap().is_null());
    assert_eq!(document.root().get("error").unwrap().get("code").unwrap().raw(), "-32000");
}

#[test]
fn a_message_is_cut_at_a_character_border() {
    let long = "é".repeat(MESSAGE_CAP);
    let refusal = Refusal::new(Reason::PolicyUnpriced, Rung::Permission).message(long);
    let rendered = render(&refusal, Denials::default(), CALL, "d");
    let document = Document::read(rendered.body, Limits { depth: 8, nodes: 64 }).unwrap();
    let message = document.root().get("error").unwrap().get("message").unwrap().as_str().unwrap().to_owned();
    assert_eq!(message, "é".repeat(MESSAGE_CAP / 2));
}

#[test]
fn only_a_method_with_an_id_gets_a_policy_frame() {
    let refusal = Refusal::new(Reason::PolicyNotPermitted, Rung::Permission);
    for to in
        [Addressee { id: None, method: "tools/call" }, Addressee { id: Some("1"), method: "" }, Addressee::default()]
    {
        let rendered = render(&refusal, Denials::default(), to, "d");
        assert_eq!(rendered.status, 403);
        assert!(text(&rendered.body).starts_with(r#"{"error":"policy.not_permitted","message":"#));
        assert!(text(&rendered.body).ends_with(r#","plugin":"permission"}"#));
    }
    let route = Refusal::new(Reason::RouteUnmatched, Rung::Route);
    assert_eq!(render(&route, Denials::default(), CALL, "d").status, 403);
}

#[test]
fn every_refusal_forbids_caching_and_policy_never_challenges() {
    for reason in Reason::ALL {
        let mut refusal = Refusal::new(*reason, Rung::Gate);
        refusal.challenge = Some("Bearer".into());
        let rendered = render(&refusal, Denials::default(), CALL, "d");
        assert_eq!(header(&rendered, "cache-control"), Some("no-store"), "{reason:?}");
        assert_eq!(header(&rendered, "content-type"), Some("application/json"), "{reason:?}");
        let challenged = header(&rendered, "www-authenticate").is_some();
        assert_eq!(challenged, reason.class() == Class::Challenge, "{reason:?}");
    }
}

#[test]
fn each_class_has_its_status() {
    let status = |reason, to| render(&Refusal::new(reason, Rung::Answer), Denials::default(), to, "d").status;
    assert_eq!(status(Reason::MethodNotAllowed, Addressee::default()), 405);
    assert_eq!(status(Reason::HeadersMalformed, Addressee::default()), 400);
    assert_eq!(status(Reason::OriginRefused, Addressee::default()), 403);
    assert_eq!(status(Reason::BodyUnsupportedType, Addressee::default()), 415);
    assert_eq!(status(Reason::BodyEncoded, Addressee::default()), 415);
    assert_eq!(status(Reason::BodyTooLarge, Addressee::default()), 413);
    assert_eq!(status(Reason::BodyMissing, Addressee::default()), 400);
    assert_eq!(status(Reason::MethodUnlisted, CALL), 404);
    assert_eq!(status(Reason::HeadersMismatch, CALL), 400);
    assert_eq!(status(Reason::AnswerUnreadable, CALL), 502);
    assert_eq!(status(Reason::TokenUnverifiable, Addressee::default()), 503);
    assert_eq!(status(Reason::TokenUnverifiable, CALL), 200);
}

#[test]
fn the_knobs_turn() {
    let knobs = Denials {
        policy_status: 403,
        code: -31999,
        unlisted_method_status: 400,
        upstream_status: 200,
        ..Denials::default()
    };
    let of = |reason| render(&Refusal::new(reason, Rung::Policy), knobs, CALL, "d");
    assert_eq!(of(Reason::PolicyNoPermissions).status, 403);
    assert!(text(&of(Reason::PolicyNoPermissions).body).contains(r#""code":-31999"#));
    assert_eq!(of(Reason::MethodUnlisted).status, 400);
    assert_eq!(of(Reason::AnswerUnreadable).status, 200);
}

#[test]
fn unavailable_says_when_to_come_back() {
    let mut refusal = Refusal::new(Reason::TokenUnverifiable, Rung::Token);
    refusal.retry_after = Some(9);
    let plain = render(&refusal, Denials::default(), Addressee::default(), "d");
    assert_eq!(header(&plain, "retry-after"), Some("9"));
    assert!(!text(&plain.body).contains(r#""id""#), "{}", text(&plain.body));
    let framed = render(&refusal, Denials::default(), CALL, "d");
    assert!(text(&framed.body).contains(r#""details":{"retry_after_seconds":9}"#));
}

#[test]
fn hidden_refusals_are_the_same_to_the_last_byte() {
    let knobs = Denials { disclose: Disclose::Hidden, ..Denials::default() };
    for (hidden, message) in [
        (Hidden::Tool("x".into()), "\"Unknown tool: x\"}"),
        (Hidden::Prompt("x".into()), "\"Unknown prompt: x\"}"),
        (Hidden::Resource("a:x".into()), "\"Resource not found\",\"data\":{\"uri\":\"a:x\"}}"),
    ] {
        for to in [CALL, Addressee { id: None, method: "tools/call" }] {
            let rendered: Vec<_> = [
                Refusal::new(Reason::PolicyUnpriced, Rung::Permission),
                Refusal::new(Reason::PolicyNotPermitted, Rung::Permission).detail("permission", Detail::Number(1)),
                Refusal::new(Reason::DefinitionGone, Rung::Definition),
            ]
            .into_iter()
            .map(|mut refusal| {
                refusal.hidden = Some(hidden.clone());
                render(&refusal, knobs, to, "decision")
            })
            .collect();
            assert_eq!(rendered[0], rendered[1]);
            assert_eq!(rendered[0], rendered[2]);
            if to.gets_frame() {
                let expected = format!(r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":-32602,"message":{message}}}"#);
                assert_eq!(text(&rendered[0].body), expected);
                assert_eq!(rendered[0].status, 200);
            }
        }
    }
}

#[test]
fn reasons_have_unique_codes_in_the_documented_grammar() {
    let mut codes: Vec<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert!(
        codes.iter().all(|code| code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'.' || byte == b'_'))
    );
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), Reason::ALL.len());
}

#[test]
fn json_rpc_codes_stay_out_of_the_range_that_mcp_reserves() {
    for reason in Reason::ALL {
        let code = reason.rpc_code().unwrap_or(-32000);
        assert!(!(-32099..=-32023).contains(&code) && code != -32021, "{reason:?} {code}");
    }
}
