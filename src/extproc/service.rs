//! One gRPC stream is one HTTP exchange: drives it, performs what it asks for, and never ends a stream with OK early.
//!
//! Envoy lets a request pass when the stream ends with OK before its answer, so every exit that is not
//! [`Next::Finish`] is an error status, and a panic in a step becomes a refusal.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use futures_util::stream::unfold;
use futures_util::{FutureExt as _, Stream};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::Sleep;
use tonic::{Request, Response, Status, Streaming};

use crate::exchange::{Event, Exchange, Next, Now, Reply, Step};
use crate::ladder::Snapshot;
use crate::telemetry::audit::{Audit, Slot};
use crate::telemetry::counters::Counters;

use super::wire::external_processor_server::ExternalProcessor;

#[cfg(test)]
mod tests;

/// The gRPC service.
#[derive(Clone)]
pub struct Service {
    shared: Arc<Shared>,
}

struct Shared {
    live: ArcSwap<Live>,
    phase: AtomicU8,
    /// Wakes every open stream: the configuration or the phase has changed.
    changed: Arc<Notify>,
    audit: Audit,
    counters: Arc<Counters>,
    /// Decision ids: random per process, then counted.
    id_prefix: String,
    id_next: AtomicU64,
}

/// What new streams are judged by.
struct Live {
    snapshot: Arc<Snapshot>,
    /// Counts the snapshots.
    generation: u64,
    /// Streams that may be open at once.
    most: usize,
}

/// How far the process is from its end. The order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Phase {
    Serving,
    Draining,
    Stopped,
}

impl Service {
    /// A service that judges by `snapshot`. `most` bounds the streams that are open at once.
    ///
    /// # Errors
    /// The system has no random bytes for the decision ids' prefix.
    pub fn new(snapshot: Arc<Snapshot>, audit: Audit, counters: Arc<Counters>, most: usize) -> std::io::Result<Self> {
        let random = getrandom::u64().map_err(std::io::Error::other)?;
        let id_prefix = format!("{:012x}", random >> 16);
        let id_next = AtomicU64::new(0);
        let live = ArcSwap::from_pointee(Live { snapshot, generation: 1, most });
        let (phase, changed) = (AtomicU8::new(Phase::Serving as u8), Arc::new(Notify::new()));
        Ok(Self { shared: Arc::new(Shared { live, phase, changed, audit, counters, id_prefix, id_next }) })
    }

    /// From now on judges by another snapshot and bound. Requests that are open stay with theirs, save open streams, which
    /// are judged again. Call it from one place at a time.
    pub fn replace(&self, snapshot: Arc<Snapshot>, most: usize) {
        let generation = self.generation().wrapping_add(1);
        self.shared.live.store(Arc::new(Live { snapshot, generation, most }));
        self.shared.changed.notify_waiters();
    }

    /// The number of the snapshot that new requests are judged by, from 1.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.shared.live.load().generation
    }

    /// The snapshot that new requests are judged by.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::clone(&self.shared.live.load().snapshot)
    }

    /// The process is about to end: subscriptions end now, everything else may finish, and new requests are served.
    pub fn drain(&self) {
        self.enter(Phase::Draining);
    }

    /// The process ends now: whatever is undecided is refused, whatever runs is answered with a refusal, and so is every
    /// request that still comes.
    pub fn stop(&self) {
        self.enter(Phase::Stopped);
    }

    fn enter(&self, phase: Phase) {
        self.shared.phase.fetch_max(phase as u8, Ordering::AcqRel);
        self.shared.changed.notify_waiters();
    }
}

impl Shared {
    fn reached(&self, phase: Phase) -> bool {
        self.phase.load(Ordering::Acquire) >= phase as u8
    }

    fn decision_id(&self) -> String {
        format!("{}{:08x}", self.id_prefix, self.id_next.fetch_add(1, Ordering::Relaxed))
    }
}

#[tonic::async_trait]
impl ExternalProcessor for Service {
    type ProcessStream = Pin<Box<dyn Stream<Item = Result<Reply, Status>> + Send>>;

    async fn process(&self, request: Request<Streaming<Event>>) -> Result<Response<Self::ProcessStream>, Status> {
        let session = Session::new(Arc::clone(&self.shared), request.into_inner());
        Ok(Response::new(Box::pin(unfold(Box::new(session), Session::next))))
    }
}

/// How a stream ends.
enum Ending {
    Finish,
    Fail(Status),
}

/// One stream.
struct Session {
    shared: Arc<Shared>,
    inbound: Streaming<Event>,
    exchange: Exchange,
    queue: VecDeque<Reply>,
    ending: Option<Ending>,
    /// Whether the gates are to be asked as soon as what is in the queue was sent.
    to_ask: bool,
    /// Whether this stream is one of those that are counted as open.
    admitted: bool,
    /// Room for its audit event, until that is handed over; without room a stream is not admitted.
    slot: Option<Slot>,
    changed: Change,
    /// Kept from one wait to the next: most waits end long before it is due.
    timer: Option<Pin<Box<Sleep>>>,
    /// The snapshot that the exchange goes by.
    generation: u64,
    /// The last phase that the exchange was told of.
    told: Phase,
}

fn now() -> Now {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Now { instant: Instant::now(), unix }
}

impl Session {
    fn new(shared: Arc<Shared>, inbound: Streaming<Event>) -> Self {
        // Before the snapshot is taken, so that no change of it can be missed.
        let changed = Change::of(&shared);
        let live = shared.live.load();
        let (snapshot, generation, most) = (Arc::clone(&live.snapshot), live.generation, live.most);
        drop(live);
        let slot = shared.audit.admit();
        let admitted = if slot.is_some() {
            shared.counters.stream_opened(most)
        } else {
            shared.counters.stream_refused();
            false
        };
        let began = now();
        let exchange = Exchange::new(snapshot, shared.decision_id(), began).with_trails(shared.audit.trails());
        let (queue, told) = (VecDeque::new(), Phase::Serving);
        Self {
            shared,
            inbound,
            exchange,
            queue,
            ending: None,
            to_ask: false,
            admitted,
            slot,
            changed,
            timer: None,
            generation,
            told,
        }
    }

    /// The next message for Envoy, or the end.
    /// Boxed, because it is handed to and fro for every message.
    async fn next(mut self: Box<Self>) -> Option<(Result<Reply, Status>, Box<Self>)> {
        loop {
            if let Some(message) = self.queue.pop_front() {
                return Some((Ok(message), self));
            }
            match self.ending.take() {
                Some(Ending::Finish) => return None,
                Some(Ending::Fail(status)) => {
                    self.ending = Some(Ending::Finish);
                    return Some((Err(status), self));
                }
                None => self.advance().await,
            }
        }
    }

    /// Takes one event through the exchange, and whatever the exchange needs for it.
    async fn advance(&mut self) {
        let first = if std::mem::take(&mut self.to_ask) { self.ask().await } else { self.receive().await };
        let Some(mut event) = first else { return };
        let mut began = now();
        loop {
            let Step { replies, next } = guarded(&mut self.exchange, event, began);
            self.queue.extend(replies);
            if let Some(record) = self.exchange.take_record() {
                let slot = self.slot.take().unwrap_or_default();
                self.shared.audit.emit(record, SystemTime::now(), slot);
            }
            match next {
                Next::Wait => return,
                Next::Identify => event = self.identify(began.unix).await,
                Next::Refresh => event = self.refresh().await,
                Next::Ask if !self.queue.is_empty() => {
                    self.to_ask = true;
                    return;
                }
                Next::Ask => match self.ask().await {
                    Some(heard) => event = heard,
                    None => return,
                },
                Next::Finish => {
                    self.ending = Some(Ending::Finish);
                    return;
                }
                Next::Fail => {
                    self.ending = Some(Ending::Fail(Status::internal("the exchange cannot be continued safely")));
                    return;
                }
            }
            began = now();
        }
    }

    /// What comes next: Envoy's message, a deadline, or a change of what concerns everybody. `None` when the other side is
    /// gone, and the ending is set.
    async fn receive(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.noticed() {
                return Some(event);
            }
            let message = tokio::select! {
                biased;
                message = self.inbound.message() => message,
                () = self.changed.wait(&self.shared) => continue,
                () = due(&mut self.timer, self.exchange.deadline()) => return Some(Event::Deadline),
            };
            return self.received(message);
        }
    }

    /// What the exchange has not been told yet and is to be told now.
    fn noticed(&mut self) -> Option<Event> {
        if self.told < Phase::Stopped && self.shared.reached(Phase::Stopped) {
            self.told = Phase::Stopped;
            return Some(Event::Stop);
        }
        if !self.exchange.is_streaming() {
            return None;
        }
        if self.told < Phase::Draining && self.shared.reached(Phase::Draining) {
            self.told = Phase::Draining;
            return Some(Event::Draining);
        }
        let live = self.shared.live.load();
        if live.generation == self.generation {
            return None;
        }
        self.generation = live.generation;
        Some(Event::Reloaded(Arc::clone(&live.snapshot)))
    }

    fn received(&mut self, message: Result<Option<Event>, Status>) -> Option<Event> {
        match message {
            Ok(Some(_)) if !self.admitted => Some(Event::Overloaded),
            Ok(Some(event)) => Some(event),
            // Envoy resets the stream whenever the HTTP exchange is over, so neither of these is worth a log line; but
            // it may also be a message that could not be decoded, so neither may end with OK.
            Ok(None) => self.gone(&Status::cancelled("Envoy ended the stream")),
            Err(status) => self.gone(&status),
        }
    }

    fn gone(&mut self, status: &Status) -> Option<Event> {
        tracing::debug!(%status, "the stream ended");
        self.ending = Some(Ending::Fail(Status::cancelled("the stream ended before the exchange did")));
        None
    }

    async fn refresh(&mut self) -> Event {
        let Some((freshness, since)) = self.exchange.outdated() else {
            return Event::Fault("a listing was asked for that nobody needs");
        };
        // Boxed, as all that is seldom waited for: no stream should be as large as one that does.
        let listing = Box::pin(caught("listing the server", freshness.refresh(since)));
        match unless_stopped(&self.shared, &mut self.changed, listing).await {
            Some(Ok(listed)) => Event::Refreshed(listed.map_err(|fault| fault.to_string())),
            Some(Err(panicked)) => panicked,
            None => self.stopped(),
        }
    }

    /// Asks the gates, and listens to Envoy meanwhile: when the request is over, so is the question. `None` when the
    /// other side is gone.
    async fn ask(&mut self) -> Option<Event> {
        let Some((server, question)) = self.exchange.question() else {
            return Some(Event::Fault("an opinion was asked for that nobody needs"));
        };
        let asking = Box::pin(caught("asking the gates", server.gates.ask(&question)));
        let asking = unless_stopped(&self.shared, &mut self.changed, asking);
        let message = tokio::select! {
            biased;
            message = self.inbound.message() => message,
            asked = asking => return Some(match asked {
                Some(asked) => asked.map_or_else(|panicked| panicked, Event::Opinion),
                None => self.stopped(),
            }),
        };
        self.received(message)
    }

    /// `at`: the time, seconds since the epoch.
    async fn identify(&mut self, at: u64) -> Event {
        let Some((server, presented)) = self.exchange.presented() else {
            return Event::Fault("an identity was asked for that nobody needs");
        };
        if let Some(caller) = server.authenticator.cached(&presented, at) {
            return Event::Identity(Ok(caller));
        }
        let identity = Box::pin(caught("establishing the identity", server.authenticator.authenticate(&presented, at)));
        match unless_stopped(&self.shared, &mut self.changed, identity).await {
            Some(Ok(found)) => Event::Identity(found),
            Some(Err(panicked)) => panicked,
            None => self.stopped(),
        }
    }

    fn stopped(&mut self) -> Event {
        self.told = Phase::Stopped;
        Event::Stop
    }
}

/// The next change of what concerns everybody. Made before what it is about is looked at, so that no change is missed.
struct Change(Pin<Box<OwnedNotified>>);

impl Change {
    fn of(shared: &Shared) -> Self {
        Self(Box::pin(Arc::clone(&shared.changed).notified_owned()))
    }

    /// Waits for it; the next one is another.
    async fn wait(&mut self, shared: &Shared) {
        (&mut self.0).await;
        *self = Self::of(shared);
    }
}

/// Waits until `deadline`, for ever without one. A timer that is due earlier stays as it is until then: setting one anew for each
/// wait costs more than waking up once too often.
async fn due(timer: &mut Option<Pin<Box<Sleep>>>, deadline: Option<Instant>) {
    let Some(deadline) = deadline.map(tokio::time::Instant::from_std) else { return std::future::pending().await };
    let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
    if timer.deadline() > deadline {
        timer.as_mut().reset(deadline);
    }
    timer.as_mut().await;
    if timer.deadline() < deadline {
        timer.as_mut().reset(deadline);
        timer.as_mut().await;
    }
}

/// What `work` gives; `None` when the process ends first: nothing undecided may wait for anything then.
async fn unless_stopped<T>(shared: &Shared, changed: &mut Change, work: impl Future<Output = T>) -> Option<T> {
    let mut work = std::pin::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return Some(done),
            () = changed.wait(shared) => {}
        }
        if shared.reached(Phase::Stopped) {
            return None;
        }
    }
}

/// Work that an exchange asked for; a panic in it becomes the event that refuses.
async fn caught<T>(what: &'static str, work: impl Future<Output = T>) -> Result<T, Event> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|_| {
        tracing::error!("{what} panicked; the request is refused");
        Event::Fault("what the exchange asked for panicked")
    })
}

/// One step that began then; a panic in it becomes a refusal, or, when something went down already, the stream's failure.
fn guarded(exchange: &mut Exchange, event: Event, began: Now) -> Step {
    let step = catch_unwind(AssertUnwindSafe(|| exchange.step(event, began))).unwrap_or_else(|_| {
        tracing::error!("a step of an exchange panicked; the request is refused");
        exchange.step(Event::Fault("a step panicked"), began)
    });
    exchange.stepped(began.instant, Instant::now());
    step
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(record) = self.exchange.abandon(now()) {
            let slot = self.slot.take().unwrap_or_default();
            self.shared.audit.emit(record, SystemTime::now(), slot);
        }
        if self.admitted {
            self.shared.counters.stream_closed();
        }
    }
}
