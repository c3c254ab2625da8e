//! The way back: rungs 18 to 20 on an answer that is one JSON document.
//!
//! Its headers are withheld until the last byte is here and judged, so that a refusal can still have its own status.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::identity::Caller;
use crate::ladder::answer::{self, Asked, Content, Form};
use crate::ladder::forward::{self, HeaderEdits};
use crate::ladder::{Server, discover, listing};
use crate::message::headers::Headers;
use crate::message::json::Document;
use crate::protocol::Method;
use crate::refusal::Refusal;
use crate::telemetry::audit::Outcome;

use super::{Exchange, Now, Replies, Reply, State, Step, streaming};

/// A call that was forwarded.
pub(super) struct Asking {
    pub(super) server: Arc<Server>,
    pub(super) caller: Arc<Caller>,
    pub(super) asked: Asked,
    /// The caller's id, byte for byte.
    pub(super) id_raw: Option<String>,
}

/// A JSON answer of which not all is here.
pub(super) struct Held {
    pub(super) asking: Asking,
    status: u16,
    bytes: Vec<u8>,
    deadline: Option<Instant>,
}

/// An answer that was judged.
pub(super) struct Judged {
    /// The bytes to send down.
    pub(super) bytes: Vec<u8>,
    /// Whether they depend on who asked.
    pub(super) private: bool,
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
            Form::Stream => self.stream_begin(streaming::Stream::new(asking, now)),
            Form::Json => {
                let deadline = now.instant.checked_add(Duration::from_millis(asking.server.limits.answer_time));
                let held = Held { asking, status, bytes: Vec::new(), deadline };
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
    pub(super) fn answer_piece(&mut self, mut held: Held, bytes: Vec<u8>, ends: bool, now: Now) -> Step {
        // Pieces that never pause must not outrun the deadline.
        if held.deadline.is_some_and(|deadline| deadline <= now.instant) {
            return self.answer_late(&held, now);
        }
        let cap = answer::cap(&held.asking.server, held.asking.asked.method);
        if held.bytes.len().saturating_add(bytes.len()) > cap {
            return self.refuse_answer(&answer::too_large(), &held.asking, now);
        }
        if held.bytes.is_empty() {
            held.bytes = bytes;
        } else {
            held.bytes.extend_from_slice(&bytes);
        }
        if ends { self.answer_complete(held, false, now) } else { self.hold(held) }
    }

    /// The last byte is here: judge, then release head and body together.
    pub(super) fn answer_complete(&mut self, held: Held, trailers: bool, now: Now) -> Step {
        let Held { asking, status, bytes, .. } = held;
        // Nobody waits for an answer, and there is none.
        if asking.asked.id.is_none() && bytes.is_empty() && (200..300).contains(&status) {
            return self.release(Judged { bytes, private: false }, trailers, now);
        }
        let judged = answer::read(&asking.server, bytes).and_then(|document| {
            let content = answer::content(&asking.asked, &document, status, false)?;
            if !matches!(content, Content::Result(_)) {
                return Ok(Judged { bytes: document.into_bytes(), private: false });
            }
            self.judge_result(&asking, document)
        });
        match judged {
            Ok(judged) => self.release(judged, trailers, now),
            Err(refusal) => self.refuse_answer(&refusal, &asking, now),
        }
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

    /// Rungs 19 and 20 on the result of the call.
    pub(super) fn judge_result(&mut self, asking: &Asking, document: Document) -> Result<Judged, Refusal> {
        let Some(result) = document.root().get("result") else {
            return Ok(Judged { bytes: document.into_bytes(), private: false });
        };
        match asking.asked.method {
            method if method.listed_member().is_some() => {
                let principal = &asking.caller.principal;
                let filtered = listing::filter(&asking.server, principal, method, &document, result)?;
                self.facts.hidden(filtered.hidden);
                Ok(Judged { bytes: filtered.bytes, private: true })
            }
            Method::Discover => Ok(match discover::hold(&asking.server, &document, result)? {
                Some(bytes) => Judged { bytes, private: true },
                None => Judged { bytes: document.into_bytes(), private: false },
            }),
            _ => Ok(Judged { bytes: document.into_bytes(), private: false }),
        }
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
    fn refuse_answer(&mut self, refusal: &Refusal, asking: &Asking, now: Now) -> Step {
        let method = asking.asked.method.as_str();
        self.refuse(refusal, Some(&asking.server), asking.id_raw.as_deref(), method, now)
    }
}
