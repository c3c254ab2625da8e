//! The state machine of one HTTP exchange: events in, actions out.
//!
//! [`Exchange::step`] is deterministic. It knows no socket, no clock and no protobuf: time comes in with each event, and
//! whatever needs the world is an action ([`Next::Identify`]) that the front door performs and feeds back as an event.
//! So every order of messages that Envoy can produce is a table in a test.
//!
//! What must always hold:
//! - a stream that is finished ([`Next::Finish`]) has answered its decision, and when the answer is read, its last byte;
//! - `decided: true` is said once, in the last reply of an allowing verdict, and in immediate responses;
//! - an event that no state expects refuses: by an immediate response while nothing went down, else by failing the stream.

mod asking;
mod facts;
mod open;
mod reply;
mod request;
mod response;
mod streaming;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

use crate::gates::{Question, Ruling};
use crate::identity::{Caller, IdentityFault, Presented};
use crate::ladder::{Head, Server, Snapshot, token};
use crate::message::headers::Headers;
use crate::protocol::Method;
use crate::refusal::{Addressee, Denials, Reason, Refusal, Rung, render};
use crate::telemetry::record::{Outcome, Record, Trails, Wait};
use crate::upstream::Freshness;

pub use facts::{Facts, Verdict};
pub use reply::{Immediate, Replies, Reply};

/// What Envoy says, or what the front door found out.
#[derive(Debug)]
pub enum Event {
    /// The head of the request.
    RequestHeaders(Head),
    /// The whole body of the request (buffered mode sends one message).
    RequestBody(Vec<u8>),
    /// The head of the answer.
    ResponseHeaders {
        /// Its headers.
        headers: Headers,
        /// Whether there is no body.
        ends: bool,
    },
    /// A piece of the answer's body.
    ResponseBody {
        /// The bytes, where they were received.
        bytes: Bytes,
        /// Whether it is the last one.
        ends: bool,
    },
    /// The trailers of the answer: its body is complete.
    ResponseTrailers,
    /// What [`Next::Identify`] asked for.
    Identity(Result<Arc<Caller>, IdentityFault>),
    /// What [`Next::Ask`] asked for.
    Opinion(Ruling),
    /// What [`Next::Refresh`] asked for; why the server could not be listed.
    Refreshed(Result<(), String>),
    /// The time of [`Exchange::deadline`] has come.
    Deadline,
    /// The configuration changed. Tell an exchange only while [`Exchange::is_streaming`]: every other request is judged by one
    /// snapshot from beginning to end, and ignores it.
    Reloaded(Arc<Snapshot>),
    /// The process is about to end, exchanges may finish. For streams; every other exchange ignores it.
    Draining,
    /// The process ends now: what is open is refused or ended, what is undecided first.
    Stop,
    /// Too many exchanges are open: this one is refused whatever it is.
    Overloaded,
    /// Something that is never expected: an unknown phase, a panic in a step, request trailers on their own.
    Fault(&'static str),
    /// A step that panics, for the tests of what becomes of one.
    #[cfg(test)]
    Panic,
}

impl Event {
    /// What the exchange waited for until this event.
    fn ends_wait(&self) -> Option<Wait> {
        match self {
            Self::RequestBody(_) => Some(Wait::Body),
            Self::Identity(_) => Some(Wait::Identity),
            Self::Opinion(_) => Some(Wait::Gates),
            Self::Refreshed(_) => Some(Wait::Listing),
            _ => None,
        }
    }
}

/// The time of an event.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// For bounds and durations.
    pub instant: Instant,
    /// Seconds since the epoch, for tokens.
    pub unix: u64,
}

/// What the front door does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Wait for Envoy's next message, or until [`Exchange::deadline`].
    Wait,
    /// Establish the identity that [`Exchange::presented`] tells of, and come back with [`Event::Identity`].
    Identify,
    /// Send the replies, ask the gates that [`Exchange::question`] tells of, and come back with [`Event::Opinion`]. Envoy's
    /// messages are taken meanwhile: the request may end.
    Ask,
    /// List the server that [`Exchange::outdated`] tells of, and come back with [`Event::Refreshed`].
    Refresh,
    /// End the gRPC stream with OK.
    Finish,
    /// End the gRPC stream with an error status: Envoy refuses or cuts what is left.
    Fail,
}

/// The outcome of one event: replies to send in order, then what to do.
#[derive(Debug)]
pub struct Step {
    /// Replies for Envoy.
    pub replies: Replies,
    /// What follows.
    pub next: Next,
}

impl Step {
    fn wait(replies: Replies) -> Self {
        Self { replies, next: Next::Wait }
    }

    fn finish(replies: Replies) -> Self {
        Self { replies, next: Next::Finish }
    }

    fn fail() -> Self {
        Self { replies: Replies::new(), next: Next::Fail }
    }
}

/// Where an exchange stands.
enum State {
    /// Nothing has come yet.
    Fresh,
    /// The identity is being established.
    Identifying(request::Pending),
    /// The request's headers were accepted; its body is awaited.
    AwaitingBody(request::Accepted),
    /// Rungs 1 to 16 are climbed; the gates are being asked.
    Gated(Box<asking::Gated>),
    /// The server is being listed, because what the call reaches has not been seen lately.
    Checking(request::Checking),
    /// The call was forwarded and its answer will be read.
    AwaitingAnswer(response::Asking),
    /// A JSON answer is held until it is whole.
    Holding(response::Held),
    /// Events of an answer are judged as they become whole.
    Streaming(Box<streaming::Stream>),
    /// The answer passes as it comes: an upstream 404, or Envoy's own reply before any verdict.
    Echoing,
    /// Everything was said; what still comes is ignored until Envoy closes the stream.
    Drained,
    /// The stream is over.
    Done,
}

/// One HTTP exchange.
pub struct Exchange {
    snapshot: Arc<Snapshot>,
    state: State,
    deadline: Option<Instant>,
    /// When Envoy's last message of the request came: its timer for our reply runs from then on.
    heard: Instant,
    facts: Facts,
    /// Whether anything of an answer went down: from then on a refusal cannot have its own status.
    committed: bool,
}

impl Exchange {
    /// A new exchange, judged by this snapshot from beginning to end. `decision` is its id.
    #[must_use]
    pub fn new(snapshot: Arc<Snapshot>, decision: String, now: Now) -> Self {
        let facts = Facts::new(decision, snapshot.metadata(), now.instant);
        Self { snapshot, state: State::Fresh, deadline: None, heard: now.instant, facts, committed: false }
    }

    /// The same, keeping the way up of these calls for their spans. Times need [`Exchange::stepped`].
    #[must_use]
    pub fn with_trails(mut self, trails: Trails) -> Self {
        self.facts.keep_trails(trails);
        self
    }

    /// Tells that the step that was given `began` as its time ended at `ended`: work and waiting are told apart by this.
    pub fn stepped(&mut self, began: Instant, ended: Instant) {
        self.facts.stepped(began, ended);
    }

    /// When [`Event::Deadline`] is due.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Whom [`Next::Identify`] is about.
    #[must_use]
    pub fn presented(&self) -> Option<(Arc<Server>, Presented<'_>)> {
        let State::Identifying(pending) = &self.state else { return None };
        let presented = token::presented(&pending.server, &pending.head).ok()?;
        Some((Arc::clone(&pending.server), presented))
    }

    /// What [`Next::Ask`] asks whom.
    #[must_use]
    pub fn question(&self) -> Option<(Arc<Server>, Arc<Question>)> {
        let State::Gated(gated) = &self.state else { return None };
        Some((Arc::clone(&gated.server), Arc::clone(&gated.question)))
    }

    /// What [`Next::Refresh`] is about: whose definitions, and when they were found to be old.
    #[must_use]
    pub fn outdated(&self) -> Option<(Arc<Freshness>, Instant)> {
        let State::Checking(checking) = &self.state else { return None };
        Some((Arc::clone(checking.accepted.server.freshness.as_ref()?), checking.since))
    }

    /// The method whose answer is awaited and will be read.
    #[must_use]
    pub fn awaits(&self) -> Option<Method> {
        let State::AwaitingAnswer(asking) = &self.state else { return None };
        Some(asking.asked.method)
    }

    /// The refusals that were recorded and not carried out (shadow mode): the rung and the code of each, in order.
    #[must_use]
    pub fn spared(&self) -> &[(Rung, String)] {
        self.facts.spared_by()
    }

    /// The one record of this exchange's decision, once it is complete; `None` before and after.
    pub fn take_record(&mut self) -> Option<Record> {
        self.facts.take_record()
    }

    /// Ends the exchange because the other side is gone, and gives the record that is still owed.
    pub fn abandon(&mut self, now: Now) -> Option<Record> {
        self.state = State::Done;
        if !self.committed {
            self.facts.unanswered();
        }
        self.facts.close(Outcome::Aborted, now.instant);
        self.facts.take_record()
    }

    /// Takes one event.
    pub fn step(&mut self, event: Event, now: Now) -> Step {
        if let Some(wait) = event.ends_wait() {
            self.facts.arrived(wait, now.instant);
        }
        let step = self.advance(event, now);
        self.committed |= step.replies.iter().any(|reply| {
            matches!(reply, Reply::ResponseHeaders { .. } | Reply::ResponseBody { .. } | Reply::Immediate(_))
        });
        step
    }

    fn advance(&mut self, event: Event, now: Now) -> Step {
        let deadline = self.deadline.take();
        if matches!(event, Event::RequestHeaders(_) | Event::RequestBody(_)) {
            self.heard = now.instant;
        }
        match (std::mem::replace(&mut self.state, State::Done), event) {
            (State::Fresh, Event::Overloaded) => {
                self.refuse(&Refusal::new(Reason::Overloaded, Rung::Service), None, None, "", now)
            }
            (State::Fresh, Event::RequestHeaders(head)) => self.request_headers(head, now),
            (State::Identifying(pending), Event::Identity(found)) => self.identified(pending, found, now),
            (State::AwaitingBody(accepted), Event::RequestBody(body)) => self.request_body(accepted, body, now),
            (State::Checking(checking), Event::Refreshed(listed)) => self.refreshed(checking, listed, now),
            (State::Gated(gated), Event::Opinion(ruling)) => self.opinion(*gated, ruling, now),
            (State::AwaitingBody(accepted), Event::Deadline) => self.body_late(&accepted, now),
            (
                State::Fresh | State::Identifying(_) | State::AwaitingBody(_) | State::Checking(_) | State::Gated(_),
                Event::ResponseHeaders { headers, ends },
            ) => self.foreign_reply(&headers, ends, now),
            (State::AwaitingAnswer(asking), Event::Deadline) => self.answer_never(&asking, now),
            (State::AwaitingAnswer(asking), Event::ResponseHeaders { headers, ends }) => {
                self.answer_head(asking, &headers, ends, now)
            }
            (State::Holding(held), Event::ResponseBody { bytes, ends }) => self.answer_piece(held, bytes, ends, now),
            (State::Holding(held), Event::ResponseTrailers) => self.answer_complete(held, true, now),
            (State::Holding(held), Event::Deadline) => self.answer_late(&held, now),
            (State::Streaming(stream), Event::ResponseBody { bytes, ends }) => {
                self.stream_piece(stream, &bytes, ends, now)
            }
            (State::Streaming(stream), Event::ResponseTrailers) => self.stream_end(&stream, true, now),
            (State::Streaming(stream), Event::Deadline) => self.stream_deadline(stream, now),
            (State::Echoing, Event::ResponseBody { bytes, ends }) => {
                self.echo(Reply::ResponseBody { bytes: bytes.into(), ends }, ends, now)
            }
            (State::Echoing, Event::ResponseTrailers) => self.echo(Reply::ResponseTrailers, true, now),
            (State::Drained, Event::ResponseBody { .. } | Event::ResponseTrailers | Event::Deadline) => {
                self.state = State::Drained;
                Step::wait(Replies::new())
            }
            (State::Streaming(stream), Event::Reloaded(snapshot)) => self.stream_again(stream, snapshot, now),
            (State::Streaming(stream), Event::Draining) => self.stream_drains(stream, now),
            (state, Event::Reloaded(_) | Event::Draining) => {
                (self.state, self.deadline) = (state, deadline);
                Step::wait(Replies::new())
            }
            (state, Event::Stop) => self.stop(&state, now),
            #[cfg(test)]
            (_, Event::Panic) => std::panic::panic_any("a panic that a test asked for"),
            (state, event) => self.unexpected(&state, &event, now),
        }
    }

    /// An event that no state expects. While nothing of the answer went down it becomes a refusal the caller can read.
    fn unexpected(&mut self, state: &State, event: &Event, now: Now) -> Step {
        let refusal = Refusal::new(Reason::Internal, Rung::Service).log(match event {
            Event::Fault(what) => (*what).to_owned(),
            _ => "Envoy sent a message that its processing mode does not have at this point".to_owned(),
        });
        if self.committed {
            self.facts.refuse(&refusal, None, None, now.instant);
            self.facts.close(Outcome::Refused, now.instant);
            return Step::fail();
        }
        match state {
            State::AwaitingAnswer(asking) | State::Holding(response::Held { asking, .. }) => {
                let method = asking.asked.method.as_str();
                self.refuse(&refusal, Some(&asking.server), asking.id_raw.as_deref(), method, now)
            }
            State::Identifying(request::Pending { server, .. })
            | State::AwaitingBody(request::Accepted { server, .. }) => {
                self.refuse(&refusal, Some(server), None, "", now)
            }
            State::Checking(checking) => {
                self.refuse(&refusal, Some(&checking.accepted.server), checking.id(), checking.method(), now)
            }
            State::Gated(gated) => self.refuse(&refusal, Some(&gated.server), gated.id(), gated.method(), now),
            _ => self.refuse(&refusal, None, None, "", now),
        }
    }

    /// Answers with a refusal and ends.
    fn refuse(&mut self, refusal: &Refusal, server: Option<&Server>, id: Option<&str>, method: &str, now: Now) -> Step {
        self.state = State::Done;
        let denials = server.map_or_else(Denials::default, |server| server.denials);
        let rendered = render(refusal, denials, Addressee { id, method }, self.facts.decision());
        let code = id.is_some().then(|| refusal.frame_code(denials)).flatten();
        self.facts.refuse(refusal, Some(rendered.status), code, now.instant);
        self.facts.rendered(refusal, rendered.tier);
        self.facts.close(Outcome::Refused, now.instant);
        Step::finish(Replies::one(Reply::Immediate(Immediate {
            status: rendered.status,
            headers: rendered.headers,
            body: rendered.body,
            details: format!("portcullis_{}", refusal.error()),
            verdict: self.facts.verdict(),
        })))
    }
}
