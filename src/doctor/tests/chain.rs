//! Faults of the other filters.

use super::edit::Edit::{Add, Cut, Set};
use super::edit::Seed;

/// The path of the router, before which a filter can be put.
pub(super) const ROUTER: &str = "H/http_filters/4";
pub(super) const CHAIN: &[Seed] = &[
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
