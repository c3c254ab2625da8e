//! Counters, one atomic each at a fixed place: counting is one addition, whatever the number of servers and reasons.
//!
//! Labels are closed sets (configured servers, listed methods, reasons), so a caller cannot make new ones. The registry
//! is read as a list of samples, which is what an exporter needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;

use crate::protocol::Method;
use crate::refusal::Reason;
use crate::refusal::frame::Tier;

use super::audit::{Outcome, Record, Screened};

const OUTCOMES: [Outcome; 5] =
    [Outcome::Allowed, Outcome::Refused, Outcome::Passed, Outcome::Answered, Outcome::Aborted];

/// The counters of one process.
pub struct Counters {
    /// By the number of the server; only ever grows, so that a reload keeps what was counted.
    servers: ArcSwap<Vec<Arc<Block>>>,
    /// Of requests that belong to no server.
    none: Block,
    entries_hidden: AtomicU64,
    render_fallbacks: [AtomicU64; 2],
    audit_dropped: AtomicU64,
    streams_open: AtomicU64,
    streams_refused: AtomicU64,
}

/// The counters of one server.
struct Block {
    name: Arc<str>,
    /// By method (the last one: other), then outcome without reason and every reason.
    decisions: Vec<AtomicU64>,
    /// As [`Screened::ALL`].
    screened: [AtomicU64; Screened::ALL.len()],
    /// Refusals that were recorded only, by reason.
    would_deny: Vec<AtomicU64>,
}

impl Block {
    fn new(name: Arc<str>) -> Self {
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        let decisions = zeros((Method::ALL.len() + 1) * Counters::width());
        Self { name, decisions, screened: Default::default(), would_deny: zeros(Reason::ALL.len()) }
    }
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
    /// Counters for these servers, by their numbers.
    #[must_use]
    pub fn new(servers: Vec<Arc<str>>) -> Self {
        Self {
            servers: ArcSwap::from_pointee(servers.into_iter().map(|name| Arc::new(Block::new(name))).collect()),
            none: Block::new("_none".into()),
            entries_hidden: AtomicU64::new(0),
            render_fallbacks: [AtomicU64::new(0), AtomicU64::new(0)],
            audit_dropped: AtomicU64::new(0),
            streams_open: AtomicU64::new(0),
            streams_refused: AtomicU64::new(0),
        }
    }

    /// Makes room for servers that a reload adds: `servers` are all names by their numbers, those that are here already first.
    pub fn admit(&self, servers: &[Arc<str>]) {
        let present = self.servers.load_full();
        if servers.len() > present.len() {
            let more = servers.iter().skip(present.len()).map(|name| Arc::new(Block::new(Arc::clone(name))));
            self.servers.store(Arc::new(present.iter().cloned().chain(more).collect()));
        }
    }

    const fn width() -> usize {
        OUTCOMES.len() + Reason::ALL.len()
    }

    /// Counts one decision.
    pub fn decided(&self, record: &Record) {
        let servers = self.servers.load();
        let block = record.server.as_ref().and_then(|(_, index)| servers.get(*index)).map_or(&self.none, |block| block);
        let method = record
            .listed
            .and_then(|method| Method::ALL.iter().position(|known| *known == method))
            .unwrap_or(Method::ALL.len());
        let outcome = match record.reason {
            // Forwarded all the same: counted as what it was, and beside it as what it would have been.
            Some(reason) if record.outcome != Outcome::Refused => {
                if let Some(counter) = block.would_deny.get(reason as usize) {
                    counter.fetch_add(1, Ordering::Relaxed);
                }
                OUTCOMES.iter().position(|known| *known == record.outcome).unwrap_or(0)
            }
            Some(reason) => OUTCOMES.len() + reason as usize,
            None => OUTCOMES.iter().position(|known| *known == record.outcome).unwrap_or(0),
        };
        if let Some(counter) = block.decisions.get(method * Self::width() + outcome) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        if let Some((action, _)) = record.screened
            && let Some(counter) = block.screened.get(action as usize)
        {
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

    /// Every block's samples.
    fn of_blocks<I: Iterator<Item = Sample>>(&self, of: impl Fn(&Block) -> I) -> Vec<Sample> {
        let servers = self.servers.load();
        servers.iter().map(|block| &**block).chain([&self.none]).flat_map(of).collect()
    }

    fn screened_samples(&self) -> Vec<Sample> {
        self.of_blocks(|block| {
            let counted = Screened::ALL.iter().zip(&block.screened).map(|(action, counter)| (action, read(counter)));
            let counted: Vec<_> = counted.filter(|(_, value)| *value > 0).collect();
            let server = block.name.to_string();
            counted.into_iter().map(move |(action, value)| {
                let labels = vec![("server", server.clone()), ("action", action.as_str().to_owned())];
                Sample { name: "portcullis.screened", labels, value }
            })
        })
    }

    fn would_deny_samples(&self) -> Vec<Sample> {
        self.of_blocks(|block| {
            let counted = Reason::ALL.iter().zip(&block.would_deny).map(|(reason, counter)| (reason, read(counter)));
            let counted: Vec<_> = counted.filter(|(_, value)| *value > 0).collect();
            let server = block.name.to_string();
            counted.into_iter().map(move |(reason, value)| {
                let labels = vec![("server", server.clone()), ("reason", reason.as_str().to_owned())];
                Sample { name: "portcullis.would_deny", labels, value }
            })
        })
    }

    fn decision_samples(&self) -> Vec<Sample> {
        self.of_blocks(|block| {
            let counted: Vec<_> =
                block.decisions.iter().map(read).enumerate().filter(|(_, value)| *value > 0).collect();
            let server = block.name.to_string();
            counted.into_iter().map(move |(cell, value)| {
                let method = Method::ALL.get(cell / Self::width()).map_or("_other", |method| method.as_str());
                let outcome = cell % Self::width();
                let reason = outcome.checked_sub(OUTCOMES.len()).and_then(|index| Reason::ALL.get(index));
                let decision = OUTCOMES.get(outcome).copied().unwrap_or(Outcome::Refused);
                let mut labels = vec![
                    ("server", server.clone()),
                    ("mcp.method.name", method.to_owned()),
                    ("decision", decision.as_str().to_owned()),
                ];
                if let Some(reason) = reason {
                    labels.push(("reason", reason.as_str().to_owned()));
                }
                Sample { name: "portcullis.decisions", labels, value }
            })
        })
    }
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
