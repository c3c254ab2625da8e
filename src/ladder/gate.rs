//! Rung 17: an external gate does not object.
//!
//! Asking is the front door's; this rung says whom to ask about what, and words the outcome.

use std::sync::Arc;

use crate::gates::{Asker, Denial, HttpCall, Instead, Objection, Question};
use crate::identity::Caller;
use crate::message::json::Document;
use crate::policy::Capability;
use crate::protocol::rpc::Id;
use crate::refusal::{GateMark, Reason, Refusal, Rung};

use super::{Head, Server};

/// Whether some gate is to be asked about a call that reaches these capabilities: one that reaches none has no price,
/// and none of the gates' business.
#[must_use]
pub fn concerns(server: &Server, reached: &[Arc<str>]) -> bool {
    !reached.is_empty() && server.gates.concern(&reached.iter().map(|label| &**label))
}

/// Whether some gate is to be asked about plain HTTP.
#[must_use]
pub fn concerns_http(server: &Server) -> bool {
    server.gates.concern(&std::iter::empty())
}

/// Labels of what a call reaches, for gates.
#[must_use]
pub fn labels(reached: &[&Capability]) -> Vec<Arc<str>> {
    reached.iter().map(|capability| Arc::clone(&capability.text)).collect()
}

/// What the gates are asked about an MCP call.
#[must_use]
pub fn question(
    server: &Server,
    head: &Head,
    caller: &Caller,
    decision: &str,
    method: &str,
    reached: Vec<Arc<str>>,
    message: &Arc<Document>,
) -> Question {
    Question {
        method: method.to_owned(),
        capabilities: reached,
        message: Some(Arc::clone(message)),
        ..common(server, head, caller, decision)
    }
}

/// What the gates are asked about plain HTTP.
#[must_use]
pub fn question_http(server: &Server, head: &Head, caller: &Caller, decision: &str) -> Question {
    let path = head.headers.text(":path").unwrap_or_default().to_owned();
    Question {
        method: head.method().to_owned(),
        http: Some(HttpCall { authority: head.authority(), path }),
        ..common(server, head, caller, decision)
    }
}

fn common(server: &Server, head: &Head, caller: &Caller, decision: &str) -> Question {
    let value = |name: &Arc<str>| {
        let there = head.headers.has(name);
        there.then(|| (Arc::clone(name), head.headers.text(name).map(str::to_owned)))
    };
    Question {
        decision: decision.to_owned(),
        server: Arc::clone(&server.name),
        principal: Asker::new(caller, &server.policy),
        method: String::new(),
        capabilities: Vec::new(),
        message: None,
        http: None,
        headers: server.gates.headers().iter().filter_map(value).collect(),
        claims: Arc::clone(&caller.claims.document),
    }
}

/// The refusal that an objection is; for an answer, what would have been refused had it been enforced as one.
#[must_use]
pub fn refusal(objection: &Objection) -> Refusal {
    let mark = |code, details, challenge| {
        Some(Box::new(GateMark { name: Arc::clone(&objection.gate), code, details, challenge }))
    };
    match &objection.what {
        Instead::Denied(denial) => {
            let Denial { code, text, description, details, retry_after, challenge, log } = Denial::clone(denial);
            let mut refusal = Refusal::new(Reason::GateDenied, Rung::Gate);
            if let Some(text) = text {
                refusal.message = text.into();
            }
            refusal.description = description.map(Into::into);
            refusal.retry_after = retry_after;
            refusal.log = log;
            refusal.gate = mark(code, details, challenge);
            refusal
        }
        Instead::Unavailable(failure) => {
            let mut refusal = Refusal::new(Reason::GateUnavailable, Rung::Gate).log(failure.why.clone());
            refusal.gate = mark(failure.code.clone(), None, None);
            refusal
        }
        Instead::Answered(_) => {
            let mut refusal = Refusal::new(Reason::GateAnswered, Rung::Gate);
            refusal.gate = mark(None, None, None);
            refusal
        }
    }
}

/// The refusal of a gate that answers where nobody waits for an answer.
#[must_use]
pub fn pointless_answer(gate: &Arc<str>) -> Refusal {
    let mut refusal =
        Refusal::new(Reason::GateUnavailable, Rung::Gate).log("it answered in the place of a call that has no answer");
    refusal.gate = Some(Box::new(GateMark { name: Arc::clone(gate), code: None, details: None, challenge: None }));
    refusal
}

/// A refusal of what a gate answered, with the gate's name: it is not the server that erred.
#[must_use]
pub fn unfit_answer(gate: &Arc<str>, mut refusal: Refusal) -> Refusal {
    let why = refusal.log.take().unwrap_or_else(|| refusal.message.clone().into_owned());
    refusal.gate = Some(Box::new(GateMark { name: Arc::clone(gate), code: None, details: None, challenge: None }));
    refusal.log(format!("what gate {gate} answered: {why}"))
}

/// A gate's result as the JSON-RPC answer to the request, under its id byte for byte.
#[must_use]
pub fn answer(id: Id<'_>, result: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(result.len().saturating_add(48));
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id.raw().as_bytes());
    out.extend_from_slice(br#","result":"#);
    out.extend_from_slice(result.as_bytes());
    out.push(b'}');
    out
}
