//! Why a caller has no identity.

/// Why [`super::Authenticator::authenticate`] gave no caller. The ladder turns each into its reason (ladder.md rung 6).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityFault {
    /// No token was presented where one is needed: `token.missing`.
    #[error("no bearer token was presented")]
    Missing,
    /// What was presented does not verify: `token.invalid`.
    #[error("{public}: {detail}")]
    Invalid {
        /// For the caller: a short text that reveals nothing but what the caller sent.
        public: &'static str,
        /// For the operator's log: what was expected and what came. Never the token.
        detail: Box<str>,
    },
    /// The token would be good but for its time: `token.expired`.
    #[error("the token has expired: {detail}")]
    Expired {
        /// For the operator's log.
        detail: Box<str>,
    },
    /// Nothing is wrong with the token as far as can be told, but it cannot be verified now: `token.unverifiable`.
    #[error("the token cannot be verified now: {detail}")]
    Unverifiable {
        /// When another try can help, in seconds; at least 1.
        retry_after_seconds: u32,
        /// For the operator's log.
        detail: Box<str>,
    },
    /// The connection itself carries no accepted identity (`peer`). No challenge can help: a plain 403.
    #[error("{public}: {detail}")]
    Unidentified {
        /// For the caller.
        public: &'static str,
        /// For the operator's log.
        detail: Box<str>,
    },
}

impl IdentityFault {
    /// [`IdentityFault::Invalid`] with its two texts.
    pub(super) fn invalid(public: &'static str, detail: impl Into<Box<str>>) -> Self {
        Self::Invalid { public, detail: detail.into() }
    }

    /// [`IdentityFault::Unverifiable`]; `seconds` is raised to at least 1.
    pub(super) fn unverifiable(seconds: u64, detail: impl Into<Box<str>>) -> Self {
        let retry_after_seconds = u32::try_from(seconds.max(1)).unwrap_or(u32::MAX);
        Self::Unverifiable { retry_after_seconds, detail: detail.into() }
    }
}

/// A foreign text for the log: quoted, escaped and short, so that a token's content cannot forge or flood log lines.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 200;
    let short: String = text.chars().take(LONGEST).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("{short:?}{more}")
}
