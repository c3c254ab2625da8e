//! What does not compile, and how it says so.

use serde_json::{Value as Json, json};

use crate::policy::testing::source;
use crate::policy::{Part, Policy};

fn faults(document: &Json) -> Vec<String> {
    match Policy::compile(&source(&document.to_string())) {
        Ok(_) => Vec::new(),
        Err(faults) => {
            assert!(faults.iter().all(|fault| fault.part == Part::Policy && !fault.path.is_empty()));
            faults.iter().map(ToString::to_string).collect()
        }
    }
}

fn refuses(document: &Json, path: &str, words: &str) {
    let found = faults(document);
    assert_eq!(found.len(), 1, "{document}: {found:#?}");
    assert!(found[0].starts_with(&format!("{path}: ")), "{found:#?}");
    assert!(found[0].contains(words), "{found:#?}");
}

fn rule(rule: &Json) -> Json {
    json!({"roles": {"reader": ["read"], "editor": []}, "rules": [{"role": "reader"}, rule]})
}

#[test]
fn roles_grant_what_the_catalogue_lists() {
    refuses(&json!({"permissions": ["read"], "roles": {"r": ["read", "wriet"]}, "rules": []}), "roles.r[1]", "'wriet'");
    refuses(&json!({"permissions": ["read", "*"], "roles": {}, "rules": []}), "permissions[1]", "'*'");
    refuses(&json!({"permissions": [], "roles": {"r": ["read"]}, "rules": []}), "roles.r[0]", "catalogue");
    assert!(
        faults(&json!({"permissions": ["read", "read"], "roles": {"r": ["*"], "s": ["read", "read"]}, "rules": []}))
            .is_empty()
    );
}

#[test]
fn a_star_stands_alone() {
    refuses(&json!({"roles": {"r": ["*", "read"]}, "rules": []}), "roles.r", "stand alone");
    assert!(faults(&json!({"roles": {"r": ["*"], "s": ["*", "*"]}, "rules": []})).is_empty());
}

#[test]
fn a_rule_gives_a_defined_role_or_denies() {
    refuses(&rule(&json!({"match": {"sub": "x"}})), "rules[1]", "'role' or 'deny: true'");
    refuses(&rule(&json!({"deny": false})), "rules[1]", "'role' or 'deny: true'");
    refuses(&rule(&json!({"role": []})), "rules[1].role", "empty list");
    refuses(&rule(&json!({"role": [], "deny": true})), "rules[1].role", "empty list");
    refuses(&rule(&json!({"role": ["reader", "boss"]})), "rules[1].role", "found 'boss'; defined are: editor, reader");
    assert!(faults(&rule(&json!({"role": "editor", "deny": true}))).is_empty());
}

#[test]
fn a_condition_that_can_never_hold_or_is_none_refuses() {
    refuses(&rule(&json!({"match": {"sub": ""}, "deny": true})), "rules[1].match.sub", "not empty");
    refuses(&rule(&json!({"match": {"issuer": ""}, "deny": true})), "rules[1].match.issuer", "not empty");
    refuses(&rule(&json!({"match": {"email": "acme.com"}, "deny": true})), "rules[1].match.email", "ada@acme.com");
    refuses(&rule(&json!({"match": {"email": "@acme.com"}, "deny": true})), "rules[1].match.email", "ada@acme.com");
    refuses(&rule(&json!({"match": {"domain": "@acme.com"}, "deny": true})), "rules[1].match.domain", "without '@'");
    refuses(&rule(&json!({"match": {"domain": ""}, "deny": true})), "rules[1].match.domain", "without '@'");
    refuses(&rule(&json!({"match": {"claim": {}}, "deny": true})), "rules[1].match.claim", "at least one claim");
    refuses(
        &rule(&json!({"match": {"claim": {"groups": []}}, "deny": true})),
        "rules[1].match.claim.groups",
        "empty list",
    );
    refuses(&rule(&json!({"match": {"claim": {"": "x"}}, "deny": true})), "rules[1].match.claim.", "name or path");
}

#[test]
fn names_can_be_told_apart() {
    refuses(&json!({"roles": {"r": [" read"]}, "rules": []}), "roles.r[0]", "white space");
    refuses(&json!({"roles": {"": []}, "rules": []}), "roles.", "not empty");
    refuses(&json!({"permissions": ["a\u{7}"], "roles": {}, "rules": []}), "permissions[0]", "control");
}

#[test]
fn all_faults_come_at_once() {
    let found = faults(&json!({
        "permissions": ["read", "*"],
        "roles": {"a": ["*", "read"], "b": ["write"]},
        "rules": [{}, {"role": "c"}, {"match": {"domain": "@x"}, "role": []}],
    }));
    let paths: Vec<&str> = found.iter().filter_map(|text| text.split(": ").next()).collect();
    assert_eq!(
        paths,
        [
            "permissions[1]",
            "roles.a",
            "roles.b[0]",
            "rules[0]",
            "rules[1].role",
            "rules[2].match.domain",
            "rules[2].role"
        ]
    );
}
