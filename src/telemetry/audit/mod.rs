//! One audit event per decision: JSON lines on standard output and in a file, and OTLP logs, all from the same event.
//!
//! ```text
//! Session ── admit() ──▶ Slot        with `when_full: refuse`: none left, the call is refused before it is forwarded
//!    │ emit(record, slot)
//!    ▼ bounded queue ──▶ writer thread ──▶ histograms, spans, JSON lines ──▶ OTLP logs (a thread of their own)
//! ```
//!
//! The request path only hands a record over. What cannot be kept is counted (`portcullis.audit.dropped`), or, with
//! [`WhenFull::Refuse`], not begun: a slot is held from a call's first byte until its event is written, so a call that is
//! under way always finds room, and one that would not is refused as `overloaded`.

mod event;
pub(super) mod logs;
mod sink;
#[cfg(test)]
mod tests;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::SystemTime;

pub use event::{SCHEMA, write_line};
pub use sink::Sink;
pub(super) use writer::Outlets;

use super::counters::{Counters, Lost};
use super::metrics::Metrics;
use super::record::Trails;
pub use super::record::{Outcome, Record, Screened};
use super::settings::WhenFull;

/// Records that may wait for the writer, and with [`WhenFull::Refuse`] calls under way beside them.
const QUEUE: usize = 16 * 1024;
/// Beyond that, room for the events of calls that were refused because there was no room.
const HEADROOM: usize = 1024;

/// What the writer is handed.
enum Message {
    Decision {
        record: Box<Record>,
        at: SystemTime,
        slot: Slot,
    },
    /// Nothing follows but what is in the queue.
    Stop,
}

/// What the handles and the writer know of each other.
#[derive(Default)]
struct Shared {
    /// Slots that are held.
    held: AtomicUsize,
    /// Events in the queue of calls that had no slot.
    loose: AtomicUsize,
    /// Whether an event could not be written and is being tried again.
    failing: AtomicBool,
    /// Whether the process is stopping: nothing is tried for ever any more.
    closing: AtomicBool,
}

/// Room for one event.
#[derive(Default)]
pub struct Slot(Room);

#[derive(Default)]
enum Room {
    /// Nothing is promised.
    #[default]
    None,
    /// Promised to a call that was admitted.
    Held(Arc<Shared>),
    /// Of the headroom, for the event of a call that was not.
    Loose(Arc<Shared>),
}

impl Drop for Slot {
    fn drop(&mut self) {
        match &self.0 {
            Room::None => {}
            Room::Held(shared) => drop(shared.held.fetch_sub(1, Ordering::Relaxed)),
            Room::Loose(shared) => drop(shared.loose.fetch_sub(1, Ordering::Relaxed)),
        }
    }
}

/// Where records go.
#[derive(Clone)]
pub struct Audit {
    queue: SyncSender<Message>,
    counters: Arc<Counters>,
    metrics: Arc<Metrics>,
    shared: Arc<Shared>,
    when_full: WhenFull,
    trails: Trails,
}

impl Audit {
    /// Starts the writer.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(super) fn start(outlets: Outlets, when_full: WhenFull) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (queue, messages) = sync_channel(QUEUE.saturating_add(HEADROOM));
        let shared = Arc::<Shared>::default();
        let audit = Self {
            queue,
            counters: Arc::clone(&outlets.counters),
            metrics: Arc::clone(&outlets.metrics),
            shared: Arc::clone(&shared),
            when_full,
            trails: outlets.trails(),
        };
        let writer = writer::Writer::new(outlets, when_full, shared);
        let thread = std::thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&messages))?;
        Ok((audit, thread))
    }

    /// Of which calls the way up is kept, for their spans.
    #[must_use]
    pub fn trails(&self) -> Trails {
        self.trails
    }

    /// Room for the event of a call that begins. `None`: there is none, and the configuration wants the call refused.
    #[must_use]
    pub fn admit(&self) -> Option<Slot> {
        if self.when_full == WhenFull::Drop {
            return Some(Slot::default());
        }
        let held = self.shared.held.fetch_add(1, Ordering::Relaxed);
        let slot = Slot(Room::Held(Arc::clone(&self.shared)));
        // Dropping the slot gives it back.
        (held < QUEUE && !self.shared.failing.load(Ordering::Relaxed)).then_some(slot)
    }

    /// Hands one record over. Never blocks.
    pub fn emit(&self, record: Record, at: SystemTime, slot: Slot) {
        self.counters.decided(&record);
        if let Some((action, why)) = record.screened {
            let server = record.server.as_ref().map_or("", |(name, _)| name);
            let (decision, capability, action) = (record.id.as_str(), &*record.capability, action.as_str());
            tracing::warn!(decision, server, capability, action, "an answer was screened: {why}");
        }
        let record = Box::new(record);
        let Some(slot) = self.promised(slot) else { return self.lose(&record) };
        let message = Message::Decision { record, at, slot };
        if let Err(TrySendError::Full(message) | TrySendError::Disconnected(message)) = self.queue.try_send(message)
            && let Message::Decision { record, .. } = message
        {
            self.lose(&record);
        }
    }

    /// The slot, or one of the headroom in its place: what was promised to others is not taken.
    fn promised(&self, slot: Slot) -> Option<Slot> {
        if self.when_full == WhenFull::Drop || !matches!(slot.0, Room::None) {
            return Some(slot);
        }
        let loose = self.shared.loose.fetch_add(1, Ordering::Relaxed);
        let slot = Slot(Room::Loose(Arc::clone(&self.shared)));
        (loose < HEADROOM).then_some(slot)
    }

    /// The event is lost; its times are not.
    fn lose(&self, record: &Record) {
        self.counters.lost(Lost::Queue, 1);
        self.metrics.observe(record);
    }

    /// Lets the writer end once its queue is written, and nothing be tried for ever from now on.
    pub(super) fn stop(&self) {
        self.shared.closing.store(true, Ordering::Relaxed);
        // The writer is alive and takes; a writer that is gone needs no telling.
        let _ = self.queue.send(Message::Stop);
    }
}
