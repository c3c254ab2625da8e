//! How long Envoy waits for a reply, and how much more it may be asked for.
//!
//! Envoy's filter starts `message_timeout` with each message. A reply that holds nothing but `override_message_timeout`
//! starts the timer anew with that value: once for each message, and only up to the filter's `max_message_timeout`, which
//! is 0 unless someone sets it. A value above it is ignored, and the first timer goes on.

use std::time::Duration;

/// What the way back to Envoy, and its timer and ours, may differ by.
pub const MARGIN: Duration = Duration::from_millis(500);

/// The timeouts of Envoy's filter, as the configuration tells them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvoyTimeouts {
    /// `message_timeout`.
    pub message: Duration,
    /// `max_message_timeout`; `None` where Envoy grants no more time.
    pub max: Option<Duration>,
}

impl Default for EnvoyTimeouts {
    /// Those of the shipped files.
    fn default() -> Self {
        Self { message: Duration::from_secs(10), max: None }
    }
}

impl EnvoyTimeouts {
    /// The most that a reply may take.
    #[must_use]
    pub fn most(&self) -> Duration {
        self.max.unwrap_or(self.message)
    }

    /// What to ask Envoy for, when `waited` of the message's time is over and up to `needed` more may pass; `None` when
    /// what is left suffices, and when Envoy would not grant more.
    #[must_use]
    pub fn more(&self, waited: Duration, needed: Duration) -> Option<Duration> {
        let needed = needed.saturating_add(MARGIN);
        let left = self.message.saturating_sub(waited);
        self.max.filter(|_| needed > left).map(|max| needed.min(max))
    }
}
