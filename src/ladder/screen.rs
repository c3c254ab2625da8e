//! Rung 21: an answer that is not what was approved is withheld; text that should not be in one gets a notice in front.
//!
//! Never refuses content, and never edits what the server said: a notice comes first, the rest stays byte for byte.

use crate::message::json::{Document, Value};
use crate::message::splice::Edits;
use crate::policy::Label;
use crate::protocol::Method;
use crate::record::schema::Violation;
use crate::record::{Schema, Uncompilable};
use crate::refusal::Refusal;
use crate::screen::output::{self, Fault};
use crate::screen::{Detectors, Found, notice};
use crate::telemetry::audit::Screened;

use super::answer::{asks_for_input, unreadable};

#[cfg(test)]
mod tests;

/// An answer that was screened.
#[derive(Debug)]
pub struct Answer {
    /// The bytes to send down.
    pub bytes: Vec<u8>,
    /// Whether they are others than those that came: then nobody may cache them for someone else.
    pub rewritten: bool,
    /// What was done, and why in words for the operator.
    pub screened: Option<(Screened, &'static str)>,
}

/// Screens the `result` of `document`, the answer to `method` on `capability` (`None` where the call has no single one),
/// whose recorded `outputSchema` is `schema`.
///
/// A clean answer is the document's own bytes, not copied. A resource read, which has a price, carries `cacheScope:
/// "private"` in any case, because who may have it depends on who asks.
///
/// # Errors
/// `answer.unreadable` when the answer cannot be cut, which is never the server's doing.
pub fn result(
    detectors: &Detectors,
    method: Method,
    capability: Option<&Label>,
    schema: Option<&Result<Schema, Uncompilable>>,
    document: Document,
) -> Result<Answer, Refusal> {
    let mut edits = Edits::new(&document);
    let screened = document.root().get("result").and_then(|result| {
        let name = capability.map_or("", Label::name);
        if let Err(fault) = owed(method, schema, result) {
            notice::withhold(&mut edits, result, name, fault);
            return Some((Screened::Withheld, why(fault)));
        }
        let screened = noticed(&mut edits, method, name, result, detectors.scan(result));
        if method == Method::ResourcesRead && !asks_for_input(result) && !is_private(result) {
            edits.set_member(result, "cacheScope", br#""private""#);
        }
        screened
    });
    if edits.is_empty() {
        return Ok(Answer { bytes: document.into_bytes(), rewritten: false, screened });
    }
    let bytes =
        edits.apply().map_err(|fault| unreadable("the server's answer could not be cut").log(fault.to_string()))?;
    Ok(Answer { bytes, rewritten: true, screened })
}

/// Looks through text that has no place for a notice: an error, the params of a notification.
#[must_use]
pub fn text(detectors: &Detectors, value: Value<'_>) -> Option<(Screened, &'static str)> {
    counted(detectors.scan(value))
}

/// Puts the notice where the answer's shape has a place for one. Resource contents and completion values are data that
/// programs read by position, and a question for more input has no text of its own.
fn noticed<'d>(
    edits: &mut Edits<'d>,
    method: Method,
    name: &str,
    result: Value<'d>,
    found: Found,
) -> Option<(Screened, &'static str)> {
    let told = found.any()
        && !asks_for_input(result)
        && match method {
            Method::ToolsCall => notice::tool(edits, result, name, found),
            Method::PromptsGet => notice::prompt(edits, result, name, found),
            _ => false,
        };
    if told { Some((Screened::Notice, found.what())) } else { counted(found) }
}

fn counted(found: Found) -> Option<(Screened, &'static str)> {
    found.any().then(|| (Screened::Counted, found.what()))
}

fn why(fault: Fault) -> &'static str {
    match fault {
        Fault::Broken => "structuredContent breaks the recorded outputSchema",
        Fault::Missing => "structuredContent is missing, which the recorded outputSchema demands",
        Fault::Uncheckable => "structuredContent cannot be checked against the recorded outputSchema",
    }
}

/// A tool with an `outputSchema` owes a structured answer that fits it. One whose schema does not compile owes what nobody
/// can check, so none of its answers passes.
fn owed(method: Method, schema: Option<&Result<Schema, Uncompilable>>, result: Value<'_>) -> Result<(), Fault> {
    let Some(schema) = schema.filter(|_| method == Method::ToolsCall) else { return Ok(()) };
    output::check(result, |structured| match schema {
        Err(Uncompilable { .. }) => Err(Fault::Uncheckable),
        Ok(schema) => schema.check(structured).map_err(|violation| match violation {
            Violation::Invalid(_) => Fault::Broken,
            Violation::Uncheckable => Fault::Uncheckable,
        }),
    })
}

fn is_private(result: Value<'_>) -> bool {
    result.get("cacheScope").and_then(|scope| scope.as_str()) == Some("private")
}
