//! A scripted MCP server on loopback: what the tests of this room and of the record talk to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use url::Url;

use super::{Client, Settings};
use crate::upstream::Credential;

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The lines of the head, names in lower case.
    pub(crate) head: Vec<String>,
    pub(crate) body: Value,
}

/// What it answers, byte for byte, after a pause; then it closes the connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Raw {
    pub(crate) pause: Duration,
    pub(crate) bytes: Vec<u8>,
}

impl Raw {
    pub(crate) fn http(status: u16, content_type: &str, body: &str) -> Self {
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        Self { pause: Duration::ZERO, bytes: format!("{head}{body}").into_bytes() }
    }

    pub(crate) fn json(body: &Value) -> Self {
        Self::http(200, "application/json", &body.to_string())
    }

    /// The answer to `asked` with this result.
    #[expect(clippy::needless_pass_by_value, reason = "tests write the value in place")]
    pub(crate) fn result(asked: &Asked, result: Value) -> Self {
        Self::json(&json!({"jsonrpc": "2.0", "id": asked.body["id"], "result": result}))
    }

    /// A stream of events whose end is the end of the connection.
    pub(crate) fn events(text: &str) -> Self {
        let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n";
        Self { pause: Duration::ZERO, bytes: format!("{head}{text}").into_bytes() }
    }
}

type Script = Box<dyn Fn(&Asked) -> Raw + Send + Sync>;

/// The server; it ends when dropped.
pub(crate) struct Scripted {
    pub(crate) url: Url,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Scripted {
    pub(crate) async fn start(script: impl Fn(&Asked) -> Raw + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
        let asked = Arc::default();
        let (script, seen): (Arc<Script>, _) = (Arc::new(Box::new(script)), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serve(socket, Arc::clone(&script), Arc::clone(&seen)));
            }
        });
        Self { url, asked, task }
    }

    /// A client of it with plenty of time for each page and a MiB.
    pub(crate) fn client(&self) -> Client {
        self.client_with(|_| {})
    }

    pub(crate) fn client_with(&self, change: impl FnOnce(&mut Settings)) -> Client {
        let mut settings = Settings {
            url: self.url.clone(),
            credential: Credential::None,
            timeout: Duration::from_secs(20),
            page: 1 << 20,
            depth: 64,
            concurrency: 1,
            tls: None,
        };
        change(&mut settings);
        Client::new(settings)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut socket: TcpStream, script: Arc<Script>, seen: Arc<Mutex<Vec<Asked>>>) {
    let mut bytes = Vec::new();
    let (head, length) = loop {
        let mut piece = [0; 4096];
        let Ok(read @ 1..) = socket.read(&mut piece).await else { return };
        bytes.extend_from_slice(&piece[..read]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head: Vec<String> = String::from_utf8_lossy(&bytes[..end]).lines().map(str::to_owned).collect();
        let length = head.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
        let length: usize = length.unwrap();
        if bytes.len() >= end + 4 + length {
            bytes.drain(..end + 4);
            break (head, length);
        }
    };
    let asked = Asked { head, body: serde_json::from_slice(&bytes[..length]).unwrap() };
    seen.lock().unwrap().push(asked.clone());
    let answer = script(&asked);
    tokio::time::sleep(answer.pause).await;
    let _ = socket.write_all(&answer.bytes).await;
    let _ = socket.shutdown().await;
}

/// The `server/discover` result of a server with these kinds.
pub(crate) fn discovered(kinds: &[&str]) -> Value {
    let capabilities: serde_json::Map<String, Value> = kinds.iter().map(|kind| ((*kind).into(), json!({}))).collect();
    json!({
        "resultType": "complete", "supportedVersions": ["2025-11-25", "2026-07-28"], "capabilities": capabilities,
        "instructions": "Search first.", "ttlMs": 0, "cacheScope": "public",
    })
}

/// A tool of this name.
pub(crate) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}
