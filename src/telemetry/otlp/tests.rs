use std::collections::HashMap;
use std::time::Duration;

use super::{Signal, Target};
use crate::telemetry::settings::{Otlp, Protocol};

const CONFIGURED: &str = "http://configured:4317";

fn configured(protocol: Protocol) -> Otlp {
    Otlp { endpoint: CONFIGURED.to_owned(), protocol, timeout: Some(Duration::from_secs(3)), ca: None }
}

fn resolve(signal: Signal, otlp: Option<&Otlp>, variables: &[(&str, &str)]) -> Result<Option<Target>, String> {
    let variables: HashMap<_, _> = variables.iter().copied().collect();
    let read = |name: &str| variables.get(name).map(|text| (*text).to_owned());
    Target::resolve(signal, otlp, &read).map_err(|fault| fault.to_string())
}

fn endpoint(signal: Signal, otlp: Option<&Otlp>, variables: &[(&str, &str)]) -> String {
    resolve(signal, otlp, variables).expect("no fault").expect("a target").endpoint
}

#[test]
fn nothing_is_exported_unless_somebody_names_a_collector() {
    for signal in [Signal::Metrics, Signal::Traces, Signal::Logs] {
        assert_eq!(resolve(signal, None, &[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]), Ok(None));
    }
}

#[test]
fn the_configuration_is_taken_and_http_gets_its_paths() {
    let grpc = configured(Protocol::Grpc);
    let target = resolve(Signal::Traces, Some(&grpc), &[]).expect("no fault").expect("a target");
    assert_eq!((target.endpoint.as_str(), target.protocol, target.timeout.as_secs()), (CONFIGURED, Protocol::Grpc, 3));
    let mut http = configured(Protocol::HttpProtobuf);
    assert_eq!(endpoint(Signal::Metrics, Some(&http), &[]), "http://configured:4317/v1/metrics");
    http.endpoint = "https://configured/otlp/".to_owned();
    assert_eq!(endpoint(Signal::Logs, Some(&http), &[]), "https://configured/otlp/v1/logs");
}

#[test]
fn variables_win_and_a_signals_own_win_over_the_general_ones() {
    let grpc = configured(Protocol::Grpc);
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://general:4318"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4318/custom"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grpc"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"),
    ];
    for otlp in [Some(&grpc), None] {
        assert_eq!(endpoint(Signal::Metrics, otlp, &variables), "http://general:4318/v1/metrics");
        assert_eq!(endpoint(Signal::Traces, otlp, &variables), "http://traces:4318/custom");
        let logs = resolve(Signal::Logs, otlp, &variables).expect("no fault").expect("a target");
        assert_eq!((logs.endpoint.as_str(), logs.protocol), ("http://general:4318", Protocol::Grpc));
        assert_eq!(logs.timeout, Duration::from_millis(250));
    }
}

#[test]
fn signals_can_be_switched_off() {
    let grpc = configured(Protocol::Grpc);
    let none = [("OTEL_TRACES_EXPORTER", "none")];
    assert_eq!(resolve(Signal::Traces, Some(&grpc), &none), Ok(None));
    assert!(resolve(Signal::Logs, Some(&grpc), &none).expect("no fault").is_some());
    for signal in [Signal::Metrics, Signal::Traces, Signal::Logs] {
        assert_eq!(resolve(signal, Some(&grpc), &[("OTEL_SDK_DISABLED", "TRUE")]), Ok(None));
    }
}

#[test]
fn what_means_nothing_is_a_fault_that_says_where() {
    let grpc = configured(Protocol::Grpc);
    for (name, value, expected) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4317", "an http or https URL"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "unix:/x", "an http or https URL"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json", "`grpc` or `http/protobuf`"),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "5s", "milliseconds"),
        ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/nowhere.pem", "cannot read /nowhere.pem"),
    ] {
        let fault = resolve(Signal::Traces, Some(&grpc), &[(name, value)]).expect_err(name);
        assert!(fault.starts_with(name) && fault.contains(expected), "{fault}");
    }
}

#[test]
fn headers_are_decoded_and_a_signals_own_win() {
    let grpc = configured(Protocol::Grpc);
    let general = ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20a%3D%2B, x-tenant = acme%zz ,,");
    let own = ("OTEL_EXPORTER_OTLP_LOGS_HEADERS", "x-tenant=b");
    let headers = |signal| resolve(signal, Some(&grpc), &[general, own]).expect("no fault").expect("a target").headers;
    let traces = headers(Signal::Traces);
    assert_eq!(
        (&traces["authorization"], &traces["x-tenant"]),
        (&"Bearer a=+".parse().unwrap(), &"acme%zz".parse().unwrap())
    );
    let logs = headers(Signal::Logs);
    assert_eq!((logs.len(), &logs["x-tenant"]), (1, &"b".parse().unwrap()));
}

#[test]
fn headers_that_are_none_are_a_fault_that_names_no_credential() {
    let grpc = configured(Protocol::Grpc);
    for text in ["ok=1,secret", "a b=secret", "ok=secret%0A"] {
        let fault = resolve(Signal::Traces, Some(&grpc), &[("OTEL_EXPORTER_OTLP_HEADERS", text)]).expect_err(text);
        assert!(fault.starts_with("OTEL_EXPORTER_OTLP_HEADERS: expected pairs"), "{fault}");
        assert!(!fault.contains("secret"), "{fault}");
    }
}
