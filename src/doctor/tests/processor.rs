//! Faults of the `ext_proc` filter.

use super::edit::Edit::{Add, Cut, Set};
use super::edit::Seed;

pub(super) const PROCESSOR: &[Seed] = &[
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
];
