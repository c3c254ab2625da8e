//! Spans: one per decision, with what each rung said as its events, and below it what was waited for.
//!
//! They are made from the record once the decision is over, by the audit's writer, so that no call waits for one.

use std::time::{Duration, Instant, SystemTime};

use opentelemetry::trace::{
    Event, Link, Span as _, SpanBuilder, SpanContext, SpanKind, Status, TraceContextExt as _, TraceState, Tracer as _,
    TracerProvider as _,
};
use opentelemetry::{Context, KeyValue, SpanId, TraceFlags, TraceId};
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};

use super::metrics::{error_type, target};
use super::otlp::variable;
use super::record::{Asked, Outcome, Passage, Record, Trail, Trails};
use crate::message::trace::TraceContext;
use crate::protocol::Method;
use crate::refusal::Rung;

/// Makes spans.
pub(super) struct Spans {
    tracer: SdkTracer,
    trails: Trails,
}

/// The provider, which the batches are flushed by, and what makes spans.
pub(super) fn start(exporter: SpanExporter, resource: Resource) -> (SdkTracerProvider, Spans) {
    let provider = SdkTracerProvider::builder().with_resource(resource).with_batch_exporter(exporter).build();
    let spans =
        Spans { tracer: provider.tracer("portcullis"), trails: trails(variable("OTEL_TRACES_SAMPLER").as_deref()) };
    (provider, spans)
}

/// Of which calls the sampler of this name, the SDK's, may record the span.
fn trails(sampler: Option<&str>) -> Trails {
    match sampler {
        Some("always_off") => Trails::Never,
        Some("parentbased_always_off") => Trails::SampledParent,
        Some("always_on" | "traceidratio") => Trails::Always,
        _ => Trails::ParentOrRoot,
    }
}

/// Turns times of one record into times of day.
struct Clock {
    start: SystemTime,
    started: Instant,
}

impl Clock {
    fn at(&self, instant: Instant) -> SystemTime {
        self.start + instant.saturating_duration_since(self.started)
    }
}

impl Spans {
    pub(super) fn trails(&self) -> Trails {
        self.trails
    }

    /// Tells of a decision that was complete at `at`. Gives the context of its span; `None` when it is not recorded.
    pub(super) fn tell(&self, record: &Record, at: SystemTime) -> Option<SpanContext> {
        let trail = record.trail.as_deref()?;
        let clock = Clock { start: at.checked_sub(record.duration).unwrap_or(at), started: record.started };
        let parent = record
            .parent
            .as_deref()
            .map_or_else(Context::new, |parent| Context::new().with_remote_span_context(context(parent)));
        let links = record.link.iter().map(|link| Link::with_context(context(link))).collect();
        let builder = SpanBuilder::from_name(name(record))
            .with_kind(SpanKind::Server)
            .with_start_time(clock.start)
            .with_attributes(attributes(record, trail))
            .with_events(trail.rungs.iter().map(|passed| event(passed, &clock)).collect())
            .with_links(links);
        let mut span = self.tracer.build_with_context(builder, &parent);
        let own = span.span_context().clone();
        if !span.is_recording() {
            return None;
        }
        if record.rpc_code.is_some() || error_type(record).is_some() {
            span.set_status(Status::error(record.reason_text().to_owned()));
        }
        let below = Context::new().with_remote_span_context(own.clone());
        for (wait, from, to) in &trail.waits {
            self.child(wait.as_str().to_owned(), SpanKind::Internal, Vec::new(), (*from, *to), &clock, &below);
        }
        for asked in &record.asked {
            let name = "run_guardrail".to_owned();
            self.child(name, SpanKind::Internal, guardrail(asked), (asked.from, asked.to), &clock, &below);
        }
        if let (Some(decided), Outcome::Allowed, Some(status)) = (trail.decided, record.outcome, record.wire_status) {
            let status = KeyValue::new("http.response.status_code", i64::from(status));
            let ended = record.started + record.duration;
            self.child("answer".to_owned(), SpanKind::Client, vec![status], (decided, ended), &clock, &below);
        }
        span.end_with_timestamp(clock.start + record.duration.max(Duration::from_nanos(1)));
        Some(own)
    }

    fn child(
        &self,
        name: String,
        kind: SpanKind,
        attributes: Vec<KeyValue>,
        (from, to): (Instant, Instant),
        clock: &Clock,
        below: &Context,
    ) {
        let builder =
            SpanBuilder::from_name(name).with_kind(kind).with_start_time(clock.at(from)).with_attributes(attributes);
        self.tracer.build_with_context(builder, below).end_with_timestamp(clock.at(to));
    }
}

fn context(of: &TraceContext) -> SpanContext {
    let flags = TraceFlags::default().with_sampled(of.sampled);
    // Members that the SDK cannot read are not worth losing the parent for.
    let state = of.state.parse::<TraceState>().unwrap_or_default();
    SpanContext::new(TraceId::from(of.trace_id), SpanId::from(of.span_id), flags, true, state)
}

/// `{method} {target}`, both only when they are on a list.
fn name(record: &Record) -> String {
    let method = match (record.listed, record.method.is_empty()) {
        (Some(method), _) => method.as_str(),
        (None, true) => return "portcullis".to_owned(),
        (None, false) => super::counters::OTHER,
    };
    match target(record) {
        Some((_, Some(name))) => format!("{method} {name}"),
        _ => method.to_owned(),
    }
}

fn attributes(record: &Record, trail: &Trail) -> Vec<KeyValue> {
    let mut all = vec![
        KeyValue::new("portcullis.decision", record.outcome.as_str()),
        KeyValue::new("portcullis.decision_id", record.id.clone()),
        KeyValue::new("portcullis.enforced", record.enforced),
    ];
    let mut text = |key: &'static str, value: &str| {
        if !value.is_empty() {
            all.push(KeyValue::new(key, value.to_owned()));
        }
    };
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
            text("rpc.response.status_code", &code.to_string());
            text("error.type", &code.to_string());
        }
        None => text("error.type", error_type(record).unwrap_or_default()),
    }
    if let Some(status) = record.wire_status {
        all.push(KeyValue::new("http.response.status_code", i64::from(status)));
    }
    all
}

fn event((rung, passage, at): &(Rung, Passage, Instant), clock: &Clock) -> Event {
    let (outcome, reason) = match passage {
        Passage::Pass => ("pass", None),
        Passage::Refuse(reason) => ("refuse", Some(reason)),
        Passage::WouldRefuse(reason) => ("would_refuse", Some(reason)),
    };
    let mut attributes =
        vec![KeyValue::new("portcullis.rung", rung.as_str()), KeyValue::new("portcullis.outcome", outcome)];
    attributes.extend(reason.map(|reason| KeyValue::new("portcullis.reason", reason.as_str())));
    Event::new("rung", clock.at(*at), attributes, 0)
}

/// OpenTelemetry's conventions for guardrails: what was said, and apart from it what was done.
fn guardrail(asked: &Asked) -> Vec<KeyValue> {
    let action = match (asked.shadow, asked.said) {
        (true, _) => "audit",
        (false, "allow") => "allow",
        (false, _) => "deny",
    };
    vec![
        KeyValue::new("gen_ai.guardrail.component.name", asked.gate.to_string()),
        KeyValue::new("gen_ai.guardrail.verdict.type", asked.said),
        KeyValue::new("gen_ai.guardrail.action.type", action),
        KeyValue::new("portcullis.gate.kind", asked.kind),
        KeyValue::new("portcullis.gate.shadow", asked.shadow),
    ]
}
