//! What a reload hands on: parts that have learnt something and whose every input is the same again.
//!
//! A new configuration makes new tables. What must not begin anew with them are the freshness book of a server (or every
//! reload would list every server again, with callers waiting) and its gates (connections that are up, breakers that are
//! open). Each is told by a digest over all that it was made of; the smallest difference makes a new one.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::gates::Gates;
use crate::upstream::Freshness;

/// What one configuration can hand on to the next. Empty by default: nothing is handed on to the first.
#[derive(Clone, Default)]
pub struct Kept {
    servers: HashMap<Arc<str>, KeptServer>,
    /// Every server's name that this process has served, by its number.
    names: Vec<Arc<str>>,
}

/// The parts of one server, with the digests of what they were made of.
#[derive(Clone)]
pub(super) struct KeptServer {
    pub(super) listing: Option<(Made, Arc<Freshness>)>,
    pub(super) gates: (Made, Arc<Gates>),
}

impl Kept {
    /// The names of all servers that this process has served so far, by the numbers under which they are counted.
    #[must_use]
    pub fn names(&self) -> &[Arc<str>] {
        &self.names
    }

    /// Nothing but the names, and these added.
    pub(super) fn numbering<'a>(before: &Self, servers: impl Iterator<Item = &'a str>) -> Self {
        let mut names = before.names.clone();
        for name in servers {
            if !names.iter().any(|known| **known == *name) {
                names.push(name.into());
            }
        }
        Self { servers: HashMap::new(), names }
    }

    pub(super) fn number(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| **known == *name)
    }

    pub(super) fn server(&self, name: &str) -> Option<&KeptServer> {
        self.servers.get(name)
    }

    pub(super) fn keep(&mut self, name: Arc<str>, server: KeptServer) {
        self.servers.insert(name, server);
    }
}

/// What a part was made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Made([u8; 32]);

impl Made {
    /// Of this source, as it was read from the configuration, and the content of these files.
    ///
    /// The digest is of the source's `Debug` text: it is compared within one process only, and every source derives it, so
    /// that no key can be forgotten here.
    pub(super) fn of<'a>(source: &impl fmt::Debug, files: impl IntoIterator<Item = &'a Path>) -> Self {
        let mut hash = Sha256::new();
        hash.update(format!("{source:?}"));
        for file in files {
            // A file that cannot be read was told, or makes another digest than one that can.
            let content = std::fs::read(file).ok();
            hash.update([u8::from(content.is_some())]);
            hash.update(Sha256::digest(content.unwrap_or_default()));
        }
        Self(hash.finalize().into())
    }
}
