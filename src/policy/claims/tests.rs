use proptest::prelude::*;

use super::{ClaimPath, fold};
use crate::policy::testing::claims;

fn domain(text: &str) -> Option<String> {
    claims("s", text).domain().map(str::to_owned)
}

#[test]
fn the_domain_is_hd_else_what_follows_the_last_at() {
    assert_eq!(
        domain(r#"{"email":"a@acme.com","email_verified":true,"hd":"corp.test"}"#).as_deref(),
        Some("corp.test")
    );
    assert_eq!(domain(r#"{"email":"\"a@b\"@acme.com","email_verified":true}"#).as_deref(), Some("acme.com"));
    assert_eq!(domain(r#"{"email":"nobody","email_verified":true}"#), None);
}

#[test]
fn an_unverified_email_gives_no_email_and_no_domain() {
    for text in [
        r#"{"email":"a@acme.com","email_verified":false,"hd":"acme.com"}"#,
        r#"{"email":"a@acme.com"}"#,
        r#"{"hd":"acme.com","email_verified":true}"#,
    ] {
        assert_eq!(domain(text), None, "{text}");
        assert_eq!(claims("s", text).verified_email(), None, "{text}");
    }
}

fn find(path: &str, text: &str) -> Option<String> {
    let claims = claims("s", text);
    ClaimPath::new(path).find(&claims.document).map(|value| value.raw().to_owned())
}

#[test]
fn a_claim_with_exactly_the_name_wins_over_the_path() {
    let text = r#"{"https://acme.com/groups":["a"],"realm.roles":1,"realm":{"roles":2,"deep":{"er":3}}}"#;
    assert_eq!(find("https://acme.com/groups", text).as_deref(), Some(r#"["a"]"#));
    assert_eq!(find("realm.roles", text).as_deref(), Some("1"));
    assert_eq!(find("realm.deep.er", text).as_deref(), Some("3"));
    assert_eq!(find("realm.deep", text).as_deref(), Some(r#"{"er":3}"#));
}

#[test]
fn a_path_goes_through_own_members_of_objects_only() {
    let text = r#"{"list":[{"name":1}],"text":"abc","object":{}}"#;
    for path in [
        "list.0",
        "list.0.name",
        "list.name",
        "text.length",
        "object.constructor",
        "__proto__",
        "object.",
        ".object",
        ".",
    ] {
        assert_eq!(find(path, text), None, "{path}");
    }
}

#[test]
fn folding_does_not_turn_other_letters_into_ascii() {
    assert_eq!(fold("Ada@ACME.com"), "ada@acme.com");
    assert_eq!(fold("ÉLAN@acme.com"), fold("élan@acme.com"));
    assert_ne!(fold("\u{212A}ate@acme.com"), fold("kate@acme.com"), "Kelvin sign");
    assert_ne!(fold("\u{130}da@acme.com"), fold("ida@acme.com"), "dotted capital I");
}

proptest! {
    #[test]
    fn folding_is_stable_and_ignores_ascii_case(text in any::<String>()) {
        let folded = fold(&text);
        prop_assert_eq!(fold(&folded), folded.clone());
        prop_assert_eq!(fold(&text.to_ascii_uppercase()), folded);
    }
}
