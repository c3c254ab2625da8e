//! What the upstream server saw, read from its log.
//!
//! The server writes one JSON line per request before it answers. To know that the log is complete, the watch sends
//! the server a request of its own, a fence, past Envoy: once that is answered, everything that had reached the server
//! earlier stands before it. So "the upstream saw nothing" is a fact, not a wait that was long enough.
//!
//! Portcullis lists the server itself to see whether a definition changed, whenever it finds that it must. Those listings
//! are nobody's calls, so the watch leaves them out; a call that claims to come from Portcullis is told all the same.

use std::path::PathBuf;

use anyhow::Context as _;
use serde::Deserialize;

use super::client::{Answer, Connection, Request};

/// What Portcullis, and `portcullis record`, call themselves when they list a server.
const PORTCULLIS: &str = "portcullis";

/// One request that the upstream server saw.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct Seen {
    /// HTTP method and path.
    http: String,
    /// JSON-RPC method; none when the body was no JSON-RPC message.
    method: Option<String>,
    /// `params.name` or `params.uri`.
    name: Option<String>,
    /// What the request calls its client.
    client: Option<String>,
    /// The first characters of the `Authorization` header.
    pub(super) authorization: Option<String>,
}

impl Seen {
    /// The request in few words: `tools/call search_cases`.
    pub(super) fn brief(&self) -> String {
        let method = self.method.as_deref().unwrap_or(&self.http);
        self.name.as_ref().map_or_else(|| method.to_owned(), |name| format!("{method} {name}"))
    }

    /// Whether Portcullis looks at what the server offers.
    fn is_own_listing(&self) -> bool {
        let method = self.method.as_deref().unwrap_or_default();
        let looks = method == "server/discover" || method.ends_with("/list");
        looks && self.client.as_deref() == Some(PORTCULLIS)
    }
}

/// Reads the upstream's log from where it was read last.
pub(super) struct Watch {
    port: u16,
    log: PathBuf,
    read: usize,
    fences: usize,
}

impl Watch {
    /// Watch the server on this loopback port, which writes this log.
    pub(super) fn new(port: u16, log: PathBuf) -> Self {
        Self { port, log, read: 0, fences: 0 }
    }

    /// Tell the server how to misbehave from now on, past Envoy; `examples/demo/upstream.py` says which ways there are.
    pub(super) async fn misbehave(&self, request: &Request) -> anyhow::Result<Answer> {
        let answer = Connection::open(self.port).await?.send(request).await?;
        anyhow::ensure!(
            answer.status.is_success(),
            "expected the upstream to know {}, it answered {}: {}",
            request.path,
            answer.status,
            answer.body
        );
        Ok(answer)
    }

    /// Every request but Portcullis's own listings that reached the server since the last time, in order.
    pub(super) async fn seen(&mut self) -> anyhow::Result<Vec<Seen>> {
        self.fences += 1;
        let fence = Request::get(&format!("/fence/{}", self.fences));
        Connection::open(self.port)
            .await?
            .send(&fence)
            .await
            .context("the upstream server does not answer any more")?;
        let log = std::fs::read_to_string(&self.log)
            .with_context(|| format!("could not read the upstream's log {}", self.log.display()))?;
        let fence = format!("GET {}", fence.path);
        let mut seen = Vec::new();
        let fresh = log.get(self.read..).unwrap_or_default();
        for line in fresh.split_inclusive('\n') {
            self.read += line.len();
            // What is no such line is a complaint of the server's, for the log's human reader.
            let Ok(request) = serde_json::from_str::<Seen>(line) else {
                continue;
            };
            if request.http == fence {
                return Ok(seen);
            }
            if !request.is_own_listing() {
                seen.push(request);
            }
        }
        anyhow::bail!("expected a line for `{fence}` in the upstream's log {}, found none", self.log.display())
    }
}
