//! What an operator is told: metrics, traces and audit events of real calls through Envoy, at a real OTLP receiver.

mod cardinality;
mod hanging;
mod prometheus;
mod traces;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::collector::{Collector, has, labels};
use crate::support::tls::Certificate;
use crate::support::{Reply, Stack, fixture};

/// Exports come often, so that tests need not wait.
pub(crate) const OFTEN: [(&str, &str); 3] =
    [("OTEL_METRIC_EXPORT_INTERVAL", "200"), ("OTEL_BSP_SCHEDULE_DELAY", "100"), ("OTEL_BLRP_SCHEDULE_DELAY", "100")];

/// A stack that exports to this collector over gRPC, by its configuration.
pub(crate) fn told(collector: &Collector) -> Stack {
    told_with(collector, "  audit: {stdout: json}")
}

pub(crate) fn told_with(collector: &Collector, audit: &str) -> Stack {
    let otlp = format!("  otlp: {{endpoint: \"http://127.0.0.1:{}\"}}\n{audit}", collector.grpc);
    Stack::within(&OFTEN, &[("  audit: {stdout: json}", &otlp)])
}

/// An allowed search, a refused update, a listing with something to hide.
fn run(stack: &Stack) -> [Reply; 3] {
    let allowed = stack.post(&fixture::search());
    let refused = stack.post(&fixture::call("update_case", json!({"id": "17"})));
    let listed = stack.post(&fixture::rpc("tools/list", json!({})));
    [allowed, refused, listed]
}

fn saw_everything(collector: &Collector) {
    let search = [
        ("server", "cases"),
        ("mcp.method.name", "tools/call"),
        ("capability", "tool:search_cases"),
        ("decision", "allow"),
        ("enforced", "true"),
    ];
    let update = [
        ("server", "cases"),
        ("mcp.method.name", "tools/call"),
        ("capability", "tool:update_case"),
        ("decision", "refuse"),
        ("reason", "policy.not_permitted"),
        ("enforced", "true"),
    ];
    collector.wait("both decisions", |got| {
        let once = |labels| got.sum("portcullis.decisions", labels) == 1;
        (once(&search) && once(&update) && got.sum("portcullis.decisions", &[]) == 3).then_some(())
    });
    let hidden = collector.wait("hidden entries", |got| {
        let labels = [("server", "cases"), ("mcp.method.name", "tools/list")];
        Some(got.sum("portcullis.listing.entries_hidden", &labels)).filter(|hidden| *hidden > 0)
    });
    assert_eq!(hidden, 2, "what is not permitted and what is not priced");
    collector.wait("the operations' durations", |got| {
        let points = got.histogram("mcp.server.operation.duration");
        let one = |wanted: &[(&str, &str)]| {
            let point = points.iter().find(|(labels, _)| has(labels, wanted));
            point.is_some_and(|(_, point)| point.count == 1 && point.sum.is_some_and(|sum| sum > 0.0))
        };
        let bounds = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];
        let bounded = points.iter().all(|(_, point)| point.explicit_bounds == bounds);
        let found = one(&[("mcp.method.name", "tools/call"), ("gen_ai.tool.name", "search_cases")])
            && one(&[
                ("mcp.method.name", "tools/call"),
                ("gen_ai.tool.name", "update_case"),
                ("error.type", "-32000"),
                ("rpc.response.status_code", "-32000"),
            ])
            && one(&[("mcp.method.name", "tools/list")]);
        (found && bounded).then_some(())
    });
    collector.wait("the decisions' durations by phase", |got| {
        let points = got.histogram("portcullis.decision.duration");
        let count = |phase| {
            let points = points.iter().filter(|(labels, _)| has(labels, &[("phase", phase), ("server", "cases")]));
            points.map(|(_, point)| point.count).sum::<u64>()
        };
        let finest = points.iter().all(|(_, point)| point.explicit_bounds.first() == Some(&5e-6));
        (["total", "own", "identity", "body"].map(count) == [3, 3, 3, 3] && count("listing") > 0 && finest)
            .then_some(())
    });
    collector.wait("everything else that is counted", |got| {
        let at_least = |name, labels: &[(&str, &str)]| got.sum(name, labels) > 0;
        let found = at_least("portcullis.jwks.refreshes", &[("result", "ok")])
            && at_least("portcullis.definition.listings", &[("server", "cases"), ("result", "ok")])
            && ["portcullis.audit.dropped", "portcullis.streams.open", "portcullis.streams.refused"]
                .iter()
                .all(|name| got.metric(name).is_some() && got.sum(name, &[]) == 0);
        found.then_some(())
    });
}

fn has_the_audit(collector: &Collector, stack: &Stack) {
    let lines = stack.portcullis.audit(3);
    let logs = collector.wait("three audit events", |got| (got.logs.len() == 3).then(|| got.logs.clone()));
    for (line, log) in lines.iter().zip(&logs) {
        assert_eq!(log.event_name, "portcullis.decision");
        let attributes = labels(&log.attributes);
        for (name, value) in line.as_object().expect("an object") {
            let name = match name.as_str() {
                "time" => continue,
                "method" => "mcp.method.name".to_owned(),
                "client_address" => "client.address".to_owned(),
                name => format!("portcullis.{name}"),
            };
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Array(items) => items.iter().map(Value::to_string).collect::<Vec<_>>().join(","),
                other => other.to_string(),
            };
            assert_eq!(attributes.get(&name), Some(&text), "{name} of {line}");
        }
        let refused = line["decision"] == "refuse";
        assert_eq!(log.severity_text, if refused { "WARN" } else { "INFO" }, "{line}");
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(line["trace_id"], hex(&log.trace_id), "{line}");
        assert_eq!(log.span_id.len(), 8);
    }
    assert_eq!(lines[0]["rules"], json!([0]), "the rules that matched the reader");
}

fn is_told_of(collector: &Collector, stack: Stack) {
    let [allowed, refused, listed] = run(&stack);
    assert_eq!((allowed.status, refused.status, listed.status), (200, 200, 200));
    saw_everything(collector);
    has_the_audit(collector, &stack);
    let spans = collector.wait("three spans of calls", |got| {
        let servers: Vec<_> = got.spans.iter().filter(|span| span.kind == 2).cloned().collect();
        (servers.len() == 3).then_some(servers)
    });
    let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["tools/call search_cases", "tools/call update_case", "tools/list"]);
    let text = collector.wait("anything", |got| Some(format!("{:?}{:?}{:?}", got.units(), got.spans, got.logs)));
    assert!(!text.contains("printer") && !text.contains(&stack.reader()), "an argument or a token was exported");
}

#[test]
fn a_collector_is_told_everything_over_grpc() {
    let collector = Collector::start();
    let stack = told(&collector);
    is_told_of(&collector, stack);
    let (resource, units) = collector.wait("a resource", |got| Some((got.resource.clone(), got.units())));
    assert_eq!(resource["service.name"], "portcullis");
    let unit = |name: &str| units.iter().find(|(own, _)| own == name).map(|(_, unit)| unit.as_str());
    assert_eq!(unit("mcp.server.operation.duration"), Some("s"));
    assert_eq!(unit("portcullis.decisions"), Some("{decision}"));
    let known: Vec<_> = portcullis::telemetry::metrics::CATALOG.iter().map(|metric| metric.name).collect();
    assert!(units.iter().all(|(name, _)| known.contains(&name.as_str())), "{units:?}");
}

#[test]
fn a_collector_is_told_everything_over_http_by_variables_that_win() {
    let collector = Collector::start();
    let endpoint = format!("http://127.0.0.1:{}", collector.http);
    let mut environment = OFTEN.to_vec();
    environment.extend([
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str()),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20collector"),
        ("OTEL_SERVICE_NAME", "gatehouse"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=tests"),
    ]);
    // Nobody listens where the configuration points.
    let otlp = "  otlp: {endpoint: \"http://127.0.0.1:1\"}\n  audit: {stdout: json}";
    let stack = Stack::within(&environment, &[("  audit: {stdout: json}", otlp)]);
    is_told_of(&collector, stack);
    let (resource, headers) = collector.wait("a resource", |got| Some((got.resource.clone(), got.headers.clone())));
    assert_eq!((&*resource["service.name"], &*resource["deployment.environment.name"]), ("gatehouse", "tests"));
    assert!(headers.iter().all(|header| header == "Bearer collector") && !headers.is_empty(), "{headers:?}");
}

#[test]
fn what_is_left_is_flushed_when_the_process_stops() {
    let collector = Collector::start();
    let otlp = format!("  otlp: {{endpoint: \"http://127.0.0.1:{}\"}}\n  audit: {{stdout: json}}", collector.grpc);
    // Nothing is exported by itself within the test.
    let seldom = [
        ("OTEL_METRIC_EXPORT_INTERVAL", "3600000"),
        ("OTEL_BSP_SCHEDULE_DELAY", "3600000"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "3600000"),
    ];
    let mut stack = Stack::within(&seldom, &[("  audit: {stdout: json}", &otlp)]);
    run(&stack);
    stack.portcullis.audit(3);
    stack.portcullis.signal(Signal::SIGTERM);
    collector.wait("all three signals", |got| {
        let spans = got.spans.iter().filter(|span| span.kind == 2).count();
        (got.sum("portcullis.decisions", &[]) == 3 && spans == 3 && got.logs.len() == 3).then_some(())
    });
    assert!(stack.portcullis.await_end(std::time::Duration::from_secs(20)).success());
}

#[test]
fn a_collector_behind_tls_is_verified() {
    let certificate = Certificate::new(&["localhost"]);
    let collector = Collector::start_tls(&certificate);
    let dir = tempfile::tempdir().expect("a temporary directory");
    let (own, other) = (dir.path().join("own.pem"), dir.path().join("other.pem"));
    certificate.write_pem(&own);
    Certificate::new(&["localhost"]).write_pem(&other);
    let stack = |ca: &std::path::Path| {
        let (port, ca) = (collector.grpc, ca.display());
        let otlp = format!("  otlp: {{endpoint: \"https://localhost:{port}\", ca: {ca}}}\n  audit: {{stdout: json}}");
        Stack::within(&OFTEN, &[("  audit: {stdout: json}", &otlp)])
    };
    // One that does not know the collector's authority tells it nothing, and says so.
    let stranger = stack(&other);
    run(&stranger);
    let told = || stranger.portcullis.log().contains("audit events cannot be exported").then_some(());
    assert!(crate::support::wait_for(std::time::Duration::from_secs(20), told).is_some());
    assert_eq!(collector.wait("nothing", |got| Some(got.logs.len())), 0);
    let friend = stack(&own);
    run(&friend);
    collector.wait("three audit events", |got| (got.logs.len() == 3).then_some(()));
}
