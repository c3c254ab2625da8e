//! What befalls an exchange that is open while the process goes on without it: a reload, the end of the process.
//!
//! One request is judged by one snapshot (ladder.md §5.3). Open streams are the exception: they may last for days, so a
//! reload judges them again, by what a reload can change about them: whether the server is still guarded and its identity
//! rules the same, whether the caller holds what the call costs (rungs 7, 12, 13, 14). What went down stays; a stream that
//! may not go on ends at an event border, with one more event that says why.

use std::sync::Arc;

use crate::identity::Caller;
use crate::ladder::{Kind, Server, Snapshot, permission, policy, scope};
use crate::message::sse;
use crate::protocol::{Method, OwnedTarget};
use crate::refusal::{Class, Reason, Refusal, Rung};
use crate::telemetry::audit::Outcome;

use super::response::{Asking, Held};
use super::streaming::Stream;
use super::{Exchange, Now, State, Step};

/// Seconds after which another process, or this one started anew, can answer.
const RETRY_AFTER: u32 = 1;

impl Exchange {
    /// Whether an answer's events are passing: then a reload is an event ([`super::Event::Reloaded`]), and so is the
    /// beginning of a drain ([`super::Event::Draining`]).
    #[must_use]
    pub fn is_streaming(&self) -> bool {
        matches!(self.state, State::Streaming(_))
    }

    /// The configuration changed under an open stream.
    pub(super) fn stream_again(&mut self, mut stream: Box<Stream>, snapshot: Arc<Snapshot>, now: Now) -> Step {
        let judged = again(stream.asking(), &snapshot, self.facts.spared());
        self.snapshot = snapshot;
        match judged {
            Ok((server, caller)) => {
                self.facts.server(&server.name, server.index);
                stream.go_on(server, caller);
                self.stream_on(stream, super::Replies::new())
            }
            Err(refusal) => self.stream_refuse(stream.asking(), &refusal, Vec::new(), false, now),
        }
    }

    /// The process is about to end. A subscription would never end by itself, so it ends now, as a server ends one: its
    /// client subscribes again, elsewhere. A call that runs may finish.
    pub(super) fn stream_drains(&mut self, stream: Box<Stream>, now: Now) -> Step {
        if stream.asking().asked.method == Method::Listen {
            return self.subscription_over(&stream, now);
        }
        self.stream_on(stream, super::Replies::new())
    }

    /// The graceful end of a subscription (MCP 2026-07-28, subscriptions: the result that only a closing server sends).
    fn subscription_over(&mut self, stream: &Stream, now: Now) -> Step {
        let mut out = Vec::new();
        if let Some(id) = &stream.asking().id_raw {
            let result = format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
            );
            sse::event(&mut out, result.as_bytes());
        }
        self.facts.note("ended because this process stops");
        self.facts.close(Outcome::Allowed, now.instant);
        self.stream_over(out, false, now)
    }

    /// The process ends now. Whatever is not decided is refused; whatever was decided and has not answered is answered with
    /// a refusal, or ends with one.
    pub(super) fn stop(&mut self, state: &State, now: Now) -> Step {
        let refusal = stopping();
        match state {
            State::Streaming(stream) if stream.asking().asked.method == Method::Listen => {
                self.subscription_over(stream, now)
            }
            State::Streaming(stream) => self.stream_refuse(stream.asking(), &refusal, Vec::new(), false, now),
            _ if self.committed => {
                self.facts.close(Outcome::Aborted, now.instant);
                Step::fail()
            }
            State::Drained | State::Done | State::Echoing => Step::fail(),
            State::AwaitingAnswer(asking) | State::Holding(Held { asking, .. }) => {
                self.refuse_answer(&refusal, asking, now)
            }
            State::Checking(checking) => {
                let server = Arc::clone(&checking.accepted.server);
                self.refuse(&refusal, Some(&server), checking.id(), checking.method(), now)
            }
            State::Gated(gated) => {
                let server = Arc::clone(&gated.server);
                self.refuse(&refusal, Some(&server), gated.id(), gated.method(), now)
            }
            State::AwaitingBody(accepted) => self.refuse(&refusal, Some(&accepted.server), None, "", now),
            State::Identifying(pending) => self.refuse(&refusal, Some(&pending.server), None, "", now),
            State::Fresh => self.refuse(&refusal, None, None, "", now),
        }
    }
}

/// `overloaded`: there is nobody left to decide or to read an answer.
fn stopping() -> Refusal {
    let mut refusal = Refusal::new(Reason::Overloaded, Rung::Service)
        .message("The proxy that authorizes calls is being stopped. Try again in a moment.")
        .log("this process stops, and the time for open exchanges is over");
    refusal.retry_after = Some(RETRY_AFTER);
    refusal
}

/// The server and the caller as the new configuration has them, when the call would be allowed by it. `spared`: a refusal of
/// it was recorded only.
fn again(asking: &Asking, snapshot: &Snapshot, spared: bool) -> Result<(Arc<Server>, Arc<Caller>), Refusal> {
    let named = |server: &&Arc<Server>| server.name == asking.server.name && server.kind == Kind::Mcp;
    let Some(server) = snapshot.servers().iter().find(named) else {
        return Err(Refusal::new(Reason::RouteUnmatched, Rung::Route).log("a reload took the server away"));
    };
    let Some(caller) = server.authenticator.again(&asking.caller, &asking.server.authenticator) else {
        // The token is not kept, so it cannot be verified by the new rules.
        return Err(Refusal::new(Reason::TokenInvalid, Rung::Token)
            .message("How callers are verified was changed. Send the request again.")
            .log("a reload changed the server's identity rules"));
    };
    let judged = scope::baseline(server, &caller).and_then(|()| permitted(server, &caller, asking));
    match judged {
        Err(refusal) if server.shadow && (spared || refusal.reason.class() == Class::Policy) => {}
        judged => judged?,
    }
    Ok((Arc::clone(server), caller))
}

fn permitted(server: &Server, caller: &Caller, asking: &Asking) -> Result<(), Refusal> {
    policy::check(asking.asked.method, &caller.principal)?;
    let target = asking.target.as_ref().map(OwnedTarget::borrow).unwrap_or_default();
    let reached = permission::check(server, &caller.principal, &target)?;
    scope::capabilities(server, caller, &reached)
}
