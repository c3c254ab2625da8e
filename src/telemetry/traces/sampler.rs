//! Which spans are recorded: the samplers that `OTEL_TRACES_SAMPLER` names, and the ids of those that are.

use crate::message::trace::TraceContext;
use crate::telemetry::record::Trails;

/// Of 2^63: all.
const ALL: u64 = 1 << 63;

/// One of the specification's samplers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sampler {
    /// Whether a parent decides, where there is one.
    parent: bool,
    /// How many of 2^63 traces are recorded.
    share: u64,
}

impl Sampler {
    /// `OTEL_TRACES_SAMPLER` and its `_ARG`. What is not known is the default, and the log says so.
    pub(super) fn named(name: Option<&str>, argument: Option<&str>) -> Self {
        let default = Self { parent: true, share: ALL };
        let Some(name) = name else { return default };
        let kind = name.strip_prefix("parentbased_");
        let share = match kind.unwrap_or(name) {
            "always_on" => ALL,
            "always_off" => 0,
            "traceidratio" => share(argument),
            _ => {
                tracing::warn!(
                    "OTEL_TRACES_SAMPLER: expected always_on, always_off, traceidratio, or one of them behind \
                     parentbased_, found {name:?}; parentbased_always_on is used"
                );
                return default;
            }
        };
        Self { parent: kind.is_some(), share }
    }

    /// Of which calls a span may be recorded.
    pub(super) fn trails(self) -> Trails {
        match (self.parent, self.share) {
            (false, 0) => Trails::Never,
            (false, _) => Trails::Always,
            (true, 0) => Trails::SampledParent,
            (true, _) => Trails::ParentOrRoot,
        }
    }

    /// Whether the span of a call under this parent, in this trace, is recorded.
    pub(super) fn records(self, parent: Option<&TraceContext>, trace: u128) -> bool {
        match parent.filter(|_| self.parent) {
            Some(parent) => parent.sampled,
            // The share of all trace ids, by the 63 bits that are random in each: so all services keep the same traces.
            None => (trace & u128::from(u64::MAX)) >> 1 < u128::from(self.share),
        }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "between 0 and 2^63, and a float is turned into the nearest integer that there is"
)]
fn share(argument: Option<&str>) -> u64 {
    let ratio = argument.and_then(|text| text.parse::<f64>().ok()).filter(|ratio| !ratio.is_nan());
    if ratio.is_none() {
        let found = argument.unwrap_or("nothing");
        tracing::warn!("OTEL_TRACES_SAMPLER_ARG: expected a number from 0 to 1, found {found:?}; 1 is used");
    }
    (ratio.unwrap_or(1.0).clamp(0.0, 1.0) * ALL as f64) as u64
}

/// Random ids, fetched many at a time.
#[derive(Default)]
pub(super) struct Ids(Vec<u8>);

impl Ids {
    const AT_ONCE: usize = 1024;

    fn number(&mut self) -> Option<u64> {
        if self.0.is_empty() {
            self.0.resize(Self::AT_ONCE, 0);
            if let Err(fault) = getrandom::fill(&mut self.0) {
                self.0.clear();
                tracing::error!(%fault, "the system gives no random bytes: spans cannot be told apart and are dropped");
                return None;
            }
        }
        let (rest, bytes) = self.0.split_last_chunk::<8>()?;
        let (number, left) = (u64::from_le_bytes(*bytes), rest.len());
        self.0.truncate(left);
        // Zero is no id.
        Some(number.max(1))
    }

    pub(super) fn span(&mut self) -> Option<u64> {
        self.number()
    }

    pub(super) fn trace(&mut self) -> Option<u128> {
        Some(u128::from(self.number()?) << 64 | u128::from(self.number()?))
    }
}
