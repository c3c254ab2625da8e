//! What a gate (rung 17) says of a refusal in its own words: the one open variant of the enum of reasons.

use std::sync::Arc;

/// A gate's own code, `[a-z0-9_.]{1,64}`: `error.data.error` and the reason in the audit. The metrics label stays
/// `gate.denied`, so that a gate cannot make new ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GateCode(Arc<str>);

/// A text that is no [`GateCode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a code of 1 to 64 characters out of a-z, 0-9, `_` and `.`")]
pub struct NotACode;

impl GateCode {
    /// The code that a gate sent.
    ///
    /// # Errors
    /// [`NotACode`].
    pub fn parse(text: &str) -> Result<Self, NotACode> {
        let legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'.';
        if (1..=64).contains(&text.len()) && text.bytes().all(legal) { Ok(Self(text.into())) } else { Err(NotACode) }
    }

    /// The code as it is sent.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Which gate refused, and what only it can say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateMark {
    /// Its name in the configuration: the frame's `plugin`.
    pub name: Arc<str>,
    /// Its own code; `None` where the reason's is all there is to say.
    pub code: Option<GateCode>,
    /// Its details as it wrote them; the frame checks that they are one JSON object before they go out.
    pub details: Option<String>,
    /// HTTP status (401 or 403) and `WWW-Authenticate` value of a challenge that may pass (`challenges: pass`).
    pub challenge: Option<(u16, String)>,
}
