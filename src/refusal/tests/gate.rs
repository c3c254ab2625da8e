//! Refusals of rung 17: a gate's own code, name, details, retry and challenge.

use super::{CALL, header, text};
use crate::refusal::frame::{DATA_CAP, Tier};
use crate::refusal::{Addressee, Denials, Detail, GateCode, GateMark, Reason, Refusal, Rendered, Rung, render};

fn denied(details: Option<&str>) -> Refusal {
    let mut refusal = Refusal::new(Reason::GateDenied, Rung::Gate).message("no");
    refusal.gate = Some(Box::new(GateMark {
        name: "acme".into(),
        code: GateCode::parse("payments.limit").ok(),
        details: details.map(str::to_owned),
        challenge: None,
    }));
    refusal
}

fn framed(refusal: &Refusal) -> Rendered {
    render(refusal, Denials::default(), CALL, "d")
}

#[test]
fn the_code_and_the_name_are_the_gates_own() {
    assert_eq!(
        text(&framed(&denied(Some(r#" {"limit": 1.0} "#))).body),
        r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no","data":{"error":"payments.limit","plugin":"acme","details":{"limit": 1.0},"decision":"d"}}}"#
    );
    let plain = render(&denied(None), Denials::default(), Addressee::default(), "d");
    assert_eq!(
        (plain.status, text(&plain.body)),
        (403, r#"{"error":"payments.limit","message":"no","plugin":"acme"}"#)
    );
    // Without a code of its own the reason's is left, under the gate's name all the same.
    let mut bare = denied(None);
    bare.gate.as_mut().unwrap().code = None;
    assert!(text(&framed(&bare).body).contains(r#""error":"gate.denied","plugin":"acme""#));
}

#[test]
fn details_are_one_object_or_cost_the_frame_its_data() {
    for bad in [
        "",
        "null",
        "[1]",
        "\"x\"",
        r#"{"a":1,"a":2}"#,
        r#"{"a":1},"admin":true"#,
        r#"{"a":1}},"x":{"#,
        "{\"a\":\"\\ud800\"}",
        "{",
    ] {
        let rendered = framed(&denied(Some(bad)));
        assert_eq!(rendered.tier, Tier::Minimal, "{bad}");
        assert_eq!(text(&rendered.body), r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"no"}}"#, "{bad}");
    }
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(DATA_CAP));
    assert_eq!(framed(&denied(Some(&large))).tier, Tier::Minimal);
    // Empty ones are left out.
    let empty = framed(&denied(Some("{ }")));
    assert!(empty.tier == Tier::Full && !text(&empty.body).contains("details"));
    // Deep ones would be more than the reader of frames takes.
    let deep = format!(r#"{{"a":{}1{}}}"#, "[".repeat(30), "]".repeat(30));
    assert_eq!(framed(&denied(Some(&deep))).tier, Tier::Minimal);
}

#[test]
fn a_retry_stands_among_the_details_or_in_a_header() {
    let mut refusal = denied(Some(r#"{"limit":1}"#));
    refusal.retry_after = Some(7);
    let rendered = framed(&refusal);
    assert!(
        text(&rendered.body).contains(r#""details":{"retry_after_seconds":7,"limit":1}"#),
        "{}",
        text(&rendered.body)
    );
    assert_eq!(header(&rendered, "retry-after"), None);
    let plain = render(&refusal, Denials::default(), Addressee::default(), "d");
    assert_eq!((plain.status, header(&plain, "retry-after")), (403, Some("7")));
    // A gate that says it itself would write it twice.
    refusal.gate.as_mut().unwrap().details = Some(r#"{"retry_after_seconds":9}"#.into());
    assert_eq!(framed(&refusal).tier, Tier::Minimal);
}

#[test]
fn a_challenge_that_may_pass_is_one() {
    let mut refusal = denied(None);
    refusal.gate.as_mut().unwrap().challenge = Some((401, "Bearer error=\"x\"".into()));
    let rendered = framed(&refusal);
    assert_eq!((rendered.status, header(&rendered, "www-authenticate")), (401, Some("Bearer error=\"x\"")));
    assert_eq!(text(&rendered.body), r#"{"error":"invalid_token","error_description":"no"}"#);
}

#[test]
fn a_code_is_short_and_plain() {
    for good in ["a", "a.b_c9", &"x".repeat(64)] {
        assert_eq!(GateCode::parse(good).expect(good).as_str(), good);
    }
    for bad in ["", "A", "a b", "a-b", "é", "a\n", &"x".repeat(65)] {
        assert!(GateCode::parse(bad).is_err(), "{bad}");
    }
    let refusal = denied(None).detail("x", Detail::Number(1));
    assert_eq!((refusal.error(), refusal.plugin()), ("payments.limit", "acme"));
}
