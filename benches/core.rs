//! The core without gRPC: what a decision costs, by part, with its allocations, and that it does not grow with the
//! configuration. `cargo bench --bench core`; docs/performance.md says how to read it.
#![allow(
    clippy::format_collect,
    clippy::format_push_string,
    clippy::needless_pass_by_value,
    reason = "what is shared with the tests is written to be read"
)]

#[path = "setting/mod.rs"]
mod setting;
#[path = "../tests/support/mod.rs"]
mod support;
mod world {
    //! A loaded configuration with callers whose tokens were seen, and the events of their exchanges.

    use std::collections::HashMap;
    use std::sync::{Arc, LazyLock, Mutex};
    use std::time::Instant;

    use portcullis::config;
    use portcullis::exchange::{Event, Exchange, Next, Now, Reply};
    use portcullis::identity::{Caller, KeyStores, Presented};
    use portcullis::ladder::head::{Attributes, Head, Modes};
    use portcullis::ladder::{Server, Snapshot};
    use portcullis::message::headers::{Header, Headers};
    use serde_json::{Value, json};
    use tokio::runtime::Runtime;

    use crate::setting::{self, Size};
    use crate::support::idp::{self, Idp};

    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
    });
    static IDP: LazyLock<Idp> = LazyLock::new(Idp::start);

    pub(crate) struct World {
        pub(crate) snapshot: Arc<Snapshot>,
        /// The `Authorization` value of a caller whose token was seen.
        pub(crate) authorization: String,
        pub(crate) now: Now,
    }

    impl World {
        /// Loaded once per size and kept to the end of the process.
        pub(crate) fn of(size: Size) -> &'static Self {
            static WORLDS: LazyLock<Mutex<HashMap<Size, &'static World>>> = LazyLock::new(Mutex::default);
            let mut worlds = WORLDS.lock().expect("no loader panicked");
            worlds.entry(size).or_insert_with(|| Box::leak(Box::new(Self::load(size))))
        }

        /// A world of its own in which `callers` tokens were seen, with their `Authorization` values.
        pub(crate) fn with_callers(callers: usize) -> (Self, Vec<String>) {
            let world = Self::load(setting::USUAL);
            let tokens: Vec<String> = (0..callers).map(|n| bearer(&format!("user-{n}"))).collect();
            for token in &tokens {
                world.authenticate(token);
            }
            world.authenticate(&world.authorization);
            (world, tokens)
        }

        fn load(size: Size) -> Self {
            let dir = tempfile::tempdir().expect("a temporary directory");
            let lister = setting::lister(size.tools);
            let file = setting::write_files(dir.path(), size, true, &IDP, &lister);
            let keys = KeyStores::new();
            let loaded = config::load(&file, &keys);
            let Some(serving) = loaded.serving else { panic!("expected no faults, got {:#?}", loaded.faults) };
            let snapshot = Arc::new(serving.snapshot);
            if let Some(freshness) = &snapshot.servers()[0].freshness {
                RUNTIME.block_on(freshness.refresh(Instant::now())).expect("the server is listed");
            }
            // Time stands still from here on: what is fresh stays fresh.
            let now = Now { instant: Instant::now(), unix: idp::now() };
            let world = Self { snapshot, authorization: bearer("ana"), now };
            world.authenticate(&world.authorization);
            world
        }

        pub(crate) fn server(&self) -> &Arc<Server> {
            &self.snapshot.servers()[0]
        }

        fn authenticate(&self, authorization: &str) {
            let presented = Presented { authorization: Some(authorization), ..Presented::default() };
            let found = RUNTIME.block_on(self.server().authenticator.authenticate(&presented, self.now.unix));
            found.unwrap_or_else(|fault| panic!("expected a good token, got {fault:?}"));
        }

        pub(crate) fn cached(&self, authorization: &str) -> Arc<Caller> {
            let presented = Presented { authorization: Some(authorization), ..Presented::default() };
            self.server().authenticator.cached(&presented, self.now.unix).expect("the token was seen")
        }

        /// The events of one exchange in which `message` is sent.
        pub(crate) fn events(&self, message: &Value, answer: &[u8]) -> Events {
            Events {
                head: head(message, &self.authorization),
                body: message.to_string().into_bytes(),
                answer_head: answer_head(answer.len()),
                answer: answer.to_vec(),
                id: "0123456789ab00000001".to_owned(),
            }
        }

        /// From the request's head to the verdict.
        pub(crate) fn decide(&self, events: Events) -> Decided {
            let mut exchange = Exchange::new(Arc::clone(&self.snapshot), events.id, self.now);
            let step = exchange.step(Event::RequestHeaders(events.head), self.now);
            assert_eq!(step.next, Next::Identify);
            let (server, presented) = exchange.presented().expect("an identity is asked for");
            let caller = server.authenticator.cached(&presented, self.now.unix).expect("the token was seen");
            let accepted = exchange.step(Event::Identity(Ok(caller)), self.now);
            assert_eq!(accepted.next, Next::Wait);
            let verdict = exchange.step(Event::RequestBody(events.body), self.now);
            Decided { exchange, verdict, answer_head: events.answer_head, answer: events.answer }
        }

        /// The whole of a forwarded call, its answer read.
        pub(crate) fn exchange(&self, events: Events) {
            let Decided { mut exchange, verdict, answer_head, answer } = self.decide(events);
            assert_eq!(verdict.next, Next::Wait);
            let step = exchange.step(Event::ResponseHeaders { headers: answer_head, ends: false }, self.now);
            assert_eq!(step.next, Next::Wait);
            let step = exchange.step(Event::ResponseBody { bytes: answer, ends: true }, self.now);
            assert_eq!(step.next, Next::Finish);
            assert!(step.replies.iter().all(|reply| !matches!(reply, Reply::Immediate(_))));
            exchange.take_record().expect("a record");
        }

        /// A call that the ladder refuses, its frame included.
        pub(crate) fn refused(&self, events: Events) {
            let Decided { mut exchange, verdict, .. } = self.decide(events);
            assert_eq!(verdict.next, Next::Finish);
            assert!(verdict.replies.iter().all(|reply| matches!(reply, Reply::Immediate(_))));
            exchange.take_record().expect("a record");
        }
    }

    pub(crate) struct Events {
        pub(crate) head: Head,
        body: Vec<u8>,
        answer_head: Headers,
        answer: Vec<u8>,
        id: String,
    }

    pub(crate) struct Decided {
        exchange: Exchange,
        pub(crate) verdict: portcullis::exchange::Step,
        answer_head: Headers,
        answer: Vec<u8>,
    }

    fn bearer(subject: &str) -> String {
        let email = format!("{subject}@acme.com");
        format!("Bearer {}", IDP.token(&json!({"sub": subject, "email": email, "groups": ["support", "emea"]})))
    }

    /// The headers that Envoy hands over for a call by an SDK's client.
    fn head(message: &Value, authorization: &str) -> Head {
        let headers = [
            (":authority", "mcp.test"),
            (":path", "/mcp"),
            (":method", "POST"),
            (":scheme", "http"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", crate::support::fixture::VERSION),
            ("mcp-method", message["method"].as_str().expect("a method")),
            ("mcp-name", message["params"]["name"].as_str().unwrap_or_default()),
            ("authorization", authorization),
            ("user-agent", "an-sdk/1.2.3 (linux; x64)"),
            ("accept-encoding", "gzip, deflate, br"),
            ("content-length", "1024"),
            ("x-forwarded-for", "10.1.2.3"),
            ("x-forwarded-proto", "https"),
            ("x-request-id", "6f2e1f0e-43c5-4f4d-9d0a-6f0d3b8d9a11"),
        ];
        let route = Some("cases".to_owned());
        let attributes = Attributes { route, cluster: Some("cases".to_owned()), ..Attributes::default() };
        Head { headers: made(&headers), attributes, ends: false, modes: Modes::Whole }
    }

    fn answer_head(length: usize) -> Headers {
        let length = length.to_string();
        made(&[
            (":status", "200"),
            ("content-type", "application/json"),
            ("content-length", length.as_str()),
            ("date", "Mon, 30 Nov 2026 12:00:00 GMT"),
            ("x-envoy-upstream-service-time", "0"),
        ])
    }

    fn made(headers: &[(&str, &str)]) -> Headers {
        let header = |(name, value): &(&str, &str)| Header::new(name, value.as_bytes());
        Headers::new(headers.iter().filter(|(_, value)| !value.is_empty()).map(header).collect())
    }
}

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher};
use mimalloc::MiMalloc;
use portcullis::ladder::{answer, envelope, listing, message};
use portcullis::message::json::{Document, Limits};
use portcullis::protocol::Method;
use portcullis::refusal::{Addressee, Denials, Detail, Reason, Refusal, Rung, render};
use serde_json::json;

use setting::{Size, USUAL, call};
use world::World;

/// The program's own allocator, counted.
#[global_allocator]
static ALLOCATOR: AllocProfiler<MiMalloc> = AllocProfiler::new(MiMalloc);

const KIB: usize = 1024;

fn main() {
    divan::main();
}

/// Rung 9's reading of a body.
#[divan::bench(args = [KIB, 64 * KIB, 1024 * KIB])]
fn reader(bencher: Bencher<'_, '_>, bytes: usize) {
    let body = call(0, bytes).to_string().into_bytes();
    let limits = Limits { depth: 64, nodes: 1 << 18 };
    bencher
        .counter(BytesCount::new(bytes))
        .with_inputs(|| body.clone())
        .bench_local_values(|body| Document::read(body, limits).expect("good JSON"));
}

/// The same on a body of many small values instead of one long text.
#[divan::bench(args = [64 * KIB])]
fn reader_of_small_values(bencher: Bencher<'_, '_>, bytes: usize) {
    let rows = (0..bytes / 32).map(|n| json!({"id": n, "on": true, "x": "abc"})).collect::<Vec<_>>();
    let body = json!(rows).to_string().into_bytes();
    let limits = Limits { depth: 64, nodes: 1 << 18 };
    bencher
        .counter(BytesCount::new(body.len()))
        .with_inputs(|| body.clone())
        .bench_local_values(|body| Document::read(body, limits).expect("good JSON"));
}

/// Rungs 9 and 10 on a body that was read.
#[divan::bench]
fn envelope(bencher: Bencher<'_, '_>) {
    let world = World::of(USUAL);
    let sent = call(0, KIB);
    let head = world.events(&sent, b"").head;
    let document = Document::read(sent.to_string().into_bytes(), Limits { depth: 64, nodes: 4096 }).expect("good JSON");
    bencher.bench_local(|| {
        let message = message::message(&document).expect("a request");
        envelope::check(world.server(), &head, &message).expect("a good envelope");
    });
}

/// A token that was seen before.
#[divan::bench]
fn token(bencher: Bencher<'_, '_>) {
    let world = World::of(USUAL);
    bencher.bench_local(|| world.cached(&world.authorization));
}

/// The budget's core decision: from the request's head to the verdict, 1 KiB, token seen before.
#[divan::bench]
fn decision(bencher: Bencher<'_, '_>) {
    let world = World::of(USUAL);
    let sent = call(0, KIB);
    bencher.with_inputs(|| world.events(&sent, b"")).bench_local_values(|events| drop(world.decide(events)));
}

/// The same, and the answer of 1 KiB read and released, and the audit record taken.
#[divan::bench]
fn exchange(bencher: Bencher<'_, '_>) {
    let world = World::of(USUAL);
    let (sent, answer) = (call(0, KIB), setting::answer(KIB));
    bencher.with_inputs(|| world.events(&sent, &answer)).bench_local_values(|events| world.exchange(events));
}

/// A call whose permission is not held, frame and record included.
#[divan::bench]
fn exchange_refused(bencher: Bencher<'_, '_>) {
    let world = World::of(USUAL);
    let sent = call(1, KIB);
    bencher.with_inputs(|| world.events(&sent, b"")).bench_local_values(|events| world.refused(events));
}

/// The frame of a policy refusal.
#[divan::bench]
fn frame(bencher: Bencher<'_, '_>) {
    let refusal = Refusal::new(Reason::PolicyNotPermitted, Rung::Permission)
        .message("You may not use the tool 'tool_00001': it needs the permission 'area-1:use'.")
        .description("ana@acme.com does not hold 'area-1:use', which 'tool:tool_00001' costs.")
        .detail("permission", Detail::Text("area-1:use".into()));
    let to = Addressee { id: Some("\"request-17\""), method: "tools/call" };
    bencher.bench_local(|| render(&refusal, Denials::default(), to, "0123456789ab00000001"));
}

/// Rungs 18 and 19 on a listing of which every second entry goes: read, filtered, spliced. The server lists the same bytes
/// again and again.
#[divan::bench(args = [10, 200, 2000])]
fn listing_filtered(bencher: Bencher<'_, '_>, tools: usize) {
    filter(bencher, tools, false);
}

/// The same from a server that spells each listing otherwise than the last, so that every definition is compared.
#[divan::bench(args = [10, 200, 2000])]
fn listing_respelled(bencher: Bencher<'_, '_>, tools: usize) {
    filter(bencher, tools, true);
}

fn filter(bencher: Bencher<'_, '_>, tools: usize, respelled: bool) {
    let world = World::of(Size { tools, ..USUAL });
    let caller = world.cached(&world.authorization);
    let (bytes, now) = (setting::listing(tools), world.now.instant);
    let other =
        String::from_utf8(bytes.clone()).expect("text").replace(r#""inputSchema":"#, r#""inputSchema": "#).into_bytes();
    let mut turn = [&bytes, if respelled { &other } else { &bytes }].into_iter().cycle();
    let next = move || turn.next().expect("it goes round").clone();
    bencher.counter(BytesCount::new(bytes.len())).with_inputs(next).bench_local_values(|bytes| {
        let document = answer::read(world.server(), bytes).expect("good JSON");
        let result = document.root().get("result").expect("a result");
        let filtered = listing::filter(world.server(), &caller.principal, Method::ToolsList, &document, result, now);
        let filtered = filtered.expect("a listing");
        assert_eq!(filtered.hidden, tools / 2);
        filtered.bytes
    });
}

/// What must not make a call dearer.
mod growth {
    use super::{Bencher, KIB, Size, USUAL, World, call};

    #[divan::bench(args = [10, 10_000])]
    fn rules(bencher: Bencher<'_, '_>, rules: usize) {
        decide(bencher, World::of(Size { rules, ..USUAL }));
    }

    #[divan::bench(args = [10, 10_000])]
    fn prices(bencher: Bencher<'_, '_>, tools: usize) {
        decide(bencher, World::of(Size { tools, ..USUAL }));
    }

    /// One caller's calls after so many others were seen.
    #[divan::bench(args = [10, 10_000])]
    fn callers_seen(bencher: Bencher<'_, '_>, callers: usize) {
        decide(bencher, &World::with_callers(callers).0);
    }

    /// So many callers in turn; what grows is the distance to memory.
    #[divan::bench(args = [10, 10_000])]
    fn callers_in_turn(bencher: Bencher<'_, '_>, callers: usize) {
        let (world, tokens) = World::with_callers(callers);
        let mut turn = tokens.iter().cycle();
        bencher.bench_local(|| turn.next().map(|token| world.cached(token)));
    }

    fn decide(bencher: Bencher<'_, '_>, world: &World) {
        let sent = call(0, KIB);
        bencher.with_inputs(|| world.events(&sent, b"")).bench_local_values(|events| drop(world.decide(events)));
    }
}
