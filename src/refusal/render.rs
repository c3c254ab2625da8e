//! From a refusal to an HTTP answer: status, headers, body. One place, so that no rung invents a wire form.

use super::frame::{self, Content, Tier};
use super::reason::{Class, DEFAULT_CODE, INVALID_PARAMS, Reason, Rung};
use super::{Detail, Hidden, Refusal};

/// Most bytes of a whole frame: a caller's id may be as large as a request, everything else is bounded.
const FRAME_CAP: usize = 64 * 1024 * 1024;

/// The knobs of `denials:`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denials {
    /// HTTP status of policy frames: 200, or 403 for those who want mcp-authz's way.
    pub policy_status: u16,
    /// Whether a refusal admits that the capability exists.
    pub disclose: Disclose,
    /// How a missing scope is answered.
    pub step_up: StepUp,
    /// JSON-RPC code of policy refusals.
    pub code: i32,
    /// HTTP status of `method.unlisted`: 404 or 400.
    pub unlisted_method_status: u16,
    /// HTTP status of the upstream class: 502, or 200 for clients that drop their session on anything else.
    pub upstream_status: u16,
}

impl Default for Denials {
    fn default() -> Self {
        Self {
            policy_status: 200,
            disclose: Disclose::Explicit,
            step_up: StepUp::Challenge,
            code: DEFAULT_CODE,
            unlisted_method_status: 404,
            upstream_status: 502,
        }
    }
}

/// `denials.disclose`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disclose {
    /// Say which permission is missing.
    Explicit,
    /// Answer as if the capability did not exist.
    Hidden,
}

/// `denials.step_up`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepUp {
    /// 403 with `WWW-Authenticate`, from which a client can ask for more.
    Challenge,
    /// A policy frame, for agents that cannot.
    Frame,
}

/// What is known of the request that is refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct Addressee<'a> {
    /// The caller's id byte for byte, when a legal one could be read.
    pub id: Option<&'a str>,
    /// The JSON-RPC method, empty when none was read.
    pub method: &'a str,
}

impl Addressee<'_> {
    /// Whether this is an MCP request that gets a policy frame: it has a method and an id to answer.
    ///
    /// The one rule that chooses between frame and plain HTTP; batches, notifications, traffic that is not MCP and
    /// half-read streams go through it too.
    #[must_use]
    pub fn gets_frame(&self) -> bool {
        !self.method.is_empty() && self.id.is_some()
    }
}

/// A refusal as it goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// HTTP status.
    pub status: u16,
    /// Headers in order, lower-case names.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// How much of the frame could be said; `Full` for plain bodies.
    pub tier: Tier,
}

/// Turns a refusal into what the caller sees (ladder.md §3).
#[must_use]
pub fn render(refusal: &Refusal, denials: Denials, to: Addressee<'_>, decision: &str) -> Rendered {
    let hidden = refusal.hidden.as_ref().filter(|_| denials.disclose == Disclose::Hidden && hideable(refusal.reason));
    match (refusal.reason.class(), hidden) {
        (Class::Policy, Some(hidden)) => render_hidden(hidden, to),
        (Class::Policy, None) => match refusal.gate.as_ref().and_then(|gate| gate.challenge.as_ref()) {
            Some((status, challenge)) => render_gate_challenge(refusal, *status, challenge),
            None => render_policy(refusal, denials, to, decision),
        },
        (Class::Challenge, _) if refusal.challenge.is_none() => render_policy(refusal, denials, to, decision),
        (Class::Challenge, _) => render_challenge(refusal),
        (Class::Protocol, _) => render_protocol(refusal, denials, to, decision),
        (Class::Upstream, _) => rendered_frame(refusal, denials.upstream_status, denials, to, decision),
        (Class::Unavailable, _) => render_unavailable(refusal, denials, to, decision),
    }
}

/// The frame alone, for an event inside a running SSE answer.
#[must_use]
pub fn event_frame(refusal: &Refusal, denials: Denials, to: Addressee<'_>, decision: &str) -> (Vec<u8>, Tier) {
    frame::write(refusal, content(refusal, denials, to, decision), FRAME_CAP)
}

pub(super) fn hideable(reason: Reason) -> bool {
    matches!(reason, Reason::PolicyUnpriced | Reason::PolicyNotPermitted | Reason::DefinitionGone)
}

fn content<'a>(refusal: &'a Refusal, denials: Denials, to: Addressee<'a>, decision: &'a str) -> Content<'a> {
    let code = refusal.code.or(refusal.reason.rpc_code()).unwrap_or(denials.code);
    Content { id: to.id, code, message: &refusal.message, explain: true, decision }
}

fn rendered_frame(refusal: &Refusal, status: u16, denials: Denials, to: Addressee<'_>, decision: &str) -> Rendered {
    let (body, tier) = frame::write(refusal, content(refusal, denials, to, decision), FRAME_CAP);
    Rendered { status, headers: json_headers(), body, tier }
}

fn json_headers() -> Vec<(&'static str, String)> {
    vec![("content-type", "application/json".into()), ("cache-control", "no-store".into())]
}

fn plain(status: u16, body: Vec<u8>) -> Rendered {
    Rendered { status, headers: json_headers(), body, tier: Tier::Full }
}

fn render_policy(refusal: &Refusal, denials: Denials, to: Addressee<'_>, decision: &str) -> Rendered {
    let always_plain = matches!(refusal.reason, Reason::RouteUnmatched | Reason::RouteUndecidable);
    let frame = to.gets_frame() && !always_plain;
    let Some(seconds) = refusal.retry_after else {
        return if frame {
            rendered_frame(refusal, denials.policy_status, denials, to, decision)
        } else {
            plain(403, frame::plain(refusal.error(), refusal.plugin(), &refusal.message))
        };
    };
    if frame {
        let mut refusal = refusal.clone();
        refusal.details.push(("retry_after_seconds", Detail::Number(u64::from(seconds))));
        return rendered_frame(&refusal, denials.policy_status, denials, to, decision);
    }
    let mut rendered = plain(403, frame::plain(refusal.error(), refusal.plugin(), &refusal.message));
    rendered.headers.push(("retry-after", seconds.to_string()));
    rendered
}

/// A gate's challenge, where its configuration says `challenges: pass`.
fn render_gate_challenge(refusal: &Refusal, status: u16, challenge: &str) -> Rendered {
    let error = error_parameter(challenge);
    let error = error.as_deref().unwrap_or_else(|| refusal.error());
    let mut rendered = plain(status, frame::challenge(error, &refusal.message));
    rendered.headers.push(("www-authenticate", challenge.to_owned()));
    rendered.headers.extend(refusal.retry_after.map(|seconds| ("retry-after", seconds.to_string())));
    rendered
}

/// The `error` parameter of a challenge (RFC 6750 §3), which the body must not contradict.
fn error_parameter(challenge: &str) -> Option<String> {
    let (mut parts, mut part) = (Vec::new(), String::new());
    let (mut quoted, mut escaped) = (false, false);
    let mut rest = challenge.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            c if escaped => {
                part.push(c);
                escaped = false;
            }
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ' ' | '\t' if !quoted && (part.ends_with('=') || rest.peek() == Some(&'=')) => {}
            ',' | ' ' | '\t' if !quoted => parts.push(std::mem::take(&mut part)),
            c => part.push(c),
        }
    }
    parts.push(part);
    let mut named = parts.iter().filter_map(|part| part.split_once('='));
    let (_, error) = named.find(|(name, error)| name.eq_ignore_ascii_case("error") && !error.is_empty())?;
    Some(error.to_owned())
}

/// Unpriced, not permitted and gone must look the same to the last byte, whatever the true reason is.
fn render_hidden(hidden: &Hidden, to: Addressee<'_>) -> Rendered {
    let mut refusal = Refusal::new(Reason::PolicyUnpriced, Rung::Permission);
    let message = match hidden {
        Hidden::Tool(name) => format!("Unknown tool: {name}"),
        Hidden::Prompt(name) => format!("Unknown prompt: {name}"),
        Hidden::Resource(uri) => {
            refusal.data.push(("uri", Detail::Text(uri.clone())));
            "Resource not found".to_owned()
        }
    };
    if !to.gets_frame() {
        return plain(403, frame::plain(refusal.error(), refusal.plugin(), &message));
    }
    let content = Content { id: to.id, code: INVALID_PARAMS, message: &message, explain: false, decision: "" };
    let (body, tier) = frame::write(&refusal, content, FRAME_CAP);
    Rendered { status: 200, headers: json_headers(), body, tier }
}

fn render_challenge(refusal: &Refusal) -> Rendered {
    let error = if refusal.reason == Reason::ScopeInsufficient { "insufficient_scope" } else { "invalid_token" };
    let mut rendered = plain(refusal.reason.status(), frame::challenge(error, &refusal.message));
    if let Some(challenge) = &refusal.challenge {
        rendered.headers.push(("www-authenticate", challenge.clone()));
    }
    rendered
}

fn render_protocol(refusal: &Refusal, denials: Denials, to: Addressee<'_>, decision: &str) -> Rendered {
    let status = match refusal.reason {
        Reason::MethodUnlisted => denials.unlisted_method_status,
        reason => reason.status(),
    };
    let mut rendered = rendered_frame(refusal, status, denials, to, decision);
    if refusal.reason == Reason::MethodNotAllowed {
        rendered.headers.push(("allow", refusal.allow.into()));
    }
    rendered
}

fn render_unavailable(refusal: &Refusal, denials: Denials, to: Addressee<'_>, decision: &str) -> Rendered {
    let seconds = refusal.retry_after.unwrap_or(1);
    let mut refusal = refusal.clone();
    refusal.details.push(("retry_after_seconds", Detail::Number(u64::from(seconds))));
    if to.gets_frame() {
        return rendered_frame(&refusal, 200, denials, to, decision);
    }
    let mut rendered = rendered_frame(&refusal, refusal.reason.status(), denials, to, decision);
    rendered.headers.push(("retry-after", seconds.to_string()));
    rendered
}
