//! A bound on the bytes of all answers that are held at one time.
//!
//! Each answer has a cap of its own; this is what keeps a thousand of them from being a thousand caps of memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[cfg(test)]
mod tests;

/// The bytes that answers may take together while they are held back to be judged.
#[derive(Debug)]
pub struct HeldAnswers {
    most: AtomicUsize,
    held: AtomicUsize,
}

/// One exchange's part of it, given back when dropped.
#[derive(Debug)]
pub struct Share {
    of: Arc<HeldAnswers>,
    bytes: usize,
}

/// The answers that are held already take what there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected at most {most} bytes of answers held at one time")]
pub struct Exhausted {
    /// The bound.
    pub most: usize,
}

impl HeldAnswers {
    /// A bound of so many bytes.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most: AtomicUsize::new(most), held: AtomicUsize::new(0) }
    }

    /// The bound.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Sets another bound; what is held stays, also when it is more.
    pub fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Bytes that are held now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

impl Share {
    /// Nothing held yet.
    #[must_use]
    pub fn new(of: &Arc<HeldAnswers>) -> Self {
        Self { of: Arc::clone(of), bytes: 0 }
    }

    /// Holds `bytes` from now on instead of what was held before. Giving back never fails.
    ///
    /// # Errors
    /// [`Exhausted`]; then what was held before still is.
    pub fn set(&mut self, bytes: usize) -> Result<(), Exhausted> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => {
                let most = self.of.most();
                let taken = self.of.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
                    held.checked_add(more).filter(|held| more == 0 || *held <= most)
                });
                taken.map_err(|_| Exhausted { most })?;
            }
            None => {
                self.of.held.fetch_sub(self.bytes.saturating_sub(bytes), Ordering::Relaxed);
            }
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}
