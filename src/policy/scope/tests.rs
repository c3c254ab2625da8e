use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{ScopeSet, Scopes, is_scope_token};
use crate::policy::fault::{Fault, Part};

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn compile(
    required: &[&str],
    capabilities: &[(&str, &[&str])],
    implies: &[(&str, &[&str])],
) -> Result<Scopes, Vec<Fault>> {
    let capabilities: Vec<_> =
        capabilities.iter().map(|(label, scopes)| ((*label).to_owned(), strings(scopes))).collect();
    let implies: BTreeMap<_, _> =
        implies.iter().map(|(broad, narrow)| ((*broad).to_owned(), strings(narrow))).collect();
    Scopes::compile(&strings(required), &capabilities, &implies)
}

fn names(scopes: &Scopes, set: &ScopeSet) -> Vec<String> {
    scopes.names(set).map(str::to_owned).collect()
}

#[test]
fn what_is_missing_is_named_in_configuration_order() {
    let scopes = compile(&["mcp", "base"], &[("b", &["z:write", "a:read"]), ("a", &["mcp"])], &[]).expect("compiles");
    let mut needed = scopes.required().clone();
    needed.union(&scopes.set(["a:read", "z:write"]));
    let missing = scopes.missing(&needed, &scopes.held(["base", "unheard-of"]));
    assert_eq!(names(&scopes, &missing), ["mcp", "z:write", "a:read"]);
    assert!(scopes.missing(&needed, &scopes.held(["a:read", "z:write", "mcp", "base"])).is_empty());
    assert_eq!(scopes.asked_for().collect::<Vec<_>>(), ["mcp", "base", "z:write", "a:read"]);
}

#[test]
fn a_broader_scope_holds_the_narrower_through_any_number_of_steps() {
    let scopes = compile(
        &["mcp"],
        &[("t", &["read", "write"])],
        &[("admin", &["write"]), ("write", &["read"]), ("root", &["admin", "mcp"])],
    )
    .expect("compiles");
    assert_eq!(names(&scopes, &scopes.held(["root"])), ["mcp", "read", "write", "admin", "root"]);
    assert_eq!(names(&scopes, &scopes.held(["write"])), ["read", "write"]);
    assert_eq!(names(&scopes, &scopes.held(["read"])), ["read"], "the narrower does not hold the broader");
    assert_eq!(
        scopes.asked_for().collect::<Vec<_>>(),
        ["mcp", "read", "write"],
        "the hierarchy's own are not asked for"
    );
    assert_eq!(names(&scopes, &scopes.set(["write"])), ["write"], "what is needed is not widened");
}

#[test]
fn scopes_that_imply_each_other_are_the_same() {
    let scopes = compile(&["a"], &[], &[("a", &["b"]), ("b", &["c"]), ("c", &["a"])]).expect("compiles");
    for scope in ["a", "b", "c"] {
        assert!(scopes.missing(scopes.required(), &scopes.held([scope])).is_empty(), "{scope}");
    }
}

#[test]
fn the_grammar_of_a_scope_token() {
    for good in ["!", "mcp", "cases:write", "https://acme.com/x", "~", "[", "]"] {
        assert!(is_scope_token(good), "{good:?}");
    }
    for bad in ["", "a b", "\"", "a\\b", "é", "a\n", "\u{7f}"] {
        assert!(!is_scope_token(bad), "{bad:?}");
    }
}

#[test]
fn all_faults_come_at_once_with_their_paths() {
    let faults = compile(&["mcp", "a b"], &[("x", &[]), ("y", &["ok", ""])], &[("é", &["ok"]), ("b", &[])])
        .expect_err("five faults");
    let shown: Vec<_> = faults.iter().map(|fault| (fault.part, fault.to_string())).collect();
    let expect = [
        (Part::RequiredScopes, "[1]: expected a scope"),
        (Part::CapabilityScopes, "x: expected at least one scope for 'x'"),
        (Part::CapabilityScopes, "y[1]: expected a scope"),
        (Part::Implies, "b: expected at least one scope for 'b'"),
        (Part::Implies, "é: expected a scope"),
    ];
    assert_eq!(shown.len(), expect.len(), "{shown:#?}");
    for ((part, text), (expected_part, start)) in shown.iter().zip(expect) {
        assert_eq!(*part, expected_part);
        assert!(text.starts_with(start), "{text}");
    }
}

#[test]
fn capability_scopes_need_required_scopes() {
    let faults = compile(&[], &[("x", &["a"])], &[]).expect_err("refused");
    assert_eq!(faults.len(), 1);
    assert_eq!((faults[0].part, faults[0].path.len()), (Part::CapabilityScopes, 0));
    assert!(compile(&[], &[], &[]).is_ok());
}

proptest! {
    /// Against the obvious: repeat "add what is implied" until nothing changes.
    #[test]
    fn held_is_the_transitive_closure(edges in prop::collection::btree_map(0_u8..8, prop::collection::vec(0_u8..8, 1..4), 0..8), start in 0_u8..8) {
        let name = |scope: u8| format!("s{scope}");
        let implies: BTreeMap<String, Vec<String>> =
            edges.iter().map(|(broad, narrow)| (name(*broad), narrow.iter().map(|scope| name(*scope)).collect())).collect();
        let all: Vec<String> = (0..8).map(name).collect();
        let scopes = Scopes::compile(&all, &[], &implies).expect("compiles");
        let mut expected = std::collections::BTreeSet::from([start]);
        for _ in 0..8 {
            let more: Vec<u8> = expected.iter().filter_map(|scope| edges.get(scope)).flatten().copied().collect();
            expected.extend(more);
        }
        let held = scopes.held([name(start).as_str()]);
        prop_assert_eq!(names(&scopes, &held), expected.into_iter().map(name).collect::<Vec<_>>());
    }
}
