//! One fault at a time: each rule, where it is told and in which words.

use super::Folder;

/// Makes one change and expects one fault that starts and continues as given.
fn one(file: &str, from: &str, to: &str, start: &str, words: &str) {
    let folder = Folder::new();
    folder.replace(file, from, to);
    let faults = folder.faults();
    assert_eq!(faults.len(), 1, "{to}: {faults:#?}");
    assert!(faults[0].starts_with(start), "{to}: expected {start}, found {}", faults[0]);
    assert!(faults[0].contains(words), "{to}: expected {words:?} in {}", faults[0]);
}

fn config(from: &str, to: &str, start: &str, words: &str) {
    one("portcullis.yaml", from, to, &format!("portcullis.yaml:{start}"), words);
}

fn record(from: &str, to: &str, start: &str, words: &str) {
    one("records/cases.yaml", from, to, &format!("records/cases.yaml:{start}"), words);
}

#[test]
fn names_matchers_and_urls() {
    config("name: cases", "name: ca ses", "3:9: servers[0].name: ", "found `ca ses`");
    config("[cases, cases-stream]", "[]", "4:18: servers[0].match.route: ", "at least one name");
    config(
        "{route: [cases, cases-stream]}",
        "{route: a, cluster: b}",
        "4:10: servers[0].match: ",
        "found route and cluster",
    );
    config("{route: [cases, cases-stream]}", "{authority: a}", "4:10: servers[0].match: ", "the `path` that goes with");
    config("https://mcp.acme.com/mcp", "https://mcp.acme.com/mcp#a", "5:13: servers[0].resource: ", "correct the URL");
    config("https://mcp.acme.com/mcp", "http://mcp.acme.com/mcp", "5:13: servers[0].resource: ", "loopback");
    config("url: https://vendor.example.com/mcp", "url: vendor", "13:10: servers[0].upstream.url: ", "found `vendor`");
    config("    url: https://vendor.example.com/mcp\n", "", "13:5: servers[0].upstream: ", "the key `url`");
    let origins = "  allowed_origins: [https://a.example, https://b.example/]\n  policy: {file";
    config("  policy: {file", origins, "15:40: servers[0].allowed_origins[1]: ", "found `https://b.example/`");
}

/// Taken for absent, each would open what it was to bound: a rule for one would be one for everybody.
#[test]
fn a_bound_without_a_value_is_no_bound_left_out() {
    for key in ["issuer", "sub", "email", "domain", "claim"] {
        for nothing in ["", " ~", " null"] {
            let folder = Folder::new();
            let rules = format!("roles: {{all: ['*']}}\nrules:\n- match:\n    {key}:{nothing}\n  role: all\n");
            folder.write("policy.yaml", &rules);
            let faults = folder.faults();
            assert!(
                faults.iter().any(|fault| fault.contains(&format!("rules[0].match.{key}"))),
                "{key}:{nothing}: {faults:#?}"
            );
        }
    }
    let folder = Folder::new();
    folder.replace(
        "portcullis.yaml",
        "      issuer: https://auth.acme.com\n",
        "      issuer: https://auth.acme.com\n      allowed_domain:\n",
    );
    let faults = folder.faults();
    assert!(faults.iter().any(|fault| fault.contains("allowed_domain")), "{faults:#?}");
}

#[test]
fn what_a_server_must_have() {
    config("  policy: {file: policy.yaml}\n", "", "3:3: servers[0]: ", "the key `policy`");
    config(
        "  record: {file: records/cases.yaml}\n  capability_scopes: {update: cases:write}\n",
        "",
        "3:3: servers[0]: ",
        "the key `record`",
    );
    config("servers:\n", "servers: []\nother:\n", "3:1: other: ", "unknown key `other`");
}

#[test]
fn bounds_and_protocol() {
    config(
        "  policy: {file",
        "  limits: {answer: 1KiB}\n  policy: {file",
        "15:20: servers[0].limits.answer: ",
        "at least `listing`",
    );
    config(
        "  policy: {file",
        "  protocol: []\n  policy: {file",
        "15:13: servers[0].protocol: ",
        "at least one revision",
    );
}

#[test]
fn identity_and_credential() {
    config("jwks: https://auth", "jwks: http://auth", "9:13: servers[0].identity.jwt.jwks: ", "expected");
    config(
        "{bearer: {file: token}}",
        "{bearer: {file: portcullis.yaml}}",
        "14:26: servers[0].upstream.credential.bearer: ",
        "secret",
    );
    config(
        "authorization_server: {issuer: https://auth.acme.com}",
        "authorization_server: {issuer: https://x}",
        "11:34: servers[0].authorization_server.issuer: ",
        "found `https://x`",
    );
    config(
        "required_scopes: [mcp]",
        "required_scopes: [\"m p\"]",
        "10:25: servers[0].identity.jwt.required_scopes[0]: ",
        "expected a scope",
    );
}

/// Reconciliation at load (authz-semantics §1).
#[test]
fn prices_hold_against_policy_and_scopes() {
    record("cases:write", "cases:admin", "5:29: capabilities.tool:update.permission: ", "cases:admin");
    record(", uri: \"cases://case/{id}\"", "", "6:18: capabilities.resource:case", "URI");
    config("{update: cases:write}", "{upd: cases:write}", "17:28: servers[0].capability_scopes.upd: ", "upd");
    config(
        "{update: cases:write}",
        "{update: []}",
        "17:31: servers[0].capability_scopes.update: ",
        "at least one scope",
    );
    config(
        "{update: cases:write}",
        "{update: 'a\"b'}",
        "17:31: servers[0].capability_scopes.update: ",
        "expected a scope",
    );
    config("      required_scopes: [mcp]\n", "", "16:22: servers[0].capability_scopes: ", "required_scopes");
    one("policy.yaml", "role: editor", "role: editr", "policy.yaml:8:9: rules[1].role: ", "editr");
}

#[test]
fn two_entries_for_one_capability() {
    let folder = Folder::new();
    let text = std::fs::read_to_string(folder.path("records/cases.yaml")).expect("there");
    let entry = text.lines().find(|line| line.trim_start().starts_with("search:")).expect("there").to_owned();
    folder.write("records/cases.yaml", &format!("{text}{}\n", entry.replace("search:", "tool:search:")));
    let faults = folder.faults();
    assert_eq!(faults.len(), 1, "{faults:#?}");
    assert!(faults[0].starts_with("records/cases.yaml:7:16: capabilities.tool:search"), "{faults:#?}");
}

#[test]
fn a_template_that_is_not_closed_or_not_normal() {
    for (uri, words) in [("cases://case/{id", "{"), ("cases://a/../{id}", "normal form")] {
        let folder = Folder::new();
        let text = std::fs::read_to_string(folder.path("records/cases.yaml")).expect("there");
        folder.write("records/cases.yaml", &text.replace("cases://case/{id}", uri));
        let faults = folder.faults();
        // The URI is also not the definition's own any more.
        assert_eq!(faults.len(), 2, "{faults:#?}");
        assert!(faults.iter().all(|fault| fault.starts_with("records/cases.yaml:6:")), "{faults:#?}");
        assert!(faults.iter().any(|fault| fault.contains(words)), "{faults:#?}");
    }
}

#[test]
fn the_record_holds_together() {
    record(
        "permission: cases:write",
        "permission: TODO",
        "5:29: capabilities.tool:update.permission: ",
        "nobody decided yet",
    );
    record("resource:case:", "resource:gone:", "6:18: capabilities.resource:gone: ", "a definition of resource:gone");
    one(
        "records/cases.json",
        "{\"name\": \"search\"}",
        "{\"name\": \"search\", \"x\": 1}",
        "records/cases.yaml:4:44: capabilities.search.digest: ",
        "the digest of the recorded definition",
    );
    one("records/cases.json", "\"tool:update\": {", "\"tool:update\" {", "records/cases.json:5:19: ", "expected JSON");
    one(
        "records/cases.json",
        "\"instructions\"",
        "\"instruction\"",
        "records/cases.json:2:3: ",
        "found \"instruction\"",
    );
}

#[test]
fn faults_of_several_files_come_at_once_and_only_once() {
    let folder = Folder::new();
    // Two servers share the files; their faults are told once.
    let text = std::fs::read_to_string(folder.path("portcullis.yaml")).expect("there");
    let second = text[text.find("- name").expect("there")..].replace("name: cases", "name: more");
    folder.write("portcullis.yaml", &format!("{text}{second}"));
    folder
        .replace("policy.yaml", "role: editor", "rol: editor")
        .replace("records/cases.yaml", "permission: cases:write", "permission: TODO")
        .replace("records/cases.json", "\"Search first.\"", "7");
    let faults = folder.faults();
    let starts: Vec<&str> = faults.iter().filter_map(|fault| fault.split(": ").next()).collect();
    assert_eq!(
        starts,
        [
            "policy.yaml:8:3",
            "portcullis.yaml:19:10",
            "portcullis.yaml:19:10",
            "records/cases.json:2:19",
            "records/cases.yaml:5:29",
        ],
        "{faults:#?}"
    );
}

/// A part that could not be read is told once, and whatever would follow from its absence is not.
#[test]
fn no_fault_follows_from_another() {
    config("      issuer: https://auth.acme.com\n", "", "7:5: servers[0].identity.jwt: ", "the key `issuer`");
    config(
        "required_scopes: [mcp]",
        "required_scopes: mcp",
        "10:24: servers[0].identity.jwt.required_scopes: ",
        "found `mcp`",
    );
    config(
        "  policy: {file",
        "  protocol: [\"2025-11-25\"]\n  policy: {file",
        "15:14: servers[0].protocol[0]: ",
        "`2026-07-28`",
    );
    config("{route: [cases, cases-stream]}", "{routes: a}", "4:11: servers[0].match.routes: ", "did you mean `route`?");
    config("url: https://vendor.example.com/mcp", "url: [a]", "13:10: servers[0].upstream.url: ", "found a list");
    record(
        "permission: cases:write",
        "permission: [cases:write]",
        "5:29: capabilities.tool:update.permission: ",
        "found a list",
    );
    one(
        "policy.yaml",
        "  editor: [cases:read, cases:write]",
        "  editor: cases:write",
        "policy.yaml:3:11: roles.editor: ",
        "expected a list",
    );
    one("policy.yaml", "role: editor", "rol: editor", "policy.yaml:8:3: rules[1].rol: ", "did you mean `role`?");
}

#[test]
fn files_are_read_even_where_the_server_is_faulty() {
    let folder = Folder::new();
    folder.replace("portcullis.yaml", "  resource: https://mcp.acme.com/mcp\n", "").replace(
        "policy.yaml",
        "role: editor",
        "role: editr",
    );
    let faults = folder.faults();
    assert_eq!(faults.len(), 2, "{faults:#?}");
}

#[test]
fn servers_have_names_and_traffic_of_their_own() {
    let folder = Folder::new();
    let text = std::fs::read_to_string(folder.path("portcullis.yaml")).expect("there");
    let second = text[text.find("- name").expect("there")..].replace("[cases, cases-stream]", "cases-stream");
    folder.write("portcullis.yaml", &format!("{text}{second}"));
    let faults = folder.faults();
    assert_eq!(faults.len(), 2, "{faults:#?}");
    assert!(faults[0].starts_with("portcullis.yaml:18:9: servers[1].name: expected a name of its own"), "{faults:#?}");
    assert!(
        faults[1].starts_with("portcullis.yaml:19:10: servers[1].match: ")
            && faults[1].contains("the route `cases-stream`"),
        "{faults:#?}"
    );

    let authority = |written: &str| format!("{{authority: '{written}', path: /mcp}}");
    let first = text.replace("{route: [cases, cases-stream]}", &authority("MCP.Acme.com:443"));
    let second = first[first.find("- name").expect("there")..]
        .replace("name: cases", "name: more")
        .replace(&authority("MCP.Acme.com:443"), &authority("mcp.acme.com."));
    folder.write("portcullis.yaml", &format!("{first}{second}"));
    let faults = folder.faults();
    assert_eq!(faults.len(), 1, "{faults:#?}");
    assert!(faults[0].contains("the authority `mcp.acme.com/mcp` in servers[0] too"), "{faults:#?}");
}

#[test]
fn gates_are_told_at_their_place() {
    let gates = |gates: &str| format!("  gates:\n{gates}  policy: {{file");
    let told = |yaml: &str, start: &str, words: &str| config("  policy: {file", &gates(yaml), start, words);
    told("  - {name: a, cel: 'arguments.x =='}\n", "16:20: servers[0].gates[0].cel: ", "expected a CEL expression");
    told("  - {name: a, cel: 'call.tool == 1'}\n", "16:20: servers[0].gates[0].cel: ", "expected a field of call");
    told("  - {name: a}\n", "16:5: servers[0].gates[0]: ", "exactly one of");
    told(
        "  - {name: a, cel: 'true', capabilities: [nope]}\n",
        "16:43: servers[0].gates[0].capabilities[0]: ",
        "no price",
    );
    told("  - {name: a, grpc: {address: x}}\n", "16:31: servers[0].gates[0].grpc.address: ", "unix:/absolute/path");
    told(
        "  - {name: a, grpc: {address: 'http://a:1', timeout: 6s}}\n",
        "16:21: servers[0].gates[0].grpc: ",
        "gates_budget",
    );
    told(
        "  - {name: a, mode: off, cel: 'true'}\n",
        "16:21 servers[0].gates[0].mode".trim_end_matches(" servers[0].gates[0].mode"),
        "found `off`",
    );
    told("  - {name: a, breaker: {failures: 0}, cel: 'true'}\n", "16:", "from 1 to 1000");
    told("  - {name: a, grpc: {address: 'http://a:1', timeout: 5}}\n", "16:", "a time with its unit");
}

#[test]
fn gates_are_held_against_envoys_timeouts() {
    let gates =
        |gates: &str| format!("{gates}  gates: [{{name: a, grpc: {{address: 'http://a:1'}}}}]\n  policy: {{file");
    let told = |envoy: &str, budget: &str, start: &str, words: &str| {
        let folder = Folder::new();
        folder.replace("portcullis.yaml", "  policy: {file", &gates(budget));
        folder.replace("portcullis.yaml", "servers:\n", &format!("{envoy}servers:\n"));
        let faults = folder.faults();
        assert_eq!(faults.len(), usize::from(!words.is_empty()), "{envoy}{budget}: {faults:#?}");
        if let Some(fault) = faults.first() {
            assert!(fault.starts_with(&format!("portcullis.yaml:{start}")) && fault.contains(words), "{fault}");
        }
    };
    told("", "", "", "");
    told("", "  gates_budget: 9999ms\n", "", "");
    told("", "  gates_budget: 10s\n", "15:17: servers[0].gates_budget: ", "`envoy.message_timeout`, 10s");
    told("envoy: {message_timeout: 20s}\n", "  gates_budget: 10s\n", "", "");
    // The default of 5s is held too, where there are gates.
    told("envoy: {message_timeout: 5s}\n", "", "4:3: servers[0]", "they may take 5s");
    let granted = "envoy: {message_timeout: 5s, max_message_timeout: 30s}\n";
    told(granted, "  gates_budget: 29s\n", "", "");
    told(granted, "  gates_budget: 30s\n", "16:17: servers[0].gates_budget: ", "`envoy.max_message_timeout`, 30s");
    let useless = "envoy: {message_timeout: 5s, max_message_timeout: 5s}\n";
    told(useless, "  gates_budget: 1s\n", "2:51: envoy.max_message_timeout: ", "more than `message_timeout` (5s)");
}

#[test]
fn a_short_message_timeout_is_nobodys_fault_without_gates() {
    let folder = Folder::new();
    folder.replace("portcullis.yaml", "servers:\n", "envoy: {message_timeout: 1s}\nservers:\n");
    assert_eq!(folder.faults(), Vec::<String>::new());
}
