//! The Prometheus text says the same as the collector was told, of the same run.
//!
//! Portcullis runs in this process here: the text is what an admin listener serves.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;

use portcullis::config;
use portcullis::extproc::listen::{self, Listener};
use portcullis::extproc::service::Service;
use portcullis::identity::KeyStores;
use portcullis::telemetry::Telemetry;
use portcullis::telemetry::counters::Sample;
use serde_json::{Value, json};

use crate::support::collector::{Collector, has};
use crate::support::envoy::EDGE;
use crate::support::fixture::{self, Ports};
use crate::support::stack::edge_edits;
use crate::support::{Envoy, Idp, Upstream, mcp, wait_for};

/// Portcullis in this process, before a real Envoy.
struct Within {
    telemetry: Telemetry,
    envoy: Envoy,
    idp: Idp,
    _upstream: Upstream,
    _runtime: tokio::runtime::Runtime,
    _dir: tempfile::TempDir,
}

impl Within {
    fn start(collector: &Collector) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (idp, upstream) = (Idp::start(), Upstream::start());
        fixture::write_files(dir.path(), &[]);
        upstream.script_own(mcp::answer);
        let otlp = format!("  otlp: {{endpoint: \"http://127.0.0.1:{}\"}}\n  audit: {{stdout: off}}", collector.grpc);
        let text = fixture::configuration(dir.path(), &Ports { idp: idp.port, upstream: upstream.port });
        let file = dir.path().join("portcullis.yaml");
        fs::write(&file, text.replace("  audit: {stdout: json}", &otlp)).expect("portcullis.yaml");
        let keys = KeyStores::new();
        let loaded = config::load(&file, &keys);
        let serving = loaded.serving.unwrap_or_else(|| panic!("{:?}", loaded.faults));
        let telemetry = Telemetry::start(&serving.telemetry, &serving.snapshot.known()).expect("telemetry");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let (audit, counters) = (telemetry.audit().clone(), Arc::clone(telemetry.counters()));
        let service = Service::new(Arc::new(serving.snapshot), audit, counters, 1000).expect("random bytes");
        let listener = runtime.block_on(Listener::bind(&serving.address)).expect("the socket");
        let health = tonic_health::server::health_reporter().1;
        runtime.spawn(listen::serve(listener, None, service, health, 1 << 20, std::future::pending()));
        let places = edge_edits(&dir.path().join("ext_proc.sock"), upstream.port);
        let envoy = Envoy::start(EDGE, &places.each_ref().map(|(from, to)| (*from, to.as_str())));
        Self { telemetry, envoy, idp, _upstream: upstream, _runtime: runtime, _dir: dir }
    }

    fn post(&self, message: &Value) {
        let request = fixture::post(message).bearer(&self.idp.token(&json!({})));
        assert_eq!(request.send(self.envoy.port).status, 200);
    }
}

/// Name, labels and value of one line.
type Line = (String, BTreeMap<String, String>, f64);

/// Reads the exposition format; a line that does not follow it fails the test.
fn parse(text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("expected a value: {line}"));
        let (name, rest) = series.split_once('{').unwrap_or((series, "}"));
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        assert!(!name.is_empty() && name.chars().all(legal), "expected a metric name: {line}");
        let inside = rest.strip_suffix('}').unwrap_or_else(|| panic!("expected labels: {line}"));
        let labels = inside.split("\",").filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once("=\"").unwrap_or_else(|| panic!("expected a label: {line}"));
            (name.to_owned(), value.trim_end_matches('"').to_owned())
        });
        lines.push((name.to_owned(), labels.collect(), value.parse().unwrap_or_else(|_| panic!("a number: {line}"))));
    }
    lines
}

fn value(lines: &[Line], name: &str, wanted: &[(&str, &str)]) -> f64 {
    let fits = |labels: &BTreeMap<String, String>| {
        wanted.iter().all(|(name, value)| labels.get(*name).is_some_and(|found| found == value))
    };
    lines.iter().filter(|(own, labels, _)| own == name && fits(labels)).map(|(.., value)| value).sum()
}

#[test]
fn a_scrape_says_what_the_collector_was_told() {
    let collector = Collector::start();
    let within = Within::start(&collector);
    within.telemetry.metrics().register(Box::new(|| {
        vec![
            Sample { name: "portcullis.config.generation", labels: Vec::new(), value: 7 },
            Sample { name: "portcullis.made.up", labels: Vec::new(), value: 1 },
        ]
    }));
    for _ in 0..5 {
        within.post(&fixture::search());
        within.post(&fixture::call("update_case", json!({"id": "17"})));
    }
    let scrape = || parse(&within.telemetry.metrics().prometheus());
    let duration = "mcp_server_operation_duration_seconds_count";
    let lines = wait_for(std::time::Duration::from_secs(10), || {
        Some(scrape()).filter(|lines| value(lines, duration, &[]) > 9.5)
    });
    let lines =
        lines.unwrap_or_else(|| panic!("expected ten operations:\n{}", within.telemetry.metrics().prometheus()));
    let whole = |name, labels: &[(&str, &str)]| format!("{}", value(&lines, name, labels));
    let search = [("capability", "tool:search_cases"), ("decision", "allow"), ("mcp_method_name", "tools/call")];
    assert_eq!(whole("portcullis_decisions_total", &search), "5");
    let update =
        [("server", "cases"), ("decision", "refuse"), ("reason", "policy.not_permitted"), ("enforced", "true")];
    assert_eq!(whole("portcullis_decisions_total", &update), "5");
    assert_eq!(whole("portcullis_decision_duration_seconds_count", &[("phase", "total")]), "10");
    assert_eq!(whole("portcullis_config_generation", &[]), "7");
    let named = lines.iter().any(|(name, ..)| name.contains("made_up"));
    assert!(!named && lines.iter().any(|(name, ..)| name == "target_info"));

    // The flush exports the same numbers.
    within.telemetry.shutdown(std::time::Duration::from_secs(10));
    collector.wait("the same numbers", |got| {
        let otlp = [("capability", "tool:search_cases"), ("decision", "allow"), ("mcp.method.name", "tools/call")];
        let operations = got.histogram("mcp.server.operation.duration");
        let refused: u64 = operations
            .iter()
            .filter(|(labels, _)| has(labels, &[("error.type", "-32000"), ("gen_ai.tool.name", "update_case")]))
            .map(|(_, point)| point.count)
            .sum();
        let same = got.sum("portcullis.decisions", &otlp) == 5
            && got.sum("portcullis.decisions", &[]) == 10
            && refused == 5
            && got.sum("portcullis.config.generation", &[]) == 7
            && got.spans.iter().filter(|span| span.kind == 2).count() == 10
            && got.logs.len() == 10;
        same.then_some(())
    });
}
