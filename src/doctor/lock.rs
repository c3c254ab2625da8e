//! The second lock: does an `rbac` rule open for Portcullis's verdict, and for nothing else?

use serde_json::Value;

use super::value::{any_within, at, entries, is_set, is_true, items, member, text, word};

/// What a lock must ask for.
#[derive(Clone, Copy)]
pub(super) enum Asks<'a> {
    /// `portcullis.decided` is true.
    Decided,
    /// `portcullis.server` is this name.
    Server(&'a str),
    /// `portcullis.server` is some name.
    AnyServer,
}

/// Whether anything in a filter's configuration looks at Portcullis's metadata.
pub(super) fn mentions(config: &Value) -> bool {
    any_within(config, &|map| map.get("filter").and_then(Value::as_str) == Some("portcullis"))
}

/// Whether these rules (`envoy.config.rbac.v3.RBAC`) open only for who has what `asks` says.
///
/// # Errors
/// What is wrong with them.
pub(super) fn opens_only_for(rules: &Value, asks: Asks<'_>) -> Result<(), String> {
    if !is_set(rules) {
        return Err("no `rules`, which lets everything pass".to_owned());
    }
    let action = word(member(rules, "action"), &["ALLOW", "DENY", "LOG"]);
    if action != "ALLOW" {
        return Err(format!("action {action}"));
    }
    for (name, policy) in entries(member(rules, "policies")) {
        let all = |key: &str| {
            let all = items(member(policy, key));
            !all.is_empty() && all.iter().all(|rule| implies(rule, asks))
        };
        if !all("permissions") && !all("principals") {
            return Err(format!("a policy `{name}` that opens without {}", asked(asks)));
        }
    }
    Ok(())
}

fn asked(asks: Asks<'_>) -> String {
    match asks {
        Asks::Decided => "`portcullis.decided` is true".to_owned(),
        Asks::Server(name) => format!("`portcullis.server` is `{name}`"),
        Asks::AnyServer => "`portcullis.server`".to_owned(),
    }
}

/// Whether a permission or principal holds only where what is asked for does.
fn implies(rule: &Value, asks: Asks<'_>) -> bool {
    let lists = |keys: [&str; 2]| keys.map(|key| items(at(rule, key)));
    let all_of = lists(["and_rules.rules", "and_ids.ids"]);
    if all_of.iter().any(|rules| rules.iter().any(|rule| implies(rule, asks))) {
        return true;
    }
    let one_of = lists(["or_rules.rules", "or_ids.ids"]);
    if one_of.iter().any(|rules| !rules.is_empty() && rules.iter().all(|rule| implies(rule, asks))) {
        return true;
    }
    let sourced = member(rule, "sourced_metadata");
    let dynamic = word(member(sourced, "metadata_source"), &["DYNAMIC", "ROUTE"]) == "DYNAMIC";
    holds(member(rule, "metadata"), asks) || (dynamic && holds(member(sourced, "metadata_matcher"), asks))
}

/// Whether a metadata matcher holds only where what is asked for does.
fn holds(matcher: &Value, asks: Asks<'_>) -> bool {
    let path: Vec<&str> = items(member(matcher, "path")).iter().map(|segment| text(member(segment, "key"))).collect();
    let value = member(matcher, "value");
    let exact = text(at(value, "string_match.exact"));
    let fits = match asks {
        Asks::Decided => path == ["decided"] && is_true(member(value, "bool_match")),
        Asks::Server(name) => path == ["server"] && exact == name && !is_true(at(value, "string_match.ignore_case")),
        Asks::AnyServer => path == ["server"] && !exact.is_empty(),
    };
    fits && text(member(matcher, "filter")) == "portcullis" && !is_true(member(matcher, "invert"))
}

/// The server that these rules ask for, when they name one anywhere.
pub(super) fn server(rules: &Value) -> Option<&str> {
    match rules {
        Value::Array(items) => items.iter().find_map(server),
        Value::Object(map) => {
            let own = holds(rules, Asks::AnyServer).then(|| text(at(rules, "value.string_match.exact")));
            own.or_else(|| map.values().find_map(server))
        }
        _ => None,
    }
}
