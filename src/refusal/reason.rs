//! The one table of reasons: code, class, HTTP status, JSON-RPC code, public text.

/// What a refusal looks like on the wire (ladder.md §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// One failed call: a frame at HTTP 200 where a request can carry it.
    Policy,
    /// 401 or 403 with `WWW-Authenticate`.
    Challenge,
    /// The specification's own status, the body a frame.
    Protocol,
    /// The server behind us misbehaved: 502 with a frame.
    Upstream,
    /// We cannot decide now: retry later.
    Unavailable,
}

/// Who decides: one rung of the ladder. Its name is the frame's `plugin`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rung {
    /// 1: which server is meant.
    Route,
    /// 2: the metadata documents, answered here.
    Metadata,
    /// 3: the HTTP method.
    Method,
    /// 4: the grammar of the headers we decide on.
    Headers,
    /// 5: the browser's origin.
    Origin,
    /// 6: who is calling.
    Token,
    /// 7 and 14: the token's scopes.
    Scope,
    /// 8: whether there is a body we can read.
    Body,
    /// 9: one JSON-RPC message.
    Message,
    /// 10: revision and routing headers.
    Envelope,
    /// 11: the method is one we know.
    Listed,
    /// 12: the caller holds any permission.
    Policy,
    /// 13: the caller holds the permissions of what the call reaches.
    Permission,
    /// 15: the definition is still the recorded one.
    Definition,
    /// 16: the arguments fit.
    Arguments,
    /// 17: an outside opinion.
    Gate,
    /// 18: the answer can be read and is ours.
    Answer,
    /// The service itself: overload, panic, an order of messages nobody can produce.
    Service,
}

impl Rung {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Metadata => "metadata",
            Self::Method => "method",
            Self::Headers => "headers",
            Self::Origin => "origin",
            Self::Token => "token",
            Self::Scope => "scope",
            Self::Body => "body",
            Self::Message => "message",
            Self::Envelope => "envelope",
            Self::Listed => "listed",
            Self::Policy => "policy",
            Self::Permission => "permission",
            Self::Definition => "definition",
            Self::Arguments => "arguments",
            Self::Gate => "gate",
            Self::Answer => "answer",
            Self::Service => "service",
        }
    }
}

/// JSON-RPC code of a refusal that has none of its own; the configuration's `denials.code` replaces it.
pub const DEFAULT_CODE: i32 = -32000;
/// JSON-RPC code of the upstream class.
pub const UPSTREAM_CODE: i32 = -32010;
/// MCP's `HeaderMismatch`.
pub const HEADER_MISMATCH: i32 = -32020;
/// JSON-RPC's "invalid params", which MCP also uses for an unknown tool, prompt or resource.
pub const INVALID_PARAMS: i32 = -32602;

macro_rules! reasons {
    ($($variant:ident $code:literal $class:ident $status:literal $rpc:expr, $text:literal;)*) => {
        /// Why a rung refused. Stable: operators alert on these and policies of clients read them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Reason { $(#[doc = $text] $variant,)* }

        impl Reason {
            /// Every reason, in the order of the ladder.
            pub const ALL: &'static [Reason] = &[$(Reason::$variant,)*];

            /// The stable code.
            #[must_use]
            pub const fn as_str(self) -> &'static str { match self { $(Self::$variant => $code,)* } }

            /// The class, which fixes the wire form.
            #[must_use]
            pub const fn class(self) -> Class { match self { $(Self::$variant => Class::$class,)* } }

            /// The HTTP status outside a frame at 200.
            #[must_use]
            pub const fn status(self) -> u16 { match self { $(Self::$variant => $status,)* } }

            /// The JSON-RPC code; `None` where `denials.code` applies.
            #[must_use]
            pub const fn rpc_code(self) -> Option<i32> { match self { $(Self::$variant => $rpc,)* } }

            /// The public text where the rung has nothing more exact to say.
            #[must_use]
            pub const fn text(self) -> &'static str { match self { $(Self::$variant => $text,)* } }
        }
    };
}

reasons! {
    RouteUnmatched "route.unmatched" Policy 403 None, "No server is configured for this address. Trying again will not help.";
    RouteUndecidable "route.undecidable" Policy 403 None, "It could not be decided which server this request is for, so it was refused. Trying again will not help.";
    MethodNotAllowed "method.not_allowed" Protocol 405 None, "Only POST is allowed here.";
    HeadersMalformed "headers.malformed" Protocol 400 Some(-32600), "A request header is malformed.";
    OriginRefused "origin.refused" Protocol 403 None, "Requests from this Origin are not allowed.";
    TokenMissing "token.missing" Challenge 401 None, "A bearer token is required.";
    TokenInvalid "token.invalid" Challenge 401 None, "The bearer token is not valid here.";
    TokenExpired "token.expired" Challenge 401 None, "The bearer token has expired.";
    TokenUnverifiable "token.unverifiable" Unavailable 503 None, "The bearer token cannot be verified at the moment. Try again later.";
    ScopeInsufficient "scope.insufficient" Challenge 403 None, "The bearer token lacks a scope that this operation needs.";
    BodyUnsupportedType "body.unsupported_type" Protocol 415 Some(-32600), "The request body must be application/json.";
    BodyEncoded "body.encoded" Protocol 415 Some(-32600), "The request body must not be compressed or otherwise encoded: send it without Content-Encoding.";
    BodyTooLarge "body.too_large" Protocol 413 Some(-32600), "The request body is too large.";
    BodyMissing "body.missing" Protocol 400 Some(-32600), "The request has no body; a JSON-RPC message was expected.";
    BodyTimeout "body.timeout" Protocol 408 Some(-32600), "The request body did not arrive in time.";
    JsonInvalid "json.invalid" Protocol 400 Some(-32700), "The request body is not valid JSON.";
    JsonTooDeep "json.too_deep" Protocol 400 Some(-32600), "The request body is nested too deep.";
    JsonDuplicateKey "json.duplicate_key" Protocol 400 Some(-32600), "The request body has the same key twice in one object.";
    JsonCaseVariantKey "json.case_variant_key" Protocol 400 Some(-32600), "The request body has a key that differs from a protocol key only by case.";
    RpcBatch "rpc.batch" Protocol 400 Some(-32600), "Batches are not accepted: send one JSON-RPC message per request.";
    RpcInvalid "rpc.invalid" Protocol 400 Some(-32600), "The request body is not a JSON-RPC request or notification.";
    EnvelopeInvalid "envelope.invalid" Protocol 400 Some(INVALID_PARAMS), "The request's _meta lacks a required member.";
    VersionUnsupported "version.unsupported" Protocol 400 Some(-32022), "Unsupported protocol version";
    HeadersMismatch "headers.mismatch" Protocol 400 Some(HEADER_MISMATCH), "A routing header does not match the request body.";
    MethodUnlisted "method.unlisted" Protocol 404 Some(-32601), "Method not found";
    PolicyNoPermissions "policy.no_permissions" Policy 403 None, "You hold no permission on this server. Trying again will not help; ask an administrator for access.";
    PolicyUnnamed "policy.unnamed" Policy 403 None, "The call does not name what it wants in a way that can be decided.";
    PolicyUnpriced "policy.unpriced" Policy 403 None, "This capability has not been approved for use here. Trying again will not help.";
    PolicyNotPermitted "policy.not_permitted" Policy 403 None, "You do not hold the permission that this capability needs. Trying again will not help; ask an administrator for access.";
    DefinitionChanged "definition.changed" Policy 403 None, "The definition of this capability changed since it was approved, so it cannot be used until it is approved again.";
    DefinitionGone "definition.gone" Policy 403 None, "The server no longer offers this capability.";
    DefinitionUnverified "definition.unverified" Policy 403 None, "The definition of this capability could not be checked at the moment. Try again later.";
    ArgumentsInvalid "arguments.invalid" Policy 403 Some(INVALID_PARAMS), "The arguments do not fit the approved schema of this tool.";
    ArgumentsUncheckable "arguments.uncheckable" Policy 403 Some(INVALID_PARAMS), "The arguments cannot be checked against the approved schema of this tool, so the call was refused.";
    GateDenied "gate.denied" Policy 403 None, "The call was denied by a policy gate.";
    GateUnavailable "gate.unavailable" Policy 403 None, "The call could not be judged by a policy gate at the moment. Try again later.";
    GateAnswered "gate.answered" Policy 403 None, "A policy gate answered in the place of the tool.";
    AnswerUnreadable "answer.unreadable" Upstream 502 Some(UPSTREAM_CODE), "The server's answer could not be checked, so it was withheld.";
    AnswerTooLarge "answer.too_large" Upstream 502 Some(UPSTREAM_CODE), "The server's answer is too large to be checked, so it was withheld.";
    AnswerMismatched "answer.mismatched" Upstream 502 Some(UPSTREAM_CODE), "The server answered something else than this request, so the answer was withheld.";
    UpstreamUnauthorized "upstream.unauthorized" Upstream 502 Some(UPSTREAM_CODE), "The server refused the gateway's own credential. This is not about your token; tell the operator.";
    Internal "internal" Unavailable 503 None, "The request could not be authorized because of an internal error. Try again later.";
    Overloaded "overloaded" Unavailable 503 None, "Too many requests at once. Try again later.";
}
