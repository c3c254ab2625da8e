//! The record's JSON file: definitions as served, read with the strict reader so that no number is rounded.

use std::sync::Arc;

use crate::message::json::{Document, Fault, FaultKind, Kind, Limits, Value};

/// A record is ours, yet it is read with bounds like anything else. Definitions of two thousand tools take some MiB.
const LIMITS: Limits = Limits { depth: 128, nodes: 4_000_000 };

/// `{"instructions": string?, "definitions": {label: object}}`.
#[derive(Debug)]
pub struct Definitions {
    document: Document,
}

/// Why the file is not acceptable, and at which byte of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct DefinitionsFault {
    /// Offset of the first byte that shows it.
    pub at: usize,
    /// What was expected, what came, how to fix it.
    pub message: String,
}

impl Definitions {
    /// Reads the file's bytes.
    ///
    /// # Errors
    /// The first fault of the JSON itself, or every fault of its shape.
    pub fn read(bytes: Vec<u8>) -> Result<Self, Vec<DefinitionsFault>> {
        let document = Document::read(bytes, LIMITS).map_err(|Fault { kind, at }| {
            let hint = match kind {
                FaultKind::DuplicateKey => "; remove one of the two",
                FaultKind::TooMany | FaultKind::Depth => "; record fewer capabilities in one file",
                _ => "",
            };
            vec![DefinitionsFault { at, message: format!("expected JSON, but {kind}{hint}") }]
        })?;
        let faults = shape(document.root());
        if faults.is_empty() { Ok(Self { document }) } else { Err(faults) }
    }

    /// The recorded instructions.
    pub(super) fn instructions(&self) -> Option<Arc<str>> {
        self.document.root().get("instructions")?.as_str().map(Arc::from)
    }

    /// The definitions by label as written.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, Value<'_>)> {
        let definitions = self.document.root().get("definitions");
        definitions
            .into_iter()
            .flat_map(|value| value.entries())
            .filter_map(|(key, value)| Some((key.as_str()?, value)))
    }
}

fn shape(root: Value<'_>) -> Vec<DefinitionsFault> {
    let fault = |value: Value<'_>, message: String| DefinitionsFault { at: value.span().start, message };
    if root.kind() != Kind::Object {
        return vec![fault(root, "expected an object with `instructions` and `definitions`".to_owned())];
    }
    let mut faults = Vec::new();
    for (key, value) in root.entries() {
        match key.as_str() {
            Some("instructions") if value.kind() == Kind::String => {}
            Some("instructions") => {
                faults.push(fault(
                    value,
                    "expected the instructions as a string; leave them out when there are none".to_owned(),
                ));
            }
            Some("definitions") if value.kind() == Kind::Object => {
                for (label, definition) in value.entries().filter(|(_, definition)| definition.kind() != Kind::Object) {
                    faults.push(fault(definition, format!("expected the definition of {} as an object", label.raw())));
                }
            }
            Some("definitions") => faults.push(fault(value, "expected an object from label to definition".to_owned())),
            _ => {
                let message = format!("expected `instructions` and `definitions` only, found {}; remove it", key.raw());
                faults.push(fault(key, message));
            }
        }
    }
    if root.get("definitions").is_none() {
        faults.push(fault(root, "expected the member `definitions`, which is missing; add it".to_owned()));
    }
    faults
}
