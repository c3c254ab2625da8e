//! The `ext_proc` filter that asks Portcullis: each of its settings.

use std::time::Duration;

use serde_json::Value;

use super::check::Check;
use super::envoy::{Envoy, Part};
use super::finding::Findings;
use super::guarded::Guarded;
use super::value::{at, duration, entries, is_set, is_true, member, shown, text, word, words};
use crate::extproc::listen::Address;
use crate::ladder::server::Matcher;

/// How long Portcullis waits for an issuer's keys or answer while it decides.
const KEYS: Duration = Duration::from_secs(5);
/// Envoy's `message_timeout` where none is set.
const MESSAGE_TIMEOUT: Duration = Duration::from_millis(200);
const HEADER_MODES: [&str; 3] = ["DEFAULT", "SEND", "SKIP"];
const BODY_MODES: [&str; 6] = ["NONE", "STREAMED", "BUFFERED", "BUFFERED_PARTIAL", "FULL_DUPLEX_STREAMED", "GRPC"];
/// Headers that Portcullis sets or removes on the way in and out.
const CHANGED: [&str; 9] = [
    "authorization",
    "cookie",
    "proxy-authorization",
    "connection",
    "accept-encoding",
    "cache-control",
    "etag",
    "content-length",
    "set-cookie",
];
/// Options that change the exchange in a way Portcullis does not speak, or take away what it needs.
const OPTIONS: [&str; 6] = [
    "send_body_without_waiting_for_header_response",
    "allow_content_length_header",
    "processing_request_modifier",
    "on_processing_response",
    "allowed_override_modes",
    "deferred_close_timeout",
];

/// The cluster that an `ext_proc` configuration or override asks.
pub(super) fn cluster(config: &Value) -> &str {
    text(at(config, "grpc_service.envoy_grpc.cluster_name"))
}

/// Whether this `ext_proc` configuration is the one that asks Portcullis, as far as it shows.
pub(super) fn is_ours(part: &Part<'_>, config: &Value, envoy: &Envoy<'_>, guarded: Option<&Guarded>) -> bool {
    let cluster = cluster(config);
    let named =
        [part.name(), cluster, text(member(config, "stat_prefix"))].iter().any(|name| name.contains("portcullis"));
    let receives = words(at(config, "metadata_options.receiving_namespaces.untyped")).any(|name| name == "portcullis");
    let dialled = || {
        let Some(Guarded { address: Address::Unix(path), .. }) = guarded else { return false };
        envoy.addresses(cluster).iter().any(|address| text(at(address, "pipe.path")) == path.to_string_lossy())
    };
    named || receives || dialled()
}

/// What is wrong with the request side of a processing mode; `bodyless` where only GET and HEAD come.
pub(super) fn request_fault(mode: &Value, bodyless: bool) -> Option<String> {
    let headers = word(member(mode, "request_header_mode"), &HEADER_MODES);
    let body = word(member(mode, "request_body_mode"), &BODY_MODES);
    let right = matches!(headers, "SEND" | "DEFAULT") && (body == "BUFFERED" || (bodyless && body == "NONE"));
    (!right).then(|| format!("`request_header_mode: {headers}`, `request_body_mode: {body}`"))
}

/// What is wrong with the response side of a processing mode.
pub(super) fn response_fault(mode: &Value) -> Option<String> {
    let headers = word(member(mode, "response_header_mode"), &HEADER_MODES);
    let body = word(member(mode, "response_body_mode"), &BODY_MODES);
    let trailers = word(member(mode, "response_trailer_mode"), &HEADER_MODES);
    let right = matches!(headers, "SEND" | "DEFAULT") && body == "FULL_DUPLEX_STREAMED" && trailers == "SEND";
    (!right).then(|| {
        format!("`response_header_mode: {headers}`, `response_body_mode: {body}`, `response_trailer_mode: {trailers}`")
    })
}

/// Looks at everything in the filter's own configuration.
pub(super) fn examine(part: &Part<'_>, guarded: Option<&Guarded>, out: &mut Findings) {
    if !is_set(part.get("grpc_service")) && is_set(part.get("http_service")) {
        out.add(Check::HttpService, part.below("http_service"), "`http_service`");
    }
    switches(part, out);
    let mode = part.part("processing_mode");
    if let Some(found) = request_fault(mode.value, false) {
        out.add(Check::RequestMode, &*mode.place, found);
    }
    if let Some(found) = response_fault(mode.value) {
        out.add(Check::ResponseMode, &*mode.place, found);
    }
    timeouts(part, guarded, out);
    mutations(&part.part("mutation_rules"), out);
    metadata(part, guarded, out);
    attributes(part, guarded, out);
    for option in OPTIONS {
        let value = part.get(option);
        if is_set(value) && *value != Value::Bool(false) {
            out.add(Check::Options, part.below(option), format!("`{option}: {}`", shown(value)));
        }
    }
}

fn switches(part: &Part<'_>, out: &mut Findings) {
    for (key, check) in [
        ("failure_mode_allow", Check::FailureModeAllow),
        ("observability_mode", Check::ObservabilityMode),
        ("allow_mode_override", Check::ModeOverride),
        ("disable_immediate_response", Check::DisableImmediateResponse),
    ] {
        if is_true(part.get(key)) {
            out.add(check, part.below(key), format!("`{key}: true`"));
        }
    }
    if word(part.get("route_cache_action"), &["DEFAULT", "CLEAR", "RETAIN"]) == "CLEAR" {
        out.add(Check::RouteCache, part.below("route_cache_action"), "`route_cache_action: CLEAR`");
    }
    if entries(part.get("forward_rules")).next().is_some() {
        out.add(Check::ForwardRules, part.below("forward_rules"), shown(part.get("forward_rules")));
    }
    let code = part.get("status_on_error.code");
    if text(code) != "ServiceUnavailable" && code.as_u64() != Some(503) {
        let found = if is_set(code) { shown(code) } else { "none: 500".to_owned() };
        out.add(Check::StatusOnError, part.below("status_on_error"), found);
    }
}

/// The time Envoy gives Portcullis for one message.
pub(super) fn message_timeout(config: &Value) -> Duration {
    duration(member(config, "message_timeout")).unwrap_or(MESSAGE_TIMEOUT)
}

fn timeouts(part: &Part<'_>, guarded: Option<&Guarded>, out: &mut Findings) {
    let longest = guarded.into_iter().flat_map(|guarded| &guarded.servers).max_by_key(|server| server.gates);
    let (needed, why) = match longest.filter(|server| server.gates > KEYS) {
        Some(server) => (server.gates, format!("the gates of server `{}`", server.name)),
        None => (KEYS, "an issuer's keys".to_owned()),
    };
    let given = message_timeout(part.value);
    if given <= needed {
        let found = if is_set(part.get("message_timeout")) { "" } else { ", Envoy's default" };
        out.expecting(
            Check::MessageTimeout,
            part.below("message_timeout"),
            format!("more than {needed:?}, which Portcullis may wait for {why}"),
            format!("{given:?}{found}"),
        );
    }
    let most = duration(part.get("max_message_timeout")).unwrap_or_default();
    if !most.is_zero() {
        out.add(Check::MaxMessageTimeout, part.below("max_message_timeout"), format!("{most:?}"));
    }
}

fn mutations(rules: &Part<'_>, out: &mut Findings) {
    if is_true(rules.get("disallow_all")) {
        out.add(
            Check::MutationRules,
            rules.below("disallow_all"),
            "`disallow_all: true`: mutations are dropped silently",
        );
    }
    let pattern = rules.get("disallow_expression.regex");
    if is_set(pattern) {
        let regex = regex::Regex::new(&format!("^(?:{})$", text(pattern)));
        let hit = CHANGED.iter().find(|name| regex.as_ref().map_or(true, |regex| regex.is_match(name)));
        if let Some(name) = hit {
            let found = format!("{}, which keeps Portcullis from changing `{name}`", shown(pattern));
            out.add(Check::MutationRules, rules.below("disallow_expression"), found);
        }
    }
    for key in ["allow_all_routing", "allow_envoy"] {
        if is_true(rules.get(key)) {
            out.add(Check::MutationRulesWide, rules.below(key), format!("`{key}: true`"));
        }
    }
}

/// Namespaces in and out; also those of a per-route override that replaces them.
pub(super) fn metadata(part: &Part<'_>, guarded: Option<&Guarded>, out: &mut Findings) {
    let listed = |key: &str| words(part.get(key)).collect::<Vec<_>>();
    let receiving = listed("metadata_options.receiving_namespaces.untyped");
    if !receiving.contains(&"portcullis") {
        let place = part.below("metadata_options.receiving_namespaces.untyped");
        out.add(Check::ReceivingNamespaces, place, format!("{receiving:?}"));
    }
    let forwarding = listed("metadata_options.forwarding_namespaces.untyped");
    let wanted = guarded.is_some_and(|guarded| guarded.servers.iter().any(|server| server.envoy_jwt));
    if wanted && !forwarding.contains(&"envoy.filters.http.jwt_authn") {
        let place = part.below("metadata_options.forwarding_namespaces.untyped");
        out.add(Check::ForwardingNamespaces, place, format!("{forwarding:?}"));
    }
}

fn attributes(part: &Part<'_>, guarded: Option<&Guarded>, out: &mut Findings) {
    let place = part.below("request_attributes");
    let asked: Vec<&str> = words(part.get("request_attributes")).collect();
    if !asked.contains(&"source.address") {
        out.add(Check::SourceAddress, &*place, format!("{asked:?}"));
    }
    let Some(guarded) = guarded else { return };
    for server in &guarded.servers {
        let by = match server.matcher {
            Matcher::Route(_) => Some(("xds.route_name", "`match.route`")),
            Matcher::Cluster(_) => Some(("xds.cluster_name", "`match.cluster`")),
            Matcher::Authority { .. } => None,
        };
        let peer = server.peer.then_some(("connection.uri_san_peer_certificate", "`identity: peer`"));
        for (attribute, why) in by.into_iter().chain(peer) {
            if !asked.contains(&attribute) {
                let expected = format!("`{attribute}`, for {why} of server `{}`", server.name);
                out.expecting(Check::RequestAttributes, &*place, expected, format!("{asked:?}"));
            }
        }
    }
}
