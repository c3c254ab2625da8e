//! The load: each of 32 connections sends its next call when the last has ended, whatever that end was. Every call has a
//! number of its own, which is its JSON-RPC id and its trace: so it is known again at the upstream and in the audit.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::client::Connection;
use crate::support::{Reply, Request, Seen, fixture, wait_for};

/// Connections at once.
const CONNECTIONS: usize = 32;
/// When a call that has no end counts as hung: more than each timeout of the shipped files that applies to it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);
/// In what no caller may get: an answer that was to be withheld.
pub(crate) const POISON: &str = "withheld-from-everyone";
/// What Envoy says in its own name, by the shipped `local_reply_config`: ahead of the verdict, and behind it.
const ENVOYS: [&str; 2] =
    ["the request could not be authorized", "no answer came; whether the call was carried out is not known"];
/// The reason of a refusal that is a challenge: its caller is not told more.
pub(crate) const CHALLENGE: &str = "401";
/// After a call that failed, so that a fault which fails calls at once does not make up the whole count.
const PAUSE: Duration = Duration::from_millis(5);

/// What a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Allowed,
    /// May never reach the upstream, whatever happens.
    Refused,
    Listing,
}

impl Kind {
    pub(crate) fn of(number: u64) -> Self {
        match number % 4 {
            0 | 1 => Self::Allowed,
            2 => Self::Refused,
            _ => Self::Listing,
        }
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With its result.
    Result,
    /// Refused by Portcullis, for this reason.
    Refused(String),
    /// Envoy refused in its own name, with this status.
    Envoy(u16),
    /// The answer stops before its end.
    Cut,
    /// The connection ended before an answer.
    Closed,
    /// There was no end within [`PATIENCE`].
    Hung,
    /// As no call may end.
    Wrong(String),
}

/// One call that is over.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) number: u64,
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    pub(crate) end: End,
}

impl Call {
    /// Whether it ended as it does where nothing is wrong.
    pub(crate) fn is_right(&self) -> bool {
        match (Kind::of(self.number), &self.end) {
            (Kind::Allowed | Kind::Listing, end) => *end == End::Result,
            (Kind::Refused, End::Refused(reason)) => {
                matches!(reason.as_str(), "policy.unpriced" | "policy.not_permitted" | CHALLENGE)
            }
            (Kind::Refused, _) => false,
        }
    }
}

struct Shared {
    port: u16,
    token: String,
    next: AtomicU64,
    stop: AtomicBool,
    ended: AtomicU64,
    calls: Mutex<Vec<Call>>,
}

/// Callers that go on until they are told to stop.
pub(crate) struct Load {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Against the Envoy on this port, as the reader whose token this is.
    pub(crate) fn start(port: u16, token: String) -> Self {
        let shared = Arc::new(Shared {
            port,
            token,
            next: AtomicU64::new(4),
            stop: AtomicBool::new(false),
            ended: AtomicU64::new(0),
            calls: Mutex::default(),
        });
        let caller = |_| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.go_on())
        };
        Self { threads: (0..CONNECTIONS).map(caller).collect(), shared }
    }

    /// How many calls are over.
    pub(crate) fn ended(&self) -> u64 {
        self.shared.ended.load(Ordering::SeqCst)
    }

    /// Lets so many calls end; fewer where they take longer than `most`.
    pub(crate) fn more(&self, calls: u64, most: Duration) {
        let goal = self.ended() + calls;
        wait_for(most, || (self.ended() >= goal).then_some(()));
    }

    /// One call beside the others, on a connection of its own.
    pub(crate) fn probe(&self, kind: Kind) -> Call {
        let number = loop {
            let number = self.shared.next.fetch_add(1, Ordering::SeqCst);
            if Kind::of(number) == kind {
                break number;
            }
        };
        let call = self.shared.call(number, &mut None);
        self.shared.keep(call.clone());
        call
    }

    /// Ends the load; everything that was called.
    pub(crate) fn stop(self) -> Vec<Call> {
        self.shared.stop.store(true, Ordering::SeqCst);
        for thread in self.threads {
            thread.join().expect("no caller panics");
        }
        std::mem::take(&mut *self.shared.calls.lock().expect("no caller panics"))
    }
}

impl Shared {
    fn go_on(&self) {
        let mut connection = None;
        while !self.stop.load(Ordering::SeqCst) {
            let call = self.call(self.next.fetch_add(1, Ordering::SeqCst), &mut connection);
            let failed = !matches!(call.end, End::Result | End::Refused(_));
            self.keep(call);
            if failed {
                std::thread::sleep(PAUSE);
            }
        }
    }

    fn keep(&self, call: Call) {
        self.calls.lock().expect("no caller panics").push(call);
        self.ended.fetch_add(1, Ordering::SeqCst);
    }

    /// Makes one call, on `connection` while that lasts.
    fn call(&self, number: u64, connection: &mut Option<Connection>) -> Call {
        let request = request(number, &self.token);
        let began = Instant::now();
        let mut open = connection.take().or_else(|| Connection::open(self.port));
        let reply = open.as_mut().and_then(|open| {
            open.stream.set_read_timeout(Some(PATIENCE)).ok()?;
            open.send(&request)
        });
        let ended = Instant::now();
        let end = match &reply {
            _ if ended - began >= PATIENCE => End::Hung,
            None => End::Closed,
            Some(reply) => end(number, reply),
        };
        let kept = reply.is_some_and(|reply| !reply.cut && reply.header("connection") != Some("close"));
        *connection = open.filter(|_| kept);
        Call { number, began, ended, end }
    }
}

/// The trace of a call.
fn trace(number: u64) -> String {
    format!("{:016x}{number:016x}", 0xfa17_u64)
}

/// The number of the call with this trace.
pub(crate) fn number_of(trace: &str) -> Option<u64> {
    let number = trace.strip_prefix(&format!("{:016x}", 0xfa17_u64))?;
    u64::from_str_radix(number, 16).ok()
}

/// The number of the call that the upstream saw.
pub(crate) fn number_seen(seen: &Seen) -> Option<u64> {
    number_of(seen.header("traceparent").first()?.split('-').nth(1)?)
}

/// The request of this number.
pub(crate) fn request(number: u64, token: &str) -> Request {
    let mut message = match Kind::of(number) {
        // Some are large, so that there is a middle to be interrupted in.
        Kind::Allowed if number % 16 == 4 => fixture::call("search_cases", json!({"query": "printer ".repeat(6_000)})),
        Kind::Allowed => fixture::search(),
        Kind::Refused if number % 8 == 2 => fixture::call("export_cases", json!({})),
        Kind::Refused => fixture::call("update_case", json!({"id": "17"})),
        Kind::Listing => fixture::rpc("tools/list", json!({})),
    };
    message["id"] = json!(number);
    let request = fixture::post(&message).add("traceparent", &format!("00-{}-00000000000000ff-00", trace(number)));
    // Every third of those that are refused shows no token.
    if number % 12 == 10 { request } else { request.bearer(token) }
}

fn said(message: &Value) -> &str {
    message["error"]["message"].as_str().unwrap_or_default()
}

/// What became of the call, by what its caller got.
fn end(number: u64, reply: &Reply) -> End {
    if reply.cut {
        return End::Cut;
    }
    let wrong = || End::Wrong(format!("call {number}, {:?}: {reply}", Kind::of(number)));
    if reply.status == 401 {
        return End::Refused(CHALLENGE.into());
    }
    let events = reply.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let message = if events { reply.events().pop() } else { serde_json::from_slice(&reply.body).ok() };
    let Some(message) = message else { return wrong() };
    if message["error"]["code"] == -32603 && message.get("id").is_none() && ENVOYS.contains(&said(&message)) {
        return End::Envoy(reply.status);
    }
    if let Some(reason) = message["error"]["data"]["error"].as_str() {
        return if message["id"] == number || message["id"].is_null() { End::Refused(reason.into()) } else { wrong() };
    }
    let text = reply.text();
    let leaks = text.contains(POISON) || text.contains("update_case") || text.contains("export_cases");
    if message["id"] != number || message.get("result").is_none() || leaks || Kind::of(number) == Kind::Refused {
        return wrong();
    }
    End::Result
}
