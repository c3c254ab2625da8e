use std::path::{Path, PathBuf};

use super::{TestArgs, Tried, json, text, tried};

fn example(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/policy-tests").join(file)
}

/// What becomes of these cases against the example's configuration, the folder's name left out of faults.
fn outcome(cases: &str) -> Result<Vec<Tried>, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("cases.yaml");
    std::fs::write(&file, cases).expect("a file");
    let args = TestArgs { file, config: Some(example("portcullis.yaml")), json: false };
    tried(&args).map_err(|faults| faults.replace(&format!("{}/", folder.path().display()), ""))
}

#[test]
fn every_case_of_the_example_passes() {
    let args = TestArgs { file: example("cases.yaml"), config: None, json: false };
    let results = tried(&args).unwrap_or_else(|faults| panic!("{faults}"));
    let printed = text(&results).expect("a text");
    assert!(results.len() > 10 && results.iter().all(|result| result.passed), "{printed}");
    assert!(printed.ends_with(&format!("\n{} passed, 0 failed\n", results.len())), "{printed}");
}

const CASES: &str = "\
principals: {ana: {sub: ana, email: ana@acme.com, email_verified: true, scope: mcp}}
cases:
- {name: searches, principal: ana, capability: search_cases, arguments: {query: x}, expect: {refuse: policy.unpriced}}
- {name: updates, principal: ana, capability: update_case, expect: allow}
- {name: lists, principal: ana, method: tools/list, expect: {visible: [search_cases, update_case]}}
- {name: hides, principal: ana, method: tools/list, expect: {hidden: [search_cases]}}
- {name: nothing, principal: ana, method: tools/list, expect: {visible: []}}
- {name: would, principal: ana, capability: update_case, expect: {would_refuse: policy.not_permitted}}
- {name: refused listing, method: tools/list, expect: {hidden: [update_case]}}
- {name: \"multi\\nline\", principal: ana, method: tools/list, expect: allow}
";

#[test]
fn a_case_that_fails_says_what_came_instead() {
    let results = outcome(CASES).expect("tried");
    let expected = "\
FAIL  searches: expected refuse policy.unpriced, got allow (rules 0)
FAIL  updates: expected allow, got refuse policy.not_permitted (rung permission, rules 0)
FAIL  lists: expected visible tool:search_cases, tool:update_case, got visible tool:search_cases (rules 0)
FAIL  hides: expected hidden tool:search_cases, got visible tool:search_cases (rules 0)
FAIL  nothing: expected visible nothing, got visible tool:search_cases (rules 0)
FAIL  would: expected would refuse policy.not_permitted, got refuse policy.not_permitted (rung permission, rules 0)
FAIL  refused listing: expected hidden tool:update_case, got refuse token.missing (rung token, no rule)
PASS  multi\u{fffd}line: expected allow, got allow (rules 0)
1 passed, 7 failed
";
    assert_eq!(text(&results).expect("a text"), expected);
    let json: serde_json::Value = serde_json::from_str(&json(&results).expect("JSON")).expect("JSON");
    assert_eq!((&json["passed"], &json["failed"]), (&1.into(), &7.into()));
    let updates = serde_json::json!({"name": "updates", "passed": false, "expected": "allow",
        "got": "refuse policy.not_permitted", "rung": "permission", "rules": [0]});
    assert_eq!(json["cases"][1], updates);
}

#[test]
fn all_faults_are_told_before_anything_is_tried() {
    let cases = "\
cases:
- {name: one, server: other, method: tools/list, expect: allow}
- {name: two, capability: 'resource:case', expect: allow}
- {name: three, expect: allow}
- {name: four, method: tools/list, expect: {visible: ['tool:']}}
";
    let expected = "\
cases.yaml:2:23: cases[0].server: expected a server `other`; the configuration has `cases`
cases.yaml:3:27: cases[1].capability: expected the URI of a resource, got `resource:case`, which is the template cases://case/{id}
cases.yaml:4:3: cases[2]: expected a method such as tools/list, or a capability such as tool:search
cases.yaml:5:44: cases[3].expect: expected a capability such as tool:search, prompt:triage or resource:case, found no name in `tool:`
";
    assert_eq!(outcome(cases).expect_err("faults"), expected);
    let args = TestArgs { file: example("policy.yaml"), config: None, json: false };
    assert!(tried(&args).expect_err("no cases").contains("policy.yaml:1:1: "));
}
