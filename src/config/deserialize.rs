//! A serde deserializer over the located tree, and a loader that reports every fault of a file instead of the first.
//!
//! Serde stops at the first error. [`load`] records it with its place, takes the node that was wrong out of the tree and
//! tries again, until the value loads or nothing is left. A key that went that way is not reported as missing too.

mod fault;
mod required;
mod value;

#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::tree::{Node, PlacedFault};
pub(crate) use fault::Fault;
use fault::{Kind, Site};
use value::Reader;

/// Most faults reported of one file. Whoever has more will look at these first.
const MAX_ROUNDS: usize = 200;

/// The name under which a type that is a file or the content of that file asks for its form; see [`super::FileOr`].
pub(crate) const FILE_OR_INLINE: &str = "$file_or_inline";

/// Reads a `T` out of `root`, leaving in `root` exactly what the result was made of.
///
/// Returns `None` when the root itself cannot be read once everything that is wrong is taken out.
pub(crate) fn load<T: DeserializeOwned + JsonSchema>(root: &mut Node) -> (Option<T>, Vec<PlacedFault>) {
    let mut faults = Vec::new();
    for _ in 0..MAX_ROUNDS {
        let fault = match T::deserialize(Reader { node: root }) {
            Ok(value) => return (Some(value), faults),
            Err(fault) => fault.at(root.id),
        };
        let Some(site) = fault.site() else { return (None, faults) };
        faults.extend(report::<T>(root, site, &fault));
        if site.id == root.id || !root.remove(site.id) {
            return (None, faults);
        }
    }
    (None, faults)
}

/// What to tell about `fault`, unless it only follows from one that was told already.
fn report<T: JsonSchema>(root: &Node, site: Site, fault: &Fault) -> Vec<PlacedFault> {
    let Some(node) = root.find(site.id) else { return Vec::new() };
    let key = root.key_of(site.id);
    let told = |on_key: bool, message: String| PlacedFault {
        place: key.filter(|_| on_key).unwrap_or(node.place),
        path: node.path.clone(),
        message,
    };
    match fault.kind() {
        Kind::Missing { field, of } => required::missing::<T>(*of, field)
            .iter()
            .filter(|field| node.get(field).is_none() && !node.dropped(|dropped| dropped == field.as_str()))
            .map(|field| told(true, format!("expected the key `{field}`, which is missing here; add it")))
            .collect(),
        // Whoever counts what a mapping holds counts wrong once something was taken out.
        Kind::Other(_) if node.dropped(|_| true) => Vec::new(),
        Kind::Other(message) => vec![told(site.on_key, message.clone())],
    }
}
