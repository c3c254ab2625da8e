//! An MCP server made with the Rust SDK: its HTTP, JSON-RPC and server-sent events are the SDK's, its definitions and answers
//! are [`super::mcp`]'s.

use std::borrow::Cow;
use std::future::{Ready, ready};
use std::sync::{Arc, Mutex};

use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::Response;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ServerCapabilities, ServerConfig, SubscriptionFilter,
};
use rmcp::service::{RequestContext, SubscriptionContext};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::sdk_streams::Streams;
use super::{fixture, mcp};

/// A request as it reached the server: method, name and credential, from its headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) method: String,
    pub(crate) name: String,
    pub(crate) authorization: String,
}

type Log = Arc<Mutex<Vec<Reached>>>;
/// The tools that are listed in the place of [`mcp`]'s.
type Offered = Arc<Mutex<Option<Value>>>;

/// A running server; ends when dropped.
pub(crate) struct SdkServer {
    pub(crate) port: u16,
    log: Log,
    tools: Offered,
    streams: Streams,
    _runtime: tokio::runtime::Runtime,
}

impl SdkServer {
    /// Starts it; `json`: it answers with JSON, else with server-sent events.
    pub(crate) fn start(json: bool) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a loopback port");
        let port = listener.local_addr().expect("its address").port();
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(json)
            .with_sse_keep_alive(None);
        let tools = Offered::default();
        let (offered, streams) = (tools.clone(), Streams::default());
        let of_service = streams.clone();
        let service: StreamableHttpService<Cases, LocalSessionManager> =
            StreamableHttpService::new(move || Ok(Cases(offered.clone(), of_service.clone())), Arc::default(), config);
        let log = Log::default();
        let app = axum::Router::new()
            .nest_service("/mcp", service)
            .layer(middleware::from_fn_with_state(log.clone(), record));
        runtime.spawn(async { axum::serve(listener, app).await });
        Self { port, log, tools, streams, _runtime: runtime }
    }

    /// From now on lists these tools.
    pub(crate) fn offer(&self, tools: Value) {
        *self.tools.lock().expect("no reader panicked") = Some(tools);
    }

    /// What reached it so far.
    pub(crate) fn reached(&self) -> Vec<Reached> {
        self.log.lock().expect("no writer panicked").clone()
    }

    /// Which long answers their callers left before the end ([`Streams`]).
    pub(crate) fn left(&self) -> Vec<&'static str> {
        self.streams.left()
    }

    /// How often a tool, prompt or resource of this name was asked for.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.reached().iter().filter(|request| request.name == name).count()
    }
}

async fn record(State(log): State<Log>, request: Request, next: Next) -> Response {
    let reached = Reached::new(request.headers());
    log.lock().expect("no writer panicked").push(reached);
    next.run(request).await
}

impl Reached {
    fn new(headers: &http::HeaderMap) -> Self {
        let header = |name: &str| {
            let value = headers.get(name);
            value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
        };
        Self { method: header("mcp-method"), name: header("mcp-name"), authorization: header("authorization") }
    }
}

/// The server's side of the protocol.
struct Cases(Offered, Streams);

/// The answer of [`mcp::result`] in the SDK's own types.
fn answer<T: DeserializeOwned>(method: &str, params: &Value) -> Ready<Result<T, ErrorData>> {
    let result = mcp::result(method, params).ok_or_else(|| ErrorData::invalid_params("not here", None));
    ready(result.map(|result| serde_json::from_value(result).expect("a result that the SDK can read")))
}

impl ServerHandler for Cases {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_resources()
            .enable_resources_subscribe()
            .build();
        ServerConfig::new(capabilities).with_instructions(fixture::INSTRUCTIONS)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS)
    }

    fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListToolsResult, ErrorData>> {
        match self.0.lock().expect("no writer panicked").clone() {
            None => answer("tools/list", &Value::Null),
            Some(tools) => {
                let result = json!({"resultType": "complete", "tools": tools, "ttlMs": 60000, "cacheScope": "public"});
                ready(Ok(serde_json::from_value(result).expect("a result that the SDK can read")))
            }
        }
    }

    fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListPromptsResult, ErrorData>> {
        answer("prompts/list", &Value::Null)
    }

    fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListResourcesResult, ErrorData>> {
        answer("resources/list", &Value::Null)
    }

    fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> impl Future<Output = Result<ListResourceTemplatesResult, ErrorData>> {
        answer("resources/templates/list", &Value::Null)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let query = request.arguments.as_ref().and_then(|arguments| arguments.get("query")).and_then(Value::as_str);
        self.1.work(query.unwrap_or_default(), &context).await;
        answer::<CallToolResult>("tools/call", &json!({"name": request.name})).await.map(Into::into)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        answer::<GetPromptResult>("prompts/get", &json!({"name": request.name})).await.map(Into::into)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        answer::<ReadResourceResult>("resources/read", &json!({"uri": request.uri})).await.map(Into::into)
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.1.listen(context).await
    }
}
