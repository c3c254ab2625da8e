//! The record: the capabilities of a server as they were when someone approved them.
//!
//! Two files. The YAML one holds the decisions: per capability its price, its digest and, for a resource, its URI
//! ([`RecordSource`]). The JSON one holds what was approved: the definitions as the server listed them and its
//! instructions ([`Definitions`]), in JSON because a number there must not be rounded. A digest ties the two together:
//! a definition that was edited after someone priced it refuses to load.
//!
//! ```text
//! cases.yaml ──RecordSource──┐
//!                            ├──Record::build──▶ Record { instructions, entry(label) } + warnings
//! cases.json ──Definitions───┘
//! ```
//!
//! Whether a server still offers that is [`differences`]; what `portcullis record` shows and writes is [`Changes`] and
//! [`definitions_file`].
//!
//! Pure: whoever read the files turns the paths and offsets of faults into lines.

mod build;
mod changes;
mod compare;
mod definitions;
mod digest;
mod listing;
pub mod mirrored;
mod render;
pub mod schema;
mod source;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use crate::message::json::Document;
use crate::policy::Label;

pub use build::RecordFault;
pub use changes::{Approved, Change, Changes, Difference, Field, Side};
pub use compare::{differ, differences, first_differences, same};
pub use definitions::{Definitions, DefinitionsFault};
pub use digest::{Digest, DigestError, MalformedDigest, canonical};
pub use listing::{Listed, Listing};
pub use mirrored::Mirrored;
pub use render::definitions_file;
pub use schema::{Schema, Uncompilable};
pub use source::{CapabilitySource, Permission, RecordSource, Recorded};

/// What was approved of one server; by default nothing.
#[derive(Debug, Default)]
pub struct Record {
    instructions: Option<Arc<str>>,
    entries: HashMap<Label, Arc<Entry>>,
}

/// One capability as it was approved.
#[derive(Debug)]
pub struct Entry {
    document: Document,
    canonical: Box<[u8]>,
    digest: Digest,
    input: Option<Result<Schema, Uncompilable>>,
    output: Option<Result<Schema, Uncompilable>>,
    mirrored: Mirrored,
}

impl Record {
    /// The instructions of `server/discover` as recorded; `None` when the server gave none, and then it may give none.
    #[must_use]
    pub fn instructions(&self) -> Option<&str> {
        self.instructions.as_deref()
    }

    /// The capability that `label` names; `None` when it is not priced. One hash lookup.
    #[must_use]
    pub fn entry(&self, label: &Label) -> Option<&Arc<Entry>> {
        self.entries.get(label)
    }

    /// All capabilities, in no order.
    pub fn entries(&self) -> impl Iterator<Item = (&Label, &Arc<Entry>)> {
        self.entries.iter()
    }

    /// How many capabilities there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Entry {
    /// The definition exactly as recorded, down to the last digit.
    #[must_use]
    pub fn document(&self) -> &Document {
        &self.document
    }

    /// The canonical form that the digest was taken over: two definitions are the same exactly when this is equal.
    #[must_use]
    pub fn canonical(&self) -> &[u8] {
        &self.canonical
    }

    /// SHA-256 of [`Entry::canonical`].
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The compiled `inputSchema` of a tool; an error when nothing can be checked against it, `None` when the definition has
    /// none.
    #[must_use]
    pub fn input(&self) -> Option<&Result<Schema, Uncompilable>> {
        self.input.as_ref()
    }

    /// The compiled `outputSchema` of a tool; as [`Entry::input`].
    #[must_use]
    pub fn output(&self) -> Option<&Result<Schema, Uncompilable>> {
        self.output.as_ref()
    }

    /// The arguments of a tool that are repeated in headers.
    #[must_use]
    pub fn mirrored(&self) -> &Mirrored {
        &self.mirrored
    }
}
