//! The last refusals, for the admin page: a bounded ring that the audit's writer fills, so that no call waits for it.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::record::{Outcome, Record};
use crate::refusal::Rung;

/// Refusals that are kept.
pub const KEPT: usize = 100;
/// Most bytes that are kept of one text: capability, principal and detail may be the caller's words.
const TEXT: usize = 512;

/// A refusal as a person sees it. Texts are cut after 512 bytes; empty where there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The decision's id.
    pub id: String,
    /// When it was made.
    pub at: SystemTime,
    /// The reason's code, or the gate's own.
    pub reason: String,
    /// The rung that refused.
    pub rung: &'static str,
    /// Whether it was carried out; else it was only recorded, and the call went on.
    pub enforced: bool,
    /// The server.
    pub server: String,
    /// The method as the caller wrote it.
    pub method: String,
    /// What was called.
    pub capability: String,
    /// Who called.
    pub principal: String,
    /// What only the operator may know.
    pub detail: String,
}

/// The last [`KEPT`] refusals.
#[derive(Debug, Default)]
pub struct Recent(Mutex<VecDeque<Refusal>>);

impl Recent {
    /// Keeps the decision, if it was a refusal or would have been one.
    pub fn note(&self, record: &Record, at: SystemTime) {
        if record.reason.is_none() || record.outcome == Outcome::Aborted {
            return;
        }
        let refusal = Refusal {
            id: record.id.clone(),
            at,
            reason: cut(record.reason_text()),
            rung: record.rung.map(Rung::as_str).unwrap_or_default(),
            enforced: record.enforced && record.outcome == Outcome::Refused,
            server: record.server.as_ref().map(|(name, _)| name.to_string()).unwrap_or_default(),
            method: cut(&record.method),
            capability: cut(&record.capability),
            principal: cut(&record.principal),
            detail: cut(record.log.as_deref().unwrap_or_default()),
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.truncate(KEPT.saturating_sub(1));
        kept.push_front(refusal);
    }

    /// All of them, the last one first.
    #[must_use]
    pub fn all(&self) -> Vec<Refusal> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

fn cut(text: &str) -> String {
    if text.len() <= TEXT {
        return text.to_owned();
    }
    let kept = text.get(..text.floor_char_boundary(TEXT)).unwrap_or_default();
    format!("{kept}…")
}
