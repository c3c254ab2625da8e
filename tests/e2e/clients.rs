//! Real MCP clients against a real MCP server: the SDKs' own HTTP, their own reading of our refusals.
//!
//! Each client walks the same story and reports it in one form ([`Story`]), so that what holds for one is asked of all.

mod python;
mod rust;
mod typescript;

use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::gates::servers::{Gate, Say};
use crate::support::child::Child;
use crate::support::sdk_server::SdkServer;
use crate::support::stack::Parts;
use crate::support::{Stack, fixture, substitute, wait_for};

/// A stack whose upstream is the SDK's server.
struct Scene {
    server: SdkServer,
    stack: Stack,
}

impl Scene {
    /// `json`: the server answers with JSON, else with server-sent events.
    fn start(json: bool) -> Self {
        let server = SdkServer::start(json);
        let stack = Stack::before(server.port);
        Self { server, stack }
    }

    /// With a gate that denies the first call it is asked about, and no other.
    fn gated() -> (Gate, Self) {
        let (gate, server) = (Gate::start(Say::DenyFirst), SdkServer::start(true));
        let gates = format!("  gates: [{{name: acme, grpc: {{address: '{}', timeout: 2s}}}}]\n", gate.address());
        let limits = format!("{gates}  limits: {{request");
        let config = |config: String, _: &Parts<'_>| substitute(&config, &[("  limits: {request", &limits)]);
        let stack = Stack::made(Some(server.port), config, |edge, _| edge);
        (gate, Self { server, stack })
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.stack.envoy.port)
    }
}

/// What a client saw, in order: it found out whom it talks to, listed, called, was refused, went on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Story {
    instructions: Option<String>,
    tools: Vec<String>,
    templates: Vec<String>,
    /// The structured content of a permitted call.
    allowed: Value,
    /// The errors of three calls that are refused: a tool without a price, one without permission, a resource without.
    refused: Vec<ClientError>,
    /// The permitted call again, on the same client.
    after: Value,
    prompt: String,
    resource: String,
}

/// A JSON-RPC error as the client hands it to its program.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientError {
    code: i64,
    message: String,
    data: Value,
}

/// What a client saw of one call, made twice on the same client object: refused by a gate, then allowed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Gated {
    denied: ClientError,
    allowed: Value,
}

/// A gate's refusal is a JSON-RPC error to the client, with the gate's own code, and the client goes on.
#[track_caller]
fn assert_gated(scene: &Scene, gate: &Gate, told: &Gated) {
    let error = &told.denied;
    assert_eq!((error.code, error.message.as_str()), (-32000, "Ask a manager."), "{told:?}");
    let data = &error.data;
    assert_eq!((&data["error"], &data["plugin"]), (&json!("payments.limit"), &json!("acme")), "{told:?}");
    assert_eq!(data["details"], json!({"retry_after_seconds": 7, "limit": 1000}), "{told:?}");
    assert_eq!(told.allowed["count"], 1, "{told:?}");
    assert_eq!((gate.asked(), scene.server.count("search_cases")), (2, 1));
}

/// The URI that takes the editor's permission.
const NARROW: &str = "cases://case/17/internal";

/// The reader's story, which every client must have been told.
#[track_caller]
fn assert_readers_story(scene: &Scene, story: &Story) {
    let found = json!({"count": 1, "cases": [{"id": "17", "title": "Printer on fire"}]});
    assert_eq!(story.instructions.as_deref(), Some(fixture::INSTRUCTIONS), "{story:?}");
    assert_eq!(
        (story.tools.as_slice(), &story.allowed, &story.after),
        (&["search_cases".to_owned()][..], &found, &found)
    );
    assert_eq!(story.templates, ["case", "any"]);
    assert_eq!((story.prompt.as_str(), story.resource.as_str()), ("Triage case 17.", "case 17"));
    let reasons: Vec<_> =
        story.refused.iter().map(|error| (error.code, &error.data["error"], &error.data["plugin"])).collect();
    let permission = json!("permission");
    let (unpriced, not_permitted) = (json!("policy.unpriced"), json!("policy.not_permitted"));
    let expected = [
        (-32000, &unpriced, &permission),
        (-32000, &not_permitted, &permission),
        (-32000, &not_permitted, &permission),
    ];
    assert_eq!(reasons, expected, "{story:?}");
    for error in &story.refused {
        assert!(!error.message.is_empty() && error.data["decision"].is_string(), "{error:?}");
    }
    assert_nothing_refused_passed(scene);
}

/// The server saw the calls that were permitted, with our credential, and no other.
#[track_caller]
fn assert_nothing_refused_passed(scene: &Scene) {
    for (name, times) in [
        ("search_cases", 2),
        ("export_cases", 0),
        ("update_case", 0),
        (NARROW, 0),
        ("triage", 1),
        ("cases://case/17", 1),
    ] {
        assert_eq!(scene.server.count(name), times, "{name}: {:#?}", scene.server.reached());
    }
    let credential = format!("Bearer {}", fixture::CREDENTIAL);
    let stranger = scene.server.reached().into_iter().find(|request| request.authorization != credential);
    assert!(stranger.is_none(), "expected our credential on every request, got {stranger:?}");
}

/// Runs a client's script as the reader, and what it printed. One that hangs is ended and fails the test, as does one that fails.
fn script(name: &'static str, mut command: Command, scene: &Scene, kind: &str) -> Value {
    command.args([kind, &scene.url(), &scene.stack.reader()]).stdout(Stdio::piped());
    let mut child = Child::spawn(name, &mut command, scene.stack.dir.path().join("client.log"), Vec::new());
    let ended = wait_for(Duration::from_mins(1), || child.ended());
    let mut said = String::new();
    child.kill();
    child.inner.stdout.take().expect("its output is piped").read_to_string(&mut said).expect("its output is text");
    assert!(
        ended.is_some_and(|status| status.success()),
        "expected the client to end well, got {ended:?}\n{}",
        child.tail()
    );
    serde_json::from_str(&said).unwrap_or_else(|fault| panic!("expected JSON from the client, got {fault}: {said}"))
}
