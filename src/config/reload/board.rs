//! How the configuration stands, for whoever asks: what is in force since when, and what was wrong with the last try.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use arc_swap::ArcSwap;

use crate::telemetry::counters::Sample;

/// The board of one process. One place writes, everybody reads.
pub struct Board {
    standing: ArcSwap<Standing>,
    loaded: AtomicU64,
    refused: AtomicU64,
}

/// What is in force, and what is not.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Counts what was in force, from 1.
    pub generation: u64,
    /// The digest of the files that were loaded.
    pub digest: String,
    /// Since when it is in force.
    pub loaded_at: SystemTime,
    /// Why the last try changed nothing; `None` when the last try is what is in force.
    pub fault: Option<Fault>,
    /// What was changed in the files and needs a restart to be in force.
    pub needs_restart: Vec<String>,
}

/// A try that changed nothing.
#[derive(Clone, Debug)]
pub struct Fault {
    /// When.
    pub at: SystemTime,
    /// Everything that is wrong, each with file, line and column where there is one.
    pub faults: Vec<String>,
}

impl Board {
    /// The board of a process whose first configuration was made of files of this digest.
    #[must_use]
    pub fn new(digest: String) -> Self {
        let standing =
            Standing { generation: 1, digest, loaded_at: SystemTime::now(), fault: None, needs_restart: Vec::new() };
        Self { standing: ArcSwap::from_pointee(standing), loaded: AtomicU64::new(0), refused: AtomicU64::new(0) }
    }

    /// How it stands now.
    #[must_use]
    pub fn standing(&self) -> Arc<Standing> {
        self.standing.load_full()
    }

    /// A reload is in force.
    pub fn loaded(&self, generation: u64, digest: String, needs_restart: Vec<String>) {
        let standing = Standing { generation, digest, loaded_at: SystemTime::now(), fault: None, needs_restart };
        self.standing.store(Arc::new(standing));
        self.loaded.fetch_add(1, Ordering::Relaxed);
    }

    /// A reload changed nothing, because of these faults.
    pub fn refused(&self, faults: Vec<String>) {
        let fault = Some(Fault { at: SystemTime::now(), faults });
        let standing = Standing { fault, ..Standing::clone(&self.standing.load()) };
        self.standing.store(Arc::new(standing));
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// `portcullis.config.*`.
    #[must_use]
    pub fn samples(&self) -> Vec<Sample> {
        let reloads = |result: &str, count: &AtomicU64| Sample {
            name: "portcullis.config.reloads",
            labels: vec![("result", result.to_owned())],
            value: count.load(Ordering::Relaxed),
        };
        let generation = self.standing.load().generation;
        vec![
            Sample { name: "portcullis.config.generation", labels: Vec::new(), value: generation },
            reloads("ok", &self.loaded),
            reloads("failed", &self.refused),
        ]
    }
}
