//! Rung 20: `server/discover` says nothing to the model that nobody approved, and promises no revision we do not speak.

use crate::message::json::{Document, Kind as JsonKind, Value};
use crate::message::splice::Edits;
use crate::refusal::Refusal;

use super::Server;
use super::answer::unreadable;

/// Holds a discovery answer to the record. `None` when every byte may stay.
///
/// # Errors
/// `answer.unreadable` when `supportedVersions` is not a list of strings.
pub fn hold(server: &Server, document: &Document, result: Value<'_>) -> Result<Option<Vec<u8>>, Refusal> {
    let mut edits = Edits::new(document);
    let mut changed = false;
    if let Some(instructions) = result.get("instructions") {
        let recorded = server.record.instructions();
        if recorded.is_none() || instructions.as_str() != recorded {
            edits.remove_member(result, "instructions");
            changed = true;
        }
    }
    if let Some(versions) = result.get("supportedVersions") {
        if versions.kind() != JsonKind::Array || versions.items().any(|version| version.as_str().is_none()) {
            return Err(unreadable("the server's supportedVersions is not a list of strings"));
        }
        edits.retain_items(versions, |_, version| {
            let spoken = server.protocol.iter().any(|own| Some(own.as_str()) == version.as_str());
            changed |= !spoken;
            spoken
        });
    }
    if !changed {
        return Ok(None);
    }
    if result.get("cacheScope").and_then(|scope| scope.as_str()) != Some("private") {
        edits.set_member(result, "cacheScope", br#""private""#);
    }
    let bytes =
        edits.apply().map_err(|fault| unreadable("the server's answer could not be cut").log(fault.to_string()))?;
    Ok(Some(bytes))
}
