//! `portcullis explain` and the wire say the same about every call of a generated set.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use portcullis::config;
use portcullis::explain::{self, Answer, Asked, Explained, Who, World, http};
use portcullis::identity::KeyStores;
use portcullis::ladder::Snapshot;
use serde_json::{Value, json};

use crate::support::{Reply, Request, Stack, fixture, idp};

/// How many calls are generated.
const CALLS: usize = 260;

/// A generator of choices: the same calls in every run.
struct Choices(u64);

impl Choices {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % bound as u64).expect("below a usize")
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// True one time in `times`.
    fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }
}

/// What replaces or adds to the claims of the reader; `null` removes.
fn claims() -> Vec<Value> {
    let editor = json!({"sub": "bo", "email": "bo@acme.com", "groups": ["case-editors"], "scope": "mcp cases:write"});
    let with = |name: &str, value: Value| {
        let mut claims = editor.clone();
        claims[name] = value;
        claims
    };
    vec![
        json!({}),
        editor.clone(),
        with("scope", json!("mcp")),
        with("scope", json!(["mcp", "cases:write"])),
        with("scope", json!("cases:write")),
        with("scope", json!(7)),
        with("sub", json!("contractor-17")),
        with("sub", Value::Null),
        with("aud", json!("https://elsewhere.test/mcp")),
        with("aud", json!([fixture::RESOURCE, "https://elsewhere.test"])),
        with("iss", json!("https://evil.example")),
        with("exp", json!(1_700_000_000)),
        with("exp", Value::Null),
        with("exp", json!("tomorrow")),
        with("nbf", json!(4_000_000_000_u64)),
        with("email", Value::Null),
        with("email_verified", json!("true")),
        with("email_verified", json!(false)),
        with("email", json!("eve@example.com")),
        with("groups", json!("case-editors")),
        json!({"sub": "eve", "email": "eve@example.com"}),
        json!({"hd": "example.com"}),
    ]
}

fn message(choices: &mut Choices) -> Value {
    let name =
        *choices.of(&["search_cases", "update_case", "export_cases", "triage", "Search_Cases", "prüfen", "tool:x"]);
    let uri = *choices.of(&[
        "cases://case/17",
        "cases://case/17/internal",
        "cases://index",
        "cases://case/../17",
        "other://x",
        "cases://case/{id}",
        "CASES://case/17",
    ]);
    let arguments = choices
        .of(&[
            json!({"query": "printer"}),
            json!({"query": "printer", "limit": 3}),
            json!({"query": 7}),
            json!({"limit": 0}),
            json!({"id": "17", "status": "closed"}),
            json!({"query": "x", "more": true}),
            json!([1]),
            json!({}),
        ])
        .clone();
    match choices.below(12) {
        0..=4 => fixture::call(name, arguments),
        5 => fixture::rpc("prompts/get", json!({"name": choices.of(&["triage", "other"])})),
        6 | 7 => fixture::read(uri),
        8 => fixture::rpc("completion/complete", {
            let reference =
                [json!({"type": "ref/prompt", "name": "triage"}), json!({"type": "ref/resource", "uri": uri})];
            json!({"ref": choices.of(&reference), "argument": {"name": "id", "value": "1"}})
        }),
        9 => {
            let method: &str =
                choices.of::<&str>(&["ping", "initialize", "tools/List", "resources/subscribe", "tasks/get"]);
            fixture::rpc(method, json!({"name": name}))
        }
        _ => {
            let lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover"];
            let method: &'static str = choices.of::<&'static str>(&lists);
            fixture::rpc(method, json!({}))
        }
    }
}

/// One generated request without its token; most are as a client would make them.
fn request(choices: &mut Choices) -> Request {
    let mut message = message(choices);
    message["id"] = choices.of(&[json!(1), json!("a\u{1f}b"), json!(9_007_199_254_740_993_u64), json!("1")]).clone();
    if choices.once_in(12) {
        let id = choices.of(&[Value::Null, json!(1.5), json!([1])]).clone();
        message["id"] = id;
    }
    if choices.once_in(15) {
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2025-11-25");
    }
    let mut request = fixture::post(&message);
    let text = message.to_string();
    // Names beyond ASCII are written in a header as MCP has it.
    for (name, value) in &mut request.headers {
        if name == "mcp-name" && !value.is_ascii() {
            *value = portcullis::protocol::routing::encode(value);
        }
    }
    if !choices.once_in(3) {
        return request;
    }
    match choices.below(22) {
        0 => request.without("mcp-method"),
        1 => request.set("mcp-method", "tools/list"),
        2 => request.add("mcp-method", "tools/call"),
        3 => request.set("mcp-name", "another"),
        4 => request.set("mcp-name", "=?base64?%%?="),
        5 => request.without("mcp-protocol-version"),
        6 => request.set("mcp-protocol-version", "2025-06-18"),
        7 => request.set("content-type", "text/plain"),
        8 => request.set("content-type", "application/json; charset=utf-8"),
        9 => request.add("content-type", "application/json"),
        10 => request.add("content-encoding", "gzip"),
        11 => request.add("origin", "https://evil.example"),
        12 => request.add("origin", "https://mcp.test"),
        13 => request.path("/mcp?access_token=x"),
        14 => Request::get("/mcp"),
        15 => Request::get("/.well-known/oauth-protected-resource/mcp"),
        16 => request.body(format!("[{text}]")),
        17 => request.body(text.replacen('{', "{\"jsonrpc\":\"2.0\",", 1)),
        18 => request.body(text.replacen("\"params\"", "\"Params\"", 1)),
        19 => request.body(&text.as_bytes()[..text.len() - 1]),
        20 => request.body(format!("{}{}", "[".repeat(80), "]".repeat(80))),
        _ => request.add("cookie", "session=1").add("x-http-method-override", "DELETE"),
    }
}

/// What explain answers, with the id that the wire's decision has.
fn with_decision(answer: &Answer, id: &str) -> Vec<u8> {
    let ours = format!(r#""decision":"{}""#, explain::DECISION);
    String::from_utf8(answer.body.clone()).expect("text").replace(&ours, &format!(r#""decision":"{id}""#)).into_bytes()
}

fn decision(reply: &Reply) -> String {
    let json: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    json["error"]["data"]["decision"].as_str().unwrap_or_default().to_owned()
}

/// The headers of a reply that are not Envoy's.
fn ours(reply: &Reply) -> BTreeMap<String, String> {
    let envoys = |name: &str| {
        matches!(name, "content-length" | "date" | "server" | "connection") || name.starts_with("access-control-expose")
    };
    reply.headers.iter().filter(|(name, _)| !envoys(name)).cloned().collect()
}

#[track_caller]
fn assert_same(explained: &Explained, reply: &Reply, reached: usize, request: &str) {
    let Some(answer) = &explained.answer else {
        assert_eq!(reached, 1, "explain says forwarded, the wire: {reply}\n{request}");
        return;
    };
    assert_eq!(reached, 0, "explain says {answer:?}, and the upstream saw it\n{request}");
    assert_eq!(answer.status, reply.status, "{answer:?}\n{reply}\n{request}");
    let set: BTreeMap<String, String> =
        answer.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    assert_eq!(set.len(), answer.headers.len(), "each header once: {answer:?}");
    assert_eq!(set, ours(reply), "{reply}\n{request}");
    let body = with_decision(answer, &decision(reply));
    assert_eq!(String::from_utf8_lossy(&body), reply.text(), "{request}");
}

fn run(snapshot: &Arc<Snapshot>, request: &Request, who: Who) -> Explained {
    let attributes = explain::attributes(snapshot.servers().first().map(AsRef::as_ref));
    let (head, body) = http::read(&request.bytes(), "https", attributes).expect("a request");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(explain::explain(snapshot, Asked { head, body, who }, World::default()))
}

/// The claims of the token, all of them, as the provider would sign them.
fn all_claims(stack: &Stack, changes: &Value) -> String {
    let mut all = json!({
        "iss": stack.idp.issuer(), "aud": fixture::RESOURCE, "sub": "ana", "email": "ana@acme.com", "email_verified": true,
        "iat": idp::now(), "exp": idp::now() + 3600, "scope": "mcp", "client_id": "tests",
    });
    for (name, value) in changes.as_object().expect("an object") {
        all[name] = value.clone();
    }
    all.as_object_mut().expect("an object").retain(|_, value| !value.is_null());
    all.to_string()
}

#[test]
fn explain_and_the_wire_say_the_same() {
    agree(&[], 0x5eed, 15, 40);
}

#[test]
fn explain_and_the_wire_say_the_same_in_shadow_mode_and_with_other_denials() {
    let shadow = [("mode: enforce", "mode: shadow"), ("step_up: challenge", "step_up: frame")];
    agree(&shadow, 0xbead, 8, 100);
    let hidden = [
        ("disclose: explicit", "disclose: hidden"),
        ("step_up: challenge", "step_up: frame"),
        ("unlisted_method_status: 404", "unlisted_method_status: 400"),
        ("code: -32000", "code: -32055"),
    ];
    agree(&hidden, 0xfade, 15, 30);
}

/// Sends every generated call through Envoy and explains it, by its claims and by its token.
fn agree(edits: &[(&str, &str)], start: u64, reasons: usize, forwarded: usize) {
    let stack = Stack::with(edits, &[]);
    let file = stack.dir.path().join("portcullis.yaml");
    let loaded = config::load(&file, &KeyStores::new());
    let snapshot = Arc::new(loaded.serving.expect("no faults").snapshot);
    let (mut choices, all) = (Choices(start), claims());
    let (mut seen, mut passed) = (BTreeSet::new(), 0);
    for number in 0..CALLS {
        let request = request(&mut choices);
        let changes = if choices.once_in(2) { choices.of(&all[..4]) } else { choices.of(&all) }.clone();
        let anonymous = choices.once_in(25);
        let bearing = if anonymous { request.clone() } else { request.clone().bearer(&stack.idp.token(&changes)) };
        let shown = format!("call {number}: {changes}\n{}", String::from_utf8_lossy(&request.bytes()));
        let count = stack.upstream.count();
        let reply = stack.send(&bearing);
        let reached = stack.upstream.count() - count;
        let by_token = run(&snapshot, &bearing, Who::Presented);
        assert_same(&by_token, &reply, reached, &shown);
        if !anonymous {
            let vouched = run(&snapshot, &request, Who::Vouched(all_claims(&stack, &changes)));
            assert_same(&vouched, &reply, reached, &shown);
            assert_eq!(vouched.rungs, by_token.rungs, "{shown}");
            if number % 20 == 0 {
                assert_eq!(printed(&file, &request, &all_claims(&stack, &changes)), answer_json(&vouched), "{shown}");
            }
        }
        seen.extend(by_token.reason);
        passed += usize::from(by_token.answer.is_none());
    }
    assert!(seen.len() >= reasons, "expected {reasons} reasons to be met, met {seen:?}");
    assert!(passed >= forwarded, "expected {forwarded} calls to be forwarded, {passed} were");
}

fn answer_json(explained: &Explained) -> Value {
    explained.answer.as_ref().map_or(Value::Null, |Answer { status, headers, body }| {
        let headers: BTreeMap<_, _> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        json!({"status": status, "headers": headers, "body": String::from_utf8_lossy(body)})
    })
}

/// The answer that the program prints.
fn printed(config: &Path, request: &Request, claims: &str) -> Value {
    let file = config.with_file_name("request.http");
    std::fs::write(&file, request.bytes()).expect("the request is written");
    let output = Command::new(env!("CARGO_BIN_EXE_portcullis"))
        .args(["explain", "--json", "--claims", claims])
        .arg("--config")
        .arg(config)
        .arg("--request")
        .arg(&file)
        .output()
        .expect("portcullis runs");
    let json: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|fault| panic!("expected JSON, got {fault}: {}", String::from_utf8_lossy(&output.stderr)));
    let code = if json["answer"].is_null() { 0 } else { 3 };
    assert_eq!(output.status.code(), Some(code), "{json}");
    json["answer"].clone()
}

/// A token is verified for real, and nothing of it is printed; what is live is asked.
#[test]
fn the_program_verifies_tokens_and_asks_what_is_live() {
    let stack = Stack::start();
    let dir = stack.dir.path();
    let explain = |token: &str, more: &[&str]| {
        std::fs::write(dir.join("caller"), format!("{token}\n")).expect("the token is written");
        let output = Command::new(env!("CARGO_BIN_EXE_portcullis"))
            .args(["explain", "--config", "portcullis.yaml", "--token", "caller", "--capability", "tool:search_cases"])
            .args(["--arguments", r#"{"query":"printer"}"#])
            .args(more)
            .current_dir(dir)
            .output()
            .expect("portcullis runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains(token.rsplit('.').next().expect("a signature")), "{text}");
        (output.status.code(), text)
    };
    let (code, text) = explain(&stack.reader(), &[]);
    assert!(code == Some(0) && text.contains("\n  holds      cases:read\n"), "{text}");
    let (code, text) = explain(&stack.idp.forged(&json!({})), &[]);
    assert!(code == Some(3) && text.contains("token       refuse  token.invalid"), "{text}");
    assert_eq!(stack.upstream.own_count("tools/list"), 0);
    let (code, text) = explain(&stack.reader(), &["--live"]);
    assert!(code == Some(0) && stack.upstream.own_count("tools/list") == 1, "{text}");
    stack.upstream.script_own(|seen| {
        let id = seen.json()["id"].clone();
        crate::support::Answer::json(&json!({"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", "tools": [], "prompts": [], "resources": [], "resourceTemplates": [], "ttlMs": 0, "cacheScope": "public"}}))
    });
    let (code, text) = explain(&stack.reader(), &["--live"]);
    assert!(code == Some(3) && text.contains("definition  refuse  definition.gone"), "{text}");
    assert_eq!(stack.upstream.count(), 0, "explaining calls nothing");
}

/// The cases of the example pass; one that fails and a file that is none have codes of their own.
#[test]
fn the_program_tries_cases_and_tells_by_its_exit_code() {
    let example = crate::support::root().join("examples/policy-tests");
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_portcullis")).args(arguments).current_dir(&example).output();
        let output = output.expect("portcullis runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, passed, _) = run(&["test", "cases.yaml"]);
    assert!(code == Some(0) && passed.ends_with(" passed, 0 failed\n"), "{passed}");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, text: &str| {
        let file = dir.path().join(name);
        std::fs::write(&file, text).expect("a file");
        file.to_str().expect("a path").to_owned()
    };
    let failing = write("failing.yaml", "cases:\n- {name: one, method: tools/list, expect: allow}\n");
    let (code, told, _) = run(&["test", "--config", "portcullis.yaml", &failing]);
    let line = "FAIL  one: expected allow, got refuse token.missing (rung token, no rule)\n0 passed, 1 failed\n";
    assert_eq!((code, told.as_str()), (Some(1), line));
    let (code, told, fault) = run(&["test", "policy.yaml"]);
    assert!(code == Some(2) && told.is_empty() && fault.starts_with("policy.yaml:1:1: "), "{fault}");
    let request = write("request.http", "POST /mcp\n");
    for arguments in [
        &["explain", "--config", "portcullis.yaml", "--request", &request][..],
        &["explain", "--config", "portcullis.yaml", "--server", "other", "--method", "tools/list"],
        &["explain", "--config", "policy.yaml", "--method", "tools/list"],
        &["explain", "--config", "portcullis.yaml", "--claims", "{}", "--token", "x", "--method", "tools/list"],
    ] {
        let (code, told, fault) = run(arguments);
        assert!(code == Some(2) && told.is_empty() && !fault.is_empty(), "{arguments:?}: {told}{fault}");
    }
}
