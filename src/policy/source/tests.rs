use super::{PolicySource, RuleSource, Scalar};
use crate::policy::OneOrMany;

fn rule(text: &str) -> Result<RuleSource, String> {
    serde_saphyr::from_str(text).map_err(|error| error.to_string())
}

fn claim(text: &str) -> Result<Vec<Scalar>, String> {
    let rule = rule(&format!(r#"{{"match":{{"claim":{{"c":{text}}}}},"deny":true}}"#))?;
    let mut claims = rule.matches.claim.expect("a claim");
    Ok(claims.remove("c").expect("the claim c").0)
}

#[test]
fn a_role_is_a_name_or_a_list() {
    assert_eq!(rule(r#"{"role":"a"}"#).expect("reads").role, Some(OneOrMany(vec!["a".to_owned()])));
    assert_eq!(
        rule(r#"{"role":["a","b"]}"#).expect("reads").role,
        Some(OneOrMany(vec!["a".to_owned(), "b".to_owned()]))
    );
    for bad in [r#"{"role":3}"#, r#"{"role":{"a":1}}"#, r#"{"role":[["a"]]}"#] {
        assert!(rule(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_claim_value_keeps_its_type() {
    assert_eq!(claim(r#""1""#).expect("reads"), [Scalar::Text("1".to_owned())]);
    assert_eq!(claim("true").expect("reads"), [Scalar::Bool(true)]);
    assert_eq!(
        claim("[1, -2, 0.1, 18446744073709551615]").expect("reads"),
        ["1", "-2", "0.1", "18446744073709551615"].map(|n| Scalar::Number(n.to_owned()))
    );
}

#[test]
fn a_number_that_a_float_would_round_is_refused() {
    let text = claim("1e300").expect_err("refused");
    assert!(text.contains("exact"), "{text}");
}

#[test]
fn what_is_no_scalar_is_refused_with_what_was_expected() {
    for bad in ["null", "{}", "[null]", "[[1]]"] {
        let text = claim(bad).expect_err(bad);
        assert!(text.contains("expected"), "{text}");
    }
}

#[test]
fn unknown_keys_refuse_at_every_level() {
    for text in [
        r#"{"roles":{},"rules":[],"rule":[]}"#,
        r#"{"roles":{},"rules":[{"role":"a","allow":true}]}"#,
        r#"{"roles":{},"rules":[{"role":"a","match":{"subject":"x"}}]}"#,
        r#"{"roles":{}}"#,
        r#"{"rules":[]}"#,
    ] {
        assert!(serde_json::from_str::<PolicySource>(text).is_err(), "{text}");
    }
}

#[test]
fn the_schema_describes_every_key() {
    let schema = serde_json::to_value(schemars::schema_for!(PolicySource)).expect("a schema is JSON");
    let mut open = vec![&schema];
    let mut keys = 0;
    while let Some(node) = open.pop() {
        if let Some(properties) = node.get("properties").and_then(|properties| properties.as_object()) {
            for (key, property) in properties {
                keys += 1;
                assert!(property.get("description").is_some(), "no description: {key}");
            }
        }
        open.extend(node.as_object().into_iter().flat_map(|object| object.values()));
    }
    assert_eq!(keys, 11, "{schema:#}");
}
