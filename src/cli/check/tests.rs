use std::path::Path;
use std::process::ExitCode;

use portcullis::config;
use portcullis::identity::KeyStores;

use super::{count, report};

/// What is printed for a configuration beside the demo's policy and record, with the folder's name left out, and
/// whether the command succeeds.
fn checked(portcullis: &str) -> (String, bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let demo = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/demo");
    std::fs::create_dir(folder.path().join("records")).expect("a folder");
    for file in ["policy.yaml", "upstream-token", "records/cases.yaml", "records/cases.json"] {
        std::fs::copy(demo.join(file), folder.path().join(file)).expect("a file of the demo");
    }
    // Where the demo's upstream listens is the demo's business.
    let record = folder.path().join("records/cases.yaml");
    let text = std::fs::read_to_string(&record).expect("a record");
    let line = text.lines().find(|line| line.starts_with("recorded:")).expect("where it was taken");
    std::fs::write(&record, text.replace(line, RECORDED)).expect("a file");
    let path = folder.path().join("portcullis.yaml");
    std::fs::write(&path, portcullis).expect("a file");
    let loaded = config::load(&path, &KeyStores::new());
    let (text, code) = report("portcullis.yaml", &loaded).expect("a text");
    let text = text.replace(&format!("{}/", folder.path().display()), "");
    (text, format!("{code:?}") == format!("{:?}", ExitCode::SUCCESS))
}

const RECORDED: &str =
    r#"recorded: {from: "http://127.0.0.1:9000/mcp", at: 2026-11-30T20:05:00Z, protocol: "2026-07-28"}"#;

const GOOD: &str = "\
listen: {ext_proc: unix:/run/portcullis.sock}
servers:
- name: cases
  match: {route: cases}
  resource: https://mcp.acme.com/mcp
  identity: {jwt: {issuer: https://auth.acme.com, required_scopes: [mcp]}}
  upstream: {url: \"http://127.0.0.1:9000/mcp\", credential: {bearer: {file: upstream-token}}}
  policy: {file: policy.yaml}
  record: {file: records/cases.yaml}
  capability_scopes: {update_case: cases:write}
";

#[test]
fn five_faults_are_five_located_messages_and_exit_1() {
    let faulty = GOOD
        .replace("match: {route: cases}", "match: {rout: cases}")
        .replace("https://mcp.acme.com/mcp", "http://mcp.acme.com/mcp")
        .replace("{update_case: cases:write}", "{update_cas: cases:write}")
        + "  limits: {request: 1MB}\nmax_streams: 0\n";
    let (text, success) = checked(&faulty);
    assert!(!success);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    let expected = [
        "portcullis.yaml:4:11: servers[0].match.rout: expected a known key, found `rout`; did you mean `route`?",
        "portcullis.yaml:5:13: servers[0].resource: expected an absolute https URL",
        "portcullis.yaml:10:35: servers[0].capability_scopes.update_cas: expected a priced capability, found tool:update_cas",
        "portcullis.yaml:11:21: servers[0].limits.request: expected a size with its unit",
        "portcullis.yaml:12:14: max_streams: expected a number of streams from 1 to 1048576, found 0",
    ];
    for (line, start) in lines.iter().zip(expected) {
        assert!(line.starts_with(start), "expected {start}\nfound    {line}");
    }
    assert_eq!(lines[5..], ["", "portcullis.yaml: 5 faults, no warnings"]);
}

#[test]
fn a_good_configuration_is_summed_up_with_who_can_do_what() {
    let (text, success) = checked(GOOD);
    assert!(success, "{text}");
    assert!(text.starts_with("portcullis.yaml: no faults, no warnings, 1 server, listening on "), "{text}");
    for line in [
        "server cases (mcp) https://mcp.acme.com/mcp",
        "  matched by   route cases",
        "  every call   needs the scopes mcp",
        "  credential   bearer (in place of the caller's Authorization)",
        "  record       6 priced capabilities, taken from http://127.0.0.1:9000/mcp, at 2026-11-30T20:05:00Z, protocol 2026-07-28",
    ] {
        assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    }
    // Who can do what: the matrix of the policy room, one line a capability.
    let row = text.lines().find(|line| line.trim_start().starts_with("tool:update_case")).expect("a row");
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>(),
        ["tool:update_case", "cases:write", "mcp", "cases:write", "yes", "-"]
    );
}

#[test]
fn warnings_are_printed_and_do_not_fail() {
    let (text, success) = checked(&GOOD.replace("127.0.0.1:9000/mcp", "127.0.0.1:9001/mcp"));
    assert!(success, "{text}");
    let first = text.lines().next().unwrap_or_default();
    assert!(first.starts_with("records/cases.yaml:4:18: ") && first.ends_with("(warning)"), "{text}");
    assert!(text.contains("\nportcullis.yaml: no faults, 1 warning, 1 server"), "{text}");
}

#[test]
fn numbers_are_said_in_words() {
    assert_eq!(
        [0, 1, 2].map(|number| count(number, "priced capability")),
        ["no priced capabilities", "1 priced capability", "2 priced capabilities"]
    );
}
