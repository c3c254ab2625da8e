//! What the model said, read strictly: whatever is not exactly a verdict is none.

use crate::message::json::{Document, Kind, Limits, Value};

/// Most characters of a model's reason that are kept.
const REASON: usize = 200;
const LIMITS: Limits = Limits { depth: 32, nodes: 4096 };

/// The model's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allow,
    Deny,
    Uncertain,
}

/// A verdict and the model's reason, bounded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub(super) verdict: Verdict,
    pub(super) reason: String,
}

/// Reads a chat completions answer. An answer of another protocol is a failure; a model that talks is uncertain.
pub(super) fn read(answer: Vec<u8>) -> Result<Judged, &'static str> {
    let document = Document::read(answer, LIMITS).map_err(|_| "expected a JSON answer")?;
    let content = content(document.root()).ok_or("expected choices[0].message.content to be a text")?;
    Ok(judged(content).unwrap_or_else(|| Judged {
        verdict: Verdict::Uncertain,
        reason: "the model did not answer with a verdict".to_owned(),
    }))
}

fn content(root: Value<'_>) -> Option<&str> {
    let mut choices = root.get("choices")?.items();
    let first = choices.next()?;
    // Two choices may contradict each other.
    if choices.next().is_some() {
        return None;
    }
    first.get("message")?.get("content")?.as_str()
}

fn judged(content: &str) -> Option<Judged> {
    let document = Document::read(content.trim().as_bytes().to_vec(), LIMITS).ok()?;
    let root = document.root();
    if root.kind() != Kind::Object {
        return None;
    }
    let (mut verdict, mut reason) = (None, "");
    for (key, value) in root.entries() {
        match key.as_str()? {
            "verdict" => {
                verdict = Some(match value.as_str()? {
                    "allow" => Verdict::Allow,
                    "deny" => Verdict::Deny,
                    "uncertain" => Verdict::Uncertain,
                    _ => return None,
                });
            }
            "reason" => reason = value.as_str()?,
            _ => return None,
        }
    }
    Some(Judged { verdict: verdict?, reason: printable(reason) })
}

/// At most [`REASON`] characters, without what could change how a log or a terminal reads.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(REASON).collect()
}
