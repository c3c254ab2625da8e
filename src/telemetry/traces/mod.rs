//! Spans: one per decision, with what each rung said as its events, and below it what was waited for.
//!
//! They are encoded from the record once the decision is over, by the audit's writer, so that no call waits for one.

mod sampler;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use opentelemetry::trace::TraceState;
use tokio::runtime::Handle;

use super::metrics::{error_type, target};
use super::otlp::client::Client;
use super::otlp::encode::{Envelope, Value, attribute, text};
use super::otlp::outbox::{Limits, Losses, Outbox};
use super::otlp::variable;
use super::record::{Asked, Outcome, Passage, Record, Trail, Trails};
use crate::message::protobuf::{bytes, fixed32, fixed64, message, number};
use crate::message::trace::TraceContext;
use crate::protocol::Method;
use crate::refusal::Rung;
use sampler::{Ids, Sampler};

/// `SpanKind`.
const INTERNAL: u64 = 1;
const SERVER: u64 = 2;
const CLIENT: u64 = 3;
/// `StatusCode`: an error.
const ERROR: u64 = 2;
/// `SpanFlags`: the span is recorded; whether its parent is remote is known; it is.
const SAMPLED: u32 = 1;
const REMOTE_KNOWN: u32 = 0x100;
const REMOTE: u32 = 0x200;
/// Fields of `Span` that are used in more than one place.
const ATTRIBUTES: u8 = 9;
const EVENTS: u8 = 11;

/// Where a span is: the trace, and the span in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) trace: u128,
    pub(super) span: u64,
    pub(super) sampled: bool,
}

impl From<&TraceContext> for Place {
    fn from(of: &TraceContext) -> Self {
        Self { trace: of.trace_id, span: of.span_id, sampled: of.sampled }
    }
}

/// Makes spans.
pub(super) struct Spans {
    sampler: Sampler,
    ids: Ids,
    /// What each rung's event is beside its time, where nothing was said against the call: most events are these.
    passed: Vec<Vec<u8>>,
    /// The spans of one decision.
    encoded: Vec<u8>,
    outbox: Outbox,
    lost: Arc<AtomicU64>,
}

/// Turns times of one record into nanoseconds since 1970.
#[derive(Clone, Copy)]
struct Clock {
    start: u64,
    started: Instant,
}

impl Clock {
    fn new(record: &Record, at: SystemTime) -> Self {
        let end = at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, nanos);
        Self { start: end.saturating_sub(nanos(record.duration)), started: record.started }
    }

    fn at(self, instant: Instant) -> u64 {
        self.start.saturating_add(nanos(instant.saturating_duration_since(self.started)))
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Spans {
    /// Starts the thread that exports them.
    ///
    /// # Errors
    /// It cannot be started.
    pub(super) fn start(client: Client, envelope: Envelope, runtime: Handle) -> std::io::Result<Self> {
        let named = (variable("OTEL_TRACES_SAMPLER"), variable("OTEL_TRACES_SAMPLER_ARG"));
        let sampler = Sampler::named(named.0.as_deref(), named.1.as_deref());
        let lost = Arc::<AtomicU64>::default();
        let count = Arc::clone(&lost);
        let losses = Losses {
            what: "spans",
            keep: false,
            count: Box::new(move |spans| {
                count.fetch_add(spans, Ordering::Relaxed);
            }),
        };
        let outbox = Outbox::start("spans-otlp", client, envelope, runtime, Limits::named("OTEL_BSP", 5000), losses)?;
        Ok(Self { sampler, ids: Ids::default(), passed: Vec::new(), encoded: Vec::new(), outbox, lost })
    }

    pub(super) fn trails(&self) -> Trails {
        self.sampler.trails()
    }

    /// Tells of a decision that was complete at `at`. Gives the place of its span; `None` when it is not recorded.
    pub(super) fn tell(&mut self, record: &Record, at: SystemTime) -> Option<Place> {
        let trail = record.trail.as_deref()?;
        let parent = record.parent.as_deref();
        let trace = match parent {
            Some(parent) => parent.trace_id,
            None => self.ids.trace()?,
        };
        if !self.sampler.records(parent, trace) {
            return None;
        }
        let own = Place { trace, span: self.ids.span()?, sampled: true };
        let clock = Clock::new(record, at);
        let state = state(parent);
        self.encoded.clear();
        let below = self.below(record, trail, own, clock, &state)?;
        self.server(record, trail, own, clock, &state);
        if !self.outbox.put(&self.encoded, below.saturating_add(1)) {
            self.lost.fetch_add(below as u64 + 1, Ordering::Relaxed);
        }
        Some(own)
    }

    /// Lets the exporting thread end once what it was handed is exported or given up.
    pub(super) fn close(&self) {
        self.outbox.close();
    }

    /// Waits for that thread, and says what was lost. Call [`Self::close`] before.
    pub(super) fn join(self) {
        self.outbox.join();
        let lost = self.lost.load(Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!(
                lost,
                "spans were dropped: the collector did not take them, or not fast enough (OTEL_BSP_MAX_QUEUE_SIZE)"
            );
        }
    }

    /// The span of the decision itself.
    fn server(&mut self, record: &Record, trail: &Trail, own: Place, clock: Clock, state: &str) {
        let Self { encoded, passed, .. } = self;
        encoded.reserve(2048);
        message(encoded, 2, |out| {
            let parent = record.parent.as_deref();
            head(out, own, parent.map(|parent| parent.span_id), state, if parent.is_some() { REMOTE } else { 0 });
            name(out, record);
            number(out, 6, SERVER);
            times(out, clock.start, clock.start.saturating_add(nanos(record.duration).max(1)));
            attributes(out, record, trail);
            let mut last = (clock.started, clock.start);
            for (rung, passage, at) in &trail.rungs {
                // All rungs of one phase have one time.
                if last.0 != *at {
                    last = (*at, clock.at(*at));
                }
                event(out, passed, *rung, *passage, last.1);
            }
            if let Some(other) = record.link.as_deref() {
                link(out, other);
            }
            let failed = record.rpc_code.is_some() || error_type(record).is_some();
            status(out, failed.then(|| record.reason_text()));
        });
    }

    /// The spans below it, one for each thing that was waited for. Gives how many.
    fn below(&mut self, record: &Record, trail: &Trail, own: Place, clock: Clock, state: &str) -> Option<usize> {
        let Self { encoded, ids, .. } = self;
        let mut count = 0;
        let mut child = |name: &str, kind, (from, to), more: &dyn Fn(&mut Vec<u8>)| {
            let place = Place { span: ids.span()?, ..own };
            count += 1;
            message(encoded, 2, |out| {
                head(out, place, Some(own.span), state, 0);
                text(out, 5, name);
                number(out, 6, kind);
                times(out, clock.at(from), clock.at(to));
                more(out);
                status(out, None);
            });
            Some(())
        };
        for (wait, from, to) in &trail.waits {
            child(wait.as_str(), INTERNAL, (*from, *to), &|_| {})?;
        }
        for asked in &record.asked {
            child("run_guardrail", INTERNAL, (asked.from, asked.to), &|out| guardrail(out, asked))?;
        }
        if let (Some(decided), Outcome::Allowed, Some(status)) = (trail.decided, record.outcome, record.wire_status) {
            let status = Value::Int(i64::from(status));
            let ended = record.started.checked_add(record.duration).unwrap_or(decided);
            child("answer", CLIENT, (decided, ended), &|out| {
                attribute(out, ATTRIBUTES, "http.response.status_code", status);
            })?;
        }
        Some(count)
    }
}

/// Other vendors' members of the trace, as the wire has them; members that cannot be read are not worth losing the parent for.
fn state(of: Option<&TraceContext>) -> String {
    let read = of.filter(|of| !of.state.is_empty()).and_then(|of| of.state.parse::<TraceState>().ok());
    read.map(|state| state.header()).unwrap_or_default()
}

/// The ids of a span, and where its parent is.
fn head(out: &mut Vec<u8>, own: Place, parent: Option<u64>, state: &str, remote: u32) {
    bytes(out, 1, &own.trace.to_be_bytes());
    bytes(out, 2, &own.span.to_be_bytes());
    text(out, 3, state);
    if let Some(parent) = parent {
        bytes(out, 4, &parent.to_be_bytes());
    }
    flags(out, SAMPLED | REMOTE_KNOWN | remote);
}

/// Field 16, the only one here whose key takes two bytes: 16 << 3 | 5, seven bits at a time.
fn flags(out: &mut Vec<u8>, flags: u32) {
    out.extend_from_slice(&[0x85, 0x01]);
    out.extend_from_slice(&flags.to_le_bytes());
}

fn times(out: &mut Vec<u8>, from: u64, to: u64) {
    fixed64(out, 7, from);
    fixed64(out, 8, to);
}

/// Always there; with a fault's text where there was one.
fn status(out: &mut Vec<u8>, fault: Option<&str>) {
    message(out, 15, |out| {
        if let Some(fault) = fault {
            text(out, 2, fault);
            number(out, 3, ERROR);
        }
    });
}

fn link(out: &mut Vec<u8>, to: &TraceContext) {
    message(out, 13, |out| {
        bytes(out, 1, &to.trace_id.to_be_bytes());
        bytes(out, 2, &to.span_id.to_be_bytes());
        text(out, 3, &state(Some(to)));
        fixed32(out, 6, u32::from(to.sampled) | REMOTE_KNOWN | REMOTE);
    });
}

/// `{method} {target}`, both only when they are on a list.
fn name(out: &mut Vec<u8>, record: &Record) {
    let method = match (record.listed, record.method.is_empty()) {
        (Some(method), _) => method.as_str(),
        (None, true) => return text(out, 5, "portcullis"),
        (None, false) => super::counters::OTHER,
    };
    message(out, 5, |out| {
        out.extend_from_slice(method.as_bytes());
        if let Some((_, Some(name))) = target(record) {
            out.push(b' ');
            out.extend_from_slice(name.as_bytes());
        }
    });
}

fn attributes(out: &mut Vec<u8>, record: &Record, trail: &Trail) {
    let mut text = |key: &str, value: &str| {
        if !value.is_empty() {
            attribute(out, ATTRIBUTES, key, Value::Text(value));
        }
    };
    text("portcullis.decision", record.outcome.as_str());
    text("portcullis.decision_id", &record.id);
    text("client.address", record.client_address());
    text("portcullis.server", record.server.as_ref().map_or("", |(name, _)| name));
    text("portcullis.reason", record.reason_text());
    text("portcullis.rung", record.rung.map_or("", Rung::as_str));
    text("mcp.method.name", &record.method);
    text("mcp.protocol.version", trail.protocol.as_deref().unwrap_or_default());
    text("jsonrpc.request.id", trail.request_id.as_deref().unwrap_or_default());
    if record.listed == Some(Method::ToolsCall) {
        text("gen_ai.operation.name", "execute_tool");
    }
    if let Some((key, name)) = target(record) {
        text(key, name.unwrap_or(super::counters::OTHER));
    }
    match record.rpc_code {
        Some(code) => {
            let code = code.to_string();
            text("rpc.response.status_code", &code);
            text("error.type", &code);
        }
        None => text("error.type", error_type(record).unwrap_or_default()),
    }
    attribute(out, ATTRIBUTES, "portcullis.enforced", Value::Bool(record.enforced));
    if let Some(status) = record.wire_status {
        attribute(out, ATTRIBUTES, "http.response.status_code", Value::Int(i64::from(status)));
    }
}

/// What a rung said. `passed` keeps what was encoded before of rungs that had nothing against a call.
fn event(out: &mut Vec<u8>, passed: &mut Vec<Vec<u8>>, rung: Rung, passage: Passage, at: u64) {
    let mut other = Vec::new();
    let told = match passage {
        Passage::Pass => {
            if passed.len() <= rung as usize {
                passed.resize(rung as usize + 1, Vec::new());
            }
            passed.get_mut(rung as usize).unwrap_or(&mut other)
        }
        Passage::Refuse(_) | Passage::WouldRefuse(_) => &mut other,
    };
    if told.is_empty() {
        *told = told_of(rung, passage);
    }
    message(out, EVENTS, |out| {
        fixed64(out, 1, at);
        out.extend_from_slice(told);
    });
}

/// An event but for its time.
fn told_of(rung: Rung, passage: Passage) -> Vec<u8> {
    let (outcome, reason) = match passage {
        Passage::Pass => ("pass", None),
        Passage::Refuse(reason) => ("refuse", Some(reason)),
        Passage::WouldRefuse(reason) => ("would_refuse", Some(reason)),
    };
    let mut out = Vec::new();
    text(&mut out, 2, "rung");
    attribute(&mut out, 3, "portcullis.rung", Value::Text(rung.as_str()));
    attribute(&mut out, 3, "portcullis.outcome", Value::Text(outcome));
    if let Some(reason) = reason {
        attribute(&mut out, 3, "portcullis.reason", Value::Text(reason.as_str()));
    }
    out
}

/// OpenTelemetry's conventions for guardrails: what was said, and apart from it what was done.
fn guardrail(out: &mut Vec<u8>, asked: &Asked) {
    attribute(out, ATTRIBUTES, "gen_ai.guardrail.component.name", Value::Text(&asked.gate));
    attribute(out, ATTRIBUTES, "gen_ai.guardrail.verdict.type", Value::Text(asked.said));
    attribute(out, ATTRIBUTES, "gen_ai.guardrail.action.type", Value::Text(asked.action.as_str()));
    attribute(out, ATTRIBUTES, "portcullis.gate.kind", Value::Text(asked.kind));
    attribute(out, ATTRIBUTES, "portcullis.gate.shadow", Value::Bool(asked.shadow));
}
