//! Whether calls can be decided.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::extproc::service::Service;

/// Readiness: on once every issuer's keys were had once, off for good when the process begins to end.
///
/// Policy and record are there since the start, or it would not have started. Keys may go missing later: whether calls can
/// then still be decided is each token's affair, and taking every process away would help nobody.
pub struct Readiness {
    service: Service,
    was_ready: AtomicBool,
    ending: AtomicBool,
}

impl Readiness {
    /// The readiness of a service.
    #[must_use]
    pub fn new(service: Service) -> Self {
        Self { service, was_ready: AtomicBool::new(false), ending: AtomicBool::new(false) }
    }

    /// What calls wait for; nothing when it is ready.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        if self.ending.load(Ordering::Acquire) {
            return vec!["this process is ending".to_owned()];
        }
        if self.was_ready.load(Ordering::Acquire) {
            return Vec::new();
        }
        let snapshot = self.service.snapshot();
        let waits = |keys: Option<Option<u64>>| keys.is_some_and(|fetched_at| fetched_at.is_none());
        let missing: Vec<String> = snapshot
            .servers()
            .iter()
            .filter(|server| waits(server.authenticator.keys_fetched_at()))
            .map(|server| format!("server {}: the issuer's keys, which could not be fetched yet", server.name))
            .collect();
        if missing.is_empty() {
            self.was_ready.store(true, Ordering::Release);
        }
        missing
    }

    /// Not ready from now on.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Release);
    }
}
