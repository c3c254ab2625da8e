//! Refusals of rung 17: a gate's own code, name, details, retry and challenge.

use super::{CALL, header, text};
use crate::refusal::frame::{DATA_CAP, Tier, why_less};
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
    // A gate that says it a second time among its details is not heard there, and loses nothing else.
    refusal.gate.as_mut().unwrap().details = Some(r#"{"retry_\u0061fter_seconds":9,"limit": 1}"#.into());
    let rendered = framed(&refusal);
    assert_eq!(rendered.tier, Tier::Full);
    let body = text(&rendered.body);
    assert!(body.contains(r#""details":{"retry_after_seconds":7,"limit":1}"#), "{body}");
    // Said there alone it stands.
    refusal.retry_after = None;
    refusal.gate.as_mut().unwrap().details = Some(r#"{"retry_after_seconds":9}"#.into());
    assert!(text(&framed(&refusal).body).contains(r#""details":{"retry_after_seconds":9}"#));
}

#[test]
fn why_a_frame_says_less_is_told() {
    let large = format!(r#"{{"a":"{}"}}"#, "x".repeat(DATA_CAP));
    for (details, why) in [
        ("[1]", "expected `details` to be one JSON object, got another JSON value"),
        (r#"{"a":1,"a":2}"#, "expected `details` to be one JSON object: "),
        (&large, "of at most 8192 bytes, got 8"),
    ] {
        let told = why_less(&denied(Some(details)));
        assert!(
            told.starts_with("error.data could not be rendered and was left out: ") && told.contains(why),
            "{told}"
        );
    }
}

#[test]
fn a_challenge_that_may_pass_is_one() {
    let mut refusal = denied(None);
    refusal.gate.as_mut().unwrap().challenge = Some((401, "Bearer error=\"x\"".into()));
    let rendered = framed(&refusal);
    assert_eq!((rendered.status, header(&rendered, "www-authenticate")), (401, Some("Bearer error=\"x\"")));
    assert_eq!(text(&rendered.body), r#"{"error":"x","error_description":"no"}"#);
    // Body and header say the same error; a header without one leaves the gate's code. Retry-After stays.
    refusal.retry_after = Some(3);
    for (challenge, error) in [
        (r#"Bearer realm="error=\"a\", b", error_description="c", Error = "step_up", scope="d""#, "step_up"),
        ("Bearer error=insufficient_scope", "insufficient_scope"),
        (r#"Basic realm="x, error=y""#, "payments.limit"),
        ("Bearer error=\"\"", "payments.limit"),
    ] {
        refusal.gate.as_mut().unwrap().challenge = Some((403, challenge.into()));
        let rendered = framed(&refusal);
        let body = format!(r#"{{"error":"{error}","error_description":"no"}}"#);
        assert_eq!((text(&rendered.body), header(&rendered, "retry-after")), (body.as_str(), Some("3")), "{challenge}");
    }
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
