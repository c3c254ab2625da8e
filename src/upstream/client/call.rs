//! One request to a server and its answer: JSON or a stream of events, bounded, read strictly.

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;

use super::Inner;
use super::fault::{Problem, shown};
use crate::message::headers::utf8_is;
use crate::message::json::{Document, Kind, Limits, Value};
use crate::message::sse::{Frame, Framer};
use crate::message::write;
use crate::protocol::rpc::IdKey;
use crate::protocol::{Method, envelope, keys, version};
use crate::upstream::http::with_causes;

/// Values in one page; a page of the largest size of small values stays below it.
const NODES: usize = 1 << 22;

/// Asks for one page; what comes back has a `result` that is an object and complete.
pub(super) async fn call(client: &Inner, method: Method, cursor: Option<&str>) -> Result<Document, Problem> {
    let exchange = async {
        let id = client.next_id();
        let request = request(client, method, cursor, id)?;
        let answer = client.http.request(request).await.map_err(|error| Problem::Transport(with_causes(&error)))?;
        read(client, answer, id).await
    };
    tokio::time::timeout(client.timeout, exchange).await.map_err(|_| Problem::Timeout(client.timeout))?
}

fn request(client: &Inner, method: Method, cursor: Option<&str>, id: u64) -> Result<Request<Full<Bytes>>, Problem> {
    let mut request = Request::post(client.url.as_str())
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, text/event-stream")
        .header(header::ACCEPT_ENCODING, "identity")
        .header(header::USER_AGENT, concat!("portcullis/", env!("CARGO_PKG_VERSION")))
        .header("mcp-protocol-version", version::CURRENT)
        .header("mcp-method", method.as_str());
    if let Some(credential) = client.credential.header_value() {
        request = request.header(header::AUTHORIZATION, credential);
    }
    let body = Full::new(Bytes::from(body(method, cursor, id)));
    request.body(body).map_err(|error| Problem::Transport(error.to_string()))
}

/// A request of this revision with its envelope (MCP 2026-07-28, Base protocol, "Request metadata"); no capabilities.
fn body(method: Method, cursor: Option<&str>, id: u64) -> Vec<u8> {
    let mut out = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{}","params":{{"#, method.as_str()).into_bytes();
    if let Some(cursor) = cursor {
        out.extend_from_slice(br#""cursor":"#);
        write::string(&mut out, cursor);
        out.push(b',');
    }
    let meta = format!(
        r#""_meta":{{"{}":"{}","{}":{{}},"io.modelcontextprotocol/clientInfo":{{"name":"portcullis","version":"{}"}}}}}}}}"#,
        envelope::PROTOCOL_VERSION,
        version::CURRENT,
        envelope::CLIENT_CAPABILITIES,
        env!("CARGO_PKG_VERSION")
    );
    out.extend_from_slice(meta.as_bytes());
    out
}

async fn read(client: &Inner, answer: Response<Incoming>, id: u64) -> Result<Document, Problem> {
    let (head, body) = answer.into_parts();
    let status = head.status.as_u16();
    match status {
        300..=399 => return Err(Problem::Redirect(status)),
        401 | 403 => return Err(Problem::Unauthorized(status)),
        _ => {}
    }
    let encoded = head.headers.get_all(header::CONTENT_ENCODING).into_iter().find(|value| *value != "identity");
    if let Some(encoding) = encoded {
        return Err(Problem::Encoded(text(Some(encoding))));
    }
    let media_type = head.headers.get(header::CONTENT_TYPE);
    let is = |essence| media_type.and_then(|value| value.to_str().ok()).is_some_and(|value| utf8_is(value, essence));
    let judge = Judge { client, id, status };
    if is("application/json") {
        let bytes = whole(body, client.page).await?;
        judge.answer(bytes, false)?.ok_or_else(|| Problem::message("an answer", "a notification"))
    } else if !head.status.is_success() {
        Err(Problem::Status(status))
    } else if is("text/event-stream") {
        stream(body, client.page, &judge).await
    } else {
        Err(Problem::ContentType(text(media_type)))
    }
}

fn text(value: Option<&HeaderValue>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| shown(&String::from_utf8_lossy(value.as_bytes())))
}

/// The bytes of a body, piece by piece, none of them beyond `max`.
struct Pieces {
    body: Incoming,
    left: usize,
    max: usize,
}

impl Pieces {
    async fn next(&mut self) -> Result<Option<Bytes>, Problem> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|error| Problem::Cut(format!(": {}", with_causes(&error))))?;
            let Ok(bytes) = frame.into_data() else { continue };
            self.left = self.left.checked_sub(bytes.len()).ok_or(Problem::TooLarge(self.max))?;
            return Ok(Some(bytes));
        }
        Ok(None)
    }
}

async fn whole(body: Incoming, max: usize) -> Result<Vec<u8>, Problem> {
    let mut pieces = Pieces { body, left: max, max };
    let mut bytes = Vec::new();
    while let Some(piece) = pieces.next().await? {
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

/// Reads events up to the one that is the answer; the bound holds for all of them together.
async fn stream(body: Incoming, max: usize, judge: &Judge<'_>) -> Result<Document, Problem> {
    let mut pieces = Pieces { body, left: max, max };
    let mut framer = Framer::new(max);
    while let Some(piece) = pieces.next().await? {
        framer.push(&piece);
        for frame in framer.by_ref() {
            let Frame::Event(event) = frame.map_err(|_| Problem::TooLarge(max))? else { continue };
            if let Some(document) = judge.answer(event.data, true)? {
                return Ok(document);
            }
        }
    }
    Err(Problem::Cut(": the stream holds no answer".to_owned()))
}

/// What the answer must fit.
struct Judge<'a> {
    client: &'a Inner,
    id: u64,
    status: u16,
}

impl Judge<'_> {
    /// One message: the answer, or `None` for a notification that may stand before it in a stream.
    fn answer(&self, bytes: Vec<u8>, streamed: bool) -> Result<Option<Document>, Problem> {
        let limits = Limits { depth: self.client.depth, nodes: NODES };
        let document = match Document::read(bytes, limits) {
            Ok(document) => document,
            // A proxy's error page with the wrong media type says less than its status.
            Err(_) if !(200..300).contains(&self.status) => return Err(Problem::Status(self.status)),
            Err(fault) => return Err(Problem::Json(fault)),
        };
        let root = document.root();
        if root.get("jsonrpc").and_then(|version| version.as_str()) != Some("2.0") {
            return Err(if (200..300).contains(&self.status) {
                Problem::message("one JSON-RPC 2.0 message", shown(root.raw()))
            } else {
                Problem::Status(self.status)
            });
        }
        if let Some(key) = keys::answer_variant(root) {
            return Err(Problem::CaseVariant(shown(key)));
        }
        if let Some(method) = root.get("method") {
            if streamed && root.get("id").is_none() {
                return Ok(None);
            }
            return Err(Problem::message(
                "an answer",
                format!("a message of the server's own, {}", shown(method.raw())),
            ));
        }
        self.result(root)?;
        Ok(Some(document))
    }

    fn result(&self, root: Value<'_>) -> Result<(), Problem> {
        let id = root.get("id").filter(|id| !id.is_null());
        let ours = |id: Value<'_>| IdKey::Integer(self.id.to_string()).matches(id);
        match (root.get("result"), root.get("error")) {
            // An error about a request that could not be read has no id.
            (None, Some(error)) if id.is_none_or(ours) => {
                let member = |name: &str| error.get(name);
                let code = member("code").and_then(|code| code.as_number()).map_or("without a code", |code| code);
                let message = member("message").and_then(|message| message.as_str()).map_or(String::new(), shown);
                Err(Problem::Refused { code: code.chars().take(20).collect(), message })
            }
            (Some(_), None) | (None, Some(_)) if !id.is_some_and(ours) => {
                let got = id.map_or_else(|| "none".to_owned(), |id| shown(id.raw()));
                Err(Problem::OtherId { expected: self.id, got })
            }
            (Some(result), None) if result.kind() == Kind::Object => {
                match result.get("resultType").map(|kind| kind.as_str()) {
                    None | Some(Some("complete")) => Ok(()),
                    Some(other) => Err(Problem::message(
                        "a complete result",
                        format!("resultType {}", shown(other.unwrap_or("?"))),
                    )),
                }
            }
            _ => Err(Problem::message("an object `result` or an `error`", shown(root.raw()))),
        }
    }
}
