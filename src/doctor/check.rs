//! Every check that there is: its id, how bad its finding is, what was expected, what to do. `docs/doctor.md` says why.

use serde::Serialize;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something may reach a server undecided, twice, or changed after the decision; or a secret may get out.
    Danger,
    /// It fails closed, or at the wrong time: calls are refused, cut or slow where that was not meant.
    Warning,
    /// Worth knowing; nothing is wrong.
    Note,
}

impl Severity {
    /// As it is printed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Danger => "danger",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

macro_rules! checks {
    ($($name:ident $id:literal $severity:ident $expected:literal, $fix:literal;)*) => {
        /// One thing that is looked for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Check {
            $(#[doc = concat!("Expects ", $expected, ".")] $name,)*
        }

        impl Check {
            /// All of them, in the order of `docs/doctor.md`.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The stable id, for filters and tickets.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)* }
            }

            /// How bad it is.
            #[must_use]
            pub fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }

            /// What should have been there.
            #[must_use]
            pub fn expected(self) -> &'static str {
                match self { $(Self::$name => $expected,)* }
            }

            /// What to do.
            #[must_use]
            pub fn fix(self) -> &'static str {
                match self { $(Self::$name => $fix,)* }
            }
        }
    };
}

checks! {
    // The filter.
    ExtProcMissing "ext_proc.missing" Danger "an ext_proc filter that asks Portcullis ahead of guarded routes", "add the ext_proc filter of deploy/envoy/edge.yaml";
    ExtProcDisabled "ext_proc.disabled" Danger "an ext_proc filter that is on", "remove `disabled`";
    ExtProcSeveral "ext_proc.several" Warning "one ext_proc filter that asks Portcullis", "remove all but the first";
    FailureModeAllow "ext_proc.failure_mode_allow" Danger "`failure_mode_allow: false`", "remove it or set it to false";
    ObservabilityMode "ext_proc.observability_mode" Danger "an ext_proc filter that waits for the verdict", "remove `observability_mode`";
    RequestMode "ext_proc.request_mode" Danger "`request_header_mode: SEND` and `request_body_mode: BUFFERED` (NONE on routes for GET and HEAD only)", "take the processing_mode of deploy/envoy/edge.yaml";
    ResponseMode "ext_proc.response_mode" Danger "`response_header_mode: SEND`, `response_body_mode: FULL_DUPLEX_STREAMED`, `response_trailer_mode: SEND`", "take the processing_mode of deploy/envoy/edge.yaml";
    ModeOverride "ext_proc.allow_mode_override" Warning "one static processing mode", "remove `allow_mode_override`";
    DisableImmediateResponse "ext_proc.disable_immediate_response" Warning "immediate responses: they are Portcullis's refusals", "remove `disable_immediate_response`";
    MessageTimeout "ext_proc.message_timeout" Warning "a `message_timeout` above all that Portcullis waits for", "raise `message_timeout`, or lower the gates' timeouts";
    MaxMessageTimeout "ext_proc.max_message_timeout" Note "no `max_message_timeout`: Portcullis never asks for more time", "remove it and set `message_timeout` alone";
    MutationRules "ext_proc.mutation_rules" Danger "mutation rules that let Portcullis replace and remove headers, `authorization` among them", "remove `mutation_rules`";
    MutationRulesWide "ext_proc.mutation_rules_wide" Note "no rules that allow more than Portcullis changes", "remove `allow_all_routing` and `allow_envoy`";
    ReceivingNamespaces "ext_proc.receiving_namespaces" Warning "`metadata_options.receiving_namespaces.untyped` with `portcullis`", "add it: without it the second lock refuses everything";
    ForwardingNamespaces "ext_proc.forwarding_namespaces" Warning "`forwarding_namespaces.untyped` with `envoy.filters.http.jwt_authn`, which `identity: envoy_jwt` reads", "add it";
    RequestAttributes "ext_proc.request_attributes" Warning "`request_attributes` with what the configuration matches and identifies by", "add the attribute";
    SourceAddress "ext_proc.source_address" Note "`request_attributes` with `source.address`, for the audit", "add it";
    RouteCache "ext_proc.route_cache" Danger "the route that was decided about", "set `route_cache_action: RETAIN`";
    ForwardRules "ext_proc.forward_rules" Danger "all request headers sent to Portcullis", "remove `forward_rules`";
    HttpService "ext_proc.http_service" Danger "`grpc_service`: over HTTP no body is sent", "replace `http_service` by `grpc_service`";
    StatusOnError "ext_proc.status_on_error" Note "`status_on_error: {code: ServiceUnavailable}`", "add it, so that callers try again later";
    Options "ext_proc.options" Warning "none of the options that change the exchange", "remove the option";
    // The filters around it.
    FilterConditional "filter.conditional" Danger "ext_proc and the second lock for every request, without a condition", "take the filter out of its matcher or composite";
    FilterOptional "filter.optional" Warning "an Envoy that refuses to start without this filter", "remove `is_optional`";
    FilterDiscovered "filter.discovered" Warning "filters that can be read here", "run doctor against the admin endpoint, or write the filter into the listener";
    OrderRouter "order.router" Danger "`router` last, and only there", "move it to the end";
    OrderCors "order.cors" Warning "`cors` ahead of ext_proc: a preflight has no token", "move it to the front";
    OrderJwtAuthn "order.jwt_authn" Warning "`jwt_authn` with `payload_in_metadata` ahead of ext_proc, for `identity: envoy_jwt`", "add it or move it to the front";
    OrderBetween "order.between" Danger "the second lock directly behind ext_proc", "move what stands between them ahead of ext_proc or behind the lock";
    LockMissing "lock.missing" Danger "a second lock behind ext_proc: `rbac`, ALLOW, metadata `portcullis.decided` is true", "add the rbac filter of deploy/envoy/edge.yaml";
    LockOrder "lock.order" Danger "the second lock behind ext_proc", "move it directly behind ext_proc";
    LockWrong "lock.wrong" Danger "a lock that opens for `portcullis.decided` is true and for nothing else", "take the rules of deploy/envoy/edge.yaml";
    FilterMetadata "filter.metadata" Danger "nobody but Portcullis to write the metadata namespace `portcullis`", "remove it, or let it write another namespace";
    FilterIdentity "filter.identity_metadata" Danger "nobody but `jwt_authn` to write its metadata, which is the caller's identity here", "remove it, or let it write another namespace";
    FilterCode "filter.code" Warning "no code of one's own in the chain: it can write `portcullis` metadata and change what was decided", "remove it, or make sure of what it does";
    FilterRewrites "filter.rewrites" Danger "nothing behind ext_proc that changes body, path, authority or credential", "move it ahead of ext_proc, or remove it";
    FilterEncoding "filter.encoding" Warning "compressors ahead of ext_proc, so that it reads plain answers, and no decompressor behind it", "move it ahead of ext_proc";
    FilterCache "filter.cache" Danger "no cache: it answers callers that nobody decided about with the answers of others", "remove it";
    FilterClearsRoute "filter.clears_route" Danger "nothing behind ext_proc that has the route matched again", "remove `clear_route_cache`, or move the filter ahead of ext_proc";
    FilterReplaces "filter.replaces_answers" Warning "refusals that reach the caller as they are", "remove the filter";
    FilterUnknown "filter.unknown" Note "filters that doctor knows", "see that it neither writes `portcullis` metadata nor changes decided requests";
    XEnvoy "headers.x_envoy" Danger "a `header_mutation` ahead of the router that removes `x-envoy-*` request headers", "add the header_mutation filter of deploy/envoy/edge.yaml";
    // Routes.
    RouteUnknown "route.unknown" Warning "the routes and clusters that portcullis.yaml matches", "correct the name on one of the two sides";
    RouteUnclaimed "route.unclaimed" Warning "a server in portcullis.yaml for each route to an upstream: `unmatched: deny` refuses the others", "name the route in a server's `match`, or remove it";
    RouteBypass "route.bypass" Danger "no way to a guarded upstream but through its server's decision", "remove the way, or guard it: ext_proc, lock and a server's `match`";
    RouteExtProcDisabled "route.ext_proc_disabled" Danger "ext_proc on guarded routes", "remove the per-route `disabled`";
    RouteOtherProcessor "route.grpc_service" Danger "guarded routes that ask Portcullis", "remove the per-route `grpc_service`";
    RouteLockMissing "route.lock_missing" Danger "an RBACPerRoute on each guarded route that asks for its own server", "add the RBACPerRoute of deploy/envoy/edge.yaml with the server's name";
    RouteLockDisabled "route.lock_disabled" Danger "the second lock on", "give the RBACPerRoute the rules of deploy/envoy/edge.yaml, or remove it";
    RouteLockWrong "route.lock_wrong" Danger "a per-route lock that asks for `portcullis.decided` is true, as it replaces the filter's rules", "take the rules of deploy/envoy/edge.yaml";
    RouteLockServer "route.lock_server" Danger "a per-route lock that asks for `portcullis.server` to be the route's server", "set `string_match: {exact: NAME}` to the server's name";
    RouteFromRequest "route.cluster_from_request" Danger "an upstream that the route names, not the request", "name the cluster";
    RouteRetry "route.retry" Danger "no retries: each runs a decided call again", "remove the retry policy";
    RouteHedge "route.hedge" Danger "no hedging: it runs a decided call twice", "remove `hedge_policy`";
    RouteMirror "route.mirror" Danger "no mirroring: it sends a decided call, its credential included, elsewhere", "remove `request_mirror_policies`";
    RouteRedirect "route.internal_redirect" Danger "no internal redirects: the upstream would choose the next request", "remove `internal_redirect_policy`";
    RouteTimeout "route.timeout" Warning "`timeout: 0s`: a stream of events has no length", "set it on the route";
    RouteIdleTimeout "route.idle_timeout" Warning "`idle_timeout: 0s`: a subscription may be silent for hours", "set it on the route";
    RouteStreamDuration "route.stream_duration" Warning "no `max_stream_duration`: it cuts streams of events", "remove it";
    RouteBodyLimit "route.body_limit" Warning "a `request_body_buffer_limit` a little above `limits.request`", "set it on the route, 64 KiB above the cap";
    RouteResponseHeaders "route.response_headers" Warning "`response_headers_to_remove: [set-cookie, www-authenticate]`: they answer our credential", "add them to the route";
    RouteHost "route.host_from_request" Warning "a host that the route names, not the request", "use `host_rewrite_literal`";
    RouteRequestHeaders "route.request_headers" Warning "no headers added behind the decision that it rests on", "remove them from `request_headers_to_add`";
    RouteUpgrade "route.upgrade" Warning "no upgrades on guarded routes: Portcullis refuses them", "remove `upgrade_configs`";
    RouteBuffers "route.buffers_other" Warning "`request_body_mode: NONE` where other traffic passes: large uploads get 413, upgrades hang", "give the route the processing mode of `other` in deploy/envoy/sidecar.yaml";
    // The connection manager.
    InternalAddresses "manager.internal_addresses" Warning "no caller that counts as internal", "remove `internal_address_config`, or see that no caller has such an address";
    RemoteAddress "manager.remote_address" Warning "`use_remote_address: true`: without it callers name their own address", "set it, unless a trusted proxy stands in front";
    LocalReply "manager.local_reply" Warning "local reply mappers that leave alone what Portcullis answers", "limit them by the metadata_filter of deploy/envoy/edge.yaml";
    LocalReplyMissing "manager.local_reply_missing" Note "a local reply mapper that gives Envoy's own refusals as JSON-RPC errors", "take `local_reply_config` of deploy/envoy/edge.yaml";
    Http3 "manager.http3" Warning "HTTP/1.1 and HTTP/2, for which all of this was tested", "remove the HTTP/3 listener";
    Paths "manager.paths" Note "paths as they came", "remove the setting: what does not fit a route is refused anyway";
    Underscores "manager.underscores" Warning "`headers_with_underscores_action: REJECT_REQUEST` (or DROP_HEADER)", "set it in `common_http_protocol_options`";
    ChunkedLength "manager.chunked_length" Warning "requests with one length", "remove `allow_chunked_length`";
    ClientCert "manager.client_cert" Warning "`x-forwarded-client-cert` of callers taken off", "set `forward_client_cert_details` to SANITIZE or SANITIZE_SET";
    ClientsUnverified "manager.clients_unverified" Danger "client certificates that Envoy verifies, as `identity: peer` is made of them", "set `require_client_certificate: true` and a `trusted_ca`, without ACCEPT_UNTRUSTED";
    AccessLog "manager.access_log" Note "an access log with the decision's id", "take the access log of deploy/envoy/edge.yaml";
    AccessLogSecret "manager.access_log_secret" Warning "an access log without tokens and cookies", "remove the field";
    // Clusters.
    ClusterMissing "cluster.missing" Danger "the cluster of Portcullis", "add it, or correct the name";
    ClusterProtocol "cluster.protocol" Warning "HTTP/2 to Portcullis: gRPC needs it", "set `explicit_http_config: {http2_protocol_options: {}}`";
    ClusterKeepalive "cluster.keepalive" Warning "`connection_keepalive` to Portcullis: a frozen one would hang callers for good", "set `connection_keepalive: {interval: 5s, timeout: 5s}`";
    ClusterWindows "cluster.windows" Warning "HTTP/2 windows that unread answers cannot use up", "set `initial_stream_window_size: 65536` and `initial_connection_window_size: 1073741824`";
    ClusterCircuitBreaker "cluster.circuit_breaker" Warning "circuit breakers above the calls that may be open", "raise them as in deploy/envoy/edge.yaml";
    ClusterConnectTimeout "cluster.connect_timeout" Note "a `connect_timeout` below `message_timeout`", "set `connect_timeout: 1s`";
    ClusterAddress "cluster.address" Warning "the address that Portcullis listens on", "correct the endpoint, or `listen.ext_proc`";
    ClusterPlaintext "cluster.plaintext" Danger "a Unix socket or mutual TLS to Portcullis: the credential is on this connection", "listen on a Unix socket, or add `transport_socket`";
    ClusterTls "cluster.tls_unverified" Danger "TLS that verifies authority and name of the other side", "set `trusted_ca` and `match_typed_subject_alt_names`";
    UpstreamPlaintext "cluster.upstream_plaintext" Note "TLS to upstreams on other hosts", "add `transport_socket`, unless the network encrypts";
    // The whole.
    AdminExposed "admin.exposed" Warning "an admin endpoint on loopback: whoever reaches it changes Envoy", "bind it to 127.0.0.1 or a Unix socket";
    Runtime "envoy.runtime" Warning "no runtime key that turns off how ext_proc fails", "remove the key";
    Version "envoy.version" Warning "Envoy 1.40 or newer: older ones let requests pass where this one refuses", "update Envoy";
    Rejected "input.rejected" Warning "configuration that Envoy accepted", "correct it: Envoy runs with the one before";
    NothingServed "input.no_listener" Warning "a listener with an HTTP connection manager", "give doctor the configuration of the Envoy that serves";
    Incomplete "input.incomplete" Note "all listeners, routes and clusters", "run doctor against the admin endpoint of the running Envoy";
    NoConfiguration "input.no_configuration" Note "`--config portcullis.yaml`, to compare routes, limits and timeouts", "name it";
}
