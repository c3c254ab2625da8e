//! What waits for the collector: encoded spans or log records in a bounded queue, and the thread that exports them in
//! batches. Each is exported, kept, or counted as lost.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use super::client::Client;
use super::encode::Envelope;
use super::variable;

/// How long until what is kept is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// Most bytes that are set aside for a batch before it has them.
const AHEAD: usize = 1024 * 1024;

/// Bounds of what waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::telemetry) struct Limits {
    /// Most items that wait, apart from those that are being exported.
    pub(in crate::telemetry) queue: usize,
    /// Most items of one export, unless more were put at once.
    pub(in crate::telemetry) batch: usize,
    /// How long an item waits for others at most.
    pub(in crate::telemetry) delay: Duration,
}

impl Limits {
    /// Those that variables of this prefix name (`OTEL_BSP`, `OTEL_BLRP`), the specification's else; `delay` is the signal's.
    pub(in crate::telemetry) fn named(prefix: &str, delay: u64) -> Self {
        let number =
            |name, default| variable(&format!("{prefix}_{name}")).and_then(|text| text.parse().ok()).unwrap_or(default);
        let size = |name, default: usize, most| {
            usize::try_from(number(name, default as u64).clamp(1, most)).unwrap_or(default)
        };
        let queue = size("MAX_QUEUE_SIZE", 2048, 1 << 20);
        // A batch that the queue cannot hold would never be full.
        let batch = size("MAX_EXPORT_BATCH_SIZE", 512, 1 << 16).min(queue);
        Self { queue, batch, delay: Duration::from_millis(number("SCHEDULE_DELAY", delay)) }
    }
}

/// What becomes of items that the collector does not take.
pub(in crate::telemetry) struct Losses {
    /// What they are, for the log.
    pub(in crate::telemetry) what: &'static str,
    /// Whether they are kept and tried again until the process stops.
    pub(in crate::telemetry) keep: bool,
    /// Told of how many were given up.
    pub(in crate::telemetry) count: Box<dyn Fn(u64) + Send>,
}

/// The way to the collector.
pub(in crate::telemetry) struct Outbox {
    queue: Arc<Queue>,
    thread: JoinHandle<()>,
}

/// Encoded items, one behind the other.
struct Batch {
    items: Vec<u8>,
    count: usize,
    since: Instant,
}

#[derive(Default)]
struct Waiting {
    batches: VecDeque<Batch>,
    count: usize,
    /// The bytes of the last batch that was taken: what the next will take.
    bytes: usize,
    closed: bool,
}

struct Queue {
    waiting: Mutex<Waiting>,
    more: Condvar,
    limits: Limits,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, items: &[u8], count: usize) -> bool {
        let mut waiting = self.lock();
        if waiting.closed || waiting.count.saturating_add(count) > self.limits.queue {
            return false;
        }
        waiting.count += count;
        let (first, fits) =
            (waiting.batches.is_empty(), |back: &Batch| back.count.saturating_add(count) <= self.limits.batch);
        let full = match waiting.batches.back_mut() {
            Some(back) if fits(back) => {
                back.items.extend_from_slice(items);
                back.count += count;
                back.count >= self.limits.batch
            }
            behind => {
                let full = behind.is_some() || count >= self.limits.batch;
                let mut encoded = Vec::with_capacity(waiting.bytes.clamp(items.len(), AHEAD.max(items.len())));
                encoded.extend_from_slice(items);
                waiting.batches.push_back(Batch { items: encoded, count, since: Instant::now() });
                full
            }
        };
        drop(waiting);
        // Woken for the first, the thread knows when its time is up; between that and a full batch there is nothing to do.
        if first || full {
            self.more.notify_one();
        }
        true
    }

    /// The next batch, once it is full or has waited long enough; `None` when it is closed and empty.
    fn take(&self) -> Option<Batch> {
        let mut waiting = self.lock();
        loop {
            let Some(front) = waiting.batches.front() else {
                if waiting.closed {
                    return None;
                }
                waiting = self.more.wait(waiting).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = self.limits.delay.saturating_sub(front.since.elapsed());
            let full = front.count >= self.limits.batch || waiting.batches.len() > 1;
            if full || waiting.closed || left.is_zero() {
                let batch = waiting.batches.pop_front();
                let (count, bytes) = batch.as_ref().map_or((0, 0), |batch| (batch.count, batch.items.len()));
                waiting.count = waiting.count.saturating_sub(count);
                waiting.bytes = bytes;
                return batch;
            }
            waiting = self.more.wait_timeout(waiting, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn close(&self) {
        self.lock().closed = true;
        self.more.notify_one();
    }
}

impl Outbox {
    /// Starts the thread, called `name`.
    ///
    /// # Errors
    /// It cannot be started.
    pub(in crate::telemetry) fn start(
        name: &str,
        client: Client,
        envelope: Envelope,
        runtime: Handle,
        limits: Limits,
        losses: Losses,
    ) -> std::io::Result<Self> {
        let queue = Arc::new(Queue { waiting: Mutex::default(), more: Condvar::new(), limits });
        let exporting = Exporting { queue: Arc::clone(&queue), client, envelope, runtime, losses, told: false };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || exporting.run())?;
        Ok(Self { queue, thread })
    }

    /// Puts `count` encoded items at the end; `false` when there is no room for them.
    pub(in crate::telemetry) fn put(&self, items: &[u8], count: usize) -> bool {
        self.queue.put(items, count)
    }

    /// Takes no more, and lets the thread end once what waits is exported or given up.
    pub(in crate::telemetry) fn close(&self) {
        self.queue.close();
    }

    /// Waits for the thread. Call [`Self::close`] before.
    pub(in crate::telemetry) fn join(self) {
        let _ = self.thread.join();
    }
}

/// The exporting thread.
struct Exporting {
    queue: Arc<Queue>,
    client: Client,
    envelope: Envelope,
    runtime: Handle,
    losses: Losses,
    /// Whether the collector's fault was told, and has not gone since.
    told: bool,
}

impl Exporting {
    fn run(mut self) {
        while let Some(batch) = self.queue.take() {
            self.export(batch);
        }
    }

    fn export(&mut self, batch: Batch) {
        let (count, what) = (batch.count as u64, self.losses.what);
        let request = self.envelope.wrap(batch.items);
        let partial = loop {
            let fault = match self.runtime.block_on(self.client.export(&request)) {
                Ok(partial) => break partial,
                Err(fault) => fault,
            };
            let keep = self.losses.keep && !self.queue.lock().closed;
            if !std::mem::replace(&mut self.told, true) {
                let becomes = if keep { "they are kept until they are" } else { "they are dropped and counted" };
                tracing::error!(%fault, "{what} cannot be exported; {becomes}");
            }
            if !keep {
                return (self.losses.count)(count);
            }
            std::thread::sleep(RETRY);
        };
        if std::mem::take(&mut self.told) {
            tracing::info!("{what} are exported again");
        }
        // The specification: what was rejected is not sent again.
        let rejected = partial.rejected.min(count);
        if rejected > 0 || !partial.message.is_empty() {
            tracing::warn!(rejected, message = partial.message, "the collector did not take all {what}");
        }
        if rejected > 0 {
            (self.losses.count)(rejected);
        }
    }
}
