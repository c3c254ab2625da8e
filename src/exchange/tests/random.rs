//! Random events in any order: whatever Envoy, a caller and an upstream do, nothing passes undecided.

use std::sync::{Arc, LazyLock};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{Event, JSON, Next, Play, Reply, SSE, Step, answer, piece};
use crate::identity::IdentityFault;
use crate::ladder::testing::{World, head, message, post, world};

static READ: LazyLock<World> = LazyLock::new(|| world(&[]));
static UNREAD: LazyLock<World> = LazyLock::new(|| world(&[("  limits:", "  screen: off\n  limits:")]));

const METADATA: &str = "/.well-known/oauth-protected-resource/mcp";

/// Methods with the `Mcp-Name` and the members that go with them.
const ASKED: &[(&str, Option<&str>, &str)] = &[
    ("tools/call", Some("search"), r#""name":"search","#),
    ("tools/call", Some("update"), r#""name":"update","#),
    ("tools/list", None, ""),
    ("server/discover", None, ""),
    ("subscriptions/listen", None, r#""notifications":{},"#),
    ("notifications/progress", None, ""),
    ("ping", None, ""),
];

/// What may happen. Most sequences begin well, so that late states are reached.
#[derive(Clone, Debug)]
enum Act {
    Metadata,
    Request(usize),
    Identity(bool),
    Refreshed(bool),
    Body(usize, bool),
    Junk(&'static str),
    Head(&'static str, &'static str, bool),
    Piece(String, bool),
    Trailers,
    Deadline(u64),
    Overloaded,
    Fault,
    Reloaded,
    Draining,
    Stop,
}

impl Act {
    fn event(&self, world: &World, play: &mut Play) -> Event {
        match self {
            Self::Metadata => Event::RequestHeaders(head("GET", METADATA, &[])),
            Self::Request(at) => Event::RequestHeaders(post(ASKED[*at].0, ASKED[*at].1)),
            Self::Identity(true) => Event::Identity(Ok(world.reader())),
            Self::Identity(false) => Event::Identity(Err(IdentityFault::Missing)),
            Self::Refreshed(true) => Event::Refreshed(Ok(())),
            Self::Refreshed(false) => Event::Refreshed(Err("a test's".to_owned())),
            Self::Body(at, id) => {
                let id = (*id && !ASKED[*at].0.starts_with("notifications/")).then_some("1");
                Event::RequestBody(message(id, ASKED[*at].0, ASKED[*at].2).into_bytes())
            }
            Self::Junk(text) => Event::RequestBody(text.as_bytes().to_vec()),
            Self::Head(status, kind, ends) => answer(status, kind, *ends),
            Self::Piece(text, ends) => piece(text, *ends),
            Self::Trailers => Event::ResponseTrailers,
            Self::Deadline(seconds) => {
                play.later(*seconds);
                Event::Deadline
            }
            Self::Overloaded => Event::Overloaded,
            Self::Fault => Event::Fault("a test's"),
            Self::Reloaded => Event::Reloaded(Arc::clone(&world.snapshot)),
            Self::Draining => Event::Draining,
            Self::Stop => Event::Stop,
        }
    }
}

fn data() -> impl Strategy<Value = String> {
    select(
        &[
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"update"}]}}"#,
            r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#,
            r#"{"jsonrpc":"2.0","#,
            r#""id":1,"result":{}}"#,
            "x",
            "",
        ][..],
    )
    .prop_flat_map(|text| {
        select(&["{}", "data: {}\n\n", "data: {}", ": {}\n", "\u{feff}data:{}\r\n\r\n"][..])
            .prop_map(move |form| form.replace("{}", text))
    })
}

fn act() -> impl Strategy<Value = Act> {
    let statuses = select(&["200", "202", "204", "302", "401", "404", "413", "500"][..]);
    let kinds = select(&[JSON, SSE, "text/html"][..]);
    prop_oneof![
        1 => Just(Act::Metadata),
        2 => (0..ASKED.len()).prop_map(Act::Request),
        2 => any::<bool>().prop_map(Act::Identity),
        1 => any::<bool>().prop_map(Act::Refreshed),
        2 => (0..ASKED.len(), any::<bool>()).prop_map(|(at, id)| Act::Body(at, id)),
        1 => select(&["", "[]", "{}", "x"][..]).prop_map(Act::Junk),
        4 => (statuses, kinds, any::<bool>()).prop_map(|(status, kind, ends)| Act::Head(status, kind, ends)),
        6 => (data(), any::<bool>()).prop_map(|(text, ends)| Act::Piece(text, ends)),
        1 => Just(Act::Trailers),
        1 => (0..100u64).prop_map(Act::Deadline),
        1 => Just(Act::Overloaded),
        1 => Just(Act::Fault),
        1 => select(vec![Act::Reloaded, Act::Draining, Act::Stop]),
    ]
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let wild = vec(act(), 1..12);
    let begun = (0..ASKED.len(), any::<bool>(), vec(act(), 0..10)).prop_map(|(at, id, rest)| {
        let start = [Act::Request(at), Act::Identity(true), Act::Body(at, id)];
        start.into_iter().chain(rest).collect()
    });
    let answered = (0..5usize, select(&[JSON, SSE][..]), vec(act(), 0..10)).prop_map(|(at, kind, rest)| {
        let start = [Act::Request(at), Act::Identity(true), Act::Body(at, true), Act::Head("200", kind, false)];
        start.into_iter().chain(rest).collect()
    });
    prop_oneof![1 => wild, 2 => begun, 3 => answered]
}

/// What went down so far, as Envoy sees it.
#[derive(Default)]
struct Seen {
    request_headers: usize,
    /// Continues with `decided: true`.
    decided: usize,
    immediate: usize,
    head: usize,
    last_byte: usize,
}

impl Seen {
    fn take(&mut self, reply: &Reply) {
        assert_eq!(self.immediate, 0, "nothing follows an immediate response, but {reply:?}");
        assert_eq!(self.last_byte, 0, "nothing follows the last byte, but {reply:?}");
        match reply {
            Reply::RequestHeaders { verdict, .. } => {
                assert_eq!((self.request_headers, self.decided, self.head), (0, 0, 0), "{reply:?}");
                self.request_headers += 1;
                self.decided += usize::from(verdict.decided);
            }
            Reply::RequestBody { verdict, .. } => {
                assert_eq!((self.request_headers, self.decided, self.head), (1, 0, 0), "{reply:?}");
                assert!(verdict.decided && verdict.server.is_some() && verdict.decision == "allow", "{verdict:?}");
                self.decided += 1;
            }
            Reply::Immediate(immediate) => {
                assert_eq!(self.head, 0, "the status has gone down: {immediate:?}");
                self.immediate += 1;
            }
            Reply::MoreTime(_) => assert_eq!((self.decided, self.head), (0, 0), "nothing is decided yet"),
            Reply::ResponseHeaders { .. } => {
                assert_eq!(self.head, 0, "{reply:?}");
                self.head += 1;
            }
            Reply::ResponseBody { ends, .. } => {
                assert_eq!(self.head, 1, "{reply:?}");
                self.last_byte += usize::from(*ends);
            }
            Reply::ResponseTrailers => {
                assert_eq!(self.head, 1, "{reply:?}");
                self.last_byte += 1;
            }
        }
    }

    /// Whether the stream may end with OK now.
    fn may_finish(&self, unread: bool, all_head: bool) -> bool {
        self.immediate == 1 || self.last_byte == 1 || (self.head == 1 && all_head) || (self.decided == 1 && unread)
    }
}

fn play(world: &World, acts: &[Act]) {
    let mut play = Play::new(world);
    let (mut seen, mut metadata, mut asked) = (Seen::default(), false, None);
    for (at, act) in acts.iter().enumerate() {
        // Nothing that an exchange ignores is its beginning.
        let first = acts.iter().take(at).all(|act| matches!(act, Act::Reloaded | Act::Draining));
        metadata |= first && matches!(act, Act::Metadata);
        if let Act::Body(which, _) = act {
            asked.get_or_insert(ASKED[*which].0);
        }
        let committed = seen.head == 1;
        let event = act.event(world, &mut play);
        let Step { replies, next } = play.step(event);
        replies.iter().for_each(|reply| seen.take(reply));
        let ours = matches!(act, Act::Reloaded | Act::Draining | Act::Stop);
        if committed && !ours && !matches!(act, Act::Piece(..) | Act::Trailers | Act::Deadline(_)) {
            assert_eq!(next, Next::Fail, "{act:?} after the answer's head went down");
        }
        let all_head = matches!(act, Act::Head(_, _, true));
        let listing = asked.is_some_and(|method| method == "server/discover" || method.ends_with("/list"));
        let notification = asked.is_some_and(|method| method.starts_with("notifications/"));
        let screened = world.server().screen.is_some();
        match next {
            Next::Finish => {
                let unread = notification || (!screened && !listing);
                assert!(seen.may_finish(unread, all_head), "finished too early by {act:?}");
                break;
            }
            Next::Fail => break,
            Next::Identify => assert!(play.exchange.presented().is_some()),
            Next::Refresh => assert!(play.exchange.outdated().is_some()),
            Next::Ask => unreachable!("no gate is configured"),
            Next::Wait => {
                // Envoy waits for an answer to each message, except to pieces of an answer and to its head.
                let owed = matches!(act, Act::Metadata | Act::Request(_) | Act::Body(..) | Act::Junk(_));
                assert!(!owed || replies.iter().next().is_some(), "nothing was said to {act:?}");
            }
        }
    }
    play.records.extend(play.exchange.abandon(play.now));
    let records = std::mem::take(&mut play.records);
    assert_eq!(records.len(), usize::from(!metadata), "{records:?}");
    for record in records {
        let refused = seen.immediate == 1 || record.reason.is_some();
        assert_eq!(record.outcome.as_str() == "refuse", refused, "{record:?}");
        if record.outcome.as_str() == "allow" {
            assert_eq!((seen.decided, seen.immediate), (1, 0), "{record:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn nothing_passes_undecided(acts in acts()) {
        play(&READ, &acts);
    }

    #[test]
    fn nothing_passes_undecided_where_answers_are_not_screened(acts in acts()) {
        play(&UNREAD, &acts);
    }
}
