//! The upstream MCP server: well-behaved by default ([`super::mcp`]), anything at all when a test scripts it.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;

use super::http1::{chunk, read_request};
use super::{mcp, tls};

/// The path under which Portcullis itself calls this server (`upstream.url` of the test configuration). Not traffic of a
/// caller, so not counted as such.
pub(crate) const OWN_PATH: &str = "/own";

/// A request as the upstream saw it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case, in the order in which they came.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    /// The body ended before its framing said so.
    pub(crate) cut: bool,
}

impl Seen {
    /// Every value of a header.
    pub(crate) fn header(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(known, _)| known == name).map(|(_, value)| value.as_str()).collect()
    }

    /// The body as JSON; `null` when it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// One step of an answer.
#[derive(Clone, Debug)]
enum Step {
    Send(Vec<u8>),
    Wait(Duration),
    /// Stop here and close the connection.
    Close,
    /// Say nothing until the peer has closed the connection.
    AwaitEnd,
}

/// What the upstream sends, byte for byte.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    steps: Vec<Step>,
}

impl Answer {
    /// Any bytes at all, the status line included.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { steps: vec![Step::Send(bytes.into())] }
    }

    /// A plain HTTP answer with its true length; `headers` are lines without their ends.
    pub(crate) fn http(status: u16, headers: &[&str], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut out = head(status, headers);
        if status != 204 {
            out.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(body);
        Self::raw(out)
    }

    /// `200 application/json`.
    pub(crate) fn json(body: &Value) -> Self {
        Self::text("application/json", &body.to_string())
    }

    /// `200` of this content type.
    pub(crate) fn text(content_type: &str, body: &str) -> Self {
        Self::http(200, &[&format!("content-type: {content_type}")], body)
    }

    /// The head of a chunked answer; [`Self::piece`]s follow.
    pub(crate) fn chunked(status: u16, headers: &[&str]) -> Self {
        let mut out = head(status, headers);
        out.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
        Self::raw(out)
    }

    /// The head of a `text/event-stream`; [`Self::piece`]s follow.
    pub(crate) fn sse() -> Self {
        Self::chunked(200, &["content-type: text/event-stream"])
    }

    /// One chunk of a chunked answer.
    pub(crate) fn piece(self, bytes: impl AsRef<[u8]>) -> Self {
        self.then(chunk(bytes.as_ref()))
    }

    /// The end of a chunked answer, with trailers.
    pub(crate) fn end(self, trailers: &[&str]) -> Self {
        let lines: String = trailers.iter().map(|line| format!("{line}\r\n")).collect();
        self.then(format!("0\r\n{lines}\r\n").into_bytes())
    }

    /// More raw bytes.
    pub(crate) fn then(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.steps.push(Step::Send(bytes.into()));
        self
    }

    pub(crate) fn wait(mut self, pause: Duration) -> Self {
        self.steps.push(Step::Wait(pause));
        self
    }

    /// Closes the connection here, whatever is still owed.
    pub(crate) fn close(mut self) -> Self {
        self.steps.push(Step::Close);
        self
    }

    /// Owes the rest until the peer closes the connection, which [`Upstream::left`] counts.
    pub(crate) fn until_gone(mut self) -> Self {
        self.steps.push(Step::AwaitEnd);
        self
    }

    /// Plays the steps; whether the connection may be kept.
    fn play(&self, stream: &mut (impl Read + Write), shared: &Shared) -> bool {
        for step in &self.steps {
            match step {
                Step::Send(bytes) => {
                    if stream.write_all(bytes).and_then(|()| stream.flush()).is_err() {
                        return false;
                    }
                }
                Step::Wait(pause) => std::thread::sleep(*pause),
                Step::Close => return false,
                Step::AwaitEnd => {
                    while stream.read(&mut [0; 1024]).is_ok_and(|count| count > 0) {}
                    shared.left.fetch_add(1, Ordering::SeqCst);
                    return false;
                }
            }
        }
        true
    }
}

fn head(status: u16, headers: &[&str]) -> Vec<u8> {
    let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
    format!("HTTP/1.1 {status} Status\r\n{lines}").into_bytes()
}

/// Serves one connection to its end.
type Handler = Arc<dyn Fn(TcpStream, &Shared) + Send + Sync>;
type Script = Arc<dyn Fn(&Seen) -> Answer + Send + Sync>;

struct Shared {
    seen: Mutex<Vec<Seen>>,
    script: Mutex<Script>,
    /// What Portcullis's own listings are answered with.
    own: Mutex<Script>,
    stopped: AtomicBool,
    left: AtomicUsize,
}

/// A running upstream; its listener ends when dropped.
pub(crate) struct Upstream {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

impl Upstream {
    /// Plain HTTP/1.1 on a loopback port.
    pub(crate) fn start() -> Self {
        Self::listen(Arc::new(serve))
    }

    /// HTTPS with `certificate`.
    pub(crate) fn start_tls(certificate: &tls::Certificate) -> Self {
        let config = certificate.server();
        Self::listen(Arc::new(move |stream, shared| {
            let session = rustls::ServerConnection::new(config.clone()).expect("a TLS session");
            serve(rustls::StreamOwned::new(session, stream), shared);
        }))
    }

    fn listen(handle: Handler) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a loopback port");
        let port = listener.local_addr().expect("its address").port();
        let script: Script = Arc::new(mcp::answer);
        let shared = Arc::new(Shared {
            seen: Mutex::default(),
            own: Mutex::new(Arc::clone(&script)),
            script: Mutex::new(script),
            stopped: AtomicBool::new(false),
            left: AtomicUsize::new(0),
        });
        let of_thread = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if of_thread.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let _ = stream.set_nodelay(true);
                let (shared, handle) = (of_thread.clone(), handle.clone());
                std::thread::spawn(move || handle(stream, &shared));
            }
        });
        Self { port, shared }
    }

    /// From now on answers with what `script` makes of each request.
    pub(crate) fn script(&self, script: impl Fn(&Seen) -> Answer + Send + Sync + 'static) {
        *self.shared.script.lock().expect("no script panicked") = Arc::new(script);
    }

    /// From now on answers with this, whatever is asked.
    pub(crate) fn answer(&self, answer: Answer) {
        self.script(move |_| answer.clone());
    }

    /// What Portcullis's own listings are answered with from now on. What a test scripts for callers is not for them: no
    /// call would pass rung 15.
    pub(crate) fn script_own(&self, script: impl Fn(&Seen) -> Answer + Send + Sync + 'static) {
        *self.shared.own.lock().expect("no script panicked") = Arc::new(script);
    }

    /// From now on the well-behaved MCP server again.
    pub(crate) fn behave(&self) {
        self.script(mcp::answer);
    }

    /// How often Portcullis itself asked for this method.
    pub(crate) fn own_count(&self, method: &str) -> usize {
        let seen = self.shared.seen.lock().expect("no reader panicked");
        seen.iter().filter(|request| request.path == OWN_PATH && request.json()["method"] == method).count()
    }

    /// The callers' requests so far, in order of arrival.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let seen = self.shared.seen.lock().expect("no reader panicked");
        seen.iter().filter(|request| request.path != OWN_PATH).cloned().collect()
    }

    /// How many requests of callers it saw.
    pub(crate) fn count(&self) -> usize {
        self.seen().len()
    }

    /// How many connections the peer closed while an answer was owed ([`Answer::until_gone`]).
    pub(crate) fn left(&self) -> usize {
        self.shared.left.load(Ordering::SeqCst)
    }

    /// The last request of a caller.
    pub(crate) fn last(&self) -> Seen {
        self.seen().pop().expect("the upstream saw a request")
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the listener so that it sees the flag.
        let _ = TcpStream::connect(("127.0.0.1", self.port)).map(|stream| stream.shutdown(Shutdown::Both));
    }
}

fn serve(mut stream: impl Read + Write, shared: &Shared) {
    let mut rest = Vec::new();
    while let Some(seen) = read_request(&mut stream, &mut rest) {
        shared.seen.lock().expect("no reader panicked").push(seen.clone());
        let script = if seen.path == OWN_PATH { &shared.own } else { &shared.script };
        let script = script.lock().expect("no script panicked").clone();
        if !script(&seen).play(&mut stream, shared) {
            return;
        }
    }
}
