//! Callers whose token was verified before: verification costs 50 to 150 µs, a look here about one.
//!
//! The key is the SHA-256 of everything that was presented, so the token itself is never kept and no part of it can
//! vary unnoticed. Only successes are kept, each until it dies of age or its key set changes. The bound holds by two
//! halves: new entries go to the young one; when that is full it becomes the old one, and the old one is dropped
//! whole. An entry that is used moves back to the young half, so steady callers stay. No insert ever scans.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sha2::{Digest as _, Sha256};

/// What stands for a token: its SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Digest([u8; 32]);

impl Digest {
    pub(super) fn of(presented: &str) -> Self {
        Self(Sha256::digest(presented.as_bytes()).into())
    }
}

/// A bounded map from token to what its verification gave.
pub(super) struct Cache<V> {
    half: usize,
    state: Mutex<State<V>>,
}

struct State<V> {
    /// The key set under which every entry was verified.
    generation: u64,
    young: HashMap<Digest, Entry<V>>,
    old: HashMap<Digest, Entry<V>>,
}

struct Entry<V> {
    value: Arc<V>,
    dies_at: u64,
}

impl<V> Cache<V> {
    /// A cache of at most `capacity` entries.
    pub(super) fn new(capacity: usize) -> Self {
        let state = State { generation: 0, young: HashMap::new(), old: HashMap::new() };
        Self { half: (capacity / 2).max(1), state: Mutex::new(state) }
    }

    /// The value under `key`, unless it is dead at `now` (unix seconds) or from another key set than `generation`.
    pub(super) fn get(&self, key: &Digest, now: u64, generation: u64) -> Option<Arc<V>> {
        let mut state = self.lock();
        if state.generation != generation {
            return None;
        }
        if let Some(entry) = state.young.get(key) {
            return (now < entry.dies_at).then(|| Arc::clone(&entry.value));
        }
        let entry = state.old.remove(key).filter(|entry| now < entry.dies_at)?;
        let value = Arc::clone(&entry.value);
        let dropped = state.put(*key, entry, self.half);
        drop(state);
        drop(dropped);
        Some(value)
    }

    /// Puts `value` in the place of another one under `key`, if there is one; how long it is kept stays.
    pub(super) fn replace(&self, key: &Digest, value: Arc<V>) {
        let mut state = self.lock();
        let State { young, old, .. } = &mut *state;
        if let Some(entry) = young.get_mut(key).or_else(|| old.get_mut(key)) {
            let before = std::mem::replace(&mut entry.value, value);
            drop(state);
            drop(before);
        }
    }

    /// Keeps `value` until `dies_at` (unix seconds), as verified under the key set `generation`.
    ///
    /// A newer generation than the cache's drops everything else; a verification that finished after the keys changed
    /// is not kept.
    pub(super) fn insert(&self, key: Digest, value: Arc<V>, dies_at: u64, generation: u64) {
        let mut state = self.lock();
        if generation < state.generation {
            return;
        }
        let outdated = (generation > state.generation).then(|| {
            state.generation = generation;
            (std::mem::take(&mut state.young), std::mem::take(&mut state.old))
        });
        let dropped = state.put(key, Entry { value, dies_at }, self.half);
        // Thousands of values may be freed here: not while others wait.
        drop(state);
        drop((outdated, dropped));
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        let state = self.lock();
        state.young.len() + state.old.len()
    }

    /// A panic while the lock was held cannot leave the maps half-changed in a way that matters: entries are whole.
    fn lock(&self) -> MutexGuard<'_, State<V>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<V> State<V> {
    fn put(&mut self, key: Digest, entry: Entry<V>, half: usize) -> Option<HashMap<Digest, Entry<V>>> {
        let full = self.young.len() >= half && !self.young.contains_key(&key);
        let dropped = full.then(|| std::mem::replace(&mut self.old, std::mem::take(&mut self.young)));
        self.young.insert(key, entry);
        dropped
    }
}

#[cfg(test)]
mod tests;
