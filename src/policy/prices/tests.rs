mod reconciled;

use std::collections::BTreeMap;

use serde_json::json;

use super::{Capability, Covering, PriceEntry, Prices};
use crate::policy::testing::{person, source};
use crate::policy::uri::NotNormal;
use crate::policy::{Label, Policy, Scopes};

/// An entry as (label, permission, URI or "").
pub(super) fn entries(written: &[(&str, &str, &str)]) -> Vec<PriceEntry> {
    let entry = |(label, permission, uri): &(&str, &str, &str)| PriceEntry {
        label: (*label).to_owned(),
        permission: (*permission).to_owned(),
        uri: (!uri.is_empty()).then(|| (*uri).to_owned()),
    };
    written.iter().map(entry).collect()
}

pub(super) fn policy() -> Policy {
    let document = json!({
        "roles": {"reader": ["read"], "editor": ["read", "write"], "auditor": ["secrets"]},
        "rules": [{"match": {"domain": "acme.com"}, "role": "reader"}],
    });
    Policy::compile(&source(&document.to_string())).expect("compiles")
}

pub(super) fn capability_scopes(written: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    written.iter().map(|(label, names)| ((*label).to_owned(), owned(names))).collect()
}

pub(super) fn scopes(capabilities: &[(String, Vec<String>)]) -> Scopes {
    Scopes::compile(&["mcp".to_owned()], capabilities, &BTreeMap::new()).expect("compiles")
}

fn prices(written: &[(&str, &str, &str)], narrow: &[(&str, &[&str])]) -> (Prices, Scopes) {
    let narrow = capability_scopes(narrow);
    let scopes = scopes(&narrow);
    let reconciled = Prices::reconcile(&entries(written), &narrow, Some(&policy()), Some(&scopes));
    assert_eq!(reconciled.faults, []);
    (reconciled.prices.expect("no faults"), scopes)
}

fn texts(covering: &Covering<'_>) -> Vec<String> {
    covering.iter().map(|capability| capability.text.to_string()).collect()
}

#[test]
fn a_capability_is_found_by_kind_and_exact_name() {
    let (prices, _) = prices(
        &[
            ("search", "read", ""),
            ("tool:prompt:x", "write", ""),
            ("prompt:x", "read", ""),
            ("resource:case", "read", "c://case/{id}"),
            ("auditor", "secrets", ""),
        ],
        &[],
    );
    let text = |found: Option<&Capability>| found.map(|capability| capability.text.to_string());
    assert_eq!(text(prices.tool("search")).as_deref(), Some("tool:search"));
    assert_eq!(text(prices.tool("prompt:x")).as_deref(), Some("tool:prompt:x"));
    assert_eq!(text(prices.prompt("x")).as_deref(), Some("prompt:x"));
    assert_eq!(text(prices.resource("case")).as_deref(), Some("resource:case"));
    for absent in ["x", "Search", "search ", "", "tool:search", "case"] {
        assert_eq!(prices.tool(absent), None, "{absent:?}");
    }
    assert_eq!((prices.prompt("search"), prices.resource("search")), (None, None));
    let label: Label = "tool:search".parse().expect("a label");
    assert_eq!(prices.get(&label), prices.tool("search"));
    assert_eq!(prices.capabilities().iter().map(|capability| capability.index).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_price_is_paid_by_the_permission_of_the_same_name() {
    let policy = policy();
    let (prices, _) = prices(&[("search", "read", ""), ("update", "write", "")], &[]);
    let ada = policy.principal(&person("ada@acme.com"));
    let may = |name| prices.tool(name).is_some_and(|tool| ada.permissions.contains(tool.permission));
    assert!(may("search") && !may("update"));
    assert_eq!(prices.tool("update").map(|tool| tool.permission_name.as_ref()), Some("write"));
}

#[test]
fn a_permission_only_a_star_grants_is_nobody_elses() {
    let document = json!({"roles": {"admin": ["*"], "reader": ["read"]}, "rules": [
        {"match": {"email": "root@acme.com"}, "role": "admin"},
        {"match": {"domain": "acme.com"}, "role": "reader"},
    ]});
    let policy = Policy::compile(&source(&document.to_string())).expect("compiles");
    let entries = entries(&[("a", "secret", ""), ("b", "other", ""), ("c", "secret", ""), ("d", "read", "")]);
    let reconciled = Prices::reconcile(&entries, &[], Some(&policy), Some(&scopes(&[])));
    let prices = reconciled.prices.expect("no faults");
    let permission = |name| prices.tool(name).expect("priced").permission;
    assert_eq!(permission("a"), permission("c"));
    assert_ne!(permission("a"), permission("b"));
    let (root, ada) = (policy.principal(&person("root@acme.com")), policy.principal(&person("ada@acme.com")));
    for name in ["a", "b", "c"] {
        assert!(root.permissions.contains(permission(name)) && !ada.permissions.contains(permission(name)), "{name}");
    }
    assert!(ada.permissions.contains(permission("d")));
}

#[test]
fn a_capability_carries_its_own_scopes() {
    let (prices, scopes) =
        prices(&[("search", "read", ""), ("tool:update", "write", "")], &[("update", &["cases:write", "mcp"])]);
    let own = |name| scopes.names(&prices.tool(name).expect("priced").scopes).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(own("search"), Vec::<String>::new());
    assert_eq!(own("update"), ["mcp", "cases:write"]);
}

#[test]
fn every_resource_that_covers_a_uri_counts() {
    let (prices, _) = prices(
        &[
            ("resource:broad", "read", "c://{+any}"),
            ("tool:c", "read", ""),
            ("resource:payroll", "secrets", "c://case/payroll"),
            ("resource:case", "write", "c://case/{id}"),
        ],
        &[],
    );
    let covering = |uri| texts(&prices.covering(uri).expect("normal"));
    assert_eq!(covering("c://case/payroll"), ["resource:broad", "resource:payroll", "resource:case"]);
    assert_eq!(covering("c://case/1"), ["resource:broad", "resource:case"]);
    assert_eq!(covering("c://case/{id}"), ["resource:case"], "the identical template only");
    assert!(covering("c://case/{other}").is_empty());
    assert!(covering("d://x").is_empty());
}

#[test]
fn a_uri_that_may_mean_another_one_is_not_looked_up() {
    let (prices, _) = prices(
        &[("resource:broad", "read", "secret://{+any}"), ("resource:payroll", "secrets", "secret://payroll")],
        &[],
    );
    for (uri, rule) in [
        ("secret://payroll ", NotNormal::Space),
        ("secret://pay\troll", NotNormal::Control),
        ("secret://x/../payroll", NotNormal::DotSegment),
        ("secret://p%61yroll", NotNormal::EncodedUnreserved),
        ("SECRET://payroll", NotNormal::UpperCaseScheme),
        ("secret://é", NotNormal::NotAscii),
    ] {
        assert_eq!(prices.covering(uri).expect_err("refused"), rule, "{uri:?}");
    }
    assert_eq!(texts(&prices.covering("secret://payroll").expect("normal")), ["resource:broad", "resource:payroll"]);
}
