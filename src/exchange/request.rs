//! The way up: rungs 1 to 16, from the request's headers to the verdict.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::identity::{Caller, IdentityFault};
use crate::ladder::answer::{Asked, overloaded};
use crate::ladder::budget::Share;
use crate::ladder::definition::Standing;
use crate::ladder::forward::{self, HeaderEdits};
use crate::ladder::route::Route;
use crate::ladder::{
    Head, Kind, Server, arguments, body, definition, envelope, gate, headers, listed, message, metadata, method,
    origin, permission, policy, route, scope, token,
};
use crate::message::headers::Headers;
use crate::message::json::Document;
use crate::policy::Label;
use crate::protocol::target::{self, Target};
use crate::protocol::{Id, Message, Method, OwnedTarget};
use crate::refusal::{Reason, Refusal, Rung, StepUp};
use crate::telemetry::record::Outcome;

use super::response::Asking;
use super::{Exchange, Immediate, Next, Now, Replies, Reply, State, Step, Verdict};

/// A request whose identity is being established.
pub(super) struct Pending {
    pub(super) server: Arc<Server>,
    pub(super) head: Head,
}

/// A request whose headers were accepted.
pub(super) struct Accepted {
    pub(super) server: Arc<Server>,
    pub(super) head: Head,
    pub(super) caller: Arc<Caller>,
    /// A missing baseline scope that is told as a frame, once there is an id to tell it to.
    held: Option<Box<Refusal>>,
}

/// A request whose definitions have not been seen lately: the server is being listed.
pub(super) struct Checking {
    pub(super) accepted: Accepted,
    document: Document,
    /// When they were found to be old.
    pub(super) since: Instant,
    /// What the message takes of the bound on held bytes meanwhile, given back with it.
    _share: Share,
}

impl Checking {
    /// The id of the request, as it was sent.
    pub(super) fn id(&self) -> Option<&str> {
        message::id(&self.document).map(Id::raw)
    }

    /// Its method.
    pub(super) fn method(&self) -> &str {
        method_of(&self.document)
    }
}

/// The method of a message that was read; empty when it is none.
pub(super) fn method_of(document: &Document) -> &str {
    Message::read(document.root()).map(|message| message.method).unwrap_or_default()
}

/// How far a message came.
enum Climbed {
    /// To the top.
    Top(Call),
    /// To rung 15, where the server must be listed first.
    Stale,
}

/// The rungs that the head climbs before anybody is asked.
const HEAD: [Rung; 4] = [Rung::Route, Rung::Method, Rung::Headers, Rung::Origin];

/// Whether the server was listed for this request, and how that ended.
type Listed = Option<Result<(), String>>;

/// A call that has climbed what is decided here.
pub(super) struct Call {
    pub(super) method: Method,
    /// The tool or prompt that it runs.
    pub(super) capability: Option<Label>,
    /// Labels of what it reaches, where a gate may ask for them.
    pub(super) reached: Vec<Arc<str>>,
}

impl Exchange {
    /// Rungs 1 to 6, as far as they go without the identity.
    pub(super) fn request_headers(&mut self, mut head: Head, now: Now) -> Step {
        self.facts.source(head.attributes.source.take());
        self.facts.trace_header(&head.headers);
        let server = match route::find(&self.snapshot, &head) {
            Ok(Route::Guarded(server)) => server,
            Ok(Route::Pass) => return self.pass(now),
            Err(refusal) => return self.refuse(&refusal, None, None, "", now),
        };
        self.facts.server(&server.name, server.index);
        if let Some(answer) = metadata::answer(&server, &head) {
            return self.answer_metadata(answer);
        }
        let climbed = method::check(&server, &head)
            .and_then(|()| headers::check(&head))
            .and_then(|()| origin::check(&server, &head))
            .and_then(|()| token::presented(&server, &head).map(|_| ()));
        if let Err(refusal) = climbed {
            self.facts.passed_before(&HEAD, refusal.rung, now.instant);
            return self.refuse(&refusal, Some(&server), None, "", now);
        }
        self.facts.passed(&HEAD, now.instant);
        self.state = State::Identifying(Pending { server, head });
        Step { replies: Replies::new(), next: Next::Identify }
    }

    /// The metadata documents are nobody's call: they are answered and leave no record.
    fn answer_metadata(&mut self, answer: metadata::Answer) -> Step {
        self.facts.no_record();
        Step::finish(Replies::one(Reply::Immediate(Immediate {
            status: answer.status,
            headers: answer.headers,
            body: answer.body,
            details: "portcullis_metadata".to_owned(),
            verdict: self.facts.verdict(),
        })))
    }

    /// Traffic that no server matches, where the configuration lets it pass.
    fn pass(&mut self, now: Now) -> Step {
        self.facts.pass(now.instant);
        self.facts.close(Outcome::Passed, now.instant);
        let verdict = self.facts.verdict();
        Step::finish(Replies::one(Reply::RequestHeaders { edits: HeaderEdits::default(), verdict }))
    }

    /// Rungs 6 to 8, once the identity is known.
    pub(super) fn identified(&mut self, pending: Pending, found: Result<Arc<Caller>, IdentityFault>, now: Now) -> Step {
        let Pending { server, head } = pending;
        let caller = match found {
            Ok(caller) => caller,
            Err(fault) => return self.refuse(&token::refusal(&server, fault), Some(&server), None, "", now),
        };
        self.facts.principal(&caller.principal);
        self.facts.passed(&[Rung::Token], now.instant);
        let mut held = None;
        if let Err(refusal) = scope::baseline(&server, &caller) {
            if server.denials.step_up == StepUp::Challenge || server.kind == Kind::Http {
                return self.refuse(&refusal, Some(&server), None, "", now);
            }
            held = Some(Box::new(refusal));
        } else {
            self.facts.passed(&[Rung::Scope], now.instant);
        }
        if server.kind == Kind::Http {
            if gate::concerns_http(&server) {
                return self.ask_gates_http(server, head, &caller, now);
            }
            return self.allow_plain(&server, &head, now);
        }
        if let Err(refusal) = body::check(&server, &head).and_then(|()| body::modes(&head)) {
            return self.refuse(&refusal, Some(&server), None, "", now);
        }
        self.facts.passed(&[Rung::Body], now.instant);
        self.deadline = now.instant.checked_add(Duration::from_millis(server.limits.body_time));
        self.state = State::AwaitingBody(Accepted { server, head, caller, held });
        let reply = Reply::RequestHeaders { edits: HeaderEdits::default(), verdict: Verdict::none() };
        Step::wait(Replies::one(reply))
    }

    /// Plain HTTP beside MCP: who is calling, and what gates say, was all there was to judge.
    pub(super) fn allow_plain(&mut self, server: &Server, head: &Head, now: Now) -> Step {
        let edits = forward::request(&head.headers, &server.credential, false);
        self.facts.allow(now.instant);
        self.facts.close(Outcome::Allowed, now.instant);
        let verdict = self.facts.verdict();
        Step::finish(Replies::one(Reply::RequestHeaders { edits, verdict }))
    }

    /// The body never came. Envoy accepts an answer that it did not ask for while it waits.
    pub(super) fn body_late(&mut self, accepted: &Accepted, now: Now) -> Step {
        let refusal = Refusal::new(Reason::BodyTimeout, Rung::Body);
        self.refuse(&refusal, Some(&accepted.server), None, "", now)
    }

    /// An answer before any verdict is Envoy's own (its 413, say): passed on as it is, and never a verdict.
    pub(super) fn foreign_reply(&mut self, headers: &Headers, ends: bool, now: Now) -> Step {
        if let Some(status) = headers.text(":status").and_then(|status| status.parse().ok()) {
            self.facts.wire_status(status);
        }
        self.echo(Reply::ResponseHeaders { edits: HeaderEdits::default() }, ends, now)
    }

    /// Passes a piece of an answer on as it came.
    pub(super) fn echo(&mut self, reply: Reply, ends: bool, now: Now) -> Step {
        if ends {
            self.facts.close(Outcome::Aborted, now.instant);
            return Step::finish(Replies::one(reply));
        }
        self.state = State::Echoing;
        Step::wait(Replies::one(reply))
    }

    /// Rungs 9 to 16.
    pub(super) fn request_body(&mut self, accepted: Accepted, body: Vec<u8>, now: Now) -> Step {
        match message::read(&accepted.server, body) {
            Ok(document) => self.judge(accepted, document, None, now.instant, now),
            Err(refusal) => self.refuse(&refusal, Some(&accepted.server), None, "", now),
        }
    }

    /// The server was listed, or could not be. The ladder is climbed anew: it is the same snapshot and the same bytes.
    ///
    /// Definitions are judged as of the time at which the call asked: what matched since then is fresh for this call, also
    /// when the listing took longer than a match is good for. Else a slow server with a short interval would serve nobody.
    pub(super) fn refreshed(&mut self, checking: Checking, listed: Result<(), String>, now: Now) -> Step {
        let Checking { accepted, document, since, _share } = checking;
        self.judge(accepted, document, Some(listed), since, now)
    }

    fn judge(&mut self, accepted: Accepted, document: Document, listed: Listed, asked: Instant, now: Now) -> Step {
        let server = Arc::clone(&accepted.server);
        let message = match message::message(&document) {
            Ok(message) => message,
            Err(refusal) => {
                let id = message::id(&document).map(Id::raw);
                return self.refuse(&refusal, Some(&server), id, "", now);
            }
        };
        // Once: after a listing the record's parent is the message's already, and would be taken for the header's.
        if listed.is_none() {
            self.facts.trace_message(&message);
        }
        match self.climb(&accepted, &message, listed, asked, now.instant) {
            Ok(Climbed::Top(call)) if gate::concerns(&server, &call.reached) => {
                self.ask_gates(accepted, document, call, now)
            }
            Ok(Climbed::Top(call)) => self.forward(&accepted, &message, call, now),
            Ok(Climbed::Stale) => match self.held(&document) {
                Ok(share) => {
                    let since = now.instant;
                    self.state = State::Checking(Checking { accepted, document, since, _share: share });
                    Step { replies: Replies::new(), next: Next::Refresh }
                }
                Err(refusal) => {
                    let id = message.id.map(Id::raw);
                    self.refuse(&refusal, Some(&server), id, message.method, now)
                }
            },
            Err(refusal) => {
                let id = message.id.map(Id::raw);
                self.refuse(&refusal, Some(&server), id, message.method, now)
            }
        }
    }

    /// Room for a message that must wait for someone else: a thousand slow waits must not be a thousand bodies of memory.
    pub(super) fn held(&self, document: &Document) -> Result<Share, Refusal> {
        let mut share = Share::new(self.snapshot.held_answers());
        share.set(document.text().len()).map_err(overloaded)?;
        Ok(share)
    }

    fn climb(
        &mut self,
        accepted: &Accepted,
        message: &Message<'_>,
        listed: Listed,
        asked: Instant,
        now: Instant,
    ) -> Result<Climbed, Refusal> {
        let server = &*accepted.server;
        // After a listing the ladder is climbed anew.
        self.facts.climb();
        self.facts.method(message.method, Method::parse(message.method));
        self.facts.passed(&[Rung::Message], now);
        envelope::check(server, &accepted.head, message)?;
        self.facts.protocol(&accepted.head.headers);
        self.facts.passed(&[Rung::Envelope], now);
        if let Some(held) = &accepted.held {
            return Err(Refusal::clone(held));
        }
        let method = listed::check(message.method)?;
        self.facts.passed(&[Rung::Listed], now);
        let allowed = policy::check(method, &accepted.caller.principal);
        self.judged(server, Rung::Policy, allowed, now)?;
        let target = target::of(method, message.params);
        self.name_capability(server, &target);
        let reached = match permission::check(server, &accepted.caller.principal, &target) {
            Ok(reached) => {
                self.facts.passed(&[Rung::Permission], now);
                reached
            }
            Err(refusal) => {
                self.stands(server, refusal, now)?;
                permission::reached(server, &target)
            }
        };
        let scoped = scope::capabilities(server, &accepted.caller, &reached);
        self.judged(server, Rung::Scope, scoped, now)?;
        match definition::check(server, &target, &reached, asked) {
            Ok(Standing::Stale) => match listed {
                None if server.freshness.is_some() => return Ok(Climbed::Stale),
                listed => {
                    let why = match listed {
                        Some(Ok(())) => "the listing said nothing about the capability".to_owned(),
                        Some(Err(why)) => why,
                        None => "nobody watches the server's definitions".to_owned(),
                    };
                    self.stands(server, definition::unverified(why), now)?;
                }
            },
            Ok(_) => self.facts.passed(&[Rung::Definition], now),
            Err(refusal) => self.stands(server, refusal, now)?,
        }
        if method == Method::ToolsCall {
            for tool in &reached {
                let fit = arguments::check(&server.record, &tool.label, message.params, &accepted.head.headers);
                self.judged(server, Rung::Arguments, fit, now)?;
            }
        }
        let capability = match target {
            Target::Tool(_) | Target::Prompt(_) => reached.first().map(|capability| capability.label.clone()),
            _ => None,
        };
        // Nothing is copied for a server without gates.
        let reached = if server.gates.is_empty() { Vec::new() } else { gate::labels(&reached) };
        Ok(Climbed::Top(Call { method, capability, reached }))
    }

    /// What one of rungs 12 to 16 said, and whether it stands.
    fn judged(&mut self, server: &Server, rung: Rung, said: Result<(), Refusal>, now: Instant) -> Result<(), Refusal> {
        match said {
            Ok(()) => {
                self.facts.passed(&[rung], now);
                Ok(())
            }
            Err(refusal) => self.stands(server, refusal, now),
        }
    }

    /// Notes for the record what the call is about: the price list's label where there is one.
    fn name_capability(&mut self, server: &Server, target: &Target<'_>) {
        let (kind, name, priced) = match target {
            Target::Baseline | Target::Unnamed(_) => return,
            Target::Priceless(what) => return self.facts.unpriced(what),
            Target::Tool(name) => ("tool", name, server.prices.tool(name)),
            Target::Prompt(name) => ("prompt", name, server.prices.prompt(name)),
            Target::Resources(uris) => {
                let Some(uri) = uris.first() else { return };
                ("resource", uri, server.prices.covering(uri).ok().and_then(|covering| covering.first().copied()))
            }
        };
        match priced {
            Some(capability) => self.facts.capability(&capability.text),
            None => self.facts.unpriced(&format!("{kind}:{name}")),
        }
    }

    /// The verdict: the call goes to the server.
    pub(super) fn forward(&mut self, accepted: &Accepted, message: &Message<'_>, call: Call, now: Now) -> Step {
        let Call { method, capability, .. } = call;
        let server = &accepted.server;
        let ours = method.listed_member().is_some() || method == Method::Discover;
        let read = !method.is_notification() && (server.screen.is_some() || ours);
        let edits = forward::request(&accepted.head.headers, &server.credential, read);
        self.facts.allow(now.instant);
        let replies = Replies::one(Reply::RequestBody { edits, verdict: self.facts.verdict() });
        if !read {
            self.facts.close(Outcome::Allowed, now.instant);
            return Step::finish(replies);
        }
        self.deadline = now.instant.checked_add(Duration::from_millis(server.limits.wait_time));
        self.state = State::AwaitingAnswer(Asking {
            server: Arc::clone(server),
            caller: Arc::clone(&accepted.caller),
            capability,
            target: OwnedTarget::of(&target::of(method, message.params)),
            asked: Asked { method, id: message.id.map(Id::key) },
            marks: method.listed_member().and_then(|_| server.freshness.as_ref()).map(|own| own.marks()),
            id_raw: message.id.map(|id| id.raw().to_owned()),
        });
        Step::wait(replies)
    }
}
