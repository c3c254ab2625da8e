//! Counters, one atomic each at a fixed place: counting is one addition, whatever the number of servers and reasons.
//!
//! Labels are closed sets (configured servers, listed methods, reasons), so a caller cannot make new ones. The registry
//! is read as a list of samples, which is what an exporter needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::protocol::Method;
use crate::refusal::Reason;
use crate::refusal::frame::Tier;

use super::audit::{Outcome, Record, Screened};

const OUTCOMES: [Outcome; 5] =
    [Outcome::Allowed, Outcome::Refused, Outcome::Passed, Outcome::Answered, Outcome::Aborted];

/// The counters of one process.
pub struct Counters {
    servers: Vec<Arc<str>>,
    /// By server (the last one: none), method (the last one: other), then outcome without reason and every reason.
    decisions: Vec<AtomicU64>,
    /// By server (the last one: none), then [`Screened::ALL`].
    screened: Vec<[AtomicU64; Screened::ALL.len()]>,
    /// Refusals that were recorded only, by server (the last one: none) and reason.
    would_deny: Vec<AtomicU64>,
    entries_hidden: AtomicU64,
    render_fallbacks: [AtomicU64; 2],
    audit_dropped: AtomicU64,
    streams_open: AtomicU64,
    streams_refused: AtomicU64,
}

/// One counter's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Metric name.
    pub name: &'static str,
    /// Label names and values.
    pub labels: Vec<(&'static str, String)>,
    /// The count.
    pub value: u64,
}

impl Counters {
    /// Counters for these servers, in configuration order.
    #[must_use]
    pub fn new(servers: Vec<Arc<str>>) -> Self {
        let cells = (servers.len() + 1) * (Method::ALL.len() + 1) * Self::width();
        let screened = std::iter::repeat_with(Default::default).take(servers.len() + 1).collect();
        let would_deny = (servers.len() + 1) * Reason::ALL.len();
        Self {
            servers,
            screened,
            decisions: (0..cells).map(|_| AtomicU64::new(0)).collect(),
            would_deny: (0..would_deny).map(|_| AtomicU64::new(0)).collect(),
            entries_hidden: AtomicU64::new(0),
            render_fallbacks: [AtomicU64::new(0), AtomicU64::new(0)],
            audit_dropped: AtomicU64::new(0),
            streams_open: AtomicU64::new(0),
            streams_refused: AtomicU64::new(0),
        }
    }

    const fn width() -> usize {
        OUTCOMES.len() + Reason::ALL.len()
    }

    /// Counts one decision.
    pub fn decided(&self, record: &Record) {
        let server = record.server.as_ref().map_or(self.servers.len(), |(_, index)| *index);
        let method = record
            .listed
            .and_then(|method| Method::ALL.iter().position(|known| *known == method))
            .unwrap_or(Method::ALL.len());
        let outcome = match record.reason {
            // Forwarded all the same: counted as what it was, and beside it as what it would have been.
            Some(reason) if record.outcome != Outcome::Refused => {
                if let Some(counter) = self.would_deny.get(server * Reason::ALL.len() + reason as usize) {
                    counter.fetch_add(1, Ordering::Relaxed);
                }
                OUTCOMES.iter().position(|known| *known == record.outcome).unwrap_or(0)
            }
            Some(reason) => OUTCOMES.len() + reason as usize,
            None => OUTCOMES.iter().position(|known| *known == record.outcome).unwrap_or(0),
        };
        let cell = (server * (Method::ALL.len() + 1) + method) * Self::width() + outcome;
        if let Some(counter) = self.decisions.get(cell) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        let screened = record.screened.and_then(|(action, _)| self.screened.get(server)?.get(action as usize));
        if let Some(counter) = screened {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        self.entries_hidden.fetch_add(record.entries_hidden, Ordering::Relaxed);
        match record.tier {
            Tier::Full => {}
            Tier::Minimal => self.fallback(0),
            Tier::Constant => self.fallback(1),
        }
    }

    fn fallback(&self, tier: usize) {
        if let Some(counter) = self.render_fallbacks.get(tier) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts an audit record that could not be written.
    pub fn audit_dropped(&self) {
        self.audit_dropped.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a stream in, unless `most` are open: then it is refused and counted as such.
    #[must_use]
    pub fn stream_opened(&self, most: usize) -> bool {
        if self.streams_open.fetch_add(1, Ordering::Relaxed) < most as u64 {
            return true;
        }
        self.streams_open.fetch_sub(1, Ordering::Relaxed);
        self.streams_refused.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// Counts a stream out.
    pub fn stream_closed(&self) {
        self.streams_open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Every counter that is not zero, and the gauges.
    #[must_use]
    pub fn samples(&self) -> Vec<Sample> {
        let mut samples = self.decision_samples();
        samples.extend(self.screened_samples());
        samples.extend(self.would_deny_samples());
        let single =
            |name, counter: &AtomicU64| Sample { name, labels: Vec::new(), value: counter.load(Ordering::Relaxed) };
        samples.push(single("portcullis.listing.entries_hidden", &self.entries_hidden));
        samples.push(single("portcullis.audit.dropped", &self.audit_dropped));
        samples.push(single("portcullis.streams.open", &self.streams_open));
        samples.push(single("portcullis.streams.refused", &self.streams_refused));
        for (tier, counter) in ["minimal", "constant"].into_iter().zip(&self.render_fallbacks) {
            samples.push(Sample {
                labels: vec![("tier", tier.to_owned())],
                ..single("portcullis.render.fallbacks", counter)
            });
        }
        samples
    }

    fn screened_samples(&self) -> impl Iterator<Item = Sample> {
        self.screened.iter().enumerate().flat_map(|(index, actions)| {
            let server = self.servers.get(index).map_or("_none", |name| name);
            Screened::ALL.iter().zip(actions).filter_map(move |(action, counter)| {
                let value = counter.load(Ordering::Relaxed);
                let labels = vec![("server", server.to_owned()), ("action", action.as_str().to_owned())];
                (value > 0).then_some(Sample { name: "portcullis.screened", labels, value })
            })
        })
    }

    fn would_deny_samples(&self) -> impl Iterator<Item = Sample> {
        let counted = self.would_deny.iter().map(|counter| counter.load(Ordering::Relaxed)).enumerate();
        counted.filter(|(_, value)| *value > 0).map(|(cell, value)| {
            let server = self.servers.get(cell / Reason::ALL.len()).map_or("_none", |name| name);
            let reason = Reason::ALL.get(cell % Reason::ALL.len()).map_or("_other", |reason| reason.as_str());
            let labels = vec![("server", server.to_owned()), ("reason", reason.to_owned())];
            Sample { name: "portcullis.would_deny", labels, value }
        })
    }

    fn decision_samples(&self) -> Vec<Sample> {
        let per_server = (Method::ALL.len() + 1) * Self::width();
        let counted = self.decisions.iter().enumerate().map(|(cell, counter)| (cell, counter.load(Ordering::Relaxed)));
        counted
            .filter(|(_, value)| *value > 0)
            .map(|(cell, value)| {
                let server = self.servers.get(cell / per_server).map_or("_none", |name| name);
                let method =
                    Method::ALL.get(cell % per_server / Self::width()).map_or("_other", |method| method.as_str());
                let outcome = cell % Self::width();
                let reason = outcome.checked_sub(OUTCOMES.len()).and_then(|index| Reason::ALL.get(index));
                let decision = OUTCOMES.get(outcome).copied().unwrap_or(Outcome::Refused);
                let mut labels = vec![
                    ("server", server.to_owned()),
                    ("mcp.method.name", method.to_owned()),
                    ("decision", decision.as_str().to_owned()),
                ];
                if let Some(reason) = reason {
                    labels.push(("reason", reason.as_str().to_owned()));
                }
                Sample { name: "portcullis.decisions", labels, value }
            })
            .collect()
    }
}
