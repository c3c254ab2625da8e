//! The cluster of Portcullis, and those of guarded servers.

use std::time::Duration;

use serde_json::Value;

use super::Context;
use super::check::Check;
use super::envoy::Part;
use super::finding::Findings;
use super::policies;
use super::processor;
use super::value::{any_within, at, duration, is_a, is_set, items, member, number, shown, text, word};
use crate::extproc::listen::Address;

/// Envoy's default of each circuit breaker.
const BREAKER: u64 = 1024;
/// Portcullis's default of `max_streams`.
const STREAMS: u64 = 16_384;
/// Envoy's defaults of HTTP/2 windows.
const WINDOWS: (u64, u64) = (16 * 1024 * 1024, 24 * 1024 * 1024);
/// A connection window below this cannot hold what `max_streams` unread answers take.
const CONNECTION: u64 = 1 << 30;
const PROTOCOL: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";

fn protocol<'a>(cluster: &Part<'a>) -> Part<'a> {
    let place = format!("{}.typed_extension_protocol_options[{PROTOCOL}]", cluster.place);
    Part::new(place, member(cluster.get("typed_extension_protocol_options"), PROTOCOL))
}

/// Looks at the cluster that the `ext_proc` filter `filter` asks.
pub(super) fn portcullis(filter: &Part<'_>, config: &Value, context: &Context<'_>, out: &mut Findings) {
    let name = processor::cluster(config);
    let Some(cluster) = context.envoy.clusters.get(name) else {
        if name.is_empty() {
            out.add(Check::ClusterMissing, filter.below("grpc_service"), "no `envoy_grpc.cluster_name`");
        } else if !context.envoy.partial {
            out.add(
                Check::ClusterMissing,
                filter.below("grpc_service.envoy_grpc.cluster_name"),
                format!("no cluster `{name}`"),
            );
        }
        return;
    };
    let options = protocol(cluster);
    let old = cluster.part("http2_protocol_options");
    let http2 = options.part("explicit_http_config.http2_protocol_options");
    let http2 = if is_set(http2.value) || !is_set(old.value) { http2 } else { old };
    if is_set(http2.value) {
        connection(&http2, context, out);
    } else {
        out.add(Check::ClusterProtocol, &*cluster.place, "HTTP/1.1, or whatever the caller speaks");
    }
    let streams = context.guarded.map_or(STREAMS, |guarded| guarded.max_streams);
    breakers(cluster, &["max_requests", "max_pending_requests"], streams, "`max_streams`", out);
    let connect = duration(cluster.get("connect_timeout")).unwrap_or(Duration::from_secs(5));
    if connect >= processor::message_timeout(config) {
        out.add(Check::ClusterConnectTimeout, cluster.below("connect_timeout"), format!("{connect:?}"));
    }
    lifetime(cluster, &options, out);
    addresses(cluster, name, context, out);
    verified(cluster, out);
}

fn connection(http2: &Part<'_>, context: &Context<'_>, out: &mut Findings) {
    let keepalive = http2.part("connection_keepalive");
    let positive = |key| duration(keepalive.get(key)).is_some_and(|time| !time.is_zero());
    if !positive("interval") || !positive("timeout") {
        out.add(Check::ClusterKeepalive, &*keepalive.place, shown_or_none(keepalive.value));
    }
    let window = |key, default| number(http2.get(key)).unwrap_or(default);
    let stream = window("initial_stream_window_size", WINDOWS.0);
    let whole = window("initial_connection_window_size", WINDOWS.1);
    let streams = context.guarded.map_or(STREAMS, |guarded| guarded.max_streams);
    let enough = stream.saturating_mul(streams).min(CONNECTION);
    if stream > CONNECTION / STREAMS * 16 || whole < enough {
        let found = format!("{stream} for a stream, {whole} for the connection");
        out.add(Check::ClusterWindows, &*http2.place, found);
    }
}

fn shown_or_none(value: &Value) -> String {
    if is_set(value) { shown(value) } else { "none".to_owned() }
}

/// Each open call holds one of these.
fn breakers(cluster: &Part<'_>, keys: &[&str], needed: u64, why: &str, out: &mut Findings) {
    let thresholds = items(cluster.get("circuit_breakers.thresholds"));
    let default = |own: &&Value| word(member(own, "priority"), &["DEFAULT", "HIGH"]) == "DEFAULT";
    let own = thresholds.iter().find(default).unwrap_or(&Value::Null);
    for key in keys {
        let limit = number(member(own, key)).unwrap_or(BREAKER);
        if limit < needed {
            let expected = format!("`{key}` of at least {needed}, {why}");
            let place = cluster.below(&format!("circuit_breakers.thresholds.{key}"));
            out.expecting(Check::ClusterCircuitBreaker, place, expected, limit.to_string());
        }
    }
}

/// A bound on the life of a stream cuts running answers.
fn lifetime(cluster: &Part<'_>, options: &Part<'_>, out: &mut Findings) {
    for holder in [options, cluster] {
        let most = holder.part("common_http_protocol_options.max_stream_duration");
        if duration(most.value).is_some_and(|time| !time.is_zero()) {
            out.add(Check::RouteStreamDuration, &*most.place, shown(most.value));
        }
    }
}

/// Where Portcullis is said to be, and who can listen in on the way.
fn addresses(cluster: &Part<'_>, name: &str, context: &Context<'_>, out: &mut Findings) {
    let place = cluster.below("load_assignment");
    for address in context.envoy.addresses(name) {
        let pipe = text(at(address, "pipe.path"));
        let port = number(at(address, "socket_address.port_value"));
        let fits = match context.guarded.map(|guarded| &guarded.address) {
            None => true,
            Some(Address::Unix(path)) => path.to_string_lossy() == pipe,
            Some(Address::Tcp(own)) => port == Some(u64::from(own.port())),
        };
        if !fits {
            let listens = context.guarded.map(|guarded| guarded.address.to_string()).unwrap_or_default();
            out.expecting(Check::ClusterAddress, &*place, format!("{listens}, `listen.ext_proc`"), shown(address));
        }
        if pipe.is_empty()
            && !is_set(cluster.get("transport_socket"))
            && !is_set(cluster.get("transport_socket_matches"))
        {
            out.add(Check::ClusterPlaintext, &*place, format!("{} without TLS", host(address)));
        }
    }
}

fn host(address: &Value) -> String {
    let socket = member(address, "socket_address");
    format!("{}:{}", text(member(socket, "address")), number(member(socket, "port_value")).unwrap_or_default())
}

/// TLS that takes anyone's certificate protects from nobody.
fn verified(cluster: &Part<'_>, out: &mut Findings) {
    let mut sockets = vec![cluster.part("transport_socket")];
    sockets.extend(cluster.list("transport_socket_matches").into_iter().map(|own| own.part("transport_socket")));
    for socket in sockets {
        let tls = socket.part("typed_config");
        if !is_a(tls.value, "UpstreamTlsContext") {
            continue;
        }
        let context = tls.get("common_tls_context");
        let within =
            |keys: &[&str]| any_within(context, &|map| keys.iter().any(|key| map.get(*key).is_some_and(is_set)));
        let sds = within(&["validation_context_sds_secret_config"]);
        let untrusted = any_within(context, &|map| {
            map.get("trust_chain_verification").and_then(Value::as_str) == Some("ACCEPT_UNTRUSTED")
        });
        let pinned = within(&["verify_certificate_spki", "verify_certificate_hash", "custom_validator_config"]);
        let authority = within(&["trusted_ca", "system_root_certs", "ca_certificate_provider_instance"]);
        let auto = any_within(cluster.value, &|map| map.get("auto_san_validation").is_some_and(super::value::is_true));
        let named = within(&["match_typed_subject_alt_names", "match_subject_alt_names"]) || auto;
        let named = named || is_set(tls.get("auto_sni_san_validation"));
        let found = match (untrusted, sds || pinned, authority, named) {
            (true, ..) => "`trust_chain_verification: ACCEPT_UNTRUSTED`",
            (_, true, ..) => continue,
            (_, _, false, _) => "no `trusted_ca`: any certificate is taken",
            (_, _, _, false) => "no `match_typed_subject_alt_names`: any name is taken",
            _ => continue,
        };
        out.add(Check::ClusterTls, &*tls.place, found);
    }
}

/// Looks at the cluster of a guarded server, which sees the credential.
pub(super) fn upstream(name: &str, credential: bool, context: &Context<'_>, out: &mut Findings) {
    let Some(cluster) = context.envoy.clusters.get(name) else { return };
    let options = protocol(cluster);
    policies::repeating(&options, out);
    lifetime(cluster, &options, out);
    verified(cluster, out);
    let http2 = is_set(options.get("explicit_http_config.http2_protocol_options"));
    let keys: &[&str] =
        if http2 { &["max_requests"] } else { &["max_requests", "max_connections", "max_pending_requests"] };
    let streams = context.guarded.map_or(STREAMS, |guarded| guarded.max_streams);
    breakers(cluster, keys, streams, "`max_streams`: each open stream of events holds one", out);
    let plain = !is_set(cluster.get("transport_socket")) && !is_set(cluster.get("transport_socket_matches"));
    for address in context.envoy.addresses(name) {
        let socket = text(at(address, "socket_address.address"));
        let local = socket.is_empty() || socket == "::1" || socket == "localhost" || socket.starts_with("127.");
        if plain && credential && !local {
            out.add(
                Check::UpstreamPlaintext,
                cluster.below("load_assignment"),
                format!("{} without TLS", host(address)),
            );
        }
    }
    for (filter, config) in context.envoy.http_filters(&options, "http_filters") {
        let Some(config) = config else { continue };
        super::chain::effects(&filter, config, super::envoy::kind(&filter, config), true, context, out);
    }
}
