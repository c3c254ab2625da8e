use super::pretty::pretty;
use super::{DOCUMENT, SCRIPT, STYLE, document};

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
