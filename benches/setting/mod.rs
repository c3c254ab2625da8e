//! What both benchmarks measure against: one MCP server with any number of rules and priced tools, callers with ES256
//! tokens, and calls and answers of any size.
#![allow(
    dead_code,
    clippy::format_push_string,
    reason = "each benchmark uses a part of it, and none is in a hurry here"
)]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::support::{Answer, Idp, Upstream, fixture};

/// Permissions that the tools' prices are spread over; the callers of the benchmarks hold every second one.
const AREAS: usize = 20;

/// How large the configuration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Size {
    pub(crate) rules: usize,
    pub(crate) tools: usize,
}

/// What the budgets are stated for.
pub(crate) const USUAL: Size = Size { rules: 50, tools: 200 };

/// The name of tool `n`. The callers may use the even ones.
pub(crate) fn tool(n: usize) -> String {
    format!("tool_{n:05}")
}

/// The definition of tool `n`, as large as a usual one.
pub(crate) fn definition(n: usize) -> Value {
    json!({
        "name": tool(n),
        "title": format!("Tool number {n}"),
        "description": "Finds support cases by their text, their owner and their status, newest first, and says how many there are.",
        "inputSchema": {"type": "object", "required": ["query"], "additionalProperties": false, "properties": {
            "query": {"type": "string", "description": "Words that the case contains."},
            "status": {"type": "string", "enum": ["open", "waiting", "closed"]},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100},
        }},
    })
}

/// Writes `portcullis.yaml` and all it names into `dir`; returns its path. The socket is `ext_proc.sock` beside it.
///
/// `lister` is where Portcullis lists the server itself; see [`lister`].
pub(crate) fn write_files(dir: &Path, size: Size, screen: bool, idp: &Idp, lister: &Upstream) -> PathBuf {
    fixture::write_files(dir, &[]);
    let ports = fixture::Ports { idp: idp.port, upstream: lister.port };
    let mut text = fixture::configuration(dir, &ports);
    text = text.replace("  capability_scopes: {\"tool:update_case\": [cases:write]}\n", "");
    if !screen {
        text = text.replace("telemetry:\n", "  screen: \"off\"\ntelemetry:\n");
    }
    // The benchmarks ask for listings of 2,000 tools.
    text = text.replace("listing: 1MiB", "listing: 16MiB");
    let config = dir.join("portcullis.yaml");
    fs::write(&config, text).expect("portcullis.yaml is written");
    fs::write(dir.join("policy.yaml"), policy(size.rules)).expect("policy.yaml is written");
    write_record(&dir.join("records"), size.tools);
    config
}

/// Makes the configuration in `config` export its metrics, traces and audit to the collector on this port, besides all else.
pub(crate) fn export_to(config: &Path, port: u16) {
    let text = fs::read_to_string(config).expect("the configuration");
    let from = "telemetry:\n";
    assert!(text.contains(from), "expected a section `telemetry` in:\n{text}");
    let otlp = format!("{from}  otlp: {{endpoint: \"http://127.0.0.1:{port}\"}}\n");
    fs::write(config, text.replace(from, &otlp)).expect("portcullis.yaml is written");
}

/// One rule that matches the callers and others that do not, of each kind in turn.
fn policy(rules: usize) -> String {
    let granted: Vec<String> = (0..AREAS).step_by(2).map(|area| format!("area-{area}:use")).collect();
    let all: Vec<String> = (0..AREAS).map(|area| format!("area-{area}:use")).collect();
    let mut text = format!(
        "roles:\n  member: [{}]\n  owner: [{}]\nrules:\n- match: {{domain: acme.com}}\n  role: member\n",
        granted.join(", "),
        all.join(", ")
    );
    for n in 1..rules {
        let matches = match n % 4 {
            0 => format!("{{sub: contractor-{n}}}"),
            1 => format!("{{email: person-{n}@example.com}}"),
            2 => format!("{{claim: {{groups: group-{n}}}}}"),
            _ => format!("{{domain: domain-{n}.example.com}}"),
        };
        text += &format!("- match: {matches}\n  role: owner\n");
    }
    text
}

fn write_record(records: &Path, tools: usize) {
    let mut prices = String::from("definitions: cases.json\ncapabilities:\n");
    let mut definitions = Map::new();
    for n in 0..tools {
        let (label, definition) = (format!("tool:{}", tool(n)), definition(n));
        let (area, digest) = (n % AREAS, fixture::digest(&definition));
        prices += &format!("  {label}: {{permission: \"area-{area}:use\", digest: \"{digest}\"}}\n");
        definitions.insert(label, definition);
    }
    fs::write(records.join("cases.yaml"), prices).expect("cases.yaml is written");
    let file = json!({"instructions": fixture::INSTRUCTIONS, "definitions": definitions});
    fs::write(records.join("cases.json"), file.to_string()).expect("cases.json is written");
}

/// A call of tool `n` as a body of exactly `bytes` bytes.
pub(crate) fn call(n: usize, bytes: usize) -> Value {
    let with = |filler: usize| fixture::call(&tool(n), json!({"query": filling(filler), "limit": 20}));
    let empty = with(0).to_string().len();
    with(bytes.checked_sub(empty).expect("expected a size that holds an empty call"))
}

/// An answer to that call, of exactly `bytes` bytes.
pub(crate) fn answer(bytes: usize) -> Vec<u8> {
    let with = |filler: usize| {
        json!({"jsonrpc": "2.0", "id": 1, "result": {
            "resultType": "complete", "content": [{"type": "text", "text": filling(filler)}], "isError": false,
        }})
        .to_string()
        .into_bytes()
    };
    let empty = with(0).len();
    with(bytes.checked_sub(empty).expect("expected a size that holds an empty answer"))
}

/// The headers that Envoy hands over for `message`, sent by an SDK's client.
pub(crate) fn headers<'m>(message: &'m Value, authorization: &'m str) -> Vec<(&'static str, &'m str)> {
    let headers = [
        (":authority", "mcp.test"),
        (":path", "/mcp"),
        (":method", "POST"),
        (":scheme", "http"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", fixture::VERSION),
        ("mcp-method", message["method"].as_str().expect("a method")),
        ("mcp-name", message["params"]["name"].as_str().unwrap_or_default()),
        ("authorization", authorization),
        ("user-agent", "an-sdk/1.2.3 (linux; x64)"),
        ("accept-encoding", "gzip, deflate, br"),
        ("content-length", "1024"),
        ("x-forwarded-for", "10.1.2.3"),
        ("x-forwarded-proto", "https"),
        ("x-request-id", "6f2e1f0e-43c5-4f4d-9d0a-6f0d3b8d9a11"),
    ];
    headers.into_iter().filter(|(_, value)| !value.is_empty()).collect()
}

/// The headers of an answer of `length` bytes. Borrows the number written out.
pub(crate) fn answer_headers(length: &str) -> [(&'static str, &str); 5] {
    [
        (":status", "200"),
        ("content-type", "application/json"),
        ("content-length", length),
        ("date", "Mon, 30 Nov 2026 12:00:00 GMT"),
        ("x-envoy-upstream-service-time", "0"),
    ]
}

/// A listing of `tools` tools.
pub(crate) fn listing(tools: usize) -> Vec<u8> {
    let tools: Vec<Value> = (0..tools).map(definition).collect();
    json!({"jsonrpc": "2.0", "id": 1, "result": {"resultType": "complete", "tools": tools, "ttlMs": 60000, "cacheScope": "public"}})
        .to_string()
        .into_bytes()
}

/// A server that lists these tools to Portcullis, so that it finds them unchanged.
pub(crate) fn lister(tools: usize) -> Upstream {
    let upstream = Upstream::start();
    let listing: Value = serde_json::from_slice(&listing(tools)).expect("JSON");
    upstream.script_own(move |seen| {
        let mut answer = listing.clone();
        answer["id"] = seen.json()["id"].clone();
        Answer::json(&answer)
    });
    upstream
}

/// Prose of `bytes` bytes, with a line break here and there as texts have them.
fn filling(bytes: usize) -> String {
    // An escaped line break takes two bytes in JSON, so the count is of escaped bytes.
    let mut text = String::new();
    let mut left = bytes;
    for (n, word) in ["printer ", "does not ", "answer since ", "Monday", "; "].iter().cycle().enumerate() {
        if n % 40 == 39 && left >= 2 {
            text.push('\n');
            left -= 2;
        }
        let take = word.len().min(left);
        text += &word[..take];
        left -= take;
        if left == 0 {
            return text;
        }
    }
    text
}
