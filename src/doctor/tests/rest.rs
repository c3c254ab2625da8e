//! Faults of the connection manager, of clusters, and of Envoy itself.

use super::edit::Edit::{Add, Cut, Set};
use super::edit::Seed;

pub(super) const REST: &[Seed] = &[
    Seed(
        &["manager.internal_addresses"],
        ".internal_address_config",
        &[Set("H/internal_address_config", r#"{"cidr_ranges": [{"address_prefix": "10.0.0.0", "prefix_len": 8}]}"#)],
    ),
    Seed(&["manager.remote_address"], ".use_remote_address", &[Cut("H/use_remote_address")]),
    Seed(
        &["manager.local_reply"],
        ".local_reply_config.mappers[0]",
        &[Cut("H/local_reply_config/mappers/0/filter/and_filter/filters/0")],
    ),
    Seed(
        &["manager.local_reply"],
        ".local_reply_config.body_format",
        &[Set("H/local_reply_config/body_format", r#"{"text_format": "no"}"#)],
    ),
    Seed(&["manager.local_reply_missing"], ".local_reply_config", &[Cut("H/local_reply_config")]),
    Seed(
        &["manager.local_reply"],
        ".local_reply_config.mappers[1]",
        &[Add("H/local_reply_config/mappers/1", r#"{"filter": {"status_code_filter": {}}}"#)],
    ),
    Seed(
        &["manager.local_reply", "manager.local_reply_missing"],
        ".local_reply_config.mappers",
        &[Set(
            "H/local_reply_config/mappers/1/filter/and_filter/filters/0/metadata_filter/matcher/value/string_match/exact",
            "\"refuse\"",
        )],
    ),
    Seed(&["manager.local_reply_missing"], ".local_reply_config.mappers", &[Cut("H/local_reply_config/mappers/1")]),
    Seed(&["manager.http3"], "http_connection_manager]", &[Set("H/codec_type", "\"HTTP3\"")]),
    Seed(&["manager.paths"], ".normalize_path", &[Set("H/normalize_path", "true")]),
    Seed(
        &["manager.paths"],
        ".path_with_escaped_slashes_action",
        &[Set("H/path_with_escaped_slashes_action", "\"UNESCAPE_AND_FORWARD\"")],
    ),
    Seed(&["manager.underscores"], "headers_with_underscores_action", &[Cut("H/common_http_protocol_options")]),
    Seed(
        &["manager.chunked_length"],
        ".allow_chunked_length",
        &[Set("H/http_protocol_options", r#"{"allow_chunked_length": true}"#)],
    ),
    Seed(
        &["manager.client_cert"],
        ".forward_client_cert_details",
        &[Set("H/forward_client_cert_details", "\"ALWAYS_FORWARD_ONLY\"")],
    ),
    Seed(&["manager.access_log"], ".access_log", &[Set("H/access_log", "[]")]),
    Seed(
        &["manager.access_log_secret"],
        ".access_log[envoy.access_loggers.file]",
        &[Set("H/access_log/0/typed_config/log_format/json_format/token", "\"%REQ(Authorization)%\"")],
    ),
    Seed(&["cluster.missing"], ".grpc_service.envoy_grpc.cluster_name", &[Set("P/name", "\"renamed\"")]),
    Seed(&["cluster.protocol"], "clusters[portcullis]", &[Cut("P/typed_extension_protocol_options")]),
    Seed(
        &["cluster.keepalive"],
        "connection_keepalive",
        &[Cut(
            "P/typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions/explicit_http_config/http2_protocol_options/connection_keepalive",
        )],
    ),
    Seed(
        &["cluster.windows"],
        "http2_protocol_options",
        &[Cut(
            "P/typed_extension_protocol_options/envoy.extensions.upstreams.http.v3.HttpProtocolOptions/explicit_http_config/http2_protocol_options/initial_connection_window_size",
        )],
    ),
    Seed(
        &["cluster.circuit_breaker"],
        "clusters[portcullis].circuit_breakers.thresholds.max_requests",
        &[Cut("P/circuit_breakers/thresholds/0/max_requests")],
    ),
    Seed(
        &["cluster.circuit_breaker"],
        "clusters[cases].circuit_breakers.thresholds.max_connections",
        &[Cut("C/circuit_breakers/thresholds/0/max_connections")],
    ),
    Seed(&["cluster.connect_timeout"], "clusters[portcullis].connect_timeout", &[Set("P/connect_timeout", "\"10s\"")]),
    Seed(
        &["cluster.address"],
        "clusters[portcullis].load_assignment",
        &[Set("P/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/pipe/path", "\"/other.sock\"")],
    ),
    Seed(
        &["cluster.plaintext", "cluster.address"],
        "clusters[portcullis].load_assignment",
        &[Set(
            "P/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address",
            r#"{"socket_address": {"address": "10.0.0.1", "port_value": 9002}}"#,
        )],
    ),
    Seed(
        &["cluster.tls_unverified"],
        "clusters[cases].transport_socket.typed_config",
        &[Set(
            "C/transport_socket",
            r#"{"typed_config": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "sni": "x"}}"#,
        )],
    ),
    Seed(
        &["cluster.tls_unverified"],
        "clusters[cases].transport_socket.typed_config",
        &[Set(
            "C/transport_socket",
            r#"{"typed_config": {"@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext", "common_tls_context": {"validation_context": {"trusted_ca": {"filename": "x"}}}}}"#,
        )],
    ),
    Seed(
        &["cluster.upstream_plaintext"],
        "clusters[cases].load_assignment",
        &[Set("C/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address/socket_address/address", "\"10.0.0.2\"")],
    ),
    Seed(&["admin.exposed"], "admin.address", &[Set("/admin/address/socket_address/address", "\"0.0.0.0\"")]),
    Seed(
        &["envoy.runtime"],
        "layered_runtime.layers[x].static_layer",
        &[Set(
            "/layered_runtime",
            r#"{"layers": [{"name": "x", "static_layer": {"envoy": {"reloadable_features": {"ext_proc_fail_close_spurious_resp": false}}}}]}"#,
        )],
    ),
    Seed(
        &["envoy.version"],
        "version",
        &[Set("/node", r#"{"user_agent_build_version": {"version": {"major_number": 1, "minor_number": 30}}}"#)],
    ),
    Seed(
        &["input.no_listener", "route.unknown"],
        "static_resources.listeners",
        &[Set("/static_resources/listeners", "[]")],
    ),
    Seed(&["input.incomplete"], "dynamic_resources.lds_config", &[Set("/dynamic_resources", r#"{"lds_config": {}}"#)]),
];
