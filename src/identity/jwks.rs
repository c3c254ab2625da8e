//! The key sets of issuers: fetched, kept, refreshed ahead of time, and kept longer when the issuer is down.
//!
//! Known failures and the defence against each:
//!
//! - **Rotation** (a token names a key that the cached set has not): one refetch, at most every [`COOLDOWN`], whoever
//!   asks. Callers that arrive meanwhile wait for the same fetch, so a storm of unknown ids is one request.
//! - **Issuer down**: the last good set serves for [`STALE`] past its time, without making callers wait on a dead host.
//!   After that, and when there never was a set, tokens are *unverifiable*, not invalid.
//! - **A caller that goes away** while it leads a fetch: the fetch is a task of its own and finishes for the others.
//! - **Slow steady state**: the last fifth of a set's life refreshes it in the background.
//!
//! Time is the caller's (unix seconds), so that every moment can be tested.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use bytes::Bytes;
use jsonwebtoken::Algorithm;
use url::Url;

use super::{Caller, cache::Cache, discovery, fetch::Fetcher, jwk::KeySet};
use crate::telemetry::counters::Sample;

/// Least time between two fetches that something unknown or a failure asks for, seconds.
const COOLDOWN: u64 = 30;
/// The same while there is no usable set at all: recovery must not take half a minute, seconds.
const COOLDOWN_WITHOUT_KEYS: u64 = 5;
/// How long a set is good when its answer does not say, seconds.
const TTL: u64 = 600;
/// What an answer's `max-age` may make of it, seconds.
const TTL_BOUNDS: (u64, u64) = (30, 24 * 3600);
/// How long past its time the last good set serves while fetching fails, seconds.
const STALE: u64 = 3600;
/// A clock that went back by more than this makes remembered times worthless, seconds.
const CLOCK_STEP: u64 = 60;
/// How long one caller waits for a fetch; the fetch itself may go on.
const WAIT: Duration = Duration::from_secs(5);

/// Where a key set comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// Fetched from this URL.
    Url(Url),
    /// Fetched from the `jwks_uri` of this issuer's metadata.
    Discovery(String),
    /// Read from this file.
    File(PathBuf),
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Url(url) => write!(f, "{url}"),
            Self::Discovery(issuer) => write!(f, "discovery of {issuer}"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A source and the names of the algorithms that are accepted from it.
type StoreKey = (Source, Vec<&'static str>);

/// The key sets of all issuers of a process. Servers that trust the same issuer share one, and so do the
/// configurations before and after a reload. With them the callers that were verified: a reload that changes nothing about
/// a server's identity must not make it verify, or ask the authorization server about, every token at once.
pub struct KeyStores {
    fetcher: Fetcher,
    stores: Mutex<HashMap<StoreKey, Weak<KeyStore>>>,
    verified: Mutex<HashMap<String, Weak<Cache<Caller>>>>,
    counts: Arc<Refreshes>,
}

/// Fetches of key sets, all issuers together, for as long as the process lives.
#[derive(Debug, Default)]
pub struct Refreshes {
    taken: AtomicU64,
    failed: AtomicU64,
}

impl Refreshes {
    /// The fetches by result.
    #[must_use]
    pub fn samples(&self) -> Vec<Sample> {
        let sample = |result: &str, count: &AtomicU64| Sample {
            name: "portcullis.jwks.refreshes",
            labels: vec![("result", result.to_owned())],
            value: count.load(Ordering::Relaxed),
        };
        vec![sample("ok", &self.taken), sample("failed", &self.failed)]
    }
}

/// The key set of one issuer.
pub(super) struct KeyStore {
    source: Source,
    accepted: Box<[Algorithm]>,
    fetcher: Fetcher,
    state: ArcSwap<State>,
    /// Counts changes of the keys; what was verified under another number is not good any more.
    generation: AtomicU64,
    /// Held by the one fetch that runs.
    flight: Arc<tokio::sync::Mutex<()>>,
    counts: Arc<Refreshes>,
}

/// What is known at one moment. Replaced whole, by the holder of the flight only.
#[derive(Clone, Default)]
struct State {
    current: Option<Arc<Current>>,
    /// Fetches that ended, well or not.
    ended: u64,
    /// When the last fetch was started, and whether it failed.
    attempt: Option<Attempt>,
}

#[derive(Clone)]
struct Attempt {
    at: u64,
    fault: Option<Arc<str>>,
}

/// A key set and its times.
pub(super) struct Current {
    pub(super) keys: KeySet,
    pub(super) generation: u64,
    body: Bytes,
    fetched_at: u64,
    ttl: u64,
}

/// There is no usable key set.
#[derive(Debug)]
pub(super) struct NoKeys {
    pub(super) retry_after_seconds: u64,
    pub(super) detail: String,
}

/// What to do about the key set before using it.
enum Plan {
    Use(Arc<Current>),
    /// Use it and refresh it meanwhile.
    UseAndRefresh(Arc<Current>),
    Wait,
    Fail(NoKeys),
}

impl KeyStores {
    /// No key sets yet, and the HTTP client that will fetch them.
    #[must_use]
    pub fn new() -> Self {
        Self { fetcher: Fetcher::new(), stores: Mutex::default(), verified: Mutex::default(), counts: Arc::default() }
    }

    /// How often key sets were fetched.
    #[must_use]
    pub fn counts(&self) -> Arc<Refreshes> {
        Arc::clone(&self.counts)
    }

    pub(super) fn fetcher(&self) -> &Fetcher {
        &self.fetcher
    }

    /// The store for `source`, shared with everybody who uses it with the same algorithms.
    pub(super) fn get(&self, source: Source, accepted: &[Algorithm]) -> Arc<KeyStore> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.retain(|_, store| store.strong_count() > 0);
        let key = (source, accepted.iter().copied().map(super::algorithm::name).collect());
        if let Some(store) = stores.get(&key).and_then(Weak::upgrade) {
            return store;
        }
        let store = Arc::new(KeyStore::new(key.0.clone(), accepted, self.fetcher.clone(), Arc::clone(&self.counts)));
        stores.insert(key, Arc::downgrade(&store));
        store
    }
}

impl KeyStores {
    /// The callers that were verified under `rules`: all that the verification of a token goes by, as text. Whoever takes
    /// one out holds it against [`Caller::judged_by`].
    pub(super) fn verified(&self, rules: String, capacity: usize) -> Arc<Cache<Caller>> {
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        verified.retain(|_, cache| cache.strong_count() > 0);
        if let Some(cache) = verified.get(&rules).and_then(Weak::upgrade) {
            return cache;
        }
        let cache = Arc::new(Cache::new(capacity));
        verified.insert(rules, Arc::downgrade(&cache));
        cache
    }
}

impl Default for KeyStores {
    fn default() -> Self {
        Self::new()
    }
}

impl KeyStore {
    fn new(source: Source, accepted: &[Algorithm], fetcher: Fetcher, counts: Arc<Refreshes>) -> Self {
        Self {
            source,
            accepted: accepted.into(),
            fetcher,
            state: ArcSwap::from_pointee(State::default()),
            generation: AtomicU64::new(0),
            flight: Arc::default(),
            counts,
        }
    }

    /// The number of the present key set.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// When the present key set was fetched, unix seconds; `None` when there is none.
    pub(super) fn fetched_at(&self) -> Option<u64> {
        self.state.load().current.as_ref().map(|current| current.fetched_at)
    }

    /// The key set to verify with at `now`; when `wanted` does not find its key there, a newer one if one may be
    /// fetched now. The set that comes back need not satisfy `wanted`.
    ///
    /// # Errors
    /// [`NoKeys`]: there is none, or only one that is too old.
    pub(super) async fn keys(
        self: &Arc<Self>,
        wanted: impl Fn(&KeySet) -> bool,
        now: u64,
    ) -> Result<Arc<Current>, NoKeys> {
        let state = self.state.load_full();
        match plan(&state, wanted, now) {
            Plan::Use(current) => Ok(current),
            Plan::Fail(fault) => Err(fault),
            Plan::UseAndRefresh(current) => {
                if let Ok(flight) = Arc::clone(&self.flight).try_lock_owned()
                    && self.state.load().ended == state.ended
                {
                    drop(self.start(flight, now));
                }
                Ok(current)
            }
            Plan::Wait => {
                // Given up or not: what counts is what is there now.
                let _ = tokio::time::timeout(WAIT, self.fetch_once(state.ended, now)).await;
                let state = self.state.load_full();
                usable(&state, now).cloned().ok_or_else(|| no_keys(&state, now))
            }
        }
    }

    /// Waits until a fetch has ended that had not when the caller looked (`seen`); starts it if nobody else did.
    async fn fetch_once(self: &Arc<Self>, seen: u64, now: u64) {
        let flight = Arc::clone(&self.flight).lock_owned().await;
        if self.state.load().ended == seen {
            // A task of its own: it must end for the others, also when this caller goes away.
            let _ = self.start(flight, now).await;
        }
    }

    fn start(self: &Arc<Self>, flight: tokio::sync::OwnedMutexGuard<()>, now: u64) -> tokio::task::JoinHandle<()> {
        let store = Arc::clone(self);
        tokio::spawn(async move {
            let fetched = store.fetch().await;
            store.take(fetched, now);
            drop(flight);
        })
    }

    async fn fetch(&self) -> Result<(Bytes, u64), String> {
        let url = match &self.source {
            Source::Url(url) => url.clone(),
            Source::Discovery(issuer) => discovery::jwks_uri(&self.fetcher, issuer).await?,
            Source::File(path) => {
                let body =
                    tokio::fs::read(path).await.map_err(|error| format!("cannot read {}: {error}", path.display()))?;
                return Ok((body.into(), TTL_BOUNDS.0));
            }
        };
        let answer = self.fetcher.get(&url).await.map_err(|fault| format!("{url}: {fault}"))?;
        let ttl = answer.max_age.map_or(TTL, |age| age.clamp(TTL_BOUNDS.0, TTL_BOUNDS.1));
        Ok((answer.body, ttl))
    }

    /// Takes the outcome of a fetch that was started at `now`. Runs under the flight.
    fn take(&self, fetched: Result<(Bytes, u64), String>, now: u64) {
        let mut state = State::clone(&self.state.load());
        state.ended = state.ended.wrapping_add(1);
        let read = fetched.and_then(|(body, ttl)| {
            let (keys, left_out) = KeySet::read(&body, &self.accepted)?;
            Ok((keys, left_out, body, ttl))
        });
        let fault = match read {
            Ok((keys, left_out, body, ttl)) => {
                self.counts.taken.fetch_add(1, Ordering::Relaxed);
                let before = state.current.as_ref();
                let same = before.is_some_and(|before| before.body == body);
                let generation = self.generation().wrapping_add(u64::from(!same));
                if !same {
                    tracing::info!(source = %self.source, keys_left_out = ?left_out, "key set taken");
                }
                state.current = Some(Arc::new(Current { keys, generation, body, fetched_at: now, ttl }));
                self.generation.store(generation, Ordering::Release);
                None
            }
            Err(fault) => {
                self.counts.failed.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(source = %self.source, %fault, "key set cannot be had");
                Some(fault.into())
            }
        };
        state.attempt = Some(Attempt { at: now, fault });
        self.state.store(Arc::new(state));
    }
}

fn plan(state: &State, wanted: impl Fn(&KeySet) -> bool, now: u64) -> Plan {
    let rested = |cooldown| {
        state.attempt.as_ref().is_none_or(|attempt| elapsed(attempt.at, now).is_none_or(|since| since >= cooldown))
    };
    let Some(current) = usable(state, now) else {
        return if rested(COOLDOWN_WITHOUT_KEYS) { Plan::Wait } else { Plan::Fail(no_keys(state, now)) };
    };
    let known = wanted(&current.keys);
    let failing = state.attempt.as_ref().is_some_and(|attempt| attempt.fault.is_some());
    let may_refresh = !failing || rested(COOLDOWN);
    let current = Arc::clone(current);
    match current.age(now) {
        _ if !known && rested(COOLDOWN) => Plan::Wait,
        _ if !known => Plan::Use(current),
        Age::NearlyOver if may_refresh => Plan::UseAndRefresh(current),
        // Nobody waits for an issuer that was down a moment ago, as long as there is a key.
        Age::Stale if failing && may_refresh => Plan::UseAndRefresh(current),
        Age::Stale if !failing => Plan::Wait,
        Age::Fresh | Age::NearlyOver | Age::Stale => Plan::Use(current),
    }
}

/// The key set, unless it is past even its second life.
fn usable(state: &State, now: u64) -> Option<&Arc<Current>> {
    state.current.as_ref().filter(|current| now < current.fetched_at.saturating_add(current.ttl).saturating_add(STALE))
}

fn no_keys(state: &State, now: u64) -> NoKeys {
    let attempt = state.attempt.as_ref();
    let since = attempt.and_then(|attempt| elapsed(attempt.at, now)).unwrap_or(0);
    let fault = attempt.and_then(|attempt| attempt.fault.as_deref()).unwrap_or("the key set is not here yet");
    NoKeys { retry_after_seconds: COOLDOWN_WITHOUT_KEYS.saturating_sub(since).max(1), detail: fault.into() }
}

/// Seconds since `then`; `None` when the clock was set back, so that nothing waits for a time that will not come.
fn elapsed(then: u64, now: u64) -> Option<u64> {
    (then <= now.saturating_add(CLOCK_STEP)).then(|| now.saturating_sub(then))
}

enum Age {
    Fresh,
    NearlyOver,
    Stale,
}

impl Current {
    fn age(&self, now: u64) -> Age {
        match elapsed(self.fetched_at, now) {
            Some(age) if age < self.ttl.saturating_sub(self.ttl / 5) => Age::Fresh,
            Some(age) if age < self.ttl => Age::NearlyOver,
            _ => Age::Stale,
        }
    }
}

#[cfg(test)]
mod tests;
