//! Faults of routes.

use super::edit::Edit::{Add, Cut, Set};
use super::edit::Seed;

const PER_EXT_PROC: &str = "R/typed_per_filter_config/envoy.filters.http.ext_proc";
const PER_RBAC: &str = "R/typed_per_filter_config/envoy.filters.http.rbac";
pub(super) const ROUTES: &[Seed] = &[
    Seed(
        &["route.unclaimed"],
        "routes[elsewhere]",
        &[
            Cut("H/route_config/virtual_hosts/0/routes/2/direct_response"),
            Set("H/route_config/virtual_hosts/0/routes/2/route", r#"{"cluster": "cases"}"#),
        ],
    ),
    Seed(&["route.unknown", "route.unclaimed"], "servers[cases].match.route", &[Set("R/name", "\"renamed\"")]),
    Seed(
        &["route.ext_proc_disabled"],
        "routes[cases].typed_per_filter_config[envoy.filters.http.ext_proc]",
        &[Set(PER_EXT_PROC, r#"{"disabled": true}"#)],
    ),
    Seed(
        &["route.ext_proc_disabled"],
        "routes[cases].typed_per_filter_config[envoy.filters.http.ext_proc]",
        &[Set(
            PER_EXT_PROC,
            r#"{"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "disabled": true}"#,
        )],
    ),
    Seed(
        &["route.ext_proc_disabled"],
        "virtual_hosts[edge].typed_per_filter_config[envoy.filters.http.ext_proc]",
        &[Set(
            "H/route_config/virtual_hosts/0/typed_per_filter_config",
            r#"{"envoy.filters.http.ext_proc": {"disabled": true}}"#,
        )],
    ),
    Seed(
        &["route.grpc_service"],
        "routes[cases].typed_per_filter_config",
        &[Set(PER_EXT_PROC, r#"{"overrides": {"grpc_service": {"envoy_grpc": {"cluster_name": "other"}}}}"#)],
    ),
    Seed(&["route.lock_missing"], "routes[cases]", &[Cut(PER_RBAC)]),
    Seed(
        &["route.lock_disabled"],
        "routes[cases].typed_per_filter_config[envoy.filters.http.rbac]",
        &[Set(PER_RBAC, "{}")],
    ),
    Seed(
        &["route.lock_disabled"],
        "routes[cases].typed_per_filter_config[envoy.filters.http.rbac]",
        &[Set(PER_RBAC, r#"{"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "disabled": true}"#)],
    ),
    Seed(
        &["route.lock_disabled"],
        "weighted_clusters.clusters[cases].typed_per_filter_config[envoy.filters.http.rbac]",
        &[
            Cut("R/route/cluster"),
            Set(
                "R/route/weighted_clusters",
                r#"{"clusters": [{"name": "cases", "weight": 1, "typed_per_filter_config": {"envoy.filters.http.rbac": {}}}]}"#,
            ),
        ],
    ),
    Seed(
        &["route.lock_wrong"],
        "routes[cases].typed_per_filter_config[envoy.filters.http.rbac]",
        &[Cut(
            "R/typed_per_filter_config/envoy.filters.http.rbac/rbac/rules/policies/decided-for-cases/permissions/0/and_rules/rules/0",
        )],
    ),
    Seed(
        &["route.lock_server"],
        "routes[cases].typed_per_filter_config[envoy.filters.http.rbac]",
        &[Cut(
            "R/typed_per_filter_config/envoy.filters.http.rbac/rbac/rules/policies/decided-for-cases/permissions/0/and_rules/rules/1",
        )],
    ),
    Seed(
        &["route.lock_server"],
        "routes[cases].typed_per_filter_config[envoy.filters.http.rbac]",
        &[Set(
            "R/typed_per_filter_config/envoy.filters.http.rbac/rbac/rules/policies/decided-for-cases/permissions/0/and_rules/rules/1/sourced_metadata/metadata_matcher/value/string_match/exact",
            "\"other\"",
        )],
    ),
    Seed(
        &["route.cluster_from_request"],
        "routes[cases].route.cluster_header",
        &[Cut("R/route/cluster"), Set("R/route/cluster_header", "\"x-to\"")],
    ),
    Seed(
        &["route.retry"],
        "routes[cases].route.retry_policy",
        &[Set("R/route/retry_policy", r#"{"retry_on": "5xx"}"#)],
    ),
    Seed(
        &["route.retry"],
        "virtual_hosts[edge].retry_policy",
        &[Set("H/route_config/virtual_hosts/0/retry_policy", r#"{"retry_on": "5xx"}"#)],
    ),
    Seed(
        &["route.hedge"],
        "routes[cases].route.hedge_policy",
        &[Set("R/route/hedge_policy", r#"{"hedge_on_per_try_timeout": true}"#)],
    ),
    Seed(
        &["route.mirror"],
        "routes[cases].route.request_mirror_policies",
        &[Set("R/route/request_mirror_policies", r#"[{"cluster": "cases"}]"#)],
    ),
    Seed(
        &["route.mirror"],
        "route_config.request_mirror_policies",
        &[Set("H/route_config/request_mirror_policies", r#"[{"cluster": "cases"}]"#)],
    ),
    Seed(
        &["route.mirror"],
        "clusters[cases].typed_extension_protocol_options",
        &[Set(
            "C/typed_extension_protocol_options",
            r#"{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {"request_mirror_policies": [{"cluster": "x"}]}}"#,
        )],
    ),
    Seed(
        &["route.internal_redirect"],
        "routes[cases].route.internal_redirect_policy",
        &[Set("R/route/internal_redirect_policy", "{}")],
    ),
    Seed(&["route.timeout"], "routes[cases].route.timeout", &[Cut("R/route/timeout")]),
    Seed(&["route.idle_timeout"], "routes[cases].route.idle_timeout", &[Cut("R/route/idle_timeout")]),
    Seed(
        &["route.stream_duration"],
        "routes[cases].route.max_stream_duration",
        &[Set("R/route/max_stream_duration", r#"{"max_stream_duration": "60s"}"#)],
    ),
    Seed(
        &["route.body_limit"],
        "routes[cases].request_body_buffer_limit",
        &[Set("R/request_body_buffer_limit", "\"1048576\"")],
    ),
    Seed(&["route.body_limit"], "routes[cases].request_body_buffer_limit", &[Cut("R/request_body_buffer_limit")]),
    Seed(
        &["route.response_headers"],
        "routes[cases].response_headers_to_remove",
        &[Cut("R/response_headers_to_remove")],
    ),
    Seed(
        &["route.host_from_request"],
        "routes[cases].route.host_rewrite_header",
        &[Set("R/route/host_rewrite_header", "\"x-host\"")],
    ),
    Seed(
        &["route.request_headers"],
        "routes[cases].request_headers_to_add",
        &[Set("R/request_headers_to_add", r#"[{"header": {"key": "Authorization", "value": "x"}}]"#)],
    ),
    Seed(
        &["route.upgrade"],
        "routes[cases].route.upgrade_configs",
        &[Set("R/route/upgrade_configs", r#"[{"upgrade_type": "websocket"}]"#)],
    ),
    Seed(
        &["route.bypass"],
        "listeners[side].filter_chains[0].filters[tcp]",
        &[Add(
            "/static_resources/listeners/1",
            r#"{"name": "side", "filter_chains": [{"filters": [{"name": "tcp", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy", "cluster": "cases"}}]}]}"#,
        )],
    ),
    Seed(
        &["route.bypass"],
        "listeners[side].filter_chains[0].filters[http].route_config.virtual_hosts[all].routes[0]",
        &[
            Add(
                "/static_resources/clusters/2",
                r#"{"name": "alias", "load_assignment": {"endpoints": [{"lb_endpoints": [{"endpoint": {"address": {"socket_address": {"address": "127.0.0.1", "port_value": 8000}}}}]}]}}"#,
            ),
            Add(
                "/static_resources/listeners/1",
                r#"{"name": "side", "filter_chains": [{"filters": [{"name": "http", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager", "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "alias"}}]}]}}}]}]}"#,
            ),
        ],
    ),
];
