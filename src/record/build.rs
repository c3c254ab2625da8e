//! The two files of a record held against each other.

use std::collections::HashMap;
use std::sync::Arc;

use super::mirrored::Misplaced;
use super::{CapabilitySource, Definitions, Digest, Entry, Mirrored, Record, RecordSource, Schema, Uncompilable};
use crate::message::json::{Document, Limits, Value};
use crate::policy::{Kind, Label, Segment};

/// A tool's schema of its arguments and of its structured output.
const INPUT: &str = "inputSchema";
const OUTPUT: &str = "outputSchema";

/// Something wrong between the two files, and where in which of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    /// In the YAML file; the path starts at its root.
    #[error("{message}")]
    Source {
        /// Keys from the root.
        path: Vec<Segment>,
        /// What was expected, what came, how to fix it.
        message: String,
    },
    /// In the JSON file.
    #[error("{message}")]
    Definitions {
        /// Offset of the first byte that shows it.
        at: usize,
        /// What was expected, what came, how to fix it.
        message: String,
    },
}

impl Record {
    /// Holds the decisions against the definitions and makes them one. The second half of the result are warnings: a
    /// definition that nobody priced never runs, a schema that does not compile refuses every call of its tool, and someone
    /// may want to know.
    ///
    /// # Errors
    /// All faults: a label without a definition, two labels that mean the same capability, a digest that does not fit, a
    /// definition that names another tool or prompt than its label, a URI that differs from the definition's own.
    pub fn build(
        source: &RecordSource,
        definitions: &Definitions,
    ) -> Result<(Self, Vec<RecordFault>), Vec<RecordFault>> {
        let mut faults = Vec::new();
        let offered = index(definitions, &mut faults);
        let mut entries = HashMap::with_capacity(source.capabilities.len());
        let mut warnings = Vec::new();
        for (text, decided) in &source.capabilities {
            // A label without a name is reported once, by the prices.
            let Ok(label) = text.parse::<Label>() else { continue };
            let Some(definition) = offered.get(&label) else {
                faults.push(source_fault(text, None, format!(
                    "expected a definition of {label} in the definitions file, found none; record the server again, or \
                     remove the entry"
                )));
                continue;
            };
            faults.extend(mismatches(text, &label, decided, *definition));
            match entry(&label, *definition) {
                Ok(entry) if entry.digest == decided.digest => {
                    warnings.extend(doubts(&label, &entry, *definition));
                    entries.insert(label, Arc::new(entry));
                }
                Ok(entry) => faults.push(source_fault(text, Some("digest"), format!(
                    "expected the digest of the recorded definition, {}, found {}; someone changed the definition or the \
                     digest after it was priced: review the definition, then correct the digest",
                    entry.digest, decided.digest
                ))),
                Err(message) => faults.push(RecordFault::Definitions { at: definition.span().start, message }),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        warnings.extend(unpriced(&offered, &entries));
        Ok((Self { instructions: definitions.instructions(), entries }, warnings))
    }
}

/// The definitions by canonical label.
fn index<'a>(definitions: &'a Definitions, faults: &mut Vec<RecordFault>) -> HashMap<Label, Value<'a>> {
    let mut offered = HashMap::new();
    for (text, definition) in definitions.entries() {
        let message = match text.parse::<Label>() {
            Err(error) => error.to_string(),
            Ok(label) => match offered.insert(label.clone(), definition) {
                None => continue,
                Some(_) => format!("expected each capability once, found a second definition of {label}; remove one"),
            },
        };
        faults.push(RecordFault::Definitions { at: definition.span().start, message });
    }
    offered
}

/// What the definition says differently from its entry.
fn mismatches(text: &str, label: &Label, decided: &CapabilitySource, definition: Value<'_>) -> Vec<RecordFault> {
    let mut faults = Vec::new();
    let member = |name: &str| definition.get(name).and_then(|value| value.as_str());
    if label.kind() != Kind::Resource {
        if member("name") != Some(label.name()) {
            let message = format!("expected the definition of {label} to have the name {:?}", label.name());
            faults.push(RecordFault::Definitions { at: definition.span().start, message });
        }
        if decided.uri.is_some() {
            let message = "expected a URI on resources only; remove it".to_owned();
            faults.push(source_fault(text, Some("uri"), message));
        }
        return faults;
    }
    match (member("uri"), member("uriTemplate"), &decided.uri) {
        (Some(_), Some(_), _) | (None, None, _) => {
            let message = format!("expected the definition of {label} to have one of `uri` and `uriTemplate`");
            faults.push(RecordFault::Definitions { at: definition.span().start, message });
        }
        (Some(own), None, Some(written)) | (None, Some(own), Some(written)) if own != written => {
            faults.push(source_fault(text, Some("uri"), format!(
                "expected the definition's own URI `{own}`, found `{written}`; the price would be for another resource: \
                 correct it"
            )));
        }
        // A resource without a URI is reported once, by the prices.
        _ => {}
    }
    faults
}

/// The definition as a document of its own. What is wrong with its schemas is found by [`doubts`].
fn entry(label: &Label, definition: Value<'_>) -> Result<Entry, String> {
    let (digest, canonical) = Digest::of(definition)
        .map_err(|error| format!("{error}, found a greater one; the definition has no digest"))?;
    let limits = Limits { depth: usize::MAX, nodes: usize::MAX };
    let document = Document::read(definition.raw().as_bytes().to_vec(), limits).map_err(|fault| fault.to_string())?;
    let schema = |member: &str| {
        let schema = definition.get(member).filter(|_| label.kind() == Kind::Tool);
        schema.map(Schema::compile)
    };
    let annotated = definition.get(INPUT).filter(|_| label.kind() == Kind::Tool);
    let mirrored = annotated.map(|schema| Mirrored::of(schema).0).unwrap_or_default();
    let (input, output) = (schema(INPUT), schema(OUTPUT));
    Ok(Entry { document, canonical: canonical.into(), digest, input, output, mirrored })
}

/// What of a tool's schemas cannot be used.
fn doubts(label: &Label, entry: &Entry, definition: Value<'_>) -> Vec<RecordFault> {
    let doubt = |at: usize, message: String| RecordFault::Definitions { at, message: format!("{label}: {message}") };
    let unusable = |schema: &Option<Result<Schema, Uncompilable>>, member: &str, consequence: &str| match schema {
        Some(Err(Uncompilable { at, message })) => Some(doubt(*at, format!("its {member} {consequence}: {message}"))),
        _ => None,
    };
    let mut doubts = Vec::new();
    doubts.extend(unusable(&entry.input, INPUT, "cannot be checked, so every call of it is refused"));
    doubts.extend(unusable(&entry.output, OUTPUT, "cannot be checked, so its output is withheld"));
    let annotated = definition.get(INPUT).filter(|_| label.kind() == Kind::Tool);
    let misplaced = annotated.map(|schema| Mirrored::of(schema).1).unwrap_or_default();
    doubts.extend(misplaced.into_iter().map(|Misplaced { at, message }| doubt(at, message)));
    doubts
}

fn unpriced(offered: &HashMap<Label, Value<'_>>, entries: &HashMap<Label, Arc<Entry>>) -> Vec<RecordFault> {
    let without_price = offered.iter().filter(|(label, _)| !entries.contains_key(label));
    let mut warnings: Vec<(usize, String)> = without_price
        .map(|(label, definition)| {
            (
                definition.span().start,
                format!("{label} is recorded but has no price, so it never runs; price it to allow it"),
            )
        })
        .collect();
    warnings.sort();
    warnings.into_iter().map(|(at, message)| RecordFault::Definitions { at, message }).collect()
}

fn source_fault(label: &str, key: Option<&str>, message: String) -> RecordFault {
    let path = ["capabilities", label].into_iter().chain(key).map(Segment::from).collect();
    RecordFault::Source { path, message }
}
