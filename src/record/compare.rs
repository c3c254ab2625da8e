//! Whether a definition is still the one that was approved, and if not, which of its fields differ.

#[cfg(test)]
mod tests;

use super::digest::LEFT_OUT;
use crate::message::json::{Kind, Value};
use crate::message::number;

/// The names of the top-level fields in which two definitions differ, sorted, each once; empty when they are the same.
///
/// Every field counts but `_meta` and `icons`, over the union of both sides: object keys unordered, arrays ordered,
/// numbers by value (`1.0` = `1`), `true` ≠ `1`, absent ≠ `null` (authz-semantics: the record). Sides that are not both
/// objects differ in the one field `definition`.
#[must_use]
pub fn differences(old: Value<'_>, new: Value<'_>) -> Vec<String> {
    first_differences(old, new, usize::MAX)
}

/// The first `most` of [`differences`]: a hostile definition may have a hundred thousand, and sorting them is dear.
#[must_use]
pub fn first_differences(old: Value<'_>, new: Value<'_>, most: usize) -> Vec<String> {
    // Allocates nothing for a definition that is unchanged, which is nearly every one of nearly every listing.
    if old.kind() != Kind::Object || new.kind() != Kind::Object {
        return if same(old, new) { Vec::new() } else { vec!["definition".to_owned()] };
    }
    let counts = |key: Value<'_>| !LEFT_OUT.iter().any(|name| key.as_str() == Some(name));
    let mut differing = Vec::new();
    let mut shared = 0_usize;
    for (key, value) in old.entries().filter(|(key, _)| counts(*key)) {
        let name = key.as_str().unwrap_or_default();
        let other = new.get(name);
        shared = shared.saturating_add(usize::from(other.is_some()));
        if !other.is_some_and(|other| same(value, other)) {
            differing.push(name);
        }
    }
    if new.entries().filter(|(key, _)| counts(*key)).count() > shared {
        let added = new.entries().filter_map(|(key, _)| key.as_str().filter(|_| counts(key)));
        differing.extend(added.filter(|name| old.get(name).is_none()));
    }
    // A key is in an object once, so no name is here twice.
    if differing.len() > most {
        differing.select_nth_unstable(most);
        differing.truncate(most);
    }
    differing.sort_unstable();
    differing.into_iter().map(str::to_owned).collect()
}

/// Whether [`differences`] finds any, without naming them.
#[must_use]
pub fn differ(old: Value<'_>, new: Value<'_>) -> bool {
    if old.kind() != Kind::Object || new.kind() != Kind::Object {
        return !same(old, new);
    }
    let counts = |(key, _): &(Value<'_>, Value<'_>)| !LEFT_OUT.iter().any(|name| key.as_str() == Some(name));
    // No key is in an object twice: as many members, and each of the old ones the same, leaves no room for a new one.
    new.entries().filter(counts).count() != old.entries().filter(counts).count()
        || old
            .entries()
            .filter(counts)
            .any(|(key, value)| !new.get(key.as_str().unwrap_or_default()).is_some_and(|other| same(value, other)))
}

/// Whether two values are the same value, however they are spelled.
#[must_use]
pub fn same(old: Value<'_>, new: Value<'_>) -> bool {
    if old.kind() != new.kind() || old.len() != new.len() {
        return false;
    }
    match old.kind() {
        Kind::Null => true,
        Kind::Bool => old.as_bool() == new.as_bool(),
        Kind::Number => old.raw() == new.raw() || number::equal(old.raw(), new.raw()),
        Kind::String => old.as_str() == new.as_str(),
        // As deep as the shallower of the two, which its reader bounded.
        Kind::Array => old.items().zip(new.items()).all(|(old, new)| same(old, new)),
        Kind::Object => same_members(old, new),
    }
}

/// Two objects with as many members each; no key stands twice in one.
fn same_members(old: Value<'_>, new: Value<'_>) -> bool {
    let pairs = old.entries().zip(new.entries());
    if pairs.clone().all(|((old, _), (new, _))| old.as_str() == new.as_str()) {
        return pairs.into_iter().all(|((_, old), (_, new))| same(old, new));
    }
    // Sorted rather than looked up one by one: a hostile order costs no more than a plain one times its logarithm.
    let (old, new) = (sorted(old), sorted(new));
    old.iter().zip(&new).all(|((old_key, old), (new_key, new))| old_key == new_key && same(*old, *new))
}

fn sorted(object: Value<'_>) -> Vec<(&str, Value<'_>)> {
    let members = object.entries().map(|(key, value)| (key.as_str().unwrap_or_default(), value));
    let mut members: Vec<_> = members.collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    members
}
