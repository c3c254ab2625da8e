//! The requests of the story, and one kept-alive HTTP/1.1 connection to send them over.
//!
//! No MCP client library: the demo shows, and some steps falsify, exactly what goes over the wire.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Longest wait for one answer; Envoy and Portcullis give up well before.
const PATIENCE: Duration = Duration::from_secs(15);
/// What every request of a 2026-07-28 client says about itself.
pub(super) const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"portcullis-demo","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// One HTTP request as it goes out.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    /// In the order in which they are sent and shown.
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

impl Request {
    /// An MCP request. `id` is JSON as it shall stand in the body; `params` are members without braces, `_meta` is
    /// added; `name` is what `Mcp-Name` says, for the methods that have one.
    pub(super) fn mcp(method: &str, id: &str, name: Option<&str>, params: &str) -> Self {
        let comma = if params.is_empty() { "" } else { "," };
        let mut headers = vec![
            ("Content-Type", "application/json".to_owned()),
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("MCP-Protocol-Version", "2026-07-28".to_owned()),
            ("Mcp-Method", method.to_owned()),
        ];
        headers.extend(name.map(|name| ("Mcp-Name", name.to_owned())));
        Self {
            method: Method::POST,
            path: "/mcp".to_owned(),
            headers,
            body: format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}"_meta":{META}}}}}"#
            ),
        }
    }

    /// A `tools/call` of this tool; `arguments` is a JSON object.
    pub(super) fn call(id: &str, tool: &str, arguments: &str) -> Self {
        Self::mcp("tools/call", id, Some(tool), &format!(r#""name":"{tool}","arguments":{arguments}"#))
    }

    /// A `resources/read` of this URI.
    pub(super) fn read(id: &str, uri: &str) -> Self {
        Self::mcp("resources/read", id, Some(uri), &format!(r#""uri":"{uri}""#))
    }

    /// A plain GET.
    pub(super) fn get(path: &str) -> Self {
        Self { method: Method::GET, path: path.to_owned(), headers: Vec::new(), body: String::new() }
    }

    /// What tells the upstream, which nobody else is told, to misbehave in this way.
    pub(super) fn misbehave(how: &str) -> Self {
        Self { method: Method::POST, ..Self::get(&format!("/misbehave/{how}")) }
    }

    /// The same request from the holder of this token.
    pub(super) fn bearing(mut self, token: &str) -> Self {
        self.headers.insert(0, ("Authorization", format!("Bearer {token}")));
        self
    }

    /// The same request with another value of a header that it has.
    pub(super) fn claiming(mut self, header: &str, value: &str) -> Self {
        for (name, old) in &mut self.headers {
            if *name == header {
                value.clone_into(old);
            }
        }
        self
    }

    /// The request as a command for a POSIX shell; a token may be a shell variable (`$ANA`).
    pub(super) fn as_curl(&self, port: u16) -> String {
        let mut command = format!("curl -sS http://127.0.0.1:{port}{}", self.path);
        // Writing to a String cannot fail.
        for (name, value) in &self.headers {
            let _ = write!(command, " \\\n  -H \"{name}: {value}\"");
        }
        let _ = write!(command, " \\\n  -d '{}'", self.body);
        command
    }
}

/// What came back.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Answer {
    /// A header's value, or the empty string when it is absent or not text.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The `id` member as the bytes stand, or nothing. Both Portcullis and the SDK write it second; a JSON library
    /// would round it or rewrite its escapes.
    pub(super) fn id(&self) -> &str {
        let rest = self.body.strip_prefix(r#"{"jsonrpc":"2.0","id":"#).unwrap_or_default();
        rest.split_once(r#","result":"#).or_else(|| rest.split_once(r#","error":"#)).map_or("", |(id, _)| id)
    }

    /// What a JSON pointer finds in the body: a string as its text, anything else as compact JSON, nothing as `""`.
    pub(super) fn at(&self, pointer: &str) -> String {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        match body.pointer(pointer) {
            None => String::new(),
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        }
    }

    /// The `name` of each entry of the list that a JSON pointer finds, in order.
    pub(super) fn names(&self, pointer: &str) -> Vec<String> {
        let body: serde_json::Value = serde_json::from_str(&self.body).unwrap_or_default();
        let entries = body.pointer(pointer).and_then(|list| list.as_array()).cloned().unwrap_or_default();
        entries.iter().map(|entry| entry["name"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

/// One HTTP/1.1 connection, kept alive. Opened anew only after an answer that said it closes it (Envoy's answers at
/// status 400 do); a server that closes it in any other way makes the next request fail.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    port: u16,
    driver: JoinHandle<()>,
    closing: bool,
}

impl Connection {
    /// Connect to this loopback port.
    pub(super) async fn open(port: u16) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))
            .await
            .with_context(|| format!("expected something to listen on 127.0.0.1:{port}"))?;
        let (sender, connection) = http1::Builder::new()
            .title_case_headers(true)
            .handshake(TokioIo::new(stream))
            .await
            .with_context(|| format!("could not speak HTTP/1.1 on 127.0.0.1:{port}"))?;
        // Whatever ends the connection shows itself as the error of the request that needed it.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { sender, port, driver, closing: false })
    }

    /// Send a request and read its whole answer.
    pub(super) async fn send(&mut self, request: &Request) -> anyhow::Result<Answer> {
        let port = self.port;
        if self.closing {
            *self = Self::open(port).await?;
        }
        let exchange = async {
            self.sender.ready().await?;
            let response = self.sender.send_request(assemble(request, port)?).await?;
            let (head, body) = response.into_parts();
            let body = body.collect().await?.to_bytes();
            let body = String::from_utf8_lossy(&body).into_owned();
            anyhow::Ok(Answer { status: head.status, headers: head.headers, body })
        };
        let answer = tokio::time::timeout(PATIENCE, exchange)
            .await
            .with_context(|| format!("expected an answer within {} s", PATIENCE.as_secs()))
            .and_then(|answer| answer.context("expected the connection to carry one more request and its answer"))
            .with_context(|| format!("{} {} on 127.0.0.1:{port} failed", request.method, request.path))?;
        self.closing = answer.header("connection").eq_ignore_ascii_case("close");
        Ok(answer)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

fn assemble(request: &Request, port: u16) -> anyhow::Result<http::Request<Full<Bytes>>> {
    let mut builder = http::Request::builder()
        .method(&request.method)
        .uri(&request.path)
        .header(http::header::HOST, format!("127.0.0.1:{port}"));
    for (name, value) in &request.headers {
        builder = builder.header(*name, value);
    }
    Ok(builder.body(Full::new(Bytes::from(request.body.clone())))?)
}
