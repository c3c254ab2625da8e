//! The way back, in pieces: rungs 18 to 21 on a stream of server-sent events, each judged when it is whole.
//!
//! The HTTP status has gone down, so a refusal is one more event with the frame under the request's id, then the end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::identity::Caller;
use crate::ladder::Server;
use crate::ladder::answer::{self, Content};
use crate::ladder::budget::{HeldAnswers, Share};
use crate::ladder::definition;
use crate::ladder::forward::{self, HeaderEdits};
use crate::message::json::Value;
use crate::message::sse::{self, Event as SseEvent, Frame, Framer};
use crate::policy::Capability;
use crate::protocol::Method;
use crate::refusal::{Addressee, Reason, Refusal, Rung, event_frame};
use crate::telemetry::record::Outcome;

use super::response::Asking;
use super::{Exchange, Now, Replies, Reply, State, Step};

/// A stream of events in the middle.
pub(super) struct Stream {
    asking: Asking,
    framer: Framer,
    /// What the event that has begun takes of the bound on held answers.
    share: Share,
    /// When the event that has begun must be whole.
    event_due: Option<Instant>,
    /// When the token behind the stream expires.
    expires: Option<Instant>,
}

impl Stream {
    pub(super) fn new(asking: Asking, bound: &Arc<HeldAnswers>, now: Now) -> Box<Self> {
        let framer = Framer::new(answer::cap(&asking.server, asking.asked.method));
        let left = asking.caller.expires_at.map(|at| Duration::from_secs(at.saturating_sub(now.unix)));
        let expires = left.and_then(|left| now.instant.checked_add(left));
        Box::new(Self { asking, framer, share: Share::new(bound), event_due: None, expires })
    }

    pub(super) fn asking(&self) -> &Asking {
        &self.asking
    }

    /// What comes from now on is judged by this.
    pub(super) fn go_on(&mut self, server: Arc<Server>, caller: Arc<Caller>) {
        (self.asking.server, self.asking.caller) = (server, caller);
    }

    fn deadline(&self) -> Option<Instant> {
        [self.event_due, self.expires].into_iter().flatten().min()
    }
}

/// What an event did to its stream.
enum Fate {
    /// More may follow.
    Open,
    /// It was the answer: nothing follows.
    Answered,
    /// It may not be passed on.
    Refused(Box<Refusal>),
}

impl Exchange {
    /// The head of a stream goes down at once.
    pub(super) fn stream_begin(&mut self, stream: Box<Stream>) -> Step {
        let method = stream.asking.asked.method;
        let ours = method.listed_member().is_some() || method == Method::Discover;
        // Whether the answer will be rewritten nobody knows yet, and its caching headers go down now.
        let rewritable = (ours || stream.asking.server.screen.is_some()) && !stream.asking.server.shadow;
        let edits = if rewritable { forward::private_answer() } else { HeaderEdits::default() };
        self.stream_on(stream, Replies::one(Reply::ResponseHeaders { edits }))
    }

    pub(super) fn stream_on(&mut self, stream: Box<Stream>, replies: Replies) -> Step {
        self.deadline = stream.deadline();
        self.state = State::Streaming(stream);
        Step::wait(replies)
    }

    /// A piece of the stream: whole events are judged, the rest waits.
    pub(super) fn stream_piece(&mut self, mut stream: Box<Stream>, bytes: &[u8], ends: bool, now: Now) -> Step {
        // Pieces that never pause must not outrun the deadline.
        if stream.deadline().is_some_and(|deadline| deadline <= now.instant) {
            return self.stream_late(&stream, ends, now);
        }
        let mut out = Vec::with_capacity(bytes.len());
        stream.framer.push(bytes);
        let mut fate = self.judge_frames(&mut stream, &mut out, now);
        if let (Fate::Open, Err(exhausted)) = (&fate, stream.share.set(stream.framer.pending())) {
            fate = Fate::Refused(Box::new(answer::overloaded(exhausted)));
        }
        match fate {
            Fate::Open if ends => {
                let mut step = self.stream_end(&stream, false, now);
                step.replies = prepend(out, step.replies);
                step
            }
            Fate::Open => {
                stream.event_due = if stream.framer.is_pending() {
                    let allowed = Duration::from_millis(stream.asking.server.limits.answer_time);
                    stream.event_due.or_else(|| now.instant.checked_add(allowed))
                } else {
                    None
                };
                let replies = if out.is_empty() { Replies::new() } else { body(out, false) };
                self.stream_on(stream, replies)
            }
            Fate::Answered => self.stream_over(out, ends, now),
            Fate::Refused(refusal) => self.stream_refuse(&stream.asking, &refusal, out, ends, now),
        }
    }

    /// Judges every event that is whole and writes what goes down into `out`.
    fn judge_frames(&mut self, stream: &mut Stream, out: &mut Vec<u8>, now: Now) -> Fate {
        for frame in stream.framer.by_ref() {
            match frame {
                Err(_) => return Fate::Refused(Box::new(answer::too_large())),
                Ok(Frame::Filler(bytes)) => {
                    stream.event_due = None;
                    out.extend_from_slice(&bytes);
                }
                Ok(Frame::Event(event)) => {
                    stream.event_due = None;
                    match self.judge_event(&stream.asking, event, out, now) {
                        Ok(true) => return Fate::Answered,
                        Ok(false) => {}
                        Err(refusal) => return Fate::Refused(Box::new(refusal)),
                    }
                }
            }
        }
        Fate::Open
    }

    /// Judges one event; `true` when it was the answer. An unchanged event goes down as it came.
    fn judge_event(&mut self, asking: &Asking, event: SseEvent, out: &mut Vec<u8>, now: Now) -> Result<bool, Refusal> {
        if event.data.is_empty() {
            out.extend_from_slice(&event.raw);
            return Ok(false);
        }
        let SseEvent { raw, data } = event;
        let document = answer::read(&asking.server, data)?;
        match answer::content(&asking.asked, &document, 200, true)? {
            Content::Unknown => Ok(false),
            Content::Notification(name, params) => {
                definition::mark_stale(&asking.server, name);
                if may_hear(asking, name, params) {
                    params.inspect(|params| self.look_through(asking, *params));
                    out.extend_from_slice(&raw);
                }
                Ok(false)
            }
            Content::Error(error) => {
                self.answered_error(error);
                self.look_through(asking, error);
                out.extend_from_slice(&raw);
                Ok(true)
            }
            Content::Result(_) => {
                let judged = self.judge_result(asking, document, now)?;
                if judged.rewritten {
                    let event = SseEvent { raw, data: Vec::new() };
                    out.extend_from_slice(&event.with_data(&judged.bytes));
                } else {
                    out.extend_from_slice(&raw);
                }
                Ok(true)
            }
        }
    }

    /// The server ended its stream. An unfinished event is nobody's (WHATWG: it is discarded).
    pub(super) fn stream_end(&mut self, stream: &Stream, trailers: bool, now: Now) -> Step {
        let mut replies = if owes_answer(&stream.asking) {
            body(self.refusal_event(&stream.asking, &unanswered(), now), !trailers)
        } else {
            self.facts.close(Outcome::Allowed, now.instant);
            body(Vec::new(), !trailers)
        };
        if trailers {
            replies.push(Reply::ResponseTrailers);
        }
        Step::finish(replies)
    }

    /// Half an event was held too long, or the token behind the stream has expired.
    pub(super) fn stream_deadline(&mut self, stream: Box<Stream>, now: Now) -> Step {
        if stream.deadline().is_none_or(|deadline| deadline > now.instant) {
            return self.stream_on(stream, Replies::new());
        }
        self.stream_late(&stream, false, now)
    }

    fn stream_late(&mut self, stream: &Stream, ended: bool, now: Now) -> Step {
        let refusal = if stream.expires.is_some_and(|expires| expires <= now.instant) {
            Refusal::new(Reason::TokenExpired, Rung::Token)
        } else {
            answer::unreadable("an event of the server's stream did not become complete in time")
        };
        self.stream_refuse(&stream.asking, &refusal, Vec::new(), ended, now)
    }

    pub(super) fn stream_refuse(
        &mut self,
        asking: &Asking,
        refusal: &Refusal,
        mut out: Vec<u8>,
        ended: bool,
        now: Now,
    ) -> Step {
        out.extend_from_slice(&self.refusal_event(asking, refusal, now));
        self.stream_over(out, ended, now)
    }

    /// Nothing follows. Where the server has not ended, the stream stays open until Envoy closes it: ending it with OK
    /// would let through unread whatever the server still sends.
    pub(super) fn stream_over(&mut self, out: Vec<u8>, ended: bool, now: Now) -> Step {
        self.facts.close(Outcome::Allowed, now.instant);
        let replies = body(out, true);
        if ended {
            return Step::finish(replies);
        }
        self.state = State::Drained;
        Step::wait(replies)
    }

    fn refusal_event(&mut self, asking: &Asking, refusal: &Refusal, now: Now) -> Vec<u8> {
        let to = Addressee { id: asking.id_raw.as_deref(), method: asking.asked.method.as_str() };
        let (frame, tier) = event_frame(refusal, asking.server.denials, to, self.facts.decision());
        self.facts.refuse(refusal, None, refusal.frame_code(asking.server.denials), now.instant);
        self.facts.rendered(refusal, tier);
        self.facts.close(Outcome::Refused, now.instant);
        let mut event = Vec::with_capacity(frame.len().saturating_add(8));
        sse::event(&mut event, &frame);
        event
    }
}

/// Whether a stream that ends without an answer is a fault: a subscription may end, and who sent no id waits for none.
pub(super) fn owes_answer(asking: &Asking) -> bool {
    asking.asked.method != Method::Listen && asking.asked.id.is_some()
}

/// The refusal of a stream that owes an answer and ended.
pub(super) fn unanswered() -> Refusal {
    answer::unreadable("the server's stream ended without an answer")
}

/// Whether a notification may be heard: of a resource only by those who may read it.
fn may_hear(asking: &Asking, name: &str, params: Option<Value<'_>>) -> bool {
    if name != "notifications/resources/updated" || asking.server.shadow {
        return true;
    }
    let Some(text) = params.and_then(|params| params.get("uri")).and_then(|uri| uri.as_str()) else { return false };
    let held = |capability: &&Capability| asking.caller.principal.permissions.contains(capability.permission);
    asking.server.prices.covering(text).is_ok_and(|covering| !covering.is_empty() && covering.iter().all(held))
}

fn body(bytes: Vec<u8>, ends: bool) -> Replies {
    Replies::one(Reply::ResponseBody { bytes, ends })
}

fn prepend(bytes: Vec<u8>, rest: Replies) -> Replies {
    if bytes.is_empty() {
        return rest;
    }
    let mut replies = body(bytes, false);
    for reply in rest {
        replies.push(reply);
    }
    replies
}
