//! The way back: rungs 18 to 21 on an answer that is one JSON document.
//!
//! Its headers are withheld until the last byte is here and judged, so that a refusal can still have its own status.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use smallvec::SmallVec;

use crate::identity::Caller;
use crate::ladder::answer::{self, Asked, Content, Form};
use crate::ladder::budget::{HeldAnswers, Share};
use crate::ladder::forward::{self, HeaderEdits};
use crate::ladder::{Server, discover, listing, screen};
use crate::message::headers::Headers;
use crate::message::json::{Document, Value};
use crate::policy::Label;
use crate::protocol::{Method, OwnedTarget};
use crate::refusal::Refusal;
use crate::telemetry::record::Outcome;
use crate::upstream::book::Marks;

use super::{Exchange, Now, Replies, Reply, State, Step, streaming};

/// A call that was forwarded.
pub(super) struct Asking {
    pub(super) server: Arc<Server>,
    pub(super) caller: Arc<Caller>,
    /// The tool or prompt that was called.
    pub(super) capability: Option<Label>,
    /// What the call reaches; `None` when nothing of its own.
    pub(super) target: Option<OwnedTarget>,
    pub(super) asked: Asked,
    /// Of a listing: how often what the server offers had been marked stale when it was asked for.
    pub(super) marks: Option<Marks>,
    /// The caller's id, byte for byte.
    pub(super) id_raw: Option<String>,
}

/// A JSON answer of which not all is here.
pub(super) struct Held {
    pub(super) asking: Asking,
    status: u16,
    body: Pieces,
    deadline: Option<Instant>,
}

/// Most bytes of a piece that is copied when it comes: one that stands where it was received keeps what was received with it,
/// and a server may send its answer byte by byte.
const SMALL: usize = 4096;

/// A body in the pieces in which it came. Those that are not small stand where they were received, and become one in one go, so
/// that no byte of them is copied twice.
struct Pieces {
    parts: SmallVec<[Bytes; 1]>,
    /// Small pieces behind the last part.
    small: Vec<u8>,
    length: usize,
    share: Share,
}

impl Pieces {
    fn new(bound: &Arc<HeldAnswers>) -> Self {
        Self { parts: SmallVec::new(), small: Vec::new(), length: 0, share: Share::new(bound) }
    }

    fn push(&mut self, bytes: Bytes, cap: usize) -> Result<(), Refusal> {
        self.length = self.length.saturating_add(bytes.len());
        if self.length > cap {
            return Err(answer::too_large());
        }
        self.share.set(self.length).map_err(answer::overloaded)?;
        if bytes.len() <= SMALL {
            self.small.extend_from_slice(&bytes);
        } else {
            self.close_small();
            self.parts.push(bytes);
        }
        Ok(())
    }

    fn close_small(&mut self) {
        if !self.small.is_empty() {
            self.parts.push(std::mem::take(&mut self.small).into());
        }
    }

    fn join(&mut self) -> Vec<u8> {
        if self.parts.is_empty() {
            return std::mem::take(&mut self.small);
        }
        self.close_small();
        if self.parts.len() == 1 {
            return self.parts.pop().unwrap_or_default().into();
        }
        let mut whole = Vec::with_capacity(self.length);
        self.parts.drain(..).for_each(|piece| whole.extend_from_slice(&piece));
        whole
    }
}

/// An answer that was judged.
pub(super) struct Judged {
    /// The bytes to send down.
    pub(super) bytes: Vec<u8>,
    /// Whether they are others than those that came.
    pub(super) rewritten: bool,
    /// Whether they depend on who asked: nobody may cache them for someone else.
    pub(super) private: bool,
}

impl Judged {
    fn as_it_came(document: Document) -> Self {
        Self { bytes: document.into_bytes(), rewritten: false, private: false }
    }

    fn empty() -> Self {
        Self { bytes: Vec::new(), rewritten: false, private: false }
    }
}

impl Exchange {
    /// The head of the answer.
    pub(super) fn answer_head(&mut self, asking: Asking, headers: &Headers, ends: bool, now: Now) -> Step {
        let form = match answer::head(&asking.server, &asking.asked, headers, ends) {
            Ok(form) => form,
            Err(refusal) => return self.refuse_answer(&refusal, &asking, now),
        };
        let status = headers.text(":status").and_then(|status| status.parse().ok()).unwrap_or(0);
        self.facts.wire_status(status);
        let plain = Reply::ResponseHeaders { edits: HeaderEdits::default() };
        match form {
            Form::Untouched | Form::Empty => self.echo(plain, ends, now),
            Form::Stream if ends && streaming::owes_answer(&asking) => {
                self.refuse_answer(&streaming::unanswered(), &asking, now)
            }
            Form::Stream if ends => self.echo(plain, ends, now),
            Form::Stream => {
                let stream = streaming::Stream::new(asking, self.snapshot.held_answers(), now);
                self.stream_begin(stream)
            }
            Form::Json => {
                let deadline = now.instant.checked_add(Duration::from_millis(asking.server.limits.answer_time));
                let held = Held { asking, status, body: Pieces::new(self.snapshot.held_answers()), deadline };
                if ends { self.answer_complete(held, false, now) } else { self.hold(held) }
            }
        }
    }

    fn hold(&mut self, held: Held) -> Step {
        self.deadline = held.deadline;
        self.state = State::Holding(held);
        Step::wait(Replies::new())
    }

    /// A piece of a held answer.
    pub(super) fn answer_piece(&mut self, mut held: Held, bytes: Bytes, ends: bool, now: Now) -> Step {
        // Pieces that never pause must not outrun the deadline.
        if held.deadline.is_some_and(|deadline| deadline <= now.instant) {
            return self.answer_late(&held, now);
        }
        let cap = answer::cap(&held.asking.server, held.asking.asked.method);
        if let Err(refusal) = held.body.push(bytes, cap) {
            return self.refuse_answer(&refusal, &held.asking, now);
        }
        if ends { self.answer_complete(held, false, now) } else { self.hold(held) }
    }

    /// The last byte is here: judge, then release head and body together.
    pub(super) fn answer_complete(&mut self, held: Held, trailers: bool, now: Now) -> Step {
        // Its share of the bound on held answers is given back when all of it is on its way.
        let Held { asking, status, mut body, .. } = held;
        let bytes = body.join();
        // Nobody waits for an answer, and there is none.
        if asking.asked.id.is_none() && bytes.is_empty() && (200..300).contains(&status) {
            return self.release(Judged::empty(), trailers, now);
        }
        let judged = answer::read(&asking.server, bytes).and_then(|document| {
            match answer::content(&asking.asked, &document, status, false)? {
                Content::Result(_) => self.judge_result(&asking, document, now),
                Content::Error(error) if self.is_envoys_own(error) => Err(answer::unreachable()),
                Content::Error(error) => {
                    self.answered_error(error);
                    self.look_through(&asking, error);
                    Ok(Judged::as_it_came(document))
                }
                Content::Notification(..) | Content::Unknown => Ok(Judged::as_it_came(document)),
            }
        });
        match judged {
            Ok(judged) => self.release(judged, trailers, now),
            Err(refusal) => self.refuse_answer(&refusal, &asking, now),
        }
    }

    /// Whether an error is Envoy's own answer to this call, in place of the server's: it comes by like any other, and the
    /// shipped `local_reply_config` gives it the form of JSON-RPC and this decision's id, which no server is told.
    fn is_envoys_own(&self, error: Value<'_>) -> bool {
        let decision = error.get("data").and_then(|data| data.get("decision")).and_then(|id| id.as_str());
        decision == Some(self.facts.decision())
    }

    /// Head and body go down together.
    fn release(&mut self, judged: Judged, trailers: bool, now: Now) -> Step {
        self.facts.close(Outcome::Allowed, now.instant);
        let edits = if judged.private { forward::private_answer() } else { HeaderEdits::default() };
        let mut replies = Replies::one(Reply::ResponseHeaders { edits });
        replies.push(Reply::ResponseBody { bytes: judged.bytes, ends: !trailers });
        if trailers {
            replies.push(Reply::ResponseTrailers);
        }
        Step::finish(replies)
    }

    /// Rungs 19 to 21 on the result of the call. In shadow mode what they would do is recorded, and the answer stays.
    pub(super) fn judge_result(&mut self, asking: &Asking, document: Document, now: Now) -> Result<Judged, Refusal> {
        if !asking.server.shadow {
            return self.screened_result(asking, document, now);
        }
        let (bytes, hidden) = (document.text().as_bytes().to_vec(), self.facts.entries_hidden());
        let judged = self.screened_result(asking, document, now)?;
        // A listing is rewritten for its caching alone, too.
        let listing = asking.asked.method.listed_member().is_some();
        let altered = if listing { self.facts.entries_hidden() > hidden } else { judged.rewritten };
        if altered {
            self.facts.spare_answer();
        }
        Ok(Judged { bytes, rewritten: false, private: false })
    }

    fn screened_result(&mut self, asking: &Asking, document: Document, now: Now) -> Result<Judged, Refusal> {
        let Some(result) = document.root().get("result") else { return Ok(Judged::as_it_came(document)) };
        let (server, method) = (&asking.server, asking.asked.method);
        if method == Method::ToolsCall && result.get("isError").is_some_and(|failed| failed.raw() == "true") {
            self.facts.tool_error();
        }
        match (method, &server.screen) {
            (method, _) if method.listed_member().is_some() => {
                let (principal, marks) = (&asking.caller.principal, asking.marks.as_ref());
                let filtered = listing::filter(server, principal, method, &document, result, now.instant, marks)?;
                self.facts.hidden(filtered.hidden);
                let rewritten = filtered.bytes != document.text().as_bytes();
                Ok(Judged { bytes: filtered.bytes, rewritten, private: true })
            }
            (Method::Discover, _) => Ok(match discover::hold(server, &document, result)? {
                Some(bytes) => Judged { bytes, rewritten: true, private: true },
                None => Judged::as_it_came(document),
            }),
            (method, Some(detectors)) => {
                let capability = asking.capability.as_ref();
                let schema = capability.and_then(|label| server.record.entry(label)?.output());
                let answer = screen::result(detectors, method, capability, schema, document)?;
                self.facts.screened(answer.screened);
                let private = answer.rewritten || method == Method::ResourcesRead;
                Ok(Judged { bytes: answer.bytes, rewritten: answer.rewritten, private })
            }
            (_, None) => Ok(Judged::as_it_came(document)),
        }
    }

    /// Rung 21 on what has no place for a notice: an error, the params of a notification.
    pub(super) fn look_through(&mut self, asking: &Asking, value: Value<'_>) {
        if let Some(detectors) = &asking.server.screen {
            self.facts.screened(screen::text(detectors, value));
        }
    }

    /// Notes the code of an error that the server answers.
    pub(super) fn answered_error(&mut self, error: Value<'_>) {
        self.facts.answered_error(error.get("code").and_then(|code| code.raw().parse().ok()));
    }

    /// The server did not begin to answer. Envoy takes an answer that it did not ask for while nothing went down.
    pub(super) fn answer_never(&mut self, asking: &Asking, now: Now) -> Step {
        self.refuse_answer(&answer::unreadable("the server did not begin its answer in time"), asking, now)
    }

    /// The answer did not become whole in time.
    pub(super) fn answer_late(&mut self, held: &Held, now: Now) -> Step {
        let refusal = answer::unreadable("the server's answer did not become complete in time");
        self.refuse_answer(&refusal, &held.asking, now)
    }

    /// Nothing of the answer went down yet: a refusal takes its place.
    pub(super) fn refuse_answer(&mut self, refusal: &Refusal, asking: &Asking, now: Now) -> Step {
        let method = asking.asked.method.as_str();
        self.refuse(refusal, Some(&asking.server), asking.id_raw.as_deref(), method, now)
    }
}
