//! The default test configuration: one server `cases` with tools, a prompt and resources, two roles, and the messages and
//! requests that fit it.

use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::Request;

/// The public URL of the guarded server, the audience of its tokens.
pub(crate) const RESOURCE: &str = "https://mcp.test/mcp";
/// The revision spoken.
pub(crate) const VERSION: &str = "2026-07-28";
/// The recorded instructions of the server.
pub(crate) const INSTRUCTIONS: &str = "Search before you update.";
/// What Portcullis presents to the upstream in the caller's place.
pub(crate) const CREDENTIAL: &str = "service-credential";

/// Label, permission, URI and definition of each recorded capability. `export_cases` is served but not priced, see
/// [`definitions`].
fn recorded() -> Vec<(&'static str, &'static str, Option<&'static str>, Value)> {
    let search = json!({
        "name": "search_cases", "description": "Finds support cases.",
        "inputSchema": {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 1}}, "required": ["query"], "additionalProperties": false},
        "outputSchema": {"type": "object", "properties": {"count": {"type": "integer"}, "cases": {"type": "array"}}, "required": ["count"]},
    });
    let update = json!({
        "name": "update_case", "description": "Changes a support case.",
        "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}, "status": {"type": "string"}}, "required": ["id"]},
    });
    let template = |name: &str, uri: &str| json!({"name": name, "uriTemplate": uri, "mimeType": "text/plain"});
    let triage =
        json!({"name": "triage", "description": "Sorts a case.", "arguments": [{"name": "id", "required": true}]});
    vec![
        ("tool:search_cases", "cases:read", None, search),
        ("tool:update_case", "cases:write", None, update),
        ("prompt:triage", "cases:read", None, triage),
        ("resource:case", "cases:read", Some("cases://case/{id}"), template("case", "cases://case/{id}")),
        ("resource:any", "cases:read", Some("cases://{+path}"), template("any", "cases://{+path}")),
        (
            "resource:internal",
            "cases:write",
            Some("cases://case/{id}/internal"),
            template("internal", "cases://case/{id}/internal"),
        ),
    ]
}

/// The definitions that the upstream lists under a kind, `"tool:"` say; tools include one that is not recorded.
pub(crate) fn definitions(kind: &str) -> Value {
    let mut list: Vec<Value> =
        recorded().into_iter().filter(|entry| entry.0.starts_with(kind)).map(|entry| entry.3).collect();
    if kind == "tool:" {
        list.push(
            json!({"name": "export_cases", "description": "Exports all cases.", "inputSchema": {"type": "object"}}),
        );
    }
    Value::Array(list)
}

/// The digest of a definition: SHA-256 over its canonical form. Integers below 2^53 only, which is all the fixture has.
pub(crate) fn digest(definition: &Value) -> String {
    let mut definition = definition.clone();
    if let Some(members) = definition.as_object_mut() {
        members.remove("_meta");
        members.remove("icons");
    }
    let mut text = String::new();
    canonical(&definition, &mut text);
    let hex: String = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => {
            out.push_str(&canonical_integer(number.as_i64().expect("the fixture holds integers only")));
        }
        Value::Array(items) => join(out, ['[', ']'], items, canonical),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by(|one, other| one.0.as_bytes().cmp(other.0.as_bytes()));
            join(out, ['{', '}'], &members, |(key, value), out| {
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                canonical(value, out);
            });
        }
        // serde_json escapes just what the canonical form escapes.
        plain => out.push_str(&plain.to_string()),
    }
}

fn join<T>(out: &mut String, around: [char; 2], items: &[T], mut each: impl FnMut(&T, &mut String)) {
    out.push(around[0]);
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        each(item, out);
    }
    out.push(around[1]);
}

/// `[-]D` or `[-]DeN`, D without a trailing zero.
fn canonical_integer(number: i64) -> String {
    let digits = number.to_string();
    let short = digits.trim_end_matches('0');
    match digits.len() - short.len() {
        _ if number == 0 => "0".into(),
        0 => digits,
        zeros => format!("{short}e{zeros}"),
    }
}

/// Where the parts of a stack listen.
pub(crate) struct Ports {
    pub(crate) idp: u16,
    pub(crate) upstream: u16,
}

/// The configuration file of the tests, every knob spelled out so that a test can substitute it.
pub(crate) fn configuration(dir: &Path, ports: &Ports) -> String {
    let (dir, Ports { idp, upstream }) = (dir.display(), ports);
    format!(
        r#"listen:
  ext_proc: unix:{dir}/ext_proc.sock
unmatched: deny
servers:
- name: cases
  kind: mcp
  match: {{route: [cases, cases-stream]}}
  resource: {RESOURCE}
  allowed_origins: [https://app.example.com]
  protocol: ["{VERSION}"]
  mode: enforce
  identity:
    jwt:
      issuer: http://127.0.0.1:{idp}
      jwks: http://127.0.0.1:{idp}/jwks.json
      audiences: []
      required_scopes: [mcp]
      require_email: true
  authorization_server: {{issuer: "http://127.0.0.1:{idp}", authorization_endpoint: "http://127.0.0.1:{idp}/authorize", token_endpoint: "http://127.0.0.1:{idp}/token"}}
  upstream:
    url: http://127.0.0.1:{upstream}/own
    credential: {{bearer: {{file: {dir}/credential}}}}
  policy: {{file: policy.yaml}}
  record: {{file: records/cases.yaml}}
  capability_scopes: {{"tool:update_case": [cases:write]}}
  limits: {{request: 1MiB, listing: 1MiB, answer: 16MiB, depth: 64}}
  denials: {{policy_status: 200, disclose: explicit, step_up: challenge, code: -32000, unlisted_method_status: 404, upstream_status: 502}}
telemetry:
  audit: {{stdout: json}}
"#
    )
}

/// A configuration whose `identity:` is this instead, lines without their indentation of four.
pub(crate) fn identified_by(config: &str, identity: &[&str]) -> String {
    let start = config.find("    jwt:\n").expect("the identity");
    let end = config.find("  authorization_server:").expect("what follows the identity");
    let lines: String = identity.iter().map(|line| format!("    {line}\n")).collect();
    format!("{}{lines}{}", &config[..start], &config[end..])
}

const POLICY: &str = "roles:
  reader: [cases:read]
  editor: [cases:read, cases:write]
rules:
- match: {domain: acme.com}
  role: reader
- match: {claim: {groups: case-editors}}
  role: editor
- match: {sub: contractor-17}
  deny: true
";

/// Writes everything that the configuration names into `dir`; `more` are further recorded tools, which readers may call.
pub(crate) fn write_files(dir: &Path, more: &[Value]) {
    let records = dir.join("records");
    fs::create_dir_all(&records).expect("the records' directory");
    fs::write(dir.join("policy.yaml"), POLICY).expect("policy.yaml");
    fs::write(dir.join("credential"), CREDENTIAL).expect("credential");
    let mut prices = format!(
        "recorded: {{from: \"https://vendor.example.com/mcp\", at: 2026-11-30T09:00:00Z, protocol: \"{VERSION}\"}}\ndefinitions: cases.json\ncapabilities:\n"
    );
    let mut recorded_definitions = Map::new();
    let capabilities = recorded()
        .into_iter()
        .map(|(label, permission, uri, definition)| (label.to_owned(), permission, uri, definition));
    let tool = |definition: &Value| {
        let label = format!("tool:{}", definition["name"].as_str().expect("a tool has a name"));
        (label, "cases:read", None, definition.clone())
    };
    for (label, permission, uri, definition) in capabilities.chain(more.iter().map(tool)) {
        let uri = uri.map(|uri| format!(", uri: \"{uri}\"")).unwrap_or_default();
        prices.push_str(&format!(
            "  {label:?}: {{permission: {permission}, digest: \"{}\"{uri}}}\n",
            digest(&definition)
        ));
        recorded_definitions.insert(label, definition);
    }
    fs::write(records.join("cases.yaml"), prices).expect("cases.yaml");
    let file = json!({"instructions": INSTRUCTIONS, "definitions": recorded_definitions});
    fs::write(records.join("cases.json"), serde_json::to_string_pretty(&file).expect("JSON")).expect("cases.json");
}

/// A request message of 2026-07-28 with its `_meta`, id 1.
pub(crate) fn rpc(method: &str, params: Value) -> Value {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    });
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// `tools/call` of a tool.
pub(crate) fn call(tool: &str, arguments: Value) -> Value {
    rpc("tools/call", json!({"name": tool, "arguments": arguments}))
}

/// An allowed call: the reader may search.
pub(crate) fn search() -> Value {
    call("search_cases", json!({"query": "printer"}))
}

/// `resources/read` of a URI.
pub(crate) fn read(uri: &str) -> Value {
    rpc("resources/read", json!({"uri": uri}))
}

/// The POST that carries a message, with the routing headers that mirror it and no token.
pub(crate) fn post(message: &Value) -> Request {
    let method = message["method"].as_str().unwrap_or_default();
    let request = Request::new("POST", "/mcp")
        .add("content-type", "application/json")
        .add("accept", "application/json, text/event-stream")
        .add("mcp-protocol-version", VERSION)
        .add("mcp-method", method)
        .body(message.to_string());
    let name = match method {
        "tools/call" | "prompts/get" => message["params"]["name"].as_str(),
        "resources/read" => message["params"]["uri"].as_str(),
        _ => None,
    };
    match name {
        Some(name) => request.add("mcp-name", name),
        None => request,
    }
}
