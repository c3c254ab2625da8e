//! A caller: requests as the tests spell them, over HTTP/1.1 or HTTP/2, and the replies.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

use super::{h2, http1};

/// How long a reply may take before the test calls it a hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// The body of a request and how it is framed.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// No body and no header about one.
    None,
    /// All bytes at once; over HTTP/1.1 with their `Content-Length`.
    Whole(Vec<u8>),
    /// Pieces with no length declared, then trailers; chunked over HTTP/1.1.
    Pieces(Vec<Vec<u8>>, Vec<(String, String)>),
    /// These bytes of a longer body, whose rest never comes.
    Stalled(Vec<u8>),
}

/// A request, headers in the order in which they go out, repeats and all.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) authority: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Body,
}

/// What came back.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Names in lower case, in the order in which they came.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    /// The reply ended before its framing said so.
    pub(crate) cut: bool,
}

impl Request {
    pub(crate) fn new(method: &str, path: &str) -> Self {
        Self {
            method: method.into(),
            path: path.into(),
            authority: "mcp.test".into(),
            headers: Vec::new(),
            body: Body::None,
        }
    }

    pub(crate) fn get(path: &str) -> Self {
        Self::new("GET", path)
    }

    /// One header more, beside any of the same name.
    pub(crate) fn add(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_ascii_lowercase(), value.into()));
        self
    }

    /// This header in the place of any of the same name.
    pub(crate) fn set(self, name: &str, value: &str) -> Self {
        self.without(name).add(name, value)
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub(crate) fn path(mut self, path: &str) -> Self {
        self.path = path.into();
        self
    }

    pub(crate) fn authority(mut self, authority: &str) -> Self {
        self.authority = authority.into();
        self
    }

    pub(crate) fn bearer(self, token: &str) -> Self {
        self.set("authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = Body::Whole(body.into());
        self
    }

    /// The body in pieces, no length declared, with trailers.
    pub(crate) fn pieces(mut self, pieces: &[&[u8]], trailers: &[(&str, &str)]) -> Self {
        let trailers = trailers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self.body = Body::Pieces(pieces.iter().map(|piece| piece.to_vec()).collect(), trailers);
        self
    }

    /// A body of which these bytes come, and then nothing more.
    pub(crate) fn stalled(mut self, bytes: &[u8]) -> Self {
        self.body = Body::Stalled(bytes.into());
        self
    }

    pub(crate) fn no_body(mut self) -> Self {
        self.body = Body::None;
        self
    }

    /// The request as HTTP/1.1 bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = format!("{} {} HTTP/1.1\r\nhost: {}\r\n", self.method, self.path, self.authority).into_bytes();
        for (name, value) in &self.headers {
            out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        match &self.body {
            Body::None => out.extend_from_slice(b"\r\n"),
            Body::Whole(body) => {
                if !self.headers.iter().any(|(name, _)| name == "content-length") {
                    out.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
                }
                out.extend_from_slice(b"\r\n");
                out.extend_from_slice(body);
            }
            Body::Stalled(bytes) => {
                out.extend_from_slice(format!("content-length: {}\r\n\r\n", bytes.len() + 1).as_bytes());
                out.extend_from_slice(bytes);
            }
            Body::Pieces(pieces, trailers) => {
                out.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
                for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
                    out.extend_from_slice(&http1::chunk(piece));
                }
                out.extend_from_slice(b"0\r\n");
                for (name, value) in trailers {
                    out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
                }
                out.extend_from_slice(b"\r\n");
            }
        }
        out
    }

    /// Sends it over a fresh HTTP/1.1 connection to a loopback port.
    pub(crate) fn send(&self, port: u16) -> Reply {
        self.try_send(port).unwrap_or_else(|| {
            panic!("expected a reply to {} {} from port {port} within {PATIENCE:?}, none came", self.method, self.path)
        })
    }

    /// As [`Self::send`]; nothing when there was no connection or no reply.
    pub(crate) fn try_send(&self, port: u16) -> Option<Reply> {
        Connection::open(port)?.send(self)
    }

    /// Sends it over a fresh HTTP/2 connection with prior knowledge.
    pub(crate) fn send_h2(&self, port: u16) -> Reply {
        h2::send(self, port, PATIENCE)
    }
}

/// An HTTP/1.1 connection, kept between requests.
pub(crate) struct Connection {
    pub(crate) stream: TcpStream,
    rest: Vec<u8>,
}

impl Connection {
    pub(crate) fn open(port: u16) -> Option<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_nodelay(true).ok()?;
        Some(Self { stream, rest: Vec::new() })
    }

    /// A connection of a peer that will not listen: hardly anything fits between it and Envoy.
    pub(crate) fn open_narrow(port: u16) -> Option<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        let stream = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4()?;
            socket.set_recv_buffer_size(4096)?;
            socket.connect(([127, 0, 0, 1], port).into()).await?.into_std()
        });
        let stream = stream.ok()?;
        stream.set_nonblocking(false).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        Some(Self { stream, rest: Vec::new() })
    }

    /// Sends a request and reads its reply. A peer may answer and close before it took all of the request: no fault.
    pub(crate) fn send(&mut self, request: &Request) -> Option<Reply> {
        self.send_raw(&request.bytes(), request.method == "HEAD")
    }

    /// Sends these bytes and reads one reply; `head`: it has no body whatever its headers say.
    pub(crate) fn send_raw(&mut self, bytes: &[u8], head: bool) -> Option<Reply> {
        let _ = self.stream.write_all(bytes);
        http1::read_reply(&mut self.stream, &mut self.rest, head)
    }
}

impl Reply {
    /// The one value of a header; a header that came twice fails the test.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let first = values.next();
        assert!(values.next().is_none(), "expected {name} at most once, got it again: {self}");
        first
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|fault| panic!("expected a JSON body, got {fault}: {self}"))
    }

    /// The JSON of each event of a `text/event-stream` body; comments and empty events left out.
    pub(crate) fn events(&self) -> Vec<Value> {
        let text = self.text().replace("\r\n", "\n").replace('\r', "\n");
        let text = text.trim_start_matches('\u{feff}');
        let data = |event: &str| {
            event
                .lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .map(|line| line.strip_prefix(' ').unwrap_or(line))
                .collect::<Vec<_>>()
                .join("\n")
        };
        let parse = |data: String| {
            serde_json::from_str(&data)
                .unwrap_or_else(|fault| panic!("expected JSON in each event, got {fault}: {self}"))
        };
        text.split("\n\n").map(data).filter(|data| !data.is_empty()).map(parse).collect()
    }
}

impl std::fmt::Display for Reply {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(out, "{}{}", self.status, if self.cut { " (cut)" } else { "" })?;
        for (name, value) in &self.headers {
            writeln!(out, "{name}: {value}")?;
        }
        write!(out, "\n{}", self.text().chars().take(4000).collect::<String>())
    }
}
