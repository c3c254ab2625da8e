//! What reconciliation refuses and warns of.

use serde_json::json;

use super::{capability_scopes, entries, policy, scopes};
use crate::policy::testing::source;
use crate::policy::{Fault, Part, Policy, PriceEntry, Prices, Reconciled};

fn reconcile(entries: &[PriceEntry], scoped: &[(&str, &[&str])]) -> Reconciled {
    let scoped = capability_scopes(scoped);
    Prices::reconcile(entries, &scoped, Some(&policy()), Some(&scopes(&scoped)))
}

/// Exactly one fault, at `path` of `part`, that says `words`; and no prices.
fn refuses(written: &[(&str, &str, &str)], scoped: &[(&str, &[&str])], part: Part, path: &str, words: &[&str]) {
    let reconciled = reconcile(&entries(written), scoped);
    assert!(reconciled.prices.is_none());
    let [fault] = reconciled.faults.as_slice() else { panic!("expected one fault: {:#?}", reconciled.faults) };
    assert_eq!(fault.part, part, "{fault}");
    assert!(fault.to_string().starts_with(&format!("{path}: ")), "{fault}");
    for words in words {
        assert!(fault.message.contains(words), "{words:?} in {fault}");
    }
}

#[test]
fn a_price_that_no_role_grants() {
    refuses(
        &[("search", "raed", "")],
        &[],
        Part::Capabilities,
        "search.permission",
        &["'raed'", "tool:search", "no role grants"],
    );
    for none in ["", "*"] {
        refuses(&[("search", none, "")], &[], Part::Capabilities, "search.permission", &["tool:search"]);
    }
    let catalogue = json!({"permissions": ["read", "write"], "roles": {"r": ["read"]}, "rules": []});
    let policy = Policy::compile(&source(&catalogue.to_string())).expect("compiles");
    let reconciled = Prices::reconcile(&entries(&[("a", "write", "")]), &[], Some(&policy), Some(&scopes(&[])));
    assert_eq!(reconciled.faults.len(), 1, "the catalogue grants nothing");
}

#[test]
fn a_resource_without_a_uri_and_a_uri_without_a_resource() {
    refuses(&[("resource:case", "read", "")], &[], Part::Capabilities, "resource:case", &["'uri'", "resource:case"]);
    refuses(&[("prompt:p", "read", "c://x")], &[], Part::Capabilities, "prompt:p.uri", &["resources only", "'c://x'"]);
}

#[test]
fn two_entries_for_one_capability() {
    refuses(
        &[("search", "read", ""), ("tool:search", "write", "")],
        &[],
        Part::Capabilities,
        "tool:search",
        &["'search'", "'tool:search'"],
    );
    refuses(
        &[("a", "read", "")],
        &[("a", &["x"]), ("tool:a", &["y"])],
        Part::CapabilityScopes,
        "tool:a",
        &["'a'", "'tool:a'"],
    );
}

#[test]
fn a_label_without_a_name() {
    refuses(&[("tool:", "read", "")], &[], Part::Capabilities, "tool:", &["no name"]);
    refuses(&[("a", "read", "")], &[("prompt:", &["x"])], Part::CapabilityScopes, "prompt:", &["no name"]);
}

#[test]
fn scopes_for_something_that_has_no_price() {
    refuses(
        &[("a", "read", "")],
        &[("prompt:a", &["x"])],
        Part::CapabilityScopes,
        "prompt:a",
        &["prompt:a", "does not price"],
    );
}

#[test]
fn a_recorded_uri_out_of_normal_form() {
    refuses(
        &[("resource:a", "read", "C://a")],
        &[],
        Part::Capabilities,
        "resource:a.uri",
        &["lower-case scheme", "'C://a'"],
    );
    refuses(&[("resource:a", "read", "c://a/../{b}")], &[], Part::Capabilities, "resource:a.uri", &["'..'"]);
    refuses(&[("resource:a", "read", "a/b")], &[], Part::Capabilities, "resource:a.uri", &["absolute"]);
}

#[test]
fn a_template_that_is_none() {
    refuses(
        &[("resource:a", "read", "c://{a")],
        &[],
        Part::Capabilities,
        "resource:a.uri",
        &["close the '{'", "'c://{a'"],
    );
    refuses(&[("resource:a", "read", "c://{}")], &[], Part::Capabilities, "resource:a.uri", &["variable name"]);
}

#[test]
fn templates_that_are_too_large_together() {
    let written: Vec<PriceEntry> = (0..40)
        .map(|n| PriceEntry {
            label: format!("resource:r{n}"),
            permission: "read".to_owned(),
            uri: Some(format!("c://{n}/{{a:9999}}")),
        })
        .collect();
    let reconciled = reconcile(&written, &[]);
    assert!(reconciled.prices.is_none());
    assert_eq!(reconciled.faults.len(), 1);
    let fault = reconciled.faults[0].to_string();
    assert!(fault.starts_with("resource:r") && fault.contains(".uri: ") && fault.contains("one too many"), "{fault}");
}

#[test]
fn a_granted_permission_that_nothing_costs_is_a_warning() {
    let reconciled = reconcile(&entries(&[("a", "read", "")]), &[]);
    assert!(reconciled.prices.is_some(), "a warning loads");
    let shown: Vec<String> = reconciled.warnings.iter().map(Fault::to_string).collect();
    assert_eq!(
        shown,
        [
            "roles.auditor: permission 'secrets' is granted (roles: auditor) and nothing costs it; correct or remove it",
            "roles.editor: permission 'write' is granted (roles: editor) and nothing costs it; correct or remove it",
        ]
    );
    assert!(reconciled.warnings.iter().all(|warning| warning.part == Part::Policy));
}

#[test]
fn all_faults_come_at_once_also_without_policy_and_scopes() {
    let written = entries(&[
        ("a", "raed", ""),
        ("tool:a", "read", ""),
        ("resource:r", "read", ""),
        ("resource:s", "read", "c://{"),
    ]);
    let narrow = capability_scopes(&[("nothing", &["x"])]);
    let count = |policy, scopes| Prices::reconcile(&written, &narrow, policy, scopes).faults.len();
    let (policy, scopes) = (policy(), scopes(&narrow));
    assert_eq!(count(Some(&policy), Some(&scopes)), 5);
    assert_eq!(count(None, None), 4, "whether a price is granted needs the policy");
    let fine = entries(&[("a", "read", "")]);
    assert!(Prices::reconcile(&fine, &[], None, Some(&scopes)).prices.is_none(), "no prices without a policy");
    assert!(Prices::reconcile(&fine, &[], Some(&policy), None).prices.is_none(), "no prices without scopes");
}
