//! The HTTP filters of one connection manager: which stand where, and what they may do to a decided request.

use serde_json::Value;

use super::Context;
use super::check::Check;
use super::envoy::{Part, kind};
use super::finding::Findings;
use super::lock;
use super::processor;
use super::value::{any_within, at, is_a, is_set, is_true, items, member, text};

/// Filters that neither change what was decided nor write metadata of their own accord.
const HARMLESS: [&str; 30] = [
    "router",
    "cors",
    "buffer",
    "health_check",
    "ratelimit",
    "local_ratelimit",
    "jwt_authn",
    "fault",
    "csrf",
    "ip_tagging",
    "grpc_stats",
    "adaptive_concurrency",
    "admission_control",
    "bandwidth_limit",
    "dynamic_forward_proxy",
    "original_src",
    "stateful_session",
    "rbac",
    "set_metadata",
    "header_to_metadata",
    "json_to_metadata",
    "sse_to_metadata",
    "upstream_codec",
    "geoip",
    "basic_auth",
    "api_key_auth",
    "rate_limit_quota",
    "file_system_buffer",
    "alternate_protocols_cache",
    "body_size_limit",
];
/// Filters that run someone's code.
const CODE: [&str; 4] = ["lua", "wasm", "golang", "dynamic_modules"];
/// Filters that change body, path, authority or credential.
const REWRITES: [&str; 21] = [
    "ext_proc",
    "ext_authz",
    "grpc_web",
    "grpc_json_transcoder",
    "grpc_json_reverse_transcoder",
    "grpc_http1_bridge",
    "grpc_http1_reverse_bridge",
    "connect_grpc_bridge",
    "aws_lambda",
    "aws_request_signing",
    "credential_injector",
    "gcp_authn",
    "proto_message_extraction",
    "proto_api_scrubber",
    "mcp",
    "mcp_router",
    "mcp_json_rest_bridge",
    "a2a",
    "ai_protocol_manager",
    "on_demand",
    "oauth2",
];
/// Request headers that were judged, or that carry the credential.
const JUDGED: [&str; 8] =
    [":path", ":authority", ":method", ":scheme", "host", "authorization", "content-type", "origin"];

/// One HTTP filter.
pub(super) struct Filter<'a> {
    pub(super) part: Part<'a>,
    pub(super) config: &'a Value,
    pub(super) kind: &'a str,
}

/// What a manager's filters are for us.
#[derive(Default)]
pub(super) struct Chain<'a> {
    pub(super) filters: Vec<Filter<'a>>,
    /// Index of the filter that asks Portcullis.
    processor: Option<usize>,
    /// Index of the second lock behind it.
    lock: Option<usize>,
}

impl<'a> Chain<'a> {
    pub(super) fn processor(&self) -> Option<&Filter<'a>> {
        self.filters.get(self.processor?)
    }

    pub(super) fn lock(&self) -> Option<&Filter<'a>> {
        self.filters.get(self.lock?)
    }

    /// Reads the filters and finds ours among them.
    pub(super) fn read(manager: &Part<'a>, context: &Context<'a>, out: &mut Findings) -> Self {
        let mut filters = Vec::new();
        for (part, config) in context.envoy.http_filters(manager, "http_filters") {
            let Some(config) = config else {
                out.add(
                    Check::FilterDiscovered,
                    &*part.place,
                    "a filter that comes from elsewhere (`config_discovery`)",
                );
                continue;
            };
            let inner = unwrapped(&part, config, out);
            let kind = kind(&part, inner);
            // What a composite runs stands in the matcher around it.
            let config = if kind == "composite" { config } else { inner };
            filters.push(Filter { part, config, kind });
        }
        let mut chain = Self { filters, ..Self::default() };
        chain.find(context, out);
        chain
    }

    fn find(&mut self, context: &Context<'a>, out: &mut Findings) {
        let all: Vec<usize> = self.indices(|filter| filter.kind == "ext_proc");
        let ours: Vec<usize> = self.indices(|filter| {
            filter.kind == "ext_proc" && processor::is_ours(&filter.part, filter.config, context.envoy, context.guarded)
        });
        self.processor = match (ours.as_slice(), all.as_slice()) {
            ([first, ..], _) => Some(*first),
            // A lone one is taken for ours unless ours stands elsewhere.
            ([], [first]) if !context.envoy.names_us() => Some(*first),
            _ => None,
        };
        for index in ours.iter().skip(1) {
            let place = self.filters.get(*index).map(|filter| filter.part.place.clone()).unwrap_or_default();
            out.add(Check::ExtProcSeveral, place, "one more");
        }
        let Some(processor) = self.processor else { return };
        let mut locks = self.indices(|filter| filter.kind == "rbac" && lock::mentions(filter.config));
        // One that asks for something else is a lock as well, and a wrong one.
        locks.extend(self.indices(|filter| filter.kind == "rbac").into_iter().filter(|index| *index == processor + 1));
        self.lock = locks.iter().copied().filter(|index| *index > processor).min();
    }

    fn indices(&self, is: impl Fn(&Filter<'a>) -> bool) -> Vec<usize> {
        self.filters.iter().enumerate().filter(|(_, filter)| is(filter)).map(|(index, _)| index).collect()
    }

    /// Looks at order and kinds; there is a filter that asks Portcullis.
    pub(super) fn examine(&self, manager: &Part<'a>, context: &Context<'a>, out: &mut Findings) {
        let Some(processor) = self.processor else { return };
        self.locked(manager, processor, out);
        self.ordered(manager, processor, context, out);
        for (index, filter) in self.filters.iter().enumerate() {
            if index == processor || Some(index) == self.lock {
                ours(filter, out);
                continue;
            }
            effects(&filter.part, filter.config, filter.kind, index > processor, context, out);
        }
        let removed = |filter: &Filter<'_>| filter.kind == "header_mutation" && removes_x_envoy(filter.config);
        if !self.filters.iter().any(removed) {
            out.add(
                Check::XEnvoy,
                manager.below("http_filters"),
                "none: callers' x-envoy-retry-on runs a decided call again",
            );
        }
    }

    fn locked(&self, manager: &Part<'a>, processor: usize, out: &mut Findings) {
        let Some(at) = self.lock else {
            let early = self.indices(|filter| filter.kind == "rbac" && lock::mentions(filter.config));
            match early.first().and_then(|index| self.filters.get(*index)) {
                Some(filter) => out.add(Check::LockOrder, &*filter.part.place, "it stands ahead of ext_proc"),
                None => out.add(Check::LockMissing, manager.below("http_filters"), "none"),
            }
            return;
        };
        for between in self.filters.iter().take(at).skip(processor.saturating_add(1)) {
            out.add(Check::OrderBetween, &*between.part.place, format!("`{}` between the two", between.kind));
        }
        let Some(filter) = self.filters.get(at) else { return };
        if let Err(found) = lock::opens_only_for(member(filter.config, "rules"), lock::Asks::Decided) {
            out.add(Check::LockWrong, format!("{}.rules", filter.part.place), found);
        }
    }

    fn ordered(&self, manager: &Part<'a>, processor: usize, context: &Context<'a>, out: &mut Findings) {
        let last = self.filters.len().saturating_sub(1);
        let routers = self.indices(|filter| filter.kind == "router");
        if routers != [last] {
            out.add(Check::OrderRouter, manager.below("http_filters"), format!("router at {routers:?} of 0 to {last}"));
        }
        for index in self.indices(|filter| filter.kind == "cors").into_iter().filter(|index| *index > processor) {
            let place = self.filters.get(index).map(|filter| filter.part.place.clone()).unwrap_or_default();
            out.add(Check::OrderCors, place, "it stands behind ext_proc");
        }
        let wanted = context.guarded.is_some_and(|guarded| guarded.servers.iter().any(|server| server.envoy_jwt));
        let verifies = |filter: &Filter<'_>| {
            let writes = |map: &serde_json::Map<String, Value>| map.contains_key("payload_in_metadata");
            filter.kind == "jwt_authn" && any_within(filter.config, &writes)
        };
        if wanted && !self.filters.iter().take(processor).any(verifies) {
            out.add(Check::OrderJwtAuthn, manager.below("http_filters"), "none ahead of ext_proc");
        }
    }
}

/// Switches of the filter list itself, for our two filters.
fn ours(filter: &Filter<'_>, out: &mut Findings) {
    if is_true(filter.part.get("disabled")) {
        let check = if filter.kind == "ext_proc" { Check::ExtProcDisabled } else { Check::LockWrong };
        out.add(check, filter.part.below("disabled"), "`disabled: true`");
    }
    if is_true(filter.part.get("is_optional")) {
        out.add(Check::FilterOptional, filter.part.below("is_optional"), "`is_optional: true`");
    }
}

/// What a matcher wraps; whether ours runs must not hang on one.
fn unwrapped<'a>(part: &Part<'a>, config: &'a Value, out: &mut Findings) -> &'a Value {
    let wrapped = is_a(config, "ExtensionWithMatcher");
    let inner = if wrapped { at(config, "extension_config.typed_config") } else { config };
    let conditional = wrapped || kind(part, inner) == "composite";
    let holds_ours = |map: &serde_json::Map<String, Value>| {
        let name = map.get("@type").and_then(Value::as_str).unwrap_or_default();
        name.ends_with(".ExternalProcessor") || map.get("filter").and_then(Value::as_str) == Some("portcullis")
    };
    if conditional && any_within(config, &holds_ours) {
        out.add(Check::FilterConditional, &*part.place, "a matcher or composite that decides whether it runs");
    }
    inner
}

/// What one other filter may do. `behind`: it stands behind `ext_proc`, where the request was decided about.
pub(super) fn effects(
    part: &Part<'_>,
    config: &Value,
    kind: &str,
    behind: bool,
    context: &Context<'_>,
    out: &mut Findings,
) {
    writes(part, config, kind, context, out);
    let found = format!("`{kind}`");
    if behind && any_within(config, &|map| map.get("clear_route_cache").is_some_and(is_true)) {
        out.add(Check::FilterClearsRoute, &*part.place, format!("{found} with `clear_route_cache`"));
    }
    match kind {
        "header_mutation" if behind => rewritten(part, config, out),
        "header_mutation" => {}
        "cache" | "cache_v2" => out.add(Check::FilterCache, &*part.place, found),
        "custom_response" => out.add(Check::FilterReplaces, &*part.place, found),
        "compressor" | "decompressor" if behind => {
            out.add(Check::FilterEncoding, &*part.place, format!("{found} behind it"));
        }
        "composite" => nested(part, config, behind, context, out),
        kind if behind && (CODE.contains(&kind) || REWRITES.contains(&kind)) => {
            out.add(Check::FilterRewrites, &*part.place, format!("{found} behind ext_proc"));
        }
        kind if CODE.contains(&kind) => out.add(Check::FilterCode, &*part.place, found),
        "compressor" | "decompressor" => {}
        kind if HARMLESS.contains(&kind) || REWRITES.contains(&kind) => {}
        _ => out.add(Check::FilterUnknown, &*part.place, format!("{found}, which doctor does not know")),
    }
}

/// The filters that a composite may run.
fn nested(part: &Part<'_>, config: &Value, behind: bool, context: &Context<'_>, out: &mut Findings) {
    match config {
        Value::Array(items) => items.iter().for_each(|item| nested(part, item, behind, context, out)),
        Value::Object(map) => {
            let name = text(member(config, "@type"));
            if name.contains(".filters.http.") && !name.contains(".composite.") {
                let kind = name.rsplit('.').nth(2).unwrap_or_default();
                effects(part, config, kind, behind, context, out);
            }
            map.values().for_each(|value| nested(part, value, behind, context, out));
        }
        _ => {}
    }
}

/// Whether it writes metadata that proves a decision or an identity. Also asked of per-route configurations.
pub(super) fn writes(part: &Part<'_>, config: &Value, kind: &str, context: &Context<'_>, out: &mut Findings) {
    let into = |namespace: &str| {
        any_within(config, &|map| {
            let named = ["metadata_namespace", "namespace"]
                .iter()
                .any(|key| map.get(*key).is_some_and(|own| text(own) == namespace));
            let received = map
                .get("receiving_namespaces")
                .is_some_and(|own| own.to_string().contains(&format!("\"{namespace}\"")));
            named || received
        })
    };
    if into("portcullis") {
        out.add(Check::FilterMetadata, &*part.place, format!("`{kind}` that writes it"));
    }
    let identity = context.guarded.is_some_and(|guarded| guarded.servers.iter().any(|server| server.envoy_jwt));
    if identity && kind != "jwt_authn" && into("envoy.filters.http.jwt_authn") {
        out.add(Check::FilterIdentity, &*part.place, format!("`{kind}` that writes it"));
    }
}

fn removes_x_envoy(config: &Value) -> bool {
    items(at(config, "mutations.request_mutations")).iter().any(|mutation| {
        let prefix = at(mutation, "remove_on_match.key_matcher.prefix");
        is_set(prefix) && "x-envoy-".starts_with(text(prefix))
    })
}

fn rewritten(part: &Part<'_>, config: &Value, out: &mut Findings) {
    for mutation in items(at(config, "mutations.request_mutations")) {
        let added = text(at(mutation, "append.header.key"));
        let name = if added.is_empty() { text(member(mutation, "remove")) } else { added }.to_ascii_lowercase();
        if JUDGED.contains(&name.as_str()) || name.starts_with("mcp-") {
            out.add(
                Check::FilterRewrites,
                &*part.place,
                format!("`header_mutation` behind ext_proc that changes `{name}`"),
            );
        }
    }
}

/// Whether a request header was judged, or carries the credential.
pub(super) fn is_judged(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    JUDGED.contains(&name.as_str()) || name.starts_with("mcp-")
}
