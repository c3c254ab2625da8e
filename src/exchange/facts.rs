//! What is known of an exchange, gathered as it climbs: for the audit record, for Envoy's dynamic metadata.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use crate::ladder::MetadataKeys;
use crate::message::headers::Headers;
use crate::message::trace::TraceContext;
use crate::protocol::{Message, Method};
use crate::refusal::frame::{self, Tier};
use crate::refusal::{GateCode, GateMark, Reason, Refusal, Rung};
use crate::telemetry::record::{Asked, Outcome, Passage, Record, Screened, Trails, Wait};

/// Most bytes of a caller's word (a method, a name, a URI) in a record.
const WORD_CAP: usize = 256;

/// The dynamic metadata of a reply, namespace `portcullis`: for Envoy's access log and for the second lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the request was decided. The second lock lets only `true` through to the router.
    pub decided: bool,
    /// `allow`, `refuse`, `pass`, or empty while undecided.
    pub decision: &'static str,
    /// The reason of a refusal.
    pub reason: Option<Reason>,
    /// The code of the gate that refused, which is then the reason's text.
    pub code: Option<GateCode>,
    /// The server; each guarded route demands its own.
    pub server: Option<Arc<str>>,
    /// The MCP method; empty without one, and where nobody reads it.
    pub method: Cow<'static, str>,
    /// The capability; as above.
    pub capability: Arc<str>,
    /// The principal; as above.
    pub principal: Arc<str>,
    /// The decision's id, or empty while undecided.
    pub id: String,
}

impl Verdict {
    /// The reason as it is read; empty without one.
    #[must_use]
    pub fn reason_text(&self) -> &str {
        match (&self.code, self.reason) {
            (Some(code), _) => code.as_str(),
            (None, reason) => reason.map(Reason::as_str).unwrap_or_default(),
        }
    }

    /// Nothing is decided yet, and nothing is said.
    pub(super) fn none() -> Self {
        Self {
            decided: false,
            decision: "",
            reason: None,
            code: None,
            server: None,
            method: Cow::Borrowed(""),
            capability: Arc::default(),
            principal: Arc::default(),
            id: String::new(),
        }
    }
}

/// What is known of one exchange.
#[derive(Debug)]
pub struct Facts {
    record: Record,
    /// What the verdict says of it beside what it always does.
    said: MetadataKeys,
    trails: Trails,
    closed: bool,
    taken: bool,
    /// Who said each of `record.would_refuse`.
    spared: Vec<(Rung, String)>,
    /// Whether the time up to the verdict is known; it ends with the step that gave it.
    timed: bool,
    /// When the last step ended.
    idle: Option<Instant>,
    /// Where the body phase began in the trail.
    body: Option<usize>,
}

impl Facts {
    pub(super) fn new(decision: String, said: MetadataKeys, started: Instant) -> Self {
        Self {
            record: Record::new(decision, started),
            said,
            trails: Trails::Never,
            closed: false,
            taken: false,
            spared: Vec::new(),
            timed: false,
            idle: None,
            body: None,
        }
    }

    /// Of which calls the way up is kept.
    pub(super) fn keep_trails(&mut self, trails: Trails) {
        self.trails = trails;
    }

    /// Where the call comes from.
    pub(super) fn source(&mut self, source: Option<String>) {
        self.record.source = source;
    }

    /// The caller's trace context, from the request's headers.
    pub(super) fn trace_header(&mut self, headers: &Headers) {
        if let Some(parent) = headers.text("traceparent") {
            self.record.parent = TraceContext::read(parent, headers.text("tracestate")).map(Box::new);
        }
        self.record.trail = self.trails.keep(self.record.parent.as_deref()).then(Box::default);
    }

    /// The same from `params._meta`: this one is the parent then, and the header's is linked.
    pub(super) fn trace_message(&mut self, message: &Message<'_>) {
        let Some(meta) = message.params.and_then(|params| params.get("_meta")) else { return };
        let text = |key| meta.get(key).and_then(|value| value.as_str());
        if let Some(own) = text("traceparent").and_then(|parent| TraceContext::read(parent, text("tracestate"))) {
            self.record.link = self.record.parent.take().filter(|header| **header != own);
            match (self.trails.keep(Some(&own)), &self.record.trail) {
                (true, None) => self.record.trail = Some(Box::default()),
                (false, _) => self.record.trail = None,
                (true, Some(_)) => {}
            }
            self.record.parent = Some(Box::new(own));
        }
        if let Some(trail) = &mut self.record.trail {
            trail.request_id = message.id.map(|id| id.key().into_text());
        }
    }

    /// The revision that the request speaks, once it is known to be one of ours.
    pub(super) fn protocol(&mut self, headers: &Headers) {
        if let Some(trail) = &mut self.record.trail {
            trail.protocol = headers.text("mcp-protocol-version").map(str::to_owned);
        }
    }

    /// An event is here that was waited for since the last step.
    pub(super) fn arrived(&mut self, wait: Wait, now: Instant) {
        let Some(idle) = self.idle else { return };
        self.record.phases.add(wait, now.saturating_duration_since(idle));
        if let Some(trail) = &mut self.record.trail {
            trail.waits.push((wait, idle, now));
        }
    }

    /// A step that began at `began` has ended: its own time counts too.
    pub(super) fn stepped(&mut self, began: Instant, ended: Instant) {
        let took = ended.saturating_duration_since(began);
        self.idle = Some(ended);
        if !self.timed {
            self.record.phases.own += took;
            if self.closed || self.record.outcome != Outcome::Aborted {
                self.timed = true;
                self.record.decision_time += took;
                if let Some(trail) = &mut self.record.trail {
                    trail.decided = Some(ended);
                }
            }
        }
        if self.closed && !self.taken {
            self.record.duration = ended.saturating_duration_since(self.record.started);
        }
    }

    /// These rungs had nothing against it.
    pub(super) fn passed(&mut self, rungs: &[Rung], now: Instant) {
        if let Some(trail) = &mut self.record.trail {
            trail.rungs.extend(rungs.iter().map(|rung| (*rung, Passage::Pass, now)));
        }
    }

    /// Of these rungs, those in front of the one that refused had nothing against it.
    pub(super) fn passed_before(&mut self, rungs: &[Rung], refused: Rung, now: Instant) {
        let before = rungs.iter().position(|rung| *rung == refused).unwrap_or(rungs.len());
        self.passed(rungs.get(..before).unwrap_or_default(), now);
    }

    fn stopped(&mut self, rung: Rung, passage: Passage, now: Instant) {
        if let Some(trail) = &mut self.record.trail {
            trail.rungs.push((rung, passage, now));
        }
    }

    /// The gates that were asked.
    pub(super) fn asked(&mut self, asked: Vec<Asked>) {
        self.record.asked = asked;
    }

    /// The answer is an error of this code. One without a code that can be read is an error all the same: it is told as 0, which
    /// is nobody's.
    pub(super) fn answered_error(&mut self, code: Option<i64>) {
        self.record.rpc_code = Some(code.unwrap_or_default());
    }

    /// The tool said that it failed.
    pub(super) fn tool_error(&mut self) {
        self.record.tool_error = true;
    }

    pub(super) fn decision(&self) -> &str {
        &self.record.id
    }

    pub(super) fn server(&mut self, name: &Arc<str>, index: usize) {
        self.record.server = Some((Arc::clone(name), index));
    }

    pub(super) fn principal(&mut self, principal: &crate::policy::Principal) {
        self.record.principal = Arc::clone(&principal.name);
        self.record.issuer = Arc::clone(&principal.issuer);
        self.record.subject = Arc::clone(&principal.subject);
        self.record.rules = Arc::clone(&principal.rules);
    }

    pub(super) fn method(&mut self, name: &str, method: Option<Method>) {
        self.record.method = method.map_or_else(|| word(name).to_owned().into(), |method| method.as_str().into());
        self.record.listed = method;
    }

    /// What the call is about, by the price list's label.
    pub(super) fn capability(&mut self, label: &Arc<str>) {
        self.record.capability = Arc::clone(label);
        self.record.recorded = true;
    }

    /// What the call is about, in the caller's words.
    pub(super) fn unpriced(&mut self, label: &str) {
        self.record.capability = word(label).into();
    }

    /// The call is forwarded.
    pub(super) fn allow(&mut self, now: Instant) {
        self.record.outcome = Outcome::Allowed;
        self.record.decision_time = now.duration_since(self.record.started);
    }

    /// Traffic that is not ours is forwarded.
    pub(super) fn pass(&mut self, now: Instant) {
        self.record.outcome = Outcome::Passed;
        self.record.decision_time = now.duration_since(self.record.started);
    }

    pub(super) fn refuse(&mut self, refusal: &Refusal, status: Option<u16>, code: Option<i32>, now: Instant) {
        self.stopped(refusal.rung, Passage::Refuse(refusal.reason), now);
        self.record.outcome = Outcome::Refused;
        self.record.rpc_code = code.map(i64::from);
        self.record.reason = Some(refusal.reason);
        self.record.rung = Some(refusal.rung);
        self.record.enforced = true;
        self.record.gate.clone_from(&refusal.gate);
        if let Some(log) = &refusal.log {
            self.note(log);
        }
        if status.is_some() {
            self.record.wire_status = status;
        }
    }

    pub(super) fn wire_status(&mut self, status: u16) {
        self.record.wire_status = Some(status);
    }

    /// The exchange ends and nothing went down: the head of an answer that was withheld is nobody's status.
    pub(super) fn unanswered(&mut self) {
        self.record.wire_status = None;
    }

    /// Entries that a listing leaves out.
    pub(super) fn hidden(&mut self, entries: usize) {
        self.record.entries_hidden += entries as u64;
    }

    /// How many entries that is so far.
    pub(super) fn entries_hidden(&self) -> u64 {
        self.record.entries_hidden
    }

    /// More for the operator.
    pub(super) fn note(&mut self, text: &str) {
        match &mut self.record.log {
            Some(log) => {
                log.push_str("; ");
                log.push_str(text);
            }
            log @ None => *log = Some(text.to_owned()),
        }
    }

    /// A refusal that is recorded only. The first is the record's reason.
    pub(super) fn spare(&mut self, refusal: &Refusal, now: Instant) {
        self.stopped(refusal.rung, Passage::WouldRefuse(refusal.reason), now);
        if self.record.reason.is_none() {
            self.record.reason = Some(refusal.reason);
            self.record.rung = Some(refusal.rung);
            self.record.gate.clone_from(&refusal.gate);
            self.record.enforced = false;
        }
        self.record.would_refuse.push(refusal.error().to_owned());
        self.spared.push((refusal.rung, refusal.error().to_owned()));
        match (&refusal.log, &refusal.gate) {
            (Some(log), Some(gate)) => self.note(&format!("gate {}: {log}", gate.name)),
            (Some(log), None) => self.note(log),
            (None, _) => {}
        }
    }

    /// The refusals that were recorded only, and who said them.
    pub(super) fn spared_by(&self) -> &[(Rung, String)] {
        &self.spared
    }

    /// Whether a refusal was recorded only.
    pub(super) fn spared(&self) -> bool {
        !self.record.would_refuse.is_empty()
    }

    /// The body phase begins, perhaps again after a listing: what was recorded only is found anew.
    pub(super) fn climb(&mut self) {
        if let Some(trail) = &mut self.record.trail {
            trail.rungs.truncate(*self.body.get_or_insert(trail.rungs.len()));
        }
        if self.spared() {
            self.record.would_refuse.clear();
            self.spared.clear();
            self.record.reason = None;
            self.record.rung = None;
            self.record.gate = None;
            self.record.enforced = true;
            self.record.log = None;
        }
    }

    /// An answer would have been altered.
    pub(super) fn spare_answer(&mut self) {
        self.record.enforced = false;
    }

    /// A gate answered in the server's place.
    pub(super) fn answered(&mut self, gate: &Arc<str>, now: Instant) {
        self.record.outcome = Outcome::Answered;
        let name = Arc::clone(gate);
        self.record.gate = Some(Box::new(GateMark { name, code: None, details: None, challenge: None }));
        self.record.wire_status = Some(200);
        self.record.decision_time = now.duration_since(self.record.started);
        self.close(Outcome::Answered, now);
    }

    /// Of several things that were done about one answer the greatest stays.
    pub(super) fn screened(&mut self, done: Option<(Screened, &'static str)>) {
        let Some((action, why)) = done else { return };
        if self.record.screened.is_none_or(|(before, _)| before < action) {
            self.record.screened = Some((action, why));
        }
    }

    pub(super) fn rendered(&mut self, refusal: &Refusal, tier: Tier) {
        self.record.tier = tier;
        if tier != Tier::Full {
            self.note(&frame::why_less(refusal));
        }
    }

    /// The record is complete. An outcome that was already decided stays.
    pub(super) fn close(&mut self, outcome: Outcome, now: Instant) {
        if self.closed {
            return;
        }
        self.closed = true;
        let total = now.duration_since(self.record.started);
        if self.record.outcome == Outcome::Aborted {
            self.record.outcome = outcome;
            self.record.decision_time = total;
        }
        if self.record.decision_time.is_zero() {
            self.record.decision_time = total;
        }
        self.record.duration = total;
    }

    /// Nothing was decided and nothing will be: there is no record.
    pub(super) fn no_record(&mut self) {
        self.closed = true;
        self.taken = true;
    }

    pub(super) fn take_record(&mut self) -> Option<Record> {
        if !self.closed || self.taken {
            return None;
        }
        self.taken = true;
        // The id stays: whatever else may be said of this exchange is said under it.
        let rest = Record::new(self.record.id.clone(), self.record.started);
        Some(std::mem::replace(&mut self.record, rest))
    }

    /// The verdict that Envoy is told, once.
    pub(super) fn verdict(&self) -> Verdict {
        let allowed = self.record.outcome == Outcome::Allowed;
        Verdict {
            decided: true,
            decision: self.record.outcome.as_str(),
            // A refusal that is recorded only is no reason of the verdict's.
            reason: self.record.reason.filter(|_| !allowed),
            code: self.record.gate.as_ref().filter(|_| !allowed).and_then(|gate| gate.code.clone()),
            server: self.record.server.as_ref().map(|(name, _)| Arc::clone(name)),
            method: if self.said.method { self.record.method.clone() } else { Cow::Borrowed("") },
            capability: said(self.said.capability, &self.record.capability),
            principal: said(self.said.principal, &self.record.principal),
            id: self.record.id.clone(),
        }
    }
}

/// A text of the record, where it is to be said.
fn said(is: bool, text: &Arc<str>) -> Arc<str> {
    if is { Arc::clone(text) } else { Arc::default() }
}

/// A caller's word, bounded.
fn word(text: &str) -> &str {
    let end = (0..=text.len().min(WORD_CAP)).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}
