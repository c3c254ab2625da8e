//! Definitions that are fresh enough to decide by (ladder.md, rung 15): the book of a server and what lists it again.
//!
//! ```text
//! verdict(&label, now) -> Verdict::{Fresh | Changed(fields) | Gone | Stale}     never waits; no I/O
//! refresh(now).await   -> Result<(), Arc<ListingFault>>                         then ask verdict again; still Stale or Err: unverified
//! observe(&label, entry, now) -> Sighting::{Matches | Changed | Unrecorded}     each entry of a listing that passes
//! mark_stale(kind)                                                              list_changed passed through
//! keep() -> Future                                                              spawn once: refreshes ahead of expiry
//! ```
//!
//! What a caller can make us do is bounded, whatever they call and how often:
//!
//! - **One listing at a time.** Everyone who needs one waits for the same one; it is a task of its own, so it ends for the
//!   others when the caller who began it goes away.
//! - **Answers are remembered, bad ones too**: a match for the interval, a change for the interval, a vanished capability
//!   and a failed listing for [`NEGATIVE`]. A thousand callers of a tool that is gone list the server once in that time.
//! - **[`SPACING`]** lies between any two listings, also when the server cries `list_changed` all the time.
//! - **A steady caller never waits**: from three quarters of the interval on, traffic makes the server be listed ahead.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tokio::sync::OwnedMutexGuard;

use super::book::{Book, Drift, Event, Marks, NEGATIVE, Sighting, Verdict, What};
use super::client::{Client, ListingFault};
use crate::message::json::Value;
use crate::policy::{Kind, Label};
use crate::record::{Listing, Record};
use crate::telemetry::counters::Sample;

/// Least time from the end of one listing to the beginning of the next.
pub const SPACING: Duration = Duration::from_secs(1);
/// A listing as a whole may take this many times what one page may.
const WALK: u32 = 10;
/// How often, in an interval, the background looks whether it has something to do.
const LOOKS: u32 = 16;

/// What lists the recorded kinds of a server.
type Source = Box<dyn Fn(Vec<Kind>) -> BoxFuture<'static, Result<Listing, ListingFault>> + Send + Sync>;

/// The freshness of one server's definitions. Shared by all its exchanges.
pub struct Freshness {
    server: Arc<str>,
    book: Book,
    kinds: Vec<Kind>,
    source: Source,
    /// The client behind `source`, whose credential's file is to be followed.
    client: Option<Client>,
    /// How long one caller waits for a listing; the listing may go on for the others.
    patience: Duration,
    /// Held by the one listing that runs.
    flight: Arc<tokio::sync::Mutex<()>>,
    last: Mutex<Option<Outcome>>,
    /// Whether anyone asked for a verdict since the background last listed.
    asked: AtomicBool,
    /// What took its place at a reload.
    next: OnceLock<Weak<Freshness>>,
    listed: AtomicU64,
    failed: AtomicU64,
}

/// How the last listing ended.
#[derive(Clone)]
struct Outcome {
    began: Instant,
    ended: Instant,
    /// The marks that it has taken into account.
    marks: Marks,
    fault: Option<Arc<ListingFault>>,
}

impl Freshness {
    /// The freshness of what `record` holds, by listings of `client`. A match is good for `interval`.
    #[must_use]
    pub fn new(server: Arc<str>, record: &Record, interval: Duration, client: Client) -> Arc<Self> {
        Self::after(None, server, record, interval, client)
    }

    /// As [`Freshness::new`], going on from what `before` knows: a freshness of the same server, listed the same way, of a
    /// record of which some definitions were others. Those begin unknown, and so does what `before` learns later.
    #[must_use]
    pub fn after(
        before: Option<&Self>,
        server: Arc<str>,
        record: &Record,
        interval: Duration,
        client: Client,
    ) -> Arc<Self> {
        let patience = client.timeout();
        let lister = client.clone();
        let source: Source = Box::new(move |kinds| {
            let client = lister.clone();
            let whole = client.timeout().saturating_mul(WALK);
            Box::pin(async move {
                let listing = client.list(&kinds, &|_| {});
                tokio::time::timeout(whole, listing).await.map_err(|_| ListingFault::Slow(whole))?
            })
        });
        let mut book = Book::new(record, interval);
        if let Some(before) = before {
            book.take_over(&before.book);
        }
        Self::from_source(server, book, source, Some(client), patience, before)
    }

    /// Takes the place of `before`, to be called before any call is decided by this one. What the server said between the
    /// loading of a configuration and now counts, and so does what it says on a stream that has not gone on to this one yet.
    pub fn succeed(self: &Arc<Self>, before: &Self) {
        // Only once, and first: what is said from here on comes here by itself.
        let _ = before.next.set(Arc::downgrade(self));
        self.book.catch_up(&before.book);
    }

    /// Whether this is the freshness of exactly this record.
    #[must_use]
    pub fn is_about(&self, record: &Record, interval: Duration) -> bool {
        self.book.is_about(record) && self.book.interval() == interval
    }

    fn from_source(
        server: Arc<str>,
        book: Book,
        source: Source,
        client: Option<Client>,
        patience: Duration,
        before: Option<&Self>,
    ) -> Arc<Self> {
        // The same flight and the same last listing: reloads in a row do not list a server in a row.
        let last = before.and_then(|before| before.last.lock().unwrap_or_else(PoisonError::into_inner).clone());
        Arc::new(Self {
            server,
            kinds: book.kinds(),
            book,
            source,
            client,
            patience,
            flight: before.map(|before| Arc::clone(&before.flight)).unwrap_or_default(),
            last: Mutex::new(last),
            asked: AtomicBool::new(false),
            next: OnceLock::new(),
            listed: AtomicU64::new(before.map_or(0, |before| before.listed.load(Ordering::Relaxed))),
            failed: AtomicU64::new(before.map_or(0, |before| before.failed.load(Ordering::Relaxed))),
        })
    }

    /// What is known about a recorded capability. Never waits.
    #[must_use]
    pub fn verdict(&self, label: &Label, now: Instant) -> Verdict {
        // Looked at before it is written, so that callers on several cores share the line.
        if !self.asked.load(Ordering::Relaxed) {
            self.asked.store(true, Ordering::Relaxed);
        }
        self.book.verdict(label, now)
    }

    /// Judges an entry of a listing that passes and takes note. Its entries need not be whole or in order.
    pub fn observe(&self, kind: Kind, name: &str, entry: Value<'_>, now: Instant) -> Sighting {
        self.observe_since(Some(&self.marks()), kind, name, entry, now)
    }

    /// The same of a listing that was asked for when the marks were `since`: it confirms nothing that was marked since then.
    pub fn observe_since(
        &self,
        since: Option<&Marks>,
        kind: Kind,
        name: &str,
        entry: Value<'_>,
        now: Instant,
    ) -> Sighting {
        let (sighting, event) = self.book.observe(kind, name, entry, now, since);
        self.log(event);
        sighting
    }

    /// How often each kind was marked stale so far: to be kept with a listing that is asked for.
    #[must_use]
    pub fn marks(&self) -> Marks {
        self.book.marks()
    }

    /// A `list_changed` of this kind passed: the next call lists first.
    pub fn mark_stale(&self, kind: Kind) {
        self.book.mark_stale(kind);
        if let Some(next) = self.next.get().and_then(Weak::upgrade) {
            next.mark_stale(kind);
        }
    }

    /// Lists the server unless that was done since `now`, when the caller found [`Verdict::Stale`]. Everyone waits for the
    /// same listing, at most as long as one page may take.
    ///
    /// # Errors
    /// [`ListingFault`]: what the last listing failed with, or that it is not there yet. A failure is remembered for
    /// [`NEGATIVE`] and answers until then.
    pub async fn refresh(self: &Arc<Self>, now: Instant) -> Result<(), Arc<ListingFault>> {
        if let Some(outcome) = self.answered(now) {
            return outcome;
        }
        let waiting = async {
            let flight = Arc::clone(&self.flight).lock_owned().await;
            match self.answered(now) {
                Some(outcome) => outcome,
                // A task of its own: it must end for the others, also when this caller goes away.
                None => self.start(flight).await.unwrap_or_else(|_| Err(Arc::new(ListingFault::Interrupted))),
            }
        };
        let late = |_| Err(Arc::new(ListingFault::Slow(self.patience)));
        tokio::time::timeout(self.patience, waiting).await.unwrap_or_else(late)
    }

    /// What the last listing says to a caller who looked at `now`; `None` when it cannot speak for that time.
    fn answered(&self, now: Instant) -> Option<Result<(), Arc<ListingFault>>> {
        let outcome = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        match outcome.fault {
            Some(fault) => (now.saturating_duration_since(outcome.ended) < NEGATIVE).then_some(Err(fault)),
            None => (outcome.ended >= now && outcome.marks == self.book.marks()).then_some(Ok(())),
        }
    }

    fn start(self: &Arc<Self>, flight: OwnedMutexGuard<()>) -> tokio::task::JoinHandle<Result<(), Arc<ListingFault>>> {
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let ended = this.last.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|last| last.ended);
            if let Some(rest) = ended.and_then(|ended| (ended + SPACING).checked_duration_since(clock())) {
                tokio::time::sleep(rest).await;
            }
            let outcome = this.list().await;
            let result = outcome.fault.clone().map_or(Ok(()), Err);
            *this.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
            drop(flight);
            result
        })
    }

    /// Lists once; a second time when a kind was marked stale meanwhile.
    async fn list(&self) -> Outcome {
        let mut outcome = self.list_once().await;
        if outcome.fault.is_none() && outcome.marks != self.book.marks() {
            outcome = self.list_once().await;
        }
        outcome
    }

    async fn list_once(&self) -> Outcome {
        let (began, marks) = (clock(), self.book.marks());
        let listing = (self.source)(self.kinds.clone()).await;
        self.listed.fetch_add(1, Ordering::Relaxed);
        let ended = clock();
        let fault = match listing {
            Ok(listing) => {
                self.log(self.book.settle(&listing, began..ended, marks));
                None
            }
            Err(fault) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(server = %self.server, %fault, "the server's definitions cannot be listed");
                Some(Arc::new(fault))
            }
        };
        Outcome { began, ended, marks, fault }
    }

    fn log(&self, events: impl IntoIterator<Item = Event>) {
        for Event { label, what } in events {
            let server = &self.server;
            match what {
                What::Changed(fields) => {
                    tracing::warn!(%server, capability = %label, ?fields, "the definition changed since it was recorded");
                }
                What::Gone => tracing::warn!(%server, capability = %label, "the server offers it no longer"),
                What::Again => tracing::info!(%server, capability = %label, "the definition matches its record again"),
            }
        }
    }

    /// The future that lists ahead of expiry while there is traffic. Ends by itself once nobody holds the freshness, so a
    /// reload leaves nothing behind.
    pub fn keep(self: &Arc<Self>) -> impl Future<Output = ()> + Send + 'static {
        let look = (self.book.interval() / LOOKS).max(Duration::from_millis(10));
        let this = Arc::downgrade(self);
        async move {
            loop {
                tokio::time::sleep(look).await;
                let Some(this) = Weak::upgrade(&this) else { return };
                this.ahead().await;
            }
        }
    }

    /// Lists when the last listing is three quarters of its time old and someone called since.
    async fn ahead(self: &Arc<Self>) {
        let now = clock();
        let began = self.last.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|last| last.began);
        // Before the first call nothing is known about the server, and nothing is asked of it.
        let Some(began) = began else { return };
        let age = now.saturating_duration_since(began);
        if age >= self.book.interval() / 4 * 3 && self.asked.swap(false, Ordering::Relaxed) {
            // A failure was logged and is remembered; the next look tries again.
            let _ = self.refresh(now).await;
        }
    }

    /// The future that follows the file of the listing credential; `None` when it cannot change.
    #[must_use]
    pub fn watch(&self) -> Option<impl Future<Output = ()> + Send + 'static> {
        self.client.as_ref().and_then(Client::watch)
    }

    /// How long ago the last listing ended, and whether it was had; `None` before the first.
    #[must_use]
    pub fn last_listing(&self) -> Option<(Duration, bool)> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        last.as_ref().map(|last| (clock().saturating_duration_since(last.ended), last.fault.is_none()))
    }

    /// The recorded capabilities that do not match now, as far as is known, sorted.
    #[must_use]
    pub fn drift(&self) -> Vec<String> {
        self.book.drift()
    }

    /// As [`Freshness::drift`], with what was recorded and what was offered.
    #[must_use]
    pub fn drifts(&self) -> Vec<Drift> {
        self.book.drifts()
    }

    /// Listings by result, and the capabilities that do not match at the moment.
    #[must_use]
    pub fn samples(&self) -> Vec<Sample> {
        let server = || ("server", self.server.to_string());
        let (listed, failed) = (self.listed.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed));
        let listings = |result: &str, value| Sample {
            name: "portcullis.definition.listings",
            labels: vec![server(), ("result", result.to_owned())],
            value,
        };
        let drifted = u64::try_from(self.book.drifted()).unwrap_or(u64::MAX);
        vec![
            listings("ok", listed.saturating_sub(failed)),
            listings("failed", failed),
            Sample { name: "portcullis.definition.drifted", labels: vec![server()], value: drifted },
        ]
    }
}

/// Tokio's clock, which tests can hold.
fn clock() -> Instant {
    tokio::time::Instant::now().into_std()
}
