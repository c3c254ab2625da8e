use std::time::{Duration, SystemTime};

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link};
use opentelemetry_proto::tonic::trace::v1::{Span, Status};

use super::sampler::{Ids, Sampler};
use super::{Place, Spans};
use crate::message::trace::TraceContext;
use crate::refusal::{Reason, Rung};
use crate::telemetry::otlp::testing::{Server, Verdict};
use crate::telemetry::record::{Action, Asked, Outcome, Passage, Record, Trail, Trails, Wait};
use crate::telemetry::testing::record;

const TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;
/// When the decisions here were complete, in nanoseconds.
const END: u64 = 1_796_000_000_123_456_789;

fn told(records: &[Record]) -> (Vec<Option<Place>>, Vec<Span>) {
    let server = Server::start(|_| Verdict::Take);
    let mut spans = Spans::start(server.client(), Server::envelope(), Server::runtime()).expect("a thread");
    let at = SystemTime::UNIX_EPOCH + Duration::from_nanos(END);
    let places = records.iter().map(|record| spans.tell(record, at)).collect();
    spans.close();
    spans.join();
    let scopes = server.got().requests.into_iter().flat_map(|request| request.resource_spans);
    let spans = scopes.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect();
    (places, spans)
}

fn pair(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), key_strindex: 0 }
}

fn text(key: &str, value: &str) -> KeyValue {
    pair(key, Value::StringValue(value.to_owned()))
}

fn context(span_id: u64, sampled: bool, state: &str) -> TraceContext {
    TraceContext { trace_id: TRACE, span_id, sampled, state: state.into() }
}

fn event(at: u64, attributes: &[(&str, &str)]) -> Event {
    let attributes = attributes.iter().map(|(key, value)| text(key, value)).collect();
    Event { time_unix_nano: at, name: "rung".to_owned(), attributes, dropped_attributes_count: 0 }
}

/// A refusal with everything that a span can tell.
fn refusal() -> Record {
    let mut one = record();
    let started = one.started;
    let at = |us| started + Duration::from_micros(us);
    one.rpc_code = Some(-32000);
    one.source = Some("192.0.2.7:51234".to_owned());
    one.parent = Some(Box::new(context(7, true, "acme=1,other=2")));
    one.link = Some(Box::new(context(8, false, "not a state,,=")));
    let (said, action) = ("deny", Action::Deny);
    one.asked = vec![Asked { gate: "short".into(), kind: "cel", shadow: false, said, action, from: at(4), to: at(9) }];
    one.trail = Some(Box::new(Trail {
        rungs: vec![
            (Rung::Route, Passage::Pass, at(0)),
            (Rung::Gate, Passage::WouldRefuse(Reason::PolicyUnpriced), at(5)),
            (Rung::Permission, Passage::Refuse(Reason::PolicyUnpriced), at(6)),
        ],
        waits: vec![(Wait::Body, at(1), at(3))],
        request_id: Some("17".to_owned()),
        protocol: Some("2026-07-28".to_owned()),
        decided: Some(at(12)),
    }));
    one
}

#[test]
fn a_refusal_is_told_with_its_rungs_and_what_was_waited_for() {
    let (places, spans) = told(&[refusal()]);
    let [body, gate, server] = spans.as_slice() else { panic!("expected three spans, got {spans:?}") };
    let start = END - 34_000;
    let own = places[0].expect("it is recorded");
    assert_eq!((own.trace, own.sampled), (TRACE, true));
    let expected = Span {
        trace_id: TRACE.to_be_bytes().to_vec(),
        span_id: own.span.to_be_bytes().to_vec(),
        trace_state: "acme=1,other=2".to_owned(),
        parent_span_id: 7_u64.to_be_bytes().to_vec(),
        flags: 0x301,
        name: "tools/call".to_owned(),
        kind: 2,
        start_time_unix_nano: start,
        end_time_unix_nano: END,
        attributes: vec![
            text("portcullis.decision", "refuse"),
            text("portcullis.decision_id", "d1"),
            text("client.address", "192.0.2.7"),
            text("portcullis.server", "cases"),
            text("portcullis.reason", "policy.unpriced"),
            text("portcullis.rung", "permission"),
            text("mcp.method.name", "tools/call"),
            text("mcp.protocol.version", "2026-07-28"),
            text("jsonrpc.request.id", "17"),
            text("gen_ai.operation.name", "execute_tool"),
            text("gen_ai.tool.name", "_other"),
            text("rpc.response.status_code", "-32000"),
            text("error.type", "-32000"),
            pair("portcullis.enforced", Value::BoolValue(true)),
            pair("http.response.status_code", Value::IntValue(200)),
        ],
        events: vec![
            event(start, &[("portcullis.rung", "route"), ("portcullis.outcome", "pass")]),
            event(
                start + 5000,
                &[
                    ("portcullis.rung", "gate"),
                    ("portcullis.outcome", "would_refuse"),
                    ("portcullis.reason", "policy.unpriced"),
                ],
            ),
            event(
                start + 6000,
                &[
                    ("portcullis.rung", "permission"),
                    ("portcullis.outcome", "refuse"),
                    ("portcullis.reason", "policy.unpriced"),
                ],
            ),
        ],
        links: vec![Link {
            trace_id: TRACE.to_be_bytes().to_vec(),
            span_id: 8_u64.to_be_bytes().to_vec(),
            flags: 0x300,
            ..Link::default()
        }],
        status: Some(Status { message: "policy.unpriced".to_owned(), code: 2 }),
        ..Span::default()
    };
    assert_eq!(*server, expected);
    let child = |span: &Span, name: &str, from: u64, to: u64, attributes: Vec<KeyValue>| {
        let expected = Span {
            trace_id: expected.trace_id.clone(),
            span_id: span.span_id.clone(),
            trace_state: expected.trace_state.clone(),
            parent_span_id: expected.span_id.clone(),
            flags: 0x101,
            name: name.to_owned(),
            kind: 1,
            start_time_unix_nano: start + from,
            end_time_unix_nano: start + to,
            attributes,
            status: Some(Status::default()),
            ..Span::default()
        };
        assert_eq!(*span, expected);
    };
    child(body, "body", 1000, 3000, Vec::new());
    let guardrail = vec![
        text("gen_ai.guardrail.component.name", "short"),
        text("gen_ai.guardrail.verdict.type", "deny"),
        text("gen_ai.guardrail.action.type", "deny"),
        text("portcullis.gate.kind", "cel"),
        pair("portcullis.gate.shadow", Value::BoolValue(false)),
    ];
    child(gate, "run_guardrail", 4000, 9000, guardrail);
    assert!(body.span_id != gate.span_id && body.span_id != server.span_id);
}

#[test]
fn an_allowed_call_without_a_parent_begins_a_trace_and_has_its_answer_below() {
    let mut one = refusal();
    (one.parent, one.link, one.rpc_code, one.reason, one.rung) = (None, None, None, None, None);
    (one.outcome, one.recorded, one.capability) = (Outcome::Allowed, true, "tool:search".into());
    let (places, spans) = told(&[one.clone(), one]);
    let [.., answer, server] = spans.as_slice() else { panic!("expected spans, got {spans:?}") };
    assert_eq!((server.name.as_str(), server.flags), ("tools/call search", 0x101));
    assert!(server.parent_span_id.is_empty() && server.trace_state.is_empty() && server.links.is_empty());
    assert_eq!(server.status, Some(Status::default()));
    assert_eq!((answer.name.as_str(), answer.kind), ("answer", 3));
    assert_eq!((answer.start_time_unix_nano, answer.end_time_unix_nano), (END - 22_000, END));
    assert_eq!(answer.attributes, [pair("http.response.status_code", Value::IntValue(200))]);
    let [first, second] = [places[0], places[1]].map(|place| place.expect("it is recorded"));
    assert!(first.trace != second.trace && first.trace != 0 && first.span != second.span);
}

#[test]
fn a_call_that_its_caller_does_not_record_has_no_span() {
    let mut one = refusal();
    one.parent = Some(Box::new(context(7, false, "")));
    assert_eq!(told(&[one]), (vec![None], Vec::new()));
}

fn sampler(name: &str, argument: Option<&str>) -> Sampler {
    Sampler::named(Some(name), argument)
}

#[test]
fn samplers_are_those_of_the_specification() {
    let (sampled, unsampled) = (context(7, true, ""), context(7, false, ""));
    let under = |sampler: Sampler| {
        let records = |parent: Option<&TraceContext>| sampler.records(parent, TRACE);
        (records(None), records(Some(&sampled)), records(Some(&unsampled)), sampler.trails())
    };
    assert_eq!(under(Sampler::named(None, None)), (true, true, false, Trails::ParentOrRoot));
    for (name, argument, expected) in [
        ("always_on", None, (true, true, true, Trails::Always)),
        ("always_off", None, (false, false, false, Trails::Never)),
        ("traceidratio", Some("1"), (true, true, true, Trails::Always)),
        ("traceidratio", Some("nonsense"), (true, true, true, Trails::Always)),
        ("parentbased_always_on", None, (true, true, false, Trails::ParentOrRoot)),
        ("parentbased_always_off", None, (false, true, false, Trails::SampledParent)),
        ("parentbased_traceidratio", Some("0"), (false, true, false, Trails::SampledParent)),
        ("jaeger_remote", None, (true, true, false, Trails::ParentOrRoot)),
    ] {
        assert_eq!(under(sampler(name, argument)), expected, "{name}");
    }
}

#[test]
fn a_ratio_keeps_the_traces_that_every_sdk_keeps() {
    let half = sampler("traceidratio", Some("0.5"));
    // The specification's algorithm as SDKs have it: the lower eight bytes, without their last bit, against the share of 2^63.
    assert!(half.records(None, 0x7fff_ffff_ffff_ffff) && !half.records(None, 0x8000_0000_0000_0000));
    assert!(half.records(None, u128::MAX << 64), "the upper half of an id counts for nothing");
    let mut ids = Ids::default();
    let kept = (0..10_000).filter(|_| half.records(None, ids.trace().expect("random"))).count();
    assert!((4500..5500).contains(&kept), "{kept} of 10000");
}

#[test]
fn ids_are_not_given_twice() {
    let mut ids = Ids::default();
    let given: std::collections::HashSet<_> = (0..1000).map(|_| ids.span().expect("random")).collect();
    assert_eq!(given.len(), 1000);
    assert!(!given.contains(&0));
}
