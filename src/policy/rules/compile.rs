//! From the policy document to the policy, or to everything that is wrong with it.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::sync::Arc;

use super::index::Index;
use super::{Policy, Role, Rule};
use crate::policy::fault::{Fault, Part, Segment, list};
use crate::policy::one_or_many::OneOrMany;
use crate::policy::permission::{PermissionSet, Permissions};
use crate::policy::source::{MatchSource, PolicySource, RuleSource, Scalar};

/// Every permission, as a role writes it.
const EVERY: &str = "*";

/// Collects faults with their paths.
struct Faults(Vec<Fault>);

impl Faults {
    fn add(&mut self, path: &[Segment], message: impl Into<String>) {
        self.0.push(Fault::new(Part::Policy, path.iter().cloned(), message));
    }
}

/// A path: `path!["roles", name, index]`.
macro_rules! path {
    ($($step:expr),+) => { [$(Segment::from($step)),+] };
}

pub(super) fn policy(source: &PolicySource) -> Result<Policy, Vec<Fault>> {
    let mut faults = Faults(Vec::new());
    let mut permissions = Permissions::default();
    let catalogue = catalogue(source.permissions.as_deref(), &mut permissions, &mut faults);
    let roles = source
        .roles
        .iter()
        .map(|(name, grants)| role(name, grants, catalogue.as_ref(), &mut permissions, &mut faults))
        .collect();
    let known: BTreeMap<&str, usize> = source.roles.keys().map(String::as_str).zip(0..).collect();
    let mut index = Index::default();
    let mut compiled = Vec::with_capacity(source.rules.len());
    for (at, written) in source.rules.iter().enumerate() {
        check_match(at, &written.matches, &mut faults);
        index.add(&written.matches);
        compiled.push(rule(at, written, &known, &mut faults));
    }
    if faults.0.is_empty() { Ok(Policy { permissions, roles, rules: compiled, index }) } else { Err(faults.0) }
}

fn catalogue<'a>(
    listed: Option<&'a [String]>,
    permissions: &mut Permissions,
    faults: &mut Faults,
) -> Option<HashSet<&'a str>> {
    let listed = listed?;
    for (at, permission) in listed.iter().enumerate() {
        if permission == EVERY {
            let message =
                "expected the name of a permission, found '*'; only a role holds '*', remove it from the catalogue";
            faults.add(&path!["permissions", at], message);
        } else if check_name(&path!["permissions", at], "a permission", permission, faults) {
            permissions.intern(permission);
        }
    }
    Some(listed.iter().map(String::as_str).collect())
}

fn role(
    name: &str,
    granted: &[String],
    catalogue: Option<&HashSet<&str>>,
    permissions: &mut Permissions,
    faults: &mut Faults,
) -> Role {
    check_name(&path!["roles", name], "a role", name, faults);
    let every = granted.iter().any(|permission| permission == EVERY);
    let mut grants = if every { PermissionSet::all() } else { PermissionSet::default() };
    if every && granted.iter().any(|permission| permission != EVERY) {
        let message = format!(
            "expected '*' to stand alone in role '{name}', found it beside other permissions; keep '*' (every permission) \
             or the others"
        );
        faults.add(&path!["roles", name], message);
    }
    for (at, permission) in granted.iter().enumerate().filter(|(_, permission)| *permission != EVERY) {
        let path = path!["roles", name, at];
        if !check_name(&path, "a permission", permission, faults) {
            continue;
        }
        if catalogue.is_some_and(|catalogue| !catalogue.contains(permission.as_str())) {
            let message = format!(
                "expected a permission that the catalogue 'permissions' lists, found '{permission}' in role '{name}'; add \
                 it to the catalogue or correct it"
            );
            faults.add(&path, message);
        }
        grants.insert(permissions.intern(permission));
    }
    Role { name: Arc::from(name), grants }
}

fn rule(at: usize, written: &RuleSource, known: &BTreeMap<&str, usize>, faults: &mut Faults) -> Rule {
    match &written.role {
        Some(OneOrMany(roles)) if roles.is_empty() => {
            let message = "expected a role or a non-empty list of roles, found an empty list; name one, or leave 'role' out \
                           of a rule that only denies";
            faults.add(&path!["rules", at, "role"], message);
        }
        None if !written.deny => {
            let message = "expected 'role' or 'deny: true', found neither; say what the rule gives";
            faults.add(&path!["rules", at], message);
        }
        _ => {}
    }
    let mut roles = Vec::new();
    for name in written.role.iter().flatten() {
        match known.get(name.as_str()) {
            Some(role) if !roles.contains(role) => roles.push(*role),
            Some(_) => {}
            None => {
                let message =
                    format!("expected a defined role, found '{name}'; defined are: {}", list(known.keys().copied()));
                faults.add(&path!["rules", at, "role"], message);
            }
        }
    }
    Rule { roles, deny: written.deny, who: who(&written.matches).into() }
}

/// A value that can never match, or a condition that is none, is a mistake: in a rule that denies it would let in.
fn check_match(at: usize, matches: &MatchSource, faults: &mut Faults) {
    let plain =
        [("issuer", &matches.issuer), ("sub", &matches.sub), ("email", &matches.email), ("domain", &matches.domain)];
    for (key, value) in plain {
        let Some(value) = value else { continue };
        let expected = match key {
            "email" if !value.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty()) => {
                "an address such as ada@acme.com"
            }
            "domain" if value.is_empty() || value.contains('@') => "a domain such as acme.com, without '@'",
            _ if value.is_empty() => "a text that is not empty",
            _ => continue,
        };
        let message = format!("expected {expected}, found {value:?}; correct it or leave '{key}' out");
        faults.add(&path!["rules", at, "match", key], message);
    }
    let Some(claims) = &matches.claim else { return };
    if claims.is_empty() {
        let message =
            "expected at least one claim, found none; name one or leave 'claim' out (which matches any claims)";
        faults.add(&path!["rules", at, "match", "claim"], message);
    }
    for (claim, values) in claims {
        let path = path!["rules", at, "match", "claim", claim.as_str()];
        if claim.is_empty() {
            faults.add(&path, "expected the name or path of a claim, found \"\"; name the claim");
        }
        if values.0.is_empty() {
            faults.add(
                &path,
                "expected a value or a non-empty list of values, found an empty list; nothing can match it",
            );
        }
    }
}

/// Whether `name` can be told apart by eye from every other name: not empty, no control characters, no white space at
/// its ends.
fn check_name(path: &[Segment], what: &str, name: &str, faults: &mut Faults) -> bool {
    let good = !name.is_empty() && name.trim() == name && !name.chars().any(char::is_control);
    if !good {
        let message = format!(
            "expected the name of {what} (not empty, no white space at its ends, no control characters), found {name:?}; \
             correct it"
        );
        faults.add(path, message);
    }
    good
}

/// Whom a match covers, for people.
fn who(matches: &MatchSource) -> String {
    let mut text = String::new();
    let mut add = |what: &str, values: &[String]| {
        let and = if text.is_empty() { "" } else { " and " };
        let verb = if values.len() == 1 { "is" } else { "is one of" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{and}{what} {verb} {}", list(values.iter().map(String::as_str)));
    };
    let plain =
        [("issuer", &matches.issuer), ("sub", &matches.sub), ("email", &matches.email), ("domain", &matches.domain)];
    for (key, value) in plain {
        if let Some(value) = value {
            add(key, std::slice::from_ref(value));
        }
    }
    for (claim, values) in matches.claim.iter().flatten() {
        let values: Vec<String> = values.iter().map(Scalar::to_string).collect();
        add(&format!("claim {claim}"), &values);
    }
    if text.is_empty() { "everyone".to_owned() } else { text }
}
