//! Rung 16: the arguments of a tool are such as were approved, and the headers that repeat some of them do not lie.

use std::fmt::Write as _;

use crate::message::headers::Headers;
use crate::message::json::{Document, Kind, Limits, Value};
use crate::message::write::string;
use crate::policy::Label;
use crate::protocol::routing;
use crate::record::schema::{Failure, Violation};
use crate::record::{Entry, Record};
use crate::refusal::{Detail, Reason, Refusal, Rung};

#[cfg(test)]
mod tests;

/// Most bytes of `details.errors`, well below what a frame's `data` holds.
const ERRORS_CAP: usize = 4 * 1024;

/// Checks the arguments of a `tools/call` that reaches `tool`: first against the recorded `inputSchema`, then against the
/// `Mcp-Param-*` headers. A tool that was recorded without an `inputSchema` takes any object.
///
/// # Errors
/// `arguments.invalid`, `arguments.uncheckable`, `headers.mismatch`.
pub fn check(record: &Record, tool: &Label, params: Option<Value<'_>>, headers: &Headers) -> Result<(), Refusal> {
    // Every price has its entry in the record; one that had none could not be checked.
    let Some(entry) = record.entry(tool) else {
        return Err(unusable(tool, "no definition of it is recorded"));
    };
    let arguments = params.and_then(|params| params.get("arguments"));
    schema(entry, tool, arguments)?;
    mirrored(entry, arguments, headers)
}

fn schema(entry: &Entry, tool: &Label, arguments: Option<Value<'_>>) -> Result<(), Refusal> {
    if let Some(other) = arguments.filter(|arguments| arguments.kind() != Kind::Object) {
        let text = format!("the arguments must be an object, they are {}", named(other.kind()));
        return Err(invalid(tool, &[Failure { pointer: String::new(), rule: "type".to_owned(), text }]));
    }
    let schema = match entry.input() {
        None => return Ok(()),
        Some(Err(fault)) => return Err(unusable(tool, &fault.message)),
        Some(Ok(schema)) => schema,
    };
    let none = match arguments {
        Some(_) => None,
        None => Document::read(b"{}".to_vec(), Limits { depth: 1, nodes: 1 }).ok(),
    };
    let Some(arguments) = arguments.or(none.as_ref().map(Document::root)) else {
        return Err(unusable(tool, "an empty object could not be read"));
    };
    schema.check(arguments).map_err(|violation| match violation {
        Violation::Invalid(failures) => invalid(tool, &failures),
        Violation::Uncheckable => Refusal::new(Reason::ArgumentsUncheckable, Rung::Arguments).message(format!(
            "The arguments of the tool '{}' are too large or too intricate to be checked exactly. Send smaller or simpler \
             ones.",
            tool.name()
        )),
    })
}

fn named(kind: Kind) -> &'static str {
    match kind {
        Kind::Null => "null",
        Kind::Bool => "a boolean",
        Kind::Number => "a number",
        Kind::String => "a string",
        Kind::Array => "an array",
        Kind::Object => "an object",
    }
}

/// The approved schema itself is at fault: nothing that the caller sends helps.
fn unusable(tool: &Label, why: &str) -> Refusal {
    Refusal::new(Reason::ArgumentsUncheckable, Rung::Arguments)
        .message(format!(
            "The arguments of the tool '{}' cannot be checked, because its approved definition is unusable. Trying again \
             will not help; tell the operator.",
            tool.name()
        ))
        .log(format!("{tool}: {why}"))
}

fn invalid(tool: &Label, failures: &[Failure]) -> Refusal {
    let mut message = format!("The arguments of the tool '{}' do not fit its approved inputSchema", tool.name());
    if let Some(Failure { pointer, rule, text }) = failures.first() {
        let place = if pointer.is_empty() { String::new() } else { format!("at {pointer}: ") };
        // Writing to a string does not fail.
        let _ = write!(message, ": {place}{text} (rule: {rule})");
    }
    message.push_str(". Correct the arguments and call again.");
    Refusal::new(Reason::ArgumentsInvalid, Rung::Arguments)
        .message(message)
        .detail("errors", Detail::Json(errors(failures)))
}

/// The failures as JSON, as many as fit.
fn errors(failures: &[Failure]) -> String {
    let mut out = vec![b'['];
    for Failure { pointer, rule, text } in failures {
        let before = out.len();
        out.extend_from_slice(if before > 1 { b",{" } else { b"{" });
        for (name, value) in [("pointer", pointer), ("rule", rule), ("message", text)] {
            if name != "pointer" {
                out.push(b',');
            }
            string(&mut out, name);
            out.push(b':');
            string(&mut out, value);
        }
        out.push(b'}');
        if out.len() > ERRORS_CAP {
            out.truncate(before);
            break;
        }
    }
    out.push(b']');
    String::from_utf8(out).unwrap_or_else(|_| "[]".to_owned())
}

fn mirrored(entry: &Entry, arguments: Option<Value<'_>>, headers: &Headers) -> Result<(), Refusal> {
    if entry.mirrored().is_empty() {
        return Ok(());
    }
    // Rung 4 lets underscores behind `mcp-param-` stand, because an annotation may have some; beside or instead of a header
    // that is compared, such a look-alike would be the one that a server reads.
    let look_alike = headers.iter().find_map(|header| entry.mirrored().look_alike(header.name()));
    if let Some(written) = look_alike {
        return Err(Refusal::new(Reason::HeadersMismatch, Rung::Arguments)
            .message(format!("Header mismatch: {written} comes in another spelling too, with - for _ or _ for -"))
            .detail("header", Detail::Text(written.to_owned())));
    }
    // Rung 4 saw to it that there is one value at most.
    let decoded = |name: &str| headers.all(name).next().map(routing::decode);
    entry.mirrored().check(arguments, decoded).map_err(|mismatch| {
        Refusal::new(Reason::HeadersMismatch, Rung::Arguments)
            .message(mismatch.to_string())
            .detail("header", Detail::Text(mismatch.header))
    })
}
