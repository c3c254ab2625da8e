//! What would be decided about one call, and by which rung.
//!
//! ```text
//! Call (method, capability, arguments) ──┐
//! http::read (a request in a file) ──────┴─▶ Asked { head, body, who } ──explain──▶ Explained { rungs, answer, … }
//! ```
//!
//! There is no second evaluator: [`explain`] makes the events that Envoy would send and drives the same [`Exchange`] that
//! serves, so what it says is what the wire says. What is assumed instead of asked ([`World`]) is only what stands outside:
//! the signature of a token, what the server offers at the moment, what gates think.

mod call;
pub mod http;
mod listing;
mod rungs;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::exchange::{Event, Exchange, Immediate, Next, Now, Reply};
use crate::gates::{Decision, Ruling};
use crate::identity::{Caller, IdentityFault};
use crate::ladder::head::Attributes;
use crate::ladder::route::{self, Route};
use crate::ladder::server::Matcher;
use crate::ladder::{Head, Server, Snapshot};
use crate::message::json::{Document, Kind, Limits};
use crate::message::write;
use crate::policy::{Explanation, Label};
use crate::telemetry::audit::Outcome as Verdict;

pub use call::{Call, Unaskable};
pub use rungs::{Outcome, Row};

/// The decision id of every explained call; on the wire each has its own.
pub const DECISION: &str = "explained";
/// What claims and arguments may hold.
const LIMITS: Limits = Limits { depth: 64, nodes: 1 << 18 };

/// Who is calling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// Whoever the request's own headers prove: tokens are verified, with keys fetched from the configured address.
    Presented,
    /// The bearer of these claims, JSON text, taken as verified: everything but a signature is checked.
    Vouched(String),
}

/// One request, as Envoy would hand it over.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Headers, and Envoy's attributes.
    pub head: Head,
    /// The body; empty for none.
    pub body: Vec<u8>,
    /// Who sends it.
    pub who: Who,
}

/// What is asked of others rather than assumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct World {
    /// Whether the server is listed; else what was recorded is taken for what it offers.
    pub live: bool,
    /// Whether gates are asked; else they have no objection.
    pub gates: bool,
}

/// The answer in the server's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// The headers that Portcullis sets, in order, lower-case names.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// What was decided and why.
pub struct Explained {
    /// The server whose rules decided; `None` when rung 1 found none.
    pub server: Option<Arc<Server>>,
    /// Who called; `None` when that was not established.
    pub caller: Option<Arc<Caller>>,
    /// Which rules of the policy match the caller.
    pub rules: Option<Explanation>,
    /// Every rung in order.
    pub rungs: Vec<Row>,
    /// The answer; `None` when the request is forwarded.
    pub answer: Option<Answer>,
    /// The reason of a refusal that is carried out: the gate's own code, else the rung's.
    pub reason: Option<String>,
    /// Codes of refusals that shadow mode recorded only.
    pub would_refuse: Vec<String>,
    /// What the call is about, by the price list's label where there is one; empty for nothing of its own.
    pub capability: String,
    /// Of a listing that is forwarded: the recorded capabilities that the caller is shown, when the server offers them all.
    pub visible: Option<Vec<Label>>,
    /// What the operator's log would say.
    pub log: Option<String>,
}

/// What happened on the way, for [`rungs`].
#[derive(Default)]
struct Trace {
    server: Option<Arc<Server>>,
    caller: Option<Arc<Caller>>,
    /// The request's id, byte for byte.
    id: Option<String>,
    /// Whether the body was handed over.
    body: bool,
    gates: rungs::Asked,
    answer: Option<Immediate>,
    forwarded: bool,
}

fn now() -> Now {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Now { instant: Instant::now(), unix }
}

/// Decides about one request as `snapshot` would, and says why.
///
/// May wait for the issuer's keys and, as far as `world` says so, for the server and for gates: each at most as long as a
/// real request would.
pub async fn explain(snapshot: &Arc<Snapshot>, asked: Asked, world: World) -> Explained {
    let Asked { head, body, who } = asked;
    let mut exchange = Exchange::new(Arc::clone(snapshot), DECISION.to_owned(), now());
    let server = match route::find(snapshot, &head) {
        Ok(Route::Guarded(server)) => Some(server),
        Ok(Route::Pass) | Err(_) => None,
    };
    let id = listing::id(&body);
    let (mut trace, mut body) = (Trace { server, id, ..Trace::default() }, Some(body));
    let mut event = Event::RequestHeaders(head);
    loop {
        let step = exchange.step(event, now());
        for reply in step.replies {
            match reply {
                Reply::RequestHeaders { verdict, .. } | Reply::RequestBody { verdict, .. } => {
                    trace.forwarded |= verdict.decided;
                }
                Reply::Immediate(answer) => trace.answer = Some(answer),
                Reply::MoreTime(_)
                | Reply::ResponseHeaders { .. }
                | Reply::ResponseBody { .. }
                | Reply::ResponseTrailers => {}
            }
        }
        event = match step.next {
            Next::Identify => identify(&exchange, &who, &mut trace).await,
            Next::Refresh => refresh(&exchange, trace.server.as_deref(), world).await,
            Next::Ask => ask(&exchange, world, &mut trace).await,
            Next::Wait => match body.take() {
                Some(body) if !trace.forwarded => {
                    trace.body = true;
                    Event::RequestBody(body)
                }
                _ => break,
            },
            Next::Finish | Next::Fail => break,
        };
    }
    let visible = listing::visible(&mut exchange, &trace, now());
    let mut explained = told(exchange, trace);
    explained.visible = visible;
    explained
}

async fn identify(exchange: &Exchange, who: &Who, trace: &mut Trace) -> Event {
    let Some((server, presented)) = exchange.presented() else {
        return Event::Fault("an identity was asked for that nobody needs");
    };
    let at = now().unix;
    let found: Result<Arc<Caller>, IdentityFault> = match who {
        Who::Presented => server.authenticator.authenticate(&presented, at).await,
        Who::Vouched(claims) => server.authenticator.vouched(claims, at),
    };
    trace.caller = found.as_ref().ok().cloned();
    Event::Identity(found)
}

async fn refresh(exchange: &Exchange, server: Option<&Server>, world: World) -> Event {
    let (Some((freshness, since)), Some(server)) = (exchange.outdated(), server) else {
        return Event::Fault("a listing was asked for that nobody needs");
    };
    if world.live {
        return Event::Refreshed(freshness.refresh(since).await.map_err(|fault| fault.to_string()));
    }
    for (label, entry) in server.record.entries() {
        freshness.observe(label.kind(), label.name(), entry.document().root(), since);
    }
    Event::Refreshed(Ok(()))
}

async fn ask(exchange: &Exchange, world: World, trace: &mut Trace) -> Event {
    let Some((server, question)) = exchange.question() else {
        return Event::Fault("an opinion was asked for that nobody needs");
    };
    if world.gates {
        trace.gates = rungs::Asked::Yes;
        return Event::Opinion(server.gates.ask(&question).await);
    }
    trace.gates = rungs::Asked::Assumed;
    Event::Opinion(Ruling { decision: Decision::Allow, shadowed: Vec::new(), notes: Vec::new(), asked: Vec::new() })
}

fn told(mut exchange: Exchange, trace: Trace) -> Explained {
    let spared = exchange.spared().to_vec();
    // A call that was forwarded waits for its answer: its record ends here.
    let record = exchange.take_record().or_else(|| exchange.abandon(now()));
    let server = trace.server;
    let refused = record.as_ref().filter(|record| record.outcome == Verdict::Refused && record.enforced);
    let reason = trace.answer.as_ref().map(|answer| answer.verdict.reason_text().to_owned());
    let reason = reason.filter(|_| refused.is_some());
    let rungs = rungs::rows(&rungs::Climb {
        server: server.as_deref(),
        caller: trace.caller.as_deref(),
        head: !trace.body,
        gates: trace.gates,
        forwarded: trace.forwarded,
        record: record.as_ref(),
        reason: reason.as_deref(),
        spared: &spared,
    });
    let rules = server.as_deref().zip(trace.caller.as_deref());
    Explained {
        rules: rules.map(|(server, caller)| server.policy.explain(&caller.claims)),
        rungs,
        answer: trace.answer.map(|Immediate { status, headers, body, .. }| Answer { status, headers, body }),
        reason,
        would_refuse: spared.into_iter().map(|(_, code)| code).collect(),
        capability: record.as_ref().map(|record| record.capability.to_string()).unwrap_or_default(),
        log: record.and_then(|record| record.log),
        visible: None,
        server,
        caller: trace.caller,
    }
}

/// What Envoy says beside the headers of a request on a route to `server`; without one, of a request on a route that no
/// server names.
#[must_use]
pub fn attributes(server: Option<&Server>) -> Attributes {
    let first = |names: &[String]| names.first().cloned().unwrap_or_default();
    let (mut route, mut cluster) = (String::new(), String::new());
    match server.map(|server| &server.matcher) {
        Some(Matcher::Route(names)) => route = first(names),
        Some(Matcher::Cluster(names)) => cluster = first(names),
        Some(Matcher::Authority { .. }) | None => {}
    }
    Attributes { route: Some(route), cluster: Some(cluster), ..Attributes::default() }
}

/// `claims` with what this server asks of every token, where they do not say it themselves: `iss`, `aud`, and an `exp` in an
/// hour. Text that is no JSON object comes back as it is.
#[must_use]
pub fn complete(server: &Server, claims: &str) -> String {
    let Some((issuer, audience)) = server.authenticator.expects() else { return claims.to_owned() };
    let Ok(document) = Document::read(claims.as_bytes().to_vec(), LIMITS) else { return claims.to_owned() };
    let (root, at) = (document.root(), document.root().span().start);
    let Some(members) = claims.get(at.saturating_add(1)..).filter(|_| root.kind() == Kind::Object) else {
        return claims.to_owned();
    };
    let mut out = b"{".to_vec();
    for (name, text) in [("iss", issuer), ("aud", audience)] {
        if root.get(name).is_none() {
            write::string(&mut out, name);
            out.push(b':');
            write::string(&mut out, text);
            out.push(b',');
        }
    }
    if root.get("exp").is_none() {
        out.extend_from_slice(format!("\"exp\":{},", now().unix.saturating_add(3600)).as_bytes());
    }
    if root.is_empty() && out.last() == Some(&b',') {
        out.pop();
    }
    out.extend_from_slice(members.as_bytes());
    String::from_utf8(out).unwrap_or_else(|_| claims.to_owned())
}

/// Whether claims can be read at all: a JSON object without ambiguity.
///
/// # Errors
/// What was expected.
pub fn readable(claims: &str) -> Result<(), String> {
    match Document::read(claims.as_bytes().to_vec(), LIMITS) {
        Ok(document) if document.root().kind() == Kind::Object => Ok(()),
        Ok(_) => Err("expected the claims as a JSON object".to_owned()),
        Err(fault) => Err(format!("expected the claims as a JSON object, but {fault}")),
    }
}
