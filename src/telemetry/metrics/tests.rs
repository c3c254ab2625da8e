use std::sync::Arc;

use super::{CATALOG, Metrics, operation};
use crate::telemetry::counters::{Counters, Sample};
use crate::telemetry::record::Outcome;
use crate::telemetry::testing::record;
use opentelemetry::KeyValue;

fn started(series: usize) -> (Metrics, Arc<Counters>) {
    let counters = Arc::new(Counters::new(Vec::new()));
    let resource = opentelemetry_sdk::Resource::builder_empty().build();
    (Metrics::start(&counters, resource, None, series).expect("metrics"), counters)
}

fn attributes(record: &crate::telemetry::record::Record) -> String {
    let mut pairs: Vec<_> = operation(record, KeyValue::new("server", "cases"))
        .into_iter()
        .map(|pair| format!("{}={}", pair.key, pair.value))
        .collect();
    pairs.sort();
    pairs.join(" ")
}

#[test]
fn an_operation_has_the_conventions_attributes_and_no_callers_word() {
    let mut call = record();
    (call.rpc_code, call.capability) = (Some(-32000), "tool:search".into());
    assert_eq!(
        attributes(&call),
        "error.type=-32000 gen_ai.tool.name=_other mcp.method.name=tools/call rpc.response.status_code=-32000 server=cases"
    );
    call.recorded = true;
    (call.outcome, call.reason, call.rpc_code) = (Outcome::Allowed, None, None);
    assert_eq!(attributes(&call), "gen_ai.tool.name=search mcp.method.name=tools/call server=cases");
    call.tool_error = true;
    assert!(attributes(&call).starts_with("error.type=tool_error "));
}

#[test]
fn a_servers_own_error_codes_are_no_labels() {
    let mut call = record();
    (call.outcome, call.reason) = (Outcome::Allowed, None);
    call.rpc_code = Some(-32602);
    assert!(attributes(&call).contains("error.type=-32602"));
    for code in [7, i64::MAX, -31999] {
        call.rpc_code = Some(code);
        assert!(attributes(&call).contains("error.type=_other"), "{code}");
    }
}

#[test]
fn a_refusal_without_a_frame_is_an_error_by_its_reason() {
    let mut call = record();
    (call.method, call.listed) = ("made/up".into(), None);
    assert_eq!(attributes(&call), "error.type=policy.unpriced mcp.method.name=_other server=cases");
}

#[test]
fn every_metric_has_a_unit_and_a_description_and_a_name_of_its_own() {
    for metric in CATALOG {
        assert!(!metric.unit.is_empty() && !metric.description.is_empty(), "{metric:?}");
        assert_eq!(CATALOG.iter().filter(|other| other.name == metric.name).count(), 1, "{metric:?}");
    }
}

#[test]
fn what_the_configuration_bounds_the_sdk_does_not_cut() {
    let (metrics, counters) = started(20_000);
    for number in 0..5000 {
        let mut one = record();
        (one.capability, one.recorded) = (format!("tool:t{number}").into(), true);
        counters.decided(&one);
    }
    let text = metrics.prometheus();
    assert_eq!(text.lines().filter(|line| line.starts_with("portcullis_decisions_total{")).count(), 5000);
    assert!(!text.contains("otel_metric_overflow"));
}

#[test]
fn a_source_is_read_each_time_and_what_is_unknown_is_not_told() {
    let (metrics, _) = started(2000);
    let reloads = Arc::new(std::sync::atomic::AtomicU64::new(3));
    let read = Arc::clone(&reloads);
    metrics.register(Box::new(move || {
        let value = read.load(std::sync::atomic::Ordering::Relaxed);
        let sample = |name| Sample { name, labels: vec![("result", "ok".to_owned())], value };
        vec![sample("portcullis.config.reloads"), sample("portcullis.nobody.knows")]
    }));
    assert!(metrics.prometheus().contains("portcullis_config_reloads_total{result=\"ok\"} 3\n"));
    reloads.store(4, std::sync::atomic::Ordering::Relaxed);
    let text = metrics.prometheus();
    assert!(text.contains("portcullis_config_reloads_total{result=\"ok\"} 4\n"), "{text}");
    assert!(!text.contains("nobody"));
}

/// The lines of one metric that have all these labels.
fn lines<'a>(text: &'a str, name: &str, labels: &[&str]) -> Vec<&'a str> {
    let start = format!("{name}{{");
    let all = text.lines().filter(|line| line.starts_with(&start));
    all.filter(|line| labels.iter().all(|label| line.contains(label))).collect()
}

#[test]
fn each_label_set_has_a_histogram_of_its_own() {
    let (metrics, _) = started(2000);
    let mut allowed = record();
    (allowed.outcome, allowed.reason, allowed.recorded) = (Outcome::Allowed, None, true);
    let mut elsewhere = record();
    elsewhere.server = None;
    for one in [&record(), &record(), &allowed, &elsewhere] {
        metrics.observe(one);
    }
    let text = metrics.prometheus();
    let count = |labels: &[&str]| {
        let found = lines(&text, "mcp_server_operation_duration_seconds_count", labels);
        assert_eq!(found.len(), 1, "{labels:?}: {text}");
        found[0].rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(count(&["server=\"cases\"", "error_type=\"policy.unpriced\""]), "2");
    assert_eq!(count(&["server=\"cases\"", "gen_ai_tool_name=\"a\\\"b\""]), "1");
    assert_eq!(count(&["server=\"_none\""]), "1");
    let totals = lines(&text, "portcullis_decision_duration_seconds_count", &["phase=\"total\"", "server=\"cases\""]);
    assert_eq!(totals.len(), 1);
    assert!(totals[0].ends_with(" 3"), "{totals:?}");
}

#[test]
fn what_is_bound_is_bounded_and_nothing_is_lost_when_it_is_forgotten() {
    let (metrics, _) = started(2000);
    // More than may be bound: two for each.
    for round in 0..2 {
        for number in 0..1100 {
            let mut one = record();
            (one.capability, one.recorded) = (format!("tool:t{number}").into(), true);
            one.server = Some((format!("s{number}").into(), 0));
            metrics.observe(&one);
        }
        let bound = metrics.bound.lock().unwrap().count();
        assert!(bound <= 2002, "{bound} are bound after round {round}");
    }
    let text = metrics.prometheus();
    let counts = lines(&text, "mcp_server_operation_duration_seconds_count", &[]);
    assert_eq!(counts.len(), 1100);
    assert!(counts.iter().all(|line| line.ends_with(" 2")));
}
