//! Counters on the request path: a look-up by the server's name and an atomic addition each.
//!
//! Labels are closed sets (configured servers, recorded capabilities, listed methods, reasons), so a caller cannot make
//! new ones. Cells belong to a server's *name*: they go on across reloads, and [`Counters::follow`] lets go of what a
//! reload took out of the configuration, so that reloads do not add up either.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::protocol::Method;
use crate::refusal::Reason;
use crate::refusal::frame::Tier;

use super::record::{Outcome, Record, Screened};

/// The server of what belongs to none.
pub(super) const NONE: &str = "_none";
/// The label of whatever is not on a list.
pub(super) const OTHER: &str = "_other";

/// Where an audit event was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The writer was too slow.
    Queue,
    /// Standard output could not be written.
    Stdout,
    /// The file could not be written.
    File,
    /// The collector did not take it.
    Otlp,
}

impl Lost {
    const ALL: [Self; 4] = [Self::Queue, Self::Stdout, Self::File, Self::Otlp];

    /// The label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Stdout => "stdout",
            Self::File => "file",
            Self::Otlp => "otlp",
        }
    }
}

/// The counters of one process.
pub struct Counters {
    servers: RwLock<HashMap<Arc<str>, Arc<Cells>>>,
    nobody: Arc<Cells>,
    render_fallbacks: [AtomicU64; 2],
    audit_dropped: [AtomicU64; Lost::ALL.len()],
    streams_open: AtomicU64,
    streams_refused: AtomicU64,
}

/// The counters of one server.
#[derive(Default)]
struct Cells {
    decisions: RwLock<HashMap<Decision, AtomicU64>>,
    screened: [AtomicU64; Screened::ALL.len()],
    /// By position in [`Method::ALL`].
    hidden: [AtomicU64; Method::ALL.len()],
}

/// The labels of one decision, besides its server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Decision {
    method: Option<Method>,
    capability: Capability,
    outcome: Outcome,
    reason: Option<Reason>,
    enforced: bool,
}

/// What a call reached, as a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Capability {
    None,
    Other,
    Recorded(Arc<str>),
}

impl Capability {
    pub(super) fn of(record: &Record) -> Self {
        match (record.recorded, record.capability.is_empty()) {
            (true, _) => Self::Recorded(Arc::clone(&record.capability)),
            (false, true) => Self::None,
            (false, false) => Self::Other,
        }
    }
}

impl Decision {
    fn of(record: &Record) -> Self {
        let capability = Capability::of(record);
        let Record { listed: method, outcome, reason, enforced, .. } = *record;
        Self { method, capability, outcome, reason, enforced }
    }
}

/// One counter's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Metric name, one of [`super::metrics::CATALOG`].
    pub name: &'static str,
    /// Label names and values.
    pub labels: Vec<(&'static str, String)>,
    /// The count.
    pub value: u64,
}

impl Counters {
    /// Counters for these servers; others come to be when they are first seen.
    #[must_use]
    pub fn new(servers: Vec<Arc<str>>) -> Self {
        Self {
            servers: RwLock::new(servers.into_iter().map(|name| (name, Arc::default())).collect()),
            nobody: Arc::default(),
            render_fallbacks: Default::default(),
            audit_dropped: Default::default(),
            streams_open: AtomicU64::new(0),
            streams_refused: AtomicU64::new(0),
        }
    }

    /// After a reload: lets go of servers and capability labels that the configuration has no longer.
    pub fn follow(&self, known: &HashMap<Arc<str>, HashSet<Arc<str>>>) {
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|name, cells| {
            let Some(labels) = known.get(name) else { return false };
            let mut decisions = cells.decisions.write().unwrap_or_else(PoisonError::into_inner);
            decisions.retain(|decision, _| match &decision.capability {
                Capability::Recorded(label) => labels.contains(label),
                Capability::None | Capability::Other => true,
            });
            true
        });
    }

    fn cells(&self, record: &Record) -> Arc<Cells> {
        let Some((name, _)) = &record.server else { return Arc::clone(&self.nobody) };
        if let Some(cells) = self.servers.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Arc::clone(cells);
        }
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(servers.entry(Arc::clone(name)).or_default())
    }

    /// Counts one decision.
    pub fn decided(&self, record: &Record) {
        let cells = self.cells(record);
        cells.decided(Decision::of(record));
        if let Some(counter) = record.screened.and_then(|(action, _)| cells.screened.get(action as usize)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        if record.entries_hidden > 0
            && let Some(counter) = record.listed.and_then(|method| cells.hidden.get(method as usize))
        {
            counter.fetch_add(record.entries_hidden, Ordering::Relaxed);
        }
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

    /// Counts audit events that could not be kept.
    pub fn lost(&self, at: Lost, count: u64) {
        if let Some(counter) = self.audit_dropped.get(at as usize) {
            counter.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// Counts a stream in, unless `most` are open: then it is refused and counted as such.
    #[must_use]
    pub fn stream_opened(&self, most: usize) -> bool {
        if self.streams_open.fetch_add(1, Ordering::Relaxed) < most as u64 {
            return true;
        }
        self.streams_open.fetch_sub(1, Ordering::Relaxed);
        self.stream_refused();
        false
    }

    /// Counts a stream that is refused as `overloaded`.
    pub fn stream_refused(&self) {
        self.streams_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a stream out.
    pub fn stream_closed(&self) {
        self.streams_open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Decisions by outcome in the order of [`Outcome::ALL`], of all servers together, and how many of them a refusal was
    /// only recorded of. Goes down when a reload takes a server away.
    #[must_use]
    pub fn outcomes(&self) -> ([u64; Outcome::ALL.len()], u64) {
        let (mut sums, mut recorded) = ([0_u64; Outcome::ALL.len()], 0_u64);
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        for cells in servers.values().chain([&self.nobody]) {
            for (decision, counter) in &*cells.decisions.read().unwrap_or_else(PoisonError::into_inner) {
                let count = counter.load(Ordering::Relaxed);
                if let Some(sum) = sums.get_mut(decision.outcome as usize) {
                    *sum = sum.saturating_add(count);
                }
                if decision.reason.is_some() && decision.outcome != Outcome::Refused {
                    recorded = recorded.saturating_add(count);
                }
            }
        }
        (sums, recorded)
    }

    /// Every counter that is not zero, and those without labels.
    #[must_use]
    pub fn samples(&self) -> Vec<Sample> {
        Self::NAMES.iter().flat_map(|name| self.samples_of(name)).collect()
    }

    /// The names of these counters.
    pub const NAMES: [&str; 8] = [
        "portcullis.decisions",
        "portcullis.would_deny",
        "portcullis.screened",
        "portcullis.listing.entries_hidden",
        "portcullis.render.fallbacks",
        "portcullis.audit.dropped",
        "portcullis.streams.open",
        "portcullis.streams.refused",
    ];

    /// The samples of one metric.
    #[must_use]
    pub fn samples_of(&self, name: &str) -> Vec<Sample> {
        let single = |name, counter: &AtomicU64| vec![sample(name, Vec::new(), counter)];
        match name {
            "portcullis.decisions" => self.each(Cells::decision_samples),
            "portcullis.would_deny" => self.each(Cells::would_deny_samples),
            "portcullis.screened" => self.each(Cells::screened_samples),
            "portcullis.listing.entries_hidden" => self.each(Cells::hidden_samples),
            "portcullis.render.fallbacks" => ["minimal", "constant"]
                .into_iter()
                .zip(&self.render_fallbacks)
                .map(|(tier, counter)| sample("portcullis.render.fallbacks", vec![("tier", tier.to_owned())], counter))
                .collect(),
            "portcullis.audit.dropped" => Lost::ALL
                .into_iter()
                .zip(&self.audit_dropped)
                .map(|(at, counter)| sample("portcullis.audit.dropped", vec![("at", at.as_str().to_owned())], counter))
                .collect(),
            "portcullis.streams.open" => single("portcullis.streams.open", &self.streams_open),
            "portcullis.streams.refused" => single("portcullis.streams.refused", &self.streams_refused),
            _ => Vec::new(),
        }
    }

    fn each(&self, samples: impl Fn(&Cells, &str) -> Vec<Sample>) -> Vec<Sample> {
        let servers = self.servers.read().unwrap_or_else(PoisonError::into_inner);
        let named = servers.iter().map(|(name, cells)| (&**name, cells));
        let mut all: Vec<_> =
            named.chain([(NONE, &self.nobody)]).flat_map(|(name, cells)| samples(cells, name)).collect();
        all.sort_by(|one, other| one.labels.cmp(&other.labels));
        all
    }
}

fn sample(name: &'static str, labels: Vec<(&'static str, String)>, counter: &AtomicU64) -> Sample {
    Sample { name, labels, value: counter.load(Ordering::Relaxed) }
}

impl Cells {
    fn decided(&self, decision: Decision) {
        if let Some(counter) = self.decisions.read().unwrap_or_else(PoisonError::into_inner).get(&decision) {
            counter.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let mut decisions = self.decisions.write().unwrap_or_else(PoisonError::into_inner);
        decisions.entry(decision).or_default().fetch_add(1, Ordering::Relaxed);
    }

    fn decision_samples(&self, server: &str) -> Vec<Sample> {
        let decisions = self.decisions.read().unwrap_or_else(PoisonError::into_inner);
        decisions
            .iter()
            .map(|(decision, counter)| {
                let method = decision.method.map_or(OTHER, Method::as_str);
                let mut labels = vec![
                    ("server", server.to_owned()),
                    ("mcp.method.name", method.to_owned()),
                    ("decision", decision.outcome.as_str().to_owned()),
                    ("enforced", decision.enforced.to_string()),
                ];
                match &decision.capability {
                    Capability::None => {}
                    Capability::Other => labels.push(("capability", OTHER.to_owned())),
                    Capability::Recorded(label) => labels.push(("capability", label.to_string())),
                }
                if let Some(reason) = decision.reason {
                    labels.push(("reason", reason.as_str().to_owned()));
                }
                sample("portcullis.decisions", labels, counter)
            })
            .collect()
    }

    /// Forwarded all the same: counted as what it was, and here as what it would have been.
    fn would_deny_samples(&self, server: &str) -> Vec<Sample> {
        let decisions = self.decisions.read().unwrap_or_else(PoisonError::into_inner);
        let mut sums = HashMap::<Reason, u64>::new();
        for (decision, counter) in &*decisions {
            if let (Some(reason), true) = (decision.reason, decision.outcome != Outcome::Refused) {
                *sums.entry(reason).or_default() += counter.load(Ordering::Relaxed);
            }
        }
        let labels = |reason: Reason| vec![("server", server.to_owned()), ("reason", reason.as_str().to_owned())];
        let sample = |(reason, value)| Sample { name: "portcullis.would_deny", labels: labels(reason), value };
        sums.into_iter().map(sample).collect()
    }

    fn screened_samples(&self, server: &str) -> Vec<Sample> {
        let counted = Screened::ALL.iter().zip(&self.screened);
        counted
            .map(|(action, counter)| {
                let labels = vec![("server", server.to_owned()), ("action", action.as_str().to_owned())];
                sample("portcullis.screened", labels, counter)
            })
            .filter(|sample| sample.value > 0)
            .collect()
    }

    fn hidden_samples(&self, server: &str) -> Vec<Sample> {
        let counted = Method::ALL.iter().zip(&self.hidden);
        counted
            .map(|(method, counter)| {
                let labels = vec![("server", server.to_owned()), ("mcp.method.name", method.as_str().to_owned())];
                sample("portcullis.listing.entries_hidden", labels, counter)
            })
            .filter(|sample| sample.value > 0)
            .collect()
    }
}
