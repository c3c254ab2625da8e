//! Which requests a route takes, as far as path and method tell.

use serde_json::Value;

use super::value::{at, is_set, is_true, items, member, text};

/// Methods that may carry a body, and those of which a body is refused.
const WITH_BODY: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

/// Whether the route takes GET and HEAD only, so that no body needs to be judged.
pub(super) fn bodyless(matched: &Value) -> bool {
    let mut conditions =
        items(member(matched, "headers")).iter().filter(|header| text(member(header, "name")) == ":method");
    conditions.any(|header| WITH_BODY.iter().all(|method| header_takes(header, method) == Some(false)))
}

/// Whether the route may take this path.
pub(super) fn may_take(matched: &Value, path: &str) -> bool {
    let folded = is_set(member(matched, "case_sensitive")) && !is_true(member(matched, "case_sensitive"));
    let fold = |text: &str| if folded { text.to_ascii_lowercase() } else { text.to_owned() };
    let path = fold(path);
    for (key, value) in matched.as_object().into_iter().flatten() {
        let wanted = fold(text(value));
        let takes = match key.as_str() {
            "prefix" => path.starts_with(&wanted),
            "path" => path == wanted,
            "path_separated_prefix" => {
                path.strip_prefix(&wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }
            "safe_regex" => full(text(member(value, "regex")), &path).unwrap_or(true),
            "connect_matcher" => false,
            _ => continue,
        };
        return takes;
    }
    true
}

/// Whether the route takes every request of the paths that it matches.
pub(super) fn unconditional(matched: &Value) -> bool {
    let conditions = [
        "headers",
        "query_parameters",
        "runtime_fraction",
        "tls_context",
        "dynamic_metadata",
        "filter_state",
        "grpc",
        "cookies",
    ];
    conditions.iter().all(|key| !is_set(member(matched, key)))
}

/// Whether a header matcher takes this value; `None` when that cannot be told.
fn header_takes(matcher: &Value, value: &str) -> Option<bool> {
    let string = member(matcher, "string_match");
    let takes = if is_set(member(matcher, "exact_match")) {
        text(member(matcher, "exact_match")) == value
    } else if is_set(member(string, "exact")) {
        text(member(string, "exact")) == value
    } else if is_set(at(string, "safe_regex.regex")) {
        full(text(at(string, "safe_regex.regex")), value)?
    } else if is_set(at(matcher, "safe_regex_match.regex")) {
        full(text(at(matcher, "safe_regex_match.regex")), value)?
    } else {
        return None;
    };
    Some(takes != is_true(member(matcher, "invert_match")))
}

/// Whether the expression matches all of `text`; `None` when it cannot be compiled here.
fn full(pattern: &str, text: &str) -> Option<bool> {
    Some(regex::Regex::new(&format!("^(?:{pattern})$")).ok()?.is_match(text))
}
