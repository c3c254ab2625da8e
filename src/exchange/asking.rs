//! Rung 17 and shadow mode: a request that waits for the opinion of gates, and refusals that are recorded only.

use std::sync::Arc;
use std::time::Instant;

use crate::gates::{Decision, Instead, Question, Ruling};
use crate::identity::Caller;
use crate::ladder::answer::{self, Asked, Content};
use crate::ladder::budget::Share;
use crate::ladder::{Head, Server, gate, message};
use crate::message::json::Document;
use crate::protocol::{Id, Message};
use crate::refusal::{Class, Reason, Refusal, Rung};
use crate::telemetry::record::Action;

use super::request::{Accepted, Call, method_of};
use super::response::Asking;
use super::{Exchange, Immediate, Next, Now, Replies, Reply, State, Step};

/// A request that climbed rungs 1 to 16 and waits for its gates.
pub(super) struct Gated {
    pub(super) server: Arc<Server>,
    pub(super) question: Arc<Question>,
    what: Waiting,
}

/// What waits.
enum Waiting {
    /// An MCP call.
    Call {
        accepted: Accepted,
        document: Arc<Document>,
        call: Call,
        /// What the message takes of the bound on held bytes meanwhile.
        _share: Share,
    },
    /// Plain HTTP.
    Http { head: Head },
}

impl Gated {
    /// The id of the message, byte for byte; `None` for notifications and plain HTTP.
    pub(super) fn id(&self) -> Option<&str> {
        self.document().and_then(message::id).map(Id::raw)
    }

    /// Its method; empty for plain HTTP.
    pub(super) fn method(&self) -> &str {
        self.document().map(method_of).unwrap_or_default()
    }

    fn document(&self) -> Option<&Document> {
        match &self.what {
            Waiting::Call { document, .. } => Some(document),
            Waiting::Http { .. } => None,
        }
    }
}

impl Exchange {
    /// Holds an MCP call until its gates have spoken.
    pub(super) fn ask_gates(&mut self, accepted: Accepted, document: Document, call: Call, now: Now) -> Step {
        let server = Arc::clone(&accepted.server);
        let share = match self.held(&document) {
            Ok(share) => share,
            Err(refusal) => {
                let id = message::id(&document).map(Id::raw);
                return self.refuse(&refusal, Some(&server), id, call.method.as_str(), now);
            }
        };
        let document = Arc::new(document);
        let decision = self.facts.decision().to_owned();
        let (head, caller) = (&accepted.head, &accepted.caller);
        let reached = call.reached.clone();
        let question = gate::question(&server, head, caller, &decision, call.method.as_str(), reached, &document);
        self.hold_for_gates(server, question, Waiting::Call { accepted, document, call, _share: share }, now)
    }

    /// Holds a plain HTTP request until its gates have spoken.
    pub(super) fn ask_gates_http(&mut self, server: Arc<Server>, head: Head, caller: &Caller, now: Now) -> Step {
        let question = gate::question_http(&server, &head, caller, self.facts.decision());
        self.hold_for_gates(server, question, Waiting::Http { head }, now)
    }

    /// Envoy's timer has run since its message came, while keys were fetched or the server was listed. Where what is left
    /// of it may not suffice for the gates, Envoy is asked for more, if the configuration says that it grants it.
    fn hold_for_gates(&mut self, server: Arc<Server>, question: Question, what: Waiting, now: Now) -> Step {
        let waited = now.instant.saturating_duration_since(self.heard);
        let more = self.snapshot.envoy().more(waited, server.gates.patience(&question));
        self.state = State::Gated(Box::new(Gated { server, question: Arc::new(question), what }));
        let replies = more.map_or_else(Replies::new, |time| Replies::one(Reply::MoreTime(time)));
        Step { replies, next: Next::Ask }
    }

    /// The gates have spoken.
    pub(super) fn opinion(&mut self, gated: Gated, ruling: Ruling, now: Now) -> Step {
        let Gated { server, what, .. } = gated;
        let Ruling { decision, shadowed, notes, mut asked } = ruling;
        if server.shadow {
            asked.iter_mut().filter(|one| one.action == Action::Deny).for_each(|one| one.action = Action::Audit);
        }
        self.facts.asked(asked);
        for note in notes {
            self.facts.note(&note);
        }
        // The order of the configuration is lost between the two kinds; what is enforced comes first.
        let mut instead = None;
        if let Decision::Object(objection) = decision {
            if server.shadow {
                self.facts.spare(&gate::refusal(&objection), now.instant);
            } else {
                instead = Some(objection);
            }
        }
        for objection in &shadowed {
            self.facts.spare(&gate::refusal(objection), now.instant);
        }
        let Some(objection) = instead else {
            self.facts.passed(&[Rung::Gate], now.instant);
            return self.let_through(&server, what, now);
        };
        match (&objection.what, what) {
            (Instead::Answered(result), Waiting::Call { accepted, document, call, .. }) => {
                self.answered_by_gate(accepted, &document, call, (&objection.gate, result), now)
            }
            (Instead::Answered(_), Waiting::Http { .. }) => {
                self.refuse(&gate::pointless_answer(&objection.gate), Some(&server), None, "", now)
            }
            (_, Waiting::Http { .. }) => self.refuse(&gate::refusal(&objection), Some(&server), None, "", now),
            (_, Waiting::Call { document, call, .. }) => {
                let id = message::id(&document).map(Id::raw);
                self.refuse(&gate::refusal(&objection), Some(&server), id, call.method.as_str(), now)
            }
        }
    }

    fn let_through(&mut self, server: &Server, what: Waiting, now: Now) -> Step {
        match what {
            Waiting::Http { head } => self.allow_plain(server, &head, now),
            Waiting::Call { accepted, document, call, .. } => match Message::read(document.root()) {
                Ok(message) => self.forward(&accepted, &message, call, now),
                Err(_) => self.refuse(&Refusal::new(Reason::Internal, Rung::Service), Some(server), None, "", now),
            },
        }
    }

    /// A gate's answer is read and screened as an upstream's would be, then sent in its place.
    fn answered_by_gate(
        &mut self,
        accepted: Accepted,
        document: &Document,
        call: Call,
        (name, result): (&Arc<str>, &str),
        now: Now,
    ) -> Step {
        let server = Arc::clone(&accepted.server);
        let Call { method, capability, .. } = call;
        let Some(id) = message::id(document) else {
            return self.refuse(&gate::pointless_answer(name), Some(&server), None, method.as_str(), now);
        };
        let asking = Asking {
            server: Arc::clone(&server),
            caller: accepted.caller,
            capability,
            target: None,
            asked: Asked { method, id: Some(id.key()) },
            marks: None,
            id_raw: Some(id.raw().to_owned()),
        };
        let judged = answer::read(&server, gate::answer(id, result)).and_then(|document| {
            match answer::content(&asking.asked, &document, 200, false)? {
                Content::Result(_) => self.judge_result(&asking, document, now),
                _ => Err(answer::unreadable("the gate's answer is no result")),
            }
        });
        match judged {
            Err(refusal) => {
                let refusal = gate::unfit_answer(name, refusal);
                self.refuse(&refusal, Some(&server), Some(id.raw()), method.as_str(), now)
            }
            Ok(judged) => {
                self.state = State::Done;
                self.facts.answered(name, now.instant);
                Step::finish(Replies::one(Reply::Immediate(Immediate {
                    status: 200,
                    headers: vec![("content-type", "application/json".into()), ("cache-control", "no-store".into())],
                    body: judged.bytes,
                    details: "portcullis_gate.answered".to_owned(),
                    verdict: self.facts.verdict(),
                })))
            }
        }
    }

    /// Whether a refusal of rungs 12 to 17 stands. On a server in shadow mode one of the policy class is recorded and the
    /// call goes on; after the first, so is what follows from it, save a routing header that lies.
    pub(super) fn stands(&mut self, server: &Server, refusal: Refusal, now: Instant) -> Result<(), Refusal> {
        let policy = refusal.reason.class() == Class::Policy;
        let follows = self.facts.spared() && refusal.reason != Reason::HeadersMismatch;
        if server.shadow && (policy || follows) {
            self.facts.spare(&refusal, now);
            return Ok(());
        }
        Err(refusal)
    }
}
