//! What was approved held against what is offered now, for a person to read.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::compare::{differences, same};
use super::render::compact;
use super::{Definitions, Listing};
use crate::message::json::{Document, Kind, Limits, Value};
use crate::policy::{EmptyName, Label};

/// Differences that are told of one field; more would not be read either.
const MOST: usize = 40;

/// What the record's two files say, as far as each can be read: a price may wait to be decided, which no service loads.
#[derive(Debug, Default)]
pub struct Approved {
    /// The prices; `None` where nobody decided yet.
    pub prices: BTreeMap<Label, Option<String>>,
    /// The definitions in the order of their file.
    pub definitions: Vec<(Label, Document)>,
    /// The instructions.
    pub instructions: Option<String>,
}

/// What differs between what was approved and what is offered. Labels are sorted.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Capabilities that have a price.
    pub priced: usize,
    /// Offered, and nobody decided what it costs. What was recorded and then left without a price was decided: it never
    /// runs.
    pub never_priced: Vec<Label>,
    /// Priced, recorded, and no longer offered.
    pub no_longer_offered: Vec<Label>,
    /// Priced, and what the price is for was never recorded.
    pub without_record: Vec<Label>,
    /// Recorded and offered as something else.
    pub changed: Vec<Change>,
    /// The instructions, when they differ.
    pub instructions: Option<Difference>,
}

/// A capability whose definition changed.
#[derive(Debug, PartialEq, Eq)]
pub struct Change {
    /// The capability.
    pub label: Label,
    /// The fields that differ, sorted.
    pub fields: Vec<Field>,
}

/// A top-level field of a definition that changed.
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// The innermost values that differ, in the order of the text, 40 at most.
    pub differences: Vec<Difference>,
    /// How many more there are.
    pub more: usize,
}

/// One value that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// JSON Pointer within the field; empty for the field itself.
    pub pointer: String,
    /// What was approved; `None` when nothing stood there.
    pub old: Option<Side>,
    /// What is offered; `None` when nothing stands there.
    pub new: Option<Side>,
}

/// A value as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// A string, decoded.
    Text(String),
    /// Anything else as JSON on one line.
    Json(String),
}

impl Approved {
    /// The definitions and instructions of a record's JSON file; the prices are the YAML file's.
    ///
    /// # Errors
    /// A label without a name.
    pub fn of(prices: BTreeMap<Label, Option<String>>, recorded: &Definitions) -> Result<Self, EmptyName> {
        let limits = Limits { depth: usize::MAX, nodes: usize::MAX };
        let mut definitions = Vec::new();
        for (label, definition) in recorded.entries() {
            // Part of a document that was read already.
            let Ok(document) = Document::read(definition.raw().as_bytes().to_vec(), limits) else { continue };
            definitions.push((label.parse()?, document));
        }
        Ok(Self { prices, definitions, instructions: recorded.instructions().map(|text| text.to_string()) })
    }

    /// The recorded definition of a capability.
    #[must_use]
    pub fn definition(&self, label: &Label) -> Option<&Document> {
        self.definitions.iter().find(|(own, _)| own == label).map(|(_, document)| document)
    }
}

impl Changes {
    /// Holds what was approved against a whole listing. A name that is listed twice must match both times.
    #[must_use]
    pub fn between(approved: &Approved, offered: &Listing) -> Self {
        let recorded: BTreeMap<&Label, &Document> =
            approved.definitions.iter().map(|(label, document)| (label, document)).collect();
        let now: BTreeSet<&Label> = offered.entries.iter().map(|listed| &listed.label).collect();
        let undecided = |label: &Label| match approved.prices.get(label) {
            Some(price) => price.is_none(),
            None => !recorded.contains_key(label),
        };
        let mut changed: BTreeMap<&Label, Change> = BTreeMap::new();
        for listed in &offered.entries {
            let Some(old) = recorded.get(&listed.label) else { continue };
            let fields = fields(old.root(), listed.document.root());
            if !fields.is_empty() {
                changed.entry(&listed.label).or_insert(Change { label: listed.label.clone(), fields });
            }
        }
        let priced = approved.prices.keys();
        Self {
            priced: approved.prices.values().flatten().count(),
            never_priced: now.iter().filter(|label| undecided(label)).map(|label| (*label).clone()).collect(),
            no_longer_offered: priced
                .clone()
                .filter(|label| !now.contains(label) && recorded.contains_key(label))
                .cloned()
                .collect(),
            without_record: priced.filter(|label| !recorded.contains_key(label)).cloned().collect(),
            changed: changed.into_values().collect(),
            instructions: instructions(approved.instructions.as_deref(), offered.instructions.as_deref()),
        }
    }

    /// Whether everything is as it was approved.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.never_priced.is_empty()
            && self.no_longer_offered.is_empty()
            && self.without_record.is_empty()
            && self.changed.is_empty()
            && self.instructions.is_none()
    }
}

fn instructions(old: Option<&str>, new: Option<&str>) -> Option<Difference> {
    let side = |text: &str| Side::Text(text.to_owned());
    (old != new).then(|| Difference { pointer: String::new(), old: old.map(side), new: new.map(side) })
}

fn fields(old: Value<'_>, new: Value<'_>) -> Vec<Field> {
    let field = |name: String| {
        let mut found = Found::default();
        found.look(&mut String::new(), old.get(&name), new.get(&name));
        Field { name, differences: found.differences, more: found.more }
    };
    differences(old, new).into_iter().map(field).collect()
}

#[derive(Default)]
struct Found {
    differences: Vec<Difference>,
    more: usize,
}

impl Found {
    /// Goes down as long as both sides are containers of one shape. As deep as the shallower side, which was bounded.
    fn look(&mut self, pointer: &mut String, old: Option<Value<'_>>, new: Option<Value<'_>>) {
        match (old, new) {
            (None, None) => {}
            (Some(old), Some(new)) if same(old, new) => {}
            (Some(old), Some(new)) if old.kind() == Kind::Object && new.kind() == Kind::Object => {
                let keys = old.entries().chain(new.entries().filter(|(key, _)| old.get(name(*key)).is_none()));
                for (key, _) in keys {
                    let key = name(key);
                    self.below(pointer, key, old.get(key), new.get(key));
                }
            }
            (Some(old), Some(new))
                if old.kind() == Kind::Array && old.kind() == new.kind() && old.len() == new.len() =>
            {
                for (index, (old, new)) in old.items().zip(new.items()).enumerate() {
                    self.below(pointer, &index.to_string(), Some(old), Some(new));
                }
            }
            _ if self.differences.len() >= MOST => self.more = self.more.saturating_add(1),
            _ => self.differences.push(Difference { pointer: pointer.clone(), old: old.map(side), new: new.map(side) }),
        }
    }

    fn below(&mut self, pointer: &mut String, key: &str, old: Option<Value<'_>>, new: Option<Value<'_>>) {
        let length = pointer.len();
        pointer.push('/');
        pointer.push_str(&key.replace('~', "~0").replace('/', "~1"));
        self.look(pointer, old, new);
        pointer.truncate(length);
    }
}

fn name(key: Value<'_>) -> &str {
    key.as_str().unwrap_or_default()
}

fn side(value: Value<'_>) -> Side {
    value.as_str().map_or_else(|| Side::Json(compact(value)), |text| Side::Text(text.to_owned()))
}
