//! The caller's trace goes on in ours.

use opentelemetry_proto::tonic::trace::v1::Span;
use serde_json::{Value, json};

use super::told;
use crate::support::collector::{Collector, labels};
use crate::support::{Stack, fixture};

const HEADER_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const META_TRACE: &str = "0af7651916cd43dd8448eb211c80319c";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A search whose `_meta` has these members too.
fn search_with(meta: &[(&str, Value)]) -> Value {
    let mut message = fixture::search();
    for (key, value) in meta {
        message["params"]["_meta"][*key] = value.clone();
    }
    message
}

/// Sends a search and gives the span that tells of it; the audit line names its trace.
fn span_of(collector: &Collector, stack: &Stack, meta: &[(&str, Value)], headers: &[(&str, &str)]) -> Span {
    let audited = stack.portcullis.audited();
    let mut request = stack.request(&search_with(meta));
    for (name, value) in headers {
        request = request.add(name, value);
    }
    assert_eq!(stack.send(&request).status, 200);
    let line = stack.portcullis.audit(audited + 1).remove(audited);
    let id = line["decision_id"].as_str().expect("an id").to_owned();
    let span = collector.wait("the span of the call", |got| {
        let of_call = |span: &&Span| labels(&span.attributes).get("portcullis.decision_id") == Some(&id);
        got.spans.iter().find(of_call).cloned()
    });
    assert_eq!(line["trace_id"], hex(&span.trace_id), "{line}");
    span
}

#[test]
fn a_trace_goes_on_from_the_header_and_from_meta_and_links_both() {
    let collector = Collector::start();
    let stack = told(&collector);
    let header = format!("00-{HEADER_TRACE}-00f067aa0ba902b7-01");
    let meta =
        [("traceparent", json!(format!("00-{META_TRACE}-b7ad6b7169203331-01"))), ("tracestate", json!("acme=1"))];

    let span = span_of(&collector, &stack, &[], &[("traceparent", &header)]);
    assert_eq!((hex(&span.trace_id), hex(&span.parent_span_id)), (HEADER_TRACE.into(), "00f067aa0ba902b7".into()));
    assert!(span.links.is_empty());

    let span = span_of(&collector, &stack, &meta, &[("traceparent", &header)]);
    assert_eq!((hex(&span.trace_id), hex(&span.parent_span_id)), (META_TRACE.into(), "b7ad6b7169203331".into()));
    let link = &span.links[0];
    assert_eq!((hex(&link.trace_id), hex(&link.span_id)), (HEADER_TRACE.into(), "00f067aa0ba902b7".into()));
    assert_eq!(span.trace_state, "acme=1");

    let span = span_of(&collector, &stack, &meta, &[]);
    assert_eq!(hex(&span.trace_id), META_TRACE);
    assert!(span.links.is_empty());
    // What was forwarded is what came.
    assert_eq!(stack.upstream.last().json(), search_with(&meta));
}

#[test]
fn a_span_shows_the_rungs_and_what_was_waited_for() {
    let collector = Collector::start();
    let stack = told(&collector);
    let span = span_of(&collector, &stack, &[], &[]);
    let attributes = labels(&span.attributes);
    for (name, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.tool.name", "search_cases"),
        ("gen_ai.operation.name", "execute_tool"),
        ("mcp.protocol.version", fixture::VERSION),
        ("jsonrpc.request.id", "1"),
        ("portcullis.server", "cases"),
        ("portcullis.decision", "allow"),
        ("portcullis.enforced", "true"),
    ] {
        assert_eq!(attributes.get(name).map(String::as_str), Some(value), "{name}: {attributes:?}");
    }
    assert_eq!((span.name.as_str(), span.kind), ("tools/call search_cases", 2));
    assert!(span.end_time_unix_nano > span.start_time_unix_nano);
    let rungs: Vec<_> = span
        .events
        .iter()
        .map(|event| {
            let attributes = labels(&event.attributes);
            assert_eq!((event.name.as_str(), attributes["portcullis.outcome"].as_str()), ("rung", "pass"));
            attributes["portcullis.rung"].clone()
        })
        .collect();
    let expected = "route method headers origin token scope body message envelope listed policy permission scope \
                    definition arguments";
    assert_eq!(rungs.join(" "), expected);
    let children = collector.wait("what was waited for", |got| {
        let below = got.spans.iter().filter(|child| child.parent_span_id == span.span_id);
        let mut names: Vec<_> = below.map(|child| child.name.clone()).collect();
        names.sort();
        (names.len() == 4).then_some(names)
    });
    assert_eq!(children, ["answer", "body", "identity", "listing"]);
}

#[test]
fn a_refusal_says_at_which_rung() {
    let collector = Collector::start();
    let stack = told(&collector);
    stack.post(&fixture::call("update_case", json!({"id": "17"})));
    let span = collector.wait("the span", |got| got.spans.iter().find(|span| span.kind == 2).cloned());
    let last = labels(&span.events.last().expect("rungs").attributes);
    assert_eq!(
        (&*last["portcullis.rung"], &*last["portcullis.outcome"], &*last["portcullis.reason"]),
        ("permission", "refuse", "policy.not_permitted")
    );
    let attributes = labels(&span.attributes);
    assert_eq!((&*attributes["error.type"], &*attributes["portcullis.reason"]), ("-32000", "policy.not_permitted"));
    assert_eq!(span.status.map(|status| status.code), Some(2));
}

#[test]
fn sampling_follows_the_caller_and_nonsense_is_ignored() {
    let collector = Collector::start();
    let stack = told(&collector);
    // Not sampled: no span, and the audit still names the trace.
    let header = format!("00-{HEADER_TRACE}-00f067aa0ba902b7-00");
    let reply = stack.send(&stack.request(&fixture::search()).add("traceparent", &header));
    assert_eq!(reply.status, 200);
    assert_eq!(stack.portcullis.audit(1)[0]["trace_id"], HEADER_TRACE);
    for parent in [
        "nonsense".to_owned(),
        format!("00-{}-00f067aa0ba902b7-01", HEADER_TRACE.to_uppercase()),
        format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
        "0".repeat(5000),
    ] {
        let huge = "a=b,".repeat(1000);
        let headers = [("traceparent", parent.as_str()), ("tracestate", &huge)];
        let meta = [("traceparent", json!(parent)), ("tracestate", json!({"not": "text"}))];
        let span = span_of(&collector, &stack, &meta, &headers);
        assert!(span.parent_span_id.is_empty() && span.links.is_empty() && span.trace_state.is_empty(), "{parent}");
    }
    let spans = collector.wait("the spans", |got| Some(got.spans.clone()));
    assert!(spans.iter().all(|span| hex(&span.trace_id) != HEADER_TRACE), "an unsampled call was recorded");
}

#[test]
fn a_gate_is_a_span_of_its_own() {
    let collector = Collector::start();
    let otlp = format!("  otlp: {{endpoint: \"http://127.0.0.1:{}\"}}\n  audit: {{stdout: json}}", collector.grpc);
    let gates =
        "  gates: [{name: short, cel: 'size(arguments.query) < 3'}, {name: watching, mode: shadow, cel: 'false'}]\n";
    let limits = format!("{gates}  limits: {{request");
    let edits = [("  audit: {stdout: json}", otlp.as_str()), ("  limits: {request", limits.as_str())];
    let stack = Stack::within(&super::OFTEN, &edits);
    stack.post(&fixture::search());
    let span = collector.wait("the gate's span", |got| {
        let short = |span: &&Span| {
            labels(&span.attributes).get("gen_ai.guardrail.component.name").is_some_and(|name| name == "short")
        };
        got.spans.iter().find(short).cloned()
    });
    let attributes = labels(&span.attributes);
    assert_eq!(span.name, "run_guardrail");
    assert_eq!(
        (&*attributes["gen_ai.guardrail.verdict.type"], &*attributes["gen_ai.guardrail.action.type"]),
        ("deny", "deny")
    );
    collector.wait("the gate's metrics", |got| {
        let denied = [("server", "cases"), ("gate", "short"), ("result", "deny"), ("shadow", "false")];
        let timed = got.histogram("portcullis.gate.duration");
        let timed = timed.iter().any(|(labels, point)| labels["gate"] == "short" && point.count == 1);
        (got.sum("portcullis.gate.calls", &denied) == 1 && timed).then_some(())
    });
}
