//! What is known of one decision, as plain data: gathered by the exchange, turned into metrics, spans and audit events
//! off the request path. Nothing here knows OpenTelemetry.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::message::trace::TraceContext;
use crate::protocol::Method;
use crate::refusal::frame::Tier;
use crate::refusal::{GateMark, Reason, Rung};

/// How a decision ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Forwarded.
    Allowed,
    /// Answered in the server's place, or inside its running stream.
    Refused,
    /// Not ours, and let through by configuration.
    Passed,
    /// Answered by a gate in the server's place.
    Answered,
    /// The other side went away, or Envoy answered by itself, before a decision.
    Aborted,
}

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Allowed, Self::Refused, Self::Passed, Self::Answered, Self::Aborted];

    /// The word in records, metadata and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allow",
            Self::Refused => "refuse",
            Self::Passed => "pass",
            Self::Answered => "answer",
            Self::Aborted => "abort",
        }
    }
}

/// What rung 21 did about an answer, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Screened {
    /// Something was found, and the answer has no place for a notice.
    Counted,
    /// A notice was put in front.
    Notice,
    /// An error took the output's place.
    Withheld,
}

impl Screened {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Counted, Self::Notice, Self::Withheld];

    /// The word in records and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Notice => "notice",
            Self::Withheld => "withheld",
        }
    }
}

/// What a decision waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The caller's identity: a cached token, or keys and an authorization server that had to be asked.
    Identity,
    /// The request's body, from Envoy.
    Body,
    /// A listing of the server.
    Listing,
    /// The gates' opinions.
    Gates,
}

impl Wait {
    /// All of them, in the order of a call.
    pub const ALL: [Self; 4] = [Self::Identity, Self::Body, Self::Listing, Self::Gates];

    /// The word in metrics and the name of the span.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Body => "body",
            Self::Listing => "listing",
            Self::Gates => "gates",
        }
    }
}

/// Where the time up to the verdict went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// Our own work on the rungs.
    pub own: Duration,
    waits: [Duration; Wait::ALL.len()],
}

impl Phases {
    /// Adds a wait.
    pub fn add(&mut self, wait: Wait, time: Duration) {
        if let Some(sum) = self.waits.get_mut(wait as usize) {
            *sum += time;
        }
    }

    /// The waits that there were.
    pub fn waits(&self) -> impl Iterator<Item = (Wait, Duration)> {
        Wait::ALL.into_iter().zip(self.waits).filter(|(_, time)| !time.is_zero())
    }
}

/// What became of a gate's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It has nothing against the call, or failed where the configuration lets calls pass then.
    Allow,
    /// The call went no further.
    Deny,
    /// Recorded only: the gate, or its server, is in shadow mode.
    Audit,
}

impl Action {
    /// The word in spans, of OpenTelemetry's conventions for guardrails.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::Audit => "audit",
        }
    }
}

/// One gate that was asked about the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its configured name.
    pub gate: Arc<str>,
    /// `ext_authz`, `grpc`, `judge` or `cel`.
    pub kind: &'static str,
    /// Whether its word is recorded only.
    pub shadow: bool,
    /// `allow`, `deny`, `answer` or `failed`.
    pub said: &'static str,
    /// What became of that.
    pub action: Action,
    /// When it was asked.
    pub from: Instant,
    /// When it had answered, or had not in time.
    pub to: Instant,
}

/// What a rung said on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Nothing against it.
    Pass,
    /// No, and that stands.
    Refuse(Reason),
    /// No, recorded only.
    WouldRefuse(Reason),
}

/// The way of one call up the ladder, kept only where a span will tell of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trail {
    /// What each rung said, in order, and at the time of which event.
    pub rungs: Vec<(Rung, Passage, Instant)>,
    /// What was waited for, from when to when.
    pub waits: Vec<(Wait, Instant, Instant)>,
    /// The JSON-RPC id, decoded.
    pub request_id: Option<String>,
    /// The revision that the request speaks.
    pub protocol: Option<String>,
    /// When the verdict was there.
    pub decided: Option<Instant>,
}

/// Of which calls a trail is kept: of those whose span may be recorded (`OTEL_TRACES_SAMPLER`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trails {
    /// Of none: traces are off.
    #[default]
    Never,
    /// Of those whose caller records the trace.
    SampledParent,
    /// Of all but those whose caller does not record the trace.
    ParentOrRoot,
    /// Of all.
    Always,
}

impl Trails {
    /// Whether one is kept under this parent.
    #[must_use]
    pub fn keep(self, parent: Option<&TraceContext>) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::SampledParent => parent.is_some_and(|parent| parent.sampled),
            Self::ParentOrRoot => parent.is_none_or(|parent| parent.sampled),
        }
    }
}

/// One decision, as the exchange saw it.
#[derive(Clone, Debug)]
pub struct Record {
    /// The decision's id.
    pub id: String,
    /// When the request's head was here.
    pub started: Instant,
    /// How it ended.
    pub outcome: Outcome,
    /// Why it was refused.
    pub reason: Option<Reason>,
    /// Who refused.
    pub rung: Option<Rung>,
    /// Whether a refusal was carried out.
    pub enforced: bool,
    /// Name and index of the server.
    pub server: Option<(Arc<str>, usize)>,
    /// Email, else `issuer#subject`; empty when unknown.
    pub principal: Arc<str>,
    /// Issuer of the token; empty when unknown.
    pub issuer: Arc<str>,
    /// Subject of the token; empty when unknown.
    pub subject: Arc<str>,
    /// Address and port of the caller's connection, as Envoy says them.
    pub source: Option<String>,
    /// The policy's rules that matched the caller, by position.
    pub rules: Arc<[u32]>,
    /// The method as the caller wrote it, bounded; empty when none was read.
    pub method: Cow<'static, str>,
    /// The method when it is a listed one.
    pub listed: Option<Method>,
    /// What the call reached; empty when nothing of its own.
    pub capability: Arc<str>,
    /// Whether `capability` is a label of the record, and not the caller's word.
    pub recorded: bool,
    /// The status that went down; `None` where the answer was not ours to read.
    pub wire_status: Option<u16>,
    /// The JSON-RPC error code that went down.
    pub rpc_code: Option<i64>,
    /// Whether a tool's answer said `isError`.
    pub tool_error: bool,
    /// From the request's head to the verdict.
    pub decision_time: Duration,
    /// Where that time went.
    pub phases: Phases,
    /// From the request's head to the end.
    pub duration: Duration,
    /// Listing entries left out.
    pub entries_hidden: u64,
    /// What was done about the answer's content, and why.
    pub screened: Option<(Screened, &'static str)>,
    /// How much of a frame could be rendered.
    pub tier: Tier,
    /// For the operator only.
    pub log: Option<String>,
    /// The gate that refused or answered.
    pub gate: Option<Box<GateMark>>,
    /// Every gate that answered before the verdict.
    pub asked: Vec<Asked>,
    /// Codes of every refusal that was recorded only, in the order of the rungs.
    pub would_refuse: Vec<String>,
    /// The caller's place in a trace: `_meta`'s, else the HTTP header's.
    pub parent: Option<Box<TraceContext>>,
    /// The HTTP header's, where `_meta` has another one.
    pub link: Option<Box<TraceContext>>,
    /// The way up, where a span will tell of it.
    pub trail: Option<Box<Trail>>,
}

impl Record {
    /// An empty record: nothing decided.
    #[must_use]
    pub fn new(id: String, started: Instant) -> Self {
        Self {
            id,
            started,
            outcome: Outcome::Aborted,
            reason: None,
            rung: None,
            enforced: true,
            server: None,
            principal: Arc::default(),
            issuer: Arc::default(),
            subject: Arc::default(),
            source: None,
            rules: Arc::default(),
            method: Cow::Borrowed(""),
            listed: None,
            capability: Arc::default(),
            recorded: false,
            wire_status: None,
            rpc_code: None,
            tool_error: false,
            decision_time: Duration::ZERO,
            phases: Phases::default(),
            duration: Duration::ZERO,
            entries_hidden: 0,
            screened: None,
            tier: Tier::Full,
            log: None,
            gate: None,
            asked: Vec::new(),
            would_refuse: Vec::new(),
            parent: None,
            link: None,
            trail: None,
        }
    }
}
