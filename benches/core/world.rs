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
            answer_head: made(&setting::answer_headers(&answer.len().to_string())),
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
        let step = exchange.step(Event::ResponseBody { bytes: answer.into(), ends: true }, self.now);
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

fn head(message: &Value, authorization: &str) -> Head {
    let route = Some("cases".to_owned());
    let attributes = Attributes { route, cluster: Some("cases".to_owned()), ..Attributes::default() };
    Head { headers: made(&setting::headers(message, authorization)), attributes, ends: false, modes: Modes::Whole }
}

fn made(headers: &[(&str, &str)]) -> Headers {
    Headers::new(headers.iter().map(|(name, value)| Header::new(name, value.as_bytes())).collect())
}
