//! One fault at a time, put into a shipped configuration that has none.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;

use super::chain::{CHAIN, ROUTER};
use super::edit::Edit::{self, Add, Set};
use super::edit::{Seed, apply, pointer, seeded};
use super::processor::PROCESSOR;
use super::rest::REST;
use super::routes::ROUTES;
use super::{EDGE, Guarded, SIDECAR, found, guarded, parsed};
use crate::doctor::Check;
use crate::extproc::listen::Address;
use crate::ladder::server::Matcher;

fn seeds() -> impl Iterator<Item = &'static Seed> {
    PROCESSOR.iter().chain(CHAIN).chain(ROUTES).chain(REST)
}

/// Exactly these ids must be found, the first of them at `place`.
fn check(root: &Value, guarded: &Guarded, ids: &[&str], place: &str) -> Result<(), String> {
    let findings = found(root, Some(guarded));
    let all: HashSet<&str> = findings.iter().map(|(id, _)| *id).collect();
    let right = all == ids.iter().copied().collect();
    let there = findings.iter().any(|(id, own)| *id == ids[0] && own.contains(place));
    if right && there { Ok(()) } else { Err(format!("{ids:?} at {place}: {findings:#?}")) }
}

#[track_caller]
fn expect(root: &Value, guarded: &Guarded, ids: &[&str], place: &str) {
    check(root, guarded, ids, place).unwrap_or_else(|fault| panic!("{fault}"));
}

#[test]
fn each_fault_in_the_shipped_edge_is_found_where_it_is() {
    let mut faults = Vec::new();
    for Seed(ids, place, edits) in seeds() {
        if let Err(fault) = check(&seeded(edits), &guarded(), ids, place) {
            faults.push(fault);
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_check_has_a_seeded_fault() {
    let seeded: HashSet<&str> = seeds().map(|Seed(ids, ..)| ids[0]).collect();
    let elsewhere = [
        "ext_proc.forwarding_namespaces", // each of these has a test of its own below
        "order.jwt_authn",
        "filter.identity_metadata",
        "manager.clients_unverified",
        "filter.conditional",
        "route.buffers_other",
        "input.rejected",
        "input.no_configuration",
    ];
    for check in Check::ALL {
        let id = check.id();
        assert!(seeded.contains(id) != elsewhere.contains(&id), "{id}");
    }
}

#[test]
fn what_a_matcher_or_composite_runs_is_found() {
    let wrap = |config: Value| {
        serde_json::json!({
            "@type": "type.googleapis.com/envoy.extensions.common.matching.v3.ExtensionWithMatcher",
            "extension_config": {"name": "inner", "typed_config": config}, "xds_matcher": {},
        })
    };
    for filter in [1, 2] {
        let mut root = parsed(EDGE);
        let config = root.pointer_mut(&pointer(&format!("H/http_filters/{filter}/typed_config"))).expect("it");
        *config = wrap(config.take());
        let findings = found(&root, Some(&guarded()));
        assert_eq!(findings.iter().map(|(id, _)| *id).collect::<Vec<_>>(), ["filter.conditional"], "{findings:#?}");
    }
    let mut root = parsed(EDGE);
    let lua = r#"{"name": "pick", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.common.matching.v3.ExtensionWithMatcher", "extension_config": {"name": "composite", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.composite.v3.Composite"}}, "xds_matcher": {"on_no_match": {"action": {"typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.composite.v3.ExecuteFilterAction", "typed_config": {"name": "x", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua"}}}}}}}}"#;
    apply(&mut root, &Add(ROUTER, lua));
    expect(&root, &guarded(), &["filter.rewrites"], "http_filters[pick]");
}

#[test]
fn claims_that_envoy_verifies_come_from_its_own_filter_ahead_of_us() {
    const VERIFIES: Edit =
        Add("H/http_filters/1", r#"jwt_authn.JwtAuthentication|, "providers": {"a": {"payload_in_metadata": "a"}}"#);
    let mut guarded = guarded();
    guarded.servers[0].envoy_jwt = true;
    expect(&seeded(&[]), &guarded, &["order.jwt_authn"], ".http_filters");
    assert_eq!(found(&seeded(&[VERIFIES]), Some(&guarded)), []);
    let unread = seeded(&[Set("X/metadata_options/forwarding_namespaces", "{}"), VERIFIES]);
    expect(&unread, &guarded, &["ext_proc.forwarding_namespaces"], ".forwarding_namespaces");
    let forged = Add(
        "H/http_filters/0",
        r#"header_to_metadata.Config|, "request_rules": [{"header": "x", "on_header_present": {"metadata_namespace": "envoy.filters.http.jwt_authn"}}]"#,
    );
    expect(&seeded(&[VERIFIES, forged]), &guarded, &["filter.identity_metadata"], "header_to_metadata]");
}

#[test]
fn certificates_are_asked_for_and_verified_where_they_say_who_calls() {
    let mut guarded = guarded();
    guarded.servers[0].peer = true;
    expect(&seeded(&[]), &guarded, &["manager.clients_unverified"], "transport_socket");
    let tls = |required: bool, validation: &str| {
        let mut root = parsed(EDGE);
        root["static_resources"]["listeners"][0]["filter_chains"][0]["transport_socket"] = serde_json::json!({"typed_config": {
            "require_client_certificate": required,
            "common_tls_context": {"validation_context": serde_json::from_str::<Value>(validation).expect("JSON")},
        }});
        found(&root, Some(&guarded)).len()
    };
    let trusted = r#"{"trusted_ca": {"filename": "x"}}"#;
    assert_eq!(tls(true, trusted), 0);
    assert_eq!(tls(false, trusted), 1);
    assert_eq!(tls(true, "{}"), 1);
    assert_eq!(tls(true, r#"{"trusted_ca": {"filename": "x"}, "trust_chain_verification": "ACCEPT_UNTRUSTED"}"#), 1);
}

#[test]
fn gates_that_take_longer_than_envoy_waits_are_found() {
    let mut guarded = guarded();
    guarded.servers[0].gates = Duration::from_secs(10);
    expect(&seeded(&[]), &guarded, &["ext_proc.message_timeout"], ".message_timeout");
}

#[test]
fn what_our_configuration_says_counts() {
    let mut own = guarded();
    own.servers[0].matcher = Matcher::Cluster(vec!["cases".into()]);
    expect(
        &seeded(&[Set("X/request_attributes", r#"["source.address"]"#)]),
        &own,
        &["ext_proc.request_attributes"],
        "",
    );
    own.servers[0].matcher = Matcher::Cluster(vec!["cases".into(), "gone".into()]);
    expect(&seeded(&[]), &own, &["route.unknown"], "servers[cases].match.cluster");
    let mut own = guarded();
    own.servers[0].request = Some(4 * 1024 * 1024);
    expect(&seeded(&[]), &own, &["route.body_limit"], "routes[cases]");
    let mut own = guarded();
    own.max_streams = 200_000;
    let root = seeded(&[]);
    expect(&root, &own, &["cluster.circuit_breaker"], "clusters[portcullis]");
    let mut own = guarded();
    own.servers[0].passthrough = true;
    let kept = seeded(&[Set("R/response_headers_to_remove", r#"["set-cookie"]"#)]);
    assert_eq!(found(&kept, Some(&own)), []);
    let mut own = guarded();
    own.address = Address::Tcp("127.0.0.1:9002".parse().expect("an address"));
    expect(&seeded(&[]), &own, &["cluster.address"], "clusters[portcullis]");
}

#[test]
fn other_traffic_of_a_sidecar_is_neither_buffered_nor_a_way_around() {
    let mut guarded = guarded();
    guarded.passes = true;
    let mut root = parsed(SIDECAR);
    let host = root.pointer_mut(&pointer("H/route_config/virtual_hosts/1")).expect("the other host");
    host.as_object_mut().expect("it").remove("typed_per_filter_config");
    expect(&root, &guarded, &["route.buffers_other"], "virtual_hosts[other].routes[tunnel]");
    let mut root = parsed(SIDECAR);
    *root.pointer_mut(&pointer("H/route_config/virtual_hosts/1/routes/1/route/cluster")).expect("it") = "cases".into();
    expect(&root, &guarded, &["route.bypass"], "virtual_hosts[other].routes[other]");
}

#[test]
fn an_update_that_envoy_rejected_is_told() {
    let dump = r#"{"configs": [{"@type": "type.googleapis.com/envoy.admin.v3.ListenersConfigDump", "dynamic_listeners": [{"name": "edge", "error_state": {"details": "no"}}]}]}"#;
    let findings = found(&parsed(dump), Some(&guarded()));
    assert!(findings.contains(&("input.rejected", "dynamic_listeners[edge]".to_owned())), "{findings:?}");
}
