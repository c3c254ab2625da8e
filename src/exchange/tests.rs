//! The state machine without a socket: every event in every state, and random ones.

mod answers;
mod definitions;
mod gates;
mod open;
mod orders;
mod random;
mod told;

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Event, Exchange, Next, Now, Reply, Step};
use crate::identity::Caller;
use crate::ladder::testing::{World, headers, message, post};
use crate::refusal::Reason;
use crate::telemetry::audit::Record;

/// Unix seconds at the beginning of each exchange.
const NOW: u64 = 1_800_000_000;
const JSON: &str = "application/json";
const SSE: &str = "text/event-stream";

/// An exchange under test, its clock, and the records it gave.
struct Play {
    exchange: Exchange,
    start: Instant,
    now: Now,
    records: Vec<Record>,
}

impl Play {
    fn new(world: &World) -> Self {
        let now = Now { instant: Instant::now(), unix: NOW };
        let exchange = Exchange::new(Arc::clone(&world.snapshot), "d1".into(), now);
        Self { exchange, start: now.instant, now, records: Vec::new() }
    }

    /// Lets time go by.
    fn later(&mut self, seconds: u64) {
        self.now.instant += Duration::from_secs(seconds);
        self.now.unix += seconds;
    }

    fn step(&mut self, event: Event) -> Step {
        let step = self.exchange.step(event, self.now);
        self.records.extend(self.exchange.take_record());
        step
    }

    fn shown(&mut self, event: Event) -> String {
        shown(&self.step(event))
    }

    /// Seconds from the beginning to the deadline.
    fn due(&self) -> Option<u64> {
        self.exchange.deadline().map(|due| due.duration_since(self.start).as_secs())
    }

    /// Ends it as the front door does when its stream is dropped; the only record there may be.
    fn record(mut self) -> Record {
        self.records.extend(self.exchange.abandon(self.now));
        assert_eq!(self.records.len(), 1, "{:?}", self.records);
        self.records.remove(0)
    }

    /// Up to the verdict on a request of this method.
    fn asked(world: &World, caller: Arc<Caller>, text: &str, method: &str, name: Option<&str>) -> (Self, Step) {
        let mut play = Self::new(world);
        assert_eq!(play.shown(Event::RequestHeaders(post(method, name))), "> identify");
        assert_eq!(play.shown(Event::Identity(Ok(caller))), "rqh(no) > wait");
        let step = play.step(Event::RequestBody(text.as_bytes().to_vec()));
        (play, step)
    }

    /// A forwarded `tools/list` with id 1.
    fn listing(world: &World) -> Self {
        let (play, step) =
            Self::asked(world, world.reader(), &message(Some("1"), "tools/list", ""), "tools/list", None);
        assert_eq!(shown(&step), "rqb(yes) > wait");
        play
    }

    /// A forwarded call of the tool `search`, with this id.
    fn call(world: &World, id: Option<&str>) -> Self {
        let text = message(id, "tools/call", r#""name":"search","#);
        let (play, step) = Self::asked(world, world.reader(), &text, "tools/call", Some("search"));
        assert_eq!(shown(&step), "rqb(yes) > wait");
        play
    }
}

/// The head of an answer.
fn answer(status: &str, content_type: &str, ends: bool) -> Event {
    Event::ResponseHeaders { headers: headers(&[(":status", status), ("content-type", content_type)]), ends }
}

/// A piece of its body.
fn piece(text: &str, ends: bool) -> Event {
    Event::ResponseBody { bytes: text.as_bytes().to_vec().into(), ends }
}

/// A step in one line: the replies, then what is next. A body piece that is the last ends in a full stop.
fn shown(step: &Step) -> String {
    let yes = |decided: bool| if decided { "yes" } else { "no" };
    let mut words: Vec<String> = step
        .replies
        .iter()
        .map(|reply| match reply {
            Reply::RequestHeaders { verdict, .. } => format!("rqh({})", yes(verdict.decided)),
            Reply::RequestBody { verdict, .. } => format!("rqb({})", yes(verdict.decided)),
            Reply::ResponseHeaders { .. } => "rsh".to_owned(),
            Reply::ResponseBody { ends, .. } => format!("rsb{}", if *ends { "." } else { "" }),
            Reply::ResponseTrailers => "rst".to_owned(),
            Reply::MoreTime(time) => format!("more({}ms)", time.as_millis()),
            Reply::Immediate(immediate) => {
                assert!(immediate.verdict.decided, "an immediate response passes the second lock");
                format!("{} {}", immediate.status, immediate.verdict.reason.map_or("none", Reason::as_str))
            }
        })
        .collect();
    words.push(match step.next {
        Next::Wait => "> wait".to_owned(),
        Next::Identify => "> identify".to_owned(),
        Next::Refresh => "> refresh".to_owned(),
        Next::Ask => "> ask".to_owned(),
        Next::Finish => "> finish".to_owned(),
        Next::Fail => "> fail".to_owned(),
    });
    words.join(" ")
}

/// The body bytes that a step sends down.
fn sent(step: &Step) -> String {
    let bytes = step.replies.iter().flat_map(|reply| match reply {
        Reply::ResponseBody { bytes, .. } => bytes.clone(),
        Reply::Immediate(immediate) => immediate.body.clone(),
        _ => Vec::new(),
    });
    String::from_utf8(bytes.collect()).expect("UTF-8")
}
