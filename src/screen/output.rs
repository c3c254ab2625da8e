//! The structured answer of a tool against the `outputSchema` that was approved with it.

use crate::message::json::Value;

#[cfg(test)]
mod tests;

/// Why a structured answer is withheld.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It breaks the schema.
    Broken,
    /// It is owed and not there.
    Missing,
    /// Nobody can tell: the recorded schema does not compile, or the validator cannot hold a value exactly.
    Uncheckable,
}

/// Holds the `result` of a `tools/call` to its tool's `outputSchema`, which `check` stands for.
///
/// An answer that says `isError: true` owes nothing, nor does one that asks for input instead of completing; any other
/// owes a `structuredContent` (MCP 2026-07-28, Tools, "Output Schema").
///
/// # Errors
/// [`Fault`]: the answer is to be withheld.
pub fn check(result: Value<'_>, check: impl FnOnce(Value<'_>) -> Result<(), Fault>) -> Result<(), Fault> {
    let member = |name: &str| result.get(name);
    let complete = member("resultType").is_none_or(|kind| kind.as_str() == Some("complete"));
    if !complete || member("isError").and_then(|error| error.as_bool()) == Some(true) {
        return Ok(());
    }
    check(member("structuredContent").ok_or(Fault::Missing)?)
}
