//! One gRPC stream is one HTTP exchange: drives it, performs what it asks for, and never ends a stream with OK early.
//!
//! Envoy lets a request pass when the stream ends with OK before its answer, so every exit that is not
//! [`Next::Finish`] is an error status, and a panic in a step becomes a refusal.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use futures_util::stream::unfold;
use futures_util::{FutureExt as _, Stream};
use tonic::{Request, Response, Status, Streaming};

use crate::exchange::{Event, Exchange, Next, Now, Step};
use crate::ladder::Snapshot;
use crate::telemetry::audit::{Audit, Slot};
use crate::telemetry::counters::Counters;

use super::wire::external_processor_server::ExternalProcessor;
use super::wire::{ProcessingRequest, ProcessingResponse};
use super::{reply, request};

#[cfg(test)]
mod tests;

/// The gRPC service.
#[derive(Clone)]
pub struct Service {
    shared: Arc<Shared>,
}

struct Shared {
    snapshot: ArcSwap<Snapshot>,
    audit: Audit,
    counters: Arc<Counters>,
    /// Streams that may be open at once.
    most: usize,
    /// Decision ids: random per process, then counted.
    id_prefix: String,
    id_next: AtomicU64,
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
        let snapshot = ArcSwap::new(snapshot);
        Ok(Self { shared: Arc::new(Shared { snapshot, audit, counters, most, id_prefix, id_next }) })
    }
}

impl Shared {
    fn decision_id(&self) -> String {
        format!("{}{:08x}", self.id_prefix, self.id_next.fetch_add(1, Ordering::Relaxed))
    }
}

#[tonic::async_trait]
impl ExternalProcessor for Service {
    type ProcessStream = Pin<Box<dyn Stream<Item = Result<ProcessingResponse, Status>> + Send>>;

    async fn process(
        &self,
        request: Request<Streaming<ProcessingRequest>>,
    ) -> Result<Response<Self::ProcessStream>, Status> {
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
    inbound: Streaming<ProcessingRequest>,
    exchange: Exchange,
    queue: VecDeque<ProcessingResponse>,
    ending: Option<Ending>,
    /// Whether the gates are to be asked as soon as what is in the queue was sent.
    to_ask: bool,
    /// Whether this stream is one of those that are counted as open.
    admitted: bool,
    /// Room for its audit event, until that is handed over; without room a stream is not admitted.
    slot: Option<Slot>,
}

fn now() -> Now {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Now { instant: Instant::now(), unix }
}

impl Session {
    fn new(shared: Arc<Shared>, inbound: Streaming<ProcessingRequest>) -> Self {
        let slot = shared.audit.admit();
        let admitted = if slot.is_some() {
            shared.counters.stream_opened(shared.most)
        } else {
            shared.counters.stream_refused();
            false
        };
        let exchange = Exchange::new(shared.snapshot.load_full(), shared.decision_id(), now());
        let exchange = exchange.with_trails(shared.audit.trails());
        Self { shared, inbound, exchange, queue: VecDeque::new(), ending: None, to_ask: false, admitted, slot }
    }

    /// The next message for Envoy, or the end.
    /// Boxed, because it is handed to and fro for every message.
    async fn next(mut self: Box<Self>) -> Option<(Result<ProcessingResponse, Status>, Box<Self>)> {
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
        loop {
            let Step { replies, next } = self.step(event);
            self.queue.extend(replies.into_iter().map(reply::message));
            if let Some(record) = self.exchange.take_record() {
                let slot = self.slot.take().unwrap_or_default();
                self.shared.audit.emit(record, SystemTime::now(), slot);
            }
            match next {
                Next::Wait => return,
                Next::Identify => event = self.identify().await,
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
        }
    }

    /// What comes next: Envoy's message or a deadline. `None` when the other side is gone, and the ending is set.
    async fn receive(&mut self) -> Option<Event> {
        let message = match self.exchange.deadline() {
            None => self.inbound.message().await,
            Some(deadline) => tokio::select! {
                biased;
                message = self.inbound.message() => message,
                () = tokio::time::sleep_until(deadline.into()) => return Some(Event::Deadline),
            },
        };
        self.received(message)
    }

    fn received(&mut self, message: Result<Option<ProcessingRequest>, Status>) -> Option<Event> {
        match message {
            Ok(Some(_)) if !self.admitted => Some(Event::Overloaded),
            Ok(Some(message)) => Some(request::event(message)),
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

    fn step(&mut self, event: Event) -> Step {
        guarded(&mut self.exchange, event)
    }

    async fn refresh(&mut self) -> Event {
        let Some((freshness, since)) = self.exchange.outdated() else {
            return Event::Fault("a listing was asked for that nobody needs");
        };
        match caught("listing the server", freshness.refresh(since)).await {
            Ok(listed) => Event::Refreshed(listed.map_err(|fault| fault.to_string())),
            Err(panicked) => panicked,
        }
    }

    /// Asks the gates, and listens to Envoy meanwhile: when the request is over, so is the question. `None` when the
    /// other side is gone.
    async fn ask(&mut self) -> Option<Event> {
        let Some((server, question)) = self.exchange.question() else {
            return Some(Event::Fault("an opinion was asked for that nobody needs"));
        };
        // Boxed: most streams never ask, and none of them should be as large as one that does.
        let asking = Box::pin(caught("asking the gates", server.gates.ask(&question)));
        let message = tokio::select! {
            biased;
            message = self.inbound.message() => message,
            asked = asking => return Some(asked.map_or_else(|panicked| panicked, Event::Opinion)),
        };
        self.received(message)
    }

    async fn identify(&mut self) -> Event {
        let Some((server, presented)) = self.exchange.presented() else {
            return Event::Fault("an identity was asked for that nobody needs");
        };
        let at = now().unix;
        let identity = async {
            match server.authenticator.cached(&presented, at) {
                Some(caller) => Ok(caller),
                None => server.authenticator.authenticate(&presented, at).await,
            }
        };
        match caught("establishing the identity", identity).await {
            Ok(found) => Event::Identity(found),
            Err(panicked) => panicked,
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

/// One step; a panic in it becomes a refusal, or, when something went down already, the stream's failure.
fn guarded(exchange: &mut Exchange, event: Event) -> Step {
    let began = now();
    let step = catch_unwind(AssertUnwindSafe(|| exchange.step(event, began))).unwrap_or_else(|_| {
        tracing::error!("a step of an exchange panicked; the request is refused");
        exchange.step(Event::Fault("a step panicked"), now())
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
