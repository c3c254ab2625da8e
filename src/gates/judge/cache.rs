//! Verdicts that are still good: a short memory, bounded in number, by a digest of everything the verdict hangs on.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use sha2::{Digest as _, Sha256};

use super::verdict::Judged;

/// Verdicts that are remembered.
const CAPACITY: usize = 10_000;

/// Remembered verdicts.
pub(super) struct Cache {
    good_for: Duration,
    known: Mutex<HashMap<Key, (Instant, Judged)>>,
}

/// Digest of principal, intent, capability and arguments.
pub(super) type Key = [u8; 32];

/// The key of a verdict; each part with its length, so that no two lists of parts read alike.
pub(super) fn key(parts: &[&str]) -> Key {
    let mut digest = Sha256::new();
    for part in parts {
        digest.update((part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

impl Cache {
    pub(super) fn new(good_for: Duration) -> Self {
        Self { good_for, known: Mutex::new(HashMap::new()) }
    }

    pub(super) fn get(&self, key: &Key, now: Instant) -> Option<Judged> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(key).filter(|(until, _)| *until > now).map(|(_, judged)| judged.clone())
    }

    pub(super) fn put(&self, key: Key, judged: Judged, now: Instant) {
        let Some(until) = now.checked_add(self.good_for) else { return };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CAPACITY {
            known.retain(|_, (until, _)| *until > now);
        }
        // Full of verdicts that are all still good: forgetting them all costs questions, never a wrong answer.
        if known.len() >= CAPACITY {
            known.clear();
        }
        known.insert(key, (until, judged));
    }
}
