use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ClaimRules, NumericDate, parse_date, scopes};
use crate::{
    identity::{
        IdentityFault,
        config::JwtSource,
        testing::{ISSUER, NOW, RESOURCE, good_claims, with},
    },
    message::json::{Document, Limits},
};

fn source(extra: &Value) -> JwtSource {
    let mut block = json!({"issuer": ISSUER});
    block.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    serde_json::from_value(block).unwrap()
}

fn rules_with(extra: &Value) -> ClaimRules {
    ClaimRules::new(ISSUER, false, RESOURCE, source(extra).claims())
}

fn document(text: &str) -> Document {
    Document::read(text.into(), Limits { depth: 32, nodes: 1000 }).unwrap()
}

fn check(rules: &ClaimRules, claims: &Value) -> Result<super::Checked, IdentityFault> {
    rules.check(document(&claims.to_string()), NOW)
}

fn refused(rules: &ClaimRules, claims: &Value) -> bool {
    matches!(check(rules, claims), Err(IdentityFault::Invalid { .. }))
}

#[test]
fn good_claims_pass_and_say_who_it_is() {
    let checked = check(&rules_with(&json!({})), &good_claims()).unwrap();
    assert_eq!(checked.expires_at, NOW + 3600 + 30);
    assert_eq!(&*checked.claims.issuer, ISSUER);
    assert_eq!(&*checked.claims.subject, "user-1");
    let email = checked.claims.email.unwrap();
    assert_eq!((&*email.address, email.verified), ("ann@acme.com", true));
    assert_eq!(checked.claims.client_id.as_deref(), Some("client-7"));
}

#[test]
fn a_claim_of_the_wrong_type_is_a_refusal_never_absent() {
    let wrong_strings = [json!(7), json!(true), json!({}), json!(["a"]), Value::String(String::new())];
    // Rules that need as little as possible: an absent claim would pass.
    let rules = rules_with(&json!({"require_email": false, "require_email_verified": false}));
    for name in ["hd", "client_id", "azp", "email"] {
        for value in &wrong_strings[..4] {
            assert!(refused(&rules, &with(good_claims(), name, value.clone())), "{name}: {value}");
        }
    }
    for name in ["iss", "sub"] {
        for value in &wrong_strings {
            assert!(refused(&rules, &with(good_claims(), name, value.clone())), "{name}: {value}");
        }
    }
    for name in ["exp", "nbf", "iat"] {
        for value in [json!("1800000000"), json!(true), json!([NOW]), json!({}), json!(-1), json!(1e300)] {
            assert!(refused(&rules, &with(good_claims(), name, value.clone())), "{name}: {value}");
        }
    }
    for value in [json!("true"), json!(1), json!([true])] {
        assert!(refused(&rules, &with(good_claims(), "email_verified", value.clone())), "{value}");
    }
    for name in ["scope", "scp"] {
        for value in [json!(7), json!({"mcp": true}), json!(["mcp", 7]), json!([["mcp"]]), json!(true)] {
            assert!(refused(&rules, &with(good_claims(), name, value.clone())), "{name}: {value}");
        }
    }
    for name in
        ["iss", "aud", "sub", "exp", "nbf", "iat", "email", "email_verified", "hd", "client_id", "azp", "scope", "scp"]
    {
        let mut claims = good_claims();
        claims[name] = Value::Null;
        assert!(refused(&rules, &claims), "{name}: null");
    }
}

#[test]
fn issuer_is_compared_byte_for_byte() {
    for issuer in ["https://auth.test/", "https://AUTH.test", "https://auth.tes", "", " https://auth.test"] {
        assert!(refused(&rules_with(&json!({})), &with(good_claims(), "iss", json!(issuer))), "{issuer}");
    }
    assert!(refused(&rules_with(&json!({})), &with(good_claims(), "iss", Value::Null)));
}

#[test]
fn audience_is_the_resource_or_one_of_the_configured() {
    let rules = rules_with(&json!({"audiences": ["00000003-0000-0000-c000-000000000000"]}));
    for good in
        [json!(RESOURCE), json!([RESOURCE]), json!(["other", RESOURCE]), json!("00000003-0000-0000-c000-000000000000")]
    {
        assert!(check(&rules, &with(good_claims(), "aud", good.clone())).is_ok(), "{good}");
    }
    for bad in [
        json!("https://mcp.test/mcp/"),
        json!("https://mcp.test"),
        json!("other"),
        json!([]),
        json!(""),
        json!([RESOURCE, 7]),
        json!({"aud": RESOURCE}),
        Value::Null,
    ] {
        assert!(refused(&rules, &with(good_claims(), "aud", bad.clone())), "{bad}");
    }
}

#[test]
fn an_origin_is_an_audience_with_and_without_its_slash() {
    for resource in ["https://mcp.test", "https://mcp.test/"] {
        let rules = ClaimRules::new(ISSUER, false, resource, source(&json!({})).claims());
        for audience in ["https://mcp.test", "https://mcp.test/"] {
            assert!(check(&rules, &with(good_claims(), "aud", json!(audience))).is_ok(), "{resource} {audience}");
        }
        assert!(refused(&rules, &with(good_claims(), "aud", json!("https://mcp.test//"))));
    }
}

#[test]
fn expiry_and_subject_are_required() {
    for name in ["exp", "sub"] {
        assert!(refused(&rules_with(&json!({})), &with(good_claims(), name, Value::Null)), "{name}");
    }
}

#[test]
fn the_times_have_their_leeway_and_no_more() {
    let rules = rules_with(&json!({}));
    let at = |name, seconds: u64| check(&rules, &with(good_claims(), name, json!(seconds)));
    assert!(at("exp", NOW - 29).is_ok());
    assert!(matches!(at("exp", NOW - 30), Err(IdentityFault::Expired { .. })));
    assert!(at("nbf", NOW + 30).is_ok());
    assert!(matches!(at("nbf", NOW + 31), Err(IdentityFault::Invalid { .. })));
    assert!(at("iat", NOW + 86_400).is_ok());
    let strict = rules_with(&json!({"leeway": "0s"}));
    assert!(check(&strict, &with(good_claims(), "exp", json!(NOW + 1))).is_ok());
    assert!(matches!(check(&strict, &with(good_claims(), "exp", json!(NOW))), Err(IdentityFault::Expired { .. })));
}

#[test]
fn an_expired_token_that_is_also_wrong_is_invalid() {
    let claims = with(good_claims(), "exp", json!(NOW - 100));
    assert!(refused(&rules_with(&json!({})), &with(claims, "aud", json!("other"))));
}

#[test]
fn email_rules() {
    let (default, unverified, none) = (
        rules_with(&json!({})),
        rules_with(&json!({"require_email_verified": false})),
        rules_with(&json!({"require_email": false})),
    );
    let without = with(with(good_claims(), "email", Value::Null), "email_verified", Value::Null);
    assert!(refused(&default, &without));
    assert!(refused(&unverified, &without));
    assert!(check(&none, &without).unwrap().claims.email.is_none());
    assert!(refused(&default, &with(good_claims(), "email", json!(""))));
    for value in [json!(false), Value::Null] {
        let claims = with(good_claims(), "email_verified", value);
        assert!(refused(&default, &claims));
        assert!(refused(&none, &claims), "an address that is there must be verified");
        assert!(!check(&unverified, &claims).unwrap().claims.email.unwrap().verified);
    }
}

#[test]
fn the_names_of_the_email_claims_are_configurable() {
    let rules = rules_with(&json!({"email_claim": "https://acme.com/mail", "email_verified_claim": "mail_ok"}));
    let claims = with(with(good_claims(), "https://acme.com/mail", json!("bob@acme.com")), "mail_ok", json!(true));
    assert_eq!(&*check(&rules, &claims).unwrap().claims.email.unwrap().address, "bob@acme.com");
    assert!(refused(&rules, &good_claims()));
}

#[test]
fn the_allowed_domain_is_the_hosted_domain() {
    let rules = rules_with(&json!({"allowed_domain": "acme.com"}));
    assert!(check(&rules, &with(good_claims(), "hd", json!("ACME.com"))).is_ok());
    for value in [Value::Null, json!("evil.com"), json!(""), json!("acme.com.evil.com")] {
        assert!(refused(&rules, &with(good_claims(), "hd", value.clone())), "{value}");
    }
}

#[test]
fn client_is_client_id_else_azp() {
    let rules = rules_with(&json!({}));
    let client = |claims: &Value| check(&rules, claims).unwrap().claims.client_id.map(|id| id.to_string());
    let azp = with(good_claims(), "azp", json!("azp-1"));
    assert_eq!(client(&azp).as_deref(), Some("client-7"));
    assert_eq!(client(&with(azp, "client_id", Value::Null)).as_deref(), Some("azp-1"));
    assert_eq!(client(&with(good_claims(), "client_id", Value::Null)), None);
}

#[test]
fn scopes_come_from_both_claims_in_both_shapes() {
    let of = |text: &str| scopes(&document(text)).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(of(r#"{"scope":"a  b "}"#), ["a", "b"]);
    assert_eq!(of(r#"{"scope":["a","b"],"scp":"c"}"#), ["a", "b", "c"]);
    assert_eq!(of(r#"{"scp":["c","d"]}"#), ["c", "d"]);
    assert!(of(r#"{"scope":""}"#).is_empty());
    assert!(of("{}").is_empty());
}

#[test]
fn a_leeway_is_a_short_time() {
    for (text, seconds) in [("0s", 0), ("45s", 45), ("5m", 300)] {
        assert_eq!(source(&json!({"leeway": text})).leeway.0, seconds);
    }
    for bad in [json!("6m"), json!("301s"), json!("1h"), json!(30), json!("-1s"), json!("s"), json!("")] {
        assert!(serde_json::from_value::<JwtSource>(json!({"issuer": ISSUER, "leeway": bad})).is_err(), "{bad}");
    }
}

#[test]
fn dates_are_read_exactly() {
    let date = |seconds, fraction| Some(NumericDate { seconds, fraction });
    for (text, expected) in [
        ("0", date(0, false)),
        ("1790000000", date(1_790_000_000, false)),
        ("1.79e9", date(1_790_000_000, false)),
        ("1.790000000E+9", date(1_790_000_000, false)),
        ("1790000000.0", date(1_790_000_000, false)),
        ("1790000000.5", date(1_790_000_000, true)),
        ("17900000005e-1", date(1_790_000_000, true)),
        ("18446744073709551615", date(u64::MAX, false)),
        ("18446744073709551616", None),
        ("1e400", None),
        ("1e99999999999", None),
        ("-1", None),
        ("-0", None),
    ] {
        assert_eq!(parse_date(text), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn dates_agree_with_floats_where_those_are_exact(whole in 0_u32.., quarters in 0_u8..4) {
        let float = f64::from(whole) + f64::from(quarters) / 4.0;
        let expected = Some(NumericDate { seconds: u64::from(whole), fraction: quarters != 0 });
        prop_assert_eq!(parse_date(&format!("{float}")), expected);
        prop_assert_eq!(parse_date(&format!("{float:e}")), expected);
    }
}
