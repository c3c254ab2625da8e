//! One fault at a time, put into a shipped configuration that has none.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::Value;

use super::{EDGE, Guarded, SIDECAR, found, guarded, parsed};
use crate::doctor::Check;
use crate::extproc::listen::Address;
use crate::ladder::server::Matcher;

/// A change of the configuration. Paths begin at the root, or with `H` (the connection manager), `R` (the route of POST
/// calls), `S` (the route of GET calls), `X` (the ext_proc filter's configuration), `C` (the server's cluster), `P`
/// (Portcullis's cluster); values are JSON.
enum Edit {
    Set(&'static str, &'static str),
    Cut(&'static str),
    /// A new item ahead of the one that the path ends with.
    Add(&'static str, &'static str),
}
use Edit::{Add, Cut, Set};

fn pointer(path: &str) -> String {
    let manager = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config";
    let routes = format!("{manager}/route_config/virtual_hosts/0/routes");
    let (short, rest) = path.split_at(1);
    match short {
        "H" => format!("{manager}{rest}"),
        "R" => format!("{routes}/1{rest}"),
        "S" => format!("{routes}/0{rest}"),
        "X" => format!("{manager}/http_filters/1/typed_config{rest}"),
        "C" => format!("/static_resources/clusters/0{rest}"),
        "P" => format!("/static_resources/clusters/1{rest}"),
        _ => path.to_owned(),
    }
}

/// A filter of this kind and type; `body` are further fields.
fn expanded(value: &str) -> Value {
    let text = match value.split_once('|') {
        Some((kind, body)) if !value.starts_with('{') => {
            let (kind, message) = kind.split_once('.').expect("kind.Message");
            format!(
                r#"{{"name": "envoy.filters.http.{kind}", "typed_config": {{"@type": "type.googleapis.com/envoy.extensions.filters.http.{kind}.v3.{message}"{body}}}}}"#
            )
        }
        _ => value.to_owned(),
    };
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn apply(root: &mut Value, edit: &Edit) {
    let (path, value) = match edit {
        Set(path, value) | Add(path, value) => (path, Some(expanded(value))),
        Cut(path) => (path, None),
    };
    let pointer = pointer(path);
    let (holder, last) = pointer.rsplit_once('/').expect("a path");
    let last = last.replace("~1", "/");
    let holder = root.pointer_mut(holder).unwrap_or_else(|| panic!("nothing at {holder}"));
    match (holder, edit) {
        (Value::Object(map), Set(..)) => drop(map.insert(last, value.expect("a value"))),
        (Value::Object(map), _) => assert!(map.remove(&last).is_some(), "nothing at {pointer}"),
        (Value::Array(items), edit) => {
            let index: usize = last.parse().expect("an index");
            match edit {
                Set(..) => items[index] = value.expect("a value"),
                Add(..) => items.insert(index, value.expect("a value")),
                Cut(_) => drop(items.remove(index)),
            }
        }
        (other, _) => panic!("cannot edit {other}"),
    }
}

/// What must be found (the first id alone, or with those that follow from the same fault), where, and the fault.
struct Seed(&'static [&'static str], &'static str, &'static [Edit]);

const ROUTER: &str = "H/http_filters/4";
const FILTERS: &[Seed] = &[
    Seed(&["ext_proc.missing"], "http_connection_manager].http_filters", &[Cut("H/http_filters/1")]),
    Seed(
        &["ext_proc.disabled"],
        "http_filters[envoy.filters.http.ext_proc].disabled",
        &[Set("H/http_filters/1/disabled", "true")],
    ),
    Seed(
        &["ext_proc.several", "order.between", "filter.rewrites"],
        "http_filters[envoy.filters.http.ext_proc]",
        &[Add("H/http_filters/2", r#"ext_proc.ExternalProcessor|, "stat_prefix": "portcullis""#)],
    ),
    Seed(&["ext_proc.failure_mode_allow"], ".failure_mode_allow", &[Set("X/failure_mode_allow", "true")]),
    Seed(
        &["ext_proc.failure_mode_allow"],
        "routes[cases-stream].typed_per_filter_config",
        &[Set("S/typed_per_filter_config/envoy.filters.http.ext_proc/overrides/failure_mode_allow", "true")],
    ),
    Seed(&["ext_proc.observability_mode"], ".observability_mode", &[Set("X/observability_mode", "true")]),
    Seed(
        &["ext_proc.request_mode"],
        "ext_proc].typed_config.processing_mode",
        &[Set("X/processing_mode/request_body_mode", "\"BUFFERED_PARTIAL\"")],
    ),
    Seed(
        &["ext_proc.request_mode"],
        "ext_proc].typed_config.processing_mode",
        &[Set("X/processing_mode/request_header_mode", "\"SKIP\"")],
    ),
    Seed(
        &["ext_proc.request_mode"],
        "routes[cases-stream].typed_per_filter_config[envoy.filters.http.ext_proc].overrides.processing_mode",
        &[
            Set("S/match/headers/0/string_match/safe_regex/regex", "\"GET|POST\""),
            Set("S/request_body_buffer_limit", "1114112"),
        ],
    ),
    Seed(&["ext_proc.request_mode"], "routes[cases-stream].typed_per_filter_config", &[Cut("S/match/headers")]),
    Seed(
        &["ext_proc.response_mode"],
        "ext_proc].typed_config.processing_mode",
        &[Set("X/processing_mode/response_header_mode", "\"SKIP\"")],
    ),
    Seed(
        &["ext_proc.response_mode"],
        "ext_proc].typed_config.processing_mode",
        &[Set("X/processing_mode/response_body_mode", "\"STREAMED\"")],
    ),
    Seed(
        &["ext_proc.response_mode"],
        "ext_proc].typed_config.processing_mode",
        &[Cut("X/processing_mode/response_trailer_mode")],
    ),
    Seed(
        &["ext_proc.response_mode"],
        "routes[cases-stream].typed_per_filter_config",
        &[Set(
            "S/typed_per_filter_config/envoy.filters.http.ext_proc/overrides/processing_mode/response_header_mode",
            "\"SKIP\"",
        )],
    ),
    Seed(&["ext_proc.allow_mode_override"], ".allow_mode_override", &[Set("X/allow_mode_override", "true")]),
    Seed(
        &["ext_proc.disable_immediate_response"],
        ".disable_immediate_response",
        &[Set("X/disable_immediate_response", "true")],
    ),
    Seed(&["ext_proc.message_timeout"], ".message_timeout", &[Set("X/message_timeout", "\"5s\"")]),
    Seed(&["ext_proc.message_timeout", "cluster.connect_timeout"], ".message_timeout", &[Cut("X/message_timeout")]),
    Seed(&["ext_proc.max_message_timeout"], ".max_message_timeout", &[Set("X/max_message_timeout", "\"20s\"")]),
    Seed(
        &["ext_proc.mutation_rules"],
        ".mutation_rules.disallow_all",
        &[Set("X/mutation_rules", r#"{"disallow_all": true}"#)],
    ),
    Seed(
        &["ext_proc.mutation_rules"],
        ".mutation_rules.disallow_expression",
        &[Set("X/mutation_rules", r#"{"disallow_expression": {"regex": "auth.*"}}"#)],
    ),
    Seed(
        &["ext_proc.mutation_rules_wide"],
        ".mutation_rules.allow_envoy",
        &[Set("X/mutation_rules", r#"{"allow_envoy": true}"#)],
    ),
    Seed(
        &["ext_proc.receiving_namespaces"],
        ".metadata_options.receiving_namespaces",
        &[Cut("X/metadata_options/receiving_namespaces")],
    ),
    Seed(
        &["ext_proc.request_attributes"],
        ".request_attributes",
        &[Set("X/request_attributes", r#"["source.address"]"#)],
    ),
    Seed(&["ext_proc.source_address"], ".request_attributes", &[Cut("X/request_attributes/0")]),
    Seed(&["ext_proc.route_cache"], ".route_cache_action", &[Set("X/route_cache_action", "\"CLEAR\"")]),
    Seed(
        &["ext_proc.forward_rules"],
        ".forward_rules",
        &[Set("X/forward_rules", r#"{"disallowed_headers": {"patterns": [{"exact": "origin"}]}}"#)],
    ),
    Seed(
        &["ext_proc.http_service", "cluster.missing"],
        ".http_service",
        &[Cut("X/grpc_service"), Set("X/http_service", "{}")],
    ),
    Seed(&["ext_proc.status_on_error"], ".status_on_error", &[Cut("X/status_on_error")]),
    Seed(&["ext_proc.options"], ".allow_content_length_header", &[Set("X/allow_content_length_header", "true")]),
    Seed(
        &["filter.optional"],
        "http_filters[envoy.filters.http.rbac].is_optional",
        &[Set("H/http_filters/2/is_optional", "true")],
    ),
    Seed(
        &["filter.discovered"],
        "http_filters[theirs]",
        &[Add(ROUTER, r#"{"name": "theirs", "config_discovery": {"type_urls": []}}"#)],
    ),
    Seed(&["order.router"], ".http_filters", &[Add("H/http_filters/5", r#"buffer.Buffer|, "max_request_bytes": 1"#)]),
    Seed(
        &["order.cors"],
        "http_filters[envoy.filters.http.cors]",
        &[Cut("H/http_filters/0"), Add("H/http_filters/3", "cors.Cors|")],
    ),
    Seed(&["order.between"], "http_filters[envoy.filters.http.buffer]", &[Add("H/http_filters/2", "buffer.Buffer|")]),
    Seed(&["lock.missing"], ".http_filters", &[Cut("H/http_filters/2")]),
    Seed(
        &["lock.order"],
        "http_filters[early]",
        &[
            Cut("H/http_filters/2"),
            Add(
                "H/http_filters/0",
                r#"{"name": "early", "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC", "rules": {"policies": {"a": {"permissions": [{"metadata": {"filter": "portcullis", "path": [{"key": "decided"}], "value": {"bool_match": true}}}], "principals": [{"any": true}]}}}}}"#,
            ),
        ],
    ),
    Seed(
        &["lock.wrong"],
        "http_filters[envoy.filters.http.rbac].rules",
        &[Set("H/http_filters/2/typed_config/rules/action", "\"DENY\"")],
    ),
    Seed(
        &["lock.wrong"],
        "http_filters[envoy.filters.http.rbac].rules",
        &[Set("H/http_filters/2/typed_config/rules/action", "2")],
    ),
    Seed(&["lock.wrong"], "http_filters[envoy.filters.http.rbac].rules", &[Cut("H/http_filters/2/typed_config/rules")]),
    Seed(
        &["lock.wrong"],
        "http_filters[envoy.filters.http.rbac].rules",
        &[Set(
            "H/http_filters/2/typed_config/rules/policies/more",
            r#"{"permissions": [{"any": true}], "principals": [{"any": true}]}"#,
        )],
    ),
    Seed(
        &["lock.wrong"],
        "http_filters[envoy.filters.http.rbac].rules",
        &[Set(
            "H/http_filters/2/typed_config/rules/policies/decided/permissions/0/sourced_metadata/metadata_matcher/value/bool_match",
            "false",
        )],
    ),
    Seed(
        &["lock.wrong"],
        "http_filters[envoy.filters.http.rbac].rules",
        &[Set(
            "H/http_filters/2/typed_config/rules/policies/decided/permissions/0/sourced_metadata/metadata_matcher/filter",
            "\"other\"",
        )],
    ),
    Seed(
        &["lock.wrong"],
        "http_filters[envoy.filters.http.rbac].rules",
        &[Set(
            "H/http_filters/2/typed_config/rules/policies/decided/permissions/0/sourced_metadata/metadata_matcher/path/0/key",
            "\"id\"",
        )],
    ),
    Seed(
        &["lock.wrong"],
        "http_filters[envoy.filters.http.rbac].rules",
        &[Set(
            "H/http_filters/2/typed_config/rules/policies/decided/permissions/0/sourced_metadata/metadata_source",
            "\"ROUTE\"",
        )],
    ),
    Seed(
        &["lock.wrong"],
        "http_filters[envoy.filters.http.rbac].rules",
        &[Set(
            "H/http_filters/2/typed_config/rules/policies/decided/permissions/0/sourced_metadata/metadata_matcher/invert",
            "true",
        )],
    ),
    Seed(
        &["lock.wrong"],
        "http_filters[envoy.filters.http.rbac].disabled",
        &[Set("H/http_filters/2/disabled", "true")],
    ),
    Seed(
        &["filter.metadata"],
        "http_filters[envoy.filters.http.set_metadata]",
        &[Add(
            "H/http_filters/0",
            r#"set_metadata.Config|, "metadata": [{"metadata_namespace": "portcullis", "value": {"decided": true}}]"#,
        )],
    ),
    Seed(
        &["filter.metadata"],
        "routes[cases].typed_per_filter_config[envoy.filters.http.header_to_metadata]",
        &[Set(
            "R/typed_per_filter_config/envoy.filters.http.header_to_metadata",
            r#"{"request_rules": [{"header": "x", "on_header_present": {"metadata_namespace": "portcullis", "key": "decided"}}]}"#,
        )],
    ),
    Seed(&["filter.code"], "http_filters[envoy.filters.http.lua]", &[Add("H/http_filters/0", "lua.Lua|")]),
    Seed(&["filter.rewrites"], "http_filters[envoy.filters.http.ext_authz]", &[Add(ROUTER, "ext_authz.ExtAuthz|")]),
    Seed(&["filter.rewrites"], "http_filters[envoy.filters.http.wasm]", &[Add(ROUTER, "wasm.Wasm|")]),
    Seed(
        &["filter.rewrites"],
        "http_filters[envoy.filters.http.header_mutation]",
        &[Add(
            "H/http_filters/3/typed_config/mutations/request_mutations/1",
            r#"{"append": {"header": {"key": ":path", "value": "/admin"}}}"#,
        )],
    ),
    Seed(&["filter.encoding"], "http_filters[envoy.filters.http.compressor]", &[Add(ROUTER, "compressor.Compressor|")]),
    Seed(&["filter.cache"], "http_filters[envoy.filters.http.cache]", &[Add("H/http_filters/0", "cache.CacheConfig|")]),
    Seed(
        &["filter.clears_route"],
        "http_filters[envoy.filters.http.jwt_authn]",
        &[Add(ROUTER, r#"jwt_authn.JwtAuthentication|, "providers": {"a": {"clear_route_cache": true}}"#)],
    ),
    Seed(
        &["filter.replaces_answers"],
        "http_filters[envoy.filters.http.custom_response]",
        &[Add("H/http_filters/0", "custom_response.CustomResponse|")],
    ),
    Seed(&["filter.unknown"], "http_filters[envoy.filters.http.novel]", &[Add("H/http_filters/0", "novel.Novel|")]),
    Seed(&["headers.x_envoy"], ".http_filters", &[Cut("H/http_filters/3")]),
    Seed(
        &["headers.x_envoy"],
        "routes[cases].typed_per_filter_config[envoy.filters.http.header_mutation]",
        &[Set(
            "R/typed_per_filter_config/envoy.filters.http.header_mutation",
            r#"{"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "disabled": true}"#,
        )],
    ),
];

const PER_EXT_PROC: &str = "R/typed_per_filter_config/envoy.filters.http.ext_proc";
const PER_RBAC: &str = "R/typed_per_filter_config/envoy.filters.http.rbac";
const ROUTES: &[Seed] = &[
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

const REST: &[Seed] = &[
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

fn seeded(edits: &[Edit]) -> Value {
    let mut root = parsed(EDGE);
    edits.iter().for_each(|edit| apply(&mut root, edit));
    root
}

#[track_caller]
fn expect(root: &Value, guarded: &Guarded, ids: &[&str], place: &str) {
    let findings = found(root, Some(guarded));
    let all: HashSet<&str> = findings.iter().map(|(id, _)| *id).collect();
    assert_eq!(all, ids.iter().copied().collect(), "{place}: {findings:#?}");
    assert!(findings.iter().any(|(id, own)| *id == ids[0] && own.contains(place)), "{place}: {findings:#?}");
}

#[test]
fn each_fault_in_the_shipped_edge_is_found_where_it_is() {
    for Seed(ids, place, edits) in FILTERS.iter().chain(ROUTES).chain(REST) {
        expect(&seeded(edits), &guarded(), ids, place);
    }
}

#[test]
fn every_check_has_a_seeded_fault() {
    let seeded: HashSet<&str> = FILTERS.iter().chain(ROUTES).chain(REST).map(|Seed(ids, ..)| ids[0]).collect();
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
