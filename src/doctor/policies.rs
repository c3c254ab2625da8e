//! What a guarded route does with a decided call: run it again, copy it, cut it, or change it.

use std::time::Duration;

use serde_json::Value;

use super::chain::is_judged;
use super::check::Check;
use super::envoy::{Manager, Part};
use super::finding::Findings;
use super::guarded::Guard;
use super::processor;
use super::routes::{Claim, Route};
use super::value::{at, duration, is_set, is_true, items, member, number, shown, text, words};

/// Envoy's buffer limit of a listener that sets none.
const BUFFER: u64 = 1024 * 1024;

/// Looks at one guarded route that leads to an upstream. `filter` is the name of the `ext_proc` filter.
pub(super) fn examine(
    route: &Route<'_>,
    claim: Claim<'_>,
    manager: &Manager<'_>,
    filter: (&str, &Value),
    out: &mut Findings,
) {
    from_request(&route.part, out);
    repeats(route, out);
    times(route, manager, out);
    if let Some(guard) = claim.guard {
        body_limit(route, guard, manager, filter, out);
    }
    headers(route, claim.guard, out);
    upgrades(route, manager, out);
}

/// The request must not choose where it goes.
fn from_request(route: &Part<'_>, out: &mut Findings) {
    for key in ["route.cluster_header", "route.cluster_specifier_plugin", "route.inline_cluster_specifier_plugin"] {
        if is_set(route.get(key)) {
            out.add(Check::RouteFromRequest, route.below(key), shown(route.get(key)));
        }
    }
    for cluster in route.list("route.weighted_clusters.clusters") {
        if is_set(cluster.get("cluster_header")) {
            out.add(Check::RouteFromRequest, cluster.below("cluster_header"), shown(cluster.get("cluster_header")));
        }
    }
    for key in ["route.host_rewrite_header", "route.host_rewrite_path_regex"] {
        if is_set(route.get(key)) {
            out.add(Check::RouteHost, route.below(key), shown(route.get(key)));
        }
    }
}

/// A decided call runs once.
fn repeats(route: &Route<'_>, out: &mut Findings) {
    let action = route.part.part("route");
    repeating(&action, out);
    repeating(&route.host, out);
    mirrors(&route.table, out);
    for key in ["internal_redirect_policy", "internal_redirect_action"] {
        let value = action.get(key);
        if is_set(value) && value.as_str() != Some("PASS_THROUGH_INTERNAL_REDIRECT") {
            out.add(Check::RouteRedirect, action.below(key), shown(value));
        }
    }
}

/// Retries, hedges and mirrors of a route's action, a virtual host, or a cluster's protocol options.
pub(super) fn repeating(holder: &Part<'_>, out: &mut Findings) {
    for key in ["retry_policy", "retry_policy_typed_config"] {
        let policy = holder.get(key);
        if is_set(policy) && number(member(policy, "num_retries")) != Some(0) {
            out.add(Check::RouteRetry, holder.below(key), shown(policy));
        }
    }
    if is_set(holder.get("hedge_policy")) {
        out.add(Check::RouteHedge, holder.below("hedge_policy"), shown(holder.get("hedge_policy")));
    }
    mirrors(holder, out);
}

fn mirrors(holder: &Part<'_>, out: &mut Findings) {
    for key in ["request_mirror_policies", "request_mirror_policy"] {
        let policies = holder.get(key);
        if is_set(policies) && policies.as_array().is_none_or(|all| !all.is_empty()) {
            out.add(Check::RouteMirror, holder.below(key), shown(policies));
        }
    }
}

/// A stream of events has no length, and may be silent.
fn times(route: &Route<'_>, manager: &Manager<'_>, out: &mut Findings) {
    let action = route.part.part("route");
    let zero = |value: &Value| duration(value) == Some(Duration::ZERO);
    if !zero(action.get("timeout")) {
        let found = if is_set(action.get("timeout")) { shown(action.get("timeout")) } else { "none: 15s".to_owned() };
        out.add(Check::RouteTimeout, action.below("timeout"), found);
    }
    let idle = action.get("idle_timeout");
    let silent = if is_set(idle) { zero(idle) } else { zero(manager.part.get("stream_idle_timeout")) };
    if !silent {
        let of_manager = manager.part.get("stream_idle_timeout");
        let found = match (is_set(idle), is_set(of_manager)) {
            (true, _) => shown(idle),
            (_, true) => format!("none: {} of the connection manager", shown(of_manager)),
            _ => "none: 5m".to_owned(),
        };
        out.add(Check::RouteIdleTimeout, action.below("idle_timeout"), found);
    }
    let own = action.part("max_stream_duration.max_stream_duration");
    let of_manager = manager.part.part("common_http_protocol_options.max_stream_duration");
    for part in [own, of_manager] {
        if duration(part.value).is_some_and(|time| !time.is_zero()) {
            out.add(Check::RouteStreamDuration, &*part.place, shown(part.value));
        }
    }
}

/// A body just over our cap must reach us, so that ours is the answer.
fn body_limit(route: &Route<'_>, guard: &Guard, manager: &Manager<'_>, filter: (&str, &Value), out: &mut Findings) {
    let (name, base) = filter;
    let mode = route.mode(name).map_or_else(|| member(base, "processing_mode"), |mode| mode.value);
    let Some(cap) = guard.request.filter(|_| processor::request_fault(mode, false).is_none()) else { return };
    let keys = ["request_body_buffer_limit", "per_request_buffer_limit_bytes"];
    let own = [&route.part, &route.host].into_iter().flat_map(|level| keys.map(|key| level.part(key)));
    let expected = format!("more than {cap} bytes, `limits.request` of server `{}`", guard.name);
    match own.into_iter().find_map(|part| Some((number(part.value)?, part.place))) {
        Some((limit, _)) if limit > cap => {}
        Some((limit, place)) => out.expecting(Check::RouteBodyLimit, place, expected, limit.to_string()),
        None => {
            let listener = number(manager.listener.get("per_connection_buffer_limit_bytes")).unwrap_or(BUFFER);
            let found = format!("none: {listener} on HTTP/1.1, the window of the stream on HTTP/2");
            out.expecting(Check::RouteBodyLimit, route.part.below("request_body_buffer_limit"), expected, found);
        }
    }
}

/// Headers added behind the decision, and those of the upstream that answer our credential.
fn headers(route: &Route<'_>, guard: Option<&Guard>, out: &mut Findings) {
    let removed: Vec<String> = route
        .levels()
        .iter()
        .flat_map(|level| words(level.get("response_headers_to_remove")))
        .map(str::to_ascii_lowercase)
        .collect();
    let passthrough = guard.is_some_and(|guard| guard.passthrough);
    let wanted = ["set-cookie", "www-authenticate"].into_iter().take(if passthrough { 1 } else { 2 });
    let missing: Vec<&str> = wanted.filter(|name| !removed.iter().any(|own| own == name)).collect();
    if !missing.is_empty() {
        let place = route.part.below("response_headers_to_remove");
        out.add(Check::RouteResponseHeaders, place, format!("`{}` kept", missing.join("`, `")));
    }
    for level in route.levels() {
        let added = items(level.get("request_headers_to_add")).iter().map(|added| text(at(added, "header.key")));
        for name in added.filter(|name| is_judged(name)) {
            out.add(Check::RouteRequestHeaders, level.below("request_headers_to_add"), format!("`{name}`"));
        }
        for name in words(level.get("request_headers_to_remove")).filter(|name| is_judged(name)) {
            out.add(Check::RouteRequestHeaders, level.below("request_headers_to_remove"), format!("`{name}` removed"));
        }
    }
}

/// Upgrades that the route lets through: its own, and the manager's where it does not say otherwise.
fn upgrades(route: &Route<'_>, manager: &Manager<'_>, out: &mut Findings) {
    let kind = |config: &Part<'_>| text(config.get("upgrade_type")).to_ascii_lowercase();
    let on = |config: &Part<'_>| !is_set(config.get("enabled")) || is_true(config.get("enabled"));
    let own = route.part.list("route.upgrade_configs");
    let inherited = manager.part.list("upgrade_configs");
    let inherited = inherited.into_iter().filter(|config| own.iter().all(|own| kind(own) != kind(config)));
    for config in own.iter().cloned().chain(inherited).filter(on) {
        out.add(
            Check::RouteUpgrade,
            format!("{}.route.upgrade_configs", route.part.place),
            format!("`{}` on a guarded route", kind(&config)),
        );
    }
}
