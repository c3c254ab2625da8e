use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use super::data::{compared, refusal};
use super::pretty::pretty;
use super::{DOCUMENT, SCRIPT, STYLE, document};
use crate::ladder::testing::world;
use crate::telemetry::recent::Refusal;
use crate::upstream::book::SHOWN;

#[test]
fn canonical_json_is_laid_out_line_by_line_wherever_it_was_cut() {
    let text = r#"{"a":[],"b":{"c":"x:{,\"}\\","d":[1,2]},"e":{}}"#;
    let wanted = "{\n  \"a\": [],\n  \"b\": {\n    \"c\": \"x:{,\\\"}\\\\\",\n    \"d\": [\n      1,\n      2\n    ]\n  },\n  \"e\": {}\n}";
    assert_eq!(pretty(text), wanted);
    assert_eq!(serde_json::from_str::<serde_json::Value>(wanted).unwrap().to_string(), text);
    for end in 0..text.len() {
        assert!(pretty(&text[..end]).starts_with(text[..end].get(..1).unwrap_or_default()), "{end}");
    }
    let deep = "[".repeat(10_000);
    assert!(pretty(&deep).len() < deep.len() * 70);
}

#[test]
fn the_document_runs_its_own_script_only_and_loads_nothing() {
    let response = document();
    let policy = response.headers()["content-security-policy"].to_str().unwrap();
    for part in
        ["default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "require-trusted-types-for 'script'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(response.headers()["x-frame-options"], "DENY");
    let html = std::str::from_utf8(&DOCUMENT.0).unwrap();
    // The hashes are of what stands between the tags, whole.
    assert!(html.contains(&format!("<style>{STYLE}</style>")));
    assert!(html.contains(&format!("<script type=\"module\">{SCRIPT}</script>")));
    for sink in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"] {
        assert!(!SCRIPT.contains(sink), "{sink}");
    }
    for outside in ["src=\"http", "@import", "url(", "//cdn"] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn a_refusal_is_told_with_all_that_is_kept_of_it() {
    let told = refusal(&Refusal {
        id: "d1".into(),
        at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_500),
        reason: "policy.unpriced".into(),
        rung: "permission",
        enforced: false,
        server: "cases".into(),
        method: "tools/call".into(),
        capability: "tool:<b>\u{202e}".into(),
        principal: "ana@acme.com".into(),
        detail: String::new(),
    });
    let wanted = json!({
        "id": "d1", "at": "1970-01-01T00:00:01.500Z", "reason": "policy.unpriced", "rung": "permission", "enforced": false,
        "server": "cases", "method": "tools/call", "capability": "tool:<b>\u{202e}", "principal": "ana@acme.com",
        "detail": "",
    });
    assert_eq!(told, wanted);
}

#[test]
fn the_matrix_and_its_rules_are_those_of_the_policy() {
    let told = compared(&world(&[]).snapshot);
    assert_eq!((&told["drift"], &told["drift_more"]), (&json!([]), &json!(0)));
    let access = &told["access"][0];
    assert_eq!((&access["server"], &access["roles"]), (&json!("cases"), &json!(["editor", "reader"])));
    let of = |label: &str| {
        let rows = access["capabilities"].as_array().unwrap().iter();
        rows.filter(|row| row["label"] == label).cloned().collect::<Vec<Value>>()
    };
    let row = |label, permission, scopes: Value, roles: Value| {
        vec![json!({"label": label, "permission": permission, "scopes": scopes, "roles": roles})]
    };
    assert_eq!(of("tool:search"), row("tool:search", "cases:read", json!(["mcp"]), json!([0, 1])));
    assert_eq!(of("tool:update"), row("tool:update", "cases:write", json!(["mcp", "cases:write"]), json!([0])));
    assert_eq!(access["rules"][0]["roles"], json!(["reader"]));
}

#[test]
fn drift_is_told_with_both_texts_as_long_as_they_are_kept() {
    let world = world(&[]);
    let drifted = |definition: &str| {
        world.sees("tool:search", definition, Instant::now());
        compared(&world.snapshot)["drift"].clone()
    };
    let told = drifted(r#"{"title":"Search","name":"search","_meta":{"left":"out"}}"#);
    let wanted = json!([{
        "server": "cases", "label": "tool:search", "cut": false, "recorded": "{\n  \"name\": \"search\"\n}",
        "offered": "{\n  \"name\": \"search\",\n  \"title\": \"Search\"\n}",
    }]);
    assert_eq!(told, wanted);
    let told = drifted(&json!({"name": "search", "description": "é".repeat(SHOWN)}).to_string());
    assert_eq!(told[0]["cut"], true);
    let offered = told[0]["offered"].as_str().unwrap().len();
    assert!((SHOWN - 8..SHOWN + 64).contains(&offered), "{offered}");
}
