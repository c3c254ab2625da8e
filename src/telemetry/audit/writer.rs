//! The thread behind the queue: turns records into histograms, spans, JSON lines and OTLP logs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, SystemTime};

use super::event::{Stamp, fill, write_line};
use super::logs::Logs;
use super::sink::Sink;
use super::{Message, Shared, Slot};
use crate::telemetry::contract::AuditEvent;
use crate::telemetry::counters::{Counters, Lost};
use crate::telemetry::metrics::Metrics;
use crate::telemetry::recent::Recent;
use crate::telemetry::record::{Record, Trails};
use crate::telemetry::settings::WhenFull;
use crate::telemetry::traces::{Place, Spans};

/// How long the writer lets records gather: woken for each, it took a tenth of the CPU (docs/performance.md). Meanwhile
/// the queue holds more than ten times what the fastest decisions bring, and a kill costs the records of so long.
const GATHER: Duration = Duration::from_millis(5);
/// After how many times of that without a record the writer waits to be woken instead of looking.
const IDLE: u32 = 20;
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
    /// The last event, whose memory the next one uses.
    event: AuditEvent,
    stamp: Stamp,
    lines: Vec<u8>,
    /// Records in `lines`, and their slots, which are free once the lines are written.
    count: u64,
    slots: Vec<Slot>,
}

impl Writer {
    pub(super) fn new(outlets: Outlets, when_full: WhenFull, shared: Arc<Shared>) -> Self {
        let lines = Vec::with_capacity(4096);
        let (event, stamp) = (AuditEvent::default(), Stamp::default());
        Self { outlets, when_full, shared, event, stamp, lines, count: 0, slots: Vec::new() }
    }

    /// Writes records a few milliseconds after they come, all that wait in one go: decisions then neither wake this
    /// thread nor make a system call each. While they come, the thread looks for itself; after a rest of [`IDLE`] it waits to
    /// be woken.
    pub(super) fn run(mut self, messages: &Receiver<Message>) {
        let mut open = true;
        let mut rests = IDLE;
        while open {
            if rests >= IDLE {
                let Ok(message) = messages.recv() else { break };
                open = self.take(message);
            }
            if open {
                std::thread::sleep(GATHER);
            }
            while self.lines.len() < BATCH {
                match messages.try_recv() {
                    Ok(message) => open &= self.take(message),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => {
                        open = false;
                        break;
                    }
                }
            }
            rests = if self.slots.is_empty() { rests.saturating_add(1) } else { 0 };
            self.write();
        }
        while let Ok(message) = messages.try_recv() {
            self.take(message);
            self.write();
        }
        self.end();
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
        let span = self.outlets.spans.as_mut().and_then(|spans| spans.tell(&record, at));
        if self.outlets.sinks.is_empty() && self.outlets.logs.is_none() {
            return;
        }
        let place = span.or_else(|| record.parent.as_deref().map(Place::from));
        let trace = place.map(|place| hex(place.trace));
        let trace = trace.as_ref().and_then(|hex| std::str::from_utf8(hex).ok()).unwrap_or_default();
        fill(&mut self.event, record, &mut self.stamp, at, trace);
        let closing = || self.shared.closing.load(Ordering::Relaxed);
        if let Some(logs) = &mut self.outlets.logs
            && !logs.push(&self.event, at, place, closing)
        {
            self.outlets.counters.lost(Lost::Otlp, 1);
        }
        if !self.outlets.sinks.is_empty() {
            write_line(&self.event, &mut self.lines);
            self.count += 1;
        }
    }

    /// Exports what is left, both signals at a time.
    fn end(&mut self) {
        let (spans, logs) = (self.outlets.spans.take(), self.outlets.logs.take());
        spans.iter().for_each(Spans::close);
        logs.iter().for_each(Logs::close);
        logs.into_iter().for_each(Logs::join);
        spans.into_iter().for_each(Spans::join);
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

/// 32 lower-case hexadecimal digits.
fn hex(number: u128) -> [u8; 32] {
    let mut left = number;
    let mut digits = [b'0'; 32];
    for digit in digits.iter_mut().rev() {
        let value = left.to_le_bytes()[0] & 0xF;
        *digit = if value < 10 { b'0' + value } else { b'a' + (value - 10) };
        left >>= 4;
    }
    digits
}
