//! What gates say, and what becomes of it.

use std::sync::Arc;

use crate::refusal::GateCode;
use crate::telemetry::record::Asked;

/// What one gate said about one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opinion {
    /// The call may go on.
    Allow,
    /// The call is refused.
    Deny(Box<Denial>),
    /// The `result` of an answer in the tool's place, as JSON text.
    Answer(String),
    /// The gate could not be asked, or what it said means nothing.
    Failed(Failure),
}

/// A gate's refusal. `log` is for the operator, everything else may reach the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denial {
    /// The gate's own code; `None` for `gate.denied`.
    pub code: Option<GateCode>,
    /// What was refused, for a model to act on; `None` for the fixed sentence.
    pub text: Option<String>,
    /// One more sentence.
    pub description: Option<String>,
    /// A JSON object as the gate wrote it.
    pub details: Option<String>,
    /// Seconds after which another try makes sense.
    pub retry_after: Option<u32>,
    /// HTTP status and value of a challenge that the gate's configuration lets pass.
    pub challenge: Option<(u16, String)>,
    /// For the operator.
    pub log: Option<String>,
}

/// Why a gate has no opinion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A code that says more than `gate.unavailable`.
    pub code: Option<GateCode>,
    /// For the operator.
    pub why: String,
    /// Whether it is about this one call, and says nothing about the gate: then its breaker does not count it, or one caller
    /// could close a gate to all others.
    pub of_this_call: bool,
}

impl Opinion {
    /// The word in metrics and spans.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny(_) => "deny",
            Self::Answer(_) => "answer",
            Self::Failed(_) => "failed",
        }
    }
}

impl Denial {
    /// Takes the code that a gate sent. One that cannot be a code is told to the operator, bounded and printable.
    pub(super) fn coded(&mut self, code: &str) {
        match GateCode::parse(code) {
            Ok(code) => self.code = Some(code),
            Err(_) if code.is_empty() => {}
            Err(fault) => {
                let shown: String = code.chars().take(64).collect();
                let told = format!("{fault}, got {shown:?}");
                self.log = Some(self.log.take().map_or_else(|| told.clone(), |log| format!("{told}; {log}")));
            }
        }
    }
}

impl Failure {
    pub(super) fn new(why: impl Into<String>) -> Self {
        Self { code: None, why: why.into(), of_this_call: false }
    }
}

/// What the gates of a server make of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// No gate that is enforced objects.
    Allow,
    /// The first objection.
    Object(Objection),
}

/// One gate that does not let a call through as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// The gate's name.
    pub gate: Arc<str>,
    /// What it does instead.
    pub what: Instead,
}

/// What happens in place of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instead {
    /// It is refused.
    Denied(Box<Denial>),
    /// It is answered with this result.
    Answered(String),
    /// It is refused, because the gate cannot be asked and `on_failure: deny` holds.
    Unavailable(Failure),
}

/// The outcome of asking all gates about one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// What the gates that are enforced say.
    pub decision: Decision,
    /// What the gates in shadow mode would have done.
    pub shadowed: Vec<Objection>,
    /// Failures that `on_failure: allow` let through, for the operator.
    pub notes: Vec<String>,
    /// Every gate that answered, or whose time ran out, and how long it took.
    pub asked: Vec<Asked>,
}
