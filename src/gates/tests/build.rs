//! What is wrong with a `gates:` block is told with its place.

use std::path::Path;
use std::time::Duration;

use crate::gates::config::GateSource;
use crate::gates::{Gates, Setting};
use crate::policy::{Label, Segment};

fn faults(sources: &str) -> Vec<(String, String)> {
    let sources: Vec<GateSource> = serde_json::from_str(sources).expect(sources);
    let priced = |label: &Label| label.name() == "known";
    let setting = Setting { base: Path::new("/nonexistent"), priced: Some(&priced), budget: Duration::from_secs(1) };
    let told = |path: Vec<Segment>| {
        let steps: Vec<String> = path
            .into_iter()
            .map(|step| match step {
                Segment::Key(key) => key,
                Segment::Index(index) => index.to_string(),
            })
            .collect();
        steps.join(".")
    };
    match Gates::build(&sources, &setting) {
        Ok(_) => Vec::new(),
        Err(faults) => faults.into_iter().map(|fault| (told(fault.path), fault.message)).collect(),
    }
}

#[test]
fn what_is_right_is_taken() {
    let right = r#"[
        {"name": "a", "ext_authz": {"address": "unix:/run/opa.sock", "timeout": "50ms", "challenges": "pass"}},
        {"name": "b", "grpc": {"address": "https://gate.acme.com:443"}, "capabilities": ["known", "prompt:known"]},
        {"name": "c", "judge": {"url": "http://judge:8080/v1/chat/completions", "model": "m", "timeout": "1s", "intent": {"meta": "i"}}, "mode": "shadow"},
        {"name": "e", "grpc": {"address": "https://gate.acme.com"}},
        {"name": "d", "cel": "arguments.amount <= 1000 || \"payments:large\" in principal.permissions"}
    ]"#;
    assert_eq!(faults(right), []);
}

#[test]
fn each_fault_has_its_place() {
    for (source, place, text) in [
        (r#"{"name": "a b", "cel": "true"}"#, "0.name", "letters, digits"),
        (r#"{"name": "a"}"#, "0", "exactly one of"),
        (r#"{"name": "a", "cel": "true", "grpc": {"address": "http://a:1"}}"#, "0", "exactly one of"),
        (r#"{"name": "a", "cel": "true", "on_failure": "allow"}"#, "0.on_failure", "refuses"),
        (r#"{"name": "a", "cel": "principal.name == 'x'"}"#, "0.cel", "expected a field of principal"),
        (r#"{"name": "a", "cel": "true", "capabilities": []}"#, "0.capabilities", "at least one"),
        (r#"{"name": "a", "cel": "true", "capabilities": ["known", "x"]}"#, "0.capabilities.1", "tool:x"),
        (r#"{"name": "a", "cel": "true", "capabilities": ["tool:"]}"#, "0.capabilities.0", "found no name"),
        (r#"{"name": "a", "grpc": {"address": "gate:80"}}"#, "0.grpc.address", "unix:/absolute/path"),
        (r#"{"name": "a", "grpc": {"address": "unix:run/x"}}"#, "0.grpc.address", "unix:/absolute/path"),
        (r#"{"name": "a", "grpc": {"address": "http://a:1/path"}}"#, "0.grpc.address", "http://host:port"),
        (r#"{"name": "a", "grpc": {"address": "https://a:1", "ca": "ca.pem"}}"#, "0.grpc.ca", "/nonexistent/ca.pem"),
        (r#"{"name": "a", "grpc": {"address": "http://a:1", "intent": {}}}"#, "0.grpc.intent", "found 0"),
        (
            r#"{"name": "a", "grpc": {"address": "http://a:1", "intent": {"header": "Cookie"}}}"#,
            "0.grpc.intent.header",
            "lower case",
        ),
        (
            r#"{"name": "a", "grpc": {"address": "http://a:1", "intent": {"header": "cookie"}}}"#,
            "0.grpc.intent.header",
            "credential",
        ),
        (r#"{"name": "a", "grpc": {"address": "http://a:1", "timeout": "2s"}}"#, "0.grpc", "gates_budget"),
        (
            r#"{"name": "a", "judge": {"url": "judge", "model": "m", "timeout": "1s", "intent": {"meta": "i"}}}"#,
            "0.judge.url",
            "absolute",
        ),
        (
            r#"{"name": "a", "judge": {"url": "http://j/", "model": "", "timeout": "1s", "intent": {"meta": "i"}}}"#,
            "0.judge.model",
            "name",
        ),
        (
            r#"{"name": "a", "judge": {"url": "http://j/", "model": "m", "bearer": {"file": "t"}, "timeout": "1s", "intent": {"meta": "i"}}}"#,
            "0.judge.bearer",
            "/nonexistent/t",
        ),
    ] {
        let told = faults(&format!("[{source}]"));
        assert_eq!(told.len(), 1, "{source}: {told:?}");
        assert_eq!(told[0].0, place, "{source}: {told:?}");
        assert!(told[0].1.contains(text), "{source}: {told:?}");
    }
}

#[test]
fn timeouts_add_up_and_names_are_unique() {
    let two = r#"[{"name": "a", "grpc": {"address": "http://a:1", "timeout": "600ms"}}, {"name": "a", "grpc": {"address": "http://a:1", "timeout": "600ms"}}]"#;
    let told = faults(two);
    assert_eq!(told.iter().map(|(place, _)| place.as_str()).collect::<Vec<_>>(), ["1.name", "1.grpc"], "{told:?}");
    assert!(told[1].1.contains("1.2s"), "{told:?}");
    // What is only recorded is asked beside the others.
    assert_eq!(faults(&two.replacen("\"a\"", "\"b\", \"mode\": \"shadow\"", 1)), []);
}
