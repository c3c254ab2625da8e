//! A collector that is down, hangs or refuses is no concern of the calls.

use std::net::TcpListener;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use super::{OFTEN, run};
use crate::support::collector::Collector;
use crate::support::{Stack, fixture, free_port, wait_for};

fn exporting_to(port: u16, protocol: &str, audit: &str) -> Stack {
    let otlp = format!("  otlp: {{endpoint: \"http://127.0.0.1:{port}\", protocol: {protocol}, timeout: 1s}}\n{audit}");
    Stack::within(&OFTEN, &[("  audit: {stdout: json}", &otlp)])
}

#[test]
fn a_collector_that_is_down_or_hangs_delays_and_loses_no_decision() {
    // Takes connections, never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent_port = silent.local_addr().expect("an address").port();
    for (port, protocol) in [(free_port(), "grpc"), (silent_port, "grpc"), (silent_port, "http/protobuf")] {
        let mut stack = exporting_to(port, protocol, "  audit: {stdout: json}");
        for round in 1..=20 {
            let [allowed, refused, listed] = run(&stack);
            assert_eq!((allowed.status, refused.status, listed.status), (200, 200, 200), "{protocol} to {port}");
            assert_eq!(allowed.json()["result"]["structuredContent"]["count"], 1);
            assert_eq!(refused.json()["error"]["data"]["error"], "policy.not_permitted");
            stack.portcullis.audit(3 * round);
        }
        let failed = || stack.portcullis.log().contains("opentelemetry").then_some(());
        assert!(wait_for(Duration::from_secs(20), failed).is_some(), "exports that failed are logged");
        // Nor does it hold up the end for long.
        stack.portcullis.signal(Signal::SIGTERM);
        assert!(stack.portcullis.await_end(Duration::from_secs(20)).success(), "{protocol} to {port}");
    }
}

#[test]
fn overloaded_because_the_audit_cannot_be_written() {
    // A disk that is full from the first byte.
    let audit = "  audit: {stdout: off, file: /dev/full, when_full: refuse}";
    let stack = Stack::within(&[], &[("  audit: {stdout: json}", audit)]);
    // The first call is admitted: nobody knows yet. From its event on nothing passes.
    stack.post(&fixture::search());
    let refused = wait_for(Duration::from_secs(10), || {
        let reached = stack.upstream.count();
        let reply = stack.post(&fixture::search());
        (reply.status == 503).then(|| (reply.text(), stack.upstream.count() - reached))
    });
    let (text, reached) = refused.expect("calls are refused while their events cannot be written");
    assert!(text.contains("overloaded"), "{text}");
    assert_eq!(reached, 0, "it was refused before it was forwarded");
    for _ in 0..5 {
        assert_eq!(stack.post(&fixture::call("search_cases", json!({"query": "x"}))).status, 503);
    }
}

#[test]
fn events_that_no_collector_takes_are_counted_or_kept() {
    for (when_full, kept, dropped) in [("drop", 0, 3), ("refuse", 3, 0)] {
        let port = free_port();
        let stack = exporting_to(port, "grpc", &format!("  audit: {{stdout: json, when_full: {when_full}}}"));
        run(&stack);
        stack.portcullis.audit(3);
        let complaint = || stack.portcullis.log().contains("audit events cannot be exported").then_some(());
        assert!(wait_for(Duration::from_secs(20), complaint).is_some(), "{when_full}");
        let collector = Collector::start_on(port);
        collector.wait("what became of the events", |got| {
            let lost = got.sum("portcullis.audit.dropped", &[("at", "otlp")]);
            let decided = got.sum("portcullis.decisions", &[]);
            (decided == 3 && lost == dropped && got.logs.len() == kept).then_some(())
        });
    }
}
