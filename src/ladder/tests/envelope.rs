//! Rung 10, row by row in the order of the ladder: a message that is wrong in several ways is refused for the first.

use std::sync::LazyLock;

use super::reason;
use crate::ladder::testing::{World, document, head, message, world};
use crate::ladder::{Head, envelope, message as rung};
use crate::refusal::Refusal;

const NOW: &str = "2026-07-28";

fn check(head: &Head, text: &str) -> Result<(), Refusal> {
    static WORLD: LazyLock<World> = LazyLock::new(|| world(&[]));
    let document = document(text);
    envelope::check(WORLD.server(), head, &rung::message(&document).expect("a message"))
}

/// Headers for a call of the tool `search`: revision, method, name; empty for none.
fn with(version: &str, method: &str, name: &str) -> Head {
    let all = [("mcp-protocol-version", version), ("mcp-method", method), ("mcp-name", name)];
    let there: Vec<_> = all.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    head("POST", "/mcp", &there)
}

/// A call of the tool `search` with this `_meta`.
fn call(meta: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"search"{meta}}}}}"#)
}

fn meta(version: &str, capabilities: &str) -> String {
    call(&format!(
        r#","_meta":{{"io.modelcontextprotocol/protocolVersion":{version},"io.modelcontextprotocol/clientCapabilities":{capabilities}}}"#
    ))
}

#[test]
fn the_first_thing_wrong_is_told() {
    let good = meta("\"2026-07-28\"", "{}");
    let other = meta("\"2099-01-01\"", "{}");
    let none = call("");
    let rows = [
        // No claim, and the header absent or older: whatever else is wrong.
        ("", "", "", none.clone(), "version.unsupported"),
        ("2025-11-25", "wrong", "wrong", none.clone(), "version.unsupported"),
        ("2024-11-05", "", "", call(r#","_meta":{}"#), "version.unsupported"),
        ("2025-11-25", "", "", call(r#","_meta":7"#), "version.unsupported"),
        // Required members missing or malformed.
        (NOW, "wrong", "wrong", none.clone(), "envelope.invalid"),
        ("2099-01-01", "", "", none.clone(), "envelope.invalid"),
        ("nonsense", "", "", none.clone(), "envelope.invalid"),
        (NOW, "", "", call(r#","_meta":[]"#), "envelope.invalid"),
        ("", "", "", meta("7", "{}"), "envelope.invalid"),
        ("", "", "", meta("null", "{}"), "envelope.invalid"),
        ("2025-11-25", "", "", meta("\"2026-07-28\"", "[]"), "envelope.invalid"),
        ("2025-11-25", "", "", meta("\"2099-01-01\"", "null"), "envelope.invalid"),
        (NOW, "", "", call(r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#), "envelope.invalid"),
        // The header is missing, or not what the body claims.
        ("", "wrong", "wrong", good.clone(), "headers.mismatch"),
        ("2025-11-25", "wrong", "wrong", good.clone(), "headers.mismatch"),
        (NOW, "wrong", "wrong", other.clone(), "headers.mismatch"),
        ("", "", "", other.clone(), "headers.mismatch"),
        // Alike, and not spoken.
        ("2099-01-01", "wrong", "wrong", other, "version.unsupported"),
        ("2025-11-25", "", "", meta("\"2025-11-25\"", "{}"), "version.unsupported"),
        // The method, then the name.
        (NOW, "", "wrong", good.clone(), "headers.mismatch"),
        (NOW, "tools/list", "search", good.clone(), "headers.mismatch"),
        (NOW, "Tools/call", "search", good.clone(), "headers.mismatch"),
        (NOW, "tools/call", "", good.clone(), "headers.mismatch"),
        (NOW, "tools/call", "update", good.clone(), "headers.mismatch"),
        (NOW, "tools/call", "Search", good.clone(), "headers.mismatch"),
        (NOW, "tools/call", "=?base64?dXBkYXRl?=", good.clone(), "headers.mismatch"),
        (NOW, "tools/call", "=?base64?c2VhcmNo=?=", good.clone(), "headers.malformed"),
        (NOW, "tools/call", "=?base64?=", good.clone(), "headers.malformed"),
        (NOW, "tools/call", "search", good.clone(), "passed"),
        (" 2026-07-28\t", " tools/call ", "\tsearch ", good.clone(), "passed"),
        (NOW, "tools/call", "=?base64?c2VhcmNo?=", good, "passed"),
    ];
    for (version, method, name, text, expected) in rows {
        let outcome = check(&with(version, method, name), &text);
        assert_eq!(reason(&outcome), expected, "{version:?} {method:?} {name:?} {text}");
    }
}

#[test]
fn the_method_is_told_before_the_name() {
    let text = meta("\"2026-07-28\"", "{}");
    let refusal = check(&with(NOW, "tools/list", "update"), &text).expect_err("both are wrong");
    assert!(refusal.message.contains("Mcp-Method"), "{}", refusal.message);
}

#[test]
fn who_speaks_an_older_revision_learns_what_is_spoken_here() {
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    for version in ["", "2025-11-25"] {
        let refusal = check(&with(version, "", ""), initialize).expect_err("it is older");
        assert_eq!(refusal.reason.as_str(), "version.unsupported");
        let names: Vec<_> = refusal.data.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, if version.is_empty() { vec!["supported"] } else { vec!["supported", "requested"] });
    }
}

#[test]
fn presence_holds_for_requests_without_an_id_and_not_for_notifications() {
    let bare = |method: &str| format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{}}}}"#);
    for method in ["tools/call", "tools/list", "ping"] {
        assert_eq!(reason(&check(&with("", "", ""), &bare(method))), "version.unsupported", "{method}");
        let text = message(None, method, "");
        assert_eq!(reason(&check(&with(NOW, "", ""), &text)), "headers.mismatch", "{method}");
    }
    let progress = "notifications/progress";
    assert_eq!(reason(&check(&with("", "", ""), &bare(progress))), "passed");
    let text = message(None, progress, "");
    for (version, method, name, expected) in [
        ("", "", "", "passed"),
        (NOW, progress, "", "passed"),
        ("2025-11-25", "", "", "headers.mismatch"),
        ("", "tools/call", "", "headers.mismatch"),
        ("", "", "search", "headers.mismatch"),
    ] {
        assert_eq!(reason(&check(&with(version, method, name), &text)), expected, "{version} {method} {name}");
    }
}

#[test]
fn a_name_may_not_lie_where_no_mirror_is_defined() {
    let completion = message(Some("1"), "completion/complete", r#""name":"search","#);
    for (text, method, name, expected) in [
        (completion.clone(), "completion/complete", "search", "passed"),
        (completion.clone(), "completion/complete", "update", "headers.mismatch"),
        (completion, "completion/complete", "", "passed"),
        (message(Some("1"), "tools/list", ""), "tools/list", "search", "headers.mismatch"),
        (message(Some("1"), "tasks/get", r#""taskId":"t","#), "tasks/get", "t", "passed"),
        (message(Some("1"), "resources/read", r#""uri":"a:b","name":"c","#), "resources/read", "c", "headers.mismatch"),
        (message(Some("1"), "prompts/get", r#""name":"c","uri":"a:b","#), "prompts/get", "a:b", "headers.mismatch"),
    ] {
        assert_eq!(reason(&check(&with(NOW, method, name), &text)), expected, "{method} {name}");
    }
}
