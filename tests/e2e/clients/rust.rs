//! The Rust SDK's client.

use rmcp::model::{CallToolRequestParams, GetPromptRequestParams, ProtocolVersion, ReadResourceRequestParams};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use rmcp::{ClientLifecycleMode, ClientServiceExt as _, RoleClient, ServiceError, ServiceExt as _};
use serde_json::{Value, json};

use super::{ClientError, Gated, NARROW, Scene, Story, assert_gated, assert_readers_story};
use crate::support::fixture;

type Client = RunningService<RoleClient, ()>;

/// Runs a client to its end; one that hangs fails the test.
fn run<T>(story: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime
        .block_on(async { tokio::time::timeout(std::time::Duration::from_secs(30), story).await })
        .expect("the client ends within 30 s")
}

fn transport(url: &str, token: &str) -> impl Transport<RoleClient> + use<> {
    StreamableHttpClientTransport::from_config(StreamableHttpClientTransportConfig::with_uri(url).auth_header(token))
}

async fn discover(url: &str, token: &str) -> Result<Client, ClientInitializeError> {
    let mode = ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] };
    ().serve_with_lifecycle(transport(url, token), mode).await
}

fn call(tool: &'static str, arguments: Value) -> CallToolRequestParams {
    let arguments = arguments.as_object().expect("an object").clone();
    CallToolRequestParams::new(tool).with_arguments(arguments)
}

fn search() -> CallToolRequestParams {
    call("search_cases", json!({"query": "printer"}))
}

fn error<T: std::fmt::Debug>(outcome: Result<T, ServiceError>) -> ClientError {
    match outcome {
        Err(ServiceError::McpError(error)) => ClientError {
            code: error.code.0.into(),
            message: error.message.into_owned(),
            data: error.data.unwrap_or_default(),
        },
        other => panic!("expected a JSON-RPC error, the client got {other:?}"),
    }
}

async fn tell(client: &Client) -> Result<Story, ServiceError> {
    let names = |names: Vec<rmcp::model::Tool>| names.into_iter().map(|tool| tool.name.into_owned()).collect();
    let tools = names(client.list_all_tools().await?);
    let templates = client.list_all_resource_templates().await?;
    let allowed = client.call_tool(search()).await?.structured_content.unwrap_or_default();
    let refused = vec![
        error(client.call_tool(call("export_cases", json!({}))).await),
        error(client.call_tool(call("update_case", json!({"id": "17"}))).await),
        error(client.read_resource(ReadResourceRequestParams::new(NARROW)).await),
    ];
    let after = client.call_tool(search()).await?.structured_content.unwrap_or_default();
    let arguments = json!({"id": "17"}).as_object().expect("an object").clone();
    let prompt = client.get_prompt(GetPromptRequestParams::new("triage").with_arguments(arguments)).await?;
    let resource = client.read_resource(ReadResourceRequestParams::new("cases://case/17")).await?;
    let text = |value: Value, at: &str| value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Story {
        instructions: client.peer_info().and_then(|info| info.instructions.clone()),
        tools,
        templates: templates.into_iter().map(|template| template.name.clone()).collect(),
        allowed,
        refused,
        after,
        prompt: text(json!(prompt), "/messages/0/content/text"),
        resource: text(json!(resource), "/contents/0/text"),
    })
}

fn reader(json: bool) {
    let scene = Scene::start(json);
    let story = run(async {
        let client = discover(&scene.url(), &scene.stack.reader()).await.expect("the client finds its server");
        let story = tell(&client).await.expect("every permitted request is answered");
        client.cancel().await.expect("the client ends");
        story
    });
    assert_readers_story(&scene, &story);
}

#[test]
fn over_json() {
    reader(true);
}

#[test]
fn over_server_sent_events() {
    reader(false);
}

#[test]
fn a_call_that_a_gate_refused_is_an_error_and_the_next_succeeds() {
    let (gate, scene) = Scene::gated();
    let told = run(async {
        let client = discover(&scene.url(), &scene.stack.reader()).await.expect("the client finds its server");
        let denied = error(client.call_tool(search()).await);
        let allowed = client.call_tool(search()).await.expect("the next call").structured_content.unwrap_or_default();
        Gated { denied, allowed }
    });
    assert_gated(&scene, &gate, &told);
}

#[test]
fn two_callers_see_two_listings() {
    let scene = Scene::start(true);
    let listings = run(async {
        let mut listings = Vec::new();
        for token in [scene.stack.reader(), scene.stack.editor()] {
            let client = discover(&scene.url(), &token).await.expect("the client finds its server");
            let tools = client.list_all_tools().await.expect("a listing");
            let templates = client.list_all_resource_templates().await.expect("a listing");
            let tools: Vec<_> = tools.into_iter().map(|tool| tool.name.into_owned()).collect();
            let templates: Vec<_> = templates.into_iter().map(|template| template.name.clone()).collect();
            listings.push((tools, templates));
        }
        listings
    });
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let readers = (names(&["search_cases"]), names(&["case", "any"]));
    let editors = (names(&["search_cases", "update_case"]), names(&["case", "any", "internal"]));
    assert_eq!(listings, [readers, editors]);
}

#[test]
fn a_challenge_reaches_the_client_as_one() {
    let scene = Scene::start(true);
    run(async {
        // The editor by group, without the scope that the tool needs.
        let token = scene.stack.idp.token(&json!({"groups": ["case-editors"]}));
        let client = discover(&scene.url(), &token).await.expect("the client finds its server");
        let fault = client.call_tool(call("update_case", json!({"id": "17"}))).await.expect_err("a missing scope");
        let challenge = fault.auth_challenge().unwrap_or_else(|| panic!("expected a challenge, got {fault:?}"));
        assert!(challenge.starts_with("Bearer error=\"insufficient_scope\""), "{challenge}");
        client.call_tool(search()).await.expect("the client goes on");
        let fault = discover(&scene.url(), "no-token").await.expect_err("no token");
        let challenge = fault.auth_challenge().unwrap_or_else(|| panic!("expected a challenge, got {fault:?}"));
        assert!(challenge.starts_with("Bearer error=\"invalid_token\""), "{challenge}");
    });
    assert_eq!(scene.server.count("update_case"), 0);
}

#[test]
fn an_older_client_learns_what_is_spoken_here() {
    let scene = Scene::start(true);
    let fault = run(async { ().serve(transport(&scene.url(), &scene.stack.reader())).await }).expect_err("a refusal");
    let ClientInitializeError::JsonRpcError(error) = fault else {
        panic!("expected the JSON-RPC error of a refused version, the client got {fault:?}");
    };
    let data = error.data.unwrap_or_default();
    assert_eq!((error.code.0, &data["supported"]), (-32022, &json!(["2026-07-28"])), "{data}");
    assert!(scene.server.reached().is_empty(), "{:?}", scene.server.reached());
    // Nobody was harmed: a client of today's is served.
    let call = fixture::post(&fixture::search()).bearer(&scene.stack.reader()).authority("localhost");
    assert_eq!(call.send(scene.stack.envoy.port).status, 200);
}
