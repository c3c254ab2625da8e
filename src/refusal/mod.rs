//! Refusals: the closed enum of reasons and what each looks like on the wire.
//!
//! [`reason`] is the one table (reason, class, status, code, text); metrics, audit, frames and Envoy's response-code
//! details all read it. [`frame`] turns a [`Refusal`] into bytes and cannot fail: it has three tiers, each simpler than
//! the one before, the last a constant.

pub mod frame;
mod gate;
pub mod reason;
mod render;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use gate::{GateCode, GateMark, NotACode};
pub use reason::{Class, Reason, Rung};
pub use render::{Addressee, Denials, Disclose, Rendered, StepUp, event_frame, render};

/// One refusal: a rung said no. Everything here but `log` may reach the caller.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The stable code.
    pub reason: Reason,
    /// Who said it; the frame's `plugin`.
    pub rung: Rung,
    /// What was refused and whether trying again can help, in words a model can act on.
    pub message: Cow<'static, str>,
    /// One more sentence for the frame's `data.description`.
    pub description: Option<Cow<'static, str>>,
    /// Members of the frame's `data.details`.
    pub details: Vec<(&'static str, Detail)>,
    /// Members that stand in `data` itself because a specification puts them there (`supported`, `requested`).
    pub data: Vec<(&'static str, Detail)>,
    /// JSON-RPC code when it is not the reason's own (`headers.malformed` of an `mcp-*` header).
    pub code: Option<i32>,
    /// The `WWW-Authenticate` value of a challenge.
    pub challenge: Option<String>,
    /// The `Allow` value of `method.not_allowed`.
    pub allow: &'static str,
    /// Seconds after which another try makes sense.
    pub retry_after: Option<u32>,
    /// What a call asked for, so that `disclose: hidden` can answer as if it did not exist.
    pub hidden: Option<Hidden>,
    /// For the operator's log only, never for the wire.
    pub log: Option<String>,
    /// The gate that refused, for reasons of rung 17: the one variant of the enum that is open.
    pub gate: Option<Box<GateMark>>,
}

/// A value among a refusal's details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// A string.
    Text(String),
    /// A list of strings.
    Texts(Vec<String>),
    /// A whole number.
    Number(u64),
    /// JSON as somebody else wrote it; the frame checks it before it goes out.
    Json(String),
}

/// The thing whose existence `disclose: hidden` does not admit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hidden {
    /// A tool of this name.
    Tool(String),
    /// A prompt of this name.
    Prompt(String),
    /// A resource with this URI.
    Resource(String),
}

impl Refusal {
    /// A refusal with the reason's own text.
    #[must_use]
    pub fn new(reason: Reason, rung: Rung) -> Self {
        Self {
            reason,
            rung,
            message: Cow::Borrowed(reason.text()),
            description: None,
            details: Vec::new(),
            data: Vec::new(),
            code: None,
            challenge: None,
            allow: "POST",
            retry_after: None,
            hidden: None,
            log: None,
            gate: None,
        }
    }

    /// The stable code as callers and operators read it: a gate's own code, else the reason's.
    #[must_use]
    pub fn error(&self) -> &str {
        self.gate.as_ref().and_then(|gate| gate.code.as_ref()).map_or(self.reason.as_str(), GateCode::as_str)
    }

    /// The JSON-RPC code of its frame; `None` where it is told as a challenge, without a frame.
    #[must_use]
    pub fn frame_code(&self, denials: Denials) -> Option<i32> {
        let challenge = self.challenge.is_some() || self.gate.as_ref().is_some_and(|gate| gate.challenge.is_some());
        if self.hidden.is_some() && denials.disclose == Disclose::Hidden && render::hideable(self.reason) {
            return Some(reason::INVALID_PARAMS);
        }
        (!challenge).then(|| self.code.or(self.reason.rpc_code()).unwrap_or(denials.code))
    }

    /// Who said it: a gate's name, else the rung's.
    #[must_use]
    pub fn plugin(&self) -> &str {
        self.gate.as_ref().map_or(self.rung.as_str(), |gate| &gate.name)
    }

    /// The same with another public text.
    #[must_use]
    pub fn message(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.message = text.into();
        self
    }

    /// The same with a description.
    #[must_use]
    pub fn description(mut self, text: impl Into<Cow<'static, str>>) -> Self {
        self.description = Some(text.into());
        self
    }

    /// The same with one more detail.
    #[must_use]
    pub fn detail(mut self, name: &'static str, value: Detail) -> Self {
        self.details.push((name, value));
        self
    }

    /// The same with words for the operator's log.
    #[must_use]
    pub fn log(mut self, text: impl Into<String>) -> Self {
        self.log = Some(text.into());
        self
    }
}
