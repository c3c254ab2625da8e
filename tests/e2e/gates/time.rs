//! Gates that take longer than Envoy's `message_timeout`: Envoy grants more time where both sides say so, else it answers 504.

use serde_json::json;

use super::assert_gate_frame;
use super::servers::{Gate, Say};
use crate::support::client::Connection;
use crate::support::{Stack, fixture};

const ENVOY: &str = "              message_timeout: 10s";

/// A gate with a timeout of four seconds behind an Envoy whose filter waits for one, and is set and told as given.
fn slow(gate: &Gate, filter: &str, told: &str) -> Stack {
    let gates = format!(
        "  gates: [{{name: acme, grpc: {{address: '{}', timeout: 4s}}, breaker: {{failures: 1000}}}}]\n  limits: {{request",
        gate.address()
    );
    let filter = format!("              message_timeout: 1s\n              {filter} #");
    let told = format!("{told}servers:\n");
    Stack::with(&[("  limits: {request", &gates), ("servers:\n", &told)], &[(ENVOY, &filter)])
}

#[test]
fn a_gate_slower_than_message_timeout_is_waited_for_where_envoy_grants_it() {
    let gate = Gate::start(Say::Slow(2500));
    let stack = slow(&gate, "max_message_timeout: 8s", "envoy: {message_timeout: 1s, max_message_timeout: 8s}\n");
    let request = stack.request(&fixture::search());
    let mut connection = Connection::open(stack.envoy.port).expect("a connection");
    assert_eq!(connection.send(&request).expect("a reply").status, 200);
    assert_eq!((gate.asked(), stack.upstream.count()), (1, 1));
    assert_eq!(stack.envoy.stat("http.edge.ext_proc.portcullis.override_message_timeout_received"), 1);
    // It was no verdict: what the gate says late refuses all the same, in a frame, on the same connection.
    gate.say(Say::SlowDeny(2500));
    let reply = stack.refused_by("payments.limit", 0, || connection.send(&request).expect("a reply"));
    assert_gate_frame(&reply, &json!(1), "payments.limit", "acme");
    // And a gate that never answers ends by its own timeout, before Envoy's longer one.
    gate.say(Say::Hang);
    assert_gate_frame(&stack.refuses(&request, "gate.unavailable"), &json!(1), "gate.unavailable", "acme");
    assert_eq!(stack.envoy.stat("http.edge.ext_proc.portcullis.message_timeouts"), 0);
}

#[test]
fn envoy_that_grants_no_more_time_answers_504_and_nothing_passes() {
    let gate = Gate::start(Say::Slow(2500));
    for told in [
        // A configuration that does not know what Envoy is set to.
        "",
        // One that hopes for more than Envoy grants: Envoy ignores the question, and does not take it for a reply.
        "envoy: {message_timeout: 1s, max_message_timeout: 8s}\n",
    ] {
        let stack = slow(&gate, "", told);
        let asked = gate.asked();
        let reply = stack.send(&stack.request(&fixture::search()));
        assert_eq!((reply.status, gate.asked() - asked, stack.upstream.count()), (504, 1, 0), "{told}: {reply}");
        let record = &stack.portcullis.audit(1)[0];
        assert_eq!((&record["decision"], &record["reason"]), (&json!("abort"), &serde_json::Value::Null), "{record}");
        let ignored = u64::from(!told.is_empty());
        assert_eq!(stack.envoy.stat("http.edge.ext_proc.portcullis.override_message_timeout_ignored"), ignored);
    }
}

#[test]
fn a_gate_within_message_timeout_asks_for_nothing() {
    let gate = Gate::start(Say::Allow);
    let told = "envoy: {message_timeout: 10s, max_message_timeout: 30s}\nservers:\n";
    let gates =
        format!("  gates: [{{name: acme, grpc: {{address: '{}', timeout: 4s}}}}]\n  limits: {{request", gate.address());
    let filter = format!("{ENVOY}\n              max_message_timeout: 30s #");
    let stack = Stack::with(&[("  limits: {request", &gates), ("servers:\n", told)], &[(ENVOY, &filter)]);
    stack.allows(&stack.request(&fixture::search()));
    assert_eq!(stack.envoy.stat("http.edge.ext_proc.portcullis.override_message_timeout_received"), 0);
}
