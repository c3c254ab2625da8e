//! The thread behind the queue: turns records into histograms, spans, JSON lines and OTLP logs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, SystemTime};

use super::event::write_line;
use super::logs::Logs;
use super::sink::Sink;
use super::{Message, Shared, Slot};
use crate::telemetry::counters::{Counters, Lost};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::recent::Recent;
use crate::telemetry::record::{Record, Trails};
use crate::telemetry::settings::WhenFull;
use crate::telemetry::traces::Spans;

/// How long the writer lets records gather: woken for each, it took a tenth of the CPU (docs/performance.md). Meanwhile
/// the queue holds what a hundred times the fastest decisions bring.
const GATHER: Duration = Duration::from_millis(2);
/// Bytes of lines that are written in one go.
const BATCH: usize = 256 * 1024;
/// How long until a sink that failed is tried again.
const RETRY: Duration = Duration::from_millis(200);

/// Where decisions go.
pub(in crate::telemetry) struct Outlets {
    pub(in crate::telemetry) counters: Arc<Counters>,
    pub(in crate::telemetry) metrics: Arc<Metrics>,
    pub(in crate::telemetry) sinks: Vec<Sink>,
    pub(in crate::telemetry) spans: Option<Spans>,
    pub(in crate::telemetry) logs: Option<Logs>,
    pub(in crate::telemetry) recent: Option<Arc<Recent>>,
}

impl Outlets {
    pub(super) fn trails(&self) -> Trails {
        self.spans.as_ref().map_or(Trails::Never, Spans::trails)
    }
}

/// What the thread holds.
pub(super) struct Writer {
    outlets: Outlets,
    when_full: WhenFull,
    shared: Arc<Shared>,
    lines: Vec<u8>,
    /// Records in `lines`, and their slots, which are free once the lines are written.
    count: u64,
    slots: Vec<Slot>,
}

impl Writer {
    pub(super) fn new(outlets: Outlets, when_full: WhenFull, shared: Arc<Shared>) -> Self {
        Self { outlets, when_full, shared, lines: Vec::with_capacity(4096), count: 0, slots: Vec::new() }
    }

    /// Writes records a few milliseconds after they come, all that wait in one go: decisions then neither wake this
    /// thread nor make a system call each.
    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        let mut open = true;
        while open && let Ok(message) = messages.recv() {
            open = self.take(message);
            if open {
                std::thread::sleep(GATHER);
            }
            while self.lines.len() < BATCH {
                let Ok(message) = messages.try_recv() else { break };
                open &= self.take(message);
            }
            self.write();
        }
        while let Ok(message) = messages.try_recv() {
            self.take(message);
            self.write();
        }
        if let Some(logs) = self.outlets.logs.take() {
            logs.close();
        }
    }

    /// Takes one message; `false` when it was the last.
    fn take(&mut self, message: Message) -> bool {
        match message {
            Message::Decision { record, at, slot } => {
                self.decision(*record, at);
                self.slots.push(slot);
                true
            }
            Message::Stop => false,
        }
    }

    fn decision(&mut self, record: Record, at: SystemTime) {
        self.outlets.metrics.observe(&record);
        if let Some(recent) = &self.outlets.recent {
            recent.note(&record, at);
        }
        let span = self.outlets.spans.as_ref().and_then(|spans| spans.tell(&record, at));
        if self.outlets.sinks.is_empty() && self.outlets.logs.is_none() {
            return;
        }
        let parent = record.parent.clone();
        let event = record.event(at, span.as_ref().map(|span| span.trace_id().to_string()));
        if let Some(logs) = &self.outlets.logs
            && !logs.push(&event, at, span.as_ref(), parent.as_deref(), || self.closing())
        {
            self.outlets.counters.lost(Lost::Otlp, 1);
        }
        if !self.outlets.sinks.is_empty() {
            write_line(&event, &mut self.lines);
            self.count += 1;
        }
    }

    fn closing(&self) -> bool {
        self.shared.closing.load(Ordering::Relaxed)
    }

    /// Writes what has gathered to every sink. Where nothing may be lost, a sink that fails is tried until it takes it.
    fn write(&mut self) {
        for sink in &mut self.outlets.sinks {
            let mut left = self.lines.as_slice();
            while let Err(fault) = sink.write(&mut left) {
                let refuse = self.when_full == WhenFull::Refuse && !self.shared.closing.load(Ordering::Relaxed);
                sink.complain(&fault, refuse);
                if !refuse {
                    self.outlets.counters.lost(sink.lost(), self.count);
                    break;
                }
                self.shared.failing.store(true, Ordering::Relaxed);
                std::thread::sleep(RETRY);
            }
        }
        self.shared.failing.store(false, Ordering::Relaxed);
        self.lines.clear();
        self.slots.clear();
        self.count = 0;
    }
}
