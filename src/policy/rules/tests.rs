mod refused;

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::Policy;
use crate::policy::testing::{claims, person, source};
use crate::policy::{Claims, Principal};

fn policy(rules: &Json) -> Policy {
    let document = json!({
        "roles": {"reader": ["cases:read"], "editor": ["cases:write", "cases:read"], "admin": ["*"], "guest": []},
        "rules": rules,
    });
    Policy::compile(&source(&document.to_string())).expect("compiles")
}

fn roles(principal: &Principal) -> Vec<&str> {
    principal.roles.iter().map(AsRef::as_ref).collect()
}

/// Whether one rule with `matches` matches the caller.
fn matches(matches: &Json, claims: &Claims) -> bool {
    !policy(&json!([{"match": matches, "role": "reader"}])).principal(claims).permissions.is_empty()
}

#[test]
fn a_rule_without_match_is_for_every_authenticated_caller() {
    let robot = claims("robot", "{}");
    for rule in [json!({"role": "reader"}), json!({"match": {}, "role": "reader"})] {
        assert_eq!(roles(&policy(&json!([rule])).principal(&robot)), ["reader"]);
    }
}

#[test]
fn nobody_has_anything_by_default() {
    let principal = policy(&json!([])).principal(&person("ada@acme.com"));
    assert!(principal.permissions.is_empty() && principal.roles.is_empty());
    assert!(
        policy(&json!([{"role": "guest"}])).principal(&person("a@b.c")).permissions.is_empty(),
        "an empty role grants nothing"
    );
}

#[test]
fn issuer_and_subject_are_exact() {
    let caller = claims("Robot-1", "{}");
    assert!(matches(&json!({"sub": "Robot-1"}), &caller));
    assert!(!matches(&json!({"sub": "robot-1"}), &caller));
    assert!(matches(&json!({"issuer": "https://idp.test", "sub": "Robot-1"}), &caller));
    assert!(!matches(&json!({"issuer": "https://idp.test/", "sub": "Robot-1"}), &caller), "all keys must hold");
}

#[test]
fn email_and_domain_disregard_case_and_need_a_verified_email() {
    let ada = person("Ada@Acme.com");
    assert!(matches(&json!({"email": "aDA@acme.COM"}), &ada));
    assert!(matches(&json!({"domain": "ACME.com"}), &ada));
    assert!(!matches(&json!({"domain": "acme.co"}), &ada));
    assert!(!matches(&json!({"domain": "com"}), &ada));
    let unverified = claims("ada", r#"{"email":"ada@acme.com","email_verified":false,"hd":"acme.com"}"#);
    assert!(!matches(&json!({"email": "ada@acme.com"}), &unverified));
    assert!(!matches(&json!({"domain": "acme.com"}), &unverified));
    let hosted = claims("ada", r#"{"email":"ada@gmail.com","email_verified":true,"hd":"acme.com"}"#);
    assert!(matches(&json!({"domain": "acme.com"}), &hosted));
    assert!(!matches(&json!({"domain": "gmail.com"}), &hosted), "the hosted domain replaces the email's");
}

#[test]
fn a_scalar_claim_must_equal_and_an_array_must_contain() {
    let caller =
        claims("s", r#"{"team":"blue","groups":["a","case-editors",7,true],"level":3,"on":false,"o":{"x":"y"}}"#);
    for yes in [
        json!({"team": "blue"}),
        json!({"groups": "case-editors"}),
        json!({"groups": 7}),
        json!({"groups": true}),
        json!({"level": 3}),
        json!({"on": false}),
        json!({"o.x": "y"}),
        json!({"team": ["red", "blue"]}),
        json!({"groups": ["none", "a"], "level": [1, 2, 3]}),
    ] {
        assert!(matches(&json!({"claim": yes}), &caller), "{yes}");
    }
    for no in [
        json!({"team": "Blue"}),
        json!({"team": "blu"}),
        json!({"groups": "case"}),
        json!({"groups": "7"}),
        json!({"groups": "true"}),
        json!({"groups": false}),
        json!({"level": "3"}),
        json!({"level": 3.5}),
        json!({"on": true}),
        json!({"on": "false"}),
        json!({"o": "y"}),
        json!({"absent": "x"}),
        json!({"team": "blue", "level": 4}),
    ] {
        assert!(!matches(&json!({"claim": no}), &caller), "{no}");
    }
}

#[test]
fn numbers_compare_by_exact_value() {
    for (claim, rule, expected) in [
        ("1.0", json!(1), true),
        ("10e-1", json!(1), true),
        ("9007199254740993", json!(9_007_199_254_740_992_u64), false),
        ("9007199254740993", json!(9_007_199_254_740_993_u64), true),
        ("0.1", json!(0.1), true),
        ("0.10000000000000001", json!(0.1), false),
        ("-0", json!(0), true),
        ("1e99999999999999999999", json!(0), false),
    ] {
        let caller = claims("s", &format!(r#"{{"n":{claim}}}"#));
        assert_eq!(matches(&json!({"claim": {"n": rule}}), &caller), expected, "{claim} against {rule}");
    }
}

#[test]
fn several_array_items_that_meet_one_condition_count_once() {
    let caller = claims("s", r#"{"groups":["a","b","a"]}"#);
    assert!(!matches(&json!({"sub": "other", "claim": {"groups": ["a", "b"]}}), &caller));
    assert!(matches(&json!({"sub": "s", "claim": {"groups": ["a", "b"]}}), &caller));
}

#[test]
fn all_matching_rules_union_in_rule_order_each_role_once() {
    let policy = policy(&json!([
        {"match": {"domain": "acme.com"}, "role": ["reader", "guest"]},
        {"match": {"sub": "nobody"}, "role": "admin"},
        {"match": {"email": "ada@acme.com"}, "role": ["editor", "reader", "editor"]},
    ]));
    let principal = policy.principal(&person("ada@acme.com"));
    assert_eq!(roles(&principal), ["reader", "guest", "editor"]);
    let held = |name| policy.permissions().id(name).is_some_and(|id| principal.permissions.contains(id));
    assert!(held("cases:read") && held("cases:write"));
    assert!(!principal.permissions.is_all());
}

#[test]
fn one_matching_deny_empties_everything() {
    let policy = policy(&json!([
        {"role": "admin"},
        {"match": {"sub": "eve"}, "role": "reader", "deny": true},
        {"match": {"issuer": "https://idp.test"}, "role": "editor"},
        {"match": {"sub": "eve"}, "deny": true},
    ]));
    let eve = policy.principal(&claims("eve", "{}"));
    assert!(eve.permissions.is_empty() && eve.roles.is_empty());
    assert!(policy.principal(&claims("ada", "{}")).permissions.is_all());
    let explanation = policy.explain(&claims("eve", "{}"));
    assert_eq!(explanation.denied_by, Some(1));
    assert_eq!(explanation.matched.iter().map(|rule| rule.index).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn an_explanation_reads_well() {
    let policy = policy(&json!([
        {"match": {"domain": "acme.com"}, "role": "reader"},
        {"match": {"claim": {"groups": ["a", "b"]}, "sub": "x"}, "role": ["editor", "guest"]},
        {"match": {"sub": "x", "issuer": "https://idp.test"}, "deny": true},
    ]));
    let caller = claims("x", r#"{"groups":["b"],"email":"x@acme.com","email_verified":true}"#);
    assert_eq!(
        policy.explain(&caller).to_string(),
        "rules[0]: domain is acme.com -> role reader\n\
         rules[1]: sub is x and claim groups is one of a, b -> role editor, guest\n\
         rules[2]: issuer is https://idp.test and sub is x -> deny\n\
         denied by rules[2]"
    );
    assert_eq!(policy.explain(&claims("y", "{}")).to_string(), "no rule matches");
}

#[test]
fn a_principal_is_named_by_a_verified_email_else_by_issuer_and_subject() {
    let policy = policy(&json!([]));
    assert_eq!(policy.principal(&person("ada@acme.com")).to_string(), "ada@acme.com");
    assert_eq!(policy.principal(&claims("robot", "{}")).to_string(), "https://idp.test#robot");
    let unverified = claims("eve", r#"{"email":"ada@acme.com","email_verified":false}"#);
    assert_eq!(policy.principal(&unverified).to_string(), "https://idp.test#eve");
}

/// One rule as the slow matcher sees it, drawn from a small world so that rules often match.
fn rules() -> impl Strategy<Value = Vec<Json>> {
    let value =
        prop_oneof![(0..3).prop_map(|n| json!(n)), "[ab]".prop_map(|s| json!(s)), any::<bool>().prop_map(|b| json!(b))];
    let values = prop_oneof![value.clone(), prop::collection::vec(value, 1..3).prop_map(Json::from)];
    let claim = prop::collection::btree_map("[xy]", values, 1..3).prop_map(|claims| json!(claims));
    let rule = (
        prop::option::of("[st]"),
        prop::option::of(claim),
        prop::sample::select(vec!["reader", "editor", "guest"]),
        prop::bool::weighted(0.1),
    );
    let rule = rule.prop_map(|(sub, claim, role, deny)| {
        let mut matches = serde_json::Map::new();
        matches.extend(sub.map(|sub| ("sub".to_owned(), sub.into())));
        matches.extend(claim.map(|claim| ("claim".to_owned(), claim)));
        json!({"match": matches, "role": role, "deny": deny})
    });
    prop::collection::vec(rule, 0..6)
}

fn tokens() -> impl Strategy<Value = Json> {
    let value = prop_oneof![
        (0..3).prop_map(|n| json!(n)),
        "[ab]".prop_map(|s| json!(s)),
        any::<bool>().prop_map(|b| json!(b)),
        Just(Json::Null)
    ];
    let values = prop_oneof![value.clone(), prop::collection::vec(value, 0..4).prop_map(Json::from)];
    prop::collection::btree_map("[xy]", values, 0..3).prop_map(|claims| json!(claims))
}

/// The obvious evaluator: every rule, every condition, every value.
fn slow_match(rule: &Json, subject: &str, token: &Json) -> bool {
    let sub = rule["match"].get("sub").is_none_or(|sub| sub == subject);
    let claim_holds = |(path, wanted): (&String, &Json)| {
        let wanted = wanted.as_array().cloned().unwrap_or_else(|| vec![wanted.clone()]);
        match token.get(path) {
            Some(Json::Array(items)) => items.iter().any(|item| wanted.contains(item)),
            Some(value) => wanted.contains(value),
            None => false,
        }
    };
    sub && rule["match"].get("claim").and_then(Json::as_object).into_iter().flatten().all(claim_holds)
}

proptest! {
    #[test]
    fn the_index_agrees_with_asking_every_rule(rules in rules(), subject in "[st]", token in tokens()) {
        let policy = policy(&json!(rules));
        let claims = claims(&subject, &token.to_string());
        let expected: Vec<usize> = (0..rules.len()).filter(|at| slow_match(&rules[*at], &subject, &token)).collect();
        let explanation = policy.explain(&claims);
        prop_assert_eq!(explanation.matched.iter().map(|rule| rule.index).collect::<Vec<_>>(), expected.clone());
        let denied = expected.iter().copied().find(|at| rules[*at]["deny"] == json!(true));
        prop_assert_eq!(explanation.denied_by, denied);
        let mut names: Vec<&str> = Vec::new();
        if denied.is_none() {
            for at in expected {
                let role = rules[at]["role"].as_str().expect("a role");
                if !names.contains(&role) {
                    names.push(role);
                }
            }
        }
        let principal = policy.principal(&claims);
        prop_assert_eq!(roles(&principal), names);
    }
}
